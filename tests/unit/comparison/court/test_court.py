"""`tilewright court`: samples, constants, tables, files, and what is told of wrong input."""

import json
from pathlib import Path

import pandas
import pytest
from tilewright import court
from tilewright.cli.main import main
from tilewright.comparison.court.document import FULL, SAMPLE, blocks, with_blocks
from tilewright.comparison.court.fit import fitted_constants
from tilewright.comparison.court.rows import DATA, set_files
from tilewright.comparison.court.sets import SETS
from tilewright.comparison.court.verdict import table

PAGE = Path(__file__).resolve().parents[4] / "docs" / "court.md"
FULL_SETS = Path(__file__).resolve().parents[5] / "shared" / "third-party"


@pytest.mark.parametrize("name", SETS)
def test_constants_are_those_that_the_rule_gives(name: str) -> None:
    """A fit to the rows that the rule chooses, all of which are in the sample, gives the numbers of the code; at most
    four of each device."""
    court_set = SETS[name]
    assert all(len(constants) <= 4 for constants in court_set.constants.values())
    if court_set.constants:
        rows = court_set.prepare(set_files(DATA / name, court_set.patterns))
        assert fitted_constants(court_set, rows) == court_set.values()


def test_the_page_has_the_numbers_of_the_samples() -> None:
    """docs/court.md is what the document module writes."""
    page = PAGE.read_text()
    assert with_blocks(page, SAMPLE, blocks(SAMPLE, None)) == page


@pytest.mark.skipif(not FULL_SETS.is_dir(), reason="the full sets ../shared/third-party are not beside this checkout")
def test_the_page_has_the_numbers_of_the_full_sets() -> None:
    """The same for the full sets; no bound is broken without an explanation, and few rows were fitted."""
    page = PAGE.read_text()
    assert with_blocks(page, FULL, blocks(FULL, FULL_SETS)) == page


def test_no_bound_is_broken() -> None:
    """Every measurement of the samples is above its bound, or explained."""
    heard = court(sample=True)
    assert [one.court_set.name for one in heard] == list(SETS)
    assert all(part.unexplained == 0 for one in heard for part in one.parts)


def test_files_have_a_row_for_each_case_and_a_figure(tmp_path: Path) -> None:
    """The table, the figures as JSON, the figure of the set."""
    (heard,) = court(["timeloop-points"], sample=True, output=tmp_path)
    table = pandas.read_csv(tmp_path / "court.csv")
    assert len(table) == len(heard.cases)
    assert set(table["part"]) == {"cycles", "energy"}
    (told,) = json.loads((tmp_path / "court.json").read_text())
    assert [part["equal"] for part in told["parts"]] == [36, 36]
    assert (tmp_path / "timeloop-points.svg").stat().st_size > 10_000


def test_wrong_input_is_told_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Unknown sets, missing folders and wrong rows, each with its place."""
    assert main(["court", "gemini-rtl"]) == 2
    assert "did you mean 'gemmini-rtl'" in capsys.readouterr().err
    assert main(["court", "--data", str(tmp_path / "none")]) == 2
    assert "no such folder" in capsys.readouterr().err
    (tmp_path / "gemmini-rtl").mkdir()
    assert main(["court", "gemmini-rtl", "--data", str(tmp_path)]) == 2
    assert "no rows here" in capsys.readouterr().err
    (tmp_path / "gemmini-rtl" / "rows.jsonl").write_text('{"id": 3}\nnothing\n')
    assert main(["court", "gemmini-rtl", "--data", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert "rows.jsonl:1 id: wrong or missing, got 3 (allowed: str)" in told
    assert "rows.jsonl:2 no JSON" in told


def test_what_is_wrong_within_a_row_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Sizes that are missing, a mapping that is none."""
    (tmp_path / "gemmini-rtl").mkdir()
    row = json.loads((DATA / "gemmini-rtl" / "sample.jsonl").read_text().splitlines()[0])
    del row["layer"]["K"]
    row["mapping"][0]["temporal"] = [["K"]]
    (tmp_path / "gemmini-rtl" / "rows.jsonl").write_text(json.dumps(row) + "\n")
    assert main(["court", "gemmini-rtl", "--data", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert "rows.jsonl:1 layer.K: wrong or missing" in told
    assert "rows.jsonl:1 mapping: wrong or missing" in told


def test_every_column_of_the_table_is_documented() -> None:
    """In docs/court.md."""
    (heard,) = court(["timeloop-points"], sample=True)
    page = PAGE.read_text()
    assert [name for name in table(heard.cases).columns if f"`{name}`" not in page] == []


def test_a_set_that_is_not_in_the_folder_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its sample stands in."""
    assert main(["court", "--data", str(tmp_path), "--json"]) == 0
    told = capsys.readouterr()
    assert "the sample of the package is used" in told.err
    assert all(one["is_sample"] for one in json.loads(told.out))
