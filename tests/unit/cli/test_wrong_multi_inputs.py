"""Wrong inputs of the flow for several cores: all problems at once with exit code 2; earlier results stay.
Each problem has its file, line, path, value, allowed values and nearest name.
"""

import re
from pathlib import Path

import pytest
import yaml
from tilewright.cli.main import main
from tilewright.mapping.yaml_schema import MappingEntry

from tests.unit.cli.wrong_multi_inputs import GRAPHS, HARDWARE, MAPPING, MESH, SYSTEM, Slip, write_files

LOOPS = ["--cn-define-mode", "1", "--hint-loops"]
BY_LAYER = ["--cn-define-mode", "3", "--hint-loops", '[[["OY", 2]], [["OY", 1]]]', "--layer-cutoffs"]
FIRST = '  core_allocation: [0, 1]\n  intra_core_tiling: ["OY, 4"]\n  inter_core_tiling: ["K, 2"]\n'

MAPPINGS: dict[str, Slip] = {
    "unknown core": Slip(
        [(MAPPING, "[0, 1]", "[0, 5]")],
        ["mapping.yaml:2 first.core_allocation[1]: no core has this id, got 5 (allowed: 0, 1, 2) … '2'?)"],
    ),
    "negative, unknown and off-chip core": Slip(
        [(MAPPING, "[0, 1]", "[9, -1, 3]")],
        [
            "mapping.yaml:2 first.core_allocation[1]: must not be less than 0, got -1",
            "mapping.yaml:2 first.core_allocation[0]: no core has this id, got 9 (allowed: 0, 1, 2) … '2'?)",
            "mapping.yaml:2 first.core_allocation[2]: core 3 is the off-chip core, …, got 3 (allowed: 0, 1, 2)",
        ],
    ),
    "ids that are no numbers": Slip(
        [(MAPPING, "[0, 1]", "[0, one, 1.5]")],
        [
            "mapping.yaml:2 first.core_allocation[1]: must be a whole number, got 'one'",
            "mapping.yaml:2 first.core_allocation[2]: must be a whole number, got 1.5",
        ],
    ),
    "a core twice": Slip(
        [(MAPPING, "[0, 1]", "[0, 0]")],
        ["mapping.yaml:2 first.core_allocation[1]: this core is named twice, got 0"],
    ),
    "no cores": Slip(
        [(MAPPING, "[0, 1]", "[]")],
        ["mapping.yaml:2 first.core_allocation: too few items, got [] (allowed: at least 1 items)"],
    ),
    "core that cannot run the operator": Slip(
        [(MAPPING, "[0, 1]", "[0, 2]")],
        ["mapping.yaml:2 first.core_allocation[1]: core 2 cannot run Conv first: it runs pooling, not Conv, got 2"],
    ),
    "no core can run the operator": Slip(
        [(MAPPING, "[2]", "[0, 1]")],
        ["mapping.yaml:6 pool.core_allocation: no core can run MaxPool pool: core 0, 1 runs mac, not MaxPool"],
    ),
    "tiles larger than the layer": Slip(
        [(MAPPING, "OY, 4", "OY, 400"), (MAPPING, "K, 2", "K, 99")],
        [
            "mapping.yaml:3 first.intra_core_tiling[0]: more tiles than OY has indices, got 'OY, 400' … 8, or all)",
            "mapping.yaml:4 first.inter_core_tiling[0]: more tiles than K has indices, got 'K, 99' … 1 to 8, or all)",
        ],
    ),
    "unknown dimensions": Slip(
        [(MAPPING, "OY, 4", "QQ, 2"), (MAPPING, "K, 2", "KK, 2")],
        [
            "mapping.yaml:3 first.intra_core_tiling[0]: no layer of net has this loop dimension, got 'QQ' …",
            "mapping.yaml:4 first.inter_core_tiling[0]: no layer of net …, got 'KK' … (did you mean 'K'?)",
        ],
    ),
    "tiles that are no whole numbers": Slip(
        [(MAPPING, "OY, 4", "OY, 2.5"), (MAPPING, "K, 2", "K, -2")],
        [
            "mapping.yaml:3 first.intra_core_tiling[0]: must be a loop dimension …, got 'OY, 2.5' (allowed: `OY, 4`…",
            "mapping.yaml:4 first.inter_core_tiling[0]: must be a loop dimension …, got 'K, -2' (allowed: `OY, 4`…",
        ],
    ),
    "no tiles": Slip(
        [(MAPPING, "OY, 4", "OY, 0")],
        ["mapping.yaml:3 first.intra_core_tiling[0]: the number of tiles must be at least 1, got 'OY, 0' (allowed: …"],
    ),
    "tiles as a number": Slip(
        [(MAPPING, '["OY, 4"]', "4")], ["mapping.yaml:3 first.intra_core_tiling: must be a list, got 4"]
    ),
    "misspelt keys": Slip(
        [
            (MAPPING, "intra_core_tiling", "intra_core_tilling"),
            (MAPPING, "core_allocation: [2]", "core_alocation: [2]"),
        ],
        [
            "mapping.yaml:3 first.intra_core_tilling: unknown key (did you mean 'intra_core_tiling'?)",
            "mapping.yaml:6 pool.core_alocation: unknown key (did you mean 'core_allocation'?)",
        ],
    ),
    "two entries of one name": Slip(
        [(MAPPING, "- name: pool", "- name: first")],
        ["mapping.yaml:5 [1].name: another entry has the same name, got 'first'"],
    ),
    "no default": Slip(
        [(MAPPING, "- name: default\n", "")], ["mapping.yaml:1 an entry with `name: default` is required, …"]
    ),
    "too few fixed cores": Slip(
        [(MAPPING, "[0, 1]", "[0, 1]\n  core_allocation_is_fixed: true"), (MAPPING, "K, 2", "K, 4")],
        ["mapping.yaml:2 first.core_allocation: fixes 2 cores, but first has 4 groups, got '[0, 1]'"],
    ),
    "array dimension of no core": Slip(
        [(MAPPING, "[2]", "[2]\n  spatial_mapping: { D7: ['OX, 2'] }")],
        [
            "mapping.yaml:7 pool.spatial_mapping.D7: no core that can run these layers has this array dimension, "
            "got 'D7' … D1)"
        ],
    ),
    "form and meaning at once": Slip(
        [
            (MAPPING, "[0, 1]", "[9, -1, 6]"),
            (MAPPING, "OY, 4", "QQ, 2"),
            (MAPPING, '["K, 2"]', '["ZZ, 2", "K; 2"]'),
            (MAPPING, "[2]", "[77]\n  core_alocation: [2]"),
        ],
        [
            "mapping.yaml:2 first.core_allocation[1]: must not be less than 0, got -1",
            "mapping.yaml:2 first.core_allocation[0]: no core has this id, got 9 …",
            "mapping.yaml:2 first.core_allocation[2]: no core has this id, got 6 …",
            "mapping.yaml:3 first.intra_core_tiling[0]: no layer of net has this loop dimension, got 'QQ' …",
            "mapping.yaml:4 first.inter_core_tiling[1]: must be a loop dimension and a number of tiles, got 'K; 2' …",
            "mapping.yaml:4 first.inter_core_tiling[0]: no layer of net has this loop dimension, got 'ZZ' …",
            "mapping.yaml:6 pool.core_allocation[0]: no core has this id, got 77 (allowed: 0, 1, 2) … '2'?)",
            "mapping.yaml:7 pool.core_alocation: unknown key (did you mean 'core_allocation'?)",
        ],
    ),
}
OPTIONS: dict[str, Slip] = {
    "loops that are no JSON": Slip([], ["--hint-loops: is not JSON, got '[[OY, 2]' …"], [*LOOPS, "[[OY, 2]"]),
    "loop that no layer has": Slip(
        [],
        ["--hint-loops[0]: no layer of the network has this loop dimension, got KK … (did you mean 'K'?)"],
        [*LOOPS, '[["KK", 2]]'],
    ),
    "loop larger than all layers": Slip(
        [],
        [
            "--hint-loops[0]: more tiles than OY has indices, in each of the 3 layers, got OY, 99 (allowed: 1"
            " to 8, or all)"
        ],
        [*LOOPS, '[["OY", 99]]'],
    ),
    "loop of size 0": Slip([], ["--hint-loops[0]: the size of a loop must be …, got 0"], [*LOOPS, '[["OY", 0]]']),
    "cn_define_mode": Slip(
        [],
        ["--cn-define-mode: no mode for cutting layers into CNs has this number, got 7 (allowed: 1, 2, 3, 4)"],
        ["--cn-define-mode", "7"],
    ),
    "stack cutoff behind the network": Slip(
        [],
        ["--stack-cutoffs[1]: no layer has this id, got 77 (allowed: 0 to 2, the last layer of net)"],
        ["--stack-cutoffs", "[1, 77]"],
    ),
    "stack cutoffs that fall": Slip([], ["--stack-cutoffs: must rise, got [2, 1]"], ["--stack-cutoffs", "[2, 1]"]),
    "layer cutoff behind the network": Slip(
        [],
        ["--layer-cutoffs[0]: no layer has this id, got 50 (allowed: 0 to 2, the last layer of net)"],
        [*BY_LAYER, "[50]"],
    ),
    "too many layer cutoffs": Slip(
        [],
        [
            "--layer-cutoffs: the number of cutoffs must be one less than the number of lists of --hint-loops, got 2"
            " (allowed: 1)"
        ],
        [*BY_LAYER, "[1, 2]"],
    ),
    "stacks of unknown layers": Slip(
        [],
        [
            "--layer-stacks[1]: this layer is in another stack too, got 1",
            "--layer-stacks[1]: no layer has this id, got 9",
        ],
        ["--layer-stacks", "[[0, 1], [1, 9]]"],
    ),
    "stacks that are no lists": Slip(
        [],
        ["--layer-stacks[0]: must be a list of node ids, got 0 (allowed: whole numbers from 0)"],
        ["--layer-stacks", "[0]"],
    ),
    "share": Slip([], ["--split-w-percentage: wrong share, got 2.0 (allowed: …"], ["--split-w-percentage", "2"]),
}
TOGETHER: dict[str, Slip] = {
    "accelerator, core file, mapping and options": Slip(
        [
            (SYSTEM, "- 0, 1", "- 0, 11"),
            (MAPPING, "[0, 1]", "[9, -1, 6]"),
            ("cores/pool.yaml", "size: 4 KiB", "size: 0"),
        ],
        [
            "--stack-cutoffs: must rise, got [2, 1]",
            "trio.yaml:8 core_connectivity[0]: no core has this id, got 11 (allowed: 0, 1, 2, 3)",
            "cores/pool.yaml:8 memories.memory.size: must be greater than 0, got 0",
            "mapping.yaml:2 first.core_allocation[1]: must not be less than 0, got -1",
            "mapping.yaml:2 first.core_allocation[0]: no core has this id, got 9 …",
            "mapping.yaml:2 first.core_allocation[2]: no core has this id, got 6 …",
        ],
        ["--stack-cutoffs", "[2, 1]"],
    ),
    "a broken accelerator hides nothing of the mapping": Slip(
        [
            (SYSTEM, "bandwidth: 32", "bandwidth: none"),
            (MAPPING, FIRST, FIRST.replace("0, 1", "0, 7").replace("OY, 4", "QQ, 2").replace("K, 2", "K, 99")),
            (MAPPING, "[2]", "[3]"),
        ],
        [
            "trio.yaml:10 bandwidth: must be a number, with or without a unit, got 'none' …",
            "mapping.yaml:2 first.core_allocation[1]: no core has this id, got 7 …",
            "mapping.yaml:3 first.intra_core_tiling[0]: no layer of net has this loop dimension, got 'QQ' …",
            "mapping.yaml:4 first.inter_core_tiling[0]: more tiles than K has indices, got 'K, 99' … 1 to 8, or all)",
            "mapping.yaml:6 pool.core_allocation[0]: core 3 is the off-chip core, …",
        ],
    ),
    "wrong options hide nothing of the mapping": Slip(
        [(MAPPING, "OY, 4", "OY, 400")],
        [
            "--stack-cutoffs: must be a list of node ids, got ['a'] …",
            "mapping.yaml:3 first.intra_core_tiling[0]: more tiles than OY has indices, got 'OY, 400' …",
        ],
        ["--stack-cutoffs", '["a"]'],
    ),
    "no network": Slip(
        [(SYSTEM, "- 0, 1", "- 0, 11"), (MAPPING, "[0, 1]", "[0, 8]")],
        [
            "none.onnx: no such …",
            "trio.yaml:8 core_connectivity[0]: no core has this id, got 11 …",
            "mapping.yaml:2 first.core_allocation[1]: no core has this id, got 8 …",
        ],
        ["--workload", "{folder}/none.onnx"],
    ),
    "no mapping and no accelerator": Slip(
        [],
        [
            "nothing.yaml: no such hardware file …",
            "none.yaml: no such mapping file …",
            "--hint-loops[0]: no layer of the network has this loop dimension, got ZZ …",
        ],
        ["--mapping", "{folder}/none.yaml", "--hardware", "{folder}/nothing.yaml", *LOOPS, '[["ZZ", 2]]'],
    ),
}
ALL = [
    (group, name, hardware)
    for group, hardware in (
        (HARDWARE, SYSTEM),
        (GRAPHS, MESH),
        (MAPPINGS, SYSTEM),
        (OPTIONS, SYSTEM),
        (TOGETHER, SYSTEM),
    )
    for name in group
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write the files, all correct, and the folder of an earlier run."""
    write_files(tmp_path)
    (tmp_path / "run").mkdir()
    for name in ("cn_graph.json", "cn_graph.npz"):
        (tmp_path / "run" / name).write_text("an earlier result")
    return tmp_path


def cut(folder: Path, hardware: str, *options: str) -> int:
    """Run `tilewright cns` on the files and return the exit code."""
    given = {"hardware": hardware, "workload": "net.onnx", "mapping": MAPPING}
    words = [word for key, name in given.items() for word in (f"--{key}", str(folder / name))]
    return main(
        ["cns", *words, "-o", str(folder / "run"), *(text.replace("{folder}", str(folder)) for text in options)]
    )


@pytest.mark.parametrize("hardware", [SYSTEM, MESH])
def test_the_files_are_right(hardware: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The files are correct before they are edited, in both forms."""
    assert cut(folder, hardware) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("group", "name", "hardware"), ALL, ids=[name for _, name, _ in ALL])
def test_everything_that_is_wrong_is_told(
    group: dict[str, Slip], name: str, hardware: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each mistake gives exactly the expected lines, and no consequences of it."""
    slip = group[name]
    for file, old, new in slip.edits:
        text = (folder / file).read_text()
        assert text.count(old) == 1
        (folder / file).write_text(text.replace(old, new))
    assert cut(folder, hardware, *slip.options) == 2
    said = capsys.readouterr().err.replace(f"{folder}/", "")
    lines = [line.removeprefix("error: ") for line in said.splitlines() if not line.startswith("note: ")]
    assert len(lines) == len(slip.told), said
    for line, pattern in zip(lines, slip.told, strict=True):
        assert re.fullmatch(".*".join(map(re.escape, pattern.split("…"))), line), said
    assert (folder / "run" / "cn_graph.npz").read_text() == "an earlier result"


def test_names_of_no_layer_are_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A name that no layer has gets a note with the nearest name. Stacks that cannot run in order get a note, too."""
    text = (folder / MAPPING).read_text()
    (folder / MAPPING).write_text(text.replace("- name: first", "- name: frist"))
    assert cut(folder, SYSTEM, "--layer-stacks", "[[0, 2], [1]]") == 0
    said = capsys.readouterr().err
    assert "mapping.yaml:1 frist.name: selects no layer of net (did you mean 'first'?)" in said
    assert "with the option --layer-stacks, [0, 2] and [1] cannot run one after another" in said


def test_remarks_are_told_beside_problems(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Notes are printed beside problems, since they can explain a problem."""
    text = (folder / MAPPING).read_text()
    (folder / MAPPING).write_text(text.replace("OY, 4", "QQ, 2") + "  inter_core_tiling: ['OZ, 2']\n")
    assert cut(folder, SYSTEM) == 2
    said = capsys.readouterr().err
    assert "error: " in said
    assert "got 'QQ'" in said
    assert "note: " in said
    assert "default.inter_core_tiling[0]: no layer that this entry selects has the loop dimension OZ" in said


def test_an_entry_for_one_layer_names_its_dimensions(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown dimension is an error in a mapping entry for one layer; in the default entry, it is a note."""
    (folder / MAPPING).write_text("- name: default\n- name: first\n  intra_core_tiling: ['OZ, 2']\n")
    assert cut(folder, SYSTEM) == 2
    said = capsys.readouterr().err
    assert "error: " in said
    assert (
        "mapping.yaml:3 first.intra_core_tiling[0]: no layer that this entry selects has the loop dimension"
        " OZ, got 'OZ, 2'" in said
    )


def words(folder: Path) -> list[str]:
    """Return the descriptions, and the folder of a run without readable results."""
    given = {"hardware": SYSTEM, "workload": "net.onnx", "mapping": MAPPING, "cns": "run"}
    return [word for key, name in given.items() for word in (f"--{key}", str(folder / name))]


VERBS: dict[str, tuple[list[str], list[str]]] = {
    "allocate": (
        ["--costs", "{folder}", "--nb-ga-individuals", "-4", "--seed", "-1", "--schedule-model", "casual"],
        [
            "--seed: not a count, got -1 (allowed: integers from 0)",
            "--nb-ga-individuals: not a count, got -4 (allowed: integers from 2)",
            "--schedule-model: …'causal'?)",
        ],
    ),
    "schedule": (
        [
            *("--costs", "{folder}", "--core-allocation", "{folder}/no"),
            *("--operands-to-prefetch", "[1]", "--share-divisor", "0"),
        ],
        [
            "--share-divisor: not a count, got 0 (allowed: integers from 1)",
            "--operands-to-prefetch: wrong kind of value, got [1] (allowed: a list of layer operands, such as [W])",
        ],
    ),
    "cost": (
        ["--core", "left", "--lpf-limit", "few"],
        ["--lpf-limit: wrong kind of value, got 'few' (allowed: a whole number or null)"],
    ),
}
"""Maps a verb to wrong options and the messages about them."""


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_tells_options_files_and_results_at_once(
    verb: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each verb reports wrong options, hardware, mapping and results together."""
    options, told = VERBS[verb]
    (folder / SYSTEM).write_text((folder / SYSTEM).read_text().replace("- 0, 1", "- 0, 11"))
    (folder / MAPPING).write_text((folder / MAPPING).read_text().replace("OY, 4", "OY; 4"))
    assert main([verb, *words(folder), *(text.replace("{folder}", str(folder)) for text in options)]) == 2
    said = capsys.readouterr().err.replace(f"{folder}/", "")
    lines = [line.removeprefix("error: ") for line in said.splitlines()]
    for line, pattern in zip(lines, told, strict=False):
        assert re.fullmatch(".*".join(map(re.escape, pattern.split("…"))), line), said
    rest = lines[len(told) :]
    assert rest[0].startswith("trio.yaml:8 core_connectivity[0]: no core has this id, got 11")
    assert rest[1].startswith("mapping.yaml:3 first.intra_core_tiling[0]: must be a loop dimension")
    assert rest[2].startswith("run/cn_graph.json ")


def test_names_of_operands_and_cores_are_told_beside_results(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong names of operands and cores are reported beside missing results, with the known names."""
    assert main(["allocate", *words(folder), "--costs", str(folder), "--operands-to-prefetch", '["w"]']) == 2
    said = capsys.readouterr().err
    assert "--operands-to-prefetch[0]: no layer reads an operand of this name, got w (allowed: I, W)" in said
    assert "did you mean 'W'?" in said
    assert said.count(".jsonl") == 3
    assert main(["cost", *words(folder), "--core", "rigth"]) == 2
    said = capsys.readouterr().err
    assert "has no such core file, got rigth (allowed: left, right, pool) (did you mean 'right'?)" in said
    assert "cn_graph.json" in said


def test_splitting_tells_wrong_cores_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`split` reports a wrong core of the mapping together with a wrong option of `split`."""
    (folder / MAPPING).write_text((folder / MAPPING).read_text().replace("[0, 1]", "[0, 9]"))
    given = words(folder)[:-2]
    assert main(["split", *given, "--split-w-percentage", "0"]) == 2
    said = capsys.readouterr().err
    assert "--split-w-percentage: wrong share, got 0.0" in said
    assert "first.core_allocation[1]: no core has this id, got 9" in said


ODD = (1, -1, 1.5, True, None, "x", "K, 2", [1], ["OY, 2"], [[]], {"a": 1}, {"D1": ["K, 2"]}, [None, "OY, 2", -1])


def test_no_value_of_any_key_of_a_mapping_crashes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No value of any key in a mapping file crashes, even beside another mistake."""
    keys = [name for name in MappingEntry.model_fields if name != "name"]
    for key in keys:
        for value in ODD:
            entries = [{"name": "first", key: value}, {"name": "pool", "core_allocation": [77, value]}, {"name": key}]
            (folder / MAPPING).write_text(yaml.safe_dump(entries))
            assert cut(folder, SYSTEM) == 2
            said = capsys.readouterr().err
            assert "internal" not in said
            assert "no core has this id, got 77" in said
