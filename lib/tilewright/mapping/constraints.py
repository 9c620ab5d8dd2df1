"""What the mapping file says for a layer: spatial mapping, hints, operand links, temporal ordering (spec 3)."""

import fnmatch
from dataclasses import dataclass

from tilewright.workload.layer import Layer

WILDCARD = "*"
Unrolling = tuple[tuple[str, tuple[tuple[str, int], ...]], ...]
"""User-level spatial mapping: (array dimension, ((loop dimension, factor), ...)), in mapping order."""


@dataclass(frozen=True)
class TemporalOrderingEntry:
    """One loop of a temporal ordering; dimension '*' is a gap of any loops, size None is any size."""

    dimension: str
    size: int | None = None


@dataclass(frozen=True)
class MappingConstraints:
    """The constraints of one entry of a mapping file."""

    name: str
    """Selector: layer name, operator type, `@depthwise`, a glob over layer names, or `default`."""
    spatial_mapping: Unrolling = ()
    spatial_mapping_hint: tuple[tuple[str, tuple[str, ...]], ...] = ()
    memory_operand_links: tuple[tuple[str, str], ...] = (("O", "O"), ("W", "I2"), ("I", "I1"))
    """(layer operand, memory operand); the order is the processing order of conversion and allocation."""
    temporal_ordering: tuple[TemporalOrderingEntry, ...] = ()
    """Innermost first."""


@dataclass(frozen=True)
class Mapping:
    """All entries of a mapping file, in file order."""

    entries: tuple[MappingConstraints, ...]

    def constraints_for(self, layer: Layer) -> MappingConstraints:
        """The entry for a layer: exact name, then operator type, then attribute, then name glob, then default.

        Raises KeyError if there is no default entry (a validated mapping always has one).
        """
        tests = (
            lambda name: name == layer.name,
            lambda name: name == layer.operator_type,
            lambda name: name == "@depthwise" and is_depthwise(layer),
            lambda name: any(c in name for c in "*?[") and fnmatch.fnmatchcase(layer.name, name),
            lambda name: name == "default",
        )
        for test in tests:
            for entry in self.entries:
                if test(entry.name):
                    return entry
        raise KeyError("default")


def is_depthwise(layer: Layer) -> bool:
    """True for a grouped convolution with one input and one output channel a group."""
    sizes = layer.size_of
    return sizes.get("G", 1) > 1 and sizes.get("K", 1) == 1 and sizes.get("C", 1) == 1
