"""Inputs of a network: sizes of dynamic dimensions, sizes that users give, and shapes that the file stores."""

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import onnx

from tilewright.base.errors import OptionPath, Problem, nearest_name
from tilewright.workload.onnx.node import Shape

SIZES_ALLOWED = "integers >= 0"
ASSUMED_SIZE = 1024
"""Size that replaces a missing size, so that further missing sizes can be found."""
WILDCARD = "*"
"""Character that matches any text in a pattern."""
_MOST_TOLD_ONE_BY_ONE = 10
_MOST_NAMES_ALLOWED = 20


def is_size(size: object) -> bool:
    """True if `size` can be the size of a dimension. 0 is valid, for example for a cache before the first token."""
    return isinstance(size, int) and not isinstance(size, bool) and size >= 0


class GivenSizes:
    """Sizes that the user gives in `dims`, by name (`sequence`, `ids[1]`) or by pattern.

    In a pattern such as `*.height` or `boxes_*[0]`, `*` matches any text. A name takes precedence over a pattern. A
    pattern with more literal characters takes precedence over a pattern with fewer literal characters.

    To report unused keys, the object records the keys that were used, and the names of the sizes that were looked up.
    """

    def __init__(self, dims: Mapping[str, int]) -> None:
        self.dims = dims
        self.used: set[str] = set()
        self.sought: dict[str, None] = {}

    @cached_property
    def _patterns(self) -> list[tuple[str, re.Pattern[str]]]:
        """Pairs (key of `dims` that contains `*`, its compiled expression). Keys with more literal characters come
        first; keys with equally many literal characters are in alphabetical order."""
        keys = sorted((key for key in self.dims if WILDCARD in key), key=lambda key: (-_letters(key), key))
        return [(key, re.compile(".*".join(map(re.escape, key.split(WILDCARD))), re.DOTALL)) for key in keys]

    def size_of(self, *names: str) -> int | None:
        """Size that the user gave for a dimension with these names; None if no key of `dims` fits.

        The first of `names` that is a key gives the size. If no name is a key, the first pattern that matches a name
        gives the size. The result is ASSUMED_SIZE if the value of this key is not a size (an integer >= 0).
        """
        self.sought.update(dict.fromkeys(names))
        key = next((name for name in names if name in self.dims), None)
        if key is None:
            key = next((key for key, form in self._patterns if any(form.fullmatch(name) for name in names)), None)
        if key is None:
            return None
        self.used.add(key)
        return self.dims[key] if is_size(self.dims[key]) else ASSUMED_SIZE

    def value_problems(self) -> list[Problem]:
        """Problems of values in `dims` that are not sizes."""
        return [
            Problem(
                "wrong size of a dimension", path=OptionPath(f"dims.{key}"), value=repr(size), allowed=SIZES_ALLOWED
            )
            for key, size in self.dims.items()
            if not is_size(size)
        ]

    def unknown_problems(self, names: Container[str], inputs: Iterable[str]) -> list[Problem]:
        """Problems of symbols in `dims` that are not in `names`. As allowed names, the messages list `inputs` and all
        names for which a size was looked up (`sought`)."""
        return [
            self._problem(key, "no such dynamic dimension in the network inputs", inputs)
            for key in self.dims
            if WILDCARD not in key and not tensor_of(key) and key not in names
        ]

    def unused_problems(self, names: Container[str]) -> list[Problem]:
        """Problems of unused keys in `dims`: keys that no dimension needs for its size. An unused pattern is always
        reported. Any other unused key is reported only if it is in `names`, the names of dimensions in the file."""
        problems = []
        for key in self.dims:
            if key in self.used:
                continue
            if WILDCARD in key:
                problems.append(
                    self._problem(key, "no dimension of unknown size has a name that matches this pattern", ())
                )
            elif key in names:
                message = "is not needed: other keys or inputs give the sizes of the dimensions with this name"
                problems.append(self._problem(key, message, ()))
        return problems

    def _problem(self, key: str, message: str, names: Iterable[str]) -> Problem:
        known = sorted({*self.sought, *names})
        allowed = ", ".join(known[:_MOST_NAMES_ALLOWED]) or "none: all dimensions are fixed"
        nearest = "" if key in known else nearest_name(key, known)
        return Problem(message, path=OptionPath(f"dims.{key}"), allowed=allowed, nearest=nearest)


def _letters(pattern: str) -> int:
    return len(pattern) - pattern.count(WILDCARD)


def tensor_of(key: str) -> str:
    """Tensor name in a key `tensor[axis]`; '' if the key is a symbol."""
    name, bracket, axis = key.rpartition("[")
    return name if bracket and axis.endswith("]") and axis.removesuffix("]").isdecimal() else ""


def missing_size_problems(missing: Mapping[str, Problem]) -> list[Problem]:
    """Problems of sizes that are not known. `missing` has the problem of each size, by name of the size. More than ten
    problems are merged into one problem that lists all names."""
    if len(missing) <= _MOST_TOLD_ONE_BY_ONE:
        return list(missing.values())
    message = (
        f"the sizes of {len(missing)} dimensions are decided at run time: {', '.join(missing)}; give the size of each"
        " NAME, or a pattern such as *[0], in which * stands for any text"
    )
    return [Problem(message, allowed="dims: NAME: SIZE")]


ANONYMOUS_SYMBOLS = frozenset({"", "?", "None", "-1"})
"""Texts that converters write for an unknown size. These texts are not symbols: two dimensions with the same text can
have different sizes."""
_NOT_A_BATCH = ("seq", "len", "height", "width", "time", "token", "frame")


@dataclass(frozen=True)
class ResolvedInputs:
    """Sizes of the network inputs (without initialisers), and of every symbol that occurs in them."""

    shapes: dict[str, Shape]
    symbols: dict[str, int]
    notices: tuple[str, ...]
    problems: tuple[Problem, ...]
    missing: dict[str, Problem]
    """Problem of each dimension whose size is missing, by symbol of the dimension (`tensor[axis]` if it has no symbol).
    `shapes` has ASSUMED_SIZE for such a dimension.
    """
    names: frozenset[str]
    """Symbols and keys `tensor[axis]` that name the dynamic dimensions."""


def network_inputs(graph: onnx.GraphProto) -> list[onnx.ValueInfoProto]:
    """Inputs that are given at run time. Old files also list initialisers among the inputs. These initialisers are left
    out."""
    constants = {tensor.name for tensor in graph.initializer}
    constants.update(tensor.values.name for tensor in graph.sparse_initializer)
    return [value for value in graph.input if value.name not in constants]


def resolve_inputs(
    graph: onnx.GraphProto,
    given: GivenSizes,
    input_shapes: Mapping[str, Shape] | None = None,
    inner_tensors: Container[str] = (),
) -> ResolvedInputs:
    """Sizes of every dimension of every network input.

    `given` has sizes by symbol (`sequence`), by axis (`input_ids[1]`) or by pattern. `input_shapes` has whole shapes by
    input. A dynamic first dimension without a given size is assumed to be a batch of size 1, and a notice says so. This
    assumption is not made for a symbol that also names a later axis, or that contains a word such as `seq`. All other
    dynamic dimensions without a given size are in `ResolvedInputs.missing`.

    The shape inference later uses the shapes of `inner_tensors`, and the keys of `given` that no input uses. An input
    without a stored shape is in the result only if `input_shapes` has it.
    """
    shapes_given = {name: shape for name, shape in (input_shapes or {}).items() if name not in inner_tensors}
    tensors = [value for value in network_inputs(graph) if value.type.HasField("tensor_type")]
    resolver = _Resolver(given, [value for value in tensors if _has_shape(value)])
    resolver.problems += given.value_problems()
    shapes = resolver.given_shapes(tensors, shapes_given)
    shapes.update({value.name: resolver.shape(value) for value in resolver.values if value.name not in shapes})
    resolver.check_places()
    return ResolvedInputs(
        shapes,
        resolver.symbols,
        tuple(resolver.notices),
        tuple(resolver.problems),
        resolver.missing,
        frozenset(resolver.names),
    )


def _has_shape(value: onnx.ValueInfoProto) -> bool:
    return bool(value.type.HasField("tensor_type") and value.type.tensor_type.HasField("shape"))


def _places(value: onnx.ValueInfoProto) -> Iterator[tuple[int, str, onnx.TensorShapeProto.Dimension]]:
    for axis, dimension in enumerate(value.type.tensor_type.shape.dim):
        yield axis, f"{value.name}[{axis}]", dimension


def _is_dynamic(dimension: onnx.TensorShapeProto.Dimension) -> bool:
    # Some converters write -1 instead of leaving the size out, as the standard requires.
    return not dimension.HasField("dim_value") or dimension.dim_value == -1


def _symbol(place: str, dimension: onnx.TensorShapeProto.Dimension) -> str:
    return place if dimension.dim_param in ANONYMOUS_SYMBOLS else dimension.dim_param


class _Resolver:
    def __init__(self, given: GivenSizes, values: list[onnx.ValueInfoProto]) -> None:
        self.given = given
        self.values = values
        self.input_names = {value.name for value in values}
        self.missing: dict[str, Problem] = {}
        self.symbols: dict[str, int] = {}
        self.notices: list[str] = []
        self.problems: list[Problem] = []
        self.names: set[str] = set()
        self.inner_symbols = {
            _symbol(place, dimension) for value in values for axis, place, dimension in _places(value) if axis > 0
        }

    def given_shapes(self, tensors: list[onnx.ValueInfoProto], given: Mapping[str, Shape]) -> dict[str, Shape]:
        """Valid shapes in `given`, by network input.

        A shape is reported and left out if its input does not exist, if one of its values is not a size, or if its rank
        is wrong. A shape that contradicts the file or another size from the user is reported, but not left out. Symbols
        in the stored shape of an input take their sizes from its given shape.
        """
        by_name = {value.name: value for value in tensors}
        shapes = {}
        for name, shape in given.items():
            if name not in by_name:
                names = sorted(by_name)
                self._problem("no such network input", name, "", ", ".join(names) or "none", nearest_name(name, names))
            elif not all(is_size(size) for size in shape):
                self._problem("wrong shape of a network input", name, str(list(shape)), SIZES_ALLOWED)
            elif not _has_shape(by_name[name]):
                shapes[name] = tuple(shape)
            elif len(by_name[name].type.tensor_type.shape.dim) != len(shape):
                rank = len(by_name[name].type.tensor_type.shape.dim)
                self._problem("wrong rank of a network input", name, str(list(shape)), f"{rank} sizes")
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
        dims = self.given.dims
        stated = [dims[key] for key in (place, symbol) if key in dims] + [self.symbols.get(symbol, size)]
        self.given.used.update(key for key in (place, symbol) if key in dims)
        for other in dict.fromkeys(stated):
            if other != size:
                self._problem(f"{place}, dimension '{symbol}', has another size elsewhere", name, str(size), str(other))
        self.symbols[symbol] = size

    def _problem(self, message: str, name: str, value: str, allowed: str, nearest: str = "") -> None:
        path = OptionPath(f"input_shapes.{name}")
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
        if place in self.given.dims:
            size = self.given.size_of(place)
            assert size is not None
            self.symbols.setdefault(symbol, self.given.dims.get(symbol, size))
            return size
        if symbol not in self.symbols or symbol in self.given.dims:
            self.symbols[symbol] = self._new_size(axis, place, symbol)
        return self.symbols[symbol]

    def _new_size(self, axis: int, place: str, symbol: str) -> int:
        size = self.given.size_of(symbol, place)
        if size is not None:
            return size
        if axis == 0 and symbol not in self.inner_symbols and not any(w in symbol.lower() for w in _NOT_A_BATCH):
            self.notices.append(f"dynamic batch dimension '{symbol}' of {place} is assumed to be 1")
            return 1
        message = f"the size of dynamic dimension '{symbol}' is not known"
        self.missing[symbol] = Problem(message, path=place, allowed=f"dims: {symbol}: SIZE")
        return ASSUMED_SIZE

    def check_places(self) -> None:
        """Report a problem for each key `tensor[axis]` in `dims` whose tensor is a network input, but whose axis is no
        dynamic dimension of this input."""
        for key in self.given.dims:
            if key not in self.names and tensor_of(key) in self.input_names:
                self.problems.append(
                    Problem(
                        "no such dynamic dimension in the network inputs",
                        path=OptionPath(f"dims.{key}"),
                        allowed=", ".join(sorted(self.names)) or "none: all dimensions are fixed",
                        nearest=nearest_name(key, sorted(self.names)),
                    )
                )


@dataclass(frozen=True)
class StoredShape:
    """Shape of one tensor as stored in the file."""

    element_type: int
    sizes: tuple[int | None, ...]
    """Sizes by axis. A size is None if neither the file nor a symbol gives it."""
    symbols: tuple[str, ...]
    """Symbols by axis; '' if the axis has no symbol."""


def read_stored_shapes(graph: onnx.GraphProto, symbols: Mapping[str, int]) -> dict[str, StoredShape]:
    """Shapes that the file stores for inner tensors and network outputs, by tensor. Sizes from `symbols` replace
    symbols. A shape without an element type is left out."""
    stored = {}
    for value in (*graph.value_info, *graph.output):
        tensor = value.type.tensor_type
        if not value.type.HasField("tensor_type") or not tensor.HasField("shape") or not tensor.elem_type:
            continue
        sizes = [
            size.dim_value if size.HasField("dim_value") else symbols.get(size.dim_param) for size in tensor.shape.dim
        ]
        named = [
            "" if size.HasField("dim_value") or size.dim_param in ANONYMOUS_SYMBOLS else size.dim_param
            for size in tensor.shape.dim
        ]
        known = tuple(None if size is None or size < 0 else size for size in sizes)
        stored[value.name] = StoredShape(tensor.elem_type, known, tuple(named))
    return stored


def stored_shapes(graph: onnx.GraphProto, symbols: dict[str, int]) -> dict[str, Shape]:
    """Shapes of all tensors with a complete stored shape; sizes from `symbols` replace symbols.

    If the file has several complete shapes for a tensor, the first of them in this order is used, as in zigzag-dse
    3.9.1: inputs, outputs, value_info, initialisers, Constant operators.
    """
    shapes: dict[str, Shape] = {}
    for node in graph.node:
        if node.op_type == "Constant":
            shapes.update(
                (node.output[0], tuple(a.t.dims)) for a in node.attribute if a.name == "value" and node.output
            )
    for sparse in graph.sparse_initializer:
        shapes[sparse.values.name] = tuple(sparse.dims)
    for tensor in graph.initializer:
        shapes[tensor.name] = tuple(tensor.dims)
    for values in (graph.value_info, graph.output, graph.input):
        for value in values:
            shape = _static_shape(value, symbols)
            if shape is not None:
                shapes[value.name] = shape
    return shapes


def _static_shape(value: onnx.ValueInfoProto, symbols: dict[str, int]) -> Shape | None:
    if not value.type.HasField("tensor_type") or not value.type.tensor_type.HasField("shape"):
        return None
    sizes = []
    for dimension in value.type.tensor_type.shape.dim:
        if dimension.HasField("dim_value") and dimension.dim_value != -1:
            sizes.append(dimension.dim_value)
        elif dimension.dim_param in symbols:
            sizes.append(symbols[dimension.dim_param])
        else:
            return None
    return tuple(sizes)
