"""Random networks and cores for the tests of data locality, and a plain simulation of the contents of memories."""

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st
from tilewright.base.profile import CORRECTED
from tilewright.hardware.core import Core, OperationalArray
from tilewright.hardware.hierarchy import instance_count
from tilewright.mapping.constraints import Mapping, MappingConstraints
from tilewright.mapping.locality import MemoryReach, remove_unused_memories
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.layer import Layer, activation_operand, weight_operand
from tilewright.workload.relevancy import operand_elements, operand_relevancy

from tests.unit.cost.engine_cases import LINKS, gemm, memory
from tests.unit.mapping.vector_layers import vector_layers

SWAPPED = (("O", "O"), ("W", "I1"), ("I", "I2"))
WIDTHS = ((8, 8, 16, 8), (8, 8, 8, 8), (4, 8, 20, 8), (8, 4, 8, 16))
"""Bits of weights, inputs, partial sums and final outputs."""


def mapping(links: tuple[tuple[str, str], ...] = LINKS) -> Mapping:
    """Return a mapping with operand links alone."""
    return Mapping((MappingConstraints("default", memory_operand_links=links),))


def entry(name: str, **sizes: int) -> Layer:
    """Return a layer that reads an input of the network."""
    return replace(gemm(name, **sizes), constant_operands=("W", "I"))


def product(name: str, **sizes: int) -> Layer:
    """Return a layer of two activations."""
    return replace(gemm(name, **sizes), constant_operands=())


def network(*nodes: tuple[Any, ...]) -> Workload:
    """Build a network from (layer or name, sources, elements); the sources are those of I, then W."""
    built = []
    for place, (what, *rest) in enumerate(nodes):
        sources = rest[0] if rest else ()
        names = ("I", "W") if isinstance(what, Layer) else ("I", "W", "I3", "I4")
        edges = tuple(zip(names, sources, strict=False))
        if isinstance(what, Layer):
            built.append(WorkloadNode(place, what.name, what.operator_type, what, edges))
        else:
            built.append(WorkloadNode(place, what, "add", None, edges, rest[1] if len(rest) > 1 else None))
    return Workload("network", tuple(built))


def buffered_core(*buffers: tuple[int, tuple[str, ...]], array: int = 4, **other: Any) -> Core:
    """Return a core with an output register at each multiplier, buffers of (bits, operands), and a top memory."""
    every = ("D1",)
    memories = [memory("sums", 32, ("O",), ())]
    memories += [memory(f"buffer{i}", bits, held, every, **other) for i, (bits, held) in enumerate(buffers)]
    memories.append(memory("top", 10**12, ("I1", "I2", "O"), every, (10.0, 10.0), top=True))
    return Core("buffered", OperationalArray((("D1", array),), 1.0), tuple(memories))


# random cases ---------------------------------------------------------------------------------------------------------

_sizes = st.sampled_from([1, 2, 3, 4, 6, 8, 12])


@st.composite
def networks(draw: st.DrawFn) -> Workload:
    """Generate layers and joins that read any earlier node, mostly the previous one."""
    nodes: list[WorkloadNode] = []
    for place in range(draw(st.integers(2, 9))):
        kinds = ["layer", "layer", "layer", "product", "entry", "pass", "join", "join", "vector", "vector"]
        kind = draw(st.sampled_from(kinds))
        earlier = st.one_of(st.just(place - 1), st.integers(0, max(0, place - 1)))
        vector = replace(draw(vector_layers()), name=f"n{place}") if kind == "vector" else None
        inputs = {"layer": 1, "product": 2, "entry": 0, "pass": 1, "join": 3}
        count = (len(vector.input_operands) if vector else inputs[kind]) if place else 0
        sources = [draw(earlier) for _ in range(count)]
        is_output = draw(st.integers(0, 9)) == 0
        if kind in ("pass", "join") and place:
            elements = draw(st.one_of(st.none(), st.integers(1, 200)))
            edges = tuple(zip(("I", "W", "I3"), dict.fromkeys(sources), strict=False))
            nodes.append(WorkloadNode(place, f"n{place}", "add", None, edges, elements, is_output))
        elif vector is not None:
            edges = tuple(zip(("I", "W"), sources, strict=False))
            nodes.append(WorkloadNode(place, vector.name, "x", vector, edges, is_network_output=is_output))
        else:
            w, i, o, final = draw(st.sampled_from(WIDTHS))
            bits = (("W", w), ("I", i), ("O", o), ("O_final", final))
            layer = gemm(f"n{place}", bits, D=draw(_sizes), C=draw(_sizes), K=draw(_sizes))
            constants: tuple[str, ...] = ("W", "I") if not sources else () if len(sources) == 2 else ("W",)
            edges = tuple(zip(("I", "W"), sources, strict=False))
            layer = replace(layer, constant_operands=constants)
            nodes.append(WorkloadNode(place, layer.name, "Gemm", layer, edges, is_network_output=is_output))
    return Workload("random", tuple(nodes))


@st.composite
def cores(draw: st.DrawFn) -> Core:
    """Generate a core of one to three buffers below a top memory; some buffers exist once per array element."""
    held = [("I1", "O"), ("I1", "I2", "O"), ("I2",), ("O", "I2", "I1"), ("I1",)]
    memories = [memory("sums", 64, ("O",), ())] if draw(st.booleans()) else []
    for place in range(draw(st.integers(1, 3))):
        served = ("D1",) if draw(st.integers(0, 4)) else ()
        size = draw(st.sampled_from([64, 256, 800, 1500, 3000, 6000, 20000]))
        forced = draw(st.integers(0, 4)) == 0
        memories.append(
            memory(f"buffer{place}", size, draw(st.sampled_from(held)), served, force_double_buffering=forced)
        )
    memories.append(memory("top", 10**12, ("I1", "I2", "O"), ("D1",), (10.0, 10.0), top=True))
    return Core("random", OperationalArray((("D1", draw(st.sampled_from([2, 4]))),), 1.0), tuple(memories))


# the play -------------------------------------------------------------------------------------------------------------


@dataclass
class _Play:
    """The contents of each memory while the network runs, with collected complaints."""

    core: Core
    complaints: list[str] = field(default_factory=list)
    values: dict[int, set[int]] = field(default_factory=dict)
    """Maps a node to the values of its output; a value is named by the node that makes it."""
    bits: dict[int, int] = field(default_factory=dict)
    place: dict[int, int | None] = field(default_factory=dict)
    """Maps a value to the memory that keeps it; None is the top."""
    readers: Counter[int] = field(default_factory=Counter)
    """Maps a value to the number of its remaining reads."""
    here: set[int] = field(default_factory=set)
    """Values that exist at this step."""
    inputs: dict[int, dict[str, int]] = field(default_factory=dict)
    """Maps a node and an operand to the network input that it reads."""

    def held_bits(self, memory: int, but: set[int]) -> int:
        """Return the bits that a memory holds, without the values in `but`."""
        return sum(self.bits[v] for v in self.here - but if self.place.get(v) == memory)

    def read(self, value: int) -> None:
        """Count one read of a value; the last read frees it."""
        self.readers[value] -= 1
        if self.readers[value] == 0:
            self.here.discard(value)


def play(workload: Workload, core: Core, links: Mapping, reaches: tuple[MemoryReach, ...]) -> list[str]:
    """Run a network step by step; complain of values that are read from a wrong place or do not fit.

    Each value stays where its writer left it until its last reader has run. While a layer runs, each memory must hold
    the values in it and the room that the layer's reduced core claims for its own operands.
    """
    reach_of = {reach.layer: reach for reach in reaches}
    game = _Play(core)
    joins = _find_values(game, workload)
    for node in workload.layers_in_order:
        _place_network_inputs(game, node, reach_of[node.name], links)
    resident = _resident_weights(workload, core, links, reach_of)
    order = [node.node_id for node in workload.layers_in_order]
    nodes = {node.node_id: node for node in workload.nodes}
    for step, node_id in enumerate(order):
        node, layer = nodes[node_id], nodes[node_id].layer
        assert layer is not None
        constraints = links.constraints_for(layer)
        reach = reach_of[layer.name]
        reduced = remove_unused_memories(core, layer, constraints.memory_operand_links, reach)
        game.here.add(node_id)
        game.place[node_id] = _below_top(core, dict(constraints.memory_operand_links)["O"], reach.output)
        own = _operands_in_place(game, node, reach, dict(constraints.memory_operand_links))
        _check_room(game, layer, own, reduced, resident, step)
        for value in _values_read(game, node):
            game.read(value)
        game.here.difference_update(game.inputs.get(node_id, {}).values())
        _make_joins(game, joins, set(order[: step + 1]))
    for k, held in enumerate(core.memories):
        if game.held_bits(k, set()) + sum(resident.get(k, {}).values()) > held.size_bits:
            game.complaints.append(f"outputs do not fit {held.name}")
    return game.complaints


def _find_values(game: _Play, workload: Workload) -> dict[int, set[int]]:
    """Fill in values and numbers of reads, and return the joins with their sources."""
    joins: dict[int, set[int]] = {}
    element_bits: dict[int, int] = {}
    outputs = set()
    for node in workload.nodes:
        sources = set().union(*(game.values[source] for _, source in node.sources)) if node.sources else set()
        if node.layer is not None:
            game.values[node.node_id] = {node.node_id}
            element_bits[node.node_id] = node.layer.bits_of["O_final"]
            elements = operand_elements(node.layer, "O", CORRECTED)
            game.bits[node.node_id] = elements * node.layer.bits_of["O_final"]
            game.readers.update(sources)
        elif len(sources) > 1 and node.output_elements is not None:
            game.values[node.node_id] = {node.node_id}
            element_bits[node.node_id] = max(element_bits[source] for source in sources)
            game.bits[node.node_id] = node.output_elements * element_bits[node.node_id]
            joins[node.node_id] = sources
            game.readers.update(sources)
        else:
            game.values[node.node_id] = sources
        if node.is_network_output:
            outputs |= game.values[node.node_id]
    game.readers.update(outputs)
    game.readers.update(value for value in game.bits if game.readers[value] == 0)
    return joins


def _place_network_inputs(game: _Play, node: WorkloadNode, reach: MemoryReach, links: Mapping) -> None:
    """Place the inputs that a layer reads from outside the network; they exist from the start."""
    layer = node.layer
    assert layer is not None
    link = dict(links.constraints_for(layer).memory_operand_links)
    weight = weight_operand(layer)
    for operand, level in ((activation_operand(layer), reach.activation), (weight, reach.weight)):
        is_weight = operand == weight and operand in layer.constant_operands
        made = any(name == operand and game.values[source] for name, source in node.sources)
        if operand is not None and level is not None and not is_weight and not made:
            value = -1 - len(game.bits)
            game.bits[value] = operand_elements(layer, operand, CORRECTED) * layer.bits_of[operand]
            game.place[value] = _below_top(game.core, link[operand], level)
            game.here.add(value)
            game.inputs.setdefault(node.node_id, {})[operand] = value


def _resident_weights(
    workload: Workload, core: Core, links: Mapping, reach_of: dict[str, MemoryReach]
) -> dict[int, dict[str, int]]:
    """Return memory -> layer -> bits of the weights that stay in this memory."""
    resident: dict[int, dict[str, int]] = {}
    for node in workload.layers_in_order:
        layer, weight = node.layer, node.layer and weight_operand(node.layer)
        if layer is not None and weight in layer.constant_operands:
            link = dict(links.constraints_for(layer).memory_operand_links)
            level = reach_of[layer.name].weight
            assert level is not None
            kept = _below_top(core, link[weight], level)
            if kept is not None:
                bits = operand_elements(layer, weight, CORRECTED) * layer.bits_of[weight]
                resident.setdefault(kept, {})[layer.name] = bits
    return resident


def _below_top(core: Core, memory_operand: str, level: int) -> int | None:
    """Return the outermost memory that an operand still has, or None for the top."""
    holders = [k for k, held in enumerate(core.memories) if memory_operand in held.operands]
    return None if level >= holders[-1] else max((k for k in holders if k <= level), default=-1)


def _values_read(game: _Play, node: WorkloadNode) -> set[int]:
    return set().union(*(game.values[source] for _, source in node.sources)) if node.sources else set()


def _operands_in_place(
    game: _Play, node: WorkloadNode, reach: MemoryReach, link: dict[str, str]
) -> list[tuple[int | None, set[int], int]]:
    """Return (memory, values, bits the search may count) of each operand of the layer.

    Values in another memory give complaints.
    """
    layer = node.layer
    assert layer is not None
    weight = weight_operand(layer)
    levels = {activation_operand(layer): reach.activation, weight: reach.weight}
    accumulates = bool(operand_relevancy(layer, "O", CORRECTED).irrelevant)
    most = max(layer.bits_of["O"], layer.bits_of["O_final"]) if accumulates else layer.bits_of["O_final"]
    rows: list[tuple[int | None, set[int], int]] = [
        (game.place[node.node_id], {node.node_id}, operand_elements(layer, "O", CORRECTED) * most)
    ]
    for operand in layer.input_operands:
        level = levels[operand]
        assert level is not None
        kept = _below_top(game.core, link[operand], level)
        values = {game.inputs[node.node_id][operand]} if operand in game.inputs.get(node.node_id, {}) else set()
        if not (operand == weight and operand in layer.constant_operands):
            for name, source in node.sources:
                values |= game.values[source] if name == operand else set()
        for value in values:
            if value not in game.here or game.place[value] != kept:
                game.complaints.append(f"{layer.name} reads {operand} from {kept}, value {value} is not there")
        rows.append((kept, values, operand_elements(layer, operand, CORRECTED) * layer.bits_of[operand]))
    return rows


def _check_room(
    game: _Play,
    layer: Layer,
    own: list[tuple[int | None, set[int], int]],
    reduced: Core,
    resident: dict[int, dict[str, int]],
    step: int,
) -> None:
    """Complain if the room of the search and the other values in a memory exceed its size."""
    claimed = {held.name: held.size_bits for held in reduced.memories}
    for k, held in enumerate(game.core.memories):
        mine = [row for row in own if row[0] == k]
        values = set().union(*(row[1] for row in mine)) if mine else set()
        others = game.held_bits(k, values)
        others += sum(bits for name, bits in resident.get(k, {}).items() if name != layer.name)
        counted = sum(row[2] for row in mine)
        if instance_count(game.core, k) > 1 and (mine or others):
            game.complaints.append(f"step {step}: data kept in {held.name}, which exists more than once")
        if claimed.get(held.name, 0) + others > held.size_bits:
            game.complaints.append(f"step {step}: {held.name} holds {others} bits beside {claimed.get(held.name, 0)}")
        if mine and max(counted, sum(game.bits[v] for v in values)) + others > held.size_bits:
            game.complaints.append(f"step {step}: {held.name} cannot hold the operands of {layer.name}")


def _make_joins(game: _Play, joins: dict[int, set[int]], done: set[int]) -> None:
    """Make each join whose sources are ready."""
    for value, sources in list(joins.items()):
        if all(source in done or (source in game.here and source not in joins) for source in sources):
            game.here.add(value)
            places = {game.place[source] for source in sources}
            if len(places) > 1:
                game.complaints.append(f"value {value} is joined from several memories")
            game.place[value] = places.pop()
            del joins[value]
            for source in sources:
                game.read(source)


def levels(reaches: tuple[MemoryReach, ...]) -> list[tuple[int, int, int | None]]:
    """Return (activation, output, weight) of each layer."""
    return [(reach.activation, reach.output, reach.weight) for reach in reaches]


def chain(*elements: int) -> Workload:
    """Return a chain of layers of D rows, with 8 bits an activation and 16 a partial sum."""
    nodes = [(entry("l0", D=elements[0], C=2),)]
    nodes += [(gemm(f"l{i}", D=d, C=2), (i - 1,)) for i, d in enumerate(elements[1:], 1)]
    return network(*nodes)
