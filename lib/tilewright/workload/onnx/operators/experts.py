"""Mixtures of experts of the domain com.microsoft: a router sends tokens to experts, whose results are summed.

The amount of work is exact, because every token goes to k experts. The choice of experts is known only at run time. The
tokens are therefore spread over the experts as evenly as possible.
"""

from dataclasses import dataclass

from tilewright.workload.access import AxisIndex, IndexMap, affine
from tilewright.workload.onnx.lowering import MAC_ARRAY, Lowering, access, lowers
from tilewright.workload.onnx.operators.softmax import softmax_parts

_SEPARATE, _INTERLEAVED, _CONCATENATED = 0, 1, 2
"""Values of the attribute `swiglu_fusion`, which says where the gate and the value of SwiGLU are. _SEPARATE: in two
tensors. _INTERLEAVED: alternating in one tensor. _CONCATENATED: one after the other in one tensor."""
_ACTIVATIONS = {"relu": "Relu", "gelu": "Gelu", "silu": "Swish", "swiglu": "Swish", "identity": ""}


@dataclass(frozen=True)
class _Sizes:
    """Sizes of a mixture of experts. `hidden` is the number of channels of a token, `inner` the number of channels
    inside an expert, and `chosen` the number of experts per token. The pairs (token, chosen expert) form `groups`
    groups of equal size. An expert has at most one group.
    """

    tokens: int
    hidden: int
    inner: int
    experts: int
    chosen: int
    groups: int

    @property
    def each(self) -> int:
        """Number of tokens per group."""
        return self.tokens * self.chosen // self.groups

    @property
    def loops(self) -> tuple[tuple[str, int], ...]:
        """Loops over the groups of (token, expert) pairs, and over the tokens of a group."""
        return ("G", self.groups), ("D", self.each)


@lowers("MoE", domain="com.microsoft")
def lower_mixture_of_experts(op: Lowering) -> None:
    """Mixture of experts: softmax of the router, choice of the k best experts, the experts, and the weighted sum.

    Each pair (token, chosen expert) has two matrix products, with the activation between them. A separate gate adds a
    third product. Raises InputError if shapes do not fit together.
    """
    fusion = op.node.integer("swiglu_fusion", _SEPARATE)
    kind = op.node.text("activation_type", "relu")
    if kind not in _ACTIVATIONS or fusion not in (_SEPARATE, _INTERLEAVED, _CONCATENATED):
        raise op.node.error(
            "wrong attributes activation_type and swiglu_fusion", f"{kind}, {fusion}", ", ".join(_ACTIVATIONS)
        )
    if kind != "swiglu":
        fusion = _SEPARATE
    sizes = _sizes(op, 2 if fusion else 1)
    weights = _route(op, sizes)
    routed = _dispatch(op, sizes)
    width = sizes.inner * (2 if fusion else 1)
    first = _product(op, sizes, routed, 2, sizes.hidden, width, "fc1")
    inner = _activated(op, sizes, first, kind, fusion)
    if op.has_input(6):
        third = _product(op, sizes, routed, 6, sizes.hidden, sizes.inner, "fc3")
        inner = _combined(op, sizes, inner, third, ("K", "K"), "gated")
    second = _product(op, sizes, inner, 4, sizes.inner, sizes.hidden, "fc2")
    _gather(op, sizes, second, weights)
    op.approximated("the experts of a token are chosen at run time: all experts are assumed to get equally many tokens")


def _sizes(op: Lowering, fusion: int) -> _Sizes:
    shape, router, second = op.input_shape(0), op.input_shape(1), op.input_shape(4)
    tokens, hidden, chosen = 1, shape[-1], op.node.integer("k", 1)
    for size in shape[:-1]:
        tokens *= size
    if len(second) != 3 or not 1 <= chosen <= second[0]:
        raise op.node.error(
            "wrong number of experts per token", f"{chosen} of {list(second[:1])}", "1 to the number of experts"
        )
    experts, _, inner = second
    expected = {1: (tokens, experts), 2: (experts, fusion * inner, hidden), 4: (experts, hidden, inner)}
    if op.has_input(6):
        expected[6] = (experts, inner, hidden)
    for index, fitting in expected.items():
        own = router if index == 1 else op.input_shape(index)
        if own != fitting:
            raise op.node.error(f"wrong shape of input {index}", str(list(own)), str(list(fitting)))
    pairs = tokens * chosen
    groups = next(count for count in range(min(experts, pairs), 0, -1) if pairs % count == 0)
    return _Sizes(tokens, hidden, inner, experts, chosen, groups)


def _route(op: Lowering, sizes: _Sizes) -> str:
    """Add the router, and return the name of the tensor [tokens, experts per token] with the largest probabilities of
    each token. The probabilities come from a softmax over the experts. Comparisons are counted as in TopK."""
    shape = (sizes.tokens, sizes.experts)
    probabilities = op.temporary("probabilities", shape, op.input(1))
    softmax_parts(op, op.input(1), probabilities, 1, "router_")
    best = op.temporary("weights", (sizes.tokens, sizes.chosen), op.input(1))
    loops = (("D", sizes.tokens), ("K", sizes.chosen), ("C", sizes.experts))
    op.nest(loops, access(best, "D", "K"), {"I": access(probabilities, "D", "C")}, part="best", operator_type="TopK")
    return best


def _dispatch(op: Lowering, sizes: _Sizes) -> str:
    routed = op.temporary("routed", (sizes.groups, sizes.each, sizes.hidden), op.input(0))
    loops = (*sizes.loops, ("K", sizes.hidden))
    written = access(routed, "G", "D", "K")
    shape = op.input_shape(0)
    outer = tuple((f"T{place}", size) for place, size in enumerate(shape[:-1]))
    tokens = access(op.input(0), *(name for name, _ in outer), "K")
    choice = (("T", sizes.tokens), ("E", sizes.experts))
    op.move(
        IndexMap((*loops, *outer), written, tokens, is_exact=False),
        IndexMap((*loops, *choice), written, access(op.input(1), "T", "E"), is_exact=False),
        part="routed",
        operator_type="Gather",
    )
    return routed


def _product(op: Lowering, sizes: _Sizes, source: str, index: int, depth: int, width: int, part: str) -> str:
    """Add the nest that multiplies the tokens of each group by the weights of the group's expert. Returns the name of
    the result, a tensor [groups, tokens of a group, width]. Input `index` has the weights. The bias costs nothing.
    """
    result = op.temporary(part, (sizes.groups, sizes.each, width), op.input(0))
    written, weights = access(result, "G", "D", "K"), op.input(index)
    further = []
    if not op.is_constant(weights):
        outer = (*sizes.loops, ("K", width))
        any_expert = access(weights, "E", "K", "C")
        further = [IndexMap((*outer, ("E", sizes.experts), ("C", depth)), written, any_expert, is_exact=False)]
    op.nest(
        (("C", depth), ("K", width), *sizes.loops),
        written,
        {"I": access(source, "G", "D", "C"), "W": access(weights, "G", "K", "C")},
        unit=MAC_ARRAY,
        part=part,
        operator_type="MatMul",
        further=further,
    )
    return result


def _activated(op: Lowering, sizes: _Sizes, source: str, kind: str, fusion: int) -> str:
    """Add the activation, and return the name of its result. If one matrix product gives both the gate and the value of
    SwiGLU, their multiplication is included.
    """
    operator = _ACTIVATIONS[kind]
    if not operator:
        return source
    gate: AxisIndex | str = affine(("K", 2)) if fusion == _INTERLEAVED else "K"
    value: AxisIndex | str = affine(("K", 2), offset=1)
    if fusion == _CONCATENATED:
        value = affine(("K", 1), offset=sizes.inner)
    shape = (sizes.groups, sizes.each, sizes.inner)
    result = op.temporary("activated", shape, source)
    loops = (*sizes.loops, ("K", sizes.inner))
    op.nest(
        loops,
        access(result, "G", "D", "K"),
        {"I": access(source, "G", "D", gate)},
        part="activated",
        operator_type=operator,
    )
    return _combined(op, sizes, result, source, ("K", value), "gated") if fusion else result


def _combined(
    op: Lowering, sizes: _Sizes, first: str, second: str, axes: tuple[AxisIndex | str, AxisIndex | str], part: str
) -> str:
    result = op.temporary(part, (sizes.groups, sizes.each, sizes.inner), first)
    op.nest(
        (*sizes.loops, ("K", sizes.inner)),
        access(result, "G", "D", "K"),
        {"I": access(first, "G", "D", axes[0]), "W": access(second, "G", "D", axes[1])},
        part=part,
        operator_type="Mul",
    )
    return result


def _gather(op: Lowering, sizes: _Sizes, source: str, weights: str) -> None:
    """Add two nodes. A move brings the results of the k experts of each token back to this token. A nest then adds
    these results, weighted by the router."""
    back = op.temporary("returned", (sizes.tokens, sizes.chosen, sizes.hidden), op.output())
    outer = (("T", sizes.tokens), ("S", sizes.chosen), ("K", sizes.hidden))
    op.move(
        IndexMap((*outer, *sizes.loops), access(back, "T", "S", "K"), access(source, "G", "D", "K"), is_exact=False),
        part="returned",
        operator_type="Gather",
    )
    shape = op.output_shape()
    names = [f"T{place}" for place in range(len(shape) - 1)]
    terms, step = [], 1
    for name, size in reversed(list(zip(names, shape[:-1], strict=True))):
        terms.append((name, step))
        step *= size
    token = affine(*reversed(terms)) if terms else affine()
    op.nest(
        (*zip(names, shape[:-1], strict=True), ("S", sizes.chosen), ("K", sizes.hidden)),
        access(op.output(), *names, "K"),
        {"I": access(back, token, "S", "K"), "W": access(weights, token, "S")},
        part="sum",
        operator_type="ReduceSum",
    )
