"""What all loop orders of a layer cost on many variants of a core at once: variants differ in unit energies and widths
of words alone, so that every order is allocated, and its data counted, once for all of them (docs/fronts.md).
"""

import threading
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tilewright.compiled import native_function
from tilewright.cost.energy_terms import energy_terms_of
from tilewright.cost.problem import PROBLEM_DTYPE, Problem, new_record, port_services
from tilewright.cost.workspace import WORKSPACE_DTYPE, new_workspace
from tilewright.errors import MappingError
from tilewright.hardware.core_variants import CoreVariants
from tilewright.objectives import OBJECTIVES
from tilewright.search.batch import OrderBatch
from tilewright.search.blocks import thread_block, write_block
from tilewright.search.evaluate import PreparedProblem
from tilewright.search.figures_kernel import (
    FIGURES_DTYPE,
    MAX_PLACES,
    MAX_VARIANTS,
    MAX_WIDTHS,
    NO_ROW,
    collect_orders,
)
from tilewright.search.loma_kernel import BLOCK_DTYPE

_RECORDS = (PROBLEM_DTYPE, WORKSPACE_DTYPE, BLOCK_DTYPE, FIGURES_DTYPE)
_of_thread = threading.local()


@dataclass(frozen=True, eq=False)
class OrderPrices:
    """What the orders of a layer cost on each variant. Infinite where none fits."""

    least_energy_pj: np.ndarray
    """[variant] of all orders; exact."""
    least_latency_cycles: np.ndarray
    """[variant] no order takes less; what the fastest one takes where `is_exact`."""
    is_exact: np.ndarray
    """[variant] its words are as wide as those of the core that the orders were costed on."""
    energy_pj: np.ndarray
    """[variant] of the best order; infinite where not `is_exact`."""
    latency_cycles: np.ndarray


class OrderPricer:
    """Prices of the orders of one layer, a batch after the other, spatial mappings in their order.

    Raises MappingError where there are more variants, widths or memory levels than there is room for.
    """

    def __init__(self, variants: CoreVariants, objective: str, values_all: bool) -> None:
        self.variants, self.values_all = variants, values_all
        count, widths = len(variants.width_of), len(variants.widths)
        if count > MAX_VARIANTS or widths > MAX_WIDTHS:
            raise MappingError(f"{count} variants of {widths} widths, there is room for {MAX_VARIANTS} of {MAX_WIDTHS}")
        self._record = _record_of_thread()
        self._record.width_count, self._record.reference = widths, variants.reference
        self._record.variant_count = count
        self._record.variant_width[:count] = variants.width_of
        self._record.values_all = values_all
        powers = OBJECTIVES[objective]
        self._record.energy_power, self._record.latency_power = powers.energy, powers.latency
        self._record.orders = self._record.fitting = self._record.row_count = 0
        self._record.bucket[...] = NO_ROW
        for name in ("least_energy_pj", "best_energy_pj", "best_latency_cycles", "best_value", "best_second"):
            self._record[name][:count] = np.inf
        self._record.least_latency_cycles[:widths] = np.inf
        self._record.best_order[:count] = 0

    def add(self, prepared: PreparedProblem, batches: Iterable[OrderBatch]) -> None:
        """Take in the orders of one spatial mapping."""
        record, problem, workspace = self._record, prepared.arrays, new_workspace()
        _write_places(record, problem)
        _write_widths(record, prepared, self.variants)
        _write_energies(record, prepared, self.variants)
        for batch in batches:
            dimensions = [prepared.dimensions.index(dimension) for dimension, _ in batch.loops]
            sizes = [size for _, size in batch.loops]
            block = write_block(thread_block(), dimensions, sizes, batch.orders, batch.boundaries)
            native_function(collect_orders, _RECORDS)(problem, workspace, block, record, len(batch.orders))

    @property
    def fits(self) -> bool:
        """Whether an order fits."""
        return bool(self._record.fitting)

    def prices(self) -> OrderPrices:
        """What is known by now."""
        record, count = self._record, len(self.variants.width_of)
        width_of = self.variants.width_of
        return OrderPrices(
            record.least_energy_pj[:count].copy(),
            record.least_latency_cycles[width_of],
            (width_of == self.variants.reference) | self.values_all,
            record.best_energy_pj[:count].copy(),
            record.best_latency_cycles[:count].copy(),
        )


def _record_of_thread() -> np.record:
    """The record of this thread: a new one costs more than a search."""
    if not hasattr(_of_thread, "record"):
        _of_thread.record = new_record(FIGURES_DTYPE)
    record: np.record = _of_thread.record
    return record


def _write_places(record: np.record, problem: Problem) -> None:
    """Number the memory levels of all operands, in the order in which the cost model adds up."""
    places = [(o, m) for o in range(problem.operand_count) for m in range(problem.level_count[o])]
    if len(places) > MAX_PLACES:
        raise MappingError(f"{len(places)} memory levels of operands, there is room for {MAX_PLACES}")
    record.place_count = len(places)
    for place, (o, m) in enumerate(places):
        record.place_operand[place], record.place_level[place] = o, m


def _write_widths(record: np.record, prepared: PreparedProblem, variants: CoreVariants) -> None:
    """The width of each link at each of the widths."""
    problem = prepared.arrays
    memories = prepared.core.memories
    served = [(memories[k], memories[k].ports[p]) for k, p, _ in port_services(prepared.core)]
    columns = np.array([variants.column(memory.name, port.name) for memory, port in served], np.int64)
    count = int(record.place_count)
    ports = problem.port_of[record.place_operand[:count], record.place_level[:count]]
    wide = variants.widths[:, columns][:, ports] if len(columns) else np.zeros((len(variants.widths), *ports.shape))
    record.wide[: len(wide), :count] = np.where(ports >= 0, wide, 0)
    record.bandwidth_max_bits[:count] = problem.bandwidth_max_bits[
        record.place_operand[:count], record.place_level[:count]
    ]


def _write_energies(record: np.record, prepared: PreparedProblem, variants: CoreVariants) -> None:
    """The unit energies of each level, and the terms of the energy besides accesses, for each variant."""
    problem, core = prepared.arrays, prepared.core
    count, places = len(variants.width_of), int(record.place_count)
    rows = np.array([variants.memories.index(memory.name) for memory in core.memories], np.int64)
    memory_of = problem.level_memory[record.place_operand[:places], record.place_level[:places]]
    record.read_pj[:count, :places] = variants.word_pj[:, rows[memory_of], 0]
    record.write_pj[:count, :places] = variants.word_pj[:, rows[memory_of], 1]
    costs = [
        list(energy_terms_of(prepared.layer, variants.with_array(core, array), prepared.spatial.unrolling).values())
        for array in variants.arrays
    ]
    fixed = np.array([[cost.fixed_pj for cost in terms] for terms in costs])
    a_cycle = np.array([[cost.pj_a_cycle for cost in terms] for terms in costs])
    record.term_fixed_pj[:count, : fixed.shape[1]] = fixed[variants.array_of]
    record.term_pj_a_cycle[:count, : a_cycle.shape[1]] = a_cycle[variants.array_of]
