"""Costs of the parts of attention plans.

The cost of a layer of a tile is the cost of its best mapping, which is searched as for any single layer. The cost of a
copy is computed as in depth-first schedules.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from tilewright.base.errors import InputError, MappingError, Problem
from tilewright.base.profile import SWITCHES
from tilewright.hardware.core import DIGITAL, Core
from tilewright.mapping.constraints import GivenReach, Mapping, MappingConstraints
from tilewright.mapping.control_rules import refuse_control
from tilewright.mapping.memory_reach import core_for
from tilewright.mapping.runnable import can_run
from tilewright.mapping.zero_keys import refuse_zeros
from tilewright.tiles.attention.program import (
    KEYS,
    LAST,
    QUERIES,
    RESULT,
    SCORE,
    STATISTICS,
    VALUES_IN,
    CopyProblem,
    PlanProgram,
    TileLayerProblem,
    kind_of,
    program,
    steps,
)
from tilewright.tiles.attention.shape import MOST, SCORES, SUM, VALUES, NetworkAttention, layer_nodes, tile_layer
from tilewright.tiles.attention.space import AttentionPlan, Memories
from tilewright.tiles.depth_first.options import LayerOptions
from tilewright.tiles.depth_first.schedule import best_ledger
from tilewright.tiles.depth_first.stack_cost import COPY, Cause, Copy, Ledger, copy_ledger, hops_between
from tilewright.workload.layer import OUTPUT, Layer


@dataclass
class AttentionCosts:
    """Costs of the parts that make up the plans of one attention.

    The cost of each part is computed once and kept. An object must not be used by several threads.
    """

    attention: NetworkAttention
    core: Core
    mapping: Mapping
    options: LayerOptions
    known: dict[TileLayerProblem, Ledger | None] = field(default_factory=dict)
    """Ledgers (energy, accesses and cycles) of the layers of tiles that were searched so far; None if no mapping fits.
    """

    @cached_property
    def memories(self) -> Memories:
        """Memories of the core in which tensors can lie."""
        return Memories(self.core, self.constraints(next(iter(self.attention.templates()))))

    def constraints(self, name: str) -> MappingConstraints:
        """Constraints of the mapping file for the layer `name` of a tile."""
        return self.mapping.constraints_for(self.attention.templates()[name])

    @cached_property
    def alike(self) -> tuple[Any, ...]:
        """Key for sharing costs: attentions with equal keys have equal costs.

        The key may be compared only between attentions with the same options and the same core; the sizes of the
        memories of the core may differ.
        """
        nodes = [(node.layer, node.repeats) for node in layer_nodes(self.attention.unfused)]
        layers = [(replace(layer, name=""), self.mapping.constraints_for(layer), n) for layer, n in nodes if layer]
        given = [self.constraints(name) for name in self.attention.templates()]
        sizes = tuple([memory.size_bits for memory in self.core.memories])
        return self.attention.shape, tuple(layers), tuple(given), sizes

    def check(self) -> None:
        """Raise InputError with all reasons why the costs cannot be computed, or why the bounds would not hold."""
        problems = []
        profile, place = self.options.profile, self.attention.name
        if not all(getattr(profile, name) for name in SWITCHES):
            problems.append(
                Problem(
                    "the cost of an attention can be computed only under the model `corrected`",
                    path="model",
                    value=profile.name,
                )
            )
        if self.core.operational_array.kind != DIGITAL:
            problems.append(
                Problem("the cost of an attention can be computed only for digital arrays", path=self.core.name)
            )
        not_run = [node.name for node in layer_nodes(self.attention.unfused) if not can_run(self.core, node)]
        if not_run:
            text = "the core cannot run all layers of an attention; the operators that it runs are in operator_types"
            problems.append(Problem(text, path=self.core.name, value=", ".join(not_run)))
        entries = [self.constraints(name) for name in self.attention.templates()]
        if len({frozenset(entry.memory_operand_links) for entry in entries}) > 1:
            problems.append(Problem("the layers of an attention need the same memory_operand_links", path=place))
        if any(entry.memory_reach is not None for entry in entries):
            text = "memory_reach cannot be given here: the search chooses it for tiles of attention"
            problems.append(Problem(text, path=place))
        if problems:
            raise InputError(problems)
        refuse_zeros([self.core], "attention in tiles")
        refuse_control([self.core], "attention in tiles")
        self.memories.check()

    def program(self, plan: AttentionPlan) -> PlanProgram:
        """Parts of a plan, with the number of times that each part runs."""
        return program(self.attention.shape, self.memories, plan)

    def layer(self, problem: TileLayerProblem) -> tuple[Layer, Core, MappingConstraints]:
        """Triple (layer, core, constraints) for the search of a layer of a tile. The core has only the memories that
        the layer uses.
        """
        template = self.attention.templates()[problem.layer]
        layer = tile_layer(template, problem.layer, self.attention.shape, problem.tile)
        names = [memory.name for memory in self.core.memories]
        reach = GivenReach(
            tuple([(operand, names[k]) for operand, k in problem.reach]),
            tuple([(names[k], bits) for k, bits in problem.reserved]),
        )
        given = self.constraints(problem.layer)
        reached = core_for(layer, self.core, replace(given, memory_reach=reach))
        return replace(layer, name=""), reached, given

    def of_layer(self, problem: TileLayerProblem) -> Ledger | None:
        """Ledger (energy, accesses and cycles) of a layer of a tile, by operand; None if no mapping fits. Callers must
        not change the ledger, because later calls return the same object.
        """
        if problem not in self.known:
            try:
                layer, core, given = self.layer(problem)
            except MappingError:
                self.known[problem] = None
            else:
                self.known[problem] = best_ledger(layer, core, given, self.options)
        return self.known[problem]

    def of_copy(self, problem: CopyProblem) -> Ledger:
        """Ledger (energy, accesses and cycles) of a copy. Callers must not change the ledger, because later calls
        return the same object."""
        (source, start), (target, end) = problem.source, problem.target
        links = self.memories.links
        hops = hops_between(self.core, links[source], start, links[target], end)
        return copy_ledger(self.core, (Copy(problem.bits, hops),), True)

    def of_plan(self, plan: AttentionPlan) -> Ledger | None:
        """Ledger of a plan (energy, accesses and cycles), in which accesses are listed by kind of tensor. None if the
        tensors do not fit into their memories, or if no mapping fits for a layer of a tile.
        """
        total = Ledger()
        found = self.program(plan)
        if not found.fits(self.memories):
            return None
        for problem, times in found.parts:
            ledger = self.of_copy(problem) if isinstance(problem, CopyProblem) else self.of_layer(problem)
            if ledger is None:
                return None
            total.add(_by_tensor(ledger, _tensors_of(problem, self.attention.shape.stages)), times)
        return total

    def unfused(self) -> Ledger:
        """Ledger (energy, accesses and cycles) of the attention without fusion. Each layer of the network reads from
        the outermost memory and writes to it.

        Raises MappingError if no mapping fits for a layer.
        """
        total = Ledger()
        for node in layer_nodes(self.attention.unfused):
            assert node.layer is not None
            own = best_ledger(node.layer, self.core, self.mapping.constraints_for(node.layer), self.options)
            if own is None:
                raise MappingError(f"no mapping fits for layer '{node.name}'")
            total.add(_by_tensor(own, _tensors_of_node(node.name)), node.repeats)
        return total


def _tensors_of(problem: TileLayerProblem | CopyProblem, stages: tuple[str, ...]) -> dict[str, str]:
    """Kind of the tensor of each operand, for a layer of a tile: operand -> kind. For a copy, the only entry is COPY ->
    kind of the copied tensor.
    """
    if isinstance(problem, CopyProblem):
        return {COPY: problem.tensor}
    sequences = (steps(stages, False), LAST)
    step = next(step for sequence in sequences for step in sequence if step.layer == problem.layer)
    return {"I": kind_of(step.first), "W": kind_of(step.second), OUTPUT: kind_of(step.made)}


def _tensors_of_node(name: str) -> dict[str, str]:
    """Kind of the tensor of each operand of the network layer `name`: operand -> kind. The layers of the network are
    not cut into tiles.
    """
    part = name.rpartition("/")[2]
    if part.startswith(SCORES):
        return {"I": QUERIES, "W": KEYS, OUTPUT: SCORE}
    if part.startswith(VALUES):
        is_merge = part.startswith(f"{VALUES}.with_")
        return {"I": RESULT, "W": RESULT, OUTPUT: RESULT} if is_merge else {"I": SCORE, "W": VALUES_IN, OUTPUT: RESULT}
    for reduction in (MOST, SUM):
        if part.startswith(reduction):
            first = STATISTICS if part.startswith(f"{reduction}.with_") else SCORE
            return {"I": first, "W": STATISTICS, OUTPUT: STATISTICS}
    return {"I": SCORE, "W": STATISTICS, OUTPUT: SCORE}


def _by_tensor(ledger: Ledger, names: dict[str, str]) -> Ledger:
    """Ledger (energy, accesses and cycles) whose accesses are listed by kind of tensor instead of by operand. `names`
    has the kind of tensor for each operand.
    """
    found = replace(ledger, terms_pj=dict(ledger.terms_pj), cycles=dict(ledger.cycles))
    for table in ("memory_pj", "read_words", "written_words"):
        summed: dict[Cause, float] = {}
        for (memory, cause), value in getattr(ledger, table).items():
            key = (memory, names[cause])
            summed[key] = summed.get(key, 0.0) + value
        setattr(found, table, summed)
    return found
