"""Shapes, values and bits of the outputs of one operator; people may give the sizes that no inference tells."""

from collections.abc import Mapping

import onnx

from tilewright.errors import InputError, Problem, nearest_name
from tilewright.workload.onnx.evaluation import Values, constant_tensor, evaluate, keeps_values, shape_values
from tilewright.workload.onnx.node import STANDARD_DOMAINS, OnnxNode, Shape
from tilewright.workload.onnx.resolution_consistency import check_consistency
from tilewright.workload.onnx.resolution_expansion import PendingNode
from tilewright.workload.onnx.resolution_inference import Inference, Sizes, known_shape
from tilewright.workload.onnx.resolution_quantisation import quantised_bits
from tilewright.workload.onnx.resolution_tensors import KnownTensors

_SAME_ELEMENTS = frozenset(
    {"DepthToSpace", "SpaceToDepth", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Transpose"}
)


class _NotKnownError(InputError):
    """A shape that cannot be told, which is no problem as long as nobody needs it."""

    def __init__(self, problems: list[Problem], *, is_undecided: bool) -> None:
        super().__init__(problems)
        self.is_undecided = is_undecided
        """Whether it is a matter of run time, rather than of an operator that nobody knows."""


class OutputResolver:
    """Adds the outputs of operators to the known tensors.

    `dims` and `input_shapes` may speak of inner tensors; `stored` are the shapes that the file stores for these.
    """

    def __init__(
        self,
        known: KnownTensors,
        inference: Inference,
        dims: Mapping[str, int],
        input_shapes: Mapping[str, Shape],
        stored: Mapping[str, tuple[int, Shape]],
    ) -> None:
        self.known = known
        self.inference = inference
        self.dims, self.input_shapes, self.stored = dims, input_shapes, stored

    def add_outputs(self, item: PendingNode, *, is_constant: bool) -> None:
        """Raises InputError for what does not fit, and for sizes that are decided at run time."""
        node = item.proto
        is_standard = node.domain in STANDARD_DOMAINS
        if is_standard and node.op_type == "Constant":
            self._add_constant(item)
            return
        if self.inference.is_defined(item):
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
        problems = [
            problem
            for name in dict.fromkeys(item.proto.input)
            if name in self.known.unknown and name not in self.known.types
            for problem in self.known.unknown[name]
        ]
        if problems:
            raise InputError(problems)

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
            return
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
            return self.stored[name][0]
        first = self.known.facts.get(item.proto.input[0]) if item.proto.input else None
        return first.element_type if first is not None else onnx.TensorProto.FLOAT

    def _settled_shape(self, item: PendingNode, name: str, value_type: onnx.TypeProto | None) -> Shape:
        """The inferred shape, completed by what people gave, else by what the file stores (with a notice)."""
        inferred = known_shape(value_type)
        if inferred is None:
            if name in self.input_shapes:
                return _checked(f"input_shapes.{name}", tuple(self.input_shapes[name]))
            return self._stored_shape(item, name)
        given = self._given_sizes(name, len(inferred))
        for axis, size in given.items():
            if inferred[axis] not in (None, size):
                message = f"the size of {name}[{axis}] follows from the network"
                raise InputError([Problem(message, path=item.name, value=str(size), allowed=str(inferred[axis]))])
        sizes = tuple(given.get(axis) if size is None else size for axis, size in enumerate(inferred))
        complete = _complete(sizes)
        return complete if complete is not None else self._stored_sizes(item, name, sizes)

    def _given_sizes(self, name: str, rank: int) -> dict[int, int]:
        if name in self.input_shapes:
            shape, path = self.input_shapes[name], f"input_shapes.{name}"
            if len(shape) != rank:
                allowed = f"{rank} sizes"
                raise InputError([Problem("rank of a tensor", path=path, value=str(list(shape)), allowed=allowed)])
            return dict(enumerate(_checked(path, tuple(shape))))
        keys = {f"{name}[{axis}]": axis for axis in range(rank)} if self.dims else {}
        return {axis: _checked(f"dims.{key}", (self.dims[key],))[0] for key, axis in keys.items() if key in self.dims}

    def _stored_sizes(self, item: PendingNode, name: str, sizes: Sizes) -> Shape:
        """The shape in the file, if it is one of those that `sizes`, some of them open, leave possible."""
        _, shape = self.stored.get(name, (0, ()))
        pairs = zip(shape, sizes, strict=False)
        if len(shape) == len(sizes) and all(known in (None, stored) for stored, known in pairs):
            self._note_stored(item, name)
            return shape
        raise _NotKnownError(
            [
                Problem(
                    f"the size of {name}[{axis}], a result of {item.proto.op_type}, is decided at run time",
                    path=item.name,
                    allowed=f'--dim "{name}[{axis}]=SIZE"',
                )
                for axis, size in enumerate(sizes)
                if size is None
            ],
            is_undecided=self._reads_tensors_only(item),
        )

    def _stored_shape(self, item: PendingNode, name: str) -> Shape:
        """The shape in the file."""
        if name in self.stored:
            self._note_stored(item, name)
            return self.stored[name][1]
        if not self.inference.is_defined(item):
            text = f"what {operator_type(item)} computes is not known, nor its shape"
            self.inference.note(text, item.name)
            raise _NotKnownError([_unknown_problem(item, name)], is_undecided=False)
        message = f"the shape of tensor '{name}', a result of {item.proto.op_type}, is decided at run time"
        allowed = f"input_shapes: {name}: [SIZE, ...]"
        raise _NotKnownError(
            [Problem(message, path=item.name, allowed=allowed)], is_undecided=self._reads_tensors_only(item)
        )

    def _reads_tensors_only(self, item: PendingNode) -> bool:
        """Not so where sequences are read: such operators are not modelled, and their results need no sizes."""
        if all(name in self.known.facts for name in item.proto.input if name):
            return True
        self.inference.note(f"the shape of what {operator_type(item)} takes from a sequence is not known", item.name)
        return False

    def _note_stored(self, item: PendingNode, name: str) -> None:
        text = f"shapes of results of {operator_type(item)} are taken from the file, because they cannot be inferred"
        self.inference.note(text, f"{item.name} ({name})")

    def _count_problems(self, item: PendingNode) -> list[Problem]:
        """Operators that keep all elements have to end with as many as they start with."""
        facts = [self.known.facts.get(name) for name in (*item.proto.input[:1], *item.proto.output[:1])]
        if len(facts) < 2 or facts[0] is None or facts[1] is None:
            return []
        before, after = (_count(tensor.shape) for tensor in facts if tensor is not None)
        if before == after:
            return []
        message = f"{item.proto.op_type} of {list(facts[0].shape)} to {list(facts[1].shape)}: the elements do not fit"
        return [Problem(message, path=item.name, value=str(after), allowed=str(before))]


def operator_type(item: PendingNode) -> str:
    """The operator with its domain, for messages."""
    return OnnxNode(0, "", item.proto).operator_type


def _unknown_problem(item: PendingNode, name: str) -> Problem:
    made_by = f"made by {operator_type(item)} '{item.name}'"
    message = f"the shape of tensor '{name}', {made_by}, is neither stored in the file nor can it be inferred"
    return Problem(message, path=item.name, allowed=f"input_shapes: {name}: [SIZE, ...]")


def _count(shape: Shape) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _checked(path: str, shape: Shape) -> Shape:
    """The sizes that people gave. Raises InputError for what is no size."""
    if all(isinstance(size, int) and not isinstance(size, bool) and size >= 1 for size in shape):
        return shape
    raise InputError([Problem("sizes of a tensor", path=path, value=str(list(shape)), allowed="integers >= 1")])


def _complete(sizes: Sizes | None) -> Shape | None:
    if sizes is None or None in sizes:
        return None
    return tuple(size for size in sizes if size is not None)


def _at(problem: Problem, path: str) -> Problem:
    return Problem(problem.message, path=path, value=problem.value, allowed=problem.allowed)


def unused_places(
    dims: Mapping[str, int], input_shapes: Mapping[str, Shape], known: KnownTensors, inner: "InnerTensors"
) -> list[Problem]:
    """Sizes that people give of inner tensors that there are not, or that have another size."""
    problems = []
    names = sorted(name for name in known.defined if name)
    for key, size in dims.items():
        tensor, _, axis = key.removesuffix("]").rpartition("[")
        if tensor in inner.inputs or not key.endswith("]") or not axis.isdigit():
            continue
        shape = known.facts[tensor].shape if tensor in known.facts else None
        if tensor not in known.defined:
            nearest = nearest_name(tensor, names)
            problems.append(Problem(f"no tensor '{tensor}' in the network", path=f"dims.{key}", nearest=nearest))
        elif shape is not None and (int(axis) >= len(shape) or shape[int(axis)] != size):
            path, allowed = f"dims.{key}", f"shape {list(shape)}"
            problems.append(
                Problem("a size that follows from the network", path=path, value=str(size), allowed=allowed)
            )
    for tensor, shape in input_shapes.items():
        if tensor not in inner:
            continue
        if tensor not in known.defined:
            path, nearest = f"input_shapes.{tensor}", nearest_name(tensor, names)
            problems.append(Problem(f"no tensor '{tensor}' in the network", path=path, nearest=nearest))
        elif tensor in known.facts and known.facts[tensor].shape != tuple(shape):
            path, allowed = f"input_shapes.{tensor}", str(list(known.facts[tensor].shape))
            message = "a shape that follows from the network"
            problems.append(Problem(message, path=path, value=str(list(shape)), allowed=allowed))
    return problems


class InnerTensors:
    """The names of tensors that are no network inputs; those of functions and branches contain a slash."""

    def __init__(self, names: set[str], inputs: set[str]) -> None:
        self.names, self.inputs = names, inputs

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name not in self.inputs and (name in self.names or "/" in name)
