"""The Timeloop reading: equal to the source on the sample, and counts of small cases."""

from pathlib import Path
from typing import Any

import pytest
from tilewright.cli.main import main
from tilewright_evidence.court.case import DATA, set_files
from tilewright_evidence.court.timeloop import TIMELOOP, byte_pj, counts_of, last_digit, prepare

Loops = list[tuple[str, int]]


def mapped(layer: dict[str, int], inner: Loops, outer: Loops) -> Any:
    """Return the counts of a mapping with loops at the accumulator and in DRAM, without unrolling."""
    sizes = dict.fromkeys(("B", "K", "C", "OY", "OX", "FY", "FX", "stride_x", "stride_y"), 1) | layer
    names = ("registers", "accumulator", "scratchpad", "dram")
    loops = dict(zip(names, ([], inner, [], outer), strict=True))
    return counts_of(sizes, [{"memory": name, "temporal": loops[name], "spatial": []} for name in names])


def test_every_figure_of_the_sample_is_the_source_s() -> None:
    """Cycles of the sample equal the source, and energies equal it to the last printed digit."""
    cases = [one.case({}) for one in prepare(set_files(DATA / TIMELOOP.name, TIMELOOP.patterns))]
    assert len(cases) == 72
    assert all(case.equal and not case.breaks_bound for case in cases)


@pytest.mark.parametrize(
    ("outer", "inputs"),
    [
        ([("OX", 4)], 3 + 3 * 1),  # the window slides by one
        ([("K", 2), ("OX", 4)], 3 * 4),  # it stands still in between: all is loaded again
        ([("OX", 4), ("K", 2)], 2 * (3 + 3)),  # back to the start for each K
        ([("OX", 4), ("C", 2)], 2 * (3 + 3)),
    ],
)
def test_a_window_is_reused_while_it_goes_on(outer: Loops, inputs: int) -> None:
    """A sliding window of three inputs is reused while only its row advances."""
    size = dict(outer)
    layer = {"K": size.get("K", 1), "C": size.get("C", 1), "OX": 4, "FX": 3}
    assert mapped(layer, [("FX", 3)], outer).input_fills == inputs


def test_the_second_iteration_stands_for_the_last() -> None:
    """K inside FX inside OX: the step to the next OX moves no input, because the second FX already holds that input."""
    assert mapped({"OX": 7, "FX": 3, "K": 2}, [], [("K", 2), ("FX", 3), ("OX", 7)]).input_fills == 3 + 6 * 2


def test_first_partial_sums_are_not_read_back() -> None:
    """The first partial sums are not read back: an output that returns comes back once less than it leaves."""
    once = mapped({"C": 4, "OX": 4}, [("C", 4)], [("OX", 4)])
    assert (once.output_moves, once.outputs, once.updates) == (4, 4, 16)
    again = mapped({"C": 4, "OX": 4}, [], [("OX", 4), ("C", 4)])
    assert again.output_moves == 16


def test_energy_of_a_byte_is_that_of_the_register_table() -> None:
    """A byte costs 0.48746172 pJ in a register of one byte, as published, and 6.92328 pJ in 256 KiB, up to rounding."""
    assert byte_pj(1) == pytest.approx(0.48746172, abs=1e-8)
    assert byte_pj(256 * 1024) == pytest.approx(6.92328, rel=6e-4)


def test_the_last_digit_is_that_which_was_printed() -> None:
    """The last printed digit of 0.141030 J is 10^7 pJ, and that of 250582549 pJ is 1 pJ."""
    assert last_digit(250582549.0) == pytest.approx(1)
    assert last_digit(141030000000.0) == pytest.approx(10**7)


def test_an_unknown_architecture_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown architecture is refused with its name."""
    folder = tmp_path / TIMELOOP.name
    folder.mkdir()
    sample = DATA / TIMELOOP.name
    (folder / "architectures.csv").write_text((sample / "architectures.csv").read_text())
    (folder / "rows.jsonl").write_text((sample / "sample.jsonl").read_text().replace('"arch":"a', '"arch":"z'))
    assert main(["accuracy", TIMELOOP.name, "--data", str(tmp_path)]) == 2
    assert "no such architecture, got z" in capsys.readouterr().err
