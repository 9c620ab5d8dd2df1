"""Error bars: their rows, their table, and the calibration of their statements."""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from math import log
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilewright.base.errors import InputError
from tilewright.cli.main import main
from tilewright.results.error_bars.draws import LOW, faster_share, predicted_run, time_samples
from tilewright.results.error_bars.table import (
    ANY,
    LATENCY,
    LEVELS,
    LIMITS,
    MACHINE,
    OWN,
    POWER,
    PROGRAM,
    TABLE,
    ErrorTable,
)
from tilewright.search.options import MACHINE_CLASSES
from tilewright_evidence.court import error_table, verb
from tilewright_evidence.court.calibration import (
    ALL,
    DEVICES,
    FAR,
    SAID,
    Calibration,
    Judge,
    Pair,
    Said,
    calibration_of,
    calibrations,
    covered,
    drawn_pairs,
    judge_of,
    sides_of,
)
from tilewright_evidence.court.document import ERROR_BARS, FULL, error_bars_text, read_pages, with_blocks
from tilewright_evidence.court.error_rows import CLASS_OF_SET, ErrorRow
from tilewright_evidence.court.error_table import (
    error_table_of,
    rows_of_folder,
    table_text,
    widened_quantiles,
)
from tilewright_evidence.court.verb import SETS, accuracy

from tests.unit.evidence.court.heard import told

PAGE = Path(__file__).resolve().parents[4] / "docs" / "accuracy.md"
FULL_SETS = Path(__file__).resolve().parents[5] / "shared" / "third-party"
needs_full_sets = pytest.mark.skipif(
    not FULL_SETS.is_dir(), reason="the full sets ../shared/third-party are not beside this checkout"
)


@cache
def rows_of(is_full: bool) -> list[ErrorRow]:
    """Return the rows of the full sets or of the samples, made once for all tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(error_table, "accuracy", told)
        return rows_of_folder(FULL_SETS if is_full else None)


def test_rows_are_those_that_the_cost_model_predicts() -> None:
    """Error bars use only rows that the cost model predicts, without rows of uncertain work or near fitted rows."""
    rows = rows_of(False)
    assert {row.set_name for row in rows} == set(CLASS_OF_SET) <= set(SETS)
    assert {row.device_class for row in rows} == set(MACHINE_CLASSES) - {ANY}
    assert not [row for row in rows if "q or" in row.program or "traced" in row.program or "attention" in row.program]
    assert {(row.set_name, row.quantity) for row in rows if row.quantity != LATENCY} == {("eyeriss_v1", POWER)}
    assert {row.limit for row in rows if row.quantity == LATENCY} == set(LIMITS)


def test_a_row_with_keys_counts_with_and_without_them() -> None:
    """A measurement on hardware with keys for waiting gives two rows, predicted with these keys and without them.

    A measurement on hardware without such keys gives one row.
    """
    rows = rows_of(False)
    counts = {
        name: tuple(sum(row.has_keys == has_keys for row in rows if row.set_name == name) for has_keys in (True, False))
        for name in CLASS_OF_SET
    }
    for name in ("gemmini-rtl", "tpu-v6e", "tenstorrent_gemm"):
        assert counts[name][0] == counts[name][1] > 0
    assert counts["amd_xdna_gemm"] == (0, 10)
    assert counts["eyeriss_v1"] == (0, 16)


@needs_full_sets
def test_the_table_is_made_of_the_full_sets() -> None:
    """The table in the package equals the one made from the full sets."""
    assert table_text(rows_of(True)) == TABLE.read_text()


@needs_full_sets
@pytest.mark.slow
def test_the_page_has_the_calibration() -> None:
    """docs/accuracy/error-bars.md has the calibration that the document module writes."""
    page = read_pages(PAGE)
    heard = accuracy(list(CLASS_OF_SET), data=FULL_SETS)
    assert with_blocks(page, FULL, {ERROR_BARS: error_bars_text(heard)}) == page


def test_the_command_prints_the_calibration(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command prints the calibration by both judges; wrong judges and sets with too few machines are refused."""
    monkeypatch.setattr(verb, "PAIR_DRAWS", 1)
    for judge, words in (("held-out", "without the rows of its machines"), ("package", "by the table of the package")):
        assert main(["accuracy", "gemmini-rtl", "--package-samples", "--error-bars", judge]) == 0
        text = capsys.readouterr().out
        assert f"1 random draw; each pair is judged {words}" in text
        assert "two machines of a class, one shape" in text
    assert main(["accuracy", "gemmini-rtl", "--package-samples", "--error-bars", "package", "--json"]) == 0
    (_, found) = json.loads(capsys.readouterr().out)
    assert [one["kind"] for one in found["error_bars"] if one["has_keys"]][-1] == ALL
    assert main(["accuracy", "tpu-v6e", "--package-samples", "--error-bars", "held-out"]) == 2
    assert "at least 4 machines" in capsys.readouterr().err
    assert main(["accuracy", "timeloop-points", "--package-samples", "--error-bars", "package"]) == 2
    assert "that the cost model predicts" in capsys.readouterr().err
    with pytest.raises(InputError, match="did you mean 'held-out'"):
        accuracy(["gemmini-rtl"], package_samples=True, error_bars="heldout")


@needs_full_sets
def test_statements_are_calibrated() -> None:
    """Statements with a probability of 90 % are right in at least 85 % of cases, for every kind of pair and every draw.
    At least half of the pairs with a ratio above 1.3 get such a statement if they have keys of waiting.
    """
    judge = Judge(rows_of(True))
    found = calibrations(judge, 2)
    assert all(one.right >= 0.85 <= one.right_in_band for one in found)  # type: ignore[operator]
    assert all(one.least_right >= 0.85 for one in found)  # type: ignore[operator]
    assert all(one.least_told >= 0.5 for one in found if one.has_keys or one.kind == ALL)  # type: ignore[operator]
    assert all(covered(judge, has_keys).inside >= 0.8 for has_keys in (True, False))


def test_a_pair_is_judged_without_its_machines() -> None:
    """The table for a pair has no row of its two machines."""
    rows = rows_of(False)
    judge = Judge(rows)
    machines = sorted({row.machine for row in rows if row.device_class == "host-driven-array"})[:2]
    table = judge.table_without(*machines)
    left = [row for row in rows if row.machine not in machines and row.quantity == LATENCY and row.has_keys]
    assert sum(cell.rows for key, cell in table.cells.items() if key[:2] == (ANY, True)) == len(left)
    assert judge.table_without(*reversed(machines)) is table


def row(machine: str, predicted: float, measured: float, **others: object) -> ErrorRow:
    """Return a row of a machine with many cores, limited by its array."""
    made = ErrorRow("tenstorrent_gemm", "many-core", machine, "p", "shape", LATENCY, True, "array", predicted, measured)
    return replace(made, **others)  # type: ignore[arg-type]


def test_statements_of_rows_are_those_of_runs() -> None:
    """A pair of rows has the probability that `compare` gives to two runs of one layer."""
    table = error_table_of(rows_of(False))
    for ratio in (0.5, 0.9, 1.0, 1.2, 3.0):
        pair = Pair(DEVICES, row("a", 1000.0, 900.0), row("b", 1000.0 * ratio, 800.0))
        said = Judge([], table).said_on(pair)
        runs = [predicted_run(one.machine, one.device_class, [_terms(one.predicted)]) for one in pair[1:]]
        share = faster_share(*(time_samples(run, table) for run in runs))
        assert said.probability == pytest.approx(max(share, 1 - share), abs=0.02)
        assert said.ratio == 9 / 8
        if ratio != 1.0:
            assert said.is_right == (ratio < 1)


def _terms(cycles: float) -> dict[str, float]:
    return {"ideal": 0.9 * cycles, "call_waiting": 0.1 * cycles}


def test_statements_are_counted() -> None:
    """Calibration counts statements of at least 90 % and those below 95 %, each with the share of right ones.

    For pairs with a ratio above 1.3, it has the share that gets a statement.
    """
    draws = [
        [Said(0.99, True, 4.0), Said(0.92, True, 1.5), Said(0.92, False, 1.1), Said(0.6, False, 1.4)],
        [Said(0.95, True, 1.2), Said(0.7, True, 3.0)],
    ]
    assert calibration_of(draws, ALL, True) == Calibration(
        *(ALL, True, 6, 4, 0.75, pytest.approx(2 / 3), 2, 0.5),
        *(4, 0.5, 0.0, 2, 0.5),
    )
    assert calibration_of([[Said(0.6, True, 1.1)]], ALL, True).right is None


def test_pairs_have_rows_of_their_kind() -> None:
    """The two rows of a pair of machines have the same program and group. Another seed draws other pairs."""
    sides = sides_of(rows_of(False), True)
    pairs = list(drawn_pairs(sides, 0))
    assert pairs == list(drawn_pairs(sides, 0)) != list(drawn_pairs(sides, 1))
    for pair in pairs:
        one, other = pair.first, pair.second
        assert one.has_keys
        assert other.has_keys
        if pair.kind == DEVICES:
            assert (one.program, one.group) == (other.program, other.group)
            assert one.machine != other.machine
    assert any(pair.kind == DEVICES for pair in pairs)


@given(st.lists(st.floats(-2, 2), min_size=2, max_size=40), st.floats(1.0, 4.0))
def test_wider_errors_have_wider_quantiles(errors: Sequence[float], stretch: float) -> None:
    """Quantiles rise with their level, and scale and shift with the errors."""
    values = np.array(errors)
    found = widened_quantiles(values, np.ones(len(values)))
    assert np.all(np.diff(found) >= -1e-12)
    wider = widened_quantiles(stretch * values + 1.0, np.ones(len(values)))
    assert wider == pytest.approx(stretch * found + 1.0, abs=1e-9)


@given(st.lists(st.floats(-2, 2), min_size=3, max_size=12, unique=True), st.integers(2, 5))
def test_more_errors_have_narrower_tails(errors: Sequence[float], times: int) -> None:
    """More copies of the same errors give narrower tails."""
    once, often = (widened_quantiles(np.array(own), np.ones(len(own))) for own in (errors, list(errors) * times))
    assert often[-1] <= once[-1] + 1e-12
    assert often[0] >= once[0] - 1e-12


def test_quantiles_are_ranks_over_the_number_plus_one() -> None:
    """The least of 19 errors has the level 5 %, the largest 95 %."""
    found = widened_quantiles(np.arange(19.0), np.ones(19))
    assert found[LEVELS.index(0.05)] == 0
    assert found[LEVELS.index(0.5)] == 9
    assert found[LEVELS.index(0.95)] == pytest.approx(18)
    assert found[0] < -1


def test_machines_that_differ_more_are_said_to() -> None:
    """Offsets of machines are attributed to the machine, scatter to the rows, and a common offset to the program."""

    def parts_of(offset: float, scatter: float, common: float) -> dict[str, float]:
        rows = [
            row(machine, 100.0, 100.0 * float(np.exp(common + sign * offset + scatter * (place - 4.5) / 4.5)))
            for machine, sign in (("a", 1), ("b", -1))
            for place in range(10)
        ]
        others = [replace(one, program="q", measured=one.predicted * float(np.exp(one.error + 1e-6))) for one in rows]
        table: ErrorTable = error_table_of([*rows, *others])
        cell = table.cell("many-core", True, "array")
        return {part: cell.quantile(part, 1 - LOW) for part in (PROGRAM, MACHINE, OWN)}

    assert parts_of(0.5, 0.0, 0.0)[MACHINE] > 0.5 > 0.01 > parts_of(0.0, 0.5, 0.0)[MACHINE]
    assert parts_of(0.0, 0.5, 0.0)[OWN] > 0.3 > 0.01 > parts_of(0.5, 0.0, 0.0)[OWN]
    assert parts_of(0.0, 0.0, log(2))[PROGRAM] == pytest.approx(log(2), abs=0.01)


def test_one_machine_has_no_table() -> None:
    """Rows of too few machines are refused, because they do not show how machines differ."""
    with pytest.raises(InputError, match="at least two machines"):
        error_table_of([row("a", 1.0, 1.1), row("a", 1.0, 1.2)])
    with pytest.raises(InputError, match="at least 4 machines"):
        judge_of([row(machine, 1.0, 1.1) for machine in ("a", "b", "c")])
    assert FAR > 1 > SAID
