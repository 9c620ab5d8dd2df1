"""Graph of computation nodes (CNs) as columns over CNs, edges and outside data, with the two files of a graph.

`cn_graph.npz` has the columns. `cn_graph.json` has the layers, stacks and shapes.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from tilewright.base.artifacts.codec import encode
from tilewright.base.artifacts.columns import packed, unpacked
from tilewright.base.artifacts.digests import content_digest, digest_of_bytes
from tilewright.base.artifacts.envelope import read_object, write_document
from tilewright.base.artifacts.files import write_atomically
from tilewright.base.artifacts.seals import REMEDY
from tilewright.base.errors import ArtifactError, Problem
from tilewright.base.harmless import terminal
from tilewright.base.json_values import JsonObject
from tilewright.multicore.nodes.grid import Integers, LayerGrid
from tilewright.multicore.nodes.tiling import LayerTiling
from tilewright.workload.layer import Layer

ORDERING = -1
"""Operand number of an edge without data. Such edges make the CNs of a group run one after another."""
SmallIntegers = npt.NDArray[np.int16]


@dataclass(frozen=True)
class CnLayer:
    """Layer of the network, and its CNs. The CNs of a layer have consecutive numbers."""

    node_id: int
    name: str
    operator_type: str
    loop_sizes: tuple[tuple[str, int], ...]
    tiling: LayerTiling
    first_cn: int
    cn_count: int
    stack: int
    """Number of the layer's stack. Layers of one stack are fused; stacks run one after the other."""
    outputs: tuple[str, ...]
    """Tensors that the layer produces."""

    @cached_property
    def grid(self) -> LayerGrid:
        """Grid of the layer, which computes the index ranges of the CNs."""
        return LayerGrid(self.loop_sizes, self.tiling)


class CnLink(NamedTuple):
    """Data that flow between two layers for one operand, summed over their CNs."""

    producer: int
    """Number of the producing layer in the graph."""
    consumer: int
    operand: str
    tensor: str
    """Name of the tensor that flows. The producer makes this tensor."""
    edge_count: int
    bits: int
    is_exact: bool
    """True if the flow is exact. If not, it counts all elements of the bounding box of the needed elements."""


class SourceTensor(NamedTuple):
    """Tensor that no layer makes: a network input or a constant."""

    name: str
    shape: tuple[int, ...]
    bits: int
    """Bits of one element."""
    is_constant: bool
    """True if the tensor is a constant (weights); else it is an input of the network."""


P = ParamSpec("P")
R = TypeVar("R")


def once_a_graph(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator that caches the last result of a function of a CN graph and further inputs.

    The result is kept as long as the graph exists. Keyword arguments are not compared, and therefore must not change
    the result.
    """
    known: WeakKeyDictionary[CnGraph, tuple[tuple[Any, ...], R]] = WeakKeyDictionary()

    @wraps(function)
    def remembering(*given: P.args, **named: P.kwargs) -> R:
        graph = next(one for one in given if isinstance(one, CnGraph))
        others = tuple(one for one in given if one is not graph)
        before = known.get(graph)
        if before is None or any(one is not other for one, other in zip(before[0], others, strict=True)):
            before = known[graph] = (others, function(*given, **named))
        return before[1]

    return remembering


@dataclass(frozen=True, eq=False)
class _Described:
    """Content of the JSON file: all fields of a graph except the columns."""

    network: str
    layers: tuple[CnLayer, ...]
    stacks: tuple[tuple[int, ...], ...]
    """[stack] Numbers of the stack's layers."""
    operands: tuple[str, ...]
    """Names of operands. The columns `edge_operand` and `read_operand` have positions in this list. The name '' stands
    for an input that is not an operand of the layer.
    """
    shapes: tuple[Layer, ...]
    """Layer of each shape, without a name. A shape is a class of CNs with equal costs."""
    links: tuple[CnLink, ...]
    sources: tuple[SourceTensor, ...]
    notices: tuple[str, ...]
    """Messages on legal input that was not applied as it was written."""


@dataclass(frozen=True, eq=False, repr=False)
class CnGraph(_Described):
    """Graph of all CNs of a network. CNs are numbered layer by layer; CN n of layer l is `layers[l].first_cn + n`."""

    group: Integers
    """[cn] Number of the group of the CN. A group is a part of a layer that runs on one core"""
    shape: Integers
    """[cn] Position of the CN's shape in `shapes`"""
    output_bits: Integers
    """[cn] Bits of final output that the CN produces. A reduction has such bits only in its last step"""
    network_output_bits: Integers
    """[cn] Bits of the CN's final output that leave the network"""
    edge_source: Integers
    """[edge] CN that produces the data"""
    edge_target: Integers
    """[edge] CN that reads the data; the column is in ascending order"""
    edge_operand: SmallIntegers
    """[edge] Position in `operands` of the operand for which the target reads the data, or ORDERING"""
    edge_bits: Integers
    """[edge] Bits that flow from the source to the target; 0 for ORDERING"""
    read_cn: Integers
    """[read] CN that reads; the column is in ascending order"""
    read_operand: SmallIntegers
    """[read] Position in `operands` of the operand for which the CN reads"""
    read_content: Integers
    """[read] Content that the CN reads. A content is a box of a source tensor"""
    content_source: Integers
    """[content] Position of the source tensor in `sources`"""
    content_bits: Integers
    """[content] Size of the content in bits"""
    content_start: Integers
    """[content + 1] Position in `content_bounds` at which the bounds of the content begin. A content has one row for
    each axis of the tensor
    """
    content_bounds: Integers
    """[row of a content, 2] First index and index after the last index along one axis, without padding. The bounds
    along all axes identify a content
    """

    def __repr__(self) -> str:
        stacks = f"{len(self.stacks)} stack{'s' * (len(self.stacks) != 1)}"
        counts = f"{self.cn_count:,} nodes of {len(self.layers)} layers in {stacks}"
        return terminal(f"<{self.network}: {counts}, {len(self.edge_source):,} edges>")

    @property
    def cn_count(self) -> int:
        """Number of CNs."""
        return len(self.group)

    @cached_property
    def cn_layer(self) -> Integers:
        """[cn] Number of the layer of the CN"""
        return np.repeat(np.arange(len(self.layers)), [layer.cn_count for layer in self.layers])

    @cached_property
    def data_edge_count(self) -> int:
        """Number of edges along which data flow."""
        return int((self.edge_operand != ORDERING).sum())


COLUMNS = (
    *("group", "shape", "output_bits", "network_output_bits"),
    *("edge_source", "edge_target", "edge_operand", "edge_bits"),
    *("read_cn", "read_operand", "read_content"),
    *("content_source", "content_bits", "content_start", "content_bounds"),
)
"""Fields of CnGraph that are arrays."""


SCHEMA = "tilewright/cn-graph"
_TYPES = {"edge_operand": np.int16, "read_operand": np.int16}


@dataclass(frozen=True, eq=False)
class _Description(_Described):
    """Fields of the JSON file."""

    columns: str
    """Digest of `cn_graph.npz`, the file with the columns."""


_FIELDS = tuple(one.name for one in fields(_Described))


def write_cn_graph(graph: CnGraph, json_path: Path | str, npz_path: Path | str, provenance: JsonObject) -> str:
    """Write both files of a graph, each atomically; equal graphs give the same bytes. Returns the digest of the
    payload.
    """
    payload, content = _files_of(graph)
    write_atomically(npz_path, content)
    return write_document(json_path, SCHEMA, payload, provenance)


def cn_graph_digest(graph: CnGraph) -> str:
    """Digest of the artifact of a graph. The graph need not have been written."""
    return content_digest(_files_of(graph)[0])


def _files_of(graph: CnGraph) -> tuple[Any, bytes]:
    """Pair (payload of the JSON file, columns)."""
    content = packed({name: getattr(graph, name).astype(_TYPES.get(name, np.int64)) for name in COLUMNS})
    fields = {name: getattr(graph, name) for name in _FIELDS}
    return encode(_Description(**fields, columns=digest_of_bytes(content))), content


def read_cn_graph(json_path: Path | str, npz_path: Path | str) -> CnGraph:
    """Graph that is read from its two files. Raises ArtifactError if a file is missing or damaged, or if the files
    belong to different graphs.
    """
    description = read_object(_Description, Path(json_path), SCHEMA)
    try:
        content = Path(npz_path).read_bytes()
    except OSError as error:
        raise ArtifactError([Problem(f"cannot be read: {error.strerror}", str(npz_path))]) from error
    if digest_of_bytes(content) != description.columns:
        message = f"artifact is damaged, or belongs to another graph than {json_path}; {REMEDY}"
        raise ArtifactError([Problem(message, str(npz_path))])
    arrays = unpacked(content, npz_path)
    columns: dict[str, Any] = {name: arrays[name] for name in COLUMNS}
    return CnGraph(**{name: getattr(description, name) for name in _FIELDS}, **columns)
