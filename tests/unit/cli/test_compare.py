"""`tilewright compare`: runs on one core and on several, designs of a space, and refusals."""

import json
from pathlib import Path

import numpy as np
import onnx
import pandas
import pytest
import tilewright
import yaml
from tilewright.cli.main import main
from tilewright.results.run_text import bits_text

from tests.unit.cli.multi_core import GA, cut_and_cost, given, inputs, write_network
from tests.unit.multicore.nodes.networks import SAME, conv
from tests.unit.workload.onnx.dependency_checks import build_model

TINY = Path(__file__).resolve().parents[2] / "workflow" / "tiny"
IN_MEMORY = TINY.parents[1] / "conformance/data/in_memory/hardware/analog_24x40.yaml"
SPACE = """
accelerator: {tiny}/hardware/wide.yaml
mapping: {tiny}/mapping/free.yaml
networks: [{tiny}/workload/two_layers.yaml]
axes:
  lanes: {{path: operational_array.sizes.0, values: [2, 4]}}
  size: {{path: memories.memory.size, values: [1 MiB, 8]}}
options: {{objective: energy, lpf_limit: 3}}
"""
ZIGZAG = ("--preset", "zigzag")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make runs on two single cores and on several cores, and the designs of a space."""
    folder = tmp_path_factory.mktemp("runs")
    descriptions = ["--workload", str(TINY / "workload/two_layers.yaml"), "--mapping", str(TINY / "mapping/free.yaml")]
    for name, options in {"wide": [], "narrow": [], "energy": ["--objective", "energy"]}.items():
        hardware = TINY / "hardware" / f"{'narrow' if name == 'narrow' else 'wide'}.yaml"
        arguments = ["--hardware", str(hardware), *descriptions, *ZIGZAG, "--lpf-limit", "3", "--no-store", *options]
        assert main(["map", *arguments, "-o", str(folder / name)]) == 0
    network, several = write_network(folder), folder / "several"
    cut_and_cost(network, several)
    assert main(["allocate", *inputs(network, several), *GA, "--jobs", "1", "-o", str(several)]) == 0
    allocation = ["--core-allocation", str(several / "allocation.json")]
    assert main(["schedule", *inputs(network, several), *allocation, "-o", str(several)]) == 0
    away = folder / "without_costs"
    assert main(["schedule", *inputs(network, several), *allocation, "-o", str(away)]) == 0
    alone = [*given(network), *ZIGZAG, "--lpf-limit", "3", "--no-store", "--model", "corrected"]
    alone[1] = str(TINY / "hardware" / "wide.yaml")
    alone[alone.index("--mapping") + 1] = str(TINY / "mapping" / "free.yaml")
    assert main(["map", *alone, "-o", str(folder / "alone")]) == 0
    (folder / "lanes.yaml").write_text(SPACE.format(tiny=TINY))
    assert main(["explore", str(folder / "lanes.yaml"), "-o", str(folder / "lanes")]) == 0
    return folder


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("wide", "narrow"),
        ("wide", "energy"),
        ("wide/layers.jsonl", "narrow/summary.json"),
        ("several", "without_costs"),
        ("alone", "several"),
        ("without_costs", "alone"),
        ("lanes:lanes-0", "lanes:lanes-2"),
        ("lanes:lanes-0", "energy"),
    ],
)
def test_differences_of_runs_add_up(runs: Path, a: str, b: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Command and function agree, and the differences of all terms add up to those of the summaries."""
    assert main(["compare", str(runs / a), str(runs / b), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    table = tilewright.compare(runs / a, runs / b)
    for quantity, total in said["totals"].items():
        rows = table[table["quantity"] == quantity]
        scale = max(total["a"], total["b"])
        assert rows["difference"].sum() == pytest.approx(total["difference"], abs=1e-9 * scale)
        assert not (rows["term"] == "in_no_term").any()
        assert said["b"][quantity] == total["b"]
    assert [row["difference"] for row in said["differences"]] == table["difference"].tolist()


def test_a_run_and_itself_do_not_differ(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run does not differ from itself, and a design does not differ from its full run."""
    for name in ("wide", "several"):
        assert not tilewright.compare(runs / name, runs / name)["difference"].any()
    assert main(["explore", str(runs / "lanes.yaml"), "-o", str(runs / "lanes"), "--show", "lanes-2"]) == 0
    full = runs / "lanes" / "designs" / "lanes-2" / "two_layers"
    capsys.readouterr()
    assert main(["compare", f"{runs / 'lanes'}:lanes-2", str(full), "--json"]) == 0
    totals = json.loads(capsys.readouterr().out)["totals"]
    assert [total["difference"] for total in totals.values()] == [0, 0]


def test_files_say_what_is_assumed(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Text, table, object and figure have the assumptions, and equal bytes each time."""
    arguments = ["compare", str(runs / "wide"), str(runs / "energy"), "-o"]
    assert main([*arguments, str(tmp_path / "one")]) == 0
    said = capsys.readouterr().out
    assert main([*arguments, str(tmp_path / "two")]) == 0
    names = ["comparison.csv", "comparison.json", "comparison.png", "comparison.svg"]
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == names
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    table = pandas.read_csv(tmp_path / "one" / "comparison.csv")
    data = json.loads((tmp_path / "one" / "comparison.json").read_text())
    for text in (said, table["assumes"][0], " ".join(data["notes"])):
        assert "options differ: objective latency | energy" in text
    assert "every layer reads its inputs from the top memory" in said
    assert data["assumes"] in said


@pytest.mark.parametrize(
    ("a", "b", "options", "message"),
    [
        ("wide", "several", [], "runs of different networks cannot be compared: 'two_layers' and 'net'"),
        ("wide", "none", [], "none: no such run (did you mean '"),
        ("wide", "zzzzzz", [], "zzzzzz: no such run; existing runs are "),
        ("lanes:lanes-9", "wide", [], "no such design, got lanes-9 (did you mean 'lanes-"),
        ("lanes:lanes-1", "wide", [], "the design has no results for two_layers: "),
        ("lanes:lanes-0", "lanes:lanes-2", ["--network", "three"], "no such network, got three"),
        ("wide", "narrow", ["--network", "two_layers"], "applies only to designs of a space"),
        ("none:x", "wide", [], "the folder has no file space.parquet with the results of a space"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    runs: Path, capsys: pytest.CaptureFixture[str], a: str, b: str, options: list[str], message: str
) -> None:
    """Runs that cannot be compared are refused with the reason and exit code 2."""
    assert main(["compare", str(runs / a), str(runs / b), *options]) == 2
    assert message in capsys.readouterr().err


def test_an_in_memory_core_is_compared_with_a_digital_one(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An in-memory core is compared with a digital one; a note says if one runs more layers."""
    in_part, pool = "some layers are in one run only, because the cores run different parts", tmp_path / "pool.yaml"
    layers = yaml.safe_load((TINY / "workload/two_layers.yaml").read_text())
    added = {"id": 2, "name": "added", "operator_type": "Add", "equation": "O[b][k]=W[b][k]+I[b][k]"}
    added |= {"loop_dims": ["B", "K"], "loop_sizes": [1, 8], "operand_source": {"I": 1, "W": 1}}
    pool.write_text(yaml.safe_dump([*layers, added | {"operand_precision": layers[1]["operand_precision"]}]))
    relu = tmp_path / "relu.onnx"
    nodes = [conv("x", "w", "a", **SAME), onnx.helper.make_node("Add", ["a", "a"], ["b"], name="twice")]
    onnx.save(build_model(nodes, {"x": (1, 4, 8, 8)}, {"w": np.ones((4, 4, 3, 3), np.float32)}), str(relu))
    for network, model, told in ((pool, "zigzag-3.9.1", True), (relu, "corrected", False)):
        folders = []
        for hardware in (TINY / "hardware" / "wide.yaml", IN_MEMORY):
            folders.append(tmp_path / f"{hardware.stem}-{network.stem}")
            given = [
                "--workload",
                str(network),
                "--hardware",
                str(hardware),
                *ZIGZAG,
                "--lpf-limit",
                "2",
                "--model",
                model,
            ]
            assert (
                main(
                    ["map", *given, "--mapping", str(TINY / "mapping/free.yaml"), "--no-store", "-o", str(folders[-1])]
                )
                == 0
            )
        capsys.readouterr()
        assert main(["compare", *map(str, folders)]) == 0
        assert (in_part in capsys.readouterr().out) == told


def test_bits_of_one_network_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`compare` accepts runs of one network with different bits, and names the bits; it refuses different shapes.

    The groups of `pareto` have the bits in their name.
    """
    networks = {}
    for name, shape in (("net", (1, 4, 8, 8)), ("wide", (1, 4, 16, 8))):
        networks[name] = tmp_path / name / "net.onnx"
        networks[name].parent.mkdir()
        model = build_model([conv("x", "w", "a", **SAME)], {"x": shape}, {"w": np.ones((4, 4, 3, 3), np.float32)})
        onnx.save(model, str(networks[name]))
    given = ["--hardware", str(TINY / "hardware/wide.yaml"), "--mapping", str(TINY / "mapping/free.yaml"), *ZIGZAG]
    for name, network, bits in (
        ("plain", "net", []),
        ("short", "net", ["--bits", "activations=16"]),
        ("full", "net", ["--bits", "activations=16,weights=8,partial=32"]),
        ("wide", "wide", []),
    ):
        options = ["--workload", str(networks[network]), *bits, "--lpf-limit", "2", "--no-store"]
        assert main(["map", *given, *options, "-o", str(tmp_path / "runs" / name)]) == 0
    folder = tmp_path / "runs"
    capsys.readouterr()
    assert main(["compare", str(folder / "short"), str(folder / "full")]) == 0
    assert "they have the same hardware, mapping, workload and options" in capsys.readouterr().out
    assert main(["compare", str(folder / "plain"), str(folder / "short")]) == 0
    text = capsys.readouterr().out
    assert "they differ in: bits of the operands\n" in text
    bits = {name: bits_text(tilewright.load(folder / name / "summary.json")) for name in ("plain", "short")}
    assert sorted(str(bits["short"]).split(", ")) == ["I 16", "O 32", "O_final 16", "W 8"]
    told = f"1 of 1 layer of the network: {bits['plain']} in A; {bits['short']} in B"
    assert f"the bits of the operands differ in {told}" in text
    assert main(["compare", str(folder / "plain"), str(folder / "wide")]) == 2
    assert "not the same in both runs: 1 layer differs: " in (said := capsys.readouterr().err)
    assert "8 in A, 16 in B" in said
    groups = tilewright.pareto([folder / name for name in ("plain", "short", "full")])["group"].tolist()
    assert groups == [f"bits {bits['plain']}", *[f"bits {bits['short']}"] * 2]
    named = tilewright.pareto([folder / name for name in ("plain", "wide")])["group"].tolist()
    assert all("other layers or shapes, network " in name for name in named)
    for name in ("plain", "wide"):
        (folder / name / "workload.json").unlink()
    for file in networks.values():
        file.unlink()
    missing = "because the network of at least one run was not found"
    assert main(["compare", str(folder / "short"), str(folder / "plain")]) == 2
    assert f"{bits['short']} in A; {bits['plain']} in B); more is not known, {missing}" in capsys.readouterr().err
    assert main(["compare", str(folder / "plain"), str(folder / "wide")]) == 0
    assert f"or only its costed operators differ, {missing}" in capsys.readouterr().out


def test_a_design_is_compared_with_a_run(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A design is compared in the network of the run; a full run of a design keeps the name of the design."""
    other = tmp_path / "other.yaml"
    other.write_text((TINY / "workload/two_layers.yaml").read_text())
    space = SPACE.replace("two_layers.yaml]", f"two_layers.yaml, {other}]").format(tiny=TINY)
    (tmp_path / "two.yaml").write_text(space)
    folder = tmp_path / "two"
    assert main(["explore", str(tmp_path / "two.yaml"), "-o", str(folder)]) == 0
    capsys.readouterr()
    for pair in ((f"{folder}:two-0", runs / "wide"), (runs / "wide", f"{folder}:two-0")):
        assert main(["compare", *map(str, pair)]) == 0
        text = capsys.readouterr().out
        assert ": two-0, two_layers on two-0\n" in text
        assert "static power is not given" not in text
    assert main(["compare", f"{folder}:two-0", f"{folder}:two-1"]) == 2
    assert "the space has several networks: name one of them" in capsys.readouterr().err
    assert main(["compare", f"{folder}:two-0", str(runs / "wide"), "--network", "other"]) == 2
    assert "different networks cannot be compared: 'other' and 'two_layers'" in capsys.readouterr().err
    assert main(["explore", str(tmp_path / "two.yaml"), "-o", str(folder), "--show", "two-2"]) == 0
    capsys.readouterr()
    assert main(["compare", str(runs / "wide"), str(folder / "designs" / "two-2" / "two_layers")]) == 0
    assert "B: two-2/two_layers, two_layers on " in capsys.readouterr().out


def test_the_header_says_what_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The header says which inputs and options of two runs differ, if any."""
    other = tmp_path / "mapping.yaml"
    other.write_text((TINY / "mapping/free.yaml").read_text().replace("K, 4", "K, 2"))
    given = [
        "map",
        "--hardware",
        str(TINY / "hardware/wide.yaml"),
        "--workload",
        str(TINY / "workload/two_layers.yaml"),
        *ZIGZAG,
    ]
    for name, mapping, options in (
        ("a", TINY / "mapping/free.yaml", ["--lpf-limit", "2"]),
        ("again", TINY / "mapping/free.yaml", ["--lpf-limit", "2"]),
        ("b", other, ["--lpf-limit", "2"]),
        ("c", other, ["--lpf-limit", "3", "--model", "corrected"]),
    ):
        assert main([*given, "--mapping", str(mapping), *options, "--no-store", "-o", str(tmp_path / name)]) == 0
    for pair, told in (
        ("ab", "they differ in: mapping\n"),
        ("ac", "they differ in: mapping, model, lpf_limit\n"),
        (("a", "again"), "they have the same hardware, mapping, workload and options\n"),
    ):
        capsys.readouterr()
        assert main(["compare", *(str(tmp_path / name) for name in pair)]) == 0
        assert told in capsys.readouterr().out


def test_mappings_are_searched_again_on_request(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--search-again` gives the factor at which new searches reverse the order."""
    hardware = (TINY / "hardware" / "narrow.yaml").read_text()
    (tmp_path / "costly.yaml").write_text(hardware.replace("unit_energy: 0.5", "unit_energy: 0.75"))
    descriptions = ["--workload", str(TINY / "workload/two_layers.yaml"), "--mapping", str(TINY / "mapping/free.yaml")]
    arguments = ["--hardware", str(tmp_path / "costly.yaml"), *descriptions, *ZIGZAG, "--lpf-limit", "3", "--no-store"]
    assert main(["map", *arguments, "-o", str(tmp_path / "costly")]) == 0
    capsys.readouterr()
    assert main(["compare", str(runs / "narrow"), str(tmp_path / "costly")]) == 0
    assert "searched again" not in capsys.readouterr().out
    again = ["--search-again", "--jobs", "2", "-o", str(tmp_path / "compared")]
    assert main(["compare", str(runs / "narrow"), str(tmp_path / "costly"), *again]) == 0
    text = capsys.readouterr().out
    written = json.loads((tmp_path / "compared" / "comparison.json").read_text())["searched_turns"]
    assert [one["measure"] for one in written] == ["energy", "EDP"]
    for one in written:
        assert f"searched again, {one['measure']}: B is below A with at least" in text
        assert one["number"] == "energy of a MAC in A"
        assert one["factor"] == pytest.approx(1.5, rel=0.02)
    assert main(["compare", str(runs / "wide"), str(runs / "wide"), "--search-again"]) == 0
    assert "no search was needed" in capsys.readouterr().out


def test_only_runs_on_one_core_are_searched_again(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A schedule cannot be searched again."""
    assert main(["compare", str(runs / "several"), str(runs / "several"), "--search-again"]) == 2
    assert "cannot be searched again, which the option --search-again needs: it is not" in capsys.readouterr().err
