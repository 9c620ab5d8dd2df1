"""Scripts as strangers write them: they run and say what the verbs say, or what is missing."""

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
    """The lines that a script prints, cut at semicolons."""
    assert main([str(SCRIPTS / f"{script}.py"), *words]) == code
    return [line.split(";") for line in capsys.readouterr().out.splitlines()]


def words(hardware: str = "row_stationary_12x14", mapping: str = "user_2d") -> list[str]:
    """Accelerator, network and mapping file."""
    given = files(hardware, mapping)
    return [given["accelerator"], given["workload"], given["mapping"]]


def mapped(given: list[str], **options: Any) -> dict[str, Any]:
    """Layer -> record, as `tilewright.map` has it."""
    found = tilewright.map(given[1], given[0], given[2], **{"preset": "zigzag", "lpf_limit": 3, **options})
    return {name: record for record in found.records for name in record.names}


def test_several_accelerators(capsys: pytest.CaptureFixture[str]) -> None:
    """A MainStage for each."""
    hardware = [words(name, "generated") for name in ("row_stationary_12x14", "cube_8x4x3")]
    rows = said("s01_compare_accelerators", ",".join(one[0] for one in hardware), *hardware[0][1:], capsys=capsys)
    for (file, energy, latency), given in zip(rows, hardware, strict=True):
        records = mapped(given, objective="energy").values()
        assert file == given[0]
        assert float(energy) == pytest.approx(sum(record.energy_pj for record in records))
        assert float(latency) == sum(record.latency_cycles for record in records)


def test_a_sweep_of_a_memory(capsys: pytest.CaptureFixture[str]) -> None:
    """By copies of the accelerator; as with the file that has the size."""
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
    """And calls what it overrides."""
    records = mapped(words())
    rows = said("s03_subclass", *words(), capsys=capsys)
    assert {name: float(cycles) for name, cycles in rows} == {name: one.latency_cycles for name, one in records.items()}


def test_parameters_that_are_iterated_over(capsys: pytest.CaptureFixture[str]) -> None:
    """What stands beside each result says for which."""
    rows = said("s04_iterate_parameters", *words(), capsys=capsys)
    assert [row[0] for row in rows] == ["2", "3", "4"]
    for limit, edp in rows:
        records = mapped(words(), objective="EDP", lpf_limit=int(limit)).values()
        energy, cycles = sum(one.energy_pj for one in records), sum(one.latency_cycles for one in records)
        assert float(edp) == pytest.approx(energy * cycles)


def test_many_attributes(capsys: pytest.CaptureFixture[str]) -> None:
    """All that a report of a paper reads is there, for every operand and level."""
    rows = said("s05_attributes", *words(), capsys=capsys)
    assert len(rows) > 7 * 6
    assert len(list(Path("outputs").glob("*_complete.json"))) == 7


def test_a_cost_model_of_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    """A leaf that makes CMEs: the reduction goes by the energy that it sets."""
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
    """A partial, and a stage that puts another one in front of the rest."""
    records = mapped(words(), objective="energy")
    rows = said("s07_inserted", *words(), capsys=capsys)
    assert len(rows) == 3
    assert all(float(energy) == records[name].energy_pj for name, energy in rows)


def test_salsa_and_a_pickle(capsys: pytest.CaptureFixture[str]) -> None:
    """The pickle has an object for each layer; two processes are two chains."""
    ((text,),) = said("s08_salsa_pickle", *words(), capsys=capsys)
    options = {"temporal_mapping_search_engine": "salsa", "salsa_iteration_number": 100, "salsa_restarts": 2}
    cycles = sum(record.latency_cycles for record in mapped(words(), **options).values())
    assert text.split() == ["7", str(float(cycles))]


def test_a_spatial_mapping_of_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    """By the classes of theirs, in front of the generator."""
    rows = said("s09_spatial", *words("cube_8x4x3", "generated"), capsys=capsys)
    convolutions = {
        name for name, record in mapped(words("cube_8x4x3", "generated")).items() if "K" in record.layer.loop_sizes
    }
    assert {name for name, lanes, _ in rows if lanes == "{'K': 4}"} == convolutions


def test_several_cores_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two ways to cut; the settings of each are its own."""
    given = system(tmp_path)
    rows = said("s10_stream_loop", *given, capsys=capsys)
    for (_, latency, energy), hints in zip(rows, ([["OY", "all"]], []), strict=True):
        result = tilewright.run_multi_core(
            given[1], given[0], given[2], cn_define_mode=1, hint_loops=hints, nb_ga_individuals=4, nb_ga_generations=1
        )
        assert (int(latency), float(energy)) == (result.latency_cycles, result.energy_pj)


def test_a_function_that_is_not_here(capsys: pytest.CaptureFixture[str]) -> None:
    """The script runs to where it calls it; its name and its line are said."""
    assert main([str(SCRIPTS / "s11_plots.py"), *words()]) == 2
    found = capsys.readouterr()
    assert int(found.out) >= 7
    assert "s11_plots.py:11" in found.err
    assert "bar_plot_cost_model_evaluations_breakdown" in found.err


def test_data_between_layers(capsys: pytest.CaptureFixture[str]) -> None:
    """Energies and memories of each layer as with `exploit_data_locality`."""
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
    """The accelerator with a memory of another size."""

    core = accelerator.cores[0]
    memories = tuple(
        replace(memory, size_bits=factor * memory.size_bits) if memory.name == name else memory
        for memory in core.memories
    )
    return replace(accelerator, cores=(replace(core, memories=memories),))
