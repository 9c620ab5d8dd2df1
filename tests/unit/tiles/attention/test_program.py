"""The program of a plan, compared with a walk tile by tile, and its traffic, compared with numbers by hand."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from tilewright.tiles.attention.program import CopyProblem, TileLayerProblem
from tilewright.tiles.attention.space import AttentionPlan, AttentionSpace, Sizes, TensorPlace, Tile

from tests.plain.attention import Walk
from tests.unit.tiles.attention.small_attention import attention_of, core_of, costs_of, described, shapes, with_shape

BASE = attention_of(described("decode", 1, 3))


@settings(max_examples=40, deadline=None)
@given(data=st.data(), shape=shapes(), operands=st.sampled_from([("I1", "I2", "O"), ("I1", "O")]))
def test_a_plan_runs_what_a_walk_over_its_tiles_meets(data: st.DataObject, shape, operands) -> None:  # type: ignore[no-untyped-def]
    """The program has the same layers of tiles and the same copies as a walk over all tiles.

    Program and walk agree whether the plan fits the memories.
    """
    costs = costs_of(with_shape(BASE, shape), core_of(4096, operands))
    axes = (shape.units, shape.heads, shape.queries, shape.keys)
    tile = Tile(*[data.draw(st.integers(1, size)) for size in axes])
    plans = list(AttentionSpace(shape, costs.memories, Sizes(*[(size,) for size in tile])).plans())
    plan = data.draw(st.sampled_from(plans))
    program, walk = costs.program(plan), Walk(costs, plan)
    found: Counter[TileLayerProblem | CopyProblem] = Counter()
    for problem, times in program.parts:
        found[problem] += times
    assert found == walk.done
    assert program.fits(costs.memories) == walk.fits


def encoder(queries: int, keys: int, heads: int = 1, units: int = 1):  # type: ignore[no-untyped-def]
    """Queries that see all keys, with 4 channels of 8 bits. A query, a key or an output is one word of the DRAM."""
    shape = BASE.shape
    return type(shape)(units, heads, queries, keys, 4, 4, shape.bits, ("scale",), is_causal=False)


def dram_words(shape, plan):  # type: ignore[no-untyped-def]
    """Tensor -> (words read, words written) of the DRAM."""
    costs = costs_of(with_shape(BASE, shape), core_of(65536))
    ledger = costs.of_plan(plan)
    assert ledger is not None
    return {
        tensor: (ledger.read_words[memory, tensor], ledger.written_words[memory, tensor])
        for memory, tensor in ledger.memory_pj
        if memory == "dram"
    }


SRAM, DRAM = 2, 3
HERE = TensorPlace(SRAM)


def test_traffic_by_hand_queries_outside() -> None:
    """16 queries in tiles of 4 outside 12 keys in tiles of 3: the DRAM reads keys and values 4 times, queries once.

    The output is written once. Scores and statistics of rows never reach the DRAM.
    """
    plan = AttentionPlan(Tile(1, 1, 4, 3), "queries-outer", SRAM, HERE, HERE, HERE, HERE)
    assert dram_words(encoder(16, 12), plan) == {
        "queries": (16, 0),
        "keys": (4 * 12, 0),
        "values": (4 * 12, 0),
        "output": (0, 16),
    }


def test_traffic_by_hand_keys_outside() -> None:
    """Traffic if the loop over tiles of keys is outside the loop over tiles of queries.

    12 keys are in 4 tiles of 3, and 16 queries in tiles of 4. Keys and values are read once, queries 4 times. The
    output so far is written 4 times and read 3 times. A maximum and a sum for each row are written and read 3 times.
    """
    plan = AttentionPlan(Tile(1, 1, 4, 3), "keys-outer", SRAM, HERE, HERE, HERE, HERE)
    assert dram_words(encoder(16, 12), plan) == {
        "queries": (4 * 16, 0),
        "keys": (12, 0),
        "values": (12, 0),
        "output": (3 * 16, 3 * 16 + 16),
        "statistics": (3 * 2 * 4, 3 * 2 * 4),
    }


def test_traffic_by_hand_with_all_keys_on_the_chip() -> None:
    """All keys and values stay in the SRAM, so the DRAM reads them once; the 5 heads are computed two at a time."""
    whole = TensorPlace(SRAM, True)
    plan = AttentionPlan(Tile(1, 2, 4, 3), "queries-outer", SRAM, HERE, whole, whole, HERE)
    assert dram_words(encoder(16, 12, heads=5), plan) == {
        "queries": (5 * 16, 0),
        "keys": (12, 0),
        "values": (12, 0),
        "output": (0, 5 * 16),
    }


def test_masked_tiles_are_left_out() -> None:
    """8 causal queries in tiles of 2 x 2: of 16 tiles, 10 are on or below the diagonal, and 4 begin a row."""
    shape = type(BASE.shape)(1, 1, 8, 8, 4, 4, BASE.shape.bits)
    costs = costs_of(with_shape(BASE, shape), core_of())
    plan = AttentionPlan(Tile(1, 1, 2, 2), "queries-outer", SRAM, HERE, HERE, HERE, HERE)
    layers: Counter[str] = Counter()
    for part in costs.program(plan).parts:
        if isinstance(part.problem, TileLayerProblem):
            layers[part.problem.layer] += part.times
    assert layers["scores"] == layers["values"] == 10
    assert layers["online.output"] == 6
    assert layers["online.div"] == 4
