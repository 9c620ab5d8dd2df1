"""Scheduling problem with the names of its cores, memories, links, layers and tensors."""

from collections.abc import Mapping as Table
from dataclasses import dataclass, field

from tilewright.multicore.nodes.pieces import DataPieces
from tilewright.multicore.scheduling.cost_classes import CostClasses
from tilewright.multicore.scheduling.problem import SchedulingProblem

WEIGHT, INPUT, ACTIVATION, PARTIAL_SUM = "weight", "input", "activation", "partial_sum"
"""Kinds of tensors. WEIGHT: constants. INPUT: inputs of the network. ACTIVATION: results of layers. PARTIAL_SUM:
partial sums of a layer's reduction.
"""


@dataclass(frozen=True)
class SystemNames:
    """Names of the cores, memories, links, memory operands, layers and tensors of a scheduling problem, for output to
    users. In each tuple, the name of item n is at position n.
    """

    network: str
    accelerator: str
    core_ids: tuple[int, ...]
    core_names: tuple[str, ...]
    """Core id and name of the core file for each core, in the form `0: FILE`."""
    core_files: tuple[str, ...]
    core_roles: tuple[str, ...]
    memory_names: tuple[str, ...]
    """Text for each memory: the ids of the cores that use it, and its name in the core files."""
    link_names: tuple[str, ...]
    link_kinds: tuple[str, ...]
    operand_names: tuple[str, ...]
    """Names of the memory operands."""
    layer_names: tuple[str, ...]
    layer_operator_types: tuple[str, ...]
    tensor_names: tuple[str, ...]
    tensor_kinds: tuple[str, ...]
    """Kind of each tensor: WEIGHT, INPUT, ACTIVATION or PARTIAL_SUM."""


@dataclass(frozen=True, eq=False)
class AssembledProblem:
    """Scheduling problem with the names of its cores, memories, links, layers and tensors. The object also has the data
    from which the problem was made.
    """

    problem: SchedulingProblem
    names: SystemNames
    pieces: DataPieces
    """Pieces of the problem, including partial sums."""
    classes: CostClasses
    """Cost classes of the CNs. Each class has a row of the cost table, in the same order."""
    reasons: Table[tuple[int, int], str] = field(default_factory=dict)
    """Pair (row of the cost table, core) -> reason why the core cannot run the cost class of this row."""
