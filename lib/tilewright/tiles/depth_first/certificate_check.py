"""Independent check of the certificate of an optimum.

Two things are checked. The costs in the certificate must be right. No better schedule may contain a stack whose cost
the search did not compute.

The check uses the same bounds and costs as the search; `benchmarks/attack_depth_first.py` tests these bounds and costs.
The check does not use the search algorithm. It visits every stack once, in the order of the certificate. It excludes
each tile size with which no schedule can have a value below the lower bound of the certificate
(docs/tiles/optimal-depth-first.md, "The certificate").
"""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.base.artifacts.codec import decode
from tilewright.base.artifacts.seals import read_sealed
from tilewright.base.errors import InputError, MappingError, Problem
from tilewright.base.measures import ENERGY_PJ, LATENCY_CYCLES
from tilewright.base.objectives import OBJECTIVES
from tilewright.base.proof import CLOSE, contradictions, differing
from tilewright.results.checks import Check, result
from tilewright.tiles.depth_first.bounds import StackBounds, check_boundable, quick_bounds, stack_bounds, stack_floor
from tilewright.tiles.depth_first.certificate import DepthFirstSpace
from tilewright.tiles.depth_first.locations import MODES
from tilewright.tiles.depth_first.options import TileOptions
from tilewright.tiles.depth_first.schedule import stack_model
from tilewright.tiles.depth_first.stack_cost import StackModel

Layers = tuple[int, int]
Tile = tuple[int, int, str, int, int]
"""Stack with one tile size: (first layer, last layer, mode, width, height)."""


@dataclass(frozen=True)
class DepthFirstCertificate:
    """Certificate of a search for the best depth-first schedule, as read from a file."""

    objective: str
    value: float
    lower_bound: float
    gap: float
    proven: bool
    schedules_in_space: int
    space: DepthFirstSpace
    stacks_bounded: tuple[tuple[str, str], ...]
    stacks_costed: tuple[tuple[str, str, str, int, int, float, float], ...]
    stacks_unmappable: tuple[tuple[str, str, str, int, int], ...]


@dataclass(frozen=True)
class CertifiedSearch:
    """Content of the file that a search for the best depth-first schedule writes."""

    certificate: DepthFirstCertificate
    options: TileOptions
    stacks: tuple[tuple[list[str], str, int, int, float, float], ...]
    """Stacks of the schedule: (layers, mode, width, height, energy in pJ, latency in cycles)."""
    core: str
    workload: str


def read_certified(file: Path) -> CertifiedSearch:
    """Content of the file of a search for the best schedule. Raises InputError if the file has no valid content."""
    content = read_sealed(file, is_required=False)
    try:
        told = json.loads(content)
        stacks = [
            (
                s["layers"],
                s["mode"],
                int(s["tile_x"]),
                int(s["tile_y"]),
                float(s[ENERGY_PJ]),
                float(s[LATENCY_CYCLES]),
            )
            for s in told["schedules"][0]["stacks"]
        ]
        options = decode(TileOptions, told["options"])
        certificate = decode(DepthFirstCertificate, told["certificate"])
        return CertifiedSearch(certificate, options, tuple(stacks), told["core"], told["workload"])
    except (OSError, KeyError, ValueError, TypeError, IndexError, AttributeError) as error:
        text = f"is not a valid certificate of `tilewright depth-first --optimum`: {type(error).__name__}: {error}"
        raise InputError([Problem(text, path=str(file))]) from error


def check_certificate(told: CertifiedSearch, problem: tuple[Any, Any, Any]) -> list[Check]:
    """Checks of a certificate against its workload, core and mapping."""
    model = stack_model(problem, told.options)
    check_boundable(model.chain, told.options.profile)
    checker = _Checker(told, model)
    found = [
        result(
            "certificate: subject",
            "core, workload, layers, modes and sizes agree with the files",
            list(checker.subject()),
        )
    ]
    if not found[0].passed:
        return found
    costed = len(told.certificate.stacks_costed)
    return [
        *found,
        result("certificate: costs", f"{costed:,} stacks costed again", list(checker.costs())),
        result(
            "certificate: value",
            "the schedule has the stated value, and no schedule of costed stacks has a better value",
            list(checker.value()),
        ),
        result("certificate: lower bound", "lower bounds of all other stacks computed again", list(checker.bound())),
    ]


class _Checker:
    def __init__(self, told: CertifiedSearch, model: StackModel) -> None:
        self.told, self.model, self.claim = told, model, told.certificate
        self.layers = [entry.layer.name for entry in model.chain.layers]
        self.powers = OBJECTIVES.get(self.claim.objective)

    def subject(self) -> Iterator[str]:
        """Messages on parts of the certificate that contradict the workload, the core or each other."""
        chain, space = self.model.chain, self.claim.space
        yield from differing(
            (
                ("core", chain.core.name, self.told.core),
                ("workload", chain.name, self.told.workload),
                ("objective", self.told.options.objective, self.claim.objective),
            )
        )
        if not space.modes or not set(space.modes) <= set(MODES):
            yield f"the space has no modes, or unknown modes: {list(space.modes)}"
        if any(size < 1 for size in (*space.tile_x, *space.tile_y)):
            yield f"the space has tile sizes below 1: {space.tile_x}, {space.tile_y}"
            return
        for row in [*self.claim.stacks_costed, *self.claim.stacks_unmappable]:
            if self._tile(row) is None:
                yield f"this stack is not in the space: {row}"
        for names in self.claim.stacks_bounded:
            if self._span(names) is None:
                yield f"the chain has no stack of these layers: {names}"

    def _span(self, names: tuple[Any, ...]) -> Layers | None:
        if not set(names[:2]) <= set(self.layers):
            return None
        first, last = (self.layers.index(name) for name in names[:2])
        return (first, last) if first <= last else None

    def _tile(self, row: tuple[Any, ...]) -> Tile | None:
        """Stack with its tile size from a row of the certificate; None if the space has no such stack."""
        span = self._span(row)
        if span is None or row[2] not in self.claim.space.modes:
            return None
        for axis, size in enumerate(row[3:5]):
            if size not in self._sizes(span[1], axis):
                return None
        return (*span, row[2], row[3], row[4])

    def _sizes(self, layer: int, axis: int) -> np.ndarray:
        most = self.model.chain.layers[layer].window(axis).output_size
        given = (self.claim.space.tile_x, self.claim.space.tile_y)[axis] or range(1, most + 1)
        return np.array(sorted({min(size, most) for size in given}))

    # Costed stacks.

    def costs(self) -> Iterator[str]:
        """Messages on stacks for which the certificate is wrong, in one of three ways: the costs of the stack differ
        from the costs that are computed again; the stack has costs, but no mapping fits; or the stack is listed as
        unmappable, but a mapping fits.
        """
        for row in self.claim.stacks_costed:
            tile = self._tile(row)
            assert tile is not None
            try:
                ledger = self.model.cost(tile[0], tile[1], (tile[3], tile[4]), tile[2])
            except MappingError as error:
                yield f"{row}: {error}"
                continue
            costs = (ledger.energy_pj, ledger.latency_cycles())
            if costs != row[5:]:
                yield f"{row[:5]}: energy and latency are {row[5:]} in the certificate, but {costs} if computed again"
        for other in self.claim.stacks_unmappable:
            tile = self._tile(other)
            assert tile is not None
            try:
                self.model.cost(tile[0], tile[1], (tile[3], tile[4]), tile[2])
                yield f"a mapping fits for a stack that the certificate lists as unmappable: {other}"
            except MappingError:
                continue

    def value(self) -> Iterator[str]:
        """Messages on wrong numbers in the certificate, and on a schedule whose layers differ from the layers of the
        chain.

        A number is wrong if it contradicts another number of the certificate, or the number of schedules in the space.
        It is also wrong if it contradicts the costs of the schedule or of the costed stacks.
        """
        claim, powers = self.claim, self.powers
        assert powers is not None
        rows = {tuple(row[:5]): row[5:] for row in claim.stacks_costed}
        names = [name for layers, *_ in self.told.stacks for name in layers]
        if names != self.layers:
            yield f"the schedule does not run exactly the layers of the chain: {names}"
        energy = cycles = 0.0
        for layers, mode, x, y, own_energy, own_cycles in self.told.stacks:
            if not layers or rows.get((layers[0], layers[-1], mode, x, y)) != (own_energy, own_cycles):
                yield f"a stack of the schedule does not have the costs in the certificate: {layers}, {mode}, {x} x {y}"
            energy, cycles = energy + own_energy, cycles + own_cycles
        if not math.isclose(powers.value(energy, cycles), claim.value, rel_tol=CLOSE):
            yield f"the certificate has the value {claim.value}, but the schedule has {powers.value(energy, cycles)}"
        best = self._best()
        if not math.isclose(best, claim.value, rel_tol=CLOSE):
            yield f"the certificate has the value {claim.value}, but the best value of the costed stacks is {best}"
        yield from contradictions(claim)
        if self._schedules() != claim.schedules_in_space:
            yield f"the certificate has {claim.schedules_in_space} schedules, but the space has {self._schedules()}"

    def _best(self) -> float:
        """Least value of the objective over all schedules that consist of costed stacks."""
        assert self.powers is not None
        reached: list[set[tuple[float, float]]] = [{(0.0, 0.0)}, *[set() for _ in self.layers]]
        for stop in range(1, len(self.layers) + 1):
            ending = [row for row in self.claim.stacks_costed if row[1] == self.layers[stop - 1]]
            pairs = sorted(
                (energy + row[5], cycles + row[6])
                for row in ending
                for energy, cycles in reached[self.layers.index(row[0])]
            )
            least = math.inf
            for energy, cycles in pairs:
                if cycles < least:
                    reached[stop].add((energy, cycles))
                    least = cycles
        return min((float(self.powers.value(*pair)) for pair in reached[-1]), default=math.inf)

    def _schedules(self) -> int:
        counts = [1]
        for layer in range(len(self.layers)):
            sizes = [len(self._sizes(layer, axis)) for axis in (0, 1)]
            counts.append(sum(counts) * len(self.claim.space.modes) * sizes[0] * sizes[1])
        return counts[-1]

    # Stacks that were not costed.

    def bound(self) -> Iterator[str]:
        """Messages on stacks that the search has wrongly left out. The search did not compute the cost of such a stack,
        although a schedule with this stack could have a value below the lower bound of the certificate.
        """
        count = len(self.layers)
        floors = {(i, j): stack_floor(self.model.chain, i, j) for i in range(count) for j in range(i, count)}
        left: dict[tuple[Layers, str], tuple[np.ndarray, StackBounds]] = {}
        for names in self.claim.stacks_bounded:
            layers = self._span(names)
            assert layers is not None
            floor = floors[layers]
            least = [(math.inf, math.inf)]
            for mode in self.claim.space.modes:
                tiles, bounds = left[layers, mode] = self._left(layers, mode, floors)
                least += zip(bounds.energy_pj.tolist(), bounds.latency_cycles.tolist(), strict=True)
            lowest = (min(energy for energy, _ in least), min(cycles for _, cycles in least))
            floors[layers] = (max(floor[0], lowest[0]), max(floor[1], lowest[1]))
        known = {self._tile(row) for row in [*self.claim.stacks_costed, *self.claim.stacks_unmappable]}
        looked_at = {layers for layers, _ in left}
        for layers, floor in floors.items():
            if layers not in looked_at and self._is_below(layers, np.array(floor[0]), np.array(floor[1]), floors):
                stack = f"{self.layers[layers[0]]} to {self.layers[layers[1]]}"
                yield f"the stack {stack}, in tiles of some size, could be part of a better schedule"
        for (layers, mode), (tiles, bounds) in left.items():
            (below,) = np.nonzero(self._is_below(layers, bounds.energy_pj, bounds.latency_cycles, floors))
            for x, y in tiles[below].tolist():
                if (*layers, mode, x, y) not in known:
                    stack = f"{self.layers[layers[0]]} to {self.layers[layers[1]]}"
                    yield f"the stack {stack} ({mode}, tiles of {x} x {y}) could be part of a better schedule"

    def _left(
        self, layers: Layers, mode: str, floors: dict[Layers, tuple[float, float]]
    ) -> tuple[np.ndarray, StackBounds]:
        """Pair (tile sizes, bounds) of the tile sizes that are left for a stack in one mode. A tile size is left if
        some schedule that uses it for the stack could have a value below the lower bound of the certificate.

        The tile sizes are an array [tile size, 2] of widths and heights. `floors` has lower bounds (energy in pJ,
        latency in cycles) of every stack.
        """
        sizes = (self._sizes(layers[1], 0), self._sizes(layers[1], 1))
        quick = quick_bounds(self.model.chain, *layers, mode, sizes)
        sums = quick.energy_pj.sum(axis=0), quick.latency_cycles.sum(axis=0)
        xs, ys = np.nonzero(self._is_below(layers, *sums, floors))
        tiles = np.stack([sizes[0][xs], sizes[1][ys]], axis=1)
        known = StackBounds(quick.energy_pj[:, xs, ys], quick.latency_cycles[:, xs, ys])

        def excluded(energy_pj: np.ndarray, latency_cycles: np.ndarray) -> np.ndarray:
            result: np.ndarray = ~self._is_below(layers, energy_pj, latency_cycles, floors)
            return result

        assert self.powers is not None
        needs = (self.powers.energy, self.powers.latency)
        bounds = stack_bounds(self.model.chain, *layers, mode, tiles, known, excluded, needs)
        below = self._is_below(layers, bounds.energy_pj, bounds.latency_cycles, floors)
        return tiles[below], StackBounds(bounds.energy_pj[below], bounds.latency_cycles[below])

    def _is_below(
        self,
        layers: Layers,
        energy_pj: np.ndarray,
        latency_cycles: np.ndarray,
        floors: dict[Layers, tuple[float, float]],
    ) -> np.ndarray:
        """Array [place] of truth values, one for each tile size: True if a schedule with the stack `layers` in tiles of
        this size could have a value below the lower bound of the certificate.

        `energy_pj` and `latency_cycles` are arrays [place] with lower bounds of the stack for each tile size. `floors`
        has, for each stack, the lower bounds (energy in pJ, latency in cycles) over all tile sizes.
        """
        assert self.powers is not None
        outside = [self._outside(layers, floors, which) for which in (0, 1)]
        energy = np.maximum(energy_pj, floors[layers][0]) + outside[0]
        cycles = np.maximum(latency_cycles, floors[layers][1]) + outside[1]
        result: np.ndarray = self.powers.value(energy, cycles) < self.claim.lower_bound * (1 - 3 * CLOSE)
        return result

    def _outside(self, layers: Layers, floors: dict[Layers, tuple[float, float]], which: int) -> float:
        """Lower bound for all layers outside a stack together. The bound is for the energy in pJ if `which` is 0, and
        for the latency in cycles if `which` is 1. `floors` has these two bounds for every stack.
        """
        least = 0.0
        for start, end in ((0, layers[0]), (layers[1] + 1, len(self.layers))):
            best = {start: 0.0}
            for stop in range(start + 1, end + 1):
                best[stop] = min(best[first] + floors[first, stop - 1][which] for first in range(start, stop))
            least += best[end]
        return least
