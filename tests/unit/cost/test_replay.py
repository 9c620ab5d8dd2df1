"""The cost model against a replay of the loop nest element by element, and laws of sums that are read back."""

import itertools
import random
from dataclasses import replace

from tilewright.base.errors import MappingError
from tilewright.cost.record import LayerRecord
from tilewright.hardware.core import Core, Memory, OperationalArray, Port
from tilewright.search.evaluate import evaluate, evaluate_prepared, prepare
from tilewright.search.options import SearchOptions
from tilewright.workload.layer import DimensionRelation, Layer

from tests.members import members
from tests.plain.problems import Problem
from tests.plain.replay import replay
from tests.plain.replay_cases import LINKS, attack, random_problem
from tests.plain.space import primes
from tests.plain.tally import Tally

CORRECTED = SearchOptions(model="corrected")
ENDS = (("O", "tl"), ("O", "fl"))


def one_port_each(name: str, size: int, links: list[tuple[str, str]], bits: int, costs: tuple[float, float]) -> Memory:
    """Return a memory with a port of one width for each link."""
    ports = [
        Port(f"p{i}", "read" if link[1] in ("tl", "th") else "write", bits, bits, (link,))
        for i, link in enumerate(links)
    ]
    operands = tuple(dict.fromkeys(operand for operand, _ in links))
    return Memory(name, size, *costs, operands, tuple(ports), () if name != "top" else ("D1",))


def scatter_core() -> Core:
    """Return a register of four sums of 8 bits below a memory in which a read costs 1 pJ and a write 1000 pJ."""
    sums = one_port_each("sums", 32, [("O", d) for d in ("tl", "th", "fl", "fh")], 8, (0.0, 0.0))
    top = one_port_each("top", 10**6, [("I1", "tl"), ("I2", "tl"), *ENDS], 8, (1.0, 1000.0))
    return Core("one_unit", OperationalArray((("D1", 1),), 0.0), (sums, top))


def scatter(ix: int = 4, fx: int = 3) -> Layer:
    """Return O[ox] += W[fx] * I[ix] with ox = ix + fx: each input is added to several adjacent outputs."""
    return Layer(
        "scatter",
        "Conv",
        (("O", ("OX",)), ("W", ("FX",)), ("I", ("IX",))),
        (("IX", ix), ("FX", fx)),
        (DimensionRelation("OX", (("IX", 1), ("FX", 1))),),
        (("W", 8), ("I", 8), ("O", 8), ("O_final", 8)),
    )


def words(record: LayerRecord, level: int) -> dict[str, int]:
    """Return the word accesses of outputs at a memory level."""
    return record.word_accesses["O"][level]


def test_windows_on_outputs_revisit_sums() -> None:
    """Twelve sums are written up and six of them are read back from the memory above into the register."""
    record = evaluate(scatter(), scatter_core(), LINKS, (("D1", (("FX", 1),)),), (("FX", 3), ("IX", 4)), CORRECTED)
    assert words(record, 1) == {"tl": 6, "fl": 12, "th": 0, "fh": 0}
    assert words(record, 0) == {"tl": 6, "fl": 12, "th": 12, "fh": 6}
    assert record.energy_pj == 12_022
    activities = [activity for port in record.ports for activity in port.activities]
    moved = {(a.operand, a.level, a.direction): (a.real_cycles, a.period_count) for a in activities}
    assert moved["O", 1, "tl"] == (2, 3)  # of three outputs of a tile two were there before, in all tiles but the first


def test_windows_on_outputs_with_the_window_outside() -> None:
    """Six sums are read back if the window loop is outside.

    Four outputs are touched for each of three window positions. The next position touches three of them again.
    """
    record = evaluate(scatter(), scatter_core(), LINKS, (("D1", (("FX", 1),)),), (("IX", 4), ("FX", 3)), CORRECTED)
    assert words(record, 1) == {"tl": 6, "fl": 12, "th": 0, "fh": 0}


def test_sums_that_lanes_add_up_leave_as_partial_sums() -> None:
    """Four 16-bit sums are read 8 bits at a time before they become one final output of 8 bits."""
    register = replace(
        one_port_each("reg", 16, [("O", "tl"), ("O", "th"), ("O", "fl"), ("O", "fh")], 8, (1.0, 0.0)),
        ports=(
            Port("r", "read", 8, 8, (("O", "tl"), ("O", "th"))),
            Port("w", "write", 16, 16, (("O", "fl"), ("O", "fh"))),
        ),
    )
    top = replace(
        one_port_each("top", 10**5, [("I1", "tl"), ("I2", "tl"), *ENDS], 64, (0.0, 0.0)),
        ports=(
            Port("r", "read", 8, 64, (("I1", "tl"), ("I2", "tl"), ("O", "tl"))),
            Port("w", "write", 8, 64, (("O", "fl"),)),
        ),
    )
    core = Core("c_above", OperationalArray((("D1", 4),), 0.0), (register, top))
    layer = Layer(
        "mm",
        "Gemm",
        (("O", ("A", "B")), ("I", ("A", "C")), ("W", ("C", "B"))),
        (("A", 3), ("B", 5), ("C", 4)),
        (),
        (("W", 8), ("I", 8), ("O", 16), ("O_final", 8)),
    )
    arguments = (layer, core, LINKS, (("D1", (("C", 4),)),), (("A", 3), ("B", 5)))
    record = evaluate(*arguments, CORRECTED)
    assert words(record, 0)["th"] == 120
    assert record.latency_breakdown_cycles["temporal_stall"] == 14
    narrow = evaluate(*arguments, SearchOptions(model="corrected-wide_until_added"))
    assert words(narrow, 0)["th"] == 60


def test_windows_that_share_a_loop_are_counted_together() -> None:
    """I[x][y] with x = a + b, y = a + c touches only positions near the diagonal, 13 in this layer."""
    layer = Layer(
        "diagonal",
        "Conv",
        (("O", ("A",)), ("W", ("B", "C")), ("I", ("X", "Y"))),
        (("A", 4), ("B", 2), ("C", 2)),
        (DimensionRelation("X", (("A", 1), ("B", 1))), DimensionRelation("Y", (("A", 1), ("C", 1)))),
        (("W", 8), ("I", 8), ("O", 8), ("O_final", 8)),
    )
    inner = one_port_each("inputs", 1000, [("I1", "tl"), ("I1", "fh")], 8, (0.0, 0.0))
    top = one_port_each("top", 10**6, [("I1", "tl"), ("I2", "tl"), *ENDS], 8, (1.0, 1.0))
    core = Core("one_unit", OperationalArray((("D1", 1),), 0.0), (inner, top))
    record = evaluate(layer, core, LINKS, (), (("A", 4), ("B", 2), ("C", 2)), CORRECTED)
    touched = {(a + b, a + c) for a, b, c in itertools.product(range(4), range(2), range(2))}
    assert record.word_accesses["I"][1]["tl"] == len(touched) == 13


def test_random_affine_layers() -> None:
    """Words, transfers and energies of random layers equal the replay, with windows, shared loops and ragged lanes."""
    tally = Tally()
    for seed in range(members(125, 50)):
        tally.add(attack(seed))
    assert not tally.wrong
    assert tally.counts["replays"] > members(100, 40)
    assert tally.counts["sums come back through windows"] > members(30, 12)
    assert tally.counts["windows share loops"] > members(30, 12)
    assert tally.counts["ragged lanes"] > members(25, 10)


def in_elements(problem: Problem) -> Problem:
    """Return the problem with one width for outputs, sums and ports, so that words are elements."""
    bits = tuple((operand, 8) for operand, _ in problem.layer.precision_bits)
    memories = [
        replace(
            memory,
            size_bits=10**9,
            ports=tuple(replace(p, bandwidth_min_bits=8, bandwidth_max_bits=8) for p in memory.ports),
        )
        for memory in problem.core.memories
    ]
    return replace(
        problem,
        layer=replace(problem.layer, precision_bits=bits),
        core=replace(problem.core, memories=tuple(memories)),
    )


def outputs_of(layer: Layer) -> int:
    """Count the outputs that the loops of a layer touch."""
    windows = {relation.data_dimension: relation.terms for relation in layer.relations}
    axes = [windows.get(axis, ((axis, 1),)) for axis in dict(layer.operand_dimensions)["O"]]
    names = list(layer.size_of)
    found = set()
    for point in itertools.product(*(range(size) for size in layer.size_of.values())):
        index = dict(zip(names, point, strict=True))
        found.add(tuple(sum(c * index[d] for d, c in axis) for axis in axes))
    return len(found)


def test_what_goes_up_and_does_not_come_back_is_the_output() -> None:
    """Writes to the top memory are the outputs plus the sums that are read back.
    Two adjacent memories without lanes between them agree on the traffic of their link.
    """
    tried = 0
    for seed in range(200):
        rng = random.Random(seed)
        problem = in_elements(random_problem(rng))
        units = dict(problem.core.operational_array.dimensions)
        top = [memory for memory in problem.core.memories if "O" in memory.operands][-1]
        if set(top.served_dimensions) != set(units) or any(m.force_double_buffering for m in problem.core.memories):
            continue
        try:
            prepared = prepare(problem.layer, problem.core, LINKS, problem.unrolling, CORRECTED)
            loops = [(d, p) for d, size in prepared.spatial.temporal_sizes for p in primes(size)]
            rng.shuffle(loops)
            levels = prepared.arrays.level_count[: len(problem.layer.operands)].tolist()
            bounds = tuple((*sorted(rng.randint(0, len(loops)) for _ in range(n - 1)), len(loops)) for n in levels)
            record = evaluate_prepared(prepared, tuple(loops), bounds)
        except MappingError:
            continue
        rows = record.word_accesses["O"]
        lanes_above = prepared.arrays.spatial_start[0]
        assert rows[-1]["fl"] - rows[-1]["tl"] == outputs_of(problem.layer), seed
        for m in range(len(rows) - 1):
            if lanes_above[m + 1] == lanes_above[m + 2]:
                assert (rows[m]["th"], rows[m]["fh"]) == (rows[m + 1]["fl"], rows[m + 1]["tl"]), seed
        tried += 1
    assert tried > 50


def test_the_replay_counts_a_gemm_as_by_hand() -> None:
    """The replay of 2 x 3 outputs with two products each counts twelve writes and six reads, as by hand."""
    layer = Layer(
        "mm",
        "Gemm",
        (("O", ("A", "B")), ("I", ("A", "C")), ("W", ("C", "B"))),
        (("A", 2), ("B", 3), ("C", 2)),
        (),
        (("W", 8), ("I", 8), ("O", 8), ("O_final", 8)),
    )
    top = one_port_each("top", 10**6, [("I1", "tl"), ("I2", "tl"), *ENDS], 8, (1.0, 1.0))
    core = Core("flat", OperationalArray((("D1", 1),), 0.0), (top,))
    order = (("A", 2), ("B", 3), ("C", 2))
    found = replay(layer, core, LINKS, (), dict.fromkeys(layer.operands, (order,)))
    counted = {(o, d): link.words for (o, _, d), link in found.links.items()}
    assert counted == {("O", "fl"): 12, ("O", "tl"): 6, ("I", "tl"): 4 * 3, ("W", "tl"): 6}
    assert found.distinct_outputs == 6
