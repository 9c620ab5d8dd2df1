"""Compiled costs of the loop orders of a problem under many unit energies and word widths (docs/proofs.md#fronts)."""

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
        ("variant_width", np.int64, (MAX_VARIANTS,)),  # [variant]
        ("begins_words", np.int8, (MAX_VARIANTS,)),  # bool: its words differ from those of the variant before
        ("read_pj", np.float64, (MAX_VARIANTS, MAX_PLACES)),  # [variant, place] of a word
        ("write_pj", np.float64, (MAX_VARIANTS, MAX_PLACES)),
        ("term_fixed_pj", np.float64, (MAX_VARIANTS, MAX_TERMS)),  # [variant, t]
        ("term_pj_a_cycle", np.float64, (MAX_VARIANTS, MAX_TERMS)),
        ("first", np.int64),  # number, among all orders of the layer, of the first one of the block
        ("fitting", np.int64),  # orders of the block that fit
        ("row_access_pj", np.float64, (MAX_ROWS,)),  # scratch: for the current words, of rows that the core uses
        ("row_value", np.float64, (MAX_ROWS,)),  # scratch: lower bound over the row's orders for the current variant
        ("best_energy_pj", np.float64, (MAX_VARIANTS,)),  # [variant] of the best order
        ("best_latency_cycles", np.float64, (MAX_VARIANTS,)),
        ("best_order", np.int64, (MAX_VARIANTS,)),  # its number
    ],
    align=True,
)
"""Variants of a core, and the best order of a layer for each."""


@kernel
def price_orders(problem, ws, block, moved, figures, count):
    """Compare the first `count` orders of `block` with the best of each variant.

    `moved` holds what is known of these orders from other cores of the same structure.
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
    """Compare the rows that the core uses with the best of each variant, most promising rows first."""
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
    """Compare the fastest order of a row with the best of a variant."""
    b = figures.variant_width[variant]
    row = moved.used[i]
    latency = fastest_of_row(problem, ws, block, moved, row, b)
    energy = energy_of(problem, figures, variant, figures.row_access_pj[i], latency)
    keep_better(figures, variant, energy, latency, figures.first + moved.exact_order[row, b])


@kernel
def access_energy(moved, figures, row, variant):
    """Energy in pJ of a row's word accesses, added in the order of the cost model, so that all bits are equal."""
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
    """Energy of an order in pJ, added in the order of the cost model."""
    energy = 0.0
    for t in range(problem.term_count):
        term = figures.term_fixed_pj[variant, t] + figures.term_pj_a_cycle[variant, t] * latency
        if t == problem.access_term:
            term += access_pj
        energy += term
    return energy


@kernel
def keep_better(figures, variant, energy, latency, order):
    """Keep an order if it is better by the rule of searches: objective, then the other metric, then first found."""
    best_energy, best_latency = figures.best_energy_pj[variant], figures.best_latency_cycles[variant]
    if ranks_before(figures, best_energy, best_latency, energy, latency):
        return
    if not ranks_before(figures, energy, latency, best_energy, best_latency) and order > figures.best_order[variant]:
        return
    figures.best_energy_pj[variant] = energy
    figures.best_latency_cycles[variant] = latency
    figures.best_order[variant] = order
