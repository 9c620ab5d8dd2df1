"""What the members of a family cost, or cost at least, from one costing of all loop orders (docs/fronts.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tilewright.errors import InputError, MappingError
from tilewright.exploration.design_cost import reason_of
from tilewright.exploration.evaluate import NetworkEvaluator
from tilewright.exploration.families import Family
from tilewright.exploration.figure_reader import FigureReader, Settings
from tilewright.exploration.results import INFEASIBLE, INVALID, OK
from tilewright.exploration.space import Space
from tilewright.hardware.core import Accelerator, Core
from tilewright.hardware.core_variants import CoreVariants, variants_of
from tilewright.hardware.hierarchy import memory_hierarchy
from tilewright.hardware.system import core_area
from tilewright.mapping.spatial_generation import spatial_candidates
from tilewright.search.batch import OrderBatch
from tilewright.search.priced_orders import OrderPricer, OrderPrices
from tilewright.stages.base import Control, Rest, Same
from tilewright.stages.items import LayerProblem

MOST_WIDTHS = 16
"""Widths that are priced at once."""


@dataclass(frozen=True, eq=False)
class Members:
    """The designs of a family that are accelerators and meet the constraints before evaluation."""

    indexes: np.ndarray
    """int64 [member]."""
    area_mm2: np.ndarray
    """float64 [member]; not a number where a part has none."""
    variants: CoreVariants | None
    """None without members, or where they cannot be told apart."""
    hardware: dict[str, Any]
    """The hardware file of the first one."""
    accelerator: Accelerator | None
    """Of the first one."""
    invalid: Mapping[int, str]
    """Index -> why it is no accelerator."""
    excluded: Mapping[str, int]
    """Constraint -> designs that it excludes."""


@dataclass(frozen=True, eq=False)
class Prices:
    """What is known of members on one network."""

    status: str
    reason: str
    energy_pj: np.ndarray
    """[member] of the design where `is_value`, else no mapping has less."""
    latency_cycles: np.ndarray
    is_value: np.ndarray
    """bool [member]"""


def members_of(space: Space, family: Family, reader: FigureReader) -> Members:
    """Read the designs of a family."""
    indexes: list[int] = []
    cores: list[Core] = []
    invalid: dict[int, str] = {}
    excluded: dict[str, int] = {}
    first: Settings = ()
    hardware: dict[str, Any] = {}
    accelerator: Accelerator | None = None
    for index in family.members:
        outline = space.outline(index)
        if outline.excluded_by:
            excluded[outline.excluded_by] = excluded.get(outline.excluded_by, 0) + 1
            continue
        if outline.problem:
            invalid[index] = outline.problem
            continue
        try:
            if accelerator is None:
                hardware, accelerator = reader.whole(outline.settings)
                first, core = outline.settings, accelerator.cores[0]
            else:
                core = reader.core(outline.settings, first, accelerator.cores[0])
        except InputError:
            invalid[index] = _reason(reader, outline.settings)
            continue
        indexes.append(index)
        cores.append(core)
    areas = [core_area(core).mm2 for core in cores]
    return Members(
        np.array(indexes, np.int64),
        np.array([np.nan if area is None else area for area in areas], np.float64),
        variants_of(cores) if cores else None,
        hardware,
        accelerator,
        invalid,
        excluded,
    )


def _reason(reader: FigureReader, settings: Settings) -> str:
    """Why settings make no accelerator, as it is told of a design alone."""
    try:
        reader.whole(settings)
    except InputError as error:
        return reason_of(error)
    raise AssertionError("a design that is read alone is an accelerator, and is none beside others")


class FamilyPricer:
    """Prices families on the networks of a space."""

    def __init__(self, space: Space, evaluators: Mapping[str, NetworkEvaluator]) -> None:
        self.space, self.evaluators = space, evaluators

    def bounds(self, members: Members) -> dict[str, Prices]:
        """For each network what every member costs at least; its value where its words are the widest of each port."""
        return self._priced(members, False)

    def values(self, members: Members) -> dict[str, Prices]:
        """For each network what every member costs."""
        return self._priced(members, True)

    def _priced(self, members: Members, values_all: bool) -> dict[str, Prices]:
        variants = members.variants
        assert variants is not None
        assert members.accelerator is not None
        result: dict[str, Prices] = {}
        networks: dict[str, list[LayerProblem]] = {}
        for name, evaluator in self.evaluators.items():
            try:
                networks[name] = evaluator.layer_problems(members.accelerator)
            except (InputError, MappingError):
                result[name] = self._refused(members, name)
        parts = self._parts(variants, [layer for layers in networks.values() for layer in layers])
        for name in networks:
            unknown = np.full(len(members.indexes), np.nan)
            result[name] = Prices(OK, "", unknown, unknown.copy(), np.zeros(len(unknown), np.bool_))
        for part in parts:
            known: dict[tuple[Any, ...], OrderPrices | None] = {}
            own, places = variants.of_widths(part)
            for name, layers in networks.items():
                if result[name].status != OK:
                    continue
                found = [self._layer(self.evaluators[name], layer, own, values_all, known) for layer in layers]
                if any(prices is None for prices in found):
                    result[name] = self._refused(members, name)
                else:
                    _add_up(result[name], [prices for prices in found if prices is not None], places)
        return {name: result[name] for name in self.evaluators}

    def _refused(self, members: Members, name: str) -> Prices:
        """Why no member has a cost: what is told of the first one."""
        assert members.accelerator is not None
        cost = self.evaluators[name].cost(members.hardware, members.accelerator)
        assert cost.status in (INVALID, INFEASIBLE), "a design fits alone, and not with the others of its family"
        nothing = np.full(len(members.indexes), np.nan)
        return Prices(cost.status, cost.reason, nothing, nothing, np.ones(len(nothing), np.bool_))

    def _parts(self, variants: CoreVariants, layers: Sequence[LayerProblem]) -> list[list[int]]:
        """Widths for which the same spatial mappings are tried, at most MOST_WIDTHS together."""
        distinct = list({(layer.layer, layer.core, layer.constraints): layer for layer in layers}.values())
        inner = sorted({column for core in {layer.core for layer in distinct} for column in _inner(core, variants)})
        by_width: dict[tuple[int, ...], list[int]] = {}
        for row in range(len(variants.widths)):
            by_width.setdefault(tuple(variants.widths[row, inner].tolist()), []).append(row)
        groups: dict[str, list[int]] = {}
        for equal in by_width.values():
            tried = "" if len(by_width) == 1 else self._candidates(variants, equal[0], distinct)
            groups.setdefault(tried, []).extend(equal)
        return [
            part[first : first + MOST_WIDTHS] for part in groups.values() for first in range(0, len(part), MOST_WIDTHS)
        ]

    def _candidates(self, variants: CoreVariants, row: int, layers: Sequence[LayerProblem]) -> str:
        """The spatial mappings to try for each layer with the widths of a row, or why there are none."""
        bits, options = variants.widths[row].tolist(), self.space.options
        count, mixed = options.spatial_count(proves=False), options.enable_mix_spatial_mapping
        found: list[Any] = []
        for layer in layers:
            core = variants.with_widths(layer.core, bits)
            try:
                found.append(spatial_candidates(layer.layer, core, layer.constraints, options.profile, count, mixed))
            except MappingError as error:
                found.append(str(error))
        return str(found)

    def _layer(
        self,
        evaluator: NetworkEvaluator,
        layer: LayerProblem,
        variants: CoreVariants,
        values_all: bool,
        known: dict[tuple[Any, ...], OrderPrices | None],
    ) -> OrderPrices | None:
        """Prices of a layer; None where nothing fits. Layers of several networks that differ in their names are one."""
        key = replace(layer.layer, name=""), layer.constraints, layer.core
        if key not in known:
            problem = replace(layer, core=variants.with_widths(layer.core, variants.widest))
            known[key] = price(evaluator.search, problem, variants, self.space.options.objective, values_all)
        return known[key]


def price(
    search: Sequence[Any], problem: LayerProblem, variants: CoreVariants, objective: str, values_all: bool
) -> OrderPrices | None:
    """Prices of all orders that stages of a search hand to the cost model; None where nothing fits."""
    pricer = OrderPricer(variants, objective, values_all)

    def take(batch: OrderBatch) -> tuple[()]:
        pricer.add(batch.problem, [batch])
        return ()

    makers = tuple(stage for stage in search[:-1] if stage.gives is not Same)
    for _ in Rest(makers, Control(), end=take)(problem):
        pass
    return pricer.prices() if pricer.fits else None


def _inner(core: Core, variants: CoreVariants) -> list[int]:
    """Columns of the ports of the innermost memories, which alone limit spatial mappings."""
    memories = [core.memories[k] for k in memory_hierarchy(core).inner_memories]
    return [variants.column(memory.name, port.name) for memory in memories for port in memory.ports]


def _add_up(prices: Prices, layers: Sequence[OrderPrices], places: np.ndarray) -> None:
    """Add up the layers of a network, one after the other as the summary of a run does it."""
    exact = layers[0].is_exact
    energy, latency = np.zeros(len(places)), np.zeros(len(places))
    for layer in layers:
        energy += np.where(exact, layer.energy_pj, layer.least_energy_pj)
        latency += np.where(exact, layer.latency_cycles, layer.least_latency_cycles)
    prices.energy_pj[places], prices.latency_cycles[places], prices.is_value[places] = energy, latency, exact
