"""Scripts as users write them: results equal those of the verbs, and missing functions are named."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tilewright
from tilewright.cost.ledger import ACCESSES
from tilewright.main_stage.__main__ import main

from tests.unit.main_stage.conftest import files
from tests.unit.main_stage.test_scripts import system

SCRIPTS = Path(__file__).parent / "scripts"
Rows = list[list[str]]


def said(script: str, *words: str, code: int = 0, capsys: pytest.CaptureFixture[str]) -> Rows:
    """Run a script and return its printed lines, cut at semicolons."""
    assert main([str(SCRIPTS / f"{script}.py"), *words]) == code
    return [line.split(";") for line in capsys.readouterr().out.splitlines()]


def words(hardware: str = "row_stationary_12x14", mapping: str = "user_2d") -> list[str]:
    """Return the paths of accelerator, network and mapping file."""
    given = files(hardware, mapping)
    return [given["accelerator"], given["workload"], given["mapping"]]


def mapped(given: list[str], **options: Any) -> dict[str, Any]:
    """Return layer -> record of `tilewright.map`."""
    found = tilewright.map(given[1], given[0], given[2], **{"preset": "zigzag", "lpf_limit": 3, **options})
    return {name: record for record in found.records for name in record.names}


def test_several_accelerators(capsys: pytest.CaptureFixture[str]) -> None:
    """A script with a MainStage for each of several accelerators agrees with `tilewright.map`."""
    hardware = [words(name, "generated") for name in ("row_stationary_12x14", "cube_8x4x3")]
    rows = said("s01_compare_accelerators", ",".join(one[0] for one in hardware), *hardware[0][1:], capsys=capsys)
    for (file, energy, latency), given in zip(rows, hardware, strict=True):
        records = mapped(given, objective="energy").values()
        assert file == given[0]
        assert float(energy) == pytest.approx(sum(record.energy_pj for record in records))
        assert float(latency) == sum(record.latency_cycles for record in records)


def test_a_sweep_of_a_memory(capsys: pytest.CaptureFixture[str]) -> None:
    """A sweep of a memory size by copies of the accelerator agrees with files of these sizes."""
    given = words()
    core = tilewright.parse_accelerator(given[0])
    rows = said("s02_memory_sweep", *given, "input_pad", capsys=capsys)
    for factor, energy, latency in rows:
        changed = _resized(core, "input_pad", int(factor))
        records = mapped([changed, *given[1:]]).values()  # type: ignore[list-item]
        assert float(energy) == pytest.approx(sum(record.energy_pj for record in records), rel=1e-12)
        assert float(latency) == sum(record.latency_cycles for record in records)
    assert rows[0][1:] != rows[1][1:]


def test_a_stage_that_inherits_from_ours(capsys: pytest.CaptureFixture[str]) -> None:
    """A stage that inherits from a stage of the package can call the overridden method."""
    records = mapped(words())
    rows = said("s03_subclass", *words(), capsys=capsys)
    assert {name: float(cycles) for name, cycles in rows} == {name: one.latency_cycles for name, one in records.items()}


def test_parameters_that_are_iterated_over(capsys: pytest.CaptureFixture[str]) -> None:
    """A script that iterates over a parameter gets one result for each value, with the value beside the result."""
    rows = said("s04_iterate_parameters", *words(), capsys=capsys)
    assert [row[0] for row in rows] == ["2", "3", "4"]
    for limit, edp in rows:
        records = mapped(words(), objective="EDP", lpf_limit=int(limit)).values()
        energy, cycles = sum(one.energy_pj for one in records), sum(one.latency_cycles for one in records)
        assert float(edp) == pytest.approx(energy * cycles)


def test_many_attributes(capsys: pytest.CaptureFixture[str]) -> None:
    """A script can read all attributes that reports use, for every operand and level."""
    rows = said("s05_attributes", *words(), capsys=capsys)
    assert len(rows) > 7 * 6
    assert len(list(Path("outputs").glob("*_complete.json"))) == 7


def test_a_cost_model_of_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    """A cost model of a user sets the energy by which the reduction chooses."""
    rows = said("s06_leaf", *words(), capsys=capsys)
    dear = tilewright.parse_accelerator(words()[0])

    core = dear.cores[0]
    array = replace(core.operational_array, unit_energy_pj=2 * core.operational_array.unit_energy_pj)
    dear = replace(dear, cores=(replace(core, operational_array=array),))
    records = mapped([dear, *words()[1:]], objective="energy", lpf_limit=2)  # type: ignore[list-item]
    for name, energy, of_macs in rows:
        assert float(energy) == pytest.approx(records[name].energy_pj)
        assert 2 * float(of_macs) == pytest.approx(records[name].energy_pj - records[name].energy_terms_pj[ACCESSES])


def test_stages_in_the_list_that_are_no_classes(capsys: pytest.CaptureFixture[str]) -> None:
    """A list of stages can contain a `partial` and a stage that inserts another stage."""
    records = mapped(words(), objective="energy")
    rows = said("s07_inserted", *words(), capsys=capsys)
    assert len(rows) == 3
    assert all(float(energy) == records[name].energy_pj for name, energy in rows)


def test_salsa_and_a_pickle(capsys: pytest.CaptureFixture[str]) -> None:
    """A pickle of a salsa search has an object for each layer; two processes are two chains."""
    ((text,),) = said("s08_salsa_pickle", *words(), capsys=capsys)
    options = {"temporal_mapping_search_engine": "salsa", "salsa_iteration_number": 100, "salsa_restarts": 2}
    cycles = sum(record.latency_cycles for record in mapped(words(), **options).values())
    assert text.split() == ["7", str(float(cycles))]


def test_a_spatial_mapping_of_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    """A script can set a spatial mapping with the classes of zigzag-dse in front of the generator."""
    rows = said("s09_spatial", *words("cube_8x4x3", "generated"), capsys=capsys)
    convolutions = {
        name for name, record in mapped(words("cube_8x4x3", "generated")).items() if "K" in record.layer.loop_sizes
    }
    assert {name for name, lanes, _ in rows if lanes == "{'K': 4}"} == convolutions


def test_several_cores_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A script runs a network with two different cuts, and each result equals that of a run with the same cut."""
    given = system(tmp_path)
    rows = said("s10_stream_loop", *given, capsys=capsys)
    for (_, latency, energy), hints in zip(rows, ([["OY", "all"]], []), strict=True):
        result = tilewright.run_multi_core(
            given[1], given[0], given[2], cn_define_mode=1, hint_loops=hints, nb_ga_individuals=4, nb_ga_generations=1
        )
        assert (int(latency), float(energy)) == (result.latency_cycles, result.energy_pj)


def test_a_function_that_is_not_here(capsys: pytest.CaptureFixture[str]) -> None:
    """A script runs up to a call of a missing function; the message has its name and line."""
    assert main([str(SCRIPTS / "s11_plots.py"), *words()]) == 2
    found = capsys.readouterr()
    assert int(found.out) >= 7
    assert "s11_plots.py:11" in found.err
    assert "bar_plot_cost_model_evaluations_breakdown" in found.err


def test_data_between_layers(capsys: pytest.CaptureFixture[str]) -> None:
    """The script's energy and memories of each layer equal those of a run with `exploit_data_locality`."""
    said("s12_unused", *words(), capsys=capsys)
    options = {"objective": "energy", "exploit_data_locality": True, "workload_data_always_from_top_mem": True}
    records = mapped(words(), **options)
    answers = json.loads(Path("answers.json").read_text())
    assert {name: one["energy"] for name, one in answers.items()} == {
        name: one.energy_pj for name, one in records.items()
    }
    assert {name: set(one["memories"]) for name, one in answers.items()} == {
        name: set(one.memories) for name, one in records.items()
    }
    assert all(one["others"] >= 1 for one in answers.values())


def _resized(accelerator: Any, name: str, factor: int) -> Any:
    """Return the accelerator with a memory of another size."""

    core = accelerator.cores[0]
    memories = tuple(
        replace(memory, size_bits=factor * memory.size_bits) if memory.name == name else memory
        for memory in core.memories
    )
    return replace(accelerator, cores=(replace(core, memories=memories),))
