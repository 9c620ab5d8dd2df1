"""Points files for `tilewright evaluate`: what is read, and what is said about the rest."""

import json
from pathlib import Path

import pytest
from tilewright.cli.main import main
from tilewright.cli.points import read_points
from tilewright.errors import InputError
from tilewright.sources import parse_workload
from tilewright.workload.layer import Layer

TINY = Path(__file__).resolve().parents[2] / "workflow" / "tiny"
GOOD = {"layer": "second", "spatial_mapping": {"D1": {"K": 2}}, "loop_order": [["K", 4], ["C", 16]]}


@pytest.fixture
def layers() -> list[Layer]:
    """The layers of the tiny network."""
    network = parse_workload(str(TINY / "workload" / "two_layers.yaml"))
    return [node.layer for node in network.nodes if node.layer]


def test_points_are_evaluated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One record a line, in the order of the file; a byte order mark and blank lines do not matter."""
    path = tmp_path / "points.jsonl"
    path.write_text(f"\ufeff{json.dumps(GOOD)}\n\n{json.dumps(GOOD)}\n", "utf-8")
    hardware, workload = TINY / "hardware" / "narrow.yaml", TINY / "workload" / "two_layers.yaml"
    given = ["--hardware", str(hardware), "--workload", str(workload), "--points", str(path)]
    assert main(["evaluate", *given, "--json"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == second
    assert json.loads(first)["loop_order"] == GOOD["loop_order"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"layer": "secnd"}, "layer: no such layer, got \"secnd\" (did you mean 'second'?)"),
        ({"layer": ["second"]}, "layer: no such layer"),
        ({"loop_ordr": []}, "loop_ordr: unknown key"),
        ({"loop_order": [["K", True]]}, "loop_order[0]: must be a whole number from 1 to 2^53, got true"),
        ({"loop_order": [["K", 4.0]]}, "loop_order[0]: must be a whole number from 1 to 2^53, got 4.0"),
        ({"loop_order": [["K", "4"]]}, 'loop_order[0]: must be a whole number from 1 to 2^53, got "4"'),
        ({"loop_order": [["K", 2**60]]}, "must be a whole number from 1 to 2^53"),
        ({"loop_order": [["K"]]}, "loop_order[0]: must be [dimension, size]"),
        ({"loop_order": "K4"}, "loop_order: must be a list"),
        ({"spatial_mapping": []}, "spatial_mapping: must be a table"),
        ({"spatial_mapping": {"D1": 2}}, "spatial_mapping.D1: must be a table"),
        ({"spatial_mapping": {"D1": {"K": 1e999}}}, "spatial_mapping.D1.K: must be a whole number"),
        ({"memory_operand_links": ["O"]}, "memory_operand_links: must be a table"),
        ({"memory_operand_links": {"Q": "O"}}, "memory_operand_links.Q: no such operand (allowed: O, "),
        ({"memory_operand_links": {"O": 1}}, "memory_operand_links.O: must be the name of a memory operand"),
    ],
)
def test_wrong_points_are_told(tmp_path: Path, layers: list[Layer], change: dict, told: str) -> None:
    """Every value is checked as it stands; nothing is converted."""
    path = tmp_path / "points.jsonl"
    path.write_text(json.dumps(GOOD) + "\n" + json.dumps({**GOOD, **change}) + "\n")
    with pytest.raises(InputError) as caught:
        read_points(path, layers)
    assert f"{path}:2 " in str(caught.value)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "holds no point"),
        (b"\n \n", "holds no point"),
        (b"\xff\xfe", "is not UTF-8 text"),
        (b"{", "is not JSON:"),
        (b"3", "is not a JSON object"),
        (b"{}", "layer: required key is missing"),
        (b"[" * 100_000, "is not JSON that can be read"),
        (b'{"layer": ' + b"1" * 5000 + b"}", "is not JSON that can be read"),
        (b'{"layer": "second", "layer": "first", "spatial_mapping": {}, "loop_order": []}', "a key is given twice"),
        (b'{"layer": "\xe2\x80\xa8"}', "no such layer"),
    ],
)
def test_odd_files_are_told(tmp_path: Path, layers: list[Layer], content: bytes, told: str) -> None:
    """Whatever the bytes are, the answer is in our words."""
    path = tmp_path / "points.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_points(path, layers)
    assert told in str(caught.value)
    assert "Error" not in str(caught.value)
