"""Lower bounds of energy and latency for many spatial mappings of a layer at once, before any of them is made.

The data of an operand can stay in the array only if the innermost temporal loop is irrelevant to the operand. The data
of all other operands move in each cycle. There is therefore one pair of bounds for each dimension of the innermost loop
(docs/proofs/exact-rounds.md, 7).
"""

import math
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tilewright.base.errors import MappingError
from tilewright.base.objectives import OBJECTIVES
from tilewright.base.profile import SWITCHES, ModelProfile
from tilewright.base.proof import ROUNDING
from tilewright.cost.energy_terms import energy_terms_of
from tilewright.hardware.array_model import array_model
from tilewright.hardware.core import DIGITAL, Core
from tilewright.hardware.hierarchy import instance_count, memory_hierarchy
from tilewright.mapping.spatial_space import SpatialTable
from tilewright.mapping.temporal import prime_factors
from tilewright.mapping.zeros import active_share, least_read_share, least_sizes, plain_width
from tilewright.search.exact.floors import Links, tensor_floors
from tilewright.search.exact.staircase import Staircase
from tilewright.workload.layer import FINAL_OUTPUT, OUTPUT, Layer
from tilewright.workload.relevancy import data_dimension_size, operand_elements, operand_relevancy, window_groups

Values = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
MOST_ARRAY_ENERGIES = 5000
"""Largest number of spatial mappings for which the energy of an array that is not digital is computed. For more spatial
mappings, this energy counts as 0."""
NEARLY = 1e-9
"""Relative rounding error that an average number of lanes can have. A lane runs one iteration of an unrolled loop. An
average that exceeds an integer by no more than this error counts as the integer. Any other average is rounded up.
"""


@dataclass(frozen=True)
class SpaceFloors:
    """Lower bounds of the spatial mappings of a layer. There is one pair (energy, latency) for each spatial mapping and
    each dimension of the innermost loop. The arrays have the axes [spatial mapping, dimension]."""

    energy_pj: Values
    """Lower bound of the energy in pJ, without terms that grow with latency: array [spatial mapping, dimension of the
    innermost loop]."""
    latency_cycles: Values
    """Lower bound of the latency in cycles: array [spatial mapping, dimension of the innermost loop]."""
    can_be_innermost: npt.NDArray[np.bool_]
    """True if the innermost temporal loop can have this dimension: array [spatial mapping, dimension]. A dimension with
    temporal loops can be innermost. If no dimension has temporal loops, the value is true for all dimensions."""
    fits: npt.NDArray[np.bool_]
    """False if an innermost memory certainly has no room for the data of the array units that it serves: array [spatial
    mapping]. No mapping with such a spatial mapping is valid.
    """

    def values(self, objective: str, pj_a_cycle: float = 0.0) -> Values:
        """Lower bound of the objective for each spatial mapping. The energy includes `pj_a_cycle` for each cycle of the
        latency."""
        energy = self.energy_pj + pj_a_cycle * self.latency_cycles
        values = np.asarray(OBJECTIVES[objective].value(energy, self.latency_cycles))
        least: Values = np.where(self.can_be_innermost, values, np.inf).min(axis=1)
        return least * (1 - ROUNDING)

    def pairs(self, place: int) -> tuple[Values, Values]:
        """Lower bounds of the spatial mapping number `place`, as pairs (energy in pJ, latency in cycles) in two arrays.
        Each mapping with this spatial mapping has at least the energy and at least the latency of one of these pairs.
        """
        possible = self.can_be_innermost[place]
        share = 1 - ROUNDING
        return self.energy_pj[place, possible] * share, self.latency_cycles[place, possible] * share

    def misses(self, known: Staircase) -> Values:
        """Upper limit of the distance (miss) of each spatial mapping from the known points of a front, as a fraction:
        array [spatial mapping]. The distance of a mapping is at most the largest distance of one of its pairs."""
        share = 1 - ROUNDING
        found = known.misses((self.energy_pj * share).ravel(), (self.latency_cycles * share).ravel())
        largest: Values = np.where(self.can_be_innermost, found.reshape(self.energy_pj.shape), 0.0).max(axis=1)
        return largest


def space_floors(
    layer: Layer, core: Core, links: Links, profile: ModelProfile, table: SpatialTable
) -> SpaceFloors | None:
    """Lower bounds of the spatial mappings of a table. The bounds are valid only if all switches of the model profile
    are on; otherwise, the result is None."""
    if not all(getattr(profile, name) for name in SWITCHES):
        return None
    return _Floors(layer, core, links, profile, table).found()


@dataclass(frozen=True)
class _Operand:
    """Operand of the layer. The fields list the memories that hold the operand, and mark the loop dimensions that are
    irrelevant to the operand.
    """

    name: str
    memories: tuple[int, ...]
    """Indexes in `Core.memories` of the memories that hold the operand, innermost first."""
    memory_operand: str
    irrelevant: npt.NDArray[np.bool_]
    """True for each loop dimension that is irrelevant to the operand."""

    @property
    def is_output(self) -> bool:
        """True for the output of the layer."""
        return self.name == OUTPUT

    def least_bits(self, layer: Layer) -> int:
        """Smallest number of bits that an element has in any memory."""
        bits = layer.bits_of[self.name]
        return min(bits, layer.bits_of[FINAL_OUTPUT]) if self.is_output else bits


class _Floors:
    """Computation of the lower bounds of one layer on one core."""

    def __init__(self, layer: Layer, core: Core, links: Links, profile: ModelProfile, table: SpatialTable) -> None:
        self.layer, self.core, self.links, self.profile, self.table = layer, core, links, profile, table
        self.sizes = least_sizes(layer, core, dict(links))
        """Size of compressed data as a share of the plain data, by (operand, index of the memory)."""
        self.names, self.sides, self.lanes = table.dimensions, table.sides, table.lanes
        sizes, total = np.array([layer.size_of[name] for name in self.names], np.int64), self.lanes.prod(axis=1)
        self.is_whole = (sizes % total == 0).all(axis=1)
        self.temporal = -(-sizes // total)
        self.passes = self.temporal.astype(float).prod(axis=1)
        self.busy_share = np.minimum(1.0, sizes / (self.temporal * total))  # 1 if the lanes divide the loop
        self.macs = float(layer.mac_count)

    def found(self) -> SpaceFloors:
        """Lower bounds of all spatial mappings."""
        floors = tensor_floors(self.layer, self.core, self.links, self.profile)
        shape = self.temporal.shape
        energy = np.zeros(shape) + self._array_energy()[:, None]
        self.busy: dict[tuple[int, int], Values] = defaultdict(lambda: np.zeros(shape))
        for operand in self._operands():
            energy += self._link_to_array(operand)
            if len(operand.memories) > 1:
                energy += self._innermost_boundary(operand)
            energy += self._other_boundaries(operand)
        cycles = np.maximum(self.passes * self._cycles_per_operation, floors.cycles)[:, None] + np.zeros(shape)
        for busy in self.busy.values():
            cycles = np.maximum(cycles, busy)
        is_looped = self.temporal > 1
        fits = np.logical_and.reduce([self._fits(operand) for operand in self._operands()])
        return SpaceFloors(energy, cycles, is_looped | ~is_looped.any(axis=1)[:, None], fits)

    @property
    def _cycles_per_operation(self) -> int:
        array = self.core.operational_array
        return array_model(array).cycles_per_operation(array)

    def _operands(self) -> list[_Operand]:
        found = []
        for name, memory_operand in self.links:
            memories = memory_hierarchy(self.core).memories_of(memory_operand)
            if name in self.layer.operands and memories:
                irrelevant = operand_relevancy(self.layer, name, self.profile).irrelevant
                mask = np.array([dimension in irrelevant for dimension in self.names])
                found.append(_Operand(name, memories, memory_operand, mask))
        return found

    def _array_energy(self) -> Values:
        """Energy of the array in pJ for each spatial mapping; 0 for a spatial mapping that the array cannot run. If the
        array is not digital and there are more than MOST_ARRAY_ENERGIES spatial mappings, the energy is 0 for all of
        them."""
        array = self.core.operational_array
        if array.kind == DIGITAL:
            share = active_share(self.layer, self.core, dict(self.links))
            return np.full(len(self.lanes), array.unit_energy_pj * self.macs * share)
        found = np.zeros(len(self.lanes))
        names = array_model(array).terms
        for n in range(len(self.lanes) if len(self.lanes) <= MOST_ARRAY_ENERGIES else 0):
            with suppress(MappingError):
                unrolling = tuple(self.table.unrolling(n).items())
                terms = energy_terms_of(self.layer, self.core, unrolling, self.profile, self.links)
                found[n] = math.fsum(terms[name].fixed_pj for name in names)
        return found

    def _served(self, operand: _Operand, levels: int) -> Counts:
        """Number of lanes (iterations of unrolled loops that run at once) that get their data from one instance of a
        memory, directly or through memories below it: array [spatial mapping, loop dimension]. `levels` is the number
        of memory levels of the operand up to and including this memory.
        """
        served = {side for k in operand.memories[:levels] for side in self.core.memories[k].served_dimensions}
        places = [place for place, side in enumerate(self.sides) if side in served]
        found: Counts = self.lanes[:, places].prod(axis=1)
        return found

    def _elements(self, operand: _Operand, sizes: Counts) -> Values:
        """Number of distinct elements of the operand in a tile of each spatial mapping. `sizes` has the loop sizes of
        the tiles: array [spatial mapping, dimension]. If a sliding window shares a loop with another window or with a
        dimension of the operand, the result is a lower bound of this number."""
        entry = operand_relevancy(self.layer, operand.name, self.profile)
        places = [self.names.index(dimension) for dimension in entry.relevant if dimension in self.names]
        found: Values = sizes[:, places].astype(float).prod(axis=1)
        if any(group.is_joint for group in window_groups(self.layer, operand.name, entry.relations)):
            return found
        for relation in entry.relations:
            (first, one), (second, other) = relation.terms
            divisor = math.gcd(one, other)
            a = sizes[:, self.names.index(first)] if first in self.names else np.int64(1)
            b = sizes[:, self.names.index(second)] if second in self.names else np.int64(1)
            positions = a * b - np.maximum(0, b - one // divisor) * np.maximum(0, a - other // divisor)
            found = found * np.minimum(positions, data_dimension_size(self.layer, relation, self.profile))
        return found

    @cached_property
    def _output_visits(self) -> Values:
        """Number of temporal iterations that add to the same output, for each spatial mapping."""
        irrelevant = operand_relevancy(self.layer, OUTPUT, self.profile).irrelevant
        places = [place for place, name in enumerate(self.names) if name in irrelevant]
        found: Values = self.temporal[:, places].astype(float).prod(axis=1)
        return found

    def _bits(self, operand: _Operand) -> Values:
        """Smallest number of bits that an element has on the link between the array and the innermost memory, for each
        spatial mapping."""
        bits = self.layer.bits_of[operand.name]
        if not operand.is_output:
            return np.full(len(self.lanes), float(bits))
        final = self.layer.bits_of[FINAL_OUTPUT]
        return np.where(self._output_visits > 1, max(bits, final), min(bits, final)).astype(float)

    def _moved(
        self, operand: _Operand, level: int, way: str, lanes: Counts, bits: Values, transfers: Values, instances: Values
    ) -> Values:
        """Energy in pJ of transfers over one link of `operand`: array [spatial mapping, dimension of the innermost
        loop]. The energy is 0 if the memory has no port for the link. The function also adds the cycles of the
        transfers to the busy time of the port.

        * `level` and `way` select the link: the memory level of the operand, and the direction (such as `tl`).
        * `bits` has the number of bits of an element.
        * `lanes` has the size along each dimension of the tile that each transfer moves (see `_tile`).
        * `transfers` has the number of transfers of one instance of the memory.
        * `instances` has the number of instances that make these transfers at once.
        """
        memory = self.core.memories[operand.memories[level]]
        port = memory.port_of.get((operand.memory_operand, way))
        if port is None:
            return np.zeros_like(transfers)
        share = self.sizes.get((operand.name, operand.memories[level]), 1.0)
        wide = plain_width(memory.ports[port].bandwidth_max_bits, share)
        least = plain_width(memory.ports[port].bandwidth_min_bits, share)
        amount = self._elements(operand, lanes) * bits
        largest = self._elements(operand, self._tile(lanes)) * bits
        # Some transfers of a compressed output are not compressed. Their parts can be smaller than `least`.
        has_parts = self.is_whole & (not operand.is_output or share == 1.0)
        parts = np.where(has_parts, np.ceil(amount / least * (1 - 1e-12)) * least, amount)
        cost = memory.read_energy_pj if way in ("tl", "th") else memory.write_energy_pj
        self.busy[operand.memories[level], port] += np.ceil(largest / wide * (1 - 1e-12))[:, None] * transfers
        energy: Values = (parts / wide * cost * instances)[:, None] * transfers
        return energy

    def _tile(self, lanes: Counts) -> Counts:
        """Lower bound of the size of the largest tile along each loop dimension: array [spatial mapping, dimension].

        `lanes` is an array with the same axes. It has the size of the tile if all lanes are busy: the number of lanes,
        times the temporal loops of the tile. If the number of lanes does not divide the size of a loop, some lanes are
        idle in some temporal iterations. The bound is then this size times the average share of busy lanes, rounded up.
        The model counts the tile with this size in every iteration.
        """
        found: Counts = np.ceil(lanes * self.busy_share * (1 - NEARLY)).astype(np.int64)
        return found

    def _instances(self, lanes: Counts) -> Values:
        """Average number of memory instances that are active in a temporal iteration (pass): array [spatial mapping].
        `lanes` has the number of lanes along each dimension that one instance serves: array [spatial mapping,
        dimension]."""
        active: Values = self.macs / (self.passes * lanes.astype(float).prod(axis=1))
        return active

    def _returned(self, transfers: Values) -> Values:
        """Number of transfers that read partial sums back, out of `transfers` transfers: array [spatial mapping,
        dimension of the innermost loop]. The first transfer of each output reads nothing back."""
        return transfers * (1 - 1 / self._output_visits)[:, None]

    def _link_to_array(self, operand: _Operand) -> Values:
        """Least energy in pJ of the accesses to the innermost memory of an operand, by which the array reads inputs or
        writes outputs: array [spatial mapping, dimension of the innermost loop]."""
        lanes, bits = self._served(operand, 1), self._bits(operand)
        instances = self._instances(lanes)
        each = np.repeat(self.passes[:, None], len(self.names), axis=1)
        if operand.is_output:
            down = self._moved(operand, 0, "fl", lanes, bits, each, instances)
            return down + self._moved(operand, 0, "tl", lanes, bits, self._returned(each), instances)
        stays = np.where(operand.irrelevant, self.temporal, 1).astype(float).prod(axis=1)
        transfers = np.where(operand.irrelevant, each / stays[:, None], each)
        taken = least_read_share(self.layer, self.core, dict(self.links), operand.name)
        return self._moved(operand, 0, "tl", lanes, bits, transfers, instances) * taken

    def _innermost_boundary(self, operand: _Operand) -> Values:
        """Least energy in pJ of the data that move between the two innermost memories: array [spatial mapping,
        dimension of the innermost loop].

        Data move in each temporal iteration (pass) if two conditions hold: the innermost loop changes the data of the
        operand, and the innermost memory has no room for the data of this loop. Otherwise, each element moves once.
        """
        whole = self._whole_tensor(operand, 0)
        thrash = ~operand.irrelevant & ~self._has_room(operand)
        if not thrash.any():
            return np.full(self.temporal.shape, whole)
        below, above = self._served(operand, 1), self._served(operand, 2)
        bits, each = self._bits(operand), np.where(thrash, self.passes[:, None], 0.0)
        ways = (("th", "fl"), ("fh", "tl")) if operand.is_output else (("fh", "tl"),)
        energy = np.zeros(self.temporal.shape)
        for number, (outer_way, inner_way) in enumerate(ways):
            transfers = self._returned(each) if number else each
            energy += self._moved(operand, 0, outer_way, below, bits, transfers, self._instances(below))
            energy += self._moved(operand, 1, inner_way, above, bits, transfers, self._instances(above))
        return np.where(thrash, np.maximum(energy, whole), whole)

    def _fits(self, operand: _Operand) -> npt.NDArray[np.bool_]:
        """True if the innermost memory of the operand has room for the data of the array units that it serves: array
        [spatial mapping]. An output has the bits of partial sums if temporal loops accumulate it, and otherwise its
        final bits.
        """
        lanes, bits = self._served(operand, 1), np.full(len(self.lanes), self.layer.bits_of[operand.name])
        if operand.is_output:
            bits = np.where(self._output_visits > 1, bits, operand.least_bits(self.layer))
        return self._holds(operand, lanes, bits)

    def _holds(self, operand: _Operand, sizes: Counts, bits: Counts | int) -> npt.NDArray[np.bool_]:
        """True if the innermost memory of the operand has room for a tile: array [spatial mapping]. `sizes` has the
        loop sizes of the tile, including unrolled loops: array [spatial mapping, dimension]. An element has `bits`
        bits.
        """
        room = self.core.memories[operand.memories[0]].size_bits * (1 + ROUNDING)
        found: npt.NDArray[np.bool_] = self._elements(operand, self._tile(sizes)) * bits <= room
        return found

    def _has_room(self, operand: _Operand) -> npt.NDArray[np.bool_]:
        """True if the innermost memory of the operand has room for one tile: array [spatial mapping, dimension of the
        loop]. The tile has the data that all array units below this memory use in one temporal loop. The size of the
        loop is the smallest prime factor of the temporal loops over its dimension.
        """
        lanes, bits = self._served(operand, 1), operand.least_bits(self.layer)
        found = np.ones(self.temporal.shape, np.bool_)
        for place in range(len(self.names)):
            sizes = lanes.copy()
            sizes[:, place] *= _least_factors(self.temporal[:, place])
            found[:, place] = self._holds(operand, sizes, bits)
        return found

    def _whole_tensor(self, operand: _Operand, level: int) -> float:
        """Least energy in pJ of the boundary above `level`, if each element crosses the boundary once. If `level` is
        not 0, the function also adds the cycles of these transfers to the busy times of the ports."""
        amount = operand_elements(self.layer, operand.name, self.profile) * operand.least_bits(self.layer)
        energy = 0.0
        for upper, way in ((0, "th" if operand.is_output else "fh"), (1, "fl" if operand.is_output else "tl")):
            k = operand.memories[level + upper]
            memory = self.core.memories[k]
            port = memory.port_of.get((operand.memory_operand, way))
            if port is not None:
                share = self.sizes.get((operand.name, k), 1.0)
                words = amount / plain_width(memory.ports[port].bandwidth_max_bits, share)
                energy += words * (memory.read_energy_pj if way in ("tl", "th") else memory.write_energy_pj)
                self.busy[k, port] += words / instance_count(self.core, k) if level else 0.0
        return energy

    def _other_boundaries(self, operand: _Operand) -> float:
        """Least energy in pJ of the accesses over all boundaries between memories of the operand, except the innermost
        boundary. Each element crosses each of these boundaries at least once."""
        return math.fsum(self._whole_tensor(operand, level) for level in range(1, len(operand.memories) - 1))


def _least_factors(numbers: Counts) -> Counts:
    """Smallest prime factor of each number; 1 for 1."""
    different, place = np.unique(numbers, return_inverse=True)
    least = [next(iter(prime_factors(n)), 1) for n in different.tolist()]
    found: Counts = np.array(least, np.int64)[place]
    return found
