"""Dynamic dimensions of the network inputs: which number each symbol stands for."""

from collections.abc import Collection, Container, Iterator, Mapping
from dataclasses import dataclass

import onnx

from tilewright.errors import Problem, nearest_name
from tilewright.workload.onnx.node import Shape

_ANONYMOUS = frozenset({"", "?", "None", "-1"})
"""What converters write for a size of which they know nothing: not a symbol that two dimensions share."""
_NOT_A_BATCH = ("seq", "len", "height", "width", "time", "token", "frame")


@dataclass(frozen=True)
class ResolvedInputs:
    """Sizes of the network inputs (initialisers left out), and of every symbol that occurs in them."""

    shapes: dict[str, Shape]
    symbols: dict[str, int]
    notices: tuple[str, ...]
    problems: tuple[Problem, ...]


def network_inputs(graph: onnx.GraphProto) -> list[onnx.ValueInfoProto]:
    """The inputs that are given at run time: old files list the initialisers among the inputs too."""
    constants = {tensor.name for tensor in graph.initializer}
    constants.update(tensor.values.name for tensor in graph.sparse_initializer)
    return [value for value in graph.input if value.name not in constants]


def resolve_inputs(
    graph: onnx.GraphProto,
    dims: Mapping[str, int],
    input_shapes: Mapping[str, Shape] | None = None,
    inner_tensors: Container[str] = (),
) -> ResolvedInputs:
    """A size for every dimension of every network input.

    `dims` gives sizes by symbol (`sequence`) or by place (`input_ids[1]`), `input_shapes` whole shapes by input. A
    dynamic first dimension that nobody gives is taken to be the batch, of size 1, and a notice says so; any other one
    is a problem that names it. Shapes of
    `inner_tensors`, and places that are not in inputs if there are such, are left to whoever infers them.
    Inputs without a stored shape are in the result only if `input_shapes` has them.
    """
    given = {name: shape for name, shape in (input_shapes or {}).items() if name not in inner_tensors}
    tensors = [value for value in network_inputs(graph) if value.type.HasField("tensor_type")]
    resolver = _Resolver(dims, [value for value in tensors if _has_shape(value)])
    shapes = resolver.given_shapes(tensors, given)
    shapes.update({value.name: resolver.shape(value) for value in resolver.values if value.name not in shapes})
    inner_places = {key for key in dims if inner_tensors and _tensor_of(key) not in ("", *resolver.input_names)}
    resolver.check_unused(set(dims) - inner_places)
    return ResolvedInputs(shapes, resolver.symbols, tuple(resolver.notices), tuple(resolver.problems))


def _tensor_of(key: str) -> str:
    """The tensor of a place `tensor[axis]`, '' for a symbol."""
    name, bracket, axis = key.rpartition("[")
    return name if bracket and axis.removesuffix("]").isdigit() and axis.endswith("]") else ""


def _has_shape(value: onnx.ValueInfoProto) -> bool:
    return bool(value.type.HasField("tensor_type") and value.type.tensor_type.HasField("shape"))


def _places(value: onnx.ValueInfoProto) -> Iterator[tuple[int, str, onnx.TensorShapeProto.Dimension]]:
    for axis, dimension in enumerate(value.type.tensor_type.shape.dim):
        yield axis, f"{value.name}[{axis}]", dimension


def _is_dynamic(dimension: onnx.TensorShapeProto.Dimension) -> bool:
    # Some converters write -1 where the standard leaves the size out.
    return not dimension.HasField("dim_value") or dimension.dim_value == -1


def _symbol(place: str, dimension: onnx.TensorShapeProto.Dimension) -> str:
    return place if dimension.dim_param in _ANONYMOUS else dimension.dim_param


class _Resolver:
    def __init__(self, dims: Mapping[str, int], values: list[onnx.ValueInfoProto]) -> None:
        self.dims = dims
        self.values = values
        self.input_names = {value.name for value in values}
        self.symbols: dict[str, int] = {}
        self.notices: list[str] = []
        self.problems: list[Problem] = []
        self.names: set[str] = set()
        self.inner_symbols = {
            _symbol(place, dimension) for value in values for axis, place, dimension in _places(value) if axis > 0
        }

    def given_shapes(self, tensors: list[onnx.ValueInfoProto], given: Mapping[str, Shape]) -> dict[str, Shape]:
        """The `given` shapes, checked against the file; they say what the symbols in their inputs stand for."""
        by_name = {value.name: value for value in tensors}
        shapes = {}
        for name, shape in given.items():
            if name not in by_name:
                names = sorted(by_name)
                self._problem("no such network input", name, "", ", ".join(names) or "none", nearest_name(name, names))
            elif not all(isinstance(size, int) and not isinstance(size, bool) and size >= 1 for size in shape):
                self._problem("shape of a network input", name, str(list(shape)), "integers >= 1")
            elif not _has_shape(by_name[name]):
                shapes[name] = tuple(shape)
            elif len(by_name[name].type.tensor_type.shape.dim) != len(shape):
                rank = len(by_name[name].type.tensor_type.shape.dim)
                self._problem("rank of a network input", name, str(list(shape)), f"{rank} sizes")
            else:
                shapes[name] = tuple(shape)
                for (_, place, dimension), size in zip(_places(by_name[name]), shape, strict=True):
                    self._take_size(name, place, dimension, size)
        return shapes

    def _take_size(self, name: str, place: str, dimension: onnx.TensorShapeProto.Dimension, size: int) -> None:
        if not _is_dynamic(dimension):
            if dimension.dim_value != size:
                self._problem(f"{place} is fixed in the file", name, str(size), str(dimension.dim_value))
            return
        symbol = _symbol(place, dimension)
        self.names.update((symbol, place))
        stated = [self.dims[key] for key in (place, symbol) if key in self.dims] + [self.symbols.get(symbol, size)]
        for other in dict.fromkeys(stated):
            if other != size:
                self._problem(f"{place}, dimension '{symbol}', has another size elsewhere", name, str(size), str(other))
        self.symbols[symbol] = size

    def _problem(self, message: str, name: str, value: str, allowed: str, nearest: str = "") -> None:
        path = f"input_shapes.{name}"
        self.problems.append(Problem(message, path=path, value=value, allowed=allowed, nearest=nearest))

    def shape(self, value: onnx.ValueInfoProto) -> Shape:
        return tuple(self._size(axis, place, dimension) for axis, place, dimension in _places(value))

    def _size(self, axis: int, place: str, dimension: onnx.TensorShapeProto.Dimension) -> int:
        if not _is_dynamic(dimension):
            if dimension.dim_value < 0:
                self.problems.append(Problem("negative dimension", path=place, value=str(dimension.dim_value)))
            return dimension.dim_value
        symbol = _symbol(place, dimension)
        self.names.update((symbol, place))
        if symbol not in self.symbols or place in self.dims:
            self.symbols[symbol] = self._new_size(axis, place, symbol)
        return self.symbols[symbol]

    def _new_size(self, axis: int, place: str, symbol: str) -> int:
        for key in (place, symbol):
            if key in self.dims:
                return self._given_size(key)
        if axis == 0 and symbol not in self.inner_symbols and not any(w in symbol.lower() for w in _NOT_A_BATCH):
            self.notices.append(f"dynamic batch dimension '{symbol}' of {place} taken as 1")
            return 1
        self.problems.append(
            Problem(
                f"the size of dynamic dimension '{symbol}' is not known", path=place, allowed=f"dims: {symbol}: SIZE"
            )
        )
        return 1

    def _given_size(self, key: str) -> int:
        size = self.dims[key]
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            self.problems.append(
                Problem("size of a dimension", path=f"dims.{key}", value=repr(size), allowed="integer >= 1")
            )
            return 1
        return size

    def check_unused(self, keys: Collection[str]) -> None:
        for key in sorted(keys):
            if key not in self.names:
                self.problems.append(
                    Problem(
                        "no such dynamic dimension in the network inputs",
                        path=f"dims.{key}",
                        allowed=", ".join(sorted(self.names)) or "none: all dimensions are fixed",
                        nearest=nearest_name(key, sorted(self.names)),
                    )
                )
