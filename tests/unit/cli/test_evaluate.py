"""Points files for `tilewright evaluate`: points that are read, and messages about faults."""

import json
from pathlib import Path

import pytest
from tilewright.base.errors import InputError
from tilewright.cli.evaluate import read_points
from tilewright.cli.main import main
from tilewright.pipeline.sources import parse_workload
from tilewright.workload.layer import Layer

TINY = Path(__file__).resolve().parents[2] / "workflow" / "tiny"
PROJECT = Path(__file__).resolve().parents[3]
GOOD = {"layer": "second", "spatial_mapping": {"D1": {"K": 2}}, "loop_order": [["K", 4], ["C", 16]]}

BOUNDS = {"O": [2], "W": [1, 2], "I": [2]}


@pytest.fixture
def layers() -> list[Layer]:
    """Return the layers of the tiny network."""
    network = parse_workload(str(TINY / "workload" / "two_layers.yaml"))
    return [node.layer for node in network.nodes if node.layer]


def test_points_are_evaluated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each point gives one record in the order of the file; a byte order mark and blank lines are ignored."""
    path = tmp_path / "points.jsonl"
    path.write_text(f"\ufeff{json.dumps(GOOD)}\n\n{json.dumps(GOOD)}\n", "utf-8")
    hardware, workload = TINY / "hardware" / "narrow.yaml", TINY / "workload" / "two_layers.yaml"
    given = ["--hardware", str(hardware), "--workload", str(workload), "--points", str(path)]
    assert main(["evaluate", *given, "--json"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == second
    assert json.loads(first)["loop_order"] == GOOD["loop_order"]


def test_boundaries_of_points_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Weights that stay in their register during OX are fetched a third as often as others.
    A wrong number of levels is refused.
    """
    path = tmp_path / "points.jsonl"
    hardware, workload = TINY / "hardware" / "narrow.yaml", TINY / "workload" / "two_layers.yaml"
    given = ["--hardware", str(hardware), "--workload", str(workload), "--points", str(path)]
    order = [["OX", 2], ["C", 2], ["OX", 3], ["C", 2], ["OY", 6], ["FX", 3], ["FY", 3], ["K", 4]]
    point = {"layer": "first", "spatial_mapping": {"D1": {"K": 2}}, "loop_order": order}
    energies = []
    for loops_of_register in (1, 3):
        bounds = {"O": [8], "I": [8], "W": [loops_of_register, 8]}
        path.write_text(json.dumps(point | {"level_boundaries": bounds}))
        assert main(["evaluate", *given, "--json"]) == 0
        record = json.loads(capsys.readouterr().out)
        assert record["level_boundaries"] == bounds
        energies.append(record["energy_breakdown_pj"]["W"][1])
    assert sum(energies[0].values()) == 3 * sum(energies[1].values())
    path.write_text(json.dumps(GOOD | {"level_boundaries": BOUNDS | {"W": [2]}}))
    assert main(["evaluate", *given]) == 2
    assert "operand W has 2 memory levels, but its level boundaries are [2]" in capsys.readouterr().err


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
        ({"level_boundaries": [0]}, "level_boundaries: must be a table with a list of loop counts"),
        (
            {"level_boundaries": {"O": [2], "W": [1, 2]}},
            "level_boundaries.I: is missing: each operand needs a list of loop counts",
        ),
        ({"level_boundaries": BOUNDS | {"Q": [2]}}, "level_boundaries.Q: no such operand (allowed: O, W, I)"),
        ({"level_boundaries": BOUNDS | {"O": 2}}, "level_boundaries.O: must be a list of whole numbers"),
        ({"level_boundaries": BOUNDS | {"O": []}}, "level_boundaries.O: must be a list of whole numbers"),
        ({"level_boundaries": BOUNDS | {"O": [True]}}, "level_boundaries.O: must be a list of whole numbers"),
        ({"level_boundaries": BOUNDS | {"W": [2, 1]}}, "level_boundaries.W: loop counts must not decrease"),
        ({"level_boundaries": BOUNDS | {"I": [3]}}, "must be from 0 to 2, the number of loops in loop_order, got [3]"),
        ({"level_boundaries": BOUNDS | {"I": [-1]}}, "level_boundaries.I: loop counts must not decrease"),
    ],
)
def test_wrong_points_are_told(tmp_path: Path, layers: list[Layer], change: dict, told: str) -> None:
    """A wrong value in a point is refused with its line, and is not converted to a valid one."""
    path = tmp_path / "points.jsonl"
    path.write_text(json.dumps(GOOD) + "\n" + json.dumps({**GOOD, **change}) + "\n")
    with pytest.raises(InputError) as caught:
        read_points(path, layers)
    assert f"{path}:2 " in str(caught.value)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "has no points"),
        (b"\n \n", "has no points"),
        (b"\xff\xfe", "is not UTF-8 text"),
        (b"{", "is not JSON:"),
        (b"3", "is not a JSON object"),
        (b"{}", "layer: required key is missing"),
        (b"[" * 100_000, "is JSON that cannot be read"),
        (b'{"layer": ' + b"1" * 5000 + b"}", "is JSON that cannot be read"),
        (b'{"layer": "second", "layer": "first", "spatial_mapping": {}, "loop_order": []}', "a key is given twice"),
        (b'{"layer": "\xe2\x80\xa8"}', "no such layer"),
    ],
)
def test_odd_files_are_told(tmp_path: Path, layers: list[Layer], content: bytes, told: str) -> None:
    """A file that is not JSON lines of points is refused in plain words."""
    path = tmp_path / "points.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_points(path, layers)
    assert told in str(caught.value)
    assert "Error" not in str(caught.value)


def test_a_layer_without_temporal_loops_has_an_empty_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty `temporal_ordering` is complete for a layer that the array computes at once, and for no other layer."""
    entry = {
        "name": "default",
        "spatial_mapping": {"D1": ["K, 32"], "D2": ["C, 32"]},
        "memory_operand_links": {"I": "I1", "O": "O", "W": "I2"},
        "temporal_ordering": [],
        "level_boundaries": {"O": [0, 0, 0], "W": [0, 0], "I": [0, 0]},
    }
    mapping, hardware = tmp_path / "mapping.yaml", PROJECT / "config" / "hardware" / "zigzag" / "tpu_like.yaml"
    mapping.write_text(json.dumps([entry]))
    for size, code in ((32, 0), (64, 2)):
        layer = {
            "id": 0,
            "name": "product",
            "operator_type": "Gemm",
            "equation": "O[b][k]+=W[k][c]*I[b][c]",
            "loop_dims": ["B", "K", "C"],
            "loop_sizes": [1, size, 32],
            "operand_precision": {"W": 8, "I": 8, "O": 16, "O_final": 8},
            "operand_source": {"I": 0, "W": 0},
        }
        (tmp_path / "network.yaml").write_text(json.dumps([layer]))
        files = ("--hardware", str(hardware), "--workload", str(tmp_path / "network.yaml"), "--mapping", str(mapping))
        assert main(["evaluate", *files]) == code
        told = capsys.readouterr()
        assert ("K 1 instead of 2" in told.out + told.err) is (code != 0)
