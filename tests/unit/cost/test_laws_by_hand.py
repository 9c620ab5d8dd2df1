"""Small cores on which a law is nearly broken, worked out by hand."""

from dataclasses import replace

from tilewright.hardware.core import Core, Memory, OperationalArray, Port
from tilewright.mapping.constraints import Unrolling

from tests.plain.laws import record_of, scaled_bits
from tests.plain.problems import Problem
from tests.unit.cost.engine_cases import LINKS, convolution, gemm, memory

EVERY = ("tl", "fl", "th", "fh")


def own_ports(wide: int, *links: tuple[str, str]) -> tuple[Port, ...]:
    """Return a port for each link."""
    return tuple(Port(f"{o}_{d}", "read_write", 1, wide, ((o, d),)) for o, d in links)


def problem(core: Core, unrolling: Unrolling, widths: tuple[int, int, int, int], **sizes: int) -> Problem:
    """Return a matrix product under `corrected`; `widths` has the bits of W, I, partial sums and final outputs."""
    bits = tuple(zip(("W", "I", "O", "O_final"), widths, strict=True))
    return Problem("gemm", gemm(bits=bits, **sizes), core, LINKS, unrolling, "corrected")


def test_second_tiles_do_not_depend_on_the_unit_of_bits() -> None:
    """Latency is the same if all widths and sizes in bits are scaled.
    The second tile of weights needs a third of 5 bits, which is not rounded down to 1.
    """
    sums = tuple(("O", d) for d in EVERY)
    ports = (Port("th", "read", 1, 1, (("O", "th"),)), *own_ports(64, *sums[:2], sums[3], ("I2", "tl"), ("I2", "fh")))
    core = Core(
        "thirds",
        OperationalArray((("D1", 2),), 1.0),
        (
            Memory("buffer", 9, 1.0, 1.0, ("I2", "O"), ports, ("D1",)),
            Memory("top", 10**6, 1.0, 1.0, ("I2", "O"), own_ports(64, *sums[:2], ("I2", "tl")), ("D1",)),
            Memory("inputs", 10**6, 1.0, 1.0, ("I1",), own_ports(64, ("I1", "tl")), ("D1",)),
        ),
    )
    case = problem(core, (("D1", (("C", 2),)),), (1, 1, 2, 2), C=5, D=2, K=3)
    order, boundaries = (("D", 2), ("C", 3), ("K", 3)), {"O": (2, 3), "I": (3,), "W": (2, 3)}
    cycles = {record_of(scaled_bits(case, k), "corrected", order, boundaries)["latency_cycles"] for k in (1, 2, 3, 6)}
    assert cycles == {29.0}


def test_final_outputs_reach_the_top_in_full_width() -> None:
    """A final output of 16 bits, added up from 1-bit partial sums, is written in at least 16 words of one bit."""
    top = memory("top", 10**6, ("I1", "I2", "O"), ("D1",), read=1, write=1, granularity=1, top=True)
    core = Core("one", OperationalArray((("D1", 1),), 1.0), (top,))
    case = problem(core, (("D1", ()),), (8, 8, 1, 16), C=2, D=1, K=1)
    record = record_of(case, "corrected", (("C", 2),), {"O": (1,), "I": (1,), "W": (1,)})
    assert record["word_accesses"]["O"][0]["fl"] >= 16


def test_an_unrolling_by_one_means_nothing() -> None:
    """`C, 1` over an array dimension changes nothing: outputs that are summed up below take 8 bits, not 16."""
    register = Memory("register", 16, 1.0, 1.0, ("O",), own_ports(8, *(("O", d) for d in EVERY)), ())
    top = memory("top", 10**6, ("I1", "I2", "O"), ("D1",), top=True)
    core = Core(
        "ones", OperationalArray((("D1", 2),), 1.0), (register, replace(register, name="next", size_bits=32), top)
    )
    order, boundaries = (("C", 2), ("D", 2), ("K", 2)), {"O": (1, 3, 3), "I": (3,), "W": (3,)}
    figures = []
    for factors in ((), (("C", 1),)):
        case = problem(core, (("D1", factors),), (8, 8, 16, 8), C=2, D=2, K=2)
        record = record_of(case, "corrected", order, boundaries)
        figures.append((record["energy_pj"], record["latency_cycles"]))
    assert figures[0] == figures[1]


def test_partial_sums_have_their_own_width() -> None:
    """Two lanes add 1.5 products each on average; a partial sum of 16 bits is handed up in 2 words of 8 bits."""
    register = Memory("register", 16, 1.0, 1.0, ("O",), own_ports(8, *(("O", d) for d in EVERY)), ())
    top = memory("top", 10**6, ("I1", "I2", "O"), ("D1",), top=True)
    core = Core("lanes", OperationalArray((("D1", 2),), 1.0), (register, replace(register, name="next"), top))
    case = problem(core, (("D1", (("C", 2),)),), (8, 8, 16, 8), C=3, D=1, K=1)
    record = record_of(case, "corrected", (("C", 2),), {"O": (1, 1, 1), "I": (1,), "W": (1,)})
    assert record["word_accesses"]["O"][1]["fl"] == 2 * 1.5


def test_windows_of_lanes_cover_the_tensor() -> None:
    """Two lanes of 8 windows with 3 positions each need 18 inputs together, and the mapping reads at least these."""
    inputs = Memory("inputs", 10**4, 1.0, 1.0, ("I1",), own_ports(8, ("I1", "tl"), ("I1", "fh")), ("D1",))
    top = memory("top", 10**6, ("I1", "I2", "O"), ("D1", "D2"), read=8, write=8, top=True)
    core = Core("rows", OperationalArray((("D1", 3), ("D2", 2)), 1.0), (inputs, top))
    layer = convolution(OX=16, FX=3)
    case = Problem("conv", layer, core, LINKS, (("D1", (("FX", 3),)), ("D2", (("OX", 2),))), "corrected")
    record = record_of(case, "corrected", (("OX", 8),), {"O": (1,), "W": (1,), "I": (1, 1)})
    assert record["word_accesses"]["I"][1]["tl"] >= 18
