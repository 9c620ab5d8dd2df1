"""Classes of CNs that cost the same on every core, and what each costs on one: the rows of `cost/{core}.jsonl`
(docs/cost-table.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.artifacts.codec import LEFT_OUT, decode, encode
from tilewright.artifacts.envelope import read_artifact, rows_digest, write_rows
from tilewright.artifacts.seals import REMEDY
from tilewright.errors import ArtifactError, Problem
from tilewright.fusion.graph import CnGraph, once_a_graph
from tilewright.fusion.grid import Integers, LayerGrid
from tilewright.mapping.constraints import Mapping, MappingConstraints
from tilewright.workload.graph import Workload, WorkloadNode

SCHEMA = "tilewright/core-costs"


@dataclass(frozen=True)
class Stream:
    """An operand that does not fit the core: it stays in the off-chip memory while the CN runs."""

    operand: str
    """Memory operand: O, I1 or I2."""
    bits: int
    """Read from the off-chip memory (for O written to it and read back from it) during one CN."""
    bits_per_cycle: int
    """Width that it needs so that the CN is not slowed down."""


@dataclass(frozen=True)
class CoreCostRow:
    """What one CN of a class costs on a core, or why the core cannot run it.

    Cycles are whole and at least 1; where the core cannot run the class, all numbers are 0.
    """

    cost_class: int
    """Place in `CostClasses.classes`."""
    reason: str = ""
    """Why the core cannot run it; '' if it can."""
    ideal_cycles: int = 0
    """All units busy all the time."""
    total0_cycles: int = 0
    """Cycles with idle units and stalls."""
    total1_cycles: int = 0
    """Cycles with the first tiles brought to the array as well."""
    total2_cycles: int = 0
    """Cycles with the last outputs taken from the array as well."""
    on_core_energy_pj: float = 0.0
    """The sum of the terms that follow: array and memories of the core, without the off-chip memory."""
    operational_energy_pj: float = 0.0
    """The array alone."""
    memory_energy_pj: tuple[tuple[str, float], ...] = ()
    """(memory of the core, pJ), from the array outwards."""
    term_energy_pj: tuple[tuple[str, float], ...] = field(default=(), metadata=LEFT_OUT)
    """(further term of the energy, pJ)."""
    spatial_utilisation: float = 0.0
    """Share of the array that works while it computes."""
    streams: tuple[Stream, ...] = ()
    """Operands that do not fit."""
    spatial_stall_cycles: int | None = field(default=None, metadata=LEFT_OUT)
    """Cycles of total0 those in which only units are idle, as the CN does not fill the array; None: not known."""
    ended_by_time: bool = field(default=False, metadata=LEFT_OUT)
    """Whether a time budget ended a search for a mapping of the CN: the next time another one may be chosen."""
    mapping: Any = None
    """The chosen mapping for people, as plain data: its loops per operand and memory; None if there is none."""
    what: str = ""
    """The loops of a CN for people: Conv K 64, OX 56, C 64, FX 3, FY 3."""
    layers: tuple[int, ...] = ()
    """Numbers of the layers in the CN graph that have such CNs."""
    cn_count: int = 0
    """Number of CNs of the class."""

    @property
    def can_run(self) -> bool:
        """Whether the core can run the class."""
        return not self.reason

    @property
    def utilisation(self) -> float:
        """Share of the array's work in total1; 0 where it cannot run."""
        return self.ideal_cycles / self.total1_cycles if self.total1_cycles else 0.0


def write_core_costs(path: Path | str, rows: Sequence[CoreCostRow], provenance: dict[str, Any]) -> str:
    """Write the table of one core, one row for each class, atomically; returns the digest of the rows."""
    return write_rows(path, SCHEMA, [encode(row) for row in rows], provenance)


def core_costs_digest(rows: Sequence[CoreCostRow]) -> str:
    """The digest that the artifact of a table has, written or not."""
    return rows_digest(encode(row) for row in rows)


def read_core_costs(path: Path | str) -> tuple[CoreCostRow, ...]:
    """The table of one core. Raises ArtifactError if it is missing or damaged, or its rows are not in order."""
    try:
        rows = tuple(decode(CoreCostRow, row) for row in read_artifact(path, SCHEMA).payload)
    except ValueError as error:
        raise ArtifactError([Problem(f"artifact does not fit this version: {error}; {REMEDY}", str(path))]) from error
    if [row.cost_class for row in rows] != list(range(len(rows))):
        raise ArtifactError([Problem(f"its rows are not one for each cost class, in order; {REMEDY}", str(path))])
    return rows


_STEPS = 4
"""A step of a reduction goes on with partial sums or not, and leaves partial sums or not."""


@dataclass(frozen=True)
class CostClass:
    """CNs that pose the same problem to a core, whatever their names and layers."""

    shape: int
    """Place in `CnGraph.shapes`."""
    constraints: MappingConstraints
    """What the mapping file says that matters on one core; without a name."""
    takes_partial_sums: bool
    """Whether a CN before it has begun the reduction: it goes on with the partial sums of that one."""
    leaves_partial_sums: bool
    """Whether a CN after it goes on with the reduction: what it makes are partial sums."""
    layers: tuple[int, ...]
    """Numbers of the layers in the graph that have such CNs. A core can run all of them or none, by their operators."""
    cn_count: int


@dataclass(frozen=True, eq=False)
class CostClasses:
    """All classes of a graph, in the order of their first CNs."""

    classes: tuple[CostClass, ...]
    of_cn: Integers
    """[cn] place in `classes`"""


@once_a_graph
def cost_classes(graph: CnGraph, workload: Workload, mapping: Mapping) -> CostClasses:
    """The classes of a graph.

    CNs are of one class if their shapes are equal, the mapping file says the same for them, they are at the same kind
    of step of a reduction, and cores that can run the layer of one can run that of the other.
    """
    node_of = {node.node_id: node for node in workload.nodes}
    kinds: dict[tuple[MappingConstraints, tuple[str, ...]], int] = {}
    parts = []
    for layer in graph.layers:
        node = node_of[layer.node_id]
        assert node.layer is not None
        what_runs_it = (node.operator_type, node.origin_type, node.unit)
        number = kinds.setdefault((on_one_core(mapping.constraints_for(node.layer)), what_runs_it), len(kinds))
        parts.append(number * _STEPS + _reduction_steps(node, layer.grid))
    kind = np.concatenate(parts) if parts else np.zeros(0, np.int64)
    key = kind * max(len(graph.shapes), 1) + graph.shape
    _, first, of_cn = np.unique(key, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    of_cn = rank[of_cn.reshape(-1)]
    layer_pairs = np.unique(of_cn * max(len(graph.layers), 1) + graph.cn_layer)
    layers_of: list[list[int]] = [[] for _ in order]
    for pair in layer_pairs.tolist():
        layers_of[pair // len(graph.layers)].append(pair % len(graph.layers))
    counts = np.bincount(of_cn, minlength=len(order)).tolist()
    constraints = [entry for entry, _ in kinds]
    classes = tuple(
        CostClass(
            int(graph.shape[cn]),
            constraints[int(kind[cn]) // _STEPS],
            bool(kind[cn] & 1),
            bool(kind[cn] & 2),
            tuple(layers_of[place]),
            counts[place],
        )
        for place, cn in enumerate(first[order])
    )
    return CostClasses(classes, of_cn)


def on_one_core(entry: MappingConstraints) -> MappingConstraints:
    """An entry of a mapping file without its name and without what only matters between cores."""
    plain = MappingConstraints("")
    return replace(
        plain,
        spatial_mapping=entry.spatial_mapping,
        spatial_mapping_hint=entry.spatial_mapping_hint,
        memory_operand_links=entry.memory_operand_links,
        temporal_ordering=entry.temporal_ordering,
        level_boundaries=entry.level_boundaries,
        temporal_mapping_type=entry.temporal_mapping_type,
        access_same_data_considered_as_no_access=entry.access_same_data_considered_as_no_access,
    )


def _reduction_steps(node: WorkloadNode, grid: LayerGrid) -> Integers:
    """[cn] 1 if it takes partial sums, plus 2 if it leaves some."""
    written = {name for index_map in node.index_maps for axis in index_map.output.axes for name, _ in axis.terms}
    steps = np.zeros(grid.cn_count, np.int64)
    for dimension in grid.tiled_dimensions:
        if dimension not in written:
            tile = grid.tile_of(dimension)
            steps |= (tile > 0) + 2 * (tile < grid.tiles[dimension].count - 1)
    return steps
