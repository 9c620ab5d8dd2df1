"""`schedule.npz`: a schedule is read back as written, and damage is reported."""

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from tilewright.base.artifacts.columns import packed, read_columns
from tilewright.base.errors import ArtifactError
from tilewright.multicore.scheduling.assembly import scheduling_problem
from tilewright.multicore.scheduling.check.rules import check_schedule
from tilewright.multicore.scheduling.core_costs import Stream
from tilewright.multicore.scheduling.result import ScheduleArtifact, read_schedule, schedule_artifact, write_schedule
from tilewright.multicore.scheduling.simulate import simulate

from tests.unit.multicore.nodes.networks import two_convolutions
from tests.unit.multicore.scheduling.accelerators import ANY, costs, cut, two_cores


def made(streams: bool = False) -> ScheduleArtifact:
    """Two convolutions, line by line, on two cores."""
    workload, system = two_convolutions(), two_cores()
    graph = cut(workload, [("OY", "all")])
    table = costs(graph, workload, system, streams=[Stream("I2", 2304, 64)] if streams else [])
    assembled = scheduling_problem(workload, graph, system, ANY, table)
    schedule = simulate(assembled.problem, np.array([0] * 6 + [1] * 6))
    return schedule_artifact(assembled, schedule, provenance={"made": "here"})


@pytest.mark.parametrize("streams", [False, True])
def test_a_schedule_is_read_back_without_loss(tmp_path: Path, streams: bool) -> None:
    """Every field of the schedule and of its problem is read back, so the file alone is enough to check it."""
    original = made(streams)
    write_schedule(tmp_path / "schedule.npz", original)
    back = read_schedule(tmp_path / "schedule.npz")
    for name in ("graph", "costs", "system"):
        one, other = getattr(original.problem, name), getattr(back.problem, name)
        for field in fields(one):
            assert np.array_equal(getattr(one, field.name), getattr(other, field.name)), field.name
    for field in fields(original.schedule):
        one, other = getattr(original.schedule, field.name), getattr(back.schedule, field.name)
        assert np.array_equal(one, other) if isinstance(one, np.ndarray) else one == other, field.name
    assert back.schedule.transfers.dtype == original.schedule.transfers.dtype
    assert (back.names, back.provenance, back.schedule_model) == (original.names, {"made": "here"}, "causal")
    assert np.array_equal(back.piece_tensor, original.piece_tensor)
    assert check_schedule(back.problem, back.schedule) == []


def test_equal_schedules_are_equal_bytes(tmp_path: Path) -> None:
    """Equal schedules give equal bytes: nothing depends on the time of writing."""
    write_schedule(tmp_path / "one.npz", made())
    write_schedule(tmp_path / "other.npz", made())
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "other.npz").read_bytes()


def test_pieces_belong_to_the_layer_that_makes_or_first_reads_them() -> None:
    """Pieces of w0, x and a belong to layer 0, and pieces of w1 and b to layer 1."""
    artifact = made()
    layers: dict[str, set[int]] = {}
    for tensor, layer in zip(artifact.piece_tensor.tolist(), artifact.piece_layer.tolist(), strict=True):
        layers.setdefault(artifact.names.tensor_names[tensor], set()).add(layer)
    assert layers == {"w0": {0}, "x": {0}, "w1": {1}, "a": {0}, "b": {1}}
    assert artifact.cn_energy_pj.tolist() == [7.0] * 12


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    """A file that is missing, cut off, changed, of another kind or of another version raises ArtifactError."""
    path = tmp_path / "schedule.npz"
    with pytest.raises(ArtifactError, match="no such artifact"):
        read_schedule(path)
    write_schedule(path, made())
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(ArtifactError, match="damaged"):
        read_schedule(path)
    changed = bytearray(content)
    changed[len(content) // 2] ^= 255
    path.write_bytes(bytes(changed))
    with pytest.raises(ArtifactError, match="damaged"):
        read_schedule(path)
    path.write_bytes(content)
    columns = read_columns(path)
    text = columns["description"].tobytes()
    for old, new, told in (
        (b'"tilewright/schedule"', b'"tilewright/workload"', "wrong kind of artifact"),
        (b'"version":1', b'"version":0', "written by another version of tilewright"),
    ):
        assert old in text
        columns["description"] = np.frombuffer(text.replace(old, new), np.uint8)
        path.write_bytes(packed(columns))
        with pytest.raises(ArtifactError, match=told):
            read_schedule(path)
    columns["description"] = np.frombuffer(text, np.uint8)
    del columns["graph.layer"]
    path.write_bytes(packed(columns))
    with pytest.raises(ArtifactError, match=r"damaged: 'graph\.layer'"):
        read_schedule(path)
