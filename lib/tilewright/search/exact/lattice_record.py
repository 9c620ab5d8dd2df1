"""Record of the exact search, in parts: the task, tables over the lattice, labels, scratch.

A prefix of a loop order affects its completions only through the multiset of its loops (a point of the lattice) and the
state of its closed levels. A label is one such state. docs/proofs.md#exact-search has the proof.
"""

import numpy as np

from tilewright.cost.problem import MAX_LEVELS, MAX_LOOPS, MAX_MEMORIES, MAX_OPERANDS, MAX_PORTS
from tilewright.search.objective_kernel import POWER_FIELDS

MAX_SYMBOLS = 24
"""Maximal number of distinct (loop dimension, prime factor) pairs, called symbols."""
MAX_LATTICE = 1 << 17
"""Maximal number of lattice points: the product of (multiplicity + 1) over the symbols."""
MAX_BOUNDARIES = 15
"""Maximal number of boundaries between two memory levels, over all operands."""
MAX_PLACED = 36
"""Maximal number of loops in an order."""
MAX_BUSY_PORTS = 12
"""Maximal number of ports over which a boundary of an operand and those above it move data."""
LABELS = 1 << 19
"""Maximal number of labels in one generation."""
BUCKETS = LABELS * 4
CLASS_SLOTS = MAX_LATTICE * 2
PATH_WORDS, PATH_BITS = 3, 5
PATH_SYMBOLS = MAX_PLACED // PATH_WORDS

_O, _B, _L, _S, _N = MAX_OPERANDS, MAX_BOUNDARIES, MAX_BOUNDARIES + MAX_OPERANDS, MAX_LATTICE, LABELS

NO_PORT = MAX_BUSY_PORTS
"""Row of `joint_to_go` that has only the loading."""

# Links of a boundary: the two directions of the memory below it and the two of the memory above.
LINK_TH, LINK_FH, LINK_TL, LINK_FL = range(4)

# Axes as in `PROBLEM_DTYPE`; further b boundary, S lattice point. Sizes are upper limits: untouched memory is
# not used.

TASK_FIELDS = (
    *POWER_FIELDS,
    ("latency_counts", np.int8),  # of the objective, or of an energy that grows with latency
    ("free", np.int8),  # boundaries chosen by the search, not by the reference's allocator
    ("wide_final", np.int8),  # free: final outputs need more room than partial sums, so levels begin early
    ("symbol_count", np.int64),
    ("loop_count", np.int64),
    ("lattice_size", np.int64),
    ("loop_dimension", np.int64, (MAX_LOOPS,)),  # of each symbol,
    ("loop_size", np.int64, (MAX_LOOPS,)),
    ("multiplicity", np.int64, (MAX_SYMBOLS,)),
    ("stride", np.int64, (MAX_SYMBOLS,)),  # step in the lattice for one more of each symbol
    ("boundary_count", np.int64),
    ("first_boundary", np.int64, (_O,)),
    ("boundary_operand", np.int64, (_B,)),
    ("boundary_level", np.int64, (_B,)),
    ("first_level", np.int64, (_O,)),  # position of the levels of an operand in `elements`
    ("inexact", np.int8, (_O,)),  # tiles of the operand are products of rounded numbers
    ("same_in_any_order", np.int8),  # tile sizes do not depend on the order of multiplication
)
"""Task of the search: loops, boundaries, objective. Written by `new_search`."""

PATTERN_FIELDS = (
    ("pattern_length", np.int64),
    ("pattern_dimension", np.int64, (MAX_LOOPS,)),
    ("pattern_size", np.int64, (MAX_LOOPS,)),
    ("given_length", np.int64),  # innermost loops that the pattern gives
    ("length", np.int64),  # complete order visited last: `evaluate_leaf` writes it for `matches`
    ("order", np.int64, (MAX_LOOPS,)),
)
"""Temporal ordering that orders must match. Written before the first round."""

NUMBER_FIELDS = (
    ("cycles", np.int64, (_S,)),  # product of the loops
    ("elements", np.float64, (_L, _S)),  # of a tile, as the allocator counts them
    ("link_energy", np.float64, (_B, _S)),
    ("link_bits", np.int64, (_B, 4, _S)),  # moved per period
    ("link_cycles", np.int64, (_B, 4, _S)),  # of one transfer
    ("link_count", np.int64, (_B, 4, _S)),  # periods
    ("link_bandwidth", np.float64, (_B, 4, _S)),
    ("tile_bits", np.int64, (_B, _S)),  # cycles of the analysis on which latency is based
    ("held_elements", np.int64, (_B, _S)),  # of a tile as it fills its memory
    ("held_precision", np.int64, (_B, _S)),  # bits of each where they do not depend on the level's start
    ("stays", np.int8, (_O, _S)),  # True if all loops are irrelevant to the operand
    ("sums_open", np.int8, (_S,)),  # True if a loop irrelevant to the output is not placed yet
    ("array_energy", np.float64, (_O, _S)),  # of the link to the array, for inputs by stationary loops
    ("array_count", np.int64, (_O, _S)),
    ("array_bandwidth", np.float64, (_O, _S)),
    ("array_cycles", np.int64, (_O, 4)),
    ("output_count", np.int64, (4,)),  # periods of the links between the array and the outputs
    ("uncertain", np.int8),  # True if a tile is halfway between two whole numbers, and rounding depends on the order
)
"""Numbers of the cost model at each point. Written by tables_kernel.py (`fill_tables`)."""

MARK_FIELDS = (
    ("simple", np.int8, (_B,)),  # every link of the boundary has a port of its own
    ("shares", np.int8, (_B,)),  # the memory below holds tiles of other operands too
    ("always_buffered", np.int8, (MAX_MEMORIES,)),  # the memory has room for the next tile in every mapping
    ("steady", np.int8, (_B,)),  # greedy: one more loop below this boundary never costs the allocator more
    ("pinned", np.int8, (_B,)),  # greedy: everything is kept below this boundary
    ("filled", np.int8, (_B,)),  # greedy: the level takes loops until one does not fit
    ("contested", np.int8, (_B,)),  # greedy: decided by the whole order, known only at its end
    ("any_contested", np.int8),
    ("never_costlier", np.int8, (_O,)),  # True if more loops below the uppermost boundary never cost the allocator more
    ("possible", np.int8, (_B, _S)),  # True if the boundary may lie at the point
    ("keep_paths", np.int8),  # True if labels with different placed loops are never merged
)
"""Properties of memories and boundaries that hold for every mapping. Written by rules_kernel.py (`mark_tables`)."""

LEAST_FIELDS = (
    ("floor_energy", np.float64),  # lower bound for all mappings, known without tables: rules_kernel.py
    ("least_elements", np.float64, (_L, _S)),  # of a tile
    ("least_tile_bits", np.int64, (_O,)),  # of an innermost tile; one without boundaries: by tables_kernel.py
    ("energy_to_go", np.float64, (_B, _S)),  # energy of this boundary and those above it
    ("array_energy_to_go", np.float64, (_O, _S)),
    ("array_count_to_go", np.int64, (_O, _S)),
    ("load_to_go", np.int64, (_B, 4, _S)),  # loading time of each link
    ("adds_up", np.int8, (_B,)),  # loading over the boundary is always added to on- or off-loading
    ("most_busy_ports", np.int64),  # ports that any boundary would need in `busy_port`; may exceed the room
    ("busy_port", np.int64, (_B, MAX_BUSY_PORTS)),  # the ports concerned, -1 where there are fewer
    ("busy_to_go", np.int64, (_B, MAX_BUSY_PORTS, _S)),  # port time of this boundary and those above it
    ("traffic_to_go", np.int64, (_B, MAX_BUSY_PORTS, _S)),  # the same with the transfers of on- and off-loading
    ("joint_to_go", np.int64, (_B, MAX_BUSY_PORTS + 1, _S)),  # sum of port time and loading; NO_PORT: of loading
    ("top_port", np.int64, (_O,)),  # port of the topmost memory that reads an input or takes an output, -1 without
    ("top_whole", np.int64, (_O,)),  # cycles of the whole tensor there, IMPOSSIBLE where that cannot be
    ("top_busy", np.int64, (_O, _S)),  # repeated transfers: cycles after the first period,
    ("top_joint", np.int64, (_O, _S)),  # cycles in all,
    ("top_load", np.int64, (_O, _S)),  # cycles of one transfer,
    ("top_bandwidth", np.float64, (_O, _S)),  # average bandwidth
)
"""Minima over all larger multisets, used by bounds. Written by sums_kernel.py (`mark_tables`, `sum_tables`)."""

CLASS_FIELDS = (
    ("classes_known", np.int8),  # True if `class_of` is filled
    ("class_of", np.int32, (_B, _S)),  # equal numbers, equal class
    (
        "class_slot",
        np.int32,
        (CLASS_SLOTS,),
    ),  # scratch of `number_classes` alone: first point of a class by hash, or -1
)
"""Classes of points.

They are written by labels_kernel.py (`number_classes`) if something can still win, and used by the keys of labels.
"""

BEST_FIELDS = (
    ("best", np.float64),  # objective of the best known mapping
    ("best_share", np.float64),  # share of it from which on a bound leaves nothing that matters
    ("best_energy", np.float64),
    ("best_latency", np.float64),
    ("best_path", np.int64, (PATH_WORDS,)),
    ("best_boundary", np.int32, (_B,)),
    ("improved", np.int8),
    ("nodes", np.int64),
    ("dropped_bound", np.float64),  # least bound of the labels that were dropped
    ("broken", np.int64),  # leaves cheaper than their bound: 0 unless there is a bug
)
"""Best known mapping and bounds. Written before the first round, by `take_leaf`, and when labels are dropped."""

GENERATION_FIELDS = (
    ("generation", np.int64),
    ("current", np.int64),  # which of the two generations is expanded
    ("label_count", np.int64, (2,)),
    ("cursor", np.int64),  # next label to expand; while tables are made, next point to fill
    ("bucket", np.int32, (BUCKETS,)),  # label of a hash value, or -1
    ("slot", np.int32, (LABELS,)),  # slots of the newest labels in `bucket`
    ("slot_count", np.int64),
)
"""Generations of labels. Written and read by expansion_kernel.py."""

CANDIDATE_FIELDS = (
    ("candidate_count", np.int64, (_O,)),  # candidates of a contested boundary: points of the path where it may lie
    ("candidate", np.int32, (_O, MAX_PLACED + 1)),
    ("may_come", np.int8, (_O,)),  # True if the boundary may lie at a later loop
)
"""Scratch of one child: `gather_candidates` writes it for operands with `is_gathered`, open_kernel.py reads it."""

PORT_FIELDS = (
    ("port_open", np.int8, (MAX_PORTS,)),  # a link of the port is still open
    ("port_open_cycles", np.int64, (MAX_PORTS,)),  # least cycles of open links while the array computes
    ("port_busy_cycles", np.int64, (MAX_PORTS,)),  # cycles of known links and of links to the array in that time
    ("port_all_cycles", np.int64, (MAX_PORTS,)),  # least cycles of open links, loading included
    ("load_at_shortest", np.float64, (_O, MAX_LEVELS, 4)),  # loads if nothing stalls beyond the bound
)
"""Scratch of one child.

`bound_stall` writes the ports for `bound_ports` and `bound_traffic`; `keep_loads` writes the loads for
`shrinking_ports`.
"""

LABEL_FIELDS = (
    ("lattice", np.int32, ()),  # multiset of the loops placed so far
    ("level", np.int8, (_O,)),  # level of each operand that is being filled
    ("start", np.int32, (_O,)),  # multiset at which that level began
    ("boundary", np.int32, (_B,)),  # multiset below each boundary, -1 while open
    ("top_irrelevant", np.int32, (_B,)),  # run of irrelevant loops just below the boundary
    ("top_relevant", np.int32, (_B,)),  # run of relevant loops just below the boundary
    ("stationary", np.int32, (_O,)),  # multiset of the loops for which the array keeps an input, -1 while it may grow
    ("run_kind", np.int8, (_O,)),  # kind of the outermost loops of the level being filled
    ("run_product", np.int32, (_O,)),
    ("energy", np.float64, ()),  # energy of closed boundaries
    ("key", np.int64, (_B,)),  # numbers of a boundary that can still affect completions
    ("key_runs", np.int64, (_B,)),
    ("path", np.int64, (PATH_WORDS,)),  # loops placed so far
    ("bound", np.float64, ()),  # lower bound of the objective of every completion
    ("energy_bound", np.float64, ()),
    ("latency_bound", np.float64, ()),
)
"""State of the search.

`child_*` is the label being made: `load_child` writes it, `close_level` and `place_loop` change it, `set_keys` and
`bound_child` complete it. `store_child` copies it to one of `label_*`, which hold two generations.
"""

EXACT_DTYPE = np.dtype(
    [
        *TASK_FIELDS,
        *PATTERN_FIELDS,
        *NUMBER_FIELDS,
        *MARK_FIELDS,
        *LEAST_FIELDS,
        *CLASS_FIELDS,
        *BEST_FIELDS,
        *GENERATION_FIELDS,
        *CANDIDATE_FIELDS,
        *PORT_FIELDS,
        *[(f"child_{name}", kind, shape) for name, kind, shape in LABEL_FIELDS],
        *[(f"label_{name}", kind, (2, _N, *shape)) for name, kind, shape in LABEL_FIELDS],
    ],
    align=True,
)
