"""The record that the exact search works on: the lattice of loop multisets, its tables, and the labels of a generation.

A prefix of a loop order matters to its completions only through the multiset of its loops (a point of the lattice) and
through what its closed levels have fixed; a label is one such state. docs/exact.md has the whole argument.
"""

import numpy as np

from tilewright.cost.problem import MAX_LEVELS, MAX_LOOPS, MAX_MEMORIES, MAX_OPERANDS, MAX_PORTS

ENERGY_OVER_TIME = 3
"""Objective besides those of the other searches: an energy that also grows with latency, so that both count."""
MAX_SYMBOLS = 24
"""Distinct (loop dimension, prime factor) pairs."""
MAX_LATTICE = 1 << 17
"""Points of the lattice: products of (multiplicity + 1) over the symbols."""
MAX_BOUNDARIES = 15
"""Boundaries between two memory levels, over all operands."""
MAX_PLACED = 36
"""Loops of an order."""
MAX_BUSY_PORTS = 12
"""Ports that one boundary of an operand and those above it move data over."""
LABELS = 1 << 19
"""Labels of one generation."""
BUCKETS = LABELS * 4
CLASS_SLOTS = MAX_LATTICE * 2
PATH_WORDS, PATH_BITS = 3, 5
PATH_SYMBOLS = MAX_PLACED // PATH_WORDS

_O, _B, _L, _S, _N = MAX_OPERANDS, MAX_BOUNDARIES, MAX_BOUNDARIES + MAX_OPERANDS, MAX_LATTICE, LABELS

# Links of a boundary: the two directions of the memory below it and the two of the memory above.
LINK_TH, LINK_FH, LINK_TL, LINK_FL = range(4)

LABEL_FIELDS = (
    ("lattice", np.int32, ()),  # multiset of the loops placed so far
    ("level", np.int8, (_O,)),  # level of each operand that is being filled
    ("start", np.int32, (_O,)),  # multiset at which that level began
    ("boundary", np.int32, (_B,)),  # multiset below each boundary, -1 while open
    ("top_irrelevant", np.int32, (_B,)),  # run of irrelevant loops just below the boundary
    ("top_relevant", np.int32, (_B,)),  # run of relevant loops just below the boundary
    ("stationary", np.int32, (_O,)),  # multiset of the loops in which the array keeps an input, -1 while it may grow
    ("run_kind", np.int8, (_O,)),  # kind of the outermost loops of the level being filled
    ("run_product", np.int32, (_O,)),
    ("energy", np.float64, ()),  # energy of closed boundaries
    ("key", np.int64, (_B,)),  # what of a boundary can still matter
    ("key_runs", np.int64, (_B,)),
    ("path", np.int64, (PATH_WORDS,)),  # the loops placed so far
    ("bound", np.float64, ()),  # lower bound of the objective of every completion
    ("energy_bound", np.float64, ()),
    ("latency_bound", np.float64, ()),
)

EXACT_DTYPE = np.dtype(
    [
        # What is searched.
        ("objective", np.int64),
        ("free", np.int8),  # boundaries chosen by the search, not by the reference's allocator
        ("wide_final", np.int8),  # free: final outputs need more room than partial sums, so levels begin early
        ("symbol_count", np.int64),
        ("loop_count", np.int64),
        ("lattice_size", np.int64),
        ("multiplicity", np.int64, (MAX_SYMBOLS,)),
        ("stride", np.int64, (MAX_SYMBOLS,)),
        ("boundary_count", np.int64),
        ("first_boundary", np.int64, (_O,)),
        ("boundary_operand", np.int64, (_B,)),
        ("boundary_level", np.int64, (_B,)),
        ("first_level", np.int64, (_O,)),  # where the levels of an operand stand in `elements`
        ("pinned", np.int8, (_B,)),  # greedy: everything is kept below this boundary
        ("filled", np.int8, (_B,)),  # greedy: the level takes loops until one does not fit
        ("contested", np.int8, (_B,)),  # greedy: decided by the whole order, known only at its end
        ("any_contested", np.int8),
        ("same_in_any_order", np.int8),  # tile sizes do not depend on the order of multiplication
        ("steady", np.int8, (_B,)),  # greedy: one more loop below this boundary never costs the allocator more
        ("never_costlier", np.int8, (_O,)),  # more loops below the uppermost boundary never cost the allocator more
        ("simple", np.int8, (_B,)),  # every link of the boundary has a port of its own
        ("always_buffered", np.int8, (MAX_MEMORIES,)),  # the memory has room for the next tile in every mapping
        ("shares", np.int8, (_B,)),  # the memory below holds tiles of other operands too
        ("length", np.int64),  # the complete order last looked at, as `matches` reads it
        ("order", np.int64, (MAX_LOOPS,)),
        ("loop_dimension", np.int64, (MAX_LOOPS,)),
        ("loop_size", np.int64, (MAX_LOOPS,)),
        ("pattern_length", np.int64),
        ("pattern_dimension", np.int64, (MAX_LOOPS,)),
        ("pattern_size", np.int64, (MAX_LOOPS,)),
        ("given_length", np.int64),  # innermost loops that the pattern gives
        ("inexact", np.int8, (_O,)),  # tiles of the operand are products of rounded numbers
        ("uncertain", np.int8),  # some tile is halfway between two whole numbers, and rounding decides by the order
        ("keep_paths", np.int8),  # labels with different loops placed are different
        # Tables over the lattice.
        ("cycles", np.int64, (_S,)),  # product of the loops
        ("elements", np.float64, (_L, _S)),  # of a tile, as the allocator counts them
        ("least_elements", np.float64, (_L, _S)),  # least over all larger multisets
        ("link_energy", np.float64, (_B, _S)),
        ("link_bits", np.int64, (_B, 4, _S)),  # moved per period
        ("link_cycles", np.int64, (_B, 4, _S)),  # of one transfer
        ("link_count", np.int64, (_B, 4, _S)),  # periods
        ("link_bandwidth", np.float64, (_B, 4, _S)),
        ("tile_bits", np.int64, (_B, _S)),  # of the analysis that latency rests on
        ("held_elements", np.int64, (_B, _S)),  # of a tile as it fills its memory
        ("held_precision", np.int64, (_B, _S)),  # and bits of each, where the level that holds it makes no difference
        ("possible", np.int8, (_B, _S)),  # a boundary may lie here
        ("class_of", np.int32, (_B, _S)),  # equal numbers, equal class
        ("stays", np.int8, (_O, _S)),  # only loops irrelevant to the operand
        ("sums_open", np.int8, (_S,)),  # a loop irrelevant to the output is still to come
        ("array_energy", np.float64, (_O, _S)),  # of the link to the array, for inputs by stationary loops
        ("array_count", np.int64, (_O, _S)),
        ("array_cycles", np.int64, (_O, 4)),
        ("output_count", np.int64, (4,)),  # periods of the links between the array and the outputs
        ("least_tile_bits", np.int64, (_O,)),  # of an innermost tile
        ("array_bandwidth", np.float64, (_O, _S)),
        ("energy_to_go", np.float64, (_B, _S)),  # least energy of this boundary and those above it
        ("array_energy_to_go", np.float64, (_O, _S)),
        ("array_count_to_go", np.int64, (_O, _S)),
        ("load_to_go", np.int64, (_B, 4, _S)),  # least loading time of each link
        ("busy_to_go", np.int64, (_B, MAX_BUSY_PORTS, _S)),  # least port time of this boundary and those above it
        ("traffic_to_go", np.int64, (_B, MAX_BUSY_PORTS, _S)),  # the same with the transfers of on- and off-loading
        ("adds_up", np.int8, (_B,)),  # loading over the boundary is always added to on- or off-loading
        ("pairs_to_go", np.int64, (_B, _S)),  # least loading over this boundary and those above it
        ("joint_to_go", np.int64, (_B, MAX_BUSY_PORTS, _S)),  # least sum of both: time of a port, and loading
        ("busy_port", np.int64, (_B, MAX_BUSY_PORTS)),  # the ports concerned, -1 where there are fewer
        ("top_port", np.int64, (_O,)),  # port of the topmost memory that reads an input or takes an output, -1 without
        ("top_whole", np.int64, (_O,)),  # cycles of the whole tensor there, -1 where that cannot be
        ("top_busy", np.int64, (_O, _S)),  # repeated transfers: least cycles after the first period,
        ("top_joint", np.int64, (_O, _S)),  # least cycles in all,
        ("top_load", np.int64, (_O, _S)),  # least cycles of one transfer,
        ("top_bandwidth", np.float64, (_O, _S)),  # least average bandwidth
        ("most_busy_ports", np.int64),  # that any boundary would need in `busy_port`, which may be too many
        ("classes_known", np.int8),  # `class_of` is filled
        # Limits.
        ("best", np.float64),  # objective of the best known mapping
        ("best_energy", np.float64),
        ("best_latency", np.float64),
        ("best_path", np.int64, (PATH_WORDS,)),
        ("best_boundary", np.int32, (_B,)),
        ("improved", np.int8),
        ("generation", np.int64),
        ("current", np.int64),  # which of the two generations is expanded
        ("label_count", np.int64, (2,)),
        ("cursor", np.int64),
        ("nodes", np.int64),
        ("dropped_bound", np.float64),  # least bound of the labels left out
        ("broken", np.int64),  # leaves cheaper than their bound: never, unless there is a fault
        ("bucket", np.int32, (BUCKETS,)),  # label of a hash, or -1
        ("slot", np.int32, (LABELS,)),  # where the labels made last stand in `bucket`
        ("slot_count", np.int64),
        # Scratch.
        ("port_second", np.int64, (MAX_PORTS,)),
        ("port_open", np.int8, (MAX_PORTS,)),
        ("port_known", np.int64, (MAX_PORTS,)),
        ("port_traffic", np.int64, (MAX_PORTS,)),
        ("unknown_memory", np.int8, (MAX_MEMORIES,)),
        ("candidate_count", np.int64, (_O,)),  # of a contested boundary: points on the path where it may lie,
        ("candidate", np.int32, (_O, MAX_PLACED + 1)),
        ("may_come", np.int8, (_O,)),  # and whether it may come later
        ("whole", np.int64, (_S,)),  # a table that is being made, of whole numbers
        ("real", np.float64, (_S,)),  # and of others
        ("pair", np.int64, (_S,)),  # loading between the two memories of a boundary
        ("class_slot", np.int32, (CLASS_SLOTS,)),  # first point of each class of a boundary by hash, or -1
        ("moved_load", np.int64),
        ("moved_busy", np.int64),
        ("moved_joint", np.int64),
        ("moved_bandwidth", np.float64),
        ("load_at_least", np.float64, (_O, MAX_LEVELS, 4)),
        *[(f"child_{name}", kind, shape) for name, kind, shape in LABEL_FIELDS],
        *[(f"label_{name}", kind, (2, _N, *shape)) for name, kind, shape in LABEL_FIELDS],
    ],
    align=True,
)
"""Axes as in `PROBLEM_DTYPE`; further b boundary, S lattice point. Sizes are upper limits: memory that is not touched
is not used."""
