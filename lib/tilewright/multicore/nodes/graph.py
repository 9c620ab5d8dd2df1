"""Graph of computation nodes (CNs), and the two files that store it.

The graph is stored as columns: arrays with one value for each CN, edge, read or content of outside data.

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
"""Operand number of an edge without data. The edge only makes the CNs of a group run one after another."""
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
    """Number of the layer's stack, in the order of the stacks. The layers of a stack are fused."""
    outputs: tuple[str, ...]
    """Tensors that the layer produces."""

    @cached_property
    def grid(self) -> LayerGrid:
        """Grid of the layer's CNs. The grid computes the index ranges of the CNs."""
        return LayerGrid(self.loop_sizes, self.tiling)


class CnLink(NamedTuple):
    """Link between two layers for one operand. The numbers of edges and bits are totals over all CNs."""

    producer: int
    """Number of the producing layer in the graph."""
    consumer: int
    operand: str
    tensor: str
    """Name of the tensor that flows. The producer makes this tensor."""
    edge_count: int
    bits: int
    is_exact: bool
    """True if the flow is exact. Otherwise, the flow also counts elements of bounding boxes that are not needed."""


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
    """Decorator for a function that has a CN graph among its positional arguments: it caches the last result for each
    graph. A call returns the cached result if every other positional argument is the same object as in the last call
    for this graph.

    Keyword arguments are not compared, so they must not change the result.
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
    """Fields of a CN graph that are not columns. They are stored in the JSON file of the graph."""

    network: str
    layers: tuple[CnLayer, ...]
    stacks: tuple[tuple[int, ...], ...]
    """Layer numbers of each stack."""
    operands: tuple[str, ...]
    """Names of operands. The values in the columns `edge_operand` and `read_operand` are positions in this tuple;
    `edge_operand` can also have the value ORDERING. The name '' stands for an input that is not an operand of the
    layer.
    """
    shapes: tuple[Layer, ...]
    """Layers without a name, one for each shape. A shape is a class of CNs with equal sizes."""
    links: tuple[CnLink, ...]
    sources: tuple[SourceTensor, ...]
    notices: tuple[str, ...]
    """Messages about input that is valid, but was not applied exactly as it was written."""


@dataclass(frozen=True, eq=False, repr=False)
class CnGraph(_Described):
    """Graph of all CNs of a network. CNs are numbered layer by layer; CN n of layer l is `layers[l].first_cn + n`."""

    group: Integers
    """Group of the CN, as its number within the layer (one entry for each CN). A group is a part of a layer that runs
    on one core
    """
    shape: Integers
    """Position of the CN's shape in `shapes` (one entry for each CN)"""
    output_bits: Integers
    """Bits of final output that the CN produces (one entry for each CN). If the steps of a reduction are in several
    CNs, only the CN of the last step has final output
    """
    network_output_bits: Integers
    """Bits of the CN's final output that leave the network (one entry for each CN)"""
    edge_source: Integers
    """Source of the edge (one entry for each edge): the CN that produces the data, or the earlier CN of an edge that
    only orders CNs
    """
    edge_target: Integers
    """Target of the edge (one entry for each edge): the CN that reads the data, or the later CN of an edge that only
    orders CNs. Edges are sorted by target
    """
    edge_operand: SmallIntegers
    """Operand for which the target reads the data, as a position in `operands`, or ORDERING (one entry for each edge)
    """
    edge_bits: Integers
    """Bits that flow from the source to the target (one entry for each edge); 0 for an edge that only orders CNs"""
    read_cn: Integers
    """CN that reads (one entry for each read, sorted by this column)"""
    read_operand: SmallIntegers
    """Operand for which the CN reads, as a position in `operands` (one entry for each read)"""
    read_content: Integers
    """Content that the CN reads (one entry for each read). A content is a box of a source tensor"""
    content_source: Integers
    """Position of the source tensor in `sources` (one entry for each content)"""
    content_bits: Integers
    """Size of the content in bits (one entry for each content)"""
    content_start: Integers
    """Position in `content_bounds` at which the bounds of a content begin (one entry for each content, and one more at
    the end). The bounds of a content have one row for each axis of the tensor
    """
    content_bounds: Integers
    """Bounds of the contents, as an array of shape (rows, 2). A content is a box of a source tensor. For each axis of
    the tensor, a content has one row: the first index, and the index after the last index, limited to the tensor. The
    rows of a content are consecutive (`content_start`). A content is identified by its source tensor and its bounds
    along all axes
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
        """Number of the layer of the CN (one entry for each CN)"""
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
    """Content of the JSON file of a graph: the fields that are not columns, and the digest of the file of the
    columns.
    """

    columns: str
    """Digest of `cn_graph.npz`, the file of the columns."""


_FIELDS = tuple(one.name for one in fields(_Described))


def write_cn_graph(graph: CnGraph, json_path: Path | str, npz_path: Path | str, provenance: JsonObject) -> str:
    """Write both files of a graph, each atomically. Returns the digest of the JSON payload. Equal graphs give the same
    bytes.
    """
    payload, content = _files_of(graph)
    write_atomically(npz_path, content)
    return write_document(json_path, SCHEMA, payload, provenance)


def cn_graph_digest(graph: CnGraph) -> str:
    """Digest of the artifact of a graph. The digest is computed from the graph, even if the graph is not stored in
    files.
    """
    return content_digest(_files_of(graph)[0])


def _files_of(graph: CnGraph) -> tuple[Any, bytes]:
    """Pair (payload of the JSON file, bytes of the NPZ file). The NPZ file has the columns."""
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
        message = f"the file is damaged, or belongs to another graph than {json_path}; {REMEDY}"
        raise ArtifactError([Problem(message, str(npz_path))])
    arrays = unpacked(content, npz_path)
    columns: dict[str, Any] = {name: arrays[name] for name in COLUMNS}
    return CnGraph(**{name: getattr(description, name) for name in _FIELDS}, **columns)
