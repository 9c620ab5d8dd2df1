"""`tilewright.load` and the tables of results: loaded results equal the written ones, and tables equal the files."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas
import pytest
import tilewright
from pandas.testing import assert_frame_equal
from tilewright.base.artifacts.envelope import SCHEMA_VERSIONS
from tilewright.base.steps import PAPER, STEPS
from tilewright.cli.main import main
from tilewright.loading import _BY_SCHEMA

from tests.unit.cli.multi_core import GA, HARDWARE, MAPPING, cut_and_cost, inputs, write_network

pytestmark = pytest.mark.usefixtures("unpainted")

TINY = Path(__file__).resolve().parents[1] / "workflow" / "tiny"
ONE_CORE: dict[str, Any] = {
    "hardware": TINY / "hardware" / "wide.yaml",
    "workload": TINY / "workload" / "two_layers.yaml",
}


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """Make a run on one core with its bottlenecks, and return its folder and result."""
    folder = tmp_path_factory.mktemp("single")
    mapped = tilewright.map(
        **ONE_CORE, mapping=TINY / "mapping" / "free.yaml", preset="zigzag", lpf_limit=3, output=folder
    )
    tilewright.explain(folder, **ONE_CORE, output=folder / "report")
    tilewright.check(folder, output=folder / "checks.json")
    return folder, mapped


@pytest.fixture(scope="module")
def multi(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a run on two cores, with its parsed descriptions."""
    folder = tmp_path_factory.mktemp("multi")
    network = write_network(folder)
    cut_and_cost(network, folder)
    assert main(["allocate", *inputs(network, folder), *GA, "--jobs", "1", "-o", str(folder)]) == 0
    allocation = ["--core-allocation", str(folder / "allocation.json"), "-o", str(folder)]
    assert main(["schedule", *inputs(network, folder), *allocation]) == 0
    tilewright.check(folder, output=folder / "checks.json")
    tilewright.parse("hardware", HARDWARE, folder / "accelerator.json", core_folder=folder / "core")
    tilewright.parse("workload", network, folder / "workload.json", coverage=folder / "coverage.json")
    tilewright.parse("mapping", MAPPING, folder / "mapping.json")
    return folder


def test_a_run_on_one_core_comes_back(single: tuple[Path, Any]) -> None:
    """A loaded run on one core equals the result of the function, and its files equal the parts."""
    folder, mapped = single
    assert tilewright.load(folder) == mapped
    assert tilewright.load(str(folder / "layers.jsonl")) == mapped.records
    assert tilewright.load(folder / "summary.json") == mapped.summary
    assert all(check.passed for check in tilewright.load(folder / "checks.json"))
    assert tilewright.load(folder / "report" / "bottlenecks.json")["latency_cycles"] == mapped.summary["latency_cycles"]


def test_tables_of_one_core_are_those_of_the_files(single: tuple[Path, Any], tmp_path: Path) -> None:
    """Tables of one core equal the files in columns and numbers, and parts add up to totals."""
    folder, mapped = single
    tilewright.report(folder, tmp_path)
    assert_frame_equal(tilewright.load(tmp_path / "layers.csv"), mapped.layers, check_dtype=False)
    ports = tilewright.load(folder / "report" / "ports.csv")
    assert_frame_equal(ports[list(mapped.ports)], mapped.ports)
    shares = tilewright.load(folder / "report" / "bottlenecks.csv")
    energies = shares[shares["quantity"] == "energy_pj"].reset_index(drop=True)
    assert energies["value"].tolist() == mapped.energy["energy_pj"].tolist()
    assert energies["memory"].fillna("").tolist() == mapped.energy["memory"].tolist()
    assert mapped.energy["energy_pj"].sum() == pytest.approx(mapped.summary["energy_pj"], rel=1e-12)
    assert mapped.schedule["end_cycles"].iloc[-1] == mapped.summary["latency_cycles"]
    assert mapped.schedule["start_cycles"].tolist() == [0, *mapped.schedule["end_cycles"][:-1]]


def test_bottlenecks_have_tables(single: tuple[Path, Any]) -> None:
    """The tables of energy and ports that `explain` returns equal the tables of the run and of its report."""
    folder, mapped = single
    found = tilewright.explain(folder, **ONE_CORE)
    assert_frame_equal(found.energy, mapped.energy)
    assert_frame_equal(found.ports, tilewright.load(folder / "report" / "ports.csv"), check_dtype=False)
    assert folder.name in repr(found)
    assert "<table" in found._repr_html_()


def test_a_run_on_several_cores_comes_back(multi: Path) -> None:
    """A loaded run on several cores has the summary and the tables of the function's result."""
    given: dict[str, Any] = {"hardware": HARDWARE, "workload": multi / "net.onnx", "mapping": MAPPING, "cns": multi}
    made = tilewright.schedule(multi / "cost", multi / "allocation.json", **given)
    loaded = tilewright.load(multi)
    assert loaded.summary == tilewright.load(multi / "summary.json")
    assert repr(loaded) == repr(made)
    for name in ("layers", "cores", "energy", "schedule", "transfers"):
        assert_frame_equal(getattr(loaded, name), getattr(made, name))
    assert loaded.energy["energy_pj"].sum() == pytest.approx(made.energy_pj, rel=1e-12)
    ends = [*loaded.schedule["end_cycles"], *loaded.transfers["end_cycles"]]
    assert max(ends) == made.latency_cycles == loaded.latency_cycles
    assert "<table" in loaded._repr_html_()


def test_tables_of_several_cores_are_those_of_the_files(multi: Path, tmp_path: Path) -> None:
    """The tables of layers and cores equal the files."""
    tilewright.report(multi, tmp_path)
    loaded = tilewright.load(multi)
    for name in ("layers", "cores"):
        file = tilewright.load(tmp_path / f"{name}.csv")
        assert_frame_equal(file.astype(str), getattr(loaded, name).astype(str))


def test_results_are_one_line(single: tuple[Path, Any], multi: Path) -> None:
    """Each result is printed as one short line with counts and totals."""
    given: dict[str, Any] = {"hardware": HARDWARE, "workload": multi / "net.onnx", "mapping": MAPPING}
    cns = tilewright.cns(**given)
    assert repr(cns.graph) == "<net: 24 nodes of 3 layers in 1 stack, 65 edges>"
    assert repr(cns) == f"<to be costed on left, right: {cns.graph!r}>"
    assert repr(tilewright.cost(cns, lpf_limit=3)) == f"<costed on left, right: {cns.graph!r}>"
    schedule = tilewright.load(multi / "schedule.npz")
    assert repr(schedule).startswith("<schedule of net on duo: ")
    for result in (single[1], tilewright.load(multi), schedule):
        assert len(repr(result)) < 120
        assert "\n" not in repr(result)


def test_without_cost_tables_energy_is_one_term_of_each_layer(multi: Path, tmp_path: Path) -> None:
    """Energy without cost tables is one term of each layer, and the total is complete."""
    for name in ("schedule.npz", "summary.json"):
        (tmp_path / name).write_bytes((multi / name).read_bytes())
    found = tilewright.load(tmp_path).energy
    assert found["energy_pj"].sum() == pytest.approx(tilewright.load(multi).energy_pj, rel=1e-12)
    assert not found["memory"].any()


def test_every_kind_of_file_is_read_back(single: tuple[Path, Any], multi: Path, tmp_path: Path) -> None:
    """Each kind of file is read back, and descriptions equal their artifacts."""
    assert tilewright.load(multi / "accelerator.json") == tilewright.load(HARDWARE)
    assert tilewright.load(multi / "mapping.json") == tilewright.load(MAPPING)
    assert tilewright.load(multi / "core" / "left.json").name
    assert tilewright.load(multi / "workload.json").layers_in_order
    assert tilewright.load(multi / "net.onnx").layers_in_order
    assert tilewright.load(multi / "cn_graph.npz").cn_count == tilewright.load(multi / "cn_graph.json").cn_count
    assert tilewright.load(multi / "schedule.npz").names.network
    assert tilewright.load(multi / "cost" / "left.jsonl")
    for file in (file for folder in (single[0], multi) for file in folder.rglob("*") if file.is_file()):
        if file.suffix in (".svg", ".png"):
            with pytest.raises(tilewright.InputError, match=r"can read \(it is a figure or a page"):
                tilewright.load(file)
        else:
            assert tilewright.load(file) is not None
    (tmp_path / "decision.md").write_text("# Decision")
    with pytest.raises(tilewright.InputError, match=r"can read \(it is a figure or a page"):
        tilewright.load(tmp_path / "decision.md")
    pandas.DataFrame({"design": ["a"]}).to_parquet(tmp_path / "space.parquet")
    assert list(tilewright.load(tmp_path)["design"]) == ["a"]


def test_the_catalogue_is_known() -> None:
    """Each reader is for an existing schema, and each file of a step has a suffix that is read or only viewed."""
    assert {f"tilewright/{name}" for name in _BY_SCHEMA} <= set(SCHEMA_VERSIONS)
    for_eyes = {".svg", ".pdf", ".html", ".md"}
    read = {".json", ".jsonl", ".npz", ".csv", ".parquet", ".txt", ".yaml", ".onnx"}
    assert {Path(name).suffix for step in STEPS.values() for name in step.writes if name != PAPER} <= for_eyes | read


def test_rows_of_evaluate_are_records(single: tuple[Path, Any], tmp_path: Path) -> None:
    """The rows of `evaluate` are read as records, although they are no artifact."""
    (tmp_path / "found.yaml").write_text(tilewright.export(single[0], hardware=ONE_CORE["hardware"]))
    given = {**ONE_CORE, "mapping": tmp_path / "found.yaml", "output": tmp_path / "found.jsonl"}
    records = tilewright.evaluate(**given)
    assert tilewright.load(tmp_path / "found.jsonl") == list(records)


def test_what_is_no_artifact_is_told(single: tuple[Path, Any], tmp_path: Path) -> None:
    """A file or folder that cannot be read is refused with the existing files or the nearest name."""
    folder, _ = single
    with pytest.raises(tilewright.InputError, match=r": no such file or folder.*summary\.json"):
        tilewright.load(folder / "sumary.json")
    with pytest.raises(tilewright.InputError, match=f"is not the folder of a run.*{folder.name}"):
        tilewright.load(folder.parent)
    (tmp_path / "cut.json").write_text((folder / "summary.json").read_text()[:-100])
    with pytest.raises(tilewright.ArtifactError, match="damaged"):
        tilewright.load(tmp_path / "cut.json")
    for name, text in (("a.json", "{"), ("b.csv", ""), ("c.parquet", "no table"), ("d.jsonl", "no row\n")):
        (tmp_path / name).write_text(text)
        with pytest.raises(tilewright.InputError, match="cannot be read as a"):
            tilewright.load(tmp_path / name)
    (tmp_path / "cn_graph.json").write_text("{}")
    with pytest.raises(tilewright.InputError, match="without a schedule"):
        tilewright.load(tmp_path)
    with pytest.raises(tilewright.InputError, match=r"is not a file that tilewright\.load can read"):
        tilewright.load(TINY / "config.yaml")


def test_results_load_no_tables_until_they_are_asked_for() -> None:
    """Results do not import libraries for tables until a table is used."""
    code = "import sys, tilewright.pipeline.stages.run, tilewright.pipeline.stages.multi.result; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert {"tilewright.results.result_tables", "tilewright.results.multi.result_tables"} <= loaded
    assert not {"pandas", "matplotlib", "tilewright.results.tables"} & loaded
