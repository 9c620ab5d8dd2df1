"""Unused inputs of each verb: reported once at the end, recorded in results, refused by --strict."""

import json
from pathlib import Path
from typing import Any

import pytest
import tilewright
from tilewright.base.artifacts.envelope import read_artifact
from tilewright.base.errors import InputError
from tilewright.cli.main import main

from tests.strangers.verbs import CASES, MODEL, Case, called, write_files

LINES = {"narrow.yaml": 3, "duo.yaml": 3, "vector.yaml": 6}
"""Maps a hardware file to the line of its second name."""
HARDWARE = tuple(LINES)
FUSED = '[{"set":"GenerateCNWorkloadHybrid","parameters":{"mode":"fused"}}]'
"""A pipeline that sets how layers are stacked."""
CALLS = [case for case in CASES if any(name in case.files for name in HARDWARE)]
"""Cases that read hardware files."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write the files of all cases, with a name that is given twice in the hardware."""
    write_files(tmp_path)
    for name in HARDWARE:
        file = tmp_path / name
        file.write_text(f"name: other\n{file.read_text('utf-8')}", "utf-8")
    return tmp_path


@pytest.mark.parametrize("case", CALLS, ids=lambda case: f"{case.verb}-{case.files[0]}")
def test_told_once_and_refused_by_strict(case: Case, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A verb prints one note at its end and records it; with --strict, the note is the only error."""
    name = next(name for name in HARDWARE if name in case.files)
    assert main(case.arguments(folder)) == 0
    said = capsys.readouterr()
    (note,) = [line for line in said.err.splitlines() if "given twice" in line]
    line = LINES[name]
    assert note.startswith(f"note: {folder / name}:{line} name: ")
    results = [json.loads(line) for line in said.out.splitlines()]
    rows = [row for result in results for row in _unused(result)]
    assert case.verb == "explore" or {(row["file"], row["line"], row["key"]) for row in rows} >= {(name, line, "name")}
    refused = called(case, folder, ("--strict",))
    assert refused.code == 2
    (error,) = [one for one in refused.told if "given twice" in one]
    assert error.startswith(f"error: /{name}:{line} name: ")
    assert error.endswith("which the option --strict forbids")


def _unused(result: Any) -> list[dict[str, Any]]:
    if not isinstance(result, dict):
        return []
    found: list[dict[str, Any]] = result.get("unused", result.get("summary", {}).get("unused", []))
    return found


@pytest.mark.parametrize("case", {case.verb: case for case in reversed(CASES)}.values(), ids=lambda case: case.verb)
def test_strict_passes_where_all_is_used(case: Case, tmp_path: Path) -> None:
    """`--strict` passes for the files as they are, except for missing loops and operators without costs."""
    write_files(tmp_path)
    done = called(case, tmp_path, ("--strict",))
    errors = [line for line in done.told if line.startswith("error:")]
    assert done.code == (2 if errors else 0)
    assert all("has FX" in line or "has FY" in line or "has operators without costs" in line for line in errors)


def test_what_is_written_has_it(folder: Path) -> None:
    """Graph, schedule and tables record the unused inputs."""
    given = {"workload": folder / "net.onnx", "hardware": folder / "duo.yaml", "mapping": folder / "duo_mapping.yaml"}
    short: dict[str, Any] = {"nb_plans": 2, "jobs": 1, "lpf_limit": 2, "fusion_time_budget_s": None}
    tilewright.fuse(**given, **short, output=folder / "out")
    for found in (read_artifact(folder / "out" / "fusion.json").payload, _summary(folder), _provenance(folder)):
        assert [(row["file"], row["key"]) for row in found["unused"]] == [("duo.yaml", "name")]
    table = tilewright.explore(folder / "space.yaml", folder / "space")
    assert table.attrs["unused"][0]["file"] == "narrow.yaml"
    assert tilewright.load(folder / "space").attrs == table.attrs
    assert "Unused parts of the input" in (folder / "space" / "explore.html").read_text("utf-8")


def _summary(folder: Path) -> Any:
    return read_artifact(folder / "out" / "summary.json").payload


def _provenance(folder: Path) -> Any:
    return read_artifact(folder / "out" / "cn_graph.json").provenance


@pytest.mark.parametrize("verb", ["cns", "fuse", "depth_first", "tokens", "attention", "explore", "front", "evaluate"])
def test_strict_in_python(verb: str, folder: Path) -> None:
    """Functions with `strict` refuse unused inputs like verbs."""
    several = verb in ("cns", "fuse")
    of_model = verb in ("tokens", "attention")
    hardware = "duo.yaml" if several else "vector.yaml" if of_model else "narrow.yaml"
    mapping = "duo_mapping.yaml" if several else "vector_mapping.yaml" if of_model else "free.yaml"
    workload: Any = {"language_model": MODEL, "phase": "decode", "context": 8} if of_model else folder / "net.onnx"
    given: dict[str, Any] = {"workload": workload, "hardware": folder / hardware, "mapping": folder / mapping}
    given |= {"tile_x": 2, "tile_y": 2} if verb == "depth_first" else {}
    if verb == "evaluate":
        given = given | {"mapping": None, "workload": folder / "layers.yaml", "points": folder / "points.jsonl"}
    if verb in ("explore", "front"):
        given = {"space": folder / "space.yaml", "output": folder / "out"}
    with pytest.raises(InputError, match=r"given twice.*, which the option strict forbids"):
        getattr(tilewright, verb)(**given, strict=True)


@pytest.mark.parametrize(
    ("verb", "options", "told"),
    [
        ("map", "--written none.yaml", "--written: has no effect: there is no such file"),
        ("map", "--lpf-limit 3", "--lpf-limit: is given more than once; only the last value counts"),
        ("evaluate", "--hardware narrow.yaml", "--hardware: is given more than once; only the last value counts"),
        ("map", "--store elsewhere", "--store: has no effect with --no-store"),
        ("cns", "--split-w-percentage 0.5", "--split-w-percentage: has no effect without --cn-define-mode 4"),
        ("cns", f"--mode lbl --pipeline {FUSED}", "--mode: has no effect: the pipeline sets another value"),
        ("fuse", "--no-run", "--no-run: has no effect without -o"),
        ("fuse", "--stack-cutoffs []", "--stack-cutoffs: has no effect, because it names no layer"),
        ("tokens", "--chunk 16", "--chunk: has no effect without --prompts"),
        ("explore", "--store elsewhere", "--store: has no effect with --no-store"),
        ("depth-first", "--time-budget-s 3", "--time-budget-s: has no effect without --optimum"),
        ("depth-first", "--reading defines --objective energy", "--objective: has no effect with `--reading defines`"),
    ],
)
def test_options_without_effect(verb: str, options: str, told: str, tmp_path: Path) -> None:
    """An option without effect is reported, and refused by --strict."""
    write_files(tmp_path)
    case = next(case for case in CASES if case.verb == verb)
    words = [str(tmp_path / word) if word.endswith(".yaml") else word for word in options.split()]
    done = called(case, tmp_path, tuple(words))
    assert done.code == 0
    assert len([line for line in done.told if line.startswith(f"note: {told}")]) == 1
    refused = called(case, tmp_path, (*words, "--strict"))
    assert refused.code == 2
    assert [line for line in refused.told if line.startswith(f"error: {told}")]


def test_seed_of_a_search_of_plans_has_an_effect(tmp_path: Path) -> None:
    """`fuse` accepts a seed without a notice that it has no effect."""
    write_files(tmp_path)
    case = next(case for case in CASES if case.verb == "fuse")
    assert not called(case, tmp_path, ("--seed", "3")).told


def test_options_of_onnx_files_beside_points(tmp_path: Path) -> None:
    """Options of ONNX files are refused for another workload, also with a file of points."""
    write_files(tmp_path)
    case = next(case for case in CASES if case.verb == "evaluate")
    done = called(case, tmp_path, ("--precision", "file"))
    assert done.code == 2
    assert "applies only to ONNX files" in done.told[0]
