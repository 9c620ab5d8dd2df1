"""Layers in a mapping file of stream-dse 2.x: the layers that each entry selects, their loops, parts and cores."""

import math
from dataclasses import dataclass
from functools import cached_property

from tilewright.base.errors import KeyPath, Problems, count_of
from tilewright.base.operator_groups import KNOWN_TYPES
from tilewright.hardware.system import MultiCoreAccelerator
from tilewright.mapping.network_plans import NetworkPlan
from tilewright.multicore.nodes.partial_sums import reductions_of, why_not_summed
from tilewright.peers.stream.fused_axes import loops_in_order
from tilewright.workload.graph import Workload, WorkloadNode


@dataclass
class SelectedLayers:
    """Layers of a network that the entries of a plan select."""

    plan: NetworkPlan
    workload: Workload
    accelerator: MultiCoreAccelerator
    problems: Problems
    """Collector of problems of the document that contains the plan."""

    @cached_property
    def place_of(self) -> dict[int, int]:
        """Position of the first entry that selects a layer, by node id of the layer. Layers that no entry selects are
        left out.
        """
        found = {}
        for node in self.workload.nodes:
            names = names_of(node)
            place = next((place for place, one in enumerate(self.plan.layers) if one.name in names), None)
            if node.layer is not None and place is not None:
                found[node.node_id] = place
        return found

    @cached_property
    def nodes_of(self) -> dict[int, list[WorkloadNode]]:
        """Layers that each entry selects, by position of the entry."""
        found: dict[int, list[WorkloadNode]] = {place: [] for place in range(len(self.plan.layers))}
        for node in self.workload.nodes:
            if node.node_id in self.place_of:
                found[self.place_of[node.node_id]].append(node)
        return found

    def of_entry(self, place: int) -> Problems:
        """Collector of problems of the entry at the position `place`."""
        return self.problems.within(*self.root, place)

    @cached_property
    def root(self) -> KeyPath:
        """Path of the list of layers in the file: () if the file is only this list."""
        return () if self.problems.places is not None and _is_list(self.problems) else ("layers",)

    def check(self) -> None:
        """Report unknown names, cores and loops, and entries with more parts than cores."""
        self._check_names()
        for place in range(len(self.plan.layers)):
            self._check_parts(place)

    def _check_names(self) -> None:
        """Report names that belong to no layer and to no operator, and cores that do not exist."""
        names = {name: None for node in self.workload.nodes for name in names_of(node) if name}
        layers = list(dict.fromkeys(node.name for node in self.workload.nodes if node.layer is not None))
        cores = [str(core) for core in self.accelerator.onchip_core_ids]
        for place, entry in enumerate(self.plan.layers):
            told = self.of_entry(place)
            if entry.name not in names and entry.name not in KNOWN_TYPES:
                told.unknown_name(("name",), f"no layer of {self.workload.name} has this name", entry.name, layers)
            elif not self.nodes_of[place]:
                told.unused(("name",), "has no effect: it selects no layer with costs in this network", entry.name)
            for at, core in enumerate(entry.cores):
                if core not in self.accelerator.onchip_core_ids:
                    path = ("core_allocation", 0, at)
                    told.at(path, f"{self.accelerator.name} has no such core for layers", core, ", ".join(cores))

    def _check_parts(self, place: int) -> None:
        """Report cuts of loops that do not exist, and cuts of reductions that cannot be added. Report also an entry
        with more parts than cores.
        """
        entry, told = self.plan.layers[place], self.of_entry(place)
        for node in self.nodes_of[place]:
            for at, split in enumerate(entry.splits):
                of_loop = told.within("inter_core_tiling", 0, at, "dim")
                loop = self.loop(node, split.dimension, of_loop)
                if loop is not None and split.parts > 1:
                    self._check_sum(node, split.dimension, loop, of_loop)
        count = math.prod(split.parts for split in entry.splits)
        if count > len(entry.cores):
            message = f"{count_of(count, 'part')} need {count_of(count, 'core')}, but the list has {len(entry.cores)}"
            allowed = f"{count_of(count, 'core')}, or cuts into at most {count_of(len(entry.cores), 'part')}"
            told.at(("core_allocation",), message, list(entry.cores), allowed)

    def _check_sum(self, node: WorkloadNode, position: int, loop: tuple[str, int], told: Problems) -> None:
        """Report a cut of a reduction whose partial results cannot be added between cores."""
        assert node.layer is not None
        reduced = reductions_of(node.layer)
        why = why_not_summed(node) if loop[0] in reduced else ""
        if why:
            names = loops_in_order(node) or ()
            kept = ", ".join(f"D{at} ({name})" for at, name in enumerate(names) if name and name not in reduced)
            told.at((), f"{loop_text(node, position, loop)}; {why}", f"D{position}", kept or "no cut")

    def loop(self, node: WorkloadNode, position: int, told: Problems) -> tuple[str, int] | None:
        """Pair (name, size) of the loop at a position of a layer. A loop that does not exist is reported, and the
        result is then None.
        """
        names = loops_in_order(node)
        if names is None:
            message = (
                f"{node.name}: the order in which Stream 2.1.1 lists the loops of {node.operator_type} is not known"
            )
            told.at((), message, f"D{position}", f"no cuts of layers with the operator {node.operator_type}")
            return None
        assert node.layer is not None
        sizes = [node.layer.size_of.get(name, 1) for name in names]
        if position >= len(names):
            loops = ", ".join(
                f"D{at} ({name or 'one index'}, {size})"
                for at, (name, size) in enumerate(zip(names, sizes, strict=True))
            )
            told.at((), f"{node.name} has no such loop", f"D{position}", loops)
            return None
        return names[position], sizes[position]


def _is_list(problems: Problems) -> bool:
    written = getattr(problems.places, "data", None)
    return isinstance(written, list)


def names_of(node: WorkloadNode) -> tuple[str, ...]:
    """Names by which an entry selects a node: the name and the type of the node, and the name and the type of its
    operator in the network file.
    """
    return tuple(name for name in (node.name, node.operator_type, node.origin, node.origin_type) if name)


def loop_text(node: WorkloadNode, position: int, loop: tuple[str, int]) -> str:
    """Text with the position, the name and the size of a loop of a layer. `loop` is the pair (name, size)."""
    name, size = loop
    return f"D{position} ({name or 'one index'}) of {node.name} has size {size}"
