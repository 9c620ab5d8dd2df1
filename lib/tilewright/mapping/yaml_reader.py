"""Reads the mapping YAML (zigzag-dse 3.9.1: mapping file)."""

from pathlib import Path
from typing import Any

from tilewright.errors import Problems
from tilewright.file_kinds import MAPPING, refuse_other_kind
from tilewright.hardware.yaml_schema import parse_unrolling
from tilewright.mapping.constraints import GivenReach, Mapping, MappingConstraints
from tilewright.mapping.yaml_checks import check_mapping, check_mapping_against_core, refuse_multi_core
from tilewright.mapping.yaml_schema import MappingEntry, MappingFile, parse_ordering_entry, parse_tiling_entry
from tilewright.validation import validate
from tilewright.yamlfile import YamlDocument, document_of, load_yaml

__all__ = ["check_mapping_against_core", "mapping_of", "read_mapping"]


def read_mapping(source: str | Path | list[dict[str, Any]], notices: list[str] | None = None) -> Mapping:
    """The mapping of a mapping file, or of the same data as a list of dicts.

    Raises InputError with every problem of the file. Remarks on what is legal but unusual are appended to `notices`.
    """
    document = document_of(source) if isinstance(source, (list, tuple)) else load_yaml(source, notices)
    return mapping_of(document, notices)


def mapping_of(document: YamlDocument, notices: list[str] | None = None) -> Mapping:
    """The mapping of a loaded document. Raises InputError."""
    problems = Problems(document)
    if refuse_multi_core(document.data, problems):
        problems.finish(notices)
    refuse_other_kind(document, MAPPING)
    entries = validate(MappingFile, document.data, problems)
    check_mapping(document.data, problems)
    problems.finish(notices)
    return Mapping(tuple(_constraints(entry, written) for entry, written in zip(entries, document.data, strict=True)))


def _constraints(entry: MappingEntry, written: dict[str, Any]) -> MappingConstraints:
    return MappingConstraints(
        name=entry.name,
        spatial_mapping=tuple(
            # dict() keeps the last factor of a repeated dimension, at the place of the first, as the reference does.
            (dimension, tuple(dict(parse_unrolling(text) for text in unrollings).items()))
            for dimension, unrollings in (entry.spatial_mapping or {}).items()
        ),
        spatial_mapping_hint=tuple(
            (dimension, tuple(name.upper() for name in names))
            for dimension, names in (entry.spatial_mapping_hint or {}).items()
        ),
        # The written order of the links is kept: it is the order in which operands are processed.
        memory_operand_links=(
            MappingConstraints.memory_operand_links
            if entry.memory_operand_links is None
            else tuple(written["memory_operand_links"].items())
        ),
        temporal_ordering=tuple(parse_ordering_entry(value) for value in entry.temporal_ordering or ()),
        level_boundaries=tuple(
            (operand, tuple(bounds))
            for operand in written.get("level_boundaries") or ()
            if (bounds := getattr(entry.level_boundaries, operand)) is not None
        ),
        core_allocation=tuple(entry.core_allocation or ()),
        core_allocation_is_fixed=entry.core_allocation_is_fixed,
        intra_core_tiling=tuple(parse_tiling_entry(text) for text in entry.intra_core_tiling or ()),
        inter_core_tiling=tuple(parse_tiling_entry(text) for text in entry.inter_core_tiling or ()),
        layer_dimension_names=tuple(name.upper() for name in entry.layer_dimension_names or ()),
        memory_reach=_reach(entry),
        temporal_mapping_type=entry.temporal_mapping_type,
        access_same_data_considered_as_no_access=entry.access_same_data_considered_as_no_access,
    )


def _reach(entry: MappingEntry) -> GivenReach | None:
    given = entry.memory_reach
    if given is None:
        return None
    topmost = tuple((operand, name) for operand in ("O", "W", "I") if (name := getattr(given.topmost, operand)))
    return GivenReach(topmost, tuple((given.occupied_bits or {}).items()))
