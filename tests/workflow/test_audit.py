"""`tilewright audit` of the workflow's results, whose inputs are found by manifests."""

import json
from pathlib import Path

import pytest
import tilewright
from tilewright.base.artifacts.digests import canonical_text, content_digest
from tilewright.base.artifacts.envelope import read_artifact, write_document
from tilewright.base.artifacts.manifest import files_digest, manifest_file, read_manifest

from tests.workflow.conftest import Project

pytestmark = pytest.mark.slow


def test_runs_on_one_core(built: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """All runs of a configuration are audited from the results alone, and nothing is written."""
    before = built.artifacts()
    monkeypatch.chdir(built.root / "results")
    found = tilewright.audit(built.root / "results", "100%")
    assert found["sentence"].endswith("were made again: all equal, bit by bit.")
    assert len(found["made_again"]) == found["total"] > 4
    assert not found["not_audited"]
    one = tilewright.audit(built.root / "results" / "single" / "two_layers-narrow", "100%")
    assert 1 < one["total"] < found["total"]
    assert built.artifacts() == before


def test_runs_on_several_cores(built_multi: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs on several cores are audited, together with the layer-by-layer run beside each."""
    monkeypatch.chdir(built_multi.root / "results")
    found = tilewright.audit(Path(), "100%")
    assert found["total"] == 20
    assert not found["differences"]
    assert not found["not_audited"]


def seal_again(results: Path, unit: str, name: str) -> None:
    """Update a unit's manifest to a file's present content."""
    file = manifest_file(results, unit)
    content = json.loads(file.read_bytes())
    content["payload"]["files"][name] = files_digest(results / name)
    content["digest"] = content_digest(content["payload"])
    file.write_text(canonical_text(content) + "\n")
    assert read_manifest(results, unit) is not None


def test_changes_under_new_seals(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed number with updated seals and manifests is found.

    A run whose description has changed is not compared, and the reason is given.
    """
    results = project.root / "results"
    monkeypatch.chdir(project.root)
    wide, narrow = "single/two_layers-wide", "hardware/narrow/accelerator.json"
    summary = read_artifact(results / wide / "summary.json")
    summary.payload["energy_pj"] *= 2
    write_document(results / wide / "summary.json", summary.schema, summary.payload, summary.provenance)
    with pytest.raises(tilewright.ArtifactError, match=r"summary.json differs from the file that its job wrote"):
        tilewright.audit("results")
    seal_again(results, f"{wide}/map", f"{wide}/summary.json")
    hardware = read_artifact(results / narrow)
    hardware.payload["cores"][0]["memories"][0]["read_energy_pj"] += 1
    write_document(results / narrow, hardware.schema, hardware.payload, hardware.provenance)
    seal_again(results, "hardware/narrow/accelerator", narrow)
    found = tilewright.audit("results", "100%")
    assert [(row["result"], row["column"]) for row in found["differences"]] == [
        (f"results/{wide}: summary", "energy_pj")
    ]
    (refused,) = found["not_audited"]
    assert refused["place"] == "results/single/two_layers-narrow"
    assert (
        f"its hardware has changed since the result was made, or is another file: results/{narrow}" in refused["reason"]
    )
