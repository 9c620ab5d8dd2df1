"""Exports in the layouts of zigzag-dse 3.9.1, compared by key and number with files that it wrote."""

import gzip
import json
import math
import pickle
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tilewright.base.errors import InputError
from tilewright.cli.main import main
from tilewright.cli.map import map_workload
from tilewright.cost.record import LayerRecord, record_of_row
from tilewright.hardware.core import Core
from tilewright.peers.zigzag.exports.files import (
    check_descriptions,
    write_all_complete,
    write_all_simple,
    write_pickle,
)
from tilewright.peers.zigzag.exports.loop_orderings import loop_ordering_text, network_loop_orderings
from tilewright.peers.zigzag.exports.results import (
    COMPLETE,
    complete_layer,
    complete_layers,
    core_of_record,
    export_file_name,
    json_text,
    pickle_bytes,
)
from tilewright.pipeline.sources import parse_accelerator, parse_workload, single_core
from tilewright.results.records import OVERALL
from tilewright.search.options import SearchOptions
from tilewright.workload.graph import Workload
from tilewright.workload.layer import Layer

FIXTURE = Path(__file__).parent / "data" / "reference-exports.json.gz"
DATA = Path(__file__).parents[3] / "conformance" / "data"
RUNS = ("weight_stationary_16x16", "row_stationary_12x14")
TINY = Path(__file__).parents[3] / "workflow" / "tiny"


@cache
def reference(hardware: str) -> dict[str, Any]:
    """The reference's output for one accelerator: `files` by name and the text `loop_ordering`."""
    content = json.loads(gzip.decompress(FIXTURE.read_bytes()))
    return {run["hardware"]: run for run in content["runs"]}[hardware]


@cache
def ours(hardware: str) -> tuple[tuple[LayerRecord, ...], dict[str, Any], Core, Workload]:
    """Records, summary, core and workload of the same search in tilewright."""
    core = single_core(parse_accelerator(DATA / "hardware" / f"{hardware}.yaml"))
    network = parse_workload(DATA / "workload" / "small_network.yaml")
    options = SearchOptions(objective="latency", lpf_limit=5)
    mapped = map_workload(network, DATA / "hardware" / f"{hardware}.yaml", DATA / "mapping" / "user_2d.yaml", options)
    return mapped.records, mapped.summary, core, network


def layers_of(network: Workload) -> dict[str, Layer]:
    """The layers of a workload by name."""
    return {node.layer.name: node.layer for node in network.layers_in_order if node.layer}


def differences(ours: Any, theirs: Any, path: str = "") -> Iterator[str]:
    """Every place where two JSON values differ: keys, kinds, lengths, texts and numbers (to 1e-12)."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted({*ours, *theirs}):
            if key in ours and key in theirs:
                yield from differences(ours[key], theirs[key], f"{path}.{key}")
            else:
                yield f"{path}.{key} only {'ours' if key in ours else 'theirs'}"
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for place, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(one, other, f"{path}[{place}]")
    elif isinstance(ours, int | float) and isinstance(theirs, int | float):
        if not math.isclose(ours, theirs, rel_tol=1e-12):
            yield f"{path} {ours} {theirs}"
    elif ours != theirs:
        yield f"{path} {ours!r} {theirs!r}"


def as_we_write(value: Any) -> Any:
    """The reference's object with tilewright's intended changes: sets in the array's order, and `*` for `+`."""
    text = json.dumps(value)
    text = re.sub(r"\{(D\d(?:, D\d)*)\}", lambda m: "{" + ", ".join(sorted(m[1].split(", "))) + "}", text)
    return json.loads(re.sub(r'("equation": "[^"]*?) \+ ', r"\1 * ", text))


@pytest.mark.parametrize("hardware", RUNS)
def test_complete_objects_are_those_of_the_reference(hardware: str) -> None:
    """Every layer's complete object, with accelerator and mapping, has the reference's keys and numbers."""
    records, summary, core, network = ours(hardware)
    values = complete_layers(records, summary, core, layers_of(network))
    assert len(values) == 7
    for name, value in values.items():
        theirs = as_we_write(reference(hardware)["files"][export_file_name(name, COMPLETE)])
        assert list(differences(json.loads(json_text(value)), theirs)) == []


@pytest.mark.parametrize("hardware", RUNS)
def test_folders_hold_the_files_of_the_reference(hardware: str, tmp_path: Path) -> None:
    """The folders have the same file names, and the sums and simple objects have the same keys and numbers."""
    records, summary, core, network = ours(hardware)
    ids = {node.layer.name: node.node_id for node in network.layers_in_order if node.layer}
    paths = write_all_complete(tmp_path, records, summary, core, layers_of(network), ids)
    paths += write_all_simple(tmp_path, records, summary)
    theirs = reference(hardware)["files"]
    assert sorted(path.name for path in paths) == sorted(theirs)
    for path in paths:
        assert list(differences(json.loads(path.read_text()), as_we_write(theirs[path.name]))) == []


@pytest.mark.parametrize("hardware", RUNS)
def test_loop_orderings_are_those_of_the_reference(hardware: str) -> None:
    """The text equals the reference's, character by character, except for the `+` of an addition.

    Columns follow the memory operand links. If a mapping file gives no links, the reference lists the columns in its
    own order.
    """
    records, summary, _, _ = ours(hardware)
    theirs = reference(hardware)
    linked = []
    for record in records:
        file = theirs["files"][export_file_name(record.layer.name, COMPLETE)]
        links = file["inputs"]["layer"]["memory_operand_links"]
        assert links == record.memory_operand_links
        linked.append(replace(record, memory_operand_links=links))
    expected = theirs["loop_ordering"].replace("[ox] + I", "[ox] * I")
    assert network_loop_orderings(linked, summary) == expected


def test_loop_ordering_without_temporal_loops(record: dict[str, Any]) -> None:
    """A completely unrolled layer, on which the reference fails, has a header and its spatial loops."""
    record["temporal_mapping"] = {operand: [[] for _ in levels] for operand, levels in record["memory_levels"].items()}
    lines = loop_ordering_text(record_of_row(record)).splitlines()
    assert lines[2].split() == ["Temporal", "Loops", "O", "W", "I"]
    assert lines[4:6] == [lines[1], "Spatial Loops".ljust(len(lines[1]))]
    assert lines[7].split() == ["parfor", "C", "in", "[0,", "24.0):"]
    assert len({len(line) for line in lines[1:-1]}) == 1


def test_loop_ordering_without_any_loop(record: dict[str, Any]) -> None:
    """A layer without temporal and spatial loops has only the headers."""
    for table in ("temporal_mapping", "spatial_levels"):
        record[table] = {operand: [[] for _ in levels] for operand, levels in record[table].items()}
    text = loop_ordering_text(record_of_row(record), "other")
    assert text.startswith("Loop ordering for other; ")
    assert "for " not in text.split("\n", 1)[1]


def test_loop_ordering_of_other_operand_counts(record: dict[str, Any]) -> None:
    """The text has one column less with one input operand, and one more with three."""
    tables = ("memory_levels", "temporal_mapping", "spatial_levels")
    for table in tables:
        del record[table]["W"]
    assert loop_ordering_text(record_of_row(record)).splitlines()[2].split() == ["Temporal", "Loops", "O", "I"]
    for table in tables:
        record[table] |= {"A": record[table]["I"], "B": record[table]["I"]}
    record["memory_operand_links"] |= {"A": "I1", "B": "I2"}
    rows = [
        line.split()
        for line in loop_ordering_text(record_of_row(record)).splitlines()
        if line.lstrip().startswith("for ")
    ]
    assert len(rows) == 6
    assert all(len(row) == 5 + 4 for row in rows)


def test_pickle_is_the_complete_objects_with_stable_bytes(tmp_path: Path) -> None:
    """The pickle has only plain dicts and lists. Its bytes do not depend on the strings that are shared in memory."""
    records, summary, core, network = ours(RUNS[0])
    values = list(complete_layers(records, summary, core, layers_of(network)).values())
    write_pickle(tmp_path / "all.pickle", values)
    data = (tmp_path / "all.pickle").read_bytes()
    assert pickle.loads(data) == json.loads(json.dumps(values))
    assert pickle_bytes(json.loads(json.dumps(values))) == data
    assert b"tilewright" not in data


def test_complete_object_without_the_layer_says_null_for_what_it_does_not_know(
    record: dict[str, Any], core: Core
) -> None:
    """Dimension relations, which a record lacks, are null; all other values are there."""
    value = complete_layer(record_of_row(record), core)
    assert value["inputs"]["layer"]["equation_relations"] is None
    assert value["outputs"]["latency"] == {"data_onloading": 866, "computation": 2590, "data_offloading": 351}
    assert value["outputs"]["spatial"]["mac_utilization"]["ideal"] == 0.75


def test_memories_that_the_layer_ran_without_are_left_out() -> None:
    """The exported accelerator has no memories that data locality takes from a layer."""
    records, _, core, _ = ours(RUNS[0])
    assert core_of_record(records[0], core) is core
    top = core.memories[-1].name
    memories = {name: memory for name, memory in records[0].memories.items() if name != top}
    record = replace(records[0], memories=memories)
    small = core_of_record(record, core)
    assert [memory.name for memory in small.memories] == [memory.name for memory in core.memories[:-1]]
    assert top not in json_text(complete_layer(record, core)["inputs"]["accelerator"])


def test_dataflows_are_a_table_and_several_a_list() -> None:
    """One dataflow is a table, as the reference writes it; several are a list."""
    records, _, core, _ = ours(RUNS[0])
    first, second = (("D1", (("K", 2), ("C", 3))),), (("D2", (("OX", 4),)),)
    tables = {"D1": {"K": 2, "C": 3}}, {"D2": {"OX": 4}}
    for dataflows, expected in (((), None), ((first,), tables[0]), ((first, second), list(tables))):
        value = complete_layer(records[0], replace(core, dataflows=dataflows))
        assert value["inputs"]["accelerator"]["dataflows"] == expected


def test_layers_of_one_file_name_and_other_descriptions_are_refused(record: dict[str, Any], core: Core) -> None:
    """Layers whose file names are equal are refused; wrong hardware or workload is reported by layer."""
    records, summary, other_core, network = ours(RUNS[0])
    with pytest.raises(InputError, match="did not run on the given hardware"):
        check_descriptions(records, core, layers_of(network))
    with pytest.raises(InputError, match="not in the given workload"):
        check_descriptions(records, other_core, {})
    check_descriptions(records, other_core, layers_of(network))
    names = ["a/b", "a_b"]
    twins = [
        record_of_row({**record, "layer": {**record["layer"], "name": name}, "layer_names": [name]}) for name in names
    ]
    index = {**summary, "layer_index": [["a/b", 0], ["a_b", 1]]}
    with pytest.raises(InputError, match="same file"):
        write_all_simple(Path("unused"), twins, index)
    index = {**summary, "layer_index": [[OVERALL, 0]]}
    with pytest.raises(InputError, match="same file"):
        write_all_complete(Path("unused"), twins, index, core)


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small run."""
    folder = tmp_path_factory.mktemp("export") / "run"
    given = [
        *("--hardware", str(TINY / "hardware" / "narrow.yaml"), "--mapping", str(TINY / "mapping" / "free.yaml")),
        *("--workload", str(TINY / "workload" / "two_layers.yaml")),
    ]
    assert main(["map", "--preset", "zigzag", *given, "--lpf-limit", "3", "--no-store", "-o", str(folder)]) == 0
    return folder


DESCRIPTIONS = [
    *("--hardware", str(TINY / "hardware" / "narrow.yaml")),
    *("--workload", str(TINY / "workload" / "two_layers.yaml")),
]


def test_verb_writes_every_format(run_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Texts and the pickle are files; each JSON export is a folder with a file for each layer and one for the sums."""
    for form in ("mapping", "loop-nest", "loop-ordering", "simple-json", "complete-json", "pickle"):
        assert main(["export", str(run_folder), "--format", form, *DESCRIPTIONS, "-o", str(tmp_path / form)]) == 0
    assert (tmp_path / "loop-ordering").read_text().count("Loop ordering for ") == 2
    assert len(list((tmp_path / "simple-json").iterdir())) == 3
    assert len(list((tmp_path / "complete-json").iterdir())) == 3
    assert len(pickle.loads((tmp_path / "pickle").read_bytes())) == 2
    capsys.readouterr()


@pytest.mark.parametrize("form", ["mapping", "loop-nest", "loop-ordering", "simple-json", "complete-json"])
def test_verb_prints_without_a_file(form: str, run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The verb prints the export if there is no -o; with --json, the export is one JSON value."""
    assert main(["export", str(run_folder), "--format", form, *DESCRIPTIONS]) == 0
    assert capsys.readouterr().out
    assert main(["export", str(run_folder), "--format", form, *DESCRIPTIONS, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)


def test_verb_says_what_is_missing(run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both missing descriptions are asked for at once, and a pickle is not printed."""
    assert main(["export", str(run_folder), "--format", "pickle"]) == 2
    said = capsys.readouterr().err
    assert "--hardware" in said
    assert "--workload" in said
    assert main(["export", str(run_folder), "--format", "pickle", *DESCRIPTIONS]) == 2
    assert "-o" in capsys.readouterr().err


@pytest.mark.parametrize("hardware", ["analog_24x40", "digital_16x32x3"])
def test_in_memory_arrays_have_the_groups_of_the_reference(hardware: str, tmp_path: Path) -> None:
    """Parts of energy and time add up, and clock and area have the names of zigzag-dse's CostModelEvaluationForIMC."""
    core = single_core(parse_accelerator(DATA / "in_memory" / "hardware" / f"{hardware}.yaml"))
    gemm = {
        "id": 0,
        "name": "gemm",
        "operator_type": "Gemm",
        "equation": "O[d][k]+=I[d][c]*W[c][k]",
        "loop_dims": ["D", "C", "K"],
        "loop_sizes": [6, 20, 48],
        "operand_precision": {"W": 4, "I": 4, "O": 16, "O_final": 8},
        "operand_source": {"I": 0, "W": 0},
    }
    links = {"O": "O", "W": "I2", "I": "I1"}
    mapping = [{"name": "default", "spatial_mapping_hint": {"D1": ["K"], "D2": ["C"]}, "memory_operand_links": links}]
    path = DATA / "in_memory" / "hardware" / f"{hardware}.yaml"
    mapped = map_workload(parse_workload([gemm]), path, mapping, SearchOptions(lpf_limit=3, model="corrected"))
    records, summary = mapped.records, mapped.summary
    write_all_complete(tmp_path, records, summary, core)
    write_all_simple(tmp_path, records, summary)
    for name in ("gemm_complete", "overall_complete"):
        value = json.loads((tmp_path / f"{name}.json").read_text())
        outputs, array = value["outputs"], value["inputs"]["accelerator"]["operational_array"]
        assert list(outputs) == ["memory", "energy", "latency", "spatial", "clock", "area (mm^2)"]
        parts = outputs["energy"]["operational_energy_breakdown"]
        assert list(parts)[:2] == ["local_bl_precharging", "dacs"]
        assert sum(parts.values()) == pytest.approx(outputs["energy"]["operational_energy"])
        assert (parts["adcs"] > 0) == hardware.startswith("analog")
        computing = outputs["latency"]["computation_breakdown"]
        assert sum(computing.values()) == outputs["latency"]["computation"]
        assert sum(outputs["clock"]["tclk_breakdown (ns)"].values()) == pytest.approx(outputs["clock"]["tclk (ns)"])
        area = outputs["area (mm^2)"]
        assert sum(area["total_area_breakdown:"].values()) == pytest.approx(area["total_area"])
        assert array["operational_unit"]["imc_type"] == hardware.split("_", maxsplit=1)[0]
        assert "energy_cost" not in array["operational_unit"]
    simple = json.loads((tmp_path / "overall_simple.json").read_text())
    assert simple["tclk (ns)"] == summary["clock_period_ns"]
    assert simple["area"] == summary["area_mm2"] == area["total_area"]
