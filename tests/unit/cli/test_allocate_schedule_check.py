"""`tilewright allocate`, `schedule` and `check` on a run of two cores."""

import csv
import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from tilewright.base.artifacts.envelope import read_artifact, write_document
from tilewright.base.artifacts.seals import sealed_line
from tilewright.cli.main import main
from tilewright.multicore.allocation import evaluate
from tilewright.multicore.scheduling.result import read_schedule, write_schedule

from tests.unit.cli.multi_core import GA, HARDWARE, MAPPING, cut_and_cost, given, inputs, write_network

FILES = ("allocation.json", "generations.csv", "pareto.csv", "mapping.yaml")


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a network of three layers."""
    return write_network(tmp_path_factory.mktemp("network"))


@pytest.fixture(scope="module")
def run(network: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a run line by line, compared with a layer-by-layer run beside it."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    apart = folder.with_name("apart")
    for place, options in ((apart, ["--mode", "lbl"]), (folder, ["--stack-cutoffs", "[2]"])):
        cut_and_cost(network, place, *options)
        assert main(["allocate", *inputs(network, place), *GA, "--jobs", "2", "-o", str(place)]) == 0
        arguments = ["--core-allocation", str(place / "allocation.json"), "-o", str(place)]
        arguments += ["--baseline", str(apart)] if place == folder else []
        assert main(["schedule", *inputs(network, place), *arguments]) == 0
    return folder


def payload(path: Path) -> Any:
    """Return the payload of an artifact."""
    return read_artifact(path).payload


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Return the message about wrong input."""
    capsys.readouterr()
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert "internal" not in said
    return said


def test_the_allocation_names_layers_and_cores(run: Path) -> None:
    """The allocation has a row for each part, the chosen point of the front, and the figures of each core alone."""
    document = payload(run / "allocation.json")
    assert [(row["name"], row["group"], row["is_only_choice"]) for row in document["allocation"]] == [
        ("a", 0, False),
        ("b", 0, False),
        ("c", 0, False),
    ]
    assert {row["core_name"] for row in document["allocation"]} <= {"left", "right"}
    chosen = [row for row in document["front"] if row["is_chosen"]]
    assert [row["latency_cycles"] for row in chosen] == [document["latency_cycles"]]
    assert chosen[0]["cores"] == [row["core"] for row in document["allocation"]]
    assert [(row["core"], row["core_name"], row["parts_elsewhere"]) for row in document["single_core"]] == [
        (0, "left", 0),
        (1, "right", 0),
    ]
    assert document["search"]["evaluations"] == 8  # of 2^3, as many as were planned at least
    assert document["latency_cycles"] <= min(row["latency_cycles"] for row in document["single_core"])


def test_tables_are_those_of_the_document(run: Path) -> None:
    """pareto.csv has the rows of the front, and generations.csv one row for each generation."""
    with (run / "pareto.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    front = payload(run / "allocation.json")["front"]
    assert [int(row["latency_cycles"]) for row in rows] == [row["latency_cycles"] for row in front]
    assert [row["cores"] for row in rows] == [" ".join(map(str, row["cores"])) for row in front]
    with (run / "generations.csv").open() as stream:
        assert next(csv.DictReader(stream))["generation"] == "0"


def test_threads_never_change_a_byte(run: Path, network: Path, tmp_path: Path) -> None:
    """The number of threads and the folder of the files change no byte."""
    assert main(["allocate", *inputs(network, run), *GA, "--jobs", "1", "-o", str(tmp_path)]) == 0
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (run / name).read_bytes(), name


def test_the_mapping_file_reproduces_the_schedule(run: Path, network: Path, tmp_path: Path) -> None:
    """The written mapping file gives the same computation nodes and the same schedule without a search."""
    mapping = run / "mapping.yaml"
    entries = yaml.safe_load(mapping.read_text())
    assert [entry["name"] for entry in entries] == ["a", "b", "c", "default"]
    cut_and_cost(network, tmp_path, "--stack-cutoffs", "[2]", mapping=mapping)
    assert (tmp_path / "cn_graph.npz").read_bytes() == (run / "cn_graph.npz").read_bytes()
    assert main(["schedule", *inputs(network, tmp_path, mapping), "-o", str(tmp_path)]) == 0
    one, other = read_schedule(run / "schedule.npz"), read_schedule(tmp_path / "schedule.npz")
    for name in ("allocation", "start_cycles", "end_cycles", "transfers", "memory_changes"):
        assert np.array_equal(getattr(one.schedule, name), getattr(other.schedule, name)), name
    assert one.schedule.energy_pj == other.schedule.energy_pj
    assert payload(tmp_path / "summary.json")["allocation"] is None


def test_without_an_allocation_there_must_be_no_choice(
    run: Path, network: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A free mapping needs an allocation; the message says how many parts have a choice."""
    assert "3 of 3 parts of layers can run on several cores" in refused(["schedule", *inputs(network, run)], capsys)


def test_the_summary_is_the_schedule_and_compares_it(run: Path) -> None:
    """The summary has the totals, bounds, gaps, use and baselines of the schedule."""
    summary, schedule = payload(run / "summary.json"), read_schedule(run / "schedule.npz").schedule
    allocation = payload(run / "allocation.json")
    for key in ("latency_cycles", "energy_pj"):
        assert summary[key] == getattr(schedule, key) == allocation[key]
    bound = summary["lower_bound"]
    assert bound["latency_cycles"] == max(bound["latency_terms"].values())
    assert summary["gap_latency"] == pytest.approx(1 - bound["latency_cycles"] / summary["latency_cycles"])
    assert [row["cn_count"] for row in summary["cores"]] == np.bincount(schedule.allocation, minlength=2).tolist()
    assert [row["name"] for row in summary["memories"]] == ["0: memory", "1: memory", "2: dram"]
    assert [row["name"] for row in summary["links"]] == ["0->1", "1->0", "port of 2"]
    assert [row["name"] for row in summary["baselines"]] == ["single_core", "layer_by_layer", "this_run"]
    apart = payload(run.with_name("apart") / "summary.json")
    single = payload(run.with_name("apart") / "allocation.json")["single_core"]
    expected = [min(row["latency_cycles"] for row in single), apart["latency_cycles"], summary["latency_cycles"]]
    assert [row["latency_cycles"] for row in summary["baselines"]] == expected
    for row in summary["baselines"]:
        parts = row["energy_parts_pj"]
        total = parts["on_core"] + sum(
            part["link_pj"] + part["memory_pj"] for part in parts.values() if part != parts["on_core"]
        )
        assert total == pytest.approx(row["energy_pj"])
    assert summary["coverage"]["complete"] is True
    assert summary["model"] == "corrected"


def test_results_missing_or_of_another_run_are_told_together(
    run: Path, network: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Missing results and results of another run are reported together, one message each."""
    arguments = [*inputs(network, tmp_path), "--core-allocation", str(tmp_path / "a.json"), "--baseline", str(tmp_path)]
    said = refused(["schedule", *arguments], capsys)
    for name in ("cn_graph.json", "cost/left.jsonl", "cost/right.jsonl", "a.json", "allocation.json", "summary.json"):
        assert f"{tmp_path / name}: no such artifact" in said
    other = write_network(tmp_path)
    model = other.with_name("two.onnx")
    import onnx

    loaded = onnx.load(str(other))
    del loaded.graph.node[2:]
    loaded.graph.output[0].name = "b"
    onnx.save(loaded, str(model))
    assert "the CN graph belongs to another network than two" in refused(["allocate", *inputs(model, run)], capsys)
    whole = read_artifact(run / "allocation.json")
    document = {**whole.payload, "allocation": whole.payload["allocation"][:2]}
    write_document(tmp_path / "short.json", "tilewright/allocation", document, whole.provenance)
    arguments = [*inputs(network, run), "--core-allocation", str(tmp_path / "short.json")]
    assert "belongs to another CN graph" in refused(["schedule", *arguments], capsys)


def test_artifacts_of_something_else_are_refused(
    run: Path, network: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Artifacts of other inputs are refused: cores, tables, tilings, allocations, baselines, settings, cost models."""
    hardware = tmp_path / "hardware"
    shutil.copytree(Path(HARDWARE).parent, hardware)
    core = hardware / "cores" / "left.yaml"
    core.write_text(core.read_text().replace("sizes: [2]", "sizes: [4]"))
    edited = inputs(network, run)
    edited[1] = str(hardware / "duo.yaml")
    said = refused(["allocate", *edited], capsys)
    assert "left.jsonl was made from another core file, or for other core roles; run `tilewright cost` again" in said
    assert "right.jsonl" not in said
    given_mapping = tmp_path / "mapping.yaml"
    given_mapping.write_text(Path(MAPPING).read_text().replace("OY, all", "OY, 2"))
    with_mapping = inputs(network, run, given_mapping)
    for verb in (["allocate", *with_mapping], ["cost", *with_mapping[:-2], "--core", "left"]):
        said = refused(verb, capsys)
        assert "cn_graph.json was made from another mapping file; run `tilewright cns` again" in said
    apart = run.with_name("apart")
    arguments = [*given(network), "--cns", str(run), "--costs", str(apart / "cost")]
    said = refused(["allocate", *arguments], capsys)
    assert "left.jsonl was made from another CN graph" in said
    assert "right.jsonl was made from another CN graph" in said
    swapped = tmp_path / "swapped"
    swapped.mkdir()
    for one, other in (("left", "right"), ("right", "left")):
        shutil.copy(run / "cost" / f"{one}.jsonl", swapped / f"{other}.jsonl")
    said = refused(["allocate", *given(network), "--cns", str(run), "--costs", str(swapped)], capsys)
    assert said.count("was made from another core file") == 2
    unlike = tmp_path / "unlike"
    shutil.copytree(run / "cost", unlike)
    table = (unlike / "right.jsonl").read_text()
    table = re.sub(r',"file_digest":"\w+"', "", table.replace('"model":"corrected"', '"model":"zigzag-3.9.1"', 1))
    (unlike / "right.jsonl").write_bytes(sealed_line(table))
    said = refused(["allocate", *given(network), "--cns", str(run), "--costs", str(unlike)], capsys)
    assert "right.jsonl was computed with another cost model than the other tables" in said
    other = ["schedule", *inputs(network, run), "--core-allocation", str(apart / "allocation.json")]
    assert "was made from another CN graph" in refused(other, capsys)
    chosen = ["--core-allocation", str(run / "allocation.json")]
    own = ["schedule", *inputs(network, run), *chosen, "--baseline", str(apart)]
    said = refused([*own, "--cn-runtime", "total2"], capsys)
    assert "was scheduled with other settings" in said
    foreign = tmp_path / "foreign"
    shutil.copytree(apart, foreign)
    for name in ("allocation.json", "summary.json"):
        found = read_artifact(foreign / name)
        made_by = {**found.provenance, "inputs": {**found.provenance["inputs"], "workload": "another"}}
        write_document(foreign / name, found.schema, found.payload, made_by)
    said = refused([*own[:-1], str(foreign)], capsys)
    assert said.count("was made from another network") == 2
    shutil.copy(apart / "allocation.json", foreign)
    found = read_artifact(apart / "summary.json")
    costs = {**found.payload, "model": "zigzag-3.9.1"}
    write_document(foreign / "summary.json", found.schema, costs, found.provenance)
    said = refused([*own[:-1], str(foreign)], capsys)
    assert "summary.json has cost tables of another cost model, so the comparison would be wrong" in said


def test_an_allocation_chosen_for_other_schedules_is_told(
    run: Path, network: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An allocation that was chosen for other settings is scheduled, with a note in the summary."""
    arguments = ["--core-allocation", str(run / "allocation.json"), "--share-divisor", "1", "-o", str(tmp_path)]
    capsys.readouterr()
    assert main(["schedule", *inputs(network, run), *arguments]) == 0
    told = "the allocation was found for a schedule with other values of the option share_divisor"
    assert f"note: {told.replace('share_divisor', '--share-divisor')}" in capsys.readouterr().err
    assert told in payload(tmp_path / "summary.json")["notices"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--operands-to-prefetch", '["X"]'], "--operands-to-prefetch[0]: no layer reads an operand of this name"),
        (["--operands-to-prefetch", "[W"], "is not JSON"),
        (["--operands-to-prefetch", '"W"'], "wrong kind of value, got 'W' (allowed: a list of layer operands"),
        (["--share-divisor", "0"], "--share-divisor: not a count, got 0 (allowed: integers from 1)"),
        (["--ga-time-budget-s", "-1"], "--ga-time-budget-s: not a positive number"),
        (["--nb-ga-individuals", "1"], "--nb-ga-individuals: not a count"),
    ],
)
def test_wrong_options_are_told(
    arguments: list[str], told: str, run: Path, network: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wrong options are reported by name, without a traceback."""
    assert told in refused(["allocate", *inputs(network, run), *arguments], capsys)


def test_ctrl_c_keeps_the_best_so_far(
    run: Path,
    network: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Ctrl-C ends with exit code 130 and keeps the best allocation so far."""
    outcome = evaluate.Evaluator._outcome
    count = 0

    def interrupted(self: evaluate.Evaluator, genome: tuple[int, ...]) -> object:
        nonlocal count
        count += 1
        if count == 3:
            raise KeyboardInterrupt
        return outcome(self, genome)

    monkeypatch.setattr(evaluate.Evaluator, "_outcome", interrupted)
    arguments = ["allocate", *inputs(network, run), *GA, "--jobs", "1", "-o", str(tmp_path)]
    assert main(arguments) == 130
    assert "evaluated: 2 allocations; the best is in" in capsys.readouterr().err
    assert payload(tmp_path / "allocation.json")["search"]["stopped_by"] == "interrupted"


def test_the_list_scheduler_of_the_reference_has_no_bound(run: Path, network: Path, tmp_path: Path) -> None:
    """The list scheduler of the reference is not causal, so its summary has no bound."""
    arguments = ["--core-allocation", str(run / "allocation.json"), "-o", str(tmp_path)]
    arguments += ["--schedule-model", "stream-2023"]
    assert main(["schedule", *inputs(network, run), *arguments]) == 0
    summary = payload(tmp_path / "summary.json")
    assert (summary["schedule_model"], summary["lower_bound"], summary["gap_latency"]) == ("stream-2023", None, None)
    assert main(["check", str(tmp_path)]) == 0


def test_multicast_and_forwarding_are_for_the_causal_model(
    run: Path, network: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Multicast and forwarding have no effect on the list scheduler of the reference.
    A notice says so, and --strict refuses them.
    """
    shutil.copytree(Path(HARDWARE).parent, tmp_path / "hardware")
    hardware = tmp_path / "hardware" / "duo.yaml"
    hardware.write_text(f"{hardware.read_text()}\nmulticast: true\nforwarding: true\n")
    words = ["allocate", *inputs(network, run), *GA, "--jobs", "1"]
    words[2] = str(hardware)
    capsys.readouterr()
    assert main(words) == 0
    assert "has no effect" not in capsys.readouterr().err
    assert main([*words, "--schedule-model", "stream-2023"]) == 0
    told = capsys.readouterr().err
    assert all(f"{key}: has no effect with schedule_model stream-2023" in told for key in ("multicast", "forwarding"))
    assert main([*words, "--schedule-model", "stream-2023", "--strict"]) == 2


def test_a_sound_run_passes_all_checks(run: Path, network: Path, tmp_path: Path) -> None:
    """A correct run passes all checks, also against its descriptions."""
    output = tmp_path / "checks.json"
    assert main(["check", str(run), *given(network), "-o", str(output)]) == 0
    checks = payload(output)
    assert checks["passed"] is True
    assert {"schedule_memories", "bounds", "graph", "costs", "allocation", "problem"} <= {
        check["name"] for check in checks["checks"]
    }


def test_check_needs_all_descriptions_or_none(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`check` needs hardware, workload and mapping together, which older runs lack."""
    older = tmp_path / "a/b/older"
    shutil.copytree(run, older)
    for name in ("accelerator.json", "workload.json"):
        (older / name).unlink()
    said = refused(["check", str(older), "--mapping", MAPPING], capsys)
    assert "hardware: is missing: this check needs" in said
    assert "workload: is missing: this check needs" in said


def _broken_latency(run: Path) -> None:
    summary = payload(run / "summary.json")
    summary["latency_cycles"] -= 1
    write_document(run / "summary.json", "tilewright/multi-summary", summary, {})


def _broken_bound(run: Path) -> None:
    summary = payload(run / "summary.json")
    summary["lower_bound"]["latency_cycles"] = summary["latency_cycles"] + 1
    write_document(run / "summary.json", "tilewright/multi-summary", summary, {})


def _broken_energy_part(run: Path) -> None:
    summary = payload(run / "summary.json")
    summary["energy"]["causes"]["off_chip_fetch"]["memory_pj"] += 1.0
    write_document(run / "summary.json", "tilewright/multi-summary", summary, {})


def _broken_core(run: Path) -> None:
    summary = payload(run / "summary.json")
    summary["cores"][0]["busy_cycles"] += 1
    write_document(run / "summary.json", "tilewright/multi-summary", summary, {})


def _broken_start(run: Path) -> None:
    artifact = read_schedule(run / "schedule.npz")
    artifact.schedule.start_cycles[-1] -= 1
    write_schedule(run / "schedule.npz", artifact)


def _broken_cost(run: Path) -> None:
    artifact = read_schedule(run / "schedule.npz")
    artifact.problem.costs.runtime_cycles[artifact.problem.costs.runtime_cycles > 1] -= 1
    write_schedule(run / "schedule.npz", artifact)


def _broken_capacity(run: Path) -> None:
    artifact = read_schedule(run / "schedule.npz")
    artifact.system.memory_capacity_bits[:2] = artifact.schedule.peak_bits[:2] - 1
    write_schedule(run / "schedule.npz", artifact)


def _broken_place(run: Path) -> None:
    document = payload(run / "allocation.json")
    document["allocation"][0]["core"] = 1 - document["allocation"][0]["core"]
    write_document(run / "allocation.json", "tilewright/allocation", document, {})


@pytest.mark.parametrize(
    ("break_it", "check"),
    [
        (_broken_latency, "totals"),
        (_broken_bound, "bounds"),
        (_broken_energy_part, "totals"),
        (_broken_core, "cores_add_up"),
        (_broken_start, "schedule_"),
        (_broken_cost, "costs"),
        (_broken_capacity, "schedule_memories"),
        (_broken_place, "allocation"),
    ],
)
def test_what_is_broken_is_found(
    break_it: Any, check: str, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A broken run ends with exit code 1 and the name of the failed check, and no file is written."""
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    break_it(copy)
    capsys.readouterr()
    assert main(["check", str(copy), "-o", str(tmp_path / "checks.json")]) == 1
    assert f"check failed: {check}" in capsys.readouterr().err
    assert not (tmp_path / "checks.json").exists()


def test_json_output_is_the_document(run: Path, network: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """JSON output is the document of the artifact."""
    capsys.readouterr()
    assert main(["allocate", *inputs(network, run), *GA, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(payload(run / "allocation.json")))
    assert main(["schedule", *inputs(network, run), "--core-allocation", str(run / "allocation.json"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["latency_cycles"] == payload(run / "summary.json")["latency_cycles"]
