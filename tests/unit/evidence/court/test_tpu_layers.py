"""Rows of `tpu-v6e` and the layers of Llama-3.1-8B from its configuration have the same work and data."""

import csv
from pathlib import Path

import pytest
from tilewright.workload.language_models.model import language_model_workload
from tilewright.workload.language_models.request import ModelStep, Precision, Requests
from tilewright_evidence.court.case import DATA

from tests.unit.workload.language_models.models import fields_of, model_of

BLOCKS = 32
BF16 = Precision(16, 16, 16)


def rows_of(name: str) -> list[dict[str, str]]:
    """Return the rows of a sample."""
    with Path(DATA / "tpu-v6e" / f"{name}_sample.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("row", rows_of("attention"), ids=lambda row: "-".join(list(row.values())[:4]))
def test_attention_is_that_of_the_measurements(row: dict[str, str]) -> None:
    """Attention has the measured operations of causal pairs, and the measured bytes of keys and values."""
    request = Requests(int(row["batch"]), int(row["new_tokens"]), int(row["cached_tokens"]))
    workload = language_model_workload(model_of(fields_of("llama-3.1-8b")), ModelStep((request,), BF16))
    products = 0
    for node in workload.nodes:
        kind = node.name.removeprefix("layers/attention/").partition(".")[0]
        if node.layer is not None and node.operator_type == "MatMul" and kind in ("scores", "values"):
            assert node.repeats == BLOCKS
            products += node.layer.mac_count
    assert 2 * products == float(row["flops"])
    caches = [name for name in workload.outputs if name.endswith("_cache")]
    assert sum(workload.tensor_of[name].size_bits for name in caches) / 8 == float(row["kv_bytes"])


def test_matrix_products_are_those_of_the_measurements() -> None:
    """Projections have the measured inputs and outputs."""
    workload = language_model_workload(model_of(fields_of("llama-3.1-8b")), ModelStep((Requests(1, 16, 0),), BF16))
    sizes = {node.name.rpartition("/")[2]: node.layer.size_of for node in workload.nodes if node.layer is not None}
    measured = {(row["op"], int(row["n"]), int(row["k"])) for row in rows_of("matmul")}
    assert {(name, sizes[name]["K"], sizes[name]["C"]) for name, _, _ in measured} == measured
