"""`tilewright advise` for a run on several cores: its gains equal runs of the changed files."""

import json
import random
import shutil
from pathlib import Path

import pytest
import tilewright
import yaml
from tilewright.base.artifacts.envelope import read_artifact
from tilewright.cli.advise import write_changed
from tilewright.cli.main import main
from tilewright.designs.advice import Advices
from tilewright.designs.space_reader import read_space
from tilewright.hardware.dotted_paths import key_path

from tests.unit.cli.multi_core import CORES, GA, HARDWARE, MAPPING, TINY, cut_and_cost, inputs, write_network

pytestmark = pytest.mark.usefixtures("unpainted")

DUO = Path(HARDWARE)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a small run, with its network beside it."""
    folder = tmp_path_factory.mktemp("run")
    network, made = write_network(folder), folder / "duo"
    cut_and_cost(network, made)
    given = [*inputs(network, made), "-o", str(made)]
    assert main(["allocate", *given, *GA]) == 0
    assert main(["schedule", *given, "--core-allocation", str(made / "allocation.json")]) == 0
    return made


def given(run: Path) -> dict[str, Path]:
    """Return the descriptions of the run."""
    return {"hardware": DUO, "workload": run.parent / "net.onnx", "mapping": Path(MAPPING)}


@pytest.fixture(scope="module")
def found(run: Path) -> Advices:
    """Return the advice for the run."""
    return tilewright.advise(run, **given(run))


def confirmed(
    run: Path, found: Advices, number: int, folder: Path, mappings: dict[str, Path]
) -> list[dict[str, float]]:
    """Return the costs of the verbs on the changed files, for each mapping file.

    The mapping file with the cores of the run needs no search for an allocation.
    """
    shutil.copytree(TINY / "hardware", folder / "hardware")
    change = found.found[number - 1].change
    write_changed(found, number, folder / "hardware" / Path(change.file).relative_to(TINY / "hardware"))
    hardware, costs = str(folder / "hardware" / DUO.name), []
    for name, mapping in mappings.items():
        made = folder / name
        files = ["--hardware", hardware, "--workload", str(run.parent / "net.onnx"), "--mapping", str(mapping)]
        cns = ["--cns", str(made)]
        assert main(["cns", *files, "-o", str(made)]) == 0
        for core in CORES:
            table = str(made / "cost" / f"{core}.jsonl")
            options = ["--core", core, "--model", "corrected", "--no-store", "-o", table]
            assert main(["cost", *files, *cns, *options]) == 0
        inputs_of = [*files, *cns, "--costs", str(made / "cost"), "-o", str(made)]
        if name == "search":
            assert main(["allocate", *inputs_of, *GA]) == 0
            inputs_of += ["--core-allocation", str(made / "allocation.json")]
        assert main(["schedule", *inputs_of]) == 0
        costs.append(read_artifact(made / "summary.json").payload)
    return costs


@pytest.mark.parametrize(
    ("seed", "part"), [(0, "core_connectivity"), (1, "core_files.left"), (2, "core_files.offchip")]
)
def test_gains_are_those_of_the_changed_files(run: Path, found: Advices, seed: int, part: str, tmp_path: Path) -> None:
    """Gains of links, cores and the off-chip memory equal runs of the changed files exactly.
    They hold for the same allocation and after a new search.
    """
    fits = [(n, one) for n, one in enumerate(found.found, 1) if one.same.energy_pj is not None]
    number, one = random.Random(seed).choice([(n, one) for n, one in fits if one.change.key.startswith(part)])
    mappings = {"same": run / "mapping.yaml"} | ({} if seed else {"search": Path(MAPPING)})
    outcomes = [one.same] if seed else [one.same, one.search]
    for outcome, summary in zip(outcomes, confirmed(run, found, number, tmp_path, mappings), strict=True):
        assert outcome is not None
        assert (outcome.energy_pj, outcome.latency_cycles) == (summary["energy_pj"], summary["latency_cycles"])


def test_changes_are_of_all_files(found: Advices, run: Path) -> None:
    """Advice changes links and each core in the order of gains, and its keys are paths of a space of systems."""
    files = {Path(one.change.file).name for one in found.found}
    assert files == {"duo.yaml", *(path.name for path in (TINY / "hardware" / "cores").iterdir())}
    assert found.objective == json.loads((run / "summary.json").read_text())["payload"]["objective"]
    gains = [found.gain(one.outcome) for one in found.found if one.change.more and one.outcome.energy_pj is not None]
    assert gains == sorted((gain for gain in gains if gain is not None), reverse=True)
    axis = next(one.change for one in found.found if one.change.key.endswith("sizes.0"))
    networks = {"net": str(run.parent / "net.onnx")}
    axes = {"side": {"path": axis.key, "values": [axis.before, axis.after]}}
    space = read_space({"name": "it", "accelerator": str(DUO), "networks": networks, "axes": axes})
    assert [one.name for one in space.axes] == ["side"]
    assert key_path(yaml.safe_load(Path(axis.file).read_text()), axis.key.split(".", 2)[2]) == axis.path


def test_text_and_files(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The text names the kept allocation, and a change is written into the file of its number."""
    files = [f"--{name}={path}" for name, path in given(run).items()]
    arguments = ["advise", str(run), *files, "--no-search", "--factor", "4"]
    assert main([*arguments, "--write", "1", str(tmp_path / "changed.yaml"), "-o", str(tmp_path / "out")]) == 0
    told = capsys.readouterr().out
    assert "allocation" in told
    assert " search\n" not in told.partition("What can be taken away")[0]
    rows = json.loads((tmp_path / "out/advice.json").read_text())["changes"]
    before, after = Path(rows[0]["file"]).read_text().splitlines(), (tmp_path / "changed.yaml").read_text().splitlines()
    changed = [line for line, pair in enumerate(zip(before, after, strict=True), 1) if pair[0] != pair[1]]
    assert changed == [rows[0]["line"]]
    assert rows[0]["after"] in after[changed[0] - 1]


def test_what_is_wrong_is_told(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Other hardware than that of the run, and missing descriptions, are refused."""
    other = tmp_path / "hardware"
    shutil.copytree(TINY / "hardware", other)
    text = (other / DUO.name).read_text()
    (other / DUO.name).write_text(text.replace("name: duo", "name: another"))
    files = {**given(run), "hardware": other / DUO.name}
    assert main(["advise", str(run), *(f"--{name}={path}" for name, path in files.items())]) == 2
    assert "is not the hardware of the run" in capsys.readouterr().err
    older = tmp_path / "a/b/older"
    shutil.copytree(run, older)
    (older / "workload.json").unlink()
    assert main(["advise", str(older), f"--hardware={DUO}"]) == 2
    assert "--workload: the workload of this run was not found in config" in capsys.readouterr().err
