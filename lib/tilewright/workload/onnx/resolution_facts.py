"""What is known about a network once its sizes, constants, branches and functions are resolved."""

import functools
from dataclasses import dataclass

import numpy as np
import onnx

from tilewright.workload.onnx.node import OnnxNode, Shape


@dataclass(frozen=True)
class TensorFacts:
    """One tensor: all its sizes, and what of it is known before run time."""

    name: str
    shape: Shape
    element_type: int
    """Number of the element type in onnx.TensorProto.DataType."""
    is_constant: bool
    """Whether it is known before run time: a constant of the file, or computed from such."""
    values: np.ndarray | None = None
    """The values of a small constant whose bytes are in the file; None for weights."""
    quantised_bits: int | None = None
    """Bits of the integer that the tensor is or stands for, where a quantiser or the element type says so."""


@dataclass(frozen=True)
class ResolvedGraph:
    """A network as a graph of operators: functions written out, each `If` replaced by one branch, all shapes known."""

    nodes: tuple[OnnxNode, ...]
    """In an order in which they can run, `node_id` being the place in it; names are unique and stable."""
    tensors: dict[str, TensorFacts]
    """Every tensor with a known shape; sequences, maps and results of unknown operators are not in it."""
    inputs: tuple[str, ...]
    """Network inputs, initialisers left out."""
    outputs: tuple[str, ...]
    producer_of: dict[str, int]
    """Tensor -> id of the node that makes it. Network inputs and initialisers are not in it."""
    constant_nodes: frozenset[int]
    """Nodes whose outputs are all known before run time."""
    opsets: dict[str, int]
    """Domain ('' for the standard one) -> version."""
    origins: dict[int, str]
    """Node id -> name of the node of the file that it comes from: the call of a function, `If name/node of branch`."""
    notices: tuple[str, ...]


@functools.lru_cache(maxsize=65536)
def tensor_type(element_type: int, shape: tuple[int | None, ...]) -> onnx.TypeProto:
    """The type of a tensor, sizes None where they are open; the result is shared and must not be changed."""
    return onnx.helper.make_tensor_type_proto(element_type, shape)
