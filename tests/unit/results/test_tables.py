"""Tables of runs, and the words of tables and texts on proofs of the exact search."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas
import pytest
import tilewright
from tilewright.base.harmless import markdown
from tilewright.base.proof import covered_text
from tilewright.base.report_files import ONE_CORE_FILES
from tilewright.cost.record import Figures, record_of_row
from tilewright.results.paper_tables import PaperTable
from tilewright.results.proof_text import layer_proof, proof_lines, run_proof
from tilewright.results.records import layers_in_order, merged_layers
from tilewright.results.report_writing import write_report
from tilewright.results.reported_mapping import ReportedMapping
from tilewright.results.run_columns import run_row
from tilewright.results.run_tables import runs_table
from tilewright.results.sheet import drawn_for
from tilewright.results.tables import (
    layer_table,
    layers_text,
    summary_text,
    table_in_paper,
)
from tilewright.results.text_tables import share_text, write_csv, write_parquet


def test_layer_table_has_a_row_for_each_layer_in_execution_order(make_network):
    """Every layer, also an equal one, has a row, and the sums over the table are the totals of the network."""
    records, summary = make_network(21)
    table = layer_table(records, summary)
    assert list(table["layer"]) == [name for name, _ in summary["layer_index"]]
    assert table["energy_pj"].sum() == pytest.approx(summary["energy_pj"])
    parts = [f"{part}_cycles" for part in summary["latency_breakdown_cycles"]]
    assert table[parts].sum(axis=1).tolist() == pytest.approx(table["latency_cycles"].tolist())


def test_equal_layers_share_a_row_in_a_paper(make_network, tmp_path):
    """A paper has one row for equal layers, with their number behind the name, and the CSV file has all layers.

    Gaps in a paper have at most two decimals.
    """
    records, summary = make_network(21)
    layers = merged_layers(layers_in_order(records, summary))
    assert any(layer.repeats > 1 for layer in layers)
    run = ReportedMapping(records, summary)
    table, told = table_in_paper(run)
    assert len(table) == len(layers) < len(summary["layer_index"])
    names = [f"{layer.name} x {layer.repeats}" if layer.repeats > 1 else layer.name for layer in layers]
    assert table["layer"].tolist() == names
    assert table["energy_pj"].sum() == pytest.approx(summary["energy_pj"])
    file = next(file for file in ONE_CORE_FILES if file.name == "layers.csv")
    with drawn_for("column"):
        written = {path.name: path.read_text() for path in write_report([file], run, tmp_path)}
    assert len(written["layers.csv"].splitlines()) == 1 + len(summary["layer_index"])
    assert all(f"| {name} |" in written["layers.md"] for name in map(markdown, names))
    assert told[0] in written["layers.md"]
    shown = PaperTable.of(pandas.DataFrame({"layer": ["a", "b"], "gap": [0.0109411, 0.00002]}))
    assert [row[1] for row in shown.rows] == ["1.09", "< 0.01"]


def test_columns_of_quantities_carry_their_unit(record):
    """A numeric column is a count, a fraction, or has its unit in the name."""
    table = layer_table([record_of_row(record)])
    units = ("_pj", "_cycles", "_count", "_mm2")
    plain = {"record", "evaluations"}
    for column in table.select_dtypes("number"):
        assert column.endswith(units) or column.startswith("mac_utilization_") or column in plain, column


def test_csv_reads_back_to_the_same_numbers(make_network, tmp_path):
    """The CSV file keeps every double exactly, and has the same bytes each time."""
    records, summary = make_network(5)
    table = layer_table(records, summary)
    write_csv(table, tmp_path / "new" / "layers.csv")
    text = (tmp_path / "new" / "layers.csv").read_bytes()
    assert b"\r" not in text
    back = pandas.read_csv(io.BytesIO(text))
    pandas.testing.assert_frame_equal(back, table, check_exact=True, check_dtype=False)


def test_summary_table_across_runs(make_network, tmp_path):
    """CSV and Parquet have one row for each run, in the given order."""
    summaries = {name: make_network(count)[1] for name, count in (("b", 2), ("a", 7))}
    table = pandas.DataFrame([run_row(run, summary) for run, summary in summaries.items()])
    assert list(table["run"]) == ["b", "a"]
    assert table["mac_utilization"].between(0, 1).all()
    write_parquet(table, tmp_path / "summary.parquet")
    pandas.testing.assert_frame_equal(pandas.read_parquet(tmp_path / "summary.parquet"), table, check_dtype=False)


def test_terminal_text_is_plain_and_fits(make_network, monkeypatch):
    """The text has no colour codes and no line wider than asked, whatever the terminal says."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "40")
    records, summary = make_network(3)
    for text in (layers_text(records, summary, width=120), summary_text({"run": summary}, width=120)):
        assert "\x1b" not in text
        assert max(map(len, text.splitlines())) <= 120
    assert "+20.0%" in summary_text({"run": summary}, width=140)


def test_terminal_text_shows_names_with_brackets(make_network):
    """A layer name that looks like markup is printed as it is."""
    records, summary = make_network(1)
    summary["layer_index"][0][0] = "block[bold]x[/bold]"
    assert "block[bold]x[/bold]" in layers_text(records, summary, width=200)


def test_unknown_corrected_figures(make_network):
    """Tables say that a mapping does not fit the corrected model, and raise no error."""
    records, summary = make_network(2)
    records[0] = replace(records[0], corrected=Figures())
    summary["corrected"] = {"energy_pj": None, "latency_cycles": None}
    assert "does not fit" in summary_text({"run": summary})
    assert pandas.isna(layer_table(records, summary)["corrected_energy_pj"][0])


GIVEN = "the spatial mapping of the mapping file"
PROJECT = Path(__file__).resolve().parents[3]
TINY = PROJECT / "tests" / "workflow" / "tiny"


def mapped(**options: Any) -> Any:
    """Two small layers on a core whose array dimension the mapping file leaves open."""
    return tilewright.map(
        hardware=TINY / "hardware" / "narrow.yaml",
        workload=TINY / "workload" / "two_layers.yaml",
        mapping=TINY / "mapping" / "free.yaml",
        preset="zigzag",
        **options,
    )


@pytest.mark.parametrize(("allocation", "searched"), [("free", "every choice"), ("greedy", "as in ZigZag")])
def test_tables_say_what_a_proof_covers(allocation: str, searched: str) -> None:
    """One sentence says which spatial mappings the proof covers, and how each of them was searched.

    Both tables and the terminal have it.
    """
    found = mapped(temporal_mapping_search_engine="exact", allocation=allocation)
    layers, runs = layer_table(found.records, found.summary), runs_table({"r": found.summary}, {})
    text = runs["proof_covers"][0]
    assert text.startswith(f"{found.records[0].search['covers']}, with every loop order that the mapping file allows")
    assert searched in text
    assert layers["proof_covers"].tolist() == [text, text]
    assert (layers["proven"].tolist(), runs["proven_problems"].tolist()) == ([True, True], [2])
    assert (layers["gap"].tolist(), runs["largest_gap"].tolist()) == ([0.0, 0.0], [0.0])
    line, *left_out, of_run = proof_lines(found.summary)
    assert line == (
        "latency of each layer: no other mappings give less; the optimum is proven for 2 of 2 distinct layers; the"
        f" proofs cover {text}"
    )
    assert [line.startswith("not searched, and possibly better: ") for line in left_out] == [True]
    assert ("`--allocation free`" in left_out[0]) == (allocation == "greedy")
    assert (
        of_run
        == "latency of the network: no other mappings give less, among the mappings that the proofs of its layers cover"
    )
    assert runs["objective_gap"].tolist() == [0.0]
    assert runs["objective_lower_bound"][0] == pytest.approx(found.summary["latency_cycles"], rel=1e-8)


def test_other_searches_claim_nothing() -> None:
    """Tables without bounds have no columns on proofs. Beside a run with proofs, the cells of other runs are empty."""
    other, exact = mapped(lpf_limit=3), mapped(temporal_mapping_search_engine="exact")
    assert not {"proven", "gap", "proof_covers"} & set(layer_table(other.records, other.summary))
    assert "proof_covers" not in runs_table({"r": other.summary}, {})
    assert list(proof_lines(other.summary)) == []
    both = runs_table({"other": other.summary, "exact": exact.summary}, {})
    assert [pandas.isna(value) for value in both["proof_covers"]] == [True, False]
    assert both["proven_problems"].dtype == "Int64"


def test_every_kind_of_proof_of_a_run_is_told() -> None:
    """Layers whose proofs cover different sets have different texts; old summaries have no allocations."""
    proof = {
        "proven": 1,
        "of": 2,
        "largest_gap": 0.25,
        "covers": [GIVEN, "all spatial mappings"],
        "allocations": ["free"],
    }
    texts = [covered_text(covers, "free") for covers in proof["covers"]]
    assert run_proof({"certificate": proof})["proof_covers"] == "; ".join(texts)
    first, *others = proof_lines({"certificate": proof, "objective": "EDP"})
    assert first == (
        "EDP of each layer: other mappings give at most 25.00% less; the optimum is proven for 1 of 2 distinct layers;"
        " the proofs cover different mappings for different layers (2 kinds, listed below)"
    )
    assert others[:2] == [f"a proof covers {text}" for text in texts]
    assert [line.split(" (")[0] for line in others[2:]] == ["not searched, and possibly better: other spatial mappings"]
    del proof["allocations"]
    assert run_proof({"certificate": proof})["proof_covers"] == f"{GIVEN}; all spatial mappings"


def test_the_columns_are_documented() -> None:
    """docs/artifacts/records.md names all columns on proofs."""
    page = (PROJECT / "docs" / "artifacts" / "records.md").read_text()
    told = page.split("tables have further columns:")[1].split("\n\n")[0]
    search: dict[str, Any] = {"proven": True, "gap": 0.0, "covers": GIVEN, "allocation": "free"}
    proof = {"proven": 1, "of": 1, "largest_gap": 0.0, "covers": [GIVEN], "allocations": ["free"]}
    for column in (*layer_proof(search), *run_proof({"certificate": proof})):
        assert f"`{column}`" in told


@pytest.mark.parametrize(
    ("part", "threshold", "told"),
    [(0, 0.01, "0.0%"), (4, 0.01, "<0.1%"), (94, 0.01, "0.9%"), (97, 0.01, "<1.0%"), (100, 0.01, "1.0%")],
)
def test_a_share_below_a_threshold_does_not_read_as_it(part: int, threshold: float, told: str) -> None:
    """A share just below a threshold has so many digits that it does not read as the threshold: 0.97 %, not 1.0 %."""
    assert share_text(part, 10_000, threshold) == told


def test_shares_without_a_threshold() -> None:
    """Shares are rounded to a tenth of a percent, smaller ones are `<0.1%`, and a share of nothing is `-`."""
    assert [share_text(part, 10_000) for part in (0, 9, 10, 97, 10_000)] == ["0.0%", "<0.1%", "0.1%", "1.0%", "100.0%"]
    assert share_text(0, 0) == "-"
