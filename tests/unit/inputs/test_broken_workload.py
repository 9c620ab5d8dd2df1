"""Broken workload files: each problem has its file, line and path, and the allowed values."""

from pathlib import Path

import pytest
from tilewright.base.errors import InputError
from tilewright.workload.layer import DimensionRelation
from tilewright.workload.yaml_reader import read_workload_yaml

from tests.unit.inputs.faults import check_fault

VALID = """\
- id: 0
  name: conv
  operator_type: Conv
  equation: O[b][k][oy][ox]+=W[k][c][fy][fx]*I[b][c][iy][ix]
  dimension_relations: [ix=2*ox+1*fx, iy = oy + 3*fy]
  loop_dims: [B, K, C, OY, OX, FY, FX]
  loop_sizes: [1, 8, 4, 6, 5, 3, 3]
  operand_precision: {W: 8, I: 4, O: 24, O_final: 9}
  operand_source: {I: 0, W: 0}
  pr_loop_dims: [IY, IX]
  padding: [[1, 2], [0, 1]]
- id: 7
  operator_type: Gemm
  equation: O[d][k] = I[d][c] * W[c][k]
  loop_dims: [d, c, k]
  loop_sizes: [2, 3, 5]
  operand_precision:
    O: 32
    O_final: 16
    W: 8
    I: 8
  operand_source:
    W: 7  # constant
    I: 0
"""

CASES = {
    "misspelt key": (
        "loop_sizes: [2",
        "loop_size: [2",
        "  loop_size: [2",
        "Layer7.loop_size",
        ["did you mean 'loop_sizes'?"],
    ),
    "no id": ("- id: 7\n  operator", "- operator", "- operator", "[1].id", ["required key is missing"]),
    "id is text": ("id: 7", "id: seven", "- id: seven", "[1].id", ["must be a whole number", "'seven'"]),
    "id twice": ("id: 7", "id: 0  # again", "- id: 0  # again", "Layer0.id", ["same id"]),
    "operator type": (
        "operator_type: Gemm",
        "operator_type: Gem",
        "  operator_type: Gem",
        "Layer7.operator_type",
        ["'Gemm'", "Pooling"],
    ),
    "equation form": (
        "O[d][k] = I",
        "O[d][k] I",
        "  equation: O[d][k] I",
        "Layer7.equation",
        ["one output and two inputs", "O[..]"],
    ),
    "one input": (" * W[c][k]", "", "  equation: O[d][k] = I[d][c]", "Layer7.equation", ["one output and two inputs"]),
    "comma in brackets": (
        "O[d][k] =",
        "O[d,k] =",
        "  equation: O[d,k]",
        "Layer7.equation",
        ["one dimension in each pair of brackets"],
    ),
    "output name": ("O[d][k] =", "P[d][k] =", "  equation: P", "Layer7.equation", ["the output is called 'P'", "O"]),
    "input name": (
        "I[d][c] *",
        "A[d][c] *",
        "  equation: O[d][k] = A",
        "Layer7.equation",
        ["an input is called 'A'", "W and I"],
    ),
    "same input twice": (
        "I[d][c] *",
        "W[d][c] *",
        "  equation: O[d][k] = W",
        "Layer7.equation",
        ["both inputs are called 'W'"],
    ),
    "undeclared dimension": (
        "W[c][k]",
        "W[c][kk]",
        "  equation: O[d][k] = I[d][c] * W[c][kk]",
        "Layer7.equation",
        ["operand W", "'KK'", "D, C, K"],
    ),
    "dimension twice": (
        "I[d][c]",
        "I[d][c][d]",
        "  equation: O[d][k] = I[d][c][d]",
        "Layer7.equation",
        ["operand I uses a dimension twice"],
    ),
    "odd loop dimension": (
        "[d, c, k]",
        "[d, c, k-1]",
        "  loop_dims: [d, c, k-1]",
        "Layer7.loop_dims[2]",
        ["loop dimension", "OX"],
    ),
    "loop dimension twice": (
        "[d, c, k]",
        "[d, c, D]",
        "  loop_dims: [d, c, D]",
        "Layer7.loop_dims[2]",
        ["given twice", "'D'"],
    ),
    "sizes too few": ("[2, 3, 5]", "[2, 3]", "  loop_sizes: [2, 3]", "Layer7.loop_sizes", ["2 items", "3 items"]),
    "zero size": ("[2, 3, 5]", "[2, 0, 5]", "  loop_sizes: [2, 0", "Layer7.loop_sizes[1]", ["greater than 0", "got 0"]),
    "size is part": (
        "[2, 3, 5]",
        "[2, 3.5, 5]",
        "  loop_sizes: [2, 3.5",
        "Layer7.loop_sizes[1]",
        ["whole number", "3.5"],
    ),
    "size is true": (
        "[2, 3, 5]",
        "[2, yes, 5]",
        "  loop_sizes: [2, yes",
        "Layer7.loop_sizes[1]",
        ["whole number", "True"],
    ),
    "too many operations": (
        "[2, 3, 5]",
        "[9000000000, 9000000000, 5]",
        "  loop_sizes: [9",
        "Layer7.loop_sizes",
        ["2^60"],
    ),
    "relation form": (
        "ix=2*ox+1*fx",
        "ix=2*ox-fx",
        "  dimension_relations",
        "conv.dimension_relations[0]",
        ["sliding window", "ix = 2*ox + 1*fx"],
    ),
    "relation coefficient": (
        "ix=2*ox",
        "ix=0*ox",
        "  dimension_relations",
        "conv.dimension_relations[0]",
        ["at least 1"],
    ),
    "relation dimension": (
        "ix=2*ox",
        "ix=2*oz",
        "  dimension_relations",
        "conv.dimension_relations[0]",
        ["not in loop_dims", "'OZ'", "OX"],
    ),
    "relation twice": (
        "iy = oy",
        "ix = oy",
        "  dimension_relations",
        "conv.dimension_relations[1]",
        ["declares the same dimension"],
    ),
    "relation names a loop": (
        "ix=2*ox",
        "c=2*ox",
        "  dimension_relations",
        "conv.dimension_relations[0]",
        ["is a loop dimension; a sliding window must declare"],
    ),
    "relation with itself": (
        "ix=2*ox+1*fx",
        "ix=2*ox+1*ox",
        "  dimension_relations",
        "conv.dimension_relations[0]",
        ["same dimension twice"],
    ),
    "precision missing": (
        "    O_final: 16\n",
        "",
        "  operand_precision:",
        "Layer7.operand_precision.O_final",
        ["missing"],
    ),
    "precision negative": ("    W: 8", "    W: -8", "    W: -8", "Layer7.operand_precision.W", ["not be less than 0"]),
    "precision zero": ("    O: 32", "    O: 0", "    O: 0", "Layer7.operand_precision.O", ["greater than 0"]),
    "precision key": ("O_final: 16", "O_finl: 16", "    O_finl: 16", "Layer7.operand_precision.O_finl", ["'O_final'"]),
    "unknown source": (
        "    I: 0\n",
        "    I: 3\n",
        "    I: 3",
        "Layer7.operand_source.I",
        ["no layer has this id", "0, 7"],
    ),
    "later source": (
        "{I: 0, W: 0}",
        "{I: 7, W: 0}",
        "  operand_source: {I: 7",
        "conv.operand_source.I",
        ["must come earlier"],
    ),
    "source operand": ("    W: 7", "    X: 7", "    X: 7", "Layer7.operand_source.X", ["unknown key", "W, I"]),
    "padding length": ("[[1, 2], [0, 1]]", "[[1, 2]]", "  padding", "conv.padding", ["1 items", "2 items"]),
    "padding pair": ("[[1, 2], [0, 1]]", "[[1, 2], [0]]", "  padding", "conv.padding[1]", ["at least 2"]),
    "padding negative": (
        "[[1, 2], [0, 1]]",
        "[[1, 2], [0, -1]]",
        "  padding",
        "conv.padding[1][1]",
        ["not be less than 0"],
    ),
    "padding too large": (
        "[[1, 2], [0, 1]]",
        "[[6, 6], [0, 1]]",
        "  padding",
        "conv.padding[0]",
        ["covers all of IY", "12 positions"],
    ),
    "padding without names": ("  pr_loop_dims: [IY, IX]\n", "", "  padding", "conv.padding", ["needs `pr_loop_dims`"]),
    "window name": (
        "[IY, IX]",
        "[IY, IZ]",
        "  pr_loop_dims",
        "conv.pr_loop_dims[1]",
        ["no sliding window declares this dimension", "IX"],
    ),
    "window sizes": (
        "padding: [[1, 2], [0, 1]]",
        "pr_loop_sizes: [8]",
        "  pr_loop_sizes",
        "conv.pr_loop_sizes",
        ["1 items"],
    ),
    "window size zero": (
        "padding: [[1, 2], [0, 1]]",
        "pr_loop_sizes: [8, 0]",
        "  pr_loop_sizes",
        "conv.pr_loop_sizes[1]",
        ["greater than 0"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_each_fault_is_told_where_and_how_to_mend_it(case: str, tmp_path: Path) -> None:
    """Each fault gives one problem at its path, with the line and a hint."""
    check_fault(CASES[case], VALID, tmp_path / "net.yaml", read_workload_yaml)


def test_sizes_for_some_windows_only_are_refused(tmp_path: Path) -> None:
    """Explicit sizes must be given for all windows of a layer or for none."""
    file = tmp_path / "net.yaml"
    file.write_text(VALID.replace("[IY, IX]", "[IX]").replace("padding: [[1, 2], [0, 1]]", "pr_loop_sizes: [9]"))
    with pytest.raises(InputError, match="has no size for IY"):
        read_workload_yaml(file)


def test_a_valid_workload_reads_as_layers_and_edges(tmp_path: Path) -> None:
    """Layers have the names, operand order, precisions, padding, constants and edges of the file."""
    file = tmp_path / "net.yaml"
    file.write_text(VALID)
    workload = read_workload_yaml(file)
    conv, gemm = workload.nodes
    assert workload.name == "net"
    assert conv.sources == ()
    assert gemm.sources == (("I", 0),)
    assert (gemm.node_id, gemm.name) == (7, "Layer7")
    layer = conv.layer
    assert layer is not None
    assert layer.operand_dimensions[1] == ("W", ("K", "C", "FY", "FX"))
    assert layer.relations[1] == DimensionRelation("IY", (("OY", 1), ("FY", 3)))
    assert layer.precision_bits == (("O", 24), ("O_final", 9), ("W", 8), ("I", 4))
    assert layer.padding == (("IY", (1, 2)), ("IX", (0, 1)))
    assert layer.data_dimension_sizes == ()
    assert layer.constant_operands == ("I", "W")
    assert gemm.layer is not None
    assert gemm.layer.loop_sizes == (("D", 2), ("C", 3), ("K", 5))
    assert gemm.layer.precision_bits == (("O", 32), ("O_final", 16), ("I", 8), ("W", 8))


def test_explicit_window_sizes_are_kept_in_their_order(tmp_path: Path) -> None:
    """`pr_loop_sizes` are kept in the order of `pr_loop_dims`."""
    file = tmp_path / "net.yaml"
    file.write_text(VALID.replace("padding: [[1, 2], [0, 1]]", "pr_loop_sizes: [11, 12]"))
    layer = read_workload_yaml(file).nodes[0].layer
    assert layer is not None
    assert layer.data_dimension_sizes == (("IY", 11), ("IX", 12))


def test_a_list_of_dicts_reads_as_the_file_does() -> None:
    """Layers are read from Python data like from a file; their problems have no line."""
    layer = {
        "id": 1,
        "operator_type": "MatMul",
        "equation": "O[d][k] += I[d][c] * W[c][k]",
        "loop_dims": ("D", "C", "K"),
        "loop_sizes": (2, 3, 4),
        "operand_precision": {"W": 0, "I": 8, "O": 16, "O_final": 8},
    }
    node = read_workload_yaml([layer]).nodes[0]
    assert node.layer is not None
    assert node.layer.mac_count == 24
    assert node.layer.constant_operands == ()
    with pytest.raises(InputError) as caught:
        read_workload_yaml([layer | {"loop_sizes": (2, 3, -4)}])
    assert [(p.line, p.path) for p in caught.value.problems] == [(0, "Layer1.loop_sizes[2]")]


def test_a_loop_that_no_operand_uses_is_noted(tmp_path: Path) -> None:
    """A loop that no operand uses gets a notice."""
    file = tmp_path / "net.yaml"
    file.write_text(VALID.replace("[d, c, k]", "[d, c, k, e]").replace("[2, 3, 5]", "[2, 3, 5, 4]"))
    notices: list[str] = []
    read_workload_yaml(file, notices)
    assert any("no operand uses E" in notice and ":15" in notice for notice in notices)
