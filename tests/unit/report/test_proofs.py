"""What tables and texts say of the proofs of the exact search."""

from pathlib import Path
from typing import Any

import pandas
import pytest
import tilewright
from tilewright.report.proofs import covered_text, layer_proof, proof_lines, run_proof
from tilewright.report.run_tables import runs_table
from tilewright.report.tables import layer_table

GIVEN = "the spatial mapping of the mapping file"
PROJECT = Path(__file__).resolve().parents[3]
TINY = PROJECT / "tests" / "workflow" / "tiny"


def mapped(**options: Any) -> Any:
    """Two small layers on a core whose side the mapping file leaves open."""
    return tilewright.map(
        hardware=TINY / "hardware" / "narrow.yaml",
        workload=TINY / "workload" / "two_layers.yaml",
        mapping=TINY / "mapping" / "free.yaml",
        **options,
    )


@pytest.mark.parametrize(("allocation", "searched"), [("free", "every choice"), ("greedy", "as in the reference")])
def test_tables_say_what_a_proof_covers(allocation: str, searched: str) -> None:
    """One sentence has the spatial mappings and what was searched for each: in both tables and for the terminal."""
    found = mapped(temporal_mapping_search_engine="exact", allocation=allocation)
    layers, runs = layer_table(found.records, found.summary), runs_table({"r": found.summary}, {})
    text = runs["proof_covers"][0]
    assert text.startswith(f"{found.records[0].search['covers']}, and for each every loop order that it allows")
    assert searched in text
    assert layers["proof_covers"].tolist() == [text, text]
    assert (layers["proven"].tolist(), runs["proven_problems"].tolist()) == ([True, True], [2])
    assert (layers["gap"].tolist(), runs["largest_gap"].tolist()) == ([0.0, 0.0], [0.0])
    assert list(proof_lines(found.summary))[1:] == [f"a proof covers {text}"]


def test_other_searches_claim_nothing() -> None:
    """Without proofs there are no such columns; beside a run with proofs the others have empty cells."""
    other, exact = mapped(lpf_limit=3), mapped(temporal_mapping_search_engine="exact")
    assert not {"proven", "gap", "proof_covers"} & set(layer_table(other.records, other.summary))
    assert "proof_covers" not in runs_table({"r": other.summary}, {})
    assert list(proof_lines(other.summary)) == []
    both = runs_table({"other": other.summary, "exact": exact.summary}, {})
    assert [pandas.isna(value) for value in both["proof_covers"]] == [True, False]
    assert both["proven_problems"].dtype == "Int64"


def test_every_kind_of_proof_of_a_run_is_told() -> None:
    """Layers whose proofs cover something else have a text of their own; summaries of before have no allocations."""
    proof = {
        "proven": 1,
        "of": 2,
        "largest_gap": 0.25,
        "covers": [GIVEN, "all spatial mappings"],
        "allocations": ["free"],
    }
    texts = [covered_text(covers, "free") for covers in proof["covers"]]
    assert run_proof({"certificate": proof})["proof_covers"] == "; ".join(texts)
    first, *others = proof_lines({"certificate": proof})
    assert first == "optimum proven for 1 of 2 distinct layers, largest gap 25.00%"
    assert others == [f"a proof covers {text}" for text in texts]
    del proof["allocations"]
    assert run_proof({"certificate": proof})["proof_covers"] == f"{GIVEN}; all spatial mappings"


def test_the_columns_are_documented() -> None:
    """docs/artifacts.md names them all."""
    page = (PROJECT / "docs" / "artifacts.md").read_text()
    told = page.split("Tables then have further columns:")[1].split("\n\n")[0]
    search: dict[str, Any] = {"proven": True, "gap": 0.0, "covers": GIVEN, "allocation": "free"}
    proof = {"proven": 1, "of": 1, "largest_gap": 0.0, "covers": [GIVEN], "allocations": ["free"]}
    for column in (*layer_proof(search), *run_proof({"certificate": proof})):
        assert f"`{column}`" in told
