"""Data record of the exact search: the task, tables over the lattice, labels and scratch fields.

The search builds loop orders from the innermost loop outwards. The prefix of an order affects the cost of its
completions only by the multiset of its loops and by the state of its closed memory levels. The multisets are the points
of a lattice. A label is one such pair of multiset and state. A boundary of an operand separates the loops of one of its
memory levels from the loops of the next level; it is open until it is placed. docs/proofs/exact-search.md has the
proof.
"""

import numpy as np

from tilewright.cost.problem import MAX_LEVELS, MAX_LOOPS, MAX_MEMORIES, MAX_OPERANDS, MAX_PORTS
from tilewright.hardware.core import MOST_ORDERS
from tilewright.search.objective_kernel import POWER_FIELDS

MAX_SYMBOLS = 24
"""Largest number of symbols. A symbol is a distinct pair (loop dimension, prime factor)."""
MAX_LATTICE = 1 << 17
"""Largest number of lattice points (multisets of loops). The number of points is the product of (multiplicity + 1) over
the symbols. A symbol is a distinct pair (loop dimension, prime factor)."""
MAX_BOUNDARIES = 15
"""Largest number of boundaries between adjacent memory levels, summed over all operands."""
MAX_PLACED = 36
"""Largest number of loops in an order."""
MAX_BUSY_PORTS = 12
"""Largest allowed number of ports for one boundary of an operand: the ports that move data of the operand over this
boundary or any boundary above it. The search refuses a core with more such ports.
"""
LATTICE_ROW = MAX_LATTICE + 296
"""Length of a row of a table over the lattice of multisets of loops.

If the length were a power of two, entries of one point in different rows would displace each other from the caches of
the processor."""
LABELS = 1 << 19
"""Largest number of labels (partial loop orders) in one generation."""
BUCKETS = LABELS * 4
"""Limit of the number of buckets in the hash table for the newest labels (partial loop orders); a power of two."""
CLASS_SLOTS = MAX_LATTICE * 2
KNOWN_POINTS = 512
"""Largest number of known points against which a sweep tests labels (partial loop orders) while it makes them."""
PATH_WORDS, PATH_BITS = 3, 5
PATH_SYMBOLS = MAX_PLACED // PATH_WORDS

_O, _B, _L, _S, _N = MAX_OPERANDS, MAX_BOUNDARIES, MAX_BOUNDARIES + MAX_OPERANDS, LATTICE_ROW, LABELS

BEGUN, NOT_BEGUN = -1, -2
"""Values of the field `ordered` of a label (partial loop order), for a rule of loop orders (`control_kernel`).
NOT_BEGUN: no loop to which the rule applies is placed. BEGUN: such loops are placed, but none of their dimensions is in
the list of the rule."""
NO_PORT = MAX_BUSY_PORTS
"""Index of the row of `joint_to_go` for the case in which no port counts as busy."""

# Four links of a boundary. TH and FH belong to the memory below it: data to and from the memory above. TL and FL belong
# to the memory above it: data to and from the memory below.
LINK_TH, LINK_FH, LINK_TL, LINK_FL = range(4)

# The axes are those of `PROBLEM_DTYPE` and two more: the boundary (`_B`) and the lattice point (`_S`). The sizes are
# upper limits; the operating system provides memory only for entries that are written.

TASK_FIELDS = (
    *POWER_FIELDS,
    ("latency_counts", np.int8),  # True if the objective depends on latency, or the energy grows with latency
    ("free", np.int8),  # True if the search chooses the boundaries, False if the reference's greedy allocator does
    # True if boundaries are free and final outputs are wider than partial sums. Output levels then begin early.
    ("wide_final", np.int8),
    ("symbol_count", np.int64),
    ("loop_count", np.int64),
    ("lattice_size", np.int64),
    ("loop_dimension", np.int64, (MAX_LOOPS,)),  # [symbol] Loop dimension
    ("loop_size", np.int64, (MAX_LOOPS,)),  # [symbol] Number of iterations of the loop
    ("multiplicity", np.int64, (MAX_SYMBOLS,)),  # [symbol] Number of times that a complete order contains the symbol
    ("stride", np.int64, (MAX_SYMBOLS,)),  # [symbol] Increase of the point number if the symbol is added once
    ("boundary_count", np.int64),
    ("first_boundary", np.int64, (_O,)),
    ("boundary_operand", np.int64, (_B,)),
    ("boundary_level", np.int64, (_B,)),
    ("first_level", np.int64, (_O,)),  # [operand] Row of its innermost level in `elements`
    ("inexact", np.int8, (_O,)),  # [operand] True if its tile sizes are products of rounded numbers
    ("same_in_any_order", np.int8),  # True if tile sizes do not depend on the order of multiplication
)
"""Fields that describe the task of the search: loops, boundaries and objective. `new_search` writes these fields."""

PATTERN_FIELDS = (
    ("pattern_length", np.int64),
    ("pattern_dimension", np.int64, (MAX_LOOPS,)),
    ("pattern_size", np.int64, (MAX_LOOPS,)),
    ("given_length", np.int64),  # number of innermost loops that the pattern gives
    ("length", np.int64),  # number of loops of `order`
    ("order", np.int64, (MAX_LOOPS,)),  # last complete order visited; `evaluate_leaf` writes it for `matches`
)
"""Fields of the temporal ordering that loop orders must match. The fields are written before the first round of branch
and bound."""

NUMBER_FIELDS = (
    ("counts", np.int64, (MAX_SYMBOLS,)),  # [symbol] Count in the multiset of the point that is being filled
    ("cycles", np.int64, (_S,)),  # cycles of the loops of the point
    ("elements", np.float64, (_L, _S)),  # number of elements of a tile, as the allocator counts them
    ("link_energy", np.float64, (_B, _S)),  # pJ of all four links of the boundary
    ("link_bits", np.int64, (_B, 4, _S)),  # bits that the link moves in one period
    ("link_cycles", np.int64, (_B, 4, _S)),  # cycles of one transfer
    ("link_count", np.int64, (_B, 4, _S)),  # number of periods
    ("link_bandwidth", np.float64, (_B, 4, _S)),  # average bits per cycle
    ("tile_bits", np.int64, (_B, _S)),  # bits of a tile in the analysis from which latency is computed
    ("held_elements", np.int64, (_B, _S)),  # number of elements of a tile in its memory
    ("held_precision", np.int64, (_B, _S)),  # bits of one of these elements, if independent of where the level begins
    ("stays", np.int8, (_O, _S)),  # True if all loops of the point are irrelevant to the operand
    ("sums_open", np.int8, (_S,)),  # True if the point lacks a loop that is irrelevant to the output
    # Links to the array. For an input, the point is the multiset of the loops during which the array keeps its data.
    ("array_energy", np.float64, (_O, _S)),  # pJ
    ("array_count", np.int64, (_O, _S)),  # number of periods
    ("array_bandwidth", np.float64, (_O, _S)),  # average bits per cycle
    ("array_cycles", np.int64, (_O, 4)),  # cycles of one transfer
    ("output_count", np.int64, (4,)),  # periods of the links between the array and the innermost memory of the output
    ("uncertain", np.int8),  # True if a tile size is halfway between two integers, so the order decides its rounding
)
"""Fields for the numbers of the cost model at each lattice point (multiset of loops). tables_kernel.py (`fill_point`)
writes them."""

MARK_FIELDS = (
    # All these fields are truth values.
    ("simple", np.int8, (_B,)),  # the memory below is not shared, and no link of the boundary shares its port
    ("shares", np.int8, (_B,)),  # the memory below the boundary also holds tiles of other operands
    ("always_buffered", np.int8, (MAX_MEMORIES,)),  # the memory has room for the next tile in every mapping
    # The next six fields are used only with the greedy allocator of the reference.
    ("steady", np.int8, (_B,)),  # one more loop below the boundary never raises the cost that the allocator compares
    ("pinned", np.int8, (_B,)),  # the allocator always places all loops below the boundary
    ("filled", np.int8, (_B,)),  # the level below the boundary takes loops until the next loop does not fit
    ("contested", np.int8, (_B,)),  # the place of the boundary depends on the complete order
    ("any_contested", np.int8),  # at least one boundary is contested
    ("never_costlier", np.int8, (_O,)),  # all operands of the memory below the uppermost boundary are steady
    ("possible", np.int8, (_B, _S)),  # the boundary can lie at the point
    ("keep_paths", np.int8),  # labels whose loops were placed in different orders are never merged
)
"""Fields for the properties of memories and boundaries that are the same for every mapping. `mark_tables` writes them
(rules_kernel.py)."""

LEAST_FIELDS = (
    ("floor_energy", np.float64),  # pJ; lower bound for all mappings, computed without tables (rules_kernel.py)
    ("least_elements", np.float64, (_L, _S)),  # elements of a tile
    ("least_tile_bits", np.int64, (_O,)),  # bits of an innermost tile; without boundaries, by tables_kernel.py
    ("energy_to_go", np.float64, (_B, _S)),  # pJ of the boundary and the boundaries above it
    ("array_energy_to_go", np.float64, (_O, _S)),  # pJ of the link to the array
    ("array_count_to_go", np.int64, (_O, _S)),  # number of periods of the link to the array
    ("load_to_go", np.int64, (_B, 4, _S)),  # loading time of each link in cycles
    ("adds_up", np.int8, (_B,)),  # True if the loading time of the boundary is always part of on- or off-loading
    ("most_busy_ports", np.int64),  # largest number of ports of a boundary; can exceed MAX_BUSY_PORTS
    ("busy_port", np.int64, (_B, MAX_BUSY_PORTS)),  # ports of the boundary and the boundaries above it, then -1
    ("busy_to_go", np.int64, (_B, MAX_BUSY_PORTS, _S)),  # cycles of the port for all these boundaries, without loading
    ("traffic_to_go", np.int64, (_B, MAX_BUSY_PORTS, _S)),  # the same cycles, with on- and off-loading
    # Cycles of the port and of loading together; row NO_PORT has the cycles of loading alone.
    ("joint_to_go", np.int64, (_B, MAX_BUSY_PORTS + 1, _S)),
    ("top_port", np.int64, (_O,)),  # port of the topmost memory that reads the input or writes the output, or -1
    ("top_whole", np.int64, (_O,)),  # cycles of this port if the whole tensor moves once, or IMPOSSIBLE
    # Use of this port if the tensor moves in repeated transfers.
    ("top_busy", np.int64, (_O, _S)),  # cycles of all transfers after the first period
    ("top_joint", np.int64, (_O, _S)),  # cycles of all transfers
    ("top_load", np.int64, (_O, _S)),  # cycles of one transfer
    ("top_bandwidth", np.float64, (_O, _S)),  # average bits per cycle
)
"""Fields for minima that the lower bounds use. The minimum of a lattice point is taken over this point and all larger
points. A larger point is a multiset that contains all loops of this point.

`mark_tables` and `sum_tables` write the fields (sums_kernel.py); `find_floor` writes `floor_energy` (rules_kernel.py).
"""

CLASS_FIELDS = (
    ("classes_known", np.int8),  # True if `class_of` is filled
    ("class_of", np.int32, (_B, _S)),  # number of the class of the point
    (
        "class_slot",
        np.int32,
        (CLASS_SLOTS,),
    ),  # hash table that only `number_classes` uses: first point of a class, or -1
)
"""Fields for the classes of lattice points (multisets of loops). Each boundary has its own classes. All points of a
class have the same cost numbers for this boundary, apart from numbers that cannot affect the cost of completions.

`number_classes` in labels_kernel.py fills the fields before the first label is expanded. The fields stay empty if no
mapping can be better than the best known mapping. The keys of labels contain the number of the class."""

BEST_FIELDS = (
    ("best", np.float64),  # objective of the best known mapping
    ("best_share", np.float64),  # a label is dropped if its bound is at least this share of `best`
    ("best_energy", np.float64),  # pJ
    ("best_latency", np.float64),  # cycles
    ("best_path", np.int64, (PATH_WORDS,)),  # loop order
    ("best_boundary", np.int32, (_B,)),  # multiset below each boundary
    ("improved", np.int8),  # True if the search found a better mapping than the mapping known at its start
    ("nodes", np.int64),  # number of children made so far
    ("dropped_bound", np.float64),  # least bound of the dropped labels that could have improved on `best`
    ("broken", np.int64),  # number of complete orders that cost less than their bound: 0 unless there is a bug
)
"""Fields for the best known mapping and for bounds. The fields are written before each round, when a complete order is
evaluated (`take_leaf`), and when labels (partial loop orders) are made or dropped."""

KNOWN_FIELDS = (
    ("sweeps", np.int8),  # True in a sweep for a front, False in a search for a single objective
    ("known_count", np.int64),  # number of known points
    ("known_energy", np.float64, (KNOWN_POINTS,)),  # pJ, falling
    ("known_latency", np.float64, (KNOWN_POINTS,)),  # cycles, growing
    ("known_tolerance", np.float64),  # 1 plus the largest miss of a label that counts as matched
    ("known_floor_energy", np.float64),  # pJ; lower bound for all mappings of the layer
    ("known_floor_latency", np.float64),  # cycles; lower bound for all mappings of the layer
    ("known_share", np.float64),  # 1 plus the largest miss of a label that was dropped as matched
)
"""Fields for the known points of a front. A sweep writes them before it begins; known_kernel.py reads them."""

GENERATION_FIELDS = (
    ("generation", np.int64),
    ("current", np.int64),  # index (0 or 1) of the generation that is being expanded
    ("label_count", np.int64, (2,)),  # [generation] Number of labels
    ("cursor", np.int64),  # next label to expand; while the tables are filled, next lattice point
    ("width", np.int64),  # number of labels that a round keeps in each generation; 0: the caller chooses the labels
    ("ranked", np.float64, (LABELS,)),  # bounds of the labels of which `keep_best_labels` chooses
    ("bucket_count", np.int64),  # number of buckets in use, a power of two
    ("bucket", np.int32, (BUCKETS,)),  # hash table of the newest labels: number of a label plus 1, or 0
    ("slot", np.int32, (LABELS,)),  # indices in `bucket` of the newest labels
    ("slot_count", np.int64),
)
"""Fields for the two stored generations of labels (partial loop orders). expansion_kernel.py writes and reads them."""

CANDIDATE_FIELDS = (
    ("candidate_count", np.int64, (_O,)),  # number of candidates
    ("candidate", np.int32, (_O, MAX_PLACED + 1)),  # points on the path at which the contested boundary can lie
    ("may_come", np.int8, (_O,)),  # True if the boundary can also lie above a loop that is not placed yet
)
"""Scratch fields for candidates of contested boundaries. A candidate is a possible position of a boundary in the child,
which is the partial loop order that is being made.

`gather_candidates` writes the candidates of each operand for which `is_gathered` is true. open_kernel.py reads them."""

PORT_FIELDS = (
    ("port_open", np.int8, (MAX_PORTS,)),  # True if the port serves a link of an open boundary (open link)
    ("port_open_cycles", np.int64, (MAX_PORTS,)),  # least cycles of open links while the array computes
    # Cycles of known links and of links to the array while the array computes.
    ("port_busy_cycles", np.int64, (MAX_PORTS,)),
    ("port_all_cycles", np.int64, (MAX_PORTS,)),  # least cycles of open links, loading included
    # Loading times in cycles if the stall is only as long as its lower bound.
    ("load_at_shortest", np.float64, (_O, MAX_LEVELS, 4)),
)
"""Scratch fields for the partial loop order that is being made: times of ports, and loading times of links.

`bound_stall` writes the times of ports, which `bound_ports` and `bound_traffic` read. `keep_loads` writes the loading
times, which `shrinking_ports` reads."""

LABEL_FIELDS = (
    ("lattice", np.int32, ()),  # multiset of the loops placed so far
    ("level", np.int8, (_O,)),  # current level of each operand: the level that receives the next loop
    ("start", np.int32, (_O,)),  # multiset of the loops below the current level
    ("boundary", np.int32, (_B,)),  # multiset of the loops below each boundary, -1 while the boundary is open
    ("top_irrelevant", np.int32, (_B,)),  # product of the consecutive irrelevant loops just below the boundary
    ("top_relevant", np.int32, (_B,)),  # product of the consecutive relevant loops just below the boundary
    # Multiset of the loops during which the array keeps the data of an input, -1 while the multiset can still grow.
    ("stationary", np.int32, (_O,)),
    ("run_kind", np.int8, (_O,)),  # kind of the outermost consecutive loops of one kind in the current level
    ("run_product", np.int32, (_O,)),  # product of these loops
    # Rules of the control (`control_kernel`): place of the outermost loop in each loop order; BEGUN or NOT_BEGUN.
    ("ordered", np.int8, (MOST_ORDERS,)),
    ("energy", np.float64, ()),  # pJ of the closed boundaries
    ("key", np.int64, (_B,)),  # numbers of a boundary that can still affect the cost of completions
    ("key_runs", np.int64, (_B,)),  # further such numbers: stalls, or products of consecutive loops
    ("path", np.int64, (PATH_WORDS,)),  # loops placed so far
    ("bound", np.float64, ()),  # lower bound of the objective of every completion
    ("energy_bound", np.float64, ()),  # pJ
    ("latency_bound", np.float64, ()),  # cycles
)
"""Fields of a label, a partial loop order.

The fields `child_*` hold the label that is being made (the child). `load_child` writes them, `close_level` and
`place_loop` change them, and `set_keys` and `bound_child` complete them. `store_child` copies them to the fields
`label_*`, which hold two generations of labels."""

EXACT_DTYPE = np.dtype(
    [
        *TASK_FIELDS,
        *PATTERN_FIELDS,
        *NUMBER_FIELDS,
        *MARK_FIELDS,
        *LEAST_FIELDS,
        *CLASS_FIELDS,
        *BEST_FIELDS,
        *KNOWN_FIELDS,
        *GENERATION_FIELDS,
        *CANDIDATE_FIELDS,
        *PORT_FIELDS,
        *[(f"child_{name}", kind, shape) for name, kind, shape in LABEL_FIELDS],
        *[(f"label_{name}", kind, (2, _N, *shape)) for name, kind, shape in LABEL_FIELDS],
    ],
    align=True,
)
