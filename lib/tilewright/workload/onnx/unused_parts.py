"""Unused parts of an ONNX model: attributes that the operator does not define, and operator sets that no operator uses.

Some tools add attributes of their own, and users misspell attributes. In both cases the attribute has no effect.
Operators that are not known at all are reported in the coverage.

Sources for the attributes of contrib operators and quantisers: ContribOperators.md of ONNX Runtime, operators of qonnx.
"""

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence

import onnx

from tilewright.base.errors import InputError, Problem, Unused, count_of, nearest_name
from tilewright.workload.onnx.node import PRECISION_ATTRIBUTES
from tilewright.workload.onnx.resolution.custom import CONTRIB_DOMAIN, QUANTISER_DOMAINS, STATED
from tilewright.workload.onnx.resolution.functions import standard_domain
from tilewright.workload.onnx.resolution.inference import LATEST_OPSET, find_schema

_CONVOLUTION = "auto_pad dilations group kernel_shape pads strides"
_POOL = "auto_pad ceil_mode dilations kernel_shape pads storage_order strides"
_ACTIVATION = "activation activation_alpha activation_beta activation_gamma activation_params"
_GEMM = "alpha beta transA transB"
_HEADS = "mask_filter_value num_heads scale softcap unidirectional"
_CONTRIB_TEXTS = {
    "Attention": f"{_HEADS} do_rotary past_present_share_buffer qkv_hidden_sizes rotary_embedding_dim",
    "BiasAdd": "",
    "BiasGelu": "",
    "DequantizeLinear": "axis block_size output_dtype",
    "DynamicQuantizeLSTM": "activation_alpha activation_beta activations clip direction hidden_size input_forget",
    "DynamicQuantizeMatMul": "",
    "EmbedLayerNormalization": "epsilon mask_index_type",
    "FastGelu": "",
    "FusedConv": f"{_CONVOLUTION} {_ACTIVATION}",
    "FusedGemm": f"{_GEMM} {_ACTIVATION}",
    "FusedMatMul": f"{_GEMM} transBatchA transBatchB",
    "GatherBlockQuantized": "bits block_size gather_axis quantize_axis",
    "Gelu": "approximate",
    "GridSample": "align_corners mode padding_mode",
    "GroupNorm": "activation channels_last epsilon groups",
    "GroupQueryAttention": f"{_HEADS} do_rotary kv_num_heads local_window_size rotary_interleaved smooth_softmax"
    " qk_output k_quant_type v_quant_type kv_cache_bit_width",
    "MatMulIntegerToFloat": "",
    "MatMulNBits": "K N accuracy_level bits block_size weight_prepacked",
    "MoE": "activation_alpha activation_beta activation_type k normalize_routing_weights swiglu_fusion swiglu_limit"
    " use_sparse_mixer",
    "MultiHeadAttention": _HEADS,
    "NhwcConv": _CONVOLUTION,
    "NhwcFusedConv": f"{_CONVOLUTION} {_ACTIVATION}",
    "NhwcMaxPool": _POOL,
    "QGemm": _GEMM,
    "QLinearAdd": "",
    "QLinearAveragePool": f"{_POOL} channels_last count_include_pad",
    "QLinearConcat": "axis",
    "QLinearConv": f"{_CONVOLUTION} channels_last",
    "QLinearGlobalAveragePool": "channels_last",
    "QLinearLeakyRelu": "alpha",
    "QLinearMul": "",
    "QLinearReduceMean": "axes keepdims",
    "QLinearSigmoid": "",
    "QLinearSoftmax": "axis opset",
    "QuantizeLinear": "axis block_size output_dtype saturate",
    "QuickGelu": "alpha",
    "RotaryEmbedding": "interleaved is_packed_batching num_heads rotary_embedding_dim scale",
    "SimplifiedLayerNormalization": "axis epsilon stash_type",
    "SkipGroupNorm": "activation channels_last epsilon groups",
    "SkipLayerNormalization": "epsilon",
    "SkipSimplifiedLayerNormalization": "epsilon",
    "TransposeMatMul": f"{_GEMM} transBatchA transBatchB",
    "Trilu": "upper",
}
_QUANTISER = "bit_width has_inf has_nan has_subnormal max_val narrow rounding_mode saturation signed"


def unused_of_model(model: onnx.ModelProto) -> list[Unused]:
    """Notices of parts of a model that have no effect. The caller adds the file name. Raises InputError if a node has
    an attribute twice."""
    return [*_unused_operator_sets(model), *_unused_attributes(model)]


def _unused_operator_sets(model: onnx.ModelProto) -> list[Unused]:
    """Notices of imported operator sets that no operator uses. Notices are given only if the model does not import the
    standard domain: the unused domain is then probably a misspelling of the standard domain.
    """
    versions = _opsets(model.opset_import)
    if "" in versions:
        return []
    used = {standard_domain(node.domain) for node in _all_nodes(model.graph.node)}
    used |= {standard_domain(function.domain) for function in model.functions}
    why = (
        "has no effect: no operator is of this domain; the file imports no operator set of the standard domain, ai.onnx"
    )
    return [Unused(Problem(why, path=f"opset_import.{domain}")) for domain in versions if domain not in used]


def _unused_attributes(model: onnx.ModelProto) -> list[Unused]:
    """Notices of attributes that operators do not define. There is one notice per operator type and attribute name, at
    the first node that has the attribute.

    Raises InputError if a node has an attribute twice, because ONNX does not define which of the two values applies.
    """
    functions = {(standard_domain(one.domain), one.name): one for one in model.functions}
    opsets = _opsets(model.opset_import)
    parts = [(model.graph.node, opsets)]
    parts += [(one.node, _opsets(one.opset_import) or opsets) for one in model.functions]
    _refuse_repeated(node for nodes, _ in parts for node in _all_nodes(nodes))
    found: dict[tuple[str, str], list[str]] = {}
    nearest: dict[tuple[str, str], str] = {}
    for nodes, versions in parts:
        for node in (node for node in _all_nodes(nodes) if node.attribute):
            given = {attribute.name for attribute in node.attribute} - PRECISION_ATTRIBUTES
            known = _known(node, versions, functions)
            for name in sorted(given - known) if known is not None else ():
                key = (node.op_type, name)
                found.setdefault(key, []).append(_place(node))
                if key not in nearest:
                    nearest[key] = nearest_name(name, sorted((known or frozenset()) - given))
    return [
        _notice(operator, attribute, places, nearest[operator, attribute])
        for (operator, attribute), places in found.items()
    ]


def _refuse_repeated(nodes: Iterable[onnx.NodeProto]) -> None:
    problems = []
    for node in nodes:
        names = [attribute.name for attribute in node.attribute]
        repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1] if len(names) > 1 else []
        problems += [Problem("is given twice", path=f"{_place(node)}.{name}") for name in repeated]
    if problems:
        raise InputError(problems)


def _place(node: onnx.NodeProto) -> str:
    return node.name or next(iter(node.output), node.op_type)


def _notice(operator: str, attribute: str, places: Sequence[str], nearest: str) -> Unused:
    more = f", here and in {count_of(len(places) - 1, 'more operator')}" if len(places) > 1 else ""
    why = f"has no effect: {operator} has no such attribute{more}"
    return Unused(Problem(why, path=f"{places[0]}.{attribute}", nearest=nearest))


def _opsets(imports: Sequence[onnx.OperatorSetIdProto]) -> dict[str, int]:
    return {standard_domain(one.domain): one.version for one in imports}


def _all_nodes(nodes: Sequence[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Nodes in `nodes` and in the subgraphs of these nodes, at any depth."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs) if attribute.HasField("g") or attribute.graphs else ():
                yield from _all_nodes(graph.node)


def _known(
    node: onnx.NodeProto, opsets: Mapping[str, int], functions: Mapping[tuple[str, str], onnx.FunctionProto]
) -> frozenset[str] | None:
    """Names of the attributes that the operator of `node` defines; None if the operator is not known. `functions` has
    the functions of the model, by (domain, name). A call of such a function is also a known operator."""
    domain = standard_domain(node.domain)
    function = functions.get((domain, node.op_type))
    if function is not None:
        return frozenset((*function.attribute, *(one.name for one in function.attribute_proto)))
    return known_attributes(node.op_type, domain, opsets.get(domain, LATEST_OPSET))


def known_attributes(operator: str, domain: str, version: int) -> frozenset[str] | None:
    """Names of the attributes of an operator in a version of its domain; None if the operator is not known."""
    found = _defined_attributes(operator, domain, version)
    if found is None and (stated := STATED.get((domain, operator))) is not None:
        return stated.attributes
    return found


@functools.lru_cache(maxsize=4096)
def _defined_attributes(operator: str, domain: str, version: int) -> frozenset[str] | None:
    """Names of the attributes of an operator; None if neither onnx nor this module knows the operator."""
    schema = find_schema(operator, domain, version)
    if schema is not None:
        return frozenset(schema.attributes)
    if domain in QUANTISER_DOMAINS:
        return frozenset(_QUANTISER.split())
    if domain == CONTRIB_DOMAIN and operator in _CONTRIB_TEXTS:
        return frozenset(_CONTRIB_TEXTS[operator].split())
    return None
