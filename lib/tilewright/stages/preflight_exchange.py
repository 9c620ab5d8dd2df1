"""Preflight: whether data can get from the cores of a layer to those of the layers that read it."""

from collections.abc import Sequence

from tilewright.errors import Problems
from tilewright.hardware.paths import PathTable, path_table
from tilewright.mapping.core_choice import core_choice
from tilewright.stages.system_problem import SystemProblem
from tilewright.workload.graph import Workload, WorkloadNode


def check_exchange(problems: Problems, problem: SystemProblem) -> None:
    """Record pairs of layers of which no two cores can exchange data, over links or by way of the off-chip memory.

    Where some pairs of their cores can, the search for an allocation finds them.
    """
    table, off_chip = path_table(problem.accelerator), problem.accelerator.offchip_core_id
    entries = problem.mapping.entries
    choice_of: dict[int, tuple[int, ...]] = {}
    for node in problem.workload.nodes:
        if node.layer is not None:
            entry = problem.mapping.constraints_for(node.layer)
            choice_of[node.node_id] = core_choice(node, entry, problem.accelerator).core_ids
    node_of = {node.node_id: node for node in problem.workload.nodes}
    for producer, consumer in layer_pairs(problem.workload):
        senders, receivers = choice_of[producer], choice_of[consumer]
        if not senders or not receivers or _can_exchange(table, off_chip, senders, receivers):
            continue
        layer = node_of[consumer].layer
        assert layer is not None
        index = entries.index(problem.mapping.constraints_for(layer))
        message = (
            f"no data can get from {node_of[producer].name} on core {_listed(senders)}"
            f" to {node_of[consumer].name} on core {_listed(receivers)}"
        )
        allowed = "cores with a path between them, or with paths to and from the off-chip core"
        problems.at((index, "core_allocation"), message, allowed=allowed)


def layer_pairs(workload: Workload) -> list[tuple[int, int]]:
    """(producer, consumer) node ids of all layers between which data flow, also through nodes without a layer."""
    pairs: dict[tuple[int, int], None] = {}
    behind: dict[int, tuple[int, ...]] = {}
    for node in workload.nodes:
        found = dict.fromkeys(
            layer for source in dict.fromkeys(source for _, source in node.sources) for layer in behind.get(source, ())
        )
        if node.layer is not None:
            pairs.update(dict.fromkeys((producer, node.node_id) for producer in found))
        behind[node.node_id] = _seen_from_behind(node, tuple(found))
    return list(pairs)


def _seen_from_behind(node: WorkloadNode, sources: tuple[int, ...]) -> tuple[int, ...]:
    return (node.node_id,) if node.layer is not None else sources


def _can_exchange(table: PathTable, off_chip: int | None, senders: Sequence[int], receivers: Sequence[int]) -> bool:
    def joined(sender: int, receiver: int) -> bool:
        if table.has_path(sender, receiver):
            return True
        return off_chip is not None and table.has_path(sender, off_chip) and table.has_path(off_chip, receiver)

    return any(joined(sender, receiver) for sender in senders for receiver in receivers)


def _listed(core_ids: Sequence[int]) -> str:
    return ", ".join(map(str, core_ids))
