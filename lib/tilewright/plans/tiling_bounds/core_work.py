"""Lower bounds of the cycles and the energy of a layer on a core, for every choice of tiles, spatial mappings and loop
orders.

The bounds follow from the latency model and the energy model of a core. The bounds hold for the sum over all tiles of
the layer, if the layer is cut only along the dimensions that the caller names (`cut`).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.base.profile import CORRECTED
from tilewright.hardware.core import DIGITAL, Core, Memory
from tilewright.mapping.constraints import MappingConstraints
from tilewright.mapping.dataflows import constraints_on_core
from tilewright.workload.layer import FINAL_OUTPUT, OUTPUT, Layer
from tilewright.workload.relevancy import operand_relevancy, outputs_have_windows


@dataclass(frozen=True)
class ArrayLanes:
    """Spatial mapping of a layer on an array. A side of the array is open if it can take any loops. If some sides are
    open, the object stands for a set of spatial mappings.
    """

    factors: tuple[tuple[str, int], ...]
    """Pairs (loop dimension, lanes), sorted by dimension. Only dimensions with more than one lane are listed. The
    number of lanes is at most the size of the dimension.
    """
    open_units: int = 1
    """Number of array units along all open sides together (product). An open side can take any loops."""

    def of(self, dimension: str) -> int:
        """Number of lanes of a dimension on the sides that are not open."""
        return dict(self.factors).get(dimension, 1)


@dataclass(frozen=True)
class LayerWork:
    """Least work of a complete layer on a core. Every bound is for the sum over the tiles of the layer."""

    cycles: float
    """Least cycles of the layer. If its tiles can have different lanes, the value is equal to `shared_cycles`. If all
    its tiles have the same lanes, the value can be larger.
    """
    shared_cycles: float
    """Least cycles of the complete layer. If a core runs a share of the layer, such as one half, the core needs at
    least the same share of these cycles.
    """
    energy_pj: float
    lanes: tuple[ArrayLanes, ...]
    """Possible spatial mappings of the layer. Mappings that another mapping covers are left out. Mapping A covers
    mapping B if A has at least as many lanes as B along every dimension, and at least as many open units.
    """


@dataclass(frozen=True)
class _Nest:
    """Layer with the dimensions along which it can be cut."""

    layer: Layer
    cuttable: frozenset[str]
    """Dimensions along which tiles can be smaller than the layer."""

    def full_share(self, lanes: ArrayLanes, dimension: str, size: int) -> float:
        """Upper limit of the mean number of lanes that work along a dimension, valid for tiles of any size. `size` is
        the size of the complete layer along the dimension.
        """
        most = lanes.of(dimension)
        return float(most) if dimension in self.cuttable else size / math.ceil(size / most)


def layer_work(
    layer: Layer, entry: MappingConstraints, core: Core, is_corrected: bool, has_loading: bool, cut: frozenset[str]
) -> LayerWork:
    """Least work of a layer on a core.

    `is_corrected` is true if the cost model has all repairs of the profile `corrected`; otherwise only the passes of
    the array count. `has_loading` is true if the runtime of a tile includes on-loading. `cut` has the dimensions along
    which tiles can be smaller than the layer.
    """
    nest = _Nest(layer, cut)
    counts_ports = is_corrected and core.operational_array.kind == DIGITAL and entry.memory_reach is None
    lanes = tuple(_undominated(list(_lanes(layer, entry, core))))
    found = [_Pass(nest, core, entry, one, has_loading) for one in lanes]
    shared = min(one.cycles(one.shared_passes, counts_ports) for one in found)
    cycles = shared
    if len(found) == 1:
        cycles = max(shared, found[0].cycles(found[0].whole_passes, counts_ports))
    energy = layer.mac_count * core.operational_array.unit_energy_pj if core.operational_array.kind == DIGITAL else 0.0
    if counts_ports:
        energy += min(one.energy_pj() for one in found)
    return LayerWork(cycles, shared, energy, lanes)


def _lanes(layer: Layer, entry: MappingConstraints, core: Core) -> Iterator[ArrayLanes]:
    """Sets of spatial mappings. Together, the sets contain the spatial mapping of every tile of a layer."""
    array = core.operational_array
    given = entry.spatial_mapping
    is_given = bool(given) and all(name in array.size_of for name, _ in given)
    if core.exclusive_dataflows:
        choices = [one.spatial_mapping for one in constraints_on_core(entry, layer, core)]
        if not is_given:
            choices = [*choices, *core.dataflows]  # a small tile can use another dataflow than the whole layer
        is_closed = True
    elif is_given:
        choices, is_closed = [given], False
    else:
        choices, is_closed = [()], False
    for choice in choices:
        factors: dict[str, int] = {}
        for name, loops in choice:
            for dimension, factor in loops:
                lanes = min(factor, array.size_of.get(name, factor))
                factors[dimension] = factors.get(dimension, 1) * lanes
        sizes = layer.size_of
        fixed = {name: min(factor, sizes.get(name, 1)) for name, factor in factors.items()}
        sides = {name for name, _ in choice}
        left = 1 if is_closed else math.prod(size for name, size in array.dimensions if name not in sides)
        yield ArrayLanes(tuple(sorted((name, factor) for name, factor in fixed.items() if factor > 1)), left)


def _undominated(found: list[ArrayLanes]) -> Iterator[ArrayLanes]:
    """Spatial mappings that no other mapping dominates, without duplicates. Mapping A dominates mapping B if A has at
    least as many lanes as B along every dimension, and at least as many open units.
    """
    distinct = list(dict.fromkeys(found))
    for one in distinct:
        others = (other for other in distinct if other != one and other.open_units >= one.open_units)
        if not any(all(other.of(name) >= factor for name, factor in one.factors) for other in others):
            yield one


@dataclass(frozen=True)
class _Link:
    """Data movement of one operand, in one direction, between the array (or its registers) and a memory. For loop
    orders in which the link must move data in each pass, the bounds count the transfers of the link. For all other loop
    orders, the bound of the cycles ignores the link. The bound of the energy then counts at most one move of each
    element.
    """

    port: tuple[int, int]
    """Pair (index of the memory in the core, index of the port in the memory)."""
    operand: str
    element_bits: int
    wide_bits: int
    """Width of the port in bits."""
    narrow_bits: int
    """Smallest accessible part of a word, in bits."""
    word_pj: float
    """Energy in pJ to access a word of full width."""
    reaches_all: bool
    """True if one instance of the memory serves the whole array."""
    is_register: bool
    """True if the link fills or empties a register that holds a single element; otherwise the link ends at the array.
    """
    goes_up: bool
    """True if the link moves outputs away from the array; False if the link moves data towards the array."""


class _Pass:
    """Lower bounds of the work of a layer that is mapped with given lanes (`ArrayLanes`). Work is counted in passes. A
    pass is one cycle of the array without stalls.
    """

    def __init__(
        self, nest: _Nest, core: Core, entry: MappingConstraints, lanes: ArrayLanes, has_loading: bool
    ) -> None:
        self.nest, self.core, self.lanes, self.has_loading = nest, core, lanes, has_loading
        layer = nest.layer
        self.sizes = {name: size for name, size in layer.loop_sizes if size > 1}
        self.kinds = {operand: operand_relevancy(layer, operand, CORRECTED) for operand in layer.operands}
        self.accumulations = self._accumulations()
        self.links = list(self._links(dict(entry.memory_operand_links)))

    @property
    def whole_passes(self) -> float:
        """Least number of passes (cycles of the array without stalls) if all tiles have these lanes."""
        if self.lanes.open_units > 1:
            return self.shared_passes
        return float(math.prod(math.ceil(size / self.lanes.of(name)) for name, size in self.sizes.items()))

    @property
    def shared_passes(self) -> float:
        """Least number of passes (cycles of the array without stalls) of the complete layer. If a core runs a share of
        the layer, such as one half, the core needs at least the same share of these passes."""
        busy = math.prod(self.nest.full_share(self.lanes, name, size) for name, size in self.sizes.items())
        return self.nest.layer.mac_count / (busy * self.lanes.open_units)

    def _accumulations(self) -> int:
        """Least number of consecutive passes that add to the same output of a tile. A pass is one cycle of the
        array.
        """
        if outputs_have_windows(self.nest.layer):
            return 1
        reduced = [name for name in self.kinds[OUTPUT].irrelevant if name not in self.nest.cuttable]
        passes = math.prod(math.ceil(self.sizes.get(name, 1) / self.lanes.of(name)) for name in reduced)
        return max(1, -(-passes // self.lanes.open_units))

    def cycles(self, passes: float, counts_ports: bool) -> float:
        """Least cycles, over all loop orders, of a layer whose tiles together take `passes` passes (cycles of the array
        without stalls). If `counts_ports` is false, transfers are ignored, and the result is `passes`.
        """
        if not counts_ports:
            return passes
        return max(passes, min(self._port_cycles(passes, inner) for inner in self._innermost()))

    def _port_cycles(self, passes: float, inner: str) -> float:
        """Lower bound of the cycles in which the busiest port transfers data. It covers all loop orders in which
        `inner` is the dimension of the innermost temporal loop.
        """
        busy: dict[tuple[int, int], float] = {}
        for link in self.links:
            if link.goes_up:
                continue  # the last transfer can come after the runtime of a tile
            busy[link.port] = busy.get(link.port, 0.0) + self._transfers(link, passes, inner)
        return max(busy.values(), default=0.0)

    def energy_pj(self) -> float:
        """Lower bound of the energy of memory accesses in pJ. It is the minimum over all loop orders."""
        return min(sum(self._link_pj(link, inner) for link in self.links) for inner in self._innermost())

    def _link_pj(self, link: _Link, inner: str) -> float:
        if not link.reaches_all:
            return 0.0
        words = self._counted(link, inner) * self.shared_passes * link.narrow_bits / link.wide_bits
        bits = self._counted(link, inner) * self._bits(link)
        once = 0.0
        if link.goes_up:
            elements = math.prod(self.sizes.get(name, 1) for name in self.kinds[OUTPUT].relevant)
            once = float(elements * self.nest.layer.bits_of.get(FINAL_OUTPUT, 0))
        elif link.operand != OUTPUT:
            elements = math.prod(self.sizes.get(name, 1) for name in self.kinds[link.operand].relevant)
            once = float(elements * link.element_bits)
        return max(words, max(bits, once) / link.wide_bits) * link.word_pj

    def _transfers(self, link: _Link, passes: float, inner: str) -> float:
        """Least cycles of all transfers of a link within the runtimes of the tiles. On-loading (the first transfer of
        each tile) is left out if the runtime of a tile does not include it.
        """
        counted = self._counted(link, inner)
        if not counted:
            return 0.0
        cycles = passes
        if link.reaches_all:
            cycles = max(cycles, self._bits(link) / link.wide_bits)
        if link.operand != OUTPUT and not self.has_loading:
            cycles *= max(0.0, 1.0 - 1.0 / self.accumulations)  # the first transfer of each tile is left out
        return cycles * counted

    def _bits(self, link: _Link) -> float:
        """Least number of bits that a link moves, if every pass (cycle of the array) moves the elements that its lanes
        use."""
        kind, layer = self.kinds[link.operand], self.nest.layer
        shared = 1.0
        for name, size in self.sizes.items():
            if name not in kind.relevant:
                shared *= min(self.lanes.of(name) * self.lanes.open_units, size)
        shared = min(shared, float(math.prod(factor for _, factor in self.lanes.factors) * self.lanes.open_units))
        return layer.mac_count / shared * link.element_bits

    def _counted(self, link: _Link, inner: str) -> float:
        """Smallest share of passes in which a link must move data. A pass is one cycle of the array. `inner` is the
        dimension of the innermost temporal loop.
        """
        kind = self.kinds[link.operand]
        is_output = link.operand == OUTPUT
        at_array = is_output or inner not in kind.irrelevant
        forced = (inner in kind.relevant or not inner) if link.is_register else at_array
        if not forced:
            return 0.0
        if is_output and not link.goes_up:
            return 1.0 - 1.0 / self.accumulations
        return 1.0

    def _innermost(self) -> list[str]:
        """Possible dimensions of a tile's innermost temporal loop; '' stands for no temporal loop."""
        return [*self.sizes, ""]  # memories can lower the number of lanes, so any dimension counts

    def _links(self, link_of: dict[str, str]) -> Iterator[_Link]:
        layer = self.nest.layer
        for operand in layer.operands:
            name = link_of.get(operand)
            levels = [place for place, memory in enumerate(self.core.memories) if name in memory.operands]
            bits = layer.bits_of.get(operand, 0)
            if name is None or not levels or bits <= 0:
                continue
            first = self.core.memories[levels[0]]
            yield from self._links_of(levels[0], first, (operand, name), bits, False)
            if len(levels) > 1 and first.size_bits < 2 * bits and (operand != OUTPUT or self.accumulations > 1):
                yield from self._links_of(levels[1], self.core.memories[levels[1]], (operand, name), bits, True)

    def _links_of(
        self, place: int, memory: Memory, operand: tuple[str, str], bits: int, is_register: bool
    ) -> Iterator[_Link]:
        served = set(memory.served_dimensions)
        reaches = all(name in served for name, size in self.core.operational_array.dimensions if size > 1)
        for way in ("tl", "fl"):
            port = memory.port_of.get((operand[1], way))
            if port is None or (way == "fl" and operand[0] != OUTPUT):
                continue
            used = memory.ports[port]
            goes_up = way == "fl"
            least = min(bits, self.nest.layer.bits_of.get(FINAL_OUTPUT, bits)) if goes_up else bits
            yield _Link(
                (place, port),
                operand[0],
                least,
                used.bandwidth_max_bits,
                used.bandwidth_min_bits,
                memory.write_energy_pj if goes_up else memory.read_energy_pj,
                reaches,
                is_register,
                goes_up,
            )
