"""Sizes of runs on several cores, read from their files without the checks of artifacts."""

import json
from pathlib import Path

import pytest
from tilewright.cli.runs import graph_size

from tests.unit.cli.multi_core import cut_and_cost, write_network


def test_the_size_of_a_graph_is_its_nodes_and_edges(tmp_path: Path) -> None:
    """The size of a graph is the number of its nodes and edges, from the counts in its file."""
    cut_and_cost(write_network(tmp_path), tmp_path / "run")
    payload = json.loads((tmp_path / "run" / "cn_graph.json").read_text())["payload"]
    nodes, edges = sum(x["cn_count"] for x in payload["layers"]), sum(x["edge_count"] for x in payload["links"])
    assert graph_size(tmp_path / "run" / "cn_graph.json") == nodes + edges
    assert nodes >= 8 * 3
    assert edges >= 16


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"payload": {"layers": 3}}', '{"payload": {"layers": [{}]}}'])
def test_a_damaged_file_says_nothing(content: str, tmp_path: Path) -> None:
    """A damaged graph file has size 0, and a missing one raises FileNotFoundError."""
    (tmp_path / "cn_graph.json").write_text(content)
    assert graph_size(tmp_path / "cn_graph.json") == 0
    with pytest.raises(FileNotFoundError):
        graph_size(tmp_path / "none.json")
