"""The Python interface: the verbs of the command line on paths, dicts, lists, models in memory and dataclasses.

Everything that takes a description also takes the object that was parsed from it, or the path of its artifact.
"""

from collections.abc import Mapping as Table
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilewright.hardware.core import Core
from tilewright.mapping.constraints import MappingConstraints, Unrolling, as_unrolling
from tilewright.sources import (
    AcceleratorSource,
    parse_accelerator,
    single_core,
)
from tilewright.workload.layer import Layer

if TYPE_CHECKING:
    from tilewright.cost.record import LayerRecord
    from tilewright.search.options import SearchOptions

Loops = Sequence[tuple[str, int]]


def map_layer(
    layer: Layer, core: Core, constraints: MappingConstraints, options: "SearchOptions | None" = None
) -> "LayerRecord":
    """The best mapping of one layer on one core, as a record. Raises MappingError where nothing fits."""
    from tilewright.search.options import SearchOptions
    from tilewright.stages import run

    return run.map_layer(layer, core, constraints, options or SearchOptions())


def evaluate(
    layer: Layer,
    core: Core,
    spatial_mapping: Table[str, Table[str, int]] | Unrolling,
    loop_order: Loops,
    *,
    memory_operand_links: Sequence[tuple[str, str]] = MappingConstraints.memory_operand_links,
    level_boundaries: Table[str, Sequence[int]] | None = None,
    options: "SearchOptions | None" = None,
) -> "LayerRecord":
    """The cost of one given mapping, loops innermost first, as a record. Raises MappingError where it does not fit.

    `level_boundaries` are, for each operand, the numbers of loops up to and including each of its memories, as in a
    record of a search that chose them; without them the allocator decides.
    """
    from tilewright.search import evaluate as engine
    from tilewright.search.options import SearchOptions

    links = tuple((operand, memory) for operand, memory in memory_operand_links)
    order = tuple((dimension, size) for dimension, size in loop_order)
    chosen = options or SearchOptions()
    return engine.evaluate(layer, core, links, as_unrolling(spatial_mapping), order, chosen, level_boundaries)


def export_mapping(records: "Sequence[LayerRecord]", hardware: AcceleratorSource | None = None) -> str:
    """The mappings of records as the text of a mapping file that reads back to the same numbers."""
    from tilewright.report.export import mapping_yaml

    core = single_core(parse_accelerator(hardware)) if hardware is not None else None
    return mapping_yaml(records, tuple(core.operational_array.size_of) if core else ())


def export_loop_nests(records: "Sequence[LayerRecord]") -> str:
    """The mappings of records as loop nests that a person can read."""
    from tilewright.report.loop_nest import network_loop_nests

    return network_loop_nests(records)
