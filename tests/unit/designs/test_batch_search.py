"""Batches that reverse the order of two runs: each is confirmed by `map` of a network with the batch."""

import copy
import json
import random
from pathlib import Path
from typing import Any

import onnx
import pytest
import tilewright
import yaml
from tilewright.cli.main import main

from tests.unit.results.test_order_turn import MAPPING, WORKLOAD, hardware
from tests.unit.workload.onnx.dependency_checks import build_model

BATCHES = (2, 4, 8, 64)
OPTIONS: dict[str, Any] = {"temporal_mapping_search_engine": "loma", "lpf_limit": 3}
SHAPES = ([1, 32, 64], [1, 64, 32])


def core(name: str, unit_pj: float, dram_pj: float, sram_bits: int, dram_bits: int) -> dict[str, Any]:
    """Return a core with the given energies and sizes."""
    made = hardware(name, random.Random(1), clock=True) | {"clock_frequency": "500 MHz"}
    made["operational_array"]["unit_energy"] = unit_pj
    made["memories"]["sram"] |= {"r_cost": 1, "w_cost": 1, "size": "1 KiB"}
    made["memories"]["dram"] |= {"r_cost": dram_pj * dram_bits, "w_cost": dram_pj * dram_bits}
    for name_of, bits in (("sram", sram_bits), ("dram", dram_bits)):
        made["memories"][name_of].pop("cost", None)
        made["memories"][name_of]["ports"][0] |= {"bandwidth_min": bits, "bandwidth_max": bits}
    return made


CORES = {
    "cheap_dram": core("cheap_dram", 24.0, 4.0, 64, 64),
    "cheap_array": core("cheap_array", 1.0, 16.0, 128, 32),
}


def network(batch: int) -> list[dict[str, Any]]:
    """Return two layers with a batch."""
    return [{**one, "loop_sizes": [batch, *sizes[1:]]} for one, sizes in zip(WORKLOAD, SHAPES, strict=True)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run both cores with a batch of 1, beside the file of the network."""
    place = tmp_path_factory.mktemp("batches")
    (place / "net.yaml").write_text(yaml.safe_dump(network(1), sort_keys=False))
    (place / "map.yaml").write_text(yaml.safe_dump(MAPPING, sort_keys=False))
    for name, document in CORES.items():
        (place / f"{name}.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
        files = {"hardware": place / f"{name}.yaml", "mapping": place / "map.yaml", "workload": place / "net.yaml"}
        tilewright.map(**files, output=place / name, **OPTIONS)
    return place


@pytest.fixture(scope="module")
def values() -> dict[int, list[dict[str, float]]]:
    """Return the measures of both cores for each batch, by `map` of a network with the batch."""
    found = {}
    for batch in (1, *BATCHES):
        found[batch] = []
        for document in CORES.values():
            summary = tilewright.map(network(batch), copy.deepcopy(document), MAPPING, **OPTIONS).summary
            energy, seconds = summary["energy_pj"], summary["latency_cycles"] / 5e8
            found[batch].append({"energy": energy, "latency": seconds, "EDP": energy * seconds})
    return found


def compared(folder: Path, *words: str, code: int = 0) -> None:
    """Run `compare` on both runs."""
    assert main(["compare", *(str(folder / name) for name in CORES), *words]) == code


def test_the_order_turns_at_the_batch_and_not_at_the_batch_before(
    folder: Path, values: dict[int, list[dict[str, float]]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The batch at which two runs change their order, and each difference in the file, agree with new runs of `map`."""
    compared(folder, "--batches", "8, 2,4,64,2", "-o", str(tmp_path))
    text = capsys.readouterr().out
    turns = json.loads((tmp_path / "comparison.json").read_text())["batch_turns"]
    assert [one["measure"] for one in turns] == ["energy", "latency", "EDP"]
    turned = 0
    for one in turns:
        ahead = "AB".index(one["first"])
        shares = {
            batch: own[1 - ahead][one["measure"]] / own[ahead][one["measure"]] - 1 for batch, own in values.items()
        }
        assert {row["batch"]: row["difference"] for row in one["differences"]} == pytest.approx(shares, abs=1e-12)
        at, before = one["turned_at_batch"], one["not_turned_at_batch"]
        assert at == next((batch for batch in BATCHES if shares[batch] < 0), None)
        if at is not None:
            turned += 1
            assert shares[at] < 0 <= shares[before]
            assert before == max(batch for batch in (1, *BATCHES) if batch < at)
            assert f"{one['measure']}: with a batch of {at}, {'BA'[ahead]} is " in text
        else:
            assert f"{one['measure']}: none of the batches tried (2, 4, 8, 64) reverses the order" in text
    assert 1 <= turned < len(turns)


def test_python_has_the_sentences(folder: Path) -> None:
    """The column `assumes` has the sentences on batches, for any number of threads."""
    runs = [folder / name for name in CORES]
    one, two = (tilewright.compare(*runs, batches=[2, 8], jobs=jobs)["assumes"].iloc[0] for jobs in (1, 2))
    assert one == two
    assert "searched with other batches, energy: with a batch of 8, B is " in one
    assert "searched with other batches" not in tilewright.compare(*runs)["assumes"].iloc[0]


def test_wrong_batches(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All wrong batches are reported together. It is an error to give no batch but that of the runs."""
    compared(folder, "--batches", "0,2,many,1.5", code=2)
    told = capsys.readouterr().err
    for value in ("'0'", "'many'", "'1.5'"):
        assert f"--batches: is not a batch, got {value} (allowed: whole numbers from 1 to 1,048,576" in told
    compared(folder, "--batches", "", code=2)
    assert "--batches: is not a batch, got ''" in capsys.readouterr().err
    compared(folder, "--batches", "1", code=2)
    assert "--batches: is the batch of the runs: give other batches, got 1" in capsys.readouterr().err


def test_a_network_file_that_is_not_found(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run is refused if its network file is not found or has changed since."""
    away = tmp_path / "away"
    files = {"hardware": folder / "cheap_dram.yaml", "mapping": folder / "map.yaml"}
    tilewright.map(**files, workload=folder / "net.yaml", output=away, **OPTIONS)
    (tmp_path / "net.yaml").write_text(yaml.safe_dump(network(3), sort_keys=False))
    assert main(["compare", str(away), str(away), "--batches", "2"]) == 2
    told = capsys.readouterr().err
    assert "net" in told
    assert "the network was not found in config" in told


def exported(batch: int | str) -> onnx.ModelProto:
    """Return a product of an input with a constant; the length of the input's sequences is open."""
    shape: Any = (batch, "T", 32)
    product = onnx.helper.make_node("MatMul", ["x", "w"], ["y"], name="product")
    return build_model([product], {"x": shape}, {"w": [[0.5] * 16] * 32})


WORDS = {
    "cheap_dram": ["--input-shape", "x=1,4,32", "--bits", "weights=4"],
    "cheap_array": ["--dim", "T=4", "--dim", "N=1", "--bits", "weights=4"],
}
"""Options of two runs of the same network, by core."""


@pytest.mark.parametrize("is_parsed", [False, True])
def test_runs_of_networks_with_options(tmp_path: Path, is_parsed: bool) -> None:
    """A search of batches keeps a run's sizes, shapes and bits; `map` of a network with that batch agrees."""
    given: dict[str, dict[str, Any]] = {
        "cheap_dram": {"input_shapes": {"x": [1, 4, 32]}, "bits": {"weights": 4}},
        "cheap_array": {"dims": {"T": 4, "N": 1}, "bits": {"weights": 4}},
    }
    onnx.save(exported("N"), tmp_path / "net.onnx")
    onnx.save(exported(8), tmp_path / "eight.onnx")
    (tmp_path / "map.yaml").write_text(yaml.safe_dump(MAPPING, sort_keys=False))
    energies = []
    for name, document in CORES.items():
        file = tmp_path / f"{name}.yaml"
        file.write_text(yaml.safe_dump(document, sort_keys=False))
        network = tmp_path / "net.onnx"
        files = {"hardware": file, "mapping": tmp_path / "map.yaml"}
        options = given[name]
        if is_parsed:  # as the jobs of a configuration do it
            network = tmp_path / f"parsed-{name}.json"
            words = ["parse", "workload", str(tmp_path / "net.onnx"), "--model", "corrected", "-o", str(network)]
            assert main([*words, *WORDS[name]]) == 0
            options = {}
        tilewright.map(**files, workload=network, output=tmp_path / name, **options, **OPTIONS)
        summary = tilewright.map(
            **files, workload=tmp_path / "eight.onnx", dims={"T": 4}, bits={"weights": 4}, **OPTIONS
        ).summary
        energies.append(summary["energy_pj"])
    compared(tmp_path, "--batches", "8", "-o", str(tmp_path / "out"))
    turns = json.loads((tmp_path / "out" / "comparison.json").read_text())["batch_turns"]
    found = {one["measure"]: one for one in turns}["energy"]
    ahead = "AB".index(found["first"])
    assert found["batch"] == 1
    assert {row["batch"]: row["difference"] for row in found["differences"]}[8] == pytest.approx(
        energies[1 - ahead] / energies[ahead] - 1, abs=1e-12
    )


def test_an_artifact_has_no_batch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A new search needs only the artifact of the network; another batch needs the network's YAML or ONNX file."""
    (tmp_path / "net.yaml").write_text(yaml.safe_dump(network(1), sort_keys=False))
    (tmp_path / "core.yaml").write_text(yaml.safe_dump(CORES["cheap_dram"], sort_keys=False))
    (tmp_path / "map.yaml").write_text(yaml.safe_dump(MAPPING, sort_keys=False))
    run = tmp_path / "single" / "run"
    assert main(["parse", "workload", str(tmp_path / "net.yaml"), "-o", str(run / "workload.json")]) == 0
    given = {"hardware": tmp_path / "core.yaml", "mapping": tmp_path / "map.yaml"}
    tilewright.map(**given, workload=run / "workload.json", output=run, **OPTIONS)
    for name in ("core.yaml", "map.yaml"):
        (tmp_path / "single" / name).write_text((tmp_path / name).read_text())
    capsys.readouterr()
    assert main(["compare", str(run), str(run), "--search-again"]) == 0
    assert main(["compare", str(run), str(run), "--batches", "2"]) == 2
    assert "the YAML or ONNX file of the network" in capsys.readouterr().err


def test_a_batch_without_a_mapping_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A batch that does not fit the top memory is refused with its number and the core."""
    names = ("one", "other")
    for name, unit_pj in zip(names, (24.0, 30.0), strict=True):
        small = copy.deepcopy(CORES["cheap_dram"]) | {"name": name}
        small["memories"]["dram"]["size"] = "6 KiB"
        small["operational_array"]["unit_energy"] = unit_pj
        for file, data in (("net", network(1)), (f"{name}_core", small), ("map", MAPPING)):
            (tmp_path / f"{file}.yaml").write_text(yaml.safe_dump(data, sort_keys=False))
        files = {"hardware": tmp_path / f"{name}_core.yaml", "mapping": tmp_path / "map.yaml"}
        tilewright.map(**files, workload=tmp_path / "net.yaml", output=tmp_path / name, **OPTIONS)
    assert main(["compare", *(str(tmp_path / name) for name in names), "--batches", "512"]) == 2
    told = capsys.readouterr().err
    assert "with a batch of 512 on one:" in told
    assert "memory 'dram' is too small" in told
