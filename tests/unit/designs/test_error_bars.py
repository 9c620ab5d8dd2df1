"""Error bars of designs: columns of the table, sentences on the fastest design, and refused spaces."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilewright
from tilewright.base.errors import InputError
from tilewright.cli.main import main
from tilewright.designs.answer import Answer, answer_of
from tilewright.designs.columns import EXPECTED, is_column
from tilewright.designs.error_bars import check_space, with_error_bars
from tilewright.designs.explore import explored
from tilewright.designs.space_reader import read_space
from tilewright.results.error_bars.draws import ends, faster_share, predicted_run, time_samples

TINY = Path("tests/workflow/tiny").resolve()
KEYS: dict[str, Any] = {
    "accelerator": str(TINY / "hardware" / "narrow.yaml"),
    "networks": [str(TINY / "workload" / "two_layers.yaml")],
    "mapping": str(TINY / "mapping" / "free.yaml"),
    "axes": {"width": {"path": "memories.memory.ports.r_port_1.bandwidth_max", "values": [8, 16, 128]}},
    "objectives": ["energy_pj", "latency_cycles"],
    "options": {"lpf_limit": 3},
}


@pytest.fixture(scope="module")
def answer() -> Answer:
    """Return the answer to a space of three designs, with error bars."""
    space = read_space(KEYS)
    check_space(space, "host-driven-array")
    return with_error_bars(answer_of(explored(KEYS, space, 1, lambda count: None)), "host-driven-array")


def test_bars_are_those_of_the_terms_of_the_latency(answer: Answer) -> None:
    """The bars of a design are those of one layer with the same latency terms; the column names are reserved."""
    rows = answer.exploration.table.to_dict("records")
    for row in rows:
        names = [name for name in row if name.startswith("latency_") and name not in ("latency_cycles", "latency_s")]
        terms = {name.removeprefix("latency_").removesuffix("_cycles"): row[name] for name in names}
        run = predicted_run("a design", "host-driven-array", [terms])
        assert [row[name] for name in EXPECTED] == pytest.approx(ends(time_samples(run)), rel=0.03)
        assert sum(terms.values()) == pytest.approx(row["latency_cycles"])
    assert all(is_column(name) for name in EXPECTED)


def test_the_fastest_design_is_named_with_its_rivals(answer: Answer) -> None:
    """The text has the probability between the two fastest designs, and the number of designs with at least 10 %."""
    notes = " ".join(answer.error_notes)
    rows = answer.exploration.table.sort_values("latency_cycles").to_dict("records")
    names = [row["design"] for row in rows]
    assert f"{names[0]} has the least predicted latency" in notes
    assert f"where {names[1]} has the second-least predicted latency" in notes
    assert "of 2 other designs" in notes
    assert answer.error_notes[0] in answer.notes


def test_equal_designs_are_told_to_be_even() -> None:
    """Two designs with equal latency have a probability of 50 %."""
    keys = KEYS | {"axes": {"width": {"path": "memories.memory.ports.r_port_1.bandwidth_max", "values": [128, 256]}}}
    space = read_space(keys)
    found = explored(keys, space, 1, lambda count: None)
    latencies = found.table["latency_cycles"].tolist()
    told = " ".join(with_error_bars(answer_of(found), "any").error_notes)
    run = predicted_run("a", "any", [{"ideal": latencies[0]}])
    other = predicted_run("b", "any", [{"ideal": latencies[1]}])
    share = faster_share(time_samples(run), time_samples(other))
    if latencies[0] == latencies[1]:
        assert share == pytest.approx(0.5, abs=0.02)
        assert any(f"with {percent}% probability" in told for percent in (49, 50, 51))
    else:
        assert "probability" in told


def test_python_and_the_command_have_the_columns(tmp_path: Path) -> None:
    """`explore` in Python adds the columns of error bars only if a class is given."""
    table = tilewright.explore(KEYS, error_bars="any")
    assert np.all(table[EXPECTED[0]] < table[EXPECTED[1]])
    assert EXPECTED[0] not in tilewright.explore(KEYS)


def test_what_has_no_measured_errors_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Unknown classes, other models and designs with several cores are refused."""
    with pytest.raises(InputError, match="no such class of machines"):
        tilewright.explore(KEYS, error_bars="gpu")
    with pytest.raises(InputError, match="only for the model corrected"):
        tilewright.explore(KEYS | {"options": {"model": "zigzag-3.9.1", "lpf_limit": 3}}, error_bars="any")
    assert main(["explore", "config/space/equal_cores.yaml", "--error-bars", "any"]) == 2
    assert "only for designs with one core" in capsys.readouterr().err
