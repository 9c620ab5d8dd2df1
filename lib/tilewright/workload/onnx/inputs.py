"""Dynamic dimensions of the network inputs: which number each symbol stands for."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import onnx

from tilewright.errors import Problem, nearest_name
from tilewright.workload.onnx.node import Shape

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


def resolve_inputs(graph: onnx.GraphProto, dims: Mapping[str, int]) -> ResolvedInputs:
    """A size for every dimension of every network input.

    `dims` gives sizes by symbol (`sequence`) or by place (`input_ids[1]`). A dynamic first dimension that nobody
    gives is taken to be the batch, of size 1, and a notice says so; any other one is a problem that names it.
    """
    resolver = _Resolver(dims, [value for value in network_inputs(graph) if _has_shape(value)])
    shapes = {value.name: resolver.shape(value) for value in resolver.values}
    resolver.check_unused(dims)
    return ResolvedInputs(shapes, resolver.symbols, tuple(resolver.notices), tuple(resolver.problems))


def _has_shape(value: onnx.ValueInfoProto) -> bool:
    return bool(value.type.HasField("tensor_type") and value.type.tensor_type.HasField("shape"))


def _places(value: onnx.ValueInfoProto) -> Iterator[tuple[int, str, onnx.TensorShapeProto.Dimension]]:
    for axis, dimension in enumerate(value.type.tensor_type.shape.dim):
        yield axis, f"{value.name}[{axis}]", dimension


def _is_dynamic(dimension: onnx.TensorShapeProto.Dimension) -> bool:
    # Some converters write -1 where the standard leaves the size out.
    return not dimension.HasField("dim_value") or dimension.dim_value == -1


class _Resolver:
    def __init__(self, dims: Mapping[str, int], values: list[onnx.ValueInfoProto]) -> None:
        self.dims = dims
        self.values = values
        self.symbols: dict[str, int] = {}
        self.notices: list[str] = []
        self.problems: list[Problem] = []
        self.names: set[str] = set()
        self.inner_symbols = {
            dimension.dim_param for value in values for axis, _, dimension in _places(value) if axis > 0
        }

    def shape(self, value: onnx.ValueInfoProto) -> Shape:
        return tuple(self._size(axis, place, dimension) for axis, place, dimension in _places(value))

    def _size(self, axis: int, place: str, dimension: onnx.TensorShapeProto.Dimension) -> int:
        if not _is_dynamic(dimension):
            if dimension.dim_value < 0:
                self.problems.append(Problem("negative dimension", path=place, value=str(dimension.dim_value)))
            return dimension.dim_value
        symbol = dimension.dim_param or place
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

    def check_unused(self, dims: Mapping[str, int]) -> None:
        for key in dims:
            if key not in self.names:
                self.problems.append(
                    Problem(
                        "no such dynamic dimension in the network inputs",
                        path=f"dims.{key}",
                        allowed=", ".join(sorted(self.names)) or "none: all dimensions are fixed",
                        nearest=nearest_name(key, sorted(self.names)),
                    )
                )
