"""The two files of a CN graph."""

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from tilewright.base.errors import ArtifactError
from tilewright.multicore.nodes.generation import build_cn_graph
from tilewright.multicore.nodes.graph import COLUMNS, CnGraph, read_cn_graph, write_cn_graph

from tests.unit.multicore.nodes.networks import two_convolutions
from tests.unit.multicore.nodes.test_generation import tiled


def graph(lines: int) -> CnGraph:
    """Two convolutions in tiles of lines."""
    workload = two_convolutions()
    return build_cn_graph(workload, tiled(workload, {"a": [("OY", lines)], "b": [("K", 3), ("OY", lines)]}))


def write(folder: Path, lines: int = 3) -> tuple[Path, Path]:
    """Both files of a graph."""
    paths = folder / "cn_graph.json", folder / "cn_graph.npz"
    write_cn_graph(graph(lines), *paths, {})
    return paths


def test_a_graph_is_read_back_without_loss(tmp_path: Path) -> None:
    """Every field, with the types of columns, is read back."""
    original, back = graph(3), read_cn_graph(*write(tmp_path))
    for name in (field.name for field in fields(CnGraph)):
        if name in COLUMNS:
            assert getattr(back, name).dtype == getattr(original, name).dtype
            assert np.array_equal(getattr(back, name), getattr(original, name))
        else:
            assert getattr(back, name) == getattr(original, name)


def test_equal_graphs_are_equal_bytes(tmp_path: Path) -> None:
    """Two writes of one graph give the same bytes."""
    (tmp_path / "again").mkdir()
    for first, second in zip(write(tmp_path), write(tmp_path / "again"), strict=True):
        assert first.read_bytes() == second.read_bytes()


def test_files_of_two_graphs_are_noticed(tmp_path: Path) -> None:
    """A description with the columns of another graph raises ArtifactError, because the digests differ."""
    (tmp_path / "other").mkdir()
    description, _ = write(tmp_path)
    _, columns = write(tmp_path / "other", lines=2)
    with pytest.raises(ArtifactError, match="damaged"):
        read_cn_graph(description, columns)


@pytest.mark.parametrize("place", [0, 1])
def test_cut_off_and_missing_files_are_noticed(tmp_path: Path, place: int) -> None:
    """Each of the two files raises ArtifactError if it is cut off or missing."""
    paths = write(tmp_path)
    content = paths[place].read_bytes()
    paths[place].write_bytes(content[: len(content) // 2])
    with pytest.raises(ArtifactError, match="damaged"):
        read_cn_graph(*paths)
    paths[place].unlink()
    with pytest.raises(ArtifactError):
        read_cn_graph(*paths)
