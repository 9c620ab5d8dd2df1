"""Matrix products of tiny models, read from ONNX exports of torch and from configurations.

Exports have the scores of all pairs of tokens, behind a mask; tilewright has only those that are seen. An export has a
product with gathered weights for each token and each of its experts. tilewright has a product for each expert.
"""

import math
from collections import Counter
from pathlib import Path
from typing import Any

import onnx
import pytest
from tilewright.base.errors import Problems
from tilewright.base.operator_groups import MAC_ARRAY
from tilewright.workload.graph import Workload
from tilewright.workload.language_models.families import architecture_of
from tilewright.workload.language_models.weights import block_weights
from tilewright.workload.source import parse_workload

EXPORTS = Path(__file__).parent / "exports"
TOKENS = 8
FAMILIES = sorted(path.stem for path in EXPORTS.glob("*.onnx"))
FUSED = ("gpt2", "falcon")
"""Families whose modules project to queries, keys and values in one product."""
EXPERTS = {"mixtral": 2, "qwen3_moe": 2, "deepseek_v3": 1}
"""Family -> blocks that have experts."""
PAST_THE_END = 3
"""Outputs of Mamba's convolution that the export computes behind the last token and cuts off."""


def fields_of(family: str) -> dict[str, Any]:
    """The fields of the exported model, read from the text of the script, because torch may not be installed."""
    source = (EXPORTS / "make_exports.py").read_text()
    start, end = source.index("TOKENS ="), source.index("HEADS =")
    names: dict[str, Any] = {"Any": Any}
    exec(compile(source[start:end], "make_exports.py", "exec"), names)
    fields = dict(names["MODELS"][family][1])
    for name in ("attn_implementation", "experts_implementation"):
        fields.pop(name, None)
    assert names["TOKENS"] == TOKENS
    return {"model_type": family, **fields}


def products_of(workload: Workload) -> list[tuple[str, int, int]]:
    """(name, multiply-accumulates, elements of weights) of every layer for a MAC array."""
    found = []
    for node in workload.nodes:
        if node.layer is not None and node.unit == MAC_ARRAY:
            read = (workload.tensor_of[name] for name in node.inputs[:2])
            weights = sum(one.element_count for one in read if one.is_constant and len(one.shape) > 1)
            found.append((node.name, node.layer.mac_count, weights))
    return found


def configured(family: str) -> Workload:
    """Step of the language model, read from the configuration block by block."""
    return parse_workload(
        {
            "language_model": fields_of(family),
            "phase": "prefill",
            "tokens": TOKENS,
            "logits": "all",
            "latent_attention": "expanded",
            "written_out": True,
        }
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_products_with_weights_are_those_of_the_export(family: str) -> None:
    """Each layer of the export has a product with as many weights in the configuration."""
    exported = Counter(
        row[1:] for row in products_of(parse_workload(EXPORTS / f"{family}.onnx", "corrected")) if row[2]
    )
    own: Counter[tuple[int, int]] = Counter()
    together: dict[str, tuple[int, int]] = {}
    for name, macs, weights in products_of(configured(family)):
        block, _, part = name.rpartition("/")
        if "/experts." in name:
            continue
        if family in FUSED and part in ("q_proj", "k_proj", "v_proj"):
            before = together.get(block, (0, 0))
            together[block] = (before[0] + macs, before[1] + weights)
        elif part == "conv1d":
            own[macs // TOKENS * (TOKENS + PAST_THE_END), weights] += 1
        elif weights:
            own[macs, weights] += 1
    own.update(together.values())
    assert own == exported


@pytest.mark.parametrize("family", FAMILIES)
def test_the_other_products_differ_by_what_the_mask_hides(family: str) -> None:
    """Scores and values have T (T + 1) / 2 of the export's T * T pairs; a state space needs all of them."""
    exported = sum(row[1] for row in products_of(parse_workload(EXPORTS / f"{family}.onnx", "corrected")) if not row[2])
    exported -= sum(sum(sizes) for sizes in products_of_experts(family))
    own = sum(row[1] for row in products_of(configured(family)) if not row[2])
    seen = 1.0 if family == "mamba" else (TOKENS + 1) / (2 * TOKENS)
    assert own == seen * exported


def products_of_experts(family: str) -> list[tuple[int, int]]:
    """(gates and up-projections, down-projections): multiply-accumulates of all experts of each block."""
    found: dict[str, tuple[int, int]] = {}
    for name, macs, _ in products_of(configured(family)):
        block, is_expert, part = name.partition("/feedforward/experts.")
        if is_expert:
            before = found.get(block, (0, 0))
            is_down = part.endswith("down_proj")
            found[block] = (before[0] + macs * (not is_down), before[1] + macs * is_down)
    return list(found.values())


@pytest.mark.parametrize("family", EXPERTS)
def test_experts_are_those_of_the_export(family: str) -> None:
    """The experts of a block have the same products and the same number of weights as in the export."""
    rows = products_of(parse_workload(EXPORTS / f"{family}.onnx", "corrected"))
    exported = Counter(macs for _, macs, weights in rows if not weights)
    own = products_of_experts(family)
    assert len(own) == EXPERTS[family]
    assert all(exported[macs] == len(own) for sizes in own for macs in sizes)
    shapes = [
        tuple(one.dims) for one in onnx.load(EXPORTS / f"{family}.onnx", load_external_data=False).graph.initializer
    ]
    problems = Problems()
    model = architecture_of(fields_of(family), family, problems)
    assert model is not None
    matrices = [one for one in block_weights(model.blocks[-1], model.hidden) if one.name.startswith("experts.")]
    assert sum(math.prod(shape) for shape in shapes if len(shape) == 3) == len(own) * sum(
        one.elements for one in matrices
    )
