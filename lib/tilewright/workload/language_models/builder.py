"""Builder of the layers of a language model: loop nests with their tensors, and nodes that move data.

All activations have the shape [tokens of all requests, features]. Matrix products and convolutions need a MAC array.
All other layers need a vector unit and do one operation for each combination of loop values, as in the reader of ONNX
files.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from tilewright.base.operator_groups import MAC_ARRAY, VECTOR_UNIT
from tilewright.workload.access import AxisIndex, IndexMap, TensorAccess, access_of_loops, affine, fixed, loop
from tilewright.workload.graph import Tensor, Workload, WorkloadNode
from tilewright.workload.language_models.architecture import Norm
from tilewright.workload.language_models.heads import AttentionSite
from tilewright.workload.language_models.request import Precision
from tilewright.workload.layer import OUTPUT, Layer
from tilewright.workload.nests import NestOperand, accumulates, nest_layer

Loops = tuple[tuple[str, int], ...]
Axis = AxisIndex | str
"""Index along an axis, or the name of the loop that is the index."""
_MAXIMUM = "ReduceMax"
"""Operator whose partial results are as wide as its final result."""
MODELLED, PASS_THROUGH = "modelled", "pass-through"


def at(tensor: str, *axes: Axis) -> TensorAccess:
    """Access to the element of a tensor at the given indices. An axis that is given as text is indexed by the loop of
    this name.
    """
    return TensorAccess(tensor, tuple(loop(axis) if isinstance(axis, str) else axis for axis in axes))


@dataclass
class Builder:
    """Builder of a workload. It holds the nodes and tensors that have been added so far."""

    precision: Precision
    nodes: list[WorkloadNode] = field(default_factory=list)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    prefix: str = ""
    repeats: int = 1
    attentions: list[AttentionSite] = field(default_factory=list)
    """Attentions that have been added so far. Each item has the nodes of the scores, the softmax and the weighted
    values of one attention."""
    _producer_of: dict[str, int] = field(default_factory=dict)

    # --- scope of names -------------------------------------------------------------------------------------------

    @contextmanager
    def scope(self, name: str, repeats: int = 1) -> Iterator[None]:
        """Scope in which names begin with `name/`. Each node that is added in the scope represents `repeats` equal
        nodes. The repeats of nested scopes are multiplied.
        """
        before = self.prefix, self.repeats
        self.prefix, self.repeats = f"{self.prefix}{name}/" if name else self.prefix, self.repeats * repeats
        try:
            yield
        finally:
            self.prefix, self.repeats = before

    # --- tensors --------------------------------------------------------------------------------------------------

    def tensor(self, name: str, shape: tuple[int, ...], bits: int | None = None) -> str:
        """Add a tensor that a node will produce, and return its full name. The default of `bits` is the bits of
        activations.
        """
        return self._tensor(name, shape, self.precision.activations if bits is None else bits)

    def weight(self, name: str, *shape: int) -> str:
        """Add a constant tensor with the bits of weights, and return its full name."""
        return self._tensor(name, shape, self.precision.weights, is_constant=True)

    def tied(self, source: str, name: str, shape: tuple[int, ...]) -> str:
        """Add a constant that is the transpose of the weights `source`, and return its full name. The constant adds no
        weights of its own."""
        target = self._tensor(name, shape, self.precision.weights, is_constant=True)
        rows, columns = shape
        loops = (("D", rows), ("K", columns))
        self.move(name, "Transpose", IndexMap(loops, at(target, "D", "K"), at(source, "K", "D")))
        return target

    def network_input(self, name: str, shape: tuple[int, ...], bits: int | None = None) -> str:
        """Add an input of the network, such as a cache or state from before the step, and return its full name."""
        whole = self.tensor(name, shape, bits)
        self.inputs.append(whole)
        return whole

    def table(self, name: str, *shape: int) -> str:
        """Add an input of the network that all blocks share, such as the cosines of the rotation angles, and return its
        name. An existing input with this name and shape is used again."""
        whole = f"{name}.{'x'.join(map(str, shape))}"
        if whole not in self.tensors:
            self.tensors[whole] = Tensor(whole, shape, self.precision.activations, "", "override")
            self.inputs.append(whole)
        return whole

    def _tensor(self, name: str, shape: tuple[int, ...], bits: int, is_constant: bool = False) -> str:
        whole = self.prefix + name
        if whole in self.tensors:
            raise ValueError(f"two tensors are called {whole}")
        self.tensors[whole] = Tensor(whole, shape, bits, "", "override", is_constant)
        return whole

    def shape(self, tensor: str) -> tuple[int, ...]:
        """Shape of a tensor."""
        return self.tensors[tensor].shape

    # --- nodes ----------------------------------------------------------------------------------------------------

    def nest(
        self,
        name: str,
        operator_type: str,
        loops: Loops,
        output: TensorAccess,
        inputs: Mapping[str, TensorAccess],
        *,
        others: Sequence[TensorAccess] = (),
        further: Mapping[str, Sequence[IndexMap]] | None = None,
        superset: Sequence[str] = (),
        sizes: Mapping[str, tuple[int, ...]] | None = None,
        unit: str = VECTOR_UNIT,
        operator: tuple[str, str] | None = None,
        sums: int | None = None,
    ) -> str:
        """Add a layer that reads operand I (or I and W) and writes `output`; return the name of the output tensor.

        * `others` are accesses to tensors that the layer also reads, at no cost (a bias).
        * `further` has additional dependences (index maps) of the output, by operand.
        * `superset` names the operands without exact dependences: any element of the output can depend on any element
          of the operand.
        * `sizes` has the shape of an operand that is only a part of its tensor.
        * `operator` is (name, type) of the operator that the layer is a part of.
        * `sums` is the number of bits of partial sums; None for the default.
        """
        operands = {OUTPUT: output, **inputs}
        bits = {key: self.tensors[one.tensor].bits for key, one in operands.items()}
        nest_operands = {
            key: NestOperand(
                one,
                (sizes or {}).get(key, self.shape(one.tensor)),
                bits[key],
                self.tensors[one.tensor].is_constant,
            )
            for key, one in operands.items()
        }
        sums = self._sums(operator_type, loops, output, bits) if sums is None else max(sums, bits[OUTPUT])
        layer = nest_layer(self.prefix + name, operator_type, loops, nest_operands, sums)
        maps = []
        for operand, one in inputs.items():
            if operand in superset:
                maps.append(self._any_of(loops, output, one.tensor, operand))
            else:
                maps.append(IndexMap(loops, output, one, operand, not (further or {}).get(operand)))
            maps += (further or {}).get(operand, ())
        maps += [IndexMap(loops, output, one) for one in others]
        self._add(name, operator_type, layer, unit, maps, (output.tensor,), operator)
        return output.tensor

    def _sums(self, operator_type: str, loops: Loops, output: TensorAccess, bits: Mapping[str, int]) -> int:
        """Bits of a partial sum in a layer. If the layer sums nothing or computes maxima, a partial sum has the bits of
        an output.

        Otherwise, the precision of the model gives the bits; the default is twice the bits of the widest input. A
        partial sum never has fewer bits than an output.
        """
        if operator_type == _MAXIMUM or not accumulates(loops, output):
            return bits[OUTPUT]
        widest = max(width for operand, width in bits.items() if operand != OUTPUT)
        return max(self.precision.partial_sums or 2 * widest, bits[OUTPUT])

    def move(self, name: str, operator_type: str, *maps: IndexMap) -> str:
        """Add a node that only passes data on, at no cost, and return the name of its result."""
        outputs = dict.fromkeys(index_map.output.tensor for index_map in maps)
        self._add(name, operator_type, None, "", maps, tuple(outputs), None)
        return next(iter(outputs))

    def any_of(self, output: str, source: str) -> IndexMap:
        """Map in which every element of the tensor `output` can depend on every element of `source`."""
        written = tuple((f"D{axis}", size) for axis, size in enumerate(self.shape(output)))
        return self._any_of(written, access_of_loops(output, (name for name, _ in written)), source)

    def _any_of(self, loops: Loops, output: TensorAccess, source: str, operand: str = "") -> IndexMap:
        """Map in which each element of the output can depend on any element of `source`. The map keeps the output loops
        `loops`, so the output can be cut into tiles along them."""
        read = tuple((f"S{axis}", size) for axis, size in enumerate(self.shape(source)))
        return IndexMap((*loops, *read), output, access_of_loops(source, (name for name, _ in read)), operand, False)

    def _add(
        self,
        name: str,
        operator_type: str,
        layer: Layer | None,
        unit: str,
        maps: Sequence[IndexMap],
        outputs: tuple[str, ...],
        operator: tuple[str, str] | None,
    ) -> None:
        node_id = len(self.nodes)
        origin, origin_type = operator or (name, operator_type)
        read = tuple(dict.fromkeys(index_map.input.tensor for index_map in maps))
        self.nodes.append(
            WorkloadNode(
                node_id=node_id,
                name=self.prefix + name,
                operator_type=operator_type,
                layer=layer,
                sources=tuple(self._sources(maps, layer is not None)),
                output_elements=None if layer else sum(self.tensors[one].element_count for one in outputs),
                unit=unit,
                origin=self.prefix + origin,
                origin_type=origin_type,
                status=PASS_THROUGH if layer is None else MODELLED,
                inputs=read,
                outputs=outputs,
                index_maps=tuple(maps),
                repeats=self.repeats,
            )
        )
        self._producer_of.update((output, node_id) for output in outputs)

    def _sources(self, maps: Sequence[IndexMap], is_layer: bool) -> Iterator[tuple[str, int]]:
        """Pairs (operand, id of the producing node). The operand W comes first, then the operand I. The producers of
        all other inputs follow, each listed one time: as I3, I4, ... for a layer, and as I1, I2, ... for a node without
        a layer.

        An input is left out if no node produces it, or if its producer already occurs as the source of W or I.
        """
        found = [(one.operand, self._producer_of.get(one.input.tensor)) for one in maps]
        produced = [(operand, source) for operand, source in found if source is not None]
        named = {operand: source for operand, source in produced if operand}
        yield from sorted(named.items(), key=lambda pair: pair[0] != "W")
        number = 3 if is_layer else 1
        for source in dict.fromkeys(source for operand, source in produced if not operand):
            if source not in named.values():
                yield f"I{number}", source
                number += 1

    # --- operators ------------------------------------------------------------------------------------------------

    def linear(
        self, name: str, source: str, outputs: int, *, has_bias: bool = False, bits: int | None = None, start: int = 0
    ) -> str:
        """Add a matrix product with weights [inputs, outputs], and return the name of its result. The inputs of the
        product are the features of `source` from `start` on.
        """
        rows, width = self.shape(source)
        return self.product(name, source, (rows, width - start, outputs), has_bias=has_bias, bits=bits, start=start)

    def product(
        self,
        name: str,
        source: str,
        sizes: tuple[int, int, int],
        *,
        has_bias: bool = False,
        bits: int | None = None,
        start: int = 0,
        weight: str = "",
    ) -> str:
        """Append the layer O[d][k] += I[d][c] * W[c][k] of sizes (d, c, k). If weights have scales, also append a
        scaling layer. Returns the name of the result.
        """
        rows, inputs, outputs = sizes
        has_scales = self.precision.weight_group is not None
        # Before scaling, a product is as wide as partial sums are.
        sums = self.precision.partial_sums or 2 * max(self.tensors[source].bits, self.precision.weights)
        target = self.tensor(f"{name}.out", (rows, outputs), sums if has_scales else bits)
        weight = weight or self.weight(f"{name}.weight", inputs, outputs)
        others = [at(self.weight(f"{name}.bias", outputs), "K")] if has_bias else []
        self.nest(
            name,
            "MatMul",
            (("C", inputs), ("D", rows), ("K", outputs)),
            at(target, "D", "K"),
            {"I": at(source, "D", affine(("C", 1), offset=start)), "W": at(weight, "C", "K")},
            others=() if has_scales else others,
            unit=MAC_ARRAY,
        )
        return self._scaled(name, target, sizes, others, bits) if has_scales else target

    def _scaled(
        self, name: str, product: str, sizes: tuple[int, int, int], others: Sequence[TensorAccess], bits: int | None
    ) -> str:
        """Add the layer that scales a matrix product and sums it over the groups of weights, and return the name of the
        result. Each output needs one operation per group; the operation reads a scale and a zero point. `sizes` is
        (rows, inputs, outputs) of the product.
        """
        rows, inputs, outputs = sizes
        groups = self.precision.groups(inputs)
        scales = self._tensor(f"{name}.scales", (groups, outputs), self.precision.group_bits, is_constant=True)
        target = self.tensor(f"{name}.scale.out", (rows, outputs), bits)
        loops = (("C", groups), ("D", rows), ("K", outputs))
        output, sums = at(target, "D", "K"), self.tensors[product].bits
        operands = {"I": at(product, "D", "K"), "W": at(scales, "C", "K")}
        return self.nest(f"{name}.scale", "Mul", loops, output, operands, others=others, sums=sums)

    def elementwise(
        self, name: str, operator_type: str, *sources: str, bits: int | None = None, starts: tuple[int, ...] = (0, 0)
    ) -> str:
        """Add one operation per element of one or two tensors [rows, features], and return the name of the result.
        `starts` has the first feature that is read from each tensor.
        """
        rows, width = self.shape(sources[-1])
        width -= starts[len(sources) - 1]
        target = self.tensor(f"{name}.out", (rows, width), bits)
        accesses = [
            at(source, "D", affine(("K", 1), offset=start)) for source, start in zip(sources, starts, strict=False)
        ]
        loops = (("D", rows), ("K", width))
        inputs = dict(zip(("I", "W"), accesses, strict=False))
        return self.nest(name, operator_type, loops, at(target, "D", "K"), inputs)

    def norm(
        self, name: str, source: str, norm: Norm, heads: int = 1, width: int | None = None, bits: int | None = None
    ) -> str:
        """Add a normalisation along all features, or along the features of each head, and return the name of its
        result. The normalisation has the same parts as the normalisation operators of ONNX.

        `width` is the number of features that are normalised; the default is all features of a head. An element of the
        result has `bits` bits.
        """
        rows = self.shape(source)[0]
        width = self.shape(source)[1] // heads if width is None else width
        outer = (("D", rows), ("H", heads)) if heads > 1 else (("D", rows),)
        loops = (*outer, ("K", width))
        few = tuple(size for _, size in outer)
        names = [loop_name for loop_name, _ in outer]
        terms = (("H", width), ("K", 1)) if heads > 1 else (("K", 1),)
        own = affine(*terms)
        whole = name, "LayerNormalization" if norm.is_centred else "RMSNormalization"
        data = at(source, "D", own)
        shape = (rows, heads * width)
        if norm.is_centred:
            mean = at(self.tensor(f"{name}.mean", few), *names)
            self.nest(f"{name}.mean", "ReduceMean", loops, mean, {"I": data}, operator=whole)
            centred = at(self.tensor(f"{name}.centred", shape), "D", own)
            self.nest(f"{name}.centre", "Sub", loops, centred, {"I": data, "W": mean}, operator=whole)
            data = centred
        variance = at(self.tensor(f"{name}.variance", few), *names)
        self.nest(f"{name}.variance", "ReduceSumSquare", loops, variance, {"I": data}, operator=whole)
        deviation = at(self.tensor(f"{name}.deviation", few), *names)
        self.nest(f"{name}.deviation", "Reciprocal", outer, deviation, {"I": variance}, operator=whole)
        result = at(self.tensor(f"{name}.normalised", shape), "D", own)
        self.nest(f"{name}.normalise", "Mul", loops, result, {"I": data, "W": deviation}, operator=whole)
        target = at(self.tensor(f"{name}.out", shape, bits), "D", own)
        inputs = {"I": result, "W": at(self.weight(f"{name}.weight", width), "K")}
        others = [at(self.weight(f"{name}.bias", width), "K")] if norm.has_shift else []
        return self.nest(f"{name}.scale", "Mul", loops, target, inputs, others=others, operator=whole)

    def softmax(self, name: str, source: str) -> str:
        """Add a softmax along the features of each row, and return the name of its result."""
        rows, width = self.shape(source)
        loops, whole = (("D", rows), ("K", width)), (name, "Softmax")
        data, row = at(source, "D", "K"), (rows,)
        most = at(self.tensor(f"{name}.max", row), "D")
        self.nest(f"{name}.max", _MAXIMUM, loops, most, {"I": data}, operator=whole)
        powers = at(self.tensor(f"{name}.exp", (rows, width)), "D", "K")
        self.nest(f"{name}.exp", "Exp", loops, powers, {"I": data, "W": most}, operator=whole)
        total = at(self.tensor(f"{name}.sum", row), "D")
        self.nest(f"{name}.sum", "ReduceSum", loops, total, {"I": powers}, operator=whole)
        result = at(self.tensor(f"{name}.out", (rows, width)), "D", "K")
        return self.nest(f"{name}.div", "Div", loops, result, {"I": powers, "W": total}, operator=whole)

    def rotary(self, name: str, source: str, heads: int, width: int, places: tuple[int, int], bits: int | None) -> str:
        """Add the rotary position embedding of the channels of each head, and return the name of its result. The
        embedding takes two products and one sum per channel.

        `width` is the number of rotated channels per head. `places` is (distance from one head to the next in features,
        first rotated feature).
        """
        rows, (pitch, start) = self.shape(source)[0], places
        half = width // 2
        loops = (("D", rows), ("H", heads), ("J", 2), ("K", half))
        channel = affine(("H", pitch), ("J", half), ("K", 1), offset=start)
        parts = []
        for part in ("cosine", "sine"):
            angles = self.table(f"rotary.{part}s", rows, half)
            product = self.tensor(f"{name}.{part}", (rows, heads, 2, half))
            inputs = {"I": at(source, "D", channel), "W": at(angles, "D", "K")}
            output = at(product, "D", "H", "J", "K")
            parts.append(self.nest(f"{name}.{part}", "Mul", loops, output, inputs, operator=(name, "RotaryEmbedding")))
        target = self.tensor(f"{name}.out", (rows, heads * width), bits)
        turned = at(target, "D", affine(("H", width), ("J", half), ("K", 1)))
        other = at(parts[1], "D", "H", affine(("J", -1), offset=1), "K")
        inputs = {"I": at(parts[0], "D", "H", "J", "K"), "W": other}
        return self.nest(f"{name}.sum", "Add", loops, turned, inputs, operator=(name, "RotaryEmbedding"))

    # --- the whole workload ---------------------------------------------------------------------------------------

    def workload(self, name: str) -> Workload:
        """Workload of all nodes that were added."""
        outputs = set(self.outputs)
        nodes = tuple(replace(node, is_network_output=bool(outputs & set(node.outputs))) for node in self.nodes)
        return Workload(name, nodes, tuple(self.tensors.values()), tuple(self.inputs), tuple(self.outputs))


__all__ = ["Axis", "Builder", "Loops", "affine", "at", "fixed"]
