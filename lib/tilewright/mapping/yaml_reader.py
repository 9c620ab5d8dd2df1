"""Reads the mapping YAML (zigzag-dse 3.9.1: mapping file)."""

from pathlib import Path
from typing import Any

from tilewright.errors import Problems
from tilewright.file_kinds import MAPPING, refuse_other_kind
from tilewright.mapping.constraints import (
    DEFAULT,
    WILDCARD,
    GivenReach,
    Mapping,
    MappingConstraints,
    TemporalOrderingEntry,
    TilingEntry,
)
from tilewright.mapping.yaml_checks import check_mapping, check_mapping_against_core, refuse_multi_core
from tilewright.mapping.yaml_schema import LinksEntry, MappingEntry, MappingFile
from tilewright.validation import validate, whole
from tilewright.yamlfile import YamlDocument, document_of, load_yaml

__all__ = ["check_mapping_against_core", "mapping_of", "read_mapping"]
NO_CORE = -1
"""In the place of what is no id of a core."""
NO_LOOP = TilingEntry("", 1)
"""In the place of what is no loop of a tiling."""


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
    check_mapping(problems, entries or [])
    problems.finish(notices)
    return _mapping(entries, document)


def readable_mapping(document: YamlDocument) -> Mapping:
    """The mapping without what is broken in it; never raises.

    Items of lists keep their places. An entry `default` is put at the end if there is none. Whether cores are fixed is
    left out of an entry whose cores or tiles are broken: numbers of groups would not match for that reason alone.
    """
    mapping = _mapping(validate(MappingFile, document.data, Problems()) or [], document)
    if any(entry.name == DEFAULT for entry in mapping.entries):
        return mapping
    return Mapping((*mapping.entries, MappingConstraints(DEFAULT)))


def _mapping(entries: list[MappingEntry], document: YamlDocument) -> Mapping:
    return Mapping(
        tuple(
            MappingConstraints("") if entry is None else _constraints(entry, written)
            for entry, written in zip(entries, document.data, strict=True)
        )
    )


def _constraints(entry: MappingEntry, written: dict[str, Any]) -> MappingConstraints:
    """The constraints of an entry; holes in lists of cores and loops keep their places."""
    cores = tuple(NO_CORE if core is None else core for core in entry.core_allocation or ())
    within = tuple(loop or NO_LOOP for loop in entry.intra_core_tiling or ())
    between = tuple(loop or NO_LOOP for loop in entry.inter_core_tiling or ())
    has_holes = NO_CORE in cores or NO_LOOP in (*within, *between)
    return MappingConstraints(
        name=entry.name or "",
        spatial_mapping=tuple(
            # dict() keeps the last factor of a repeated dimension, at the place of the first, as the reference does.
            (dimension, tuple(dict(whole(loops)).items()))
            for dimension, loops in (entry.spatial_mapping or {}).items()
        ),
        spatial_mapping_hint=tuple(
            (dimension, tuple(whole(names))) for dimension, names in (entry.spatial_mapping_hint or {}).items()
        ),
        memory_operand_links=_links(entry.memory_operand_links, written),
        temporal_ordering=tuple(loop or TemporalOrderingEntry(WILDCARD) for loop in entry.temporal_ordering or ()),
        level_boundaries=tuple(
            (operand, tuple(bounds))
            for operand in (() if entry.level_boundaries is None else written["level_boundaries"])
            if (bounds := getattr(entry.level_boundaries, operand, None)) is not None
        ),
        core_allocation=cores,
        core_allocation_is_fixed=bool(entry.core_allocation_is_fixed and not has_holes),
        intra_core_tiling=within,
        inter_core_tiling=between,
        layer_dimension_names=tuple(whole(entry.layer_dimension_names)),
        memory_reach=_reach(entry),
        temporal_mapping_type=entry.temporal_mapping_type,
        access_same_data_considered_as_no_access=entry.access_same_data_considered_as_no_access,
    )


def _links(links: LinksEntry | None, written: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """The memory operand of each layer operand, in the order of writing: in it operands are processed."""
    if links is None or any(memory_operand is None for _, memory_operand in links):
        return MappingConstraints.memory_operand_links
    return tuple(written["memory_operand_links"].items())


def _reach(entry: MappingEntry) -> GivenReach | None:
    given = entry.memory_reach
    if given is None or given.topmost is None:
        return None
    topmost = tuple((operand, name) for operand in ("O", "W", "I") if (name := getattr(given.topmost, operand)))
    return GivenReach(topmost, tuple((given.occupied_bits or {}).items()))
