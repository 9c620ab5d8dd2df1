"""Costs of the loop orders of a layer on cores that differ only in memory sizes, word widths and unit energies.

Each allocation of an order is evaluated once for all cores. One evaluation per core would give the same result (proof:
docs/proofs/fronts.md).
"""

import threading
from dataclasses import dataclass, field

import numpy as np

from tilewright.base.compiled import native_function
from tilewright.base.objectives import OBJECTIVES
from tilewright.base.profile import ModelProfile
from tilewright.cost.energy_terms import energy_terms_of
from tilewright.cost.problem import PROBLEM_DTYPE, new_record, port_services, problem_frame
from tilewright.cost.problem_figures import CoreFigures
from tilewright.cost.workspace import WORKSPACE_DTYPE, new_workspace
from tilewright.hardware.core import Core, OperationalArray
from tilewright.hardware.core_variants import CoreVariants
from tilewright.hardware.memory_columns import memory_columns
from tilewright.mapping.zeros import plain_widths
from tilewright.search.batch import OrderBatch
from tilewright.search.blocks import thread_block, write_block
from tilewright.search.evaluate import PreparedProblem
from tilewright.search.figures_kernel import FIGURES_DTYPE, price_orders
from tilewright.search.loma_kernel import BLOCK_DTYPE
from tilewright.search.moved_data_kernel import MAX_ALLOCATIONS, MOVED_DATA_DTYPE, forget

FORGET_RECORDS = (MOVED_DATA_DTYPE,)
RECORDS = (PROBLEM_DTYPE, WORKSPACE_DTYPE, BLOCK_DTYPE, MOVED_DATA_DTYPE, FIGURES_DTYPE)
_of_thread = threading.local()


@dataclass(eq=False)
class BestOrders:
    """Best order of a layer for each variant of a core, as an `OrderPricer` computes it."""

    energy_pj: np.ndarray
    """Energy in pJ of the best order for each variant; infinite if no order fits."""
    latency_cycles: np.ndarray
    number: np.ndarray
    """Index of the best order among all orders of the layer, for each variant: int64 array [variant]. The index means
    nothing for a variant for which no order fits.
    """
    fitting: int = 0
    """Number of orders compared so far that fit the core."""

    @classmethod
    def none_of(cls, variants: int) -> "BestOrders":
        """Result before any order is compared: infinite energy and latency for each of `variants` variants."""
        return cls(np.full(variants, np.inf), np.full(variants, np.inf), np.zeros(variants, np.int64))


@dataclass(eq=False)
class OrderPricer:
    """Object that computes the costs of loop orders for one layer with one spatial mapping, on several cores.

    Each call of `price` takes one core. The cores differ from the core of `prepared` only in memory sizes and unit
    energies. In `prepared`, each port has the widest word that it has in any core variant. `variants.widths` has the
    word widths of all cores. A pricer is not thread-safe. Calls of two pricers must not alternate, because all pricers
    of a thread share one block of orders and one set of records.
    """

    prepared: PreparedProblem
    variants: CoreVariants
    """Variants of one of the cores with which `price` is called. All these cores have the same memories (apart from
    sizes and energies), the same ports and the same sets of word widths (`CoreVariants.widths`).
    """
    profile: ModelProfile
    objective: str
    _terms: dict[tuple[OperationalArray, ...], tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        prepared = self.prepared
        problem, core = prepared.arrays, prepared.core
        frame = problem_frame(prepared.layer, core.frame, prepared.links, prepared.spatial, self.profile)
        self._figure_places = frame[1]
        served = [(core.memories[k], core.memories[k].ports[p]) for k, p, _ in port_services(core)]
        widest = CoreFigures.of({}, [port for _, port in served])
        self._most_bits, self._least_bits = widest.most_bits, widest.least_bits
        places = [(o, m) for o in range(problem.operand_count) for m in range(problem.level_count[o])]
        self._operands, self._levels = (np.array(column, np.int64) for column in zip(*places, strict=True))
        columns = np.array([self.variants.column(memory.name, port.name) for memory, port in served], np.int64)
        self._write_links(columns)
        rows = np.array([self.variants.memories.index(memory.name) for memory in core.memories], np.int64)
        self._memory_of = rows[problem.level_memory[self._operands, self._levels]]

    def _write_links(self, columns: np.ndarray) -> None:
        """Write the links of the memories to the record of moved data (MOVED_DATA_DTYPE). A link is a pair (operand,
        memory level). The word widths of the ports of each link are also written, in bits of data that are not
        compressed. The links have the order in which the cost model adds their energies. `columns` has one number for
        each port of the core: the index of the column of `variants.widths` for this port.
        """
        moved, problem, variants = _records()[0], self.prepared.arrays, self.variants
        count, widths = len(self._operands), len(variants.widths)
        moved.room, moved.place_count = MAX_ALLOCATIONS, count
        moved.place_operand[:count], moved.place_level[:count] = self._operands, self._levels
        moved.width_count, moved.widest = widths, variants.reference
        ports = problem.port_of[self._operands, self._levels]
        wide = variants.widths[:, columns][:, ports] if len(columns) else np.zeros((widths, *ports.shape), np.int64)
        wide = np.where(ports >= 0, wide, 0)
        if self._figure_places.link_sizes is not None:
            sizes = np.ones(problem.port_of.shape)
            sizes[self._figure_places.links] = self._figure_places.link_sizes
            wide = plain_widths(wide, sizes[self._operands, self._levels])
        moved.wide[:widths, :count] = wide
        moved.bandwidth_max_bits[:count] = problem.bandwidth_max_bits[self._operands, self._levels]

    def begin(self, batch: OrderBatch) -> None:
        """Load the orders of `batch`, which `price` then compares. All data about the orders of earlier batches are
        deleted.
        """
        dimensions = [self.prepared.dimensions.index(dimension) for dimension, _ in batch.loops]
        sizes = [size for _, size in batch.loops]
        write_block(thread_block(), dimensions, sizes, batch.orders, batch.boundaries)
        native_function(forget, FORGET_RECORDS)(_records()[0], len(batch.orders))

    def price(self, core: Core, variants: CoreVariants, count: int, first: int, best: BestOrders) -> None:
        """Compare the first `count` orders of the current batch with the best known order of each variant of a core,
        and update `best`.

        `first` is the number of the first order of the batch, counted over all orders of the layer.
        """
        moved, figures, workspace = _records()
        problem = self.prepared.arrays
        columns = CoreFigures(memory_columns(core.memories), self._most_bits, self._least_bits)
        self._figure_places.write(problem, columns)
        number = len(variants.width_of)
        powers = OBJECTIVES[self.objective]
        figures.energy_power, figures.latency_power = powers.energy, powers.latency
        figures.variant_count, figures.first = number, first
        figures.variant_width[:number] = variants.width_of
        words = variants.word_pj[:, self._memory_of]
        figures.read_pj[:number, : words.shape[1]] = words[:, :, 0]
        figures.write_pj[:number, : words.shape[1]] = words[:, :, 1]
        figures.begins_words[:number] = variants.begins_words
        fixed, a_cycle = self._terms_of(variants)
        figures.term_fixed_pj[:number, : fixed.shape[1]] = fixed[variants.array_of]
        figures.term_pj_a_cycle[:number, : fixed.shape[1]] = a_cycle[variants.array_of]
        figures.best_energy_pj[:number], figures.best_latency_cycles[:number] = best.energy_pj, best.latency_cycles
        figures.best_order[:number] = best.number
        native_function(price_orders, RECORDS)(problem, workspace, thread_block(), moved, figures, count)
        best.energy_pj[:], best.latency_cycles[:] = (
            figures.best_energy_pj[:number],
            figures.best_latency_cycles[:number],
        )
        best.number[:] = figures.best_order[:number]
        best.fitting += int(figures.fitting)

    def _terms_of(self, variants: CoreVariants) -> tuple[np.ndarray, np.ndarray]:
        """Pair (fixed parts in pJ, parts in pJ per cycle) of the energy terms. Both arrays have the axes [operational
        array of `variants.arrays`, energy term]. The term of memory accesses is 0.
        """
        if variants.arrays not in self._terms:
            prepared = self.prepared
            costs = [
                list(
                    energy_terms_of(
                        prepared.layer,
                        variants.with_array(prepared.core, array),
                        prepared.spatial.unrolling,
                        self.profile,
                        prepared.links,
                    ).values()
                )
                for array in variants.arrays
            ]
            fixed = np.array([[cost.fixed_pj for cost in terms] for terms in costs])
            a_cycle = np.array([[cost.pj_a_cycle for cost in terms] for terms in costs])
            self._terms[variants.arrays] = fixed, a_cycle
        return self._terms[variants.arrays]


def _records() -> tuple[np.record, np.record, np.record]:
    """Triple (record of moved data, record of variants, workspace) of this thread. The records are reused, because
    making new records takes longer than a search.
    """
    if not hasattr(_of_thread, "records"):
        _of_thread.records = new_record(MOVED_DATA_DTYPE), new_record(FIGURES_DTYPE), new_workspace()
    records: tuple[np.record, np.record, np.record] = _of_thread.records
    return records
