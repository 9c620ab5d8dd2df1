"""Compiled search for the best loop order of a problem under many unit energies and word widths.

A variant of a core is one choice of word widths and of the energies of word accesses. A row is a group of loop orders
that move the same data. docs/proofs/fronts.md has the proof.
"""

import math

import numpy as np

from tilewright.base.compiled import kernel
from tilewright.cost.kernel import evaluate_allocation
from tilewright.cost.problem import MAX_TERMS
from tilewright.cost.workspace import FITS
from tilewright.hardware.core import FH, FL, TH, TL
from tilewright.search.loma_kernel import allocate_row
from tilewright.search.moved_data_kernel import (
    MAX_PLACES,
    MAX_ROWS,
    NONE,
    add_allocation,
    begin_core,
    fastest_of_row,
    find_allocation,
    forget,
    is_full,
    least_latency,
    use_allocation,
)
from tilewright.search.objective_kernel import POWER_FIELDS, ranks_before, value_of

MAX_VARIANTS = 1024

FIGURES_DTYPE = np.dtype(
    [
        *POWER_FIELDS,
        ("variant_count", np.int64),
        ("variant_width", np.int64, (MAX_VARIANTS,)),  # [variant] Number of its set of word widths
        # [variant] True if its word widths or the energies of its word accesses differ from the previous variant.
        ("begins_words", np.int8, (MAX_VARIANTS,)),
        ("read_pj", np.float64, (MAX_VARIANTS, MAX_PLACES)),  # [variant, place] Energy to read one word
        ("write_pj", np.float64, (MAX_VARIANTS, MAX_PLACES)),  # [variant, place] Energy to write one word
        ("term_fixed_pj", np.float64, (MAX_VARIANTS, MAX_TERMS)),  # [variant, t]
        ("term_pj_a_cycle", np.float64, (MAX_VARIANTS, MAX_TERMS)),  # [variant, t]
        ("first", np.int64),  # number of the first order of the block, counted among all orders of the layer
        ("fitting", np.int64),  # number of orders of the block that fit
        # Scratch: energy of the word accesses of each row that the core uses, with the words of the current variant.
        ("row_access_pj", np.float64, (MAX_ROWS,)),
        # Scratch: lower bound of the objective over the orders of each row, for the current variant.
        ("row_value", np.float64, (MAX_ROWS,)),
        ("best_energy_pj", np.float64, (MAX_VARIANTS,)),  # [variant] Energy of the best order
        ("best_latency_cycles", np.float64, (MAX_VARIANTS,)),  # [variant] Latency of the best order
        ("best_order", np.int64, (MAX_VARIANTS,)),  # [variant] Number of the best order
    ],
    align=True,
)
"""Variants of a core, and the best loop order of a layer for each variant."""


@kernel
def price_orders(problem, ws, block, moved, figures, count):
    """Compare the first `count` orders of `block` with the best known order of each variant, and store better orders in
    `figures`.

    Some orders were already evaluated on other cores of the same structure. `moved` has their data movement and
    latencies.
    """
    ws.loop_count = block.length
    figures.fitting = 0
    begin_core(moved)
    for order in range(count):
        if is_full(moved):
            price_rows(problem, ws, block, moved, figures)
            forget(moved, count)
            begin_core(moved)
        if allocate_row(problem, ws, block, order) != FITS:
            continue
        found = find_allocation(problem, ws, moved, order)
        if found == NONE and evaluate_allocation(problem, ws) == FITS:
            found = add_allocation(problem, ws, moved, order)
        if found != NONE:
            figures.fitting += 1
            use_allocation(moved, found)
    price_rows(problem, ws, block, moved, figures)


@kernel
def price_rows(problem, ws, block, moved, figures):
    """Compare the best order of each variant so far with the orders of the rows that the core uses, and store better
    orders. A row is a group of loop orders that move the same data.

    The row with the smallest lower bound of the objective comes first. Afterwards, each row whose lower bound exceeds
    the objective of the best order is skipped.
    """
    for variant in range(figures.variant_count):
        if figures.begins_words[variant]:
            for i in range(moved.used_count):
                figures.row_access_pj[i] = access_energy(moved, figures, moved.used[i], variant)
        b = figures.variant_width[variant]
        hopeful = NONE
        least = math.inf
        for i in range(moved.used_count):
            bound = least_latency(problem, moved, moved.used[i], b)
            value = value_of(figures, energy_of(problem, figures, variant, figures.row_access_pj[i], bound), bound)
            figures.row_value[i] = value
            if value < least:
                least = value
                hopeful = i
        if hopeful == NONE:
            continue
        value_row(problem, ws, block, moved, figures, hopeful, variant)
        for i in range(moved.used_count):
            best = value_of(figures, figures.best_energy_pj[variant], figures.best_latency_cycles[variant])
            if figures.row_value[i] <= best:
                value_row(problem, ws, block, moved, figures, i, variant)


@kernel
def value_row(problem, ws, block, moved, figures, i, variant):
    """Compare two orders: the best order of a variant so far, and the fastest order of the `i`-th row that the current
    core uses. Store the second order if it is better. A row is a group of loop orders that move the same data.
    """
    b = figures.variant_width[variant]
    row = moved.used[i]
    latency = fastest_of_row(problem, ws, block, moved, row, b)
    energy = energy_of(problem, figures, variant, figures.row_access_pj[i], latency)
    keep_better(figures, variant, energy, latency, figures.first + moved.exact_order[row, b])


@kernel
def access_energy(moved, figures, row, variant):
    """Energy in pJ of the word accesses of an order of row `row`, with the word widths and energies of core variant
    `variant`. All orders of a row have the same word accesses.

    The terms are added in the same order as in the cost model, so the floating-point result is identical.
    """
    b = figures.variant_width[variant]
    energy = 0.0
    for place in range(moved.place_count):
        read = figures.read_pj[variant, place]
        write = figures.write_pj[variant, place]
        reads = moved.row_words[row, b, place, TH] * read + moved.row_words[row, b, place, TL] * read
        writes = moved.row_words[row, b, place, FH] * write + moved.row_words[row, b, place, FL] * write
        energy += reads + writes
    return energy


@kernel
def energy_of(problem, figures, variant, access_pj, latency):
    """Energy in pJ of a loop order on core variant `variant`. `access_pj` is the energy of its word accesses, and
    `latency` is its latency in cycles. The terms are added in the same sequence as in the cost model.
    """
    energy = 0.0
    for t in range(problem.term_count):
        term = figures.term_fixed_pj[variant, t] + figures.term_pj_a_cycle[variant, t] * latency
        if t == problem.access_term:
            term += access_pj
        energy += term
    return energy


@kernel
def keep_better(figures, variant, energy, latency, order):
    """Store a loop order as the best order of a variant if it is better than the stored order. `order` is the number of
    the loop order.

    Orders are compared by the objective. The metric that the objective does not use breaks ties; after that, the
    smaller number wins.
    """
    best_energy, best_latency = figures.best_energy_pj[variant], figures.best_latency_cycles[variant]
    if ranks_before(figures, best_energy, best_latency, energy, latency):
        return
    if not ranks_before(figures, energy, latency, best_energy, best_latency) and order > figures.best_order[variant]:
        return
    figures.best_energy_pj[variant] = energy
    figures.best_latency_cycles[variant] = latency
    figures.best_order[variant] = order
