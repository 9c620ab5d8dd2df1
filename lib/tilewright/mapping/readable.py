"""What can be read of a mapping file that is wrong in places, so that the rest of it is checked all the same."""

from collections.abc import Callable
from typing import Any

from tilewright.hardware.yaml_schema import check_array_dimension, parse_unrolling
from tilewright.mapping.constraints import WILDCARD, Mapping, MappingConstraints, TemporalOrderingEntry, TilingEntry
from tilewright.mapping.yaml_schema import parse_intra_core_entry, parse_ordering_entry, parse_tiling_entry
from tilewright.validation import items, parsed, table, texts
from tilewright.yamlfile import YamlDocument

DEFAULT = "default"
NO_CORE = -1
"""In the place of what is no id of a core."""
NO_LOOP = TilingEntry("", 1)
"""In the place of what is no loop of a tiling."""


def readable_mapping(document: YamlDocument) -> Mapping:
    """The mapping without what is broken in it; never raises.

    Items of lists keep their places. An entry `default` is put at the end if there is none. Whether cores are fixed is
    left out of an entry whose cores or tiles are broken: numbers of groups would not match for that reason alone.
    """
    entries = [_readable(table(entry)) for entry in items(document.data)]
    if all(entry.name != DEFAULT for entry in entries):
        entries.append(MappingConstraints(DEFAULT))
    return Mapping(tuple(entries))


def _readable(entry: dict[Any, Any]) -> MappingConstraints:
    name, links = entry.get("name"), table(entry.get("memory_operand_links"))
    within = _loops(entry.get("intra_core_tiling"), parse_intra_core_entry)
    between = _loops(entry.get("inter_core_tiling"), parse_tiling_entry)
    cores = tuple(core if type(core) is int else NO_CORE for core in items(entry.get("core_allocation")))
    is_sound = cores and min(cores) >= 0 and NO_LOOP not in (*within, *between)
    return MappingConstraints(
        name=name if isinstance(name, str) else "",
        spatial_mapping=tuple(
            (dimension, tuple(pair for text in texts(loops) if text and (pair := parsed(parse_unrolling, text))))
            for dimension, loops in table(entry.get("spatial_mapping")).items()
            if isinstance(dimension, str) and parsed(check_array_dimension, dimension) is not None
        ),
        spatial_mapping_hint=tuple(
            (str(dimension), tuple(text.upper() for text in texts(names) if text))
            for dimension, names in table(entry.get("spatial_mapping_hint")).items()
        ),
        memory_operand_links=(
            tuple(links.items())
            if all(isinstance(word, str) for pair in links.items() for word in pair) and links
            else MappingConstraints.memory_operand_links
        ),
        temporal_ordering=tuple(
            parsed(parse_ordering_entry, loop) or TemporalOrderingEntry(WILDCARD)
            for loop in items(entry.get("temporal_ordering"))
        ),
        core_allocation=cores,
        core_allocation_is_fixed=bool(is_sound and entry.get("core_allocation_is_fixed") is True),
        intra_core_tiling=within,
        inter_core_tiling=between,
        layer_dimension_names=tuple(text.upper() for text in texts(entry.get("layer_dimension_names")) if text),
    )


def _loops(written: Any, parse: Callable[[str], TilingEntry]) -> tuple[TilingEntry, ...]:
    return tuple((parsed(parse, text) if text else None) or NO_LOOP for text in texts(written))
