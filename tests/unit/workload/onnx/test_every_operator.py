"""Every operator of the installed onnx, in every version, is costed, only moves data, is defined by others, or is
unsupported.

No operator is free by default.
"""

from collections import Counter
from functools import cache

import onnx
import pytest
from onnx import TensorProto, helper
from tilewright.base.errors import InputError
from tilewright.base.operator_groups import MAC_TYPES, SEQUENCE_TYPES, UNMODELLED_WITHOUT_MACS
from tilewright.base.profile import CORRECTED, REFERENCE
from tilewright.cli.main import main
from tilewright.workload.graph import APPROXIMATED, MODELLED, PASS_THROUGH, UNSUPPORTED
from tilewright.workload.onnx import read_onnx
from tilewright.workload.onnx.coverage import Coverage
from tilewright.workload.onnx.lowering import registered_operators
from tilewright.workload.onnx.operators import register_operators
from tilewright.workload.onnx.operators.not_modelled import is_not_modelled
from tilewright.workload.onnx.resolution.inference import has_definition

from tests.unit.workload.onnx.operator_samples import Key, Sample, all_versions, samples

_CONTROL_FLOW = ("If", "Loop", "Scan")
_MOVING_FAMILIES = ("movement", "gather")
"""Modules of operators whose docstrings say that they only move data."""
_FREE_IN_SOME_FORM = {
    "CastLike": "to the type that the tensor has",
    "Dropout": "in inference it hands its input on",
    "Einsum": "of one tensor, whose axes it exchanges or picks",
    "Identity": "hands its input on",
    "Max": "of one tensor",
    "Mean": "of one tensor",
    "Min": "of one tensor",
    "ReduceMax": "of booleans, or over no axis",
    "Sum": "of one tensor",
    "Trilu": "it keeps elements or puts zeros in their place",
    **{f"Reduce{name}": "over no axis" for name in ("L1", "L2", "LogSum", "LogSumExp", "Prod", "Sum", "SumSquare")},
    "ReduceMin": "of booleans, or over no axis",
}
"""Operators outside `_MOVING_FAMILIES` that compute nothing in some form -> the reason."""
_READING_OF_ZIGZAG = ("Conv", "QLinearConv", "Gemm", "MatMul")


@cache
def _samples() -> tuple[Sample, ...]:
    return tuple(samples(2))


def _read(sample: Sample, profile: object) -> Coverage | None:
    try:
        return read_onnx(sample.model, profile).coverage  # type: ignore[arg-type]
    except InputError:
        return None


@cache
def _coverages() -> tuple[tuple[Sample, Coverage | None, Coverage | None], ...]:
    return tuple((sample, _read(sample, CORRECTED), _read(sample, REFERENCE)) for sample in _samples())


def test_every_operator_has_a_place() -> None:
    """Every operator is in a family, in the list of unsupported ones, defined by a function, or control flow."""
    register_operators()
    registered = registered_operators()
    without = [
        key
        for key, schemas in all_versions().items()
        if key not in registered and key[1] not in _CONTROL_FLOW and not any(map(has_definition, schemas))
    ]
    assert not without, "operators that nobody knows are told as unknown; put these into a family or into NOT_MODELLED"


def test_samples_cover_all_operators() -> None:
    """Every operator, and nearly every older version, has a sample, and over nine tenths of the samples are read."""
    made = {(sample.key, sample.version) for sample in _samples()}
    wanted = {(key, schema.since_version) for key, schemas in all_versions().items() for schema in schemas}
    assert {key for key, _ in made} == set(all_versions())
    assert len(made) > 0.9 * len(wanted), sorted(wanted - made)
    read = {(sample.key, sample.version) for sample, corrected, _ in _coverages() if corrected is not None}
    assert len(read) > 0.9 * len(made), sorted(made - read)


def test_no_operator_is_free_by_default() -> None:
    """An operator without costs is in a family that moves data, or has a written reason."""
    register_operators()
    families = {key: function.__module__.rpartition(".")[2] for key, function in registered_operators().items()}
    free: Counter[Key] = Counter()
    for sample, corrected, _ in _coverages():
        if corrected is not None and all(row.status == PASS_THROUGH for row in corrected.operators):
            free[sample.key] += not any("without elements" in notice for notice in corrected.notices)
    unexplained = [
        key
        for key in +free
        if families.get(key) not in _MOVING_FAMILIES
        and key[1] not in (*_FREE_IN_SOME_FORM, *SEQUENCE_TYPES)
        and not _is_constant(key)
    ]
    assert not unexplained


def _is_constant(key: Key) -> bool:
    """Whether all samples that are free are computed from constants only."""
    return all(
        {name for name in sample.model.graph.node[0].input if name}
        <= {tensor.name for tensor in sample.model.graph.initializer}
        for sample, corrected, _ in _coverages()
        if sample.key == key and corrected and all(row.status == PASS_THROUGH for row in corrected.operators)
    )


def test_what_is_not_modelled_is_told_with_its_work() -> None:
    """The multiply-accumulates and the share of an unsupported operator are unknown, unless it is listed as having
    none.
    """
    told = set()
    for sample, corrected, reference in _coverages():
        for coverage in (corrected, reference):
            for row in coverage.unsupported if coverage else ():
                assert coverage is not None
                assert coverage.notices
                assert not coverage.is_complete
                told.add(row.operator_type)
                if coverage is corrected and row.operator_type in UNMODELLED_WITHOUT_MACS:
                    assert row.mac_count == 0
                if row.mac_count is None:
                    assert coverage.modelled_mac_share is None, sample.key
    assert {"NonZero", "DFT", "StringSplit", "ai.onnx.ml::LinearClassifier"} <= told


def test_the_reference_counts_what_the_other_profile_costs() -> None:
    """Both profiles give the same total; a multiplying operator without a layer is unsupported under the reference."""
    for sample, corrected, reference in _coverages():
        if corrected is None or reference is None or sample.key[1] == "If":
            continue
        (row, *others) = reference.operators
        assert not others
        known = corrected.modelled_mac_share is not None
        assert row.mac_count == (corrected.total_mac_count if known else None), (sample.key, sample.version)
        if row.status == PASS_THROUGH:
            assert row.mac_count == 0
            assert not is_not_modelled(sample.model.graph.node[0]) or sample.key[1] in SEQUENCE_TYPES, sample.key
        if row.status == MODELLED:
            assert sample.key[1] in _READING_OF_ZIGZAG


def test_operators_that_multiply_are_listed() -> None:
    """The list of multiplying operators has each one that becomes layers on the MAC array."""
    for sample, corrected, _ in _coverages():
        for row in corrected.operators if corrected else ():
            if row.mac_count and row.status in (MODELLED, APPROXIMATED):
                assert row.operator_type.rpartition("::")[2] in MAC_TYPES, sample.key


_UNKNOWN = [("BrandNew", "", 99), ("Thing", "com.example", 1), ("BrandNew", "ai.onnx.ml", 5)]


@pytest.mark.parametrize(("operator", "domain", "version"), _UNKNOWN)
@pytest.mark.parametrize("model", ["corrected", "zigzag-3.9.1"])
def test_what_nobody_knows_is_unknown(
    operator: str, domain: str, version: int, model: str, tmp_path: object, capsys: pytest.CaptureFixture[str]
) -> None:
    """An unknown operator leaves the share of work unknown, and `--strict` refuses it."""
    info = helper.make_tensor_value_info
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"], name="product"),
        helper.make_node(operator, ["p"], ["y"], name="new", domain=domain),
    ]
    ends = [info("x", TensorProto.FLOAT, [2, 4])], [info("y", TensorProto.FLOAT, [2, 3])]
    graph = helper.make_graph(nodes, "g", *ends, [helper.make_tensor("w", TensorProto.FLOAT, [4, 3], [0.0] * 12)])
    sets = [helper.make_opsetid("", max(version, 20) if not domain else 20)]
    sets += [helper.make_opsetid(domain, version)] if domain else []
    path = f"{tmp_path}/new.onnx"
    onnx.save(helper.make_model(graph, opset_imports=sets, ir_version=10), path)
    assert main(["parse", path, "--model", model]) == 0
    said = capsys.readouterr().out
    (costed,) = (line for line in said.splitlines() if line.strip().startswith("costed"))
    assert "unknown" in costed
    assert "100.0%" not in said
    assert main(["parse", path, "--model", model, "--strict"]) == 2
    assert operator in capsys.readouterr().err


def test_definitions_of_onnx_stand_in_the_place_of_what_nobody_knows() -> None:
    """Operators that onnx defines by other operators are replaced by them, and costed if their sample has sizes."""
    register_operators()
    registered = registered_operators()
    written = {
        sample.key[1]: corrected
        for sample, corrected, _ in _coverages()
        if sample.key not in registered and sample.key[1] not in _CONTROL_FLOW and corrected is not None
    }
    assert {"LinearAttention", "CausalConvWithState", "FlexAttention", "SwiGLU", "SoftmaxCrossEntropyLoss"} <= set(
        written
    )
    for operator, coverage in written.items():
        assert not any(row.operator_type == operator and row.status == UNSUPPORTED for row in coverage.operators)
        assert coverage.is_complete or operator == "SequenceMap", operator  # over a sequence of unknown length
