"""Scheduling problem with its names: what the numbers of cores, memories, links and tensors stand for."""

from collections.abc import Mapping as Table
from dataclasses import dataclass, field

from tilewright.multicore.nodes.pieces import DataPieces
from tilewright.multicore.scheduling.cost_classes import CostClasses
from tilewright.multicore.scheduling.problem import SchedulingProblem

WEIGHT, INPUT, ACTIVATION, PARTIAL_SUM = "weight", "input", "activation", "partial_sum"
"""Where a piece comes from: a constant, an input of the network, a layer, a step of a layer's reduction."""


@dataclass(frozen=True)
class SystemNames:
    """What the numbers of a scheduling problem stand for, for people."""

    network: str
    accelerator: str
    core_ids: tuple[int, ...]
    core_names: tuple[str, ...]
    """Id and name of the core file."""
    core_files: tuple[str, ...]
    core_roles: tuple[str, ...]
    memory_names: tuple[str, ...]
    """Ids of the cores that use it and its name in their files."""
    link_names: tuple[str, ...]
    link_kinds: tuple[str, ...]
    operand_names: tuple[str, ...]
    """Memory operands by number."""
    layer_names: tuple[str, ...]
    layer_operator_types: tuple[str, ...]
    tensor_names: tuple[str, ...]
    tensor_kinds: tuple[str, ...]
    """WEIGHT, INPUT, ACTIVATION or PARTIAL_SUM."""


@dataclass(frozen=True, eq=False)
class AssembledProblem:
    """A scheduling problem, its names, and what it was made of."""

    problem: SchedulingProblem
    names: SystemNames
    pieces: DataPieces
    """Partial sums included."""
    classes: CostClasses
    """Rows of the cost table."""
    reasons: Table[tuple[int, int], str] = field(default_factory=dict)
    """(row of the cost table, core) -> why the core cannot run it."""
