"""Shapes, values and bits of the outputs of one operator.

Sizes that onnx cannot infer are taken from the user, or else from the file.
"""

from collections.abc import Mapping

import onnx

from tilewright.base.errors import InputError, OptionPath, Problem, nearest_name
from tilewright.workload.onnx.node import STANDARD_DOMAINS, OnnxNode, Shape
from tilewright.workload.onnx.resolution.checks import check_consistency
from tilewright.workload.onnx.resolution.evaluation import Values, constant_tensor, evaluate, keeps_values, shape_values
from tilewright.workload.onnx.resolution.functions import PendingNode, tensor_names
from tilewright.workload.onnx.resolution.inference import Inference, Sizes, known_shape
from tilewright.workload.onnx.resolution.inputs import (
    ASSUMED_SIZE,
    SIZES_ALLOWED,
    WILDCARD,
    GivenSizes,
    StoredShape,
    is_size,
    network_inputs,
    tensor_of,
)
from tilewright.workload.onnx.resolution.tensors import AssumedTensor, KnownTensors, quantised_bits

_SAME_ELEMENTS = frozenset(
    {"DepthToSpace", "SpaceToDepth", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Transpose"}
)


_WINDOWS = frozenset(
    {"AveragePool", "Conv", "ConvInteger", "FusedConv", "LpPool", "MaxPool", "NhwcConv", "QLinearConv"}
)


class _NotKnownError(InputError):
    """Error for a shape that is not known. The error is reported only if the shape is needed."""

    def __init__(
        self, problems: list[Problem], *, is_undecided: bool, sizes: Sizes = (), missing: Mapping[str, Problem] = {}
    ) -> None:
        super().__init__(problems)
        self.is_undecided = is_undecided
        """True if the shape is decided at run time. False if the shape is unknown for another reason: the operator is
        unknown or reads a sequence."""
        self.sizes = sizes
        self.missing = dict(missing)
        """Problems of the unknown sizes, by name of the size. The table is empty if the rank is also unknown."""


class OutputResolver:
    """Resolver that adds the outputs of operators to the known tensors.

    `given` and `input_shapes` are the sizes and shapes that the user gives, both for network inputs and for inner
    tensors (all other tensors). `stored` has the shapes that the file stores for inner tensors.
    """

    def __init__(
        self,
        known: KnownTensors,
        inference: Inference,
        given: GivenSizes,
        input_shapes: Mapping[str, Shape],
        stored: Mapping[str, StoredShape],
    ) -> None:
        self.known = known
        self.inference = inference
        self.given, self.input_shapes, self.stored = given, input_shapes, stored

    def add_outputs(self, item: PendingNode, *, is_constant: bool) -> None:
        """Add the outputs of an operator to the known tensors. An output whose shape is not known is added as unknown.

        Raises InputError if the operator does not fit its definition, if it needs an input whose shape is not known, or
        if a size from the user contradicts an inferred size.
        """
        node = item.proto
        is_standard = node.domain in STANDARD_DOMAINS
        if is_standard and node.op_type == "Constant":
            self._add_constant(item)
            return
        if self.inference.needs_inputs(item):
            self._require_inputs(item)
        types = self.inference.output_types(item, self.known)
        inferred = [_complete(known_shape(types.get(name))) for name in node.output]
        results = self._values(item, inferred) if is_constant and is_standard else None
        problems: list[Problem] = []
        for index, name in enumerate(node.output):
            if name:
                values = results[index] if results is not None else None
                try:
                    self._add(item, name, types.get(name), values, is_constant=is_constant)
                except InputError as error:
                    problems += error.problems
        if is_standard and node.op_type in _SAME_ELEMENTS and not problems:
            problems += self._count_problems(item)
        if problems:
            raise InputError(problems)
        if is_standard:
            self._check_operands(item)

    def add_not_inferred(self, item: PendingNode, names: list[str]) -> None:
        """Add outputs whose shapes come only from the file or from the user. Raises InputError like `add_outputs`."""
        for name in names:
            if name:
                self._add(item, name, None, None, is_constant=False)

    def _check_operands(self, item: PendingNode) -> None:
        facts = self.known.facts
        given = [facts.get(name) for name in item.proto.input]
        first = facts.get(item.proto.output[0]) if item.proto.output else None
        shapes = [tensor.shape if tensor else None for tensor in given]
        values = [tensor.values if tensor else None for tensor in given]
        check_consistency(item.name, item.proto, shapes, values, first.shape if first else None)

    def _add_constant(self, item: PendingNode) -> None:
        tensor = constant_tensor(item.proto)
        if tensor is None or len(item.proto.output) != 1 or not item.proto.output[0]:
            raise InputError([Problem("a Constant needs one value and one output", path=item.name)])
        self.known.add_constant(item.proto.output[0], tensor)

    def _require_inputs(self, item: PendingNode) -> None:
        """Raise InputError if the shape of an input is not known. The error itself contains no problems, because
        `known` already has the problems of this shape."""
        known = [self.known.require(name) for name in dict.fromkeys(item.proto.input)]  # all, so that each is reported
        if not all(known):
            raise InputError([])

    def _values(self, item: PendingNode, shapes: list[Shape | None]) -> tuple[Values, ...] | None:
        node, facts = item.proto, self.known.facts
        if node.op_type in ("Shape", "Size"):
            return (shape_values(node, facts[node.input[0]].shape),)
        values = {
            name: tensor.values
            for name in node.input
            if (tensor := facts.get(name)) is not None and tensor.values is not None
        }
        return evaluate(node, values, shapes, item.opsets)

    def _add(
        self,
        item: PendingNode,
        name: str,
        value_type: onnx.TypeProto | None,
        values: Values | None,
        *,
        is_constant: bool,
    ) -> None:
        if value_type is not None and value_type.WhichOneof("value") not in ("tensor_type", None):
            self.known.add_unknown(name, [_unknown_problem(item, name)], value_type, is_constant=is_constant)
            return
        try:
            shape = tuple(values.shape) if values is not None else self._settled_shape(item, name, value_type)
        except _NotKnownError as error:
            self.known.add_unknown(name, error.problems, None, is_constant=is_constant)
            if error.is_undecided:
                self.known.undecided.add(name)
            if error.missing:
                shape = tuple(ASSUMED_SIZE if size is None else size for size in error.sizes)
                element_type = self._element_type(item, name, value_type, None)
                self.known.assumed[name] = AssumedTensor(shape, element_type, error.missing)
            return
        if item.proto.op_type in _WINDOWS and any(size < 0 for size in shape):
            message = f"tensor '{name}' has a negative size: the window is larger than the padded input"
            raise InputError([Problem(message, path=item.name, value=str(list(shape)))])
        element_type = self._element_type(item, name, value_type, values)
        kept = values if values is not None and keeps_values(shape, element_type) else None
        given = [self.known.facts.get(key) for key in item.proto.input]
        bits = quantised_bits(item.proto, given, element_type, is_constant=is_constant)
        try:
            self.known.add(name, shape, element_type, is_constant=is_constant, values=kept, bits=bits)
        except InputError as error:
            raise InputError(_at(problem, item.name) for problem in error.problems) from None

    def _element_type(
        self, item: PendingNode, name: str, value_type: onnx.TypeProto | None, values: Values | None
    ) -> int:
        if value_type is not None and value_type.tensor_type.elem_type:
            return int(value_type.tensor_type.elem_type)
        if values is not None:
            return int(onnx.helper.np_dtype_to_tensor_dtype(values.dtype))
        if name in self.stored:
            return self.stored[name].element_type
        first = self.known.facts.get(item.proto.input[0]) if item.proto.input else None
        return first.element_type if first is not None else onnx.TensorProto.FLOAT

    def _settled_shape(self, item: PendingNode, name: str, value_type: onnx.TypeProto | None) -> Shape:
        """Inferred shape of an output. Sizes that onnx does not infer come from the user, or else from the file (with a
        notice)."""
        inferred = known_shape(value_type)
        if inferred is None:
            if name in self.input_shapes:
                return _checked(OptionPath(f"input_shapes.{name}"), tuple(self.input_shapes[name]))
            return self._stored_shape(item, name)
        sizes = self._with_given_sizes(item, name, inferred)
        complete = _complete(sizes)
        return complete if complete is not None else self._stored_sizes(item, name, sizes)

    def _with_given_sizes(self, item: PendingNode, name: str, inferred: Sizes) -> Sizes:
        """Inferred sizes, with sizes from the user where onnx infers none. Raises InputError for impossible sizes, and
        for sizes that contradict inferred sizes."""
        if name in self.input_shapes:
            shape, path = tuple(self.input_shapes[name]), OptionPath(f"input_shapes.{name}")
            if len(shape) != len(inferred):
                allowed = f"{len(inferred)} sizes"
                raise InputError(
                    [Problem("wrong rank of a tensor", path=path, value=str(list(shape)), allowed=allowed)]
                )
            given = dict(enumerate(_checked(path, shape)))
        else:
            given = self._given_by_place(name, inferred)
        for axis, size in given.items():
            if inferred[axis] not in (None, size):
                message = f"the network already determines the size of {name}[{axis}]"
                raise InputError([Problem(message, path=item.name, value=str(size), allowed=str(inferred[axis]))])
        return tuple(given.get(axis) if size is None else size for axis, size in enumerate(inferred))

    def _given_by_place(self, name: str, sizes: Sizes) -> dict[int, int]:
        """Sizes that the user gave for axes of a tensor, by axis. The key of an axis is `name[axis]`. For an axis
        without a size in `sizes`, a size that the user gave for its symbol also counts."""
        if not self.given.dims:
            return {}
        symbols = self._symbols(name, len(sizes))
        found = {}
        for axis, size in enumerate(sizes):
            place = f"{name}[{axis}]"
            if size is None or place in self.given.dims:
                given = self.given.size_of(place, *symbols[axis])
                if given is not None:
                    found[axis] = given
        return found

    def _symbols(self, name: str, rank: int) -> list[tuple[str, ...]]:
        stored = self.stored.get(name)
        if stored is None or len(stored.symbols) != rank:
            return [()] * rank
        return [(symbol,) if symbol else () for symbol in stored.symbols]

    def _stored_sizes(self, item: PendingNode, name: str, sizes: Sizes) -> Shape:
        """Shape that the file stores for a tensor. Raises _NotKnownError if the file stores no complete shape, or if
        the stored shape contradicts a known size in `sizes`.
        """
        stored = self.stored.get(name)
        if stored is not None and len(stored.sizes) == len(sizes):
            pairs = zip(stored.sizes, sizes, strict=True)
            if all(size is not None and known in (None, size) for size, known in pairs):
                self._note_stored(item, name)
                return tuple(size for size in stored.sizes if size is not None)
        raise self._open_sizes(item, name, sizes)

    def _open_sizes(self, item: PendingNode, name: str, sizes: Sizes) -> _NotKnownError:
        symbols = self._symbols(name, len(sizes))
        missing = {}
        for axis, size in enumerate(sizes):
            if size is None:
                place = f"{name}[{axis}]"
                message = f"the size of {place}, a result of {item.proto.op_type}, is decided at run time"
                key = next(iter(symbols[axis]), place)
                missing[key] = Problem(message, path=item.name, allowed=f"dims: {key}: SIZE")
        return _NotKnownError(
            list(missing.values()), is_undecided=self._reads_tensors_only(item), sizes=sizes, missing=missing
        )

    def _stored_shape(self, item: PendingNode, name: str) -> Shape:
        """Shape of an output for which onnx infers no rank: the shape that the file stores. A size that the user gave
        for an axis replaces the stored size.

        Raises _NotKnownError if the file stores no shape, or if a size is neither stored nor given.
        """
        stored = self.stored.get(name)
        if stored is not None:
            given = self._given_by_place(name, stored.sizes)
            sizes = tuple(given.get(axis, size) for axis, size in enumerate(stored.sizes))
            self._note_stored(item, name)
            complete = _complete(sizes)
            if complete is not None:
                return complete
            raise self._open_sizes(item, name, sizes)
        if not self.inference.is_defined(item):
            text = f"the operator {operator_type(item)} is not known, so the shape of its result is not known"
            self.inference.note(text, item.name)
            raise _NotKnownError([_unknown_problem(item, name)], is_undecided=False)
        message = f"the shape of tensor '{name}', a result of {item.proto.op_type}, is decided at run time"
        allowed = f"input_shapes: {name}: [SIZE, ...]"
        raise _NotKnownError(
            [Problem(message, path=item.name, allowed=allowed)], is_undecided=self._reads_tensors_only(item)
        )

    def _reads_tensors_only(self, item: PendingNode) -> bool:
        """True if all tensors that the operator reads have known shapes. Otherwise, a remark says that the operator
        reads tensors of unknown shape from a sequence. The sizes of its results are then not needed, because operators
        on sequences are not modelled.
        """
        if all(name in self.known.facts for name in item.proto.input if name):
            return True
        self.inference.note(f"{operator_type(item)} reads tensors of unknown shape from a sequence", item.name)
        return False

    def _note_stored(self, item: PendingNode, name: str) -> None:
        text = f"shapes of results of {operator_type(item)} are taken from the file, because they cannot be inferred"
        self.inference.note(text, f"{item.name} ({name})")

    def _count_problems(self, item: PendingNode) -> list[Problem]:
        """Problem of an operator that must keep the number of elements (`_SAME_ELEMENTS`), if its first output has
        another number of elements than its first input. [] if the numbers are equal, or if a shape is not known."""
        facts = [self.known.facts.get(name) for name in (*item.proto.input[:1], *item.proto.output[:1])]
        if len(facts) < 2 or facts[0] is None or facts[1] is None:
            return []
        before, after = (_count(tensor.shape) for tensor in facts if tensor is not None)
        if before == after:
            return []
        message = (
            f"{item.proto.op_type} of {list(facts[0].shape)} to {list(facts[1].shape)}: the numbers of elements differ"
        )
        return [Problem(message, path=item.name, value=str(after), allowed=str(before))]


def operator_type(item: PendingNode) -> str:
    """Operator type with its domain, for messages."""
    return OnnxNode(0, "", item.proto).operator_type


def _unknown_problem(item: PendingNode, name: str) -> Problem:
    made_by = f"made by {operator_type(item)} '{item.name}'"
    message = f"the shape of tensor '{name}', {made_by}, is not in the file, and it cannot be inferred"
    return Problem(message, path=item.name, allowed=f"input_shapes: {name}: [SIZE, ...]")


def _count(shape: Shape) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _checked(path: str, shape: Shape) -> Shape:
    """Shape that a user gave. Raises InputError for values that are not sizes."""
    if all(is_size(size) for size in shape):
        return shape
    raise InputError([Problem("wrong sizes of a tensor", path=path, value=str(list(shape)), allowed=SIZES_ALLOWED)])


def _complete(sizes: Sizes | None) -> Shape | None:
    if sizes is None or None in sizes:
        return None
    return tuple(size for size in sizes if size is not None)


def _at(problem: Problem, path: str) -> Problem:
    return Problem(problem.message, path=path, value=problem.value, allowed=problem.allowed)


def unused_places(
    dims: Mapping[str, int], input_shapes: Mapping[str, Shape], known: KnownTensors, inner: "InnerTensors"
) -> list[Problem]:
    """Problems of sizes that the user gives for inner tensors: the tensor does not exist, or has another size."""
    names = sorted(name for name in known.defined if name)
    problems = []
    for key, size in dims.items():
        tensor = tensor_of(key)
        if tensor and tensor not in inner.inputs and (WILDCARD not in tensor or tensor in known.defined):
            axis = int(key.removesuffix("]").rpartition("[")[2])
            problems += _unused_place(known, names, tensor, OptionPath(f"dims.{key}"), axis, size)
    for tensor, shape in input_shapes.items():
        if tensor in inner:
            problems += _unused_place(known, names, tensor, OptionPath(f"input_shapes.{tensor}"), None, tuple(shape))
    return problems


def _unused_place(
    known: KnownTensors, names: list[str], tensor: str, path: str, axis: int | None, said: int | Shape
) -> list[Problem]:
    """Problems of the value `said` that the user gives for an inner tensor. The value is the size of `axis`; if `axis`
    is None, it is the whole shape. [] if the value agrees with the network, or if other problems prevent the check."""
    if tensor not in known.defined:
        return [Problem(f"no tensor '{tensor}' in the network", path=path, nearest=nearest_name(tensor, names))]
    if known.missing_sizes or tensor in known.failed:
        return []
    shown = str(list(said) if isinstance(said, tuple) else said)
    if tensor not in known.facts:
        is_open = tensor not in known.types
        message = f"the rank of tensor '{tensor}' is not known" if is_open else f"'{tensor}' is not a single tensor"
        allowed = f"input_shapes: {tensor}: [SIZE, ...]" if is_open else ""
        return [Problem(message, path=path, value=shown, allowed=allowed)]
    shape = known.facts[tensor].shape
    if said == shape if axis is None else axis < len(shape) and shape[axis] == said:
        return []
    message = f"the network already determines the {'shape' if axis is None else 'size'}"
    return [Problem(message, path=path, value=shown, allowed=f"shape {list(shape)}")]


class InnerTensors:
    """Names of inner tensors: all tensors except network inputs. A name with a slash always counts as the name of an
    inner tensor, because tensors of functions and branches have names with a slash.
    """

    def __init__(self, names: set[str], inputs: set[str]) -> None:
        self.names, self.inputs = names, inputs

    @staticmethod
    def of(graph: onnx.GraphProto) -> "InnerTensors":
        """Inner tensors of a graph."""
        return InnerTensors(tensor_names(graph), {value.name for value in network_inputs(graph)})

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name not in self.inputs and (name in self.names or "/" in name)
