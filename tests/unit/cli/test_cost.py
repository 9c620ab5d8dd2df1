"""`tilewright cost`: the cost table of one core, from files to an artifact."""

import json
from pathlib import Path

import pytest
import yaml
from tilewright.base.artifacts.envelope import read_artifact
from tilewright.cli.main import main
from tilewright.multicore.scheduling.core_costs import read_core_costs

from tests.unit.hardware.system_cases import connected, core, memory, offchip, write

ROOT = Path(__file__).resolve().parents[3]
NETWORK = ROOT / "tests" / "workflow" / "tiny" / "workload" / "two_layers.yaml"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write two cores of four lanes, a network of two layers cut in four, and a mapping file without constraints."""
    made = tmp_path_factory.mktemp("system")
    write(made, small=core(), large=core("large", sram=memory(10**7)), dram=offchip())
    write(made, system=connected(2, ["0, 1"]) | {"cores": {0: "./small.yaml", 1: "./large.yaml"}})
    links = {"O": "O", "W": "I2", "I": "I1"}
    (made / "mapping.yaml").write_text(yaml.safe_dump([{"name": "default", "memory_operand_links": links}]))
    files = {"--hardware": made / "system.yaml", "--workload": NETWORK, "--mapping": made / "mapping.yaml"}
    words = [word for option, file in files.items() for word in (option, str(file))]
    cut = ["--cn-define-mode", "1", "--hint-loops", '[["OY", 4]]']
    assert main(["cns", *words, *cut, "-o", str(made)]) == 0
    return made


def arguments(folder: Path, core_name: str = "small", **changes: str) -> list[str]:
    """Return a command line."""
    given = {
        "--hardware": str(folder / "system.yaml"),
        "--core": core_name,
        "--cns": str(folder),
        "--workload": str(NETWORK),
        "--mapping": str(folder / "mapping.yaml"),
        "--model": "corrected",
        "--lpf-limit": "4",
        "--store": str(folder / "store"),
    } | {f"--{name}": value for name, value in changes.items()}
    return ["cost", *(text for pair in given.items() for text in pair)]


def test_the_table_is_an_artifact(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The table has a row for each class, is printed with -v, and has the same bytes without a store."""
    output = tmp_path / "cost" / "small.jsonl"
    assert main([*arguments(folder), "-o", str(output)]) == 0
    said = capsys.readouterr().out
    rows = read_core_costs(output)
    assert f"{len(rows)} of {len(rows)} classes" in said
    assert said.count("\n") == 1
    assert all(row.can_run and row.cn_count for row in rows)
    other = tmp_path / "other.jsonl"
    assert main([*arguments(folder), "-o", str(other), "--no-store", "--jobs", "2", "-v"]) == 0
    assert rows[0].what in capsys.readouterr().out
    assert other.read_bytes() == output.read_bytes()


def test_the_table_does_not_depend_on_other_cores_and_links(folder: Path, tmp_path: Path) -> None:
    """The table of a core depends on the off-chip memory, but not on other cores or links."""
    first = tmp_path / "first.jsonl"
    assert main([*arguments(folder), "-o", str(first)]) == 0
    write(tmp_path, small=core(), large=core("large", sram=memory(10**5)), dram=offchip())
    files = {"cores": {0: "./small.yaml", 1: "./large.yaml"}}
    write(tmp_path, system=connected(2, ["0, 1"], bandwidth=1024) | files)
    again = tmp_path / "again.jsonl"
    assert main([*arguments(folder, hardware=str(tmp_path / "system.yaml")), "-o", str(again)]) == 0
    assert again.read_bytes() == first.read_bytes()
    slow = offchip()
    slow["memories"]["dram"]["ports"][0] |= {"bandwidth_min": 8, "bandwidth_max": 8}
    write(tmp_path, dram=slow)
    assert main([*arguments(folder, hardware=str(tmp_path / "system.yaml")), "-o", str(again)]) == 0
    assert again.read_bytes() != first.read_bytes()


def test_json_has_every_row(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """JSON output has every row and no further text."""
    assert main([*arguments(folder), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["core"] == "small"
    assert [row["cost_class"] for row in said["rows"]] == list(range(len(said["rows"])))


def test_everything_that_is_wrong_is_told_at_once(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All faults are reported together with exit code 2."""
    given = {"mapping": str(tmp_path / "none.yaml"), "cns": str(tmp_path), "hardware": str(folder / "small.yaml")}
    assert main(arguments(folder, **given)) == 2
    said = capsys.readouterr().err
    assert all(text in said for text in ("none.yaml", "cn_graph.json", "several cores"))
    assert "internal" not in said


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"core_name": "smal"}, "did you mean 'small'"),
        ({"lpf-limit": "none at all"}, "--lpf-limit"),
        ({"workload": str(ROOT / "config" / "workload" / "resnet18.onnx")}, "another network"),
    ],
)
def test_wrong_input_is_the_users_error(
    changes: dict[str, str], told: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wrong input ends with exit code 2 and a suggestion."""
    assert main(arguments(folder, **changes)) == 2
    assert told in capsys.readouterr().err


def test_provenance_names_what_the_table_depends_on(folder: Path, tmp_path: Path) -> None:
    """Provenance names the inputs of the table: core, off-chip memory, CN graph, network and classes, not the
    accelerator."""
    output = tmp_path / "small.jsonl"
    assert main([*arguments(folder), "-o", str(output)]) == 0
    inputs = read_artifact(output, "tilewright/core-costs").provenance["inputs"]
    assert set(inputs) == {"core", "off_chip", "cn_graph", "workload", "classes"}


def test_lanes_that_nodes_do_not_get_are_told(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A notice says that the mapping file asks for more lanes than the array has."""
    mapping = tmp_path / "mapping.yaml"
    mapping.write_text("- name: default\n  spatial_mapping:\n    D1: ['K, 64']\n")
    assert main([*arguments(folder, mapping=str(mapping)), "-o", str(tmp_path / "small.jsonl")]) == 0
    said = capsys.readouterr().err
    told = "asks for 64 lanes, but the array of small has only 4 on this side: the excess lanes are left out"
    told += " (in 2 layers: first, second)"
    assert f"note: {mapping}:3 default.spatial_mapping.D1: {told}\n" in said
    assert main([*arguments(folder), "-o", str(tmp_path / "small.jsonl")]) == 0
    assert "lanes" not in capsys.readouterr().err
