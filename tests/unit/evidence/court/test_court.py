"""`tilewright accuracy`: samples, constants, tables, files, and messages about wrong input."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas
import pytest
from tilewright import accuracy
from tilewright.cli.main import main
from tilewright_evidence.court import document
from tilewright_evidence.court.case import DATA, Case, set_files
from tilewright_evidence.court.document import (
    FULL,
    README,
    SAMPLE,
    SUMMARY,
    blocks,
    mark,
    read_pages,
    with_blocks,
)
from tilewright_evidence.court.fit import draw, fitted_constants, redrawn
from tilewright_evidence.court.verb import SETS
from tilewright_evidence.court.verdict import PLAINER, parts_of, set_text, table

from tests.unit.evidence.court.heard import heard_of, told

pytestmark = pytest.mark.usefixtures("unpainted")

PAGE = Path(__file__).resolve().parents[4] / "docs" / "accuracy.md"
FULL_SETS = Path(__file__).resolve().parents[5] / "shared" / "third-party"

LONG_FITS = ("gemmini-rtl", "tpu-v6e")
"""Sets with long fits. The set `tenstorrent_gemm` evaluates mappings too, but has fewer rows."""


@pytest.fixture
def made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the page be written from comparisons that are made once."""
    monkeypatch.setattr(document, "accuracy", told)


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG_FITS)) for name in SETS])
def test_constants_are_those_that_the_rule_gives(name: str) -> None:
    """A fit to the rows that the rule chooses gives the constants of the code, at most seven for each device."""
    court_set = SETS[name]
    assert all(len(constants) <= 7 for constants in court_set.constants.values())
    if court_set.constants:
        rows = court_set.prepare(set_files(DATA / name, court_set.patterns))
        assert fitted_constants(court_set, rows) == court_set.values()


@pytest.mark.usefixtures("made_once")
def test_the_page_has_the_numbers_of_the_samples() -> None:
    """docs/accuracy/measurements.md has the numbers of the samples, as the document module writes them."""
    page = read_pages(PAGE)
    assert with_blocks(page, SAMPLE, blocks(SAMPLE, None)) == page


def test_the_readme_has_the_summary_of_the_page() -> None:
    """The summary table of README.md equals that of docs/accuracy.md, and the text states its range and worst part."""
    begin, end = mark(FULL, SUMMARY)
    tables = [path.read_text().split(begin)[1].split(end)[0] for path in (PAGE, README)]
    assert tables[0] == tables[1]
    *medians, worst = (float(text) for text in re.findall(r"\| ([0-9.]+)% \| [0-9]+% \|", tables[0]))
    (parts,) = re.findall(r"\*\*worst\*\* of ([0-9]+) parts", tables[0])
    of_rows = f"is {min(medians):.0f} to {max(medians):.0f} %"
    of_worst = f"**The sets are divided into {parts} parts; in the worst part, the median error is {worst:.0f} %**"
    assert f"{of_rows}. {of_worst}" in README.read_text()


@pytest.mark.skipif(not FULL_SETS.is_dir(), reason="the full sets ../shared/third-party are not beside this checkout")
@pytest.mark.usefixtures("made_once")
def test_the_page_has_the_numbers_of_the_full_sets() -> None:
    """docs/accuracy.md has the numbers of the full sets, as the document module writes them."""
    page = read_pages(PAGE)
    assert with_blocks(page, FULL, blocks(FULL, FULL_SETS)) == page


@pytest.mark.skipif(not FULL_SETS.is_dir(), reason="the full sets ../shared/third-party are not beside this checkout")
def test_the_full_sets_are_judged_as_the_page_says() -> None:
    """Each row of the full sets has a valid bound; at most a tenth is fitted, and fitted rows are not scored."""
    heard = heard_of(FULL_SETS)
    assert {one.court_set.name: len(one.cases) for one in heard} == {
        **{"gemmini-rtl": 1082 + 120, "timeloop-points": 2 * 2394, "gpu-gemm": 3480},
        **{"tpu-v6e": 2110 + 1655, "eyeriss_v1": 5 * 11, "tenstorrent_gemm": 418, "amd_xdna_gemm": 10},
        **{"vidur_layers": 2184, "llmservingsim_layers": 1404, "llmservingsim_attention": 4580},
        **{"aiconfigurator_attention": 880 + 827, "llmcompass": 11},
    }
    for one in heard:
        assert all(case.bound > 0 and (case.explained or not case.breaks_bound) for case in one.cases)
        assert 10 * sum(case.fitted for case in one.cases) <= len(one.cases)
        frame = table(one.cases)
        assert not set(frame[frame["unseen"]]["group"]) & set(frame[frame["fitted"]]["group"])
        for part in one.parts:
            assert part.errors["estimate"].rows == part.rows - part.fitted - part.related


def test_no_bound_is_broken() -> None:
    """Every measurement of the samples is above its bound or explained."""
    heard = heard_of(None)
    assert [one.court_set.name for one in heard] == list(SETS)
    assert all(part.unexplained == 0 for one in heard for part in one.parts)


def test_files_have_a_row_for_each_case_and_a_figure(tmp_path: Path) -> None:
    """The output folder has a table with a row for each case, the figures as JSON, and a figure of the set."""
    (heard,) = accuracy(["timeloop-points"], package_samples=True, output=tmp_path)
    table = pandas.read_csv(tmp_path / "court.csv")
    assert len(table) == len(heard.cases)
    assert set(table["part"]) == {"cycles", "energy"}
    (found,) = json.loads((tmp_path / "court.json").read_text())
    assert [part["equal"] for part in found["parts"]] == [36, 36]
    assert (tmp_path / "timeloop-points.svg").stat().st_size > 10_000


def test_wrong_input_is_told_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Unknown sets, missing folders and wrong rows are reported with their place."""
    assert main(["accuracy", "gemini-rtl"]) == 2
    assert "did you mean 'gemmini-rtl'" in capsys.readouterr().err
    assert main(["accuracy", "--data", str(tmp_path / "none")]) == 2
    assert "no such folder" in capsys.readouterr().err
    (tmp_path / "gemmini-rtl").mkdir()
    assert main(["accuracy", "gemmini-rtl", "--data", str(tmp_path)]) == 2
    assert "the folder has no files with rows" in capsys.readouterr().err
    (tmp_path / "gemmini-rtl" / "rows.jsonl").write_text('{"id": 3}\nnothing\n')
    assert main(["accuracy", "gemmini-rtl", "--data", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "rows.jsonl:1 id: wrong or missing, got 3 (allowed: text)" in said
    assert "rows.jsonl:2 no JSON" in said


def test_what_is_wrong_within_a_row_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Missing sizes and a wrong mapping within a row are reported with their place."""
    (tmp_path / "gemmini-rtl").mkdir()
    row = json.loads((DATA / "gemmini-rtl" / "sample.jsonl").read_text().splitlines()[0])
    del row["layer"]["K"]
    row["mapping"][0]["temporal"] = [["K"]]
    (tmp_path / "gemmini-rtl" / "rows.jsonl").write_text(json.dumps(row) + "\n")
    assert main(["accuracy", "gemmini-rtl", "--data", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "rows.jsonl:1 layer.K: wrong or missing" in said
    assert "rows.jsonl:1 mapping: wrong or missing" in said


def test_every_column_of_the_table_is_documented() -> None:
    """docs/accuracy/measurements.md names every column of the table."""
    (heard,) = (one for one in heard_of(None) if one.court_set.name == "timeloop-points")
    page = read_pages(PAGE)
    assert [name for name in table(heard.cases).columns if f"`{name}`" not in page] == []


def test_a_set_that_is_not_in_the_folder_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The sample of the package replaces a set that is missing in the folder, with a notice."""
    assert main(["accuracy", "--data", str(tmp_path), "--json"]) == 0
    said = capsys.readouterr()
    assert "the sample of the package is used" in said.err
    assert all(one["is_sample"] for one in json.loads(said.out))


def made_up(identity: str, **changes: Any) -> Case:
    """Return a measurement with an estimate that is wrong by a tenth."""
    given: dict[str, Any] = {"identity": identity, "part": "all", "group": identity, "measured": 10.0, "bound": 5.0}
    return Case(**given | {"estimate": 11.0, "roofline": 4.0, "limited_by": "bus", "fitted": False} | changes)


def test_a_row_of_a_layer_that_was_fitted_is_not_unseen() -> None:
    """A row of a fitted layer is not scored, and the table marks only the other rows as unseen."""
    cases = [made_up("a", fitted=True), made_up("a2", group="a", estimate=90.0), made_up("b")]
    (part,) = parts_of(cases)
    assert (part.rows, part.fitted, part.related) == (3, 1, 1)
    assert part.errors["estimate"].high == pytest.approx(0.1)
    assert table(cases)["unseen"].tolist() == [False, False, True]


@pytest.mark.parametrize(("bound", "broken"), [(9.0, False), (10.1, True), (float("nan"), True), (0.0, True)])
def test_a_row_without_a_bound_breaks_it(bound: float, broken: bool) -> None:
    """A row without a valid bound counts as a row that breaks its bound."""
    assert made_up("a", bound=bound).breaks_bound == broken


def test_other_draws_fit_other_rows_and_are_the_same_each_time() -> None:
    """Random draws fit at most as many rows as the rule, in whole layers, and a repeated draw gives the same result."""
    court_set = SETS["gpu-gemm"]
    court_set = replace(court_set, constants={"h100": court_set.constants["h100"]})
    rows = court_set.prepare(set_files(DATA / court_set.name, court_set.patterns))
    layers = sorted({row.drawn_by for row in rows if not row.is_fitted})[::2]
    layers += sorted({row.drawn_by for row in rows if row.is_fitted})[::4]
    rows = [row for row in rows if row.device == "h100" and row.drawn_by in layers]
    fitted = sum(row.is_fitted for row in rows)
    drawn = [draw(court_set, rows, number) for number in range(4)]
    assert all(0 < len(one) <= fitted for one in drawn)
    assert len({tuple(map(id, one)) for one in drawn}) > 1
    for one in drawn:
        texts = {row.drawn_by for row in one}
        assert len(one) == sum(row.drawn_by in texts for row in rows)
    found = redrawn(court_set, rows, 2)
    assert found == redrawn(court_set, rows, 2)
    assert {one.part for one in found} == {"h100 bf16", "h100 fp8"}
    assert all(one.low <= one.middle <= one.high and 0 <= one.worse <= 1 for one in found)
    assert redrawn(SETS["timeloop-points"], [], 4) == []


def test_published_errors_stand_with_the_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Published errors are printed with their source, and random draws with median and quantiles."""
    (sample,) = set_files(DATA / "gpu-gemm", SETS["gpu-gemm"].patterns)
    (tmp_path / "gpu-gemm").mkdir()
    head, *lines = sample.read_text().splitlines(keepends=True)
    (tmp_path / "gpu-gemm" / sample.name).write_text(head + "".join(lines[::8]))
    words = ["accuracy", "gpu-gemm", "--data", str(tmp_path), "--draws", "1"]
    assert main(words) == 0
    text = capsys.readouterr().out
    assert "published error of LLMCompass for other data: 10.9 % per operator" in text
    assert "(median of 1 draw; 10 % and 90 % quantile: " in text
    assert main([*words, "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)
    assert one["published"][0]["tool"] == "LLMCompass"
    assert {"part", "count", "low", "middle", "high", "worse"} == set(one["draws"][0])
    for name in ("gemmini-rtl", "gpu-gemm", "tpu-v6e"):
        assert all(published.source and published.of for published in SETS[name].published)


def test_simpler_predictions_are_printed_with_all_their_errors() -> None:
    """Each simpler prediction has its median, 90 % quantile, bias and rank, computed here a second time.
    A part without a prediction has blanks.
    """
    names = "abcdefg"
    cases = [
        made_up(name, part=part, measured=10.0 + place, alone=None if part == "bare" else 5.0 + place % 3)
        for part in ("bare", "full")
        for place, name in enumerate(names)
    ]
    lines = set_text(SETS["tpu-v6e"], parts_of(cases)).splitlines()
    head = next(place for place, line in enumerate(lines) if "cost model alone" in line)
    assert [name for name in PLAINER.values() if name in lines[head]] == ["cost model alone", "roofline"]
    bare, full = lines[head + 3 : head + 5]
    assert len(bare.split()) == 1 + 4
    errors = sorted(abs((5.0 + place % 3) / (10.0 + place) - 1) for place in range(7))
    high = errors[5] + 0.4 * (errors[6] - errors[5])
    assert full.split()[:4] == ["full", f"{errors[3]:.1%}", f"{high:.1%}", f"{-errors[3]:+.1%}"]
    assert bare.split()[1:] == full.split()[5:]
