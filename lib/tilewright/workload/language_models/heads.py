"""Heads of attention: the queries of a group of requests, with the keys and values that these queries see."""

from dataclasses import dataclass

from tilewright.workload.access import AxisIndex, affine
from tilewright.workload.language_models.request import Requests


@dataclass(frozen=True)
class Kept:
    """Tensor of keys or of values, of shape [requests, heads, tokens, width]."""

    tensor: str
    width: int
    """Number of channels of the tensor that are used, counted from the first channel."""


@dataclass(frozen=True)
class Heads:
    """Queries of a group of requests, with the keys and values that these queries see."""

    queries: str
    """Name of the tensor of queries: [tokens of all requests, heads * query width]."""
    first_row: int
    """Row of the first token of the group, in tensors with one row for each new token of all requests."""
    group: Requests
    keys: Kept
    values: Kept
    key_heads: int
    shared: int
    """Number of query heads per key head."""
    has_softcap: bool = False
    window: int | None = None
    """Largest number of keys that a query sees, the key of its own token included; None for no limit."""

    @property
    def outer(self) -> tuple[tuple[str, int], ...]:
        """Loops over requests, key heads, and the query heads of each key head."""
        return (("B", self.group.count), ("G", self.key_heads), ("H", self.shared))

    def row(self, query: AxisIndex) -> AxisIndex:
        """Row of a query in tensors with one row per new token of all requests. The loop B is the request. `query` is
        the index of the query among the new tokens of the request."""
        return AxisIndex((("B", self.group.tokens), *query.terms), self.first_row + query.offset)

    def channel(self, width: int, inner: str) -> AxisIndex:
        """Index of channel `inner` of a query head, in a tensor with `width` channels per head. The loop G is the key
        head. The loop H is the query head within the group of this key head."""
        return affine(("G", self.shared * width), ("H", width), (inner, 1))


@dataclass(frozen=True)
class AttentionSite:
    """Nodes of a workload that compute one attention of a group of requests: scores, softmax and weighted values."""

    prefix: str
    """Prefix of the names of the layers, with `/` at the end."""
    repeats: int
    """Number of equal blocks of the model that this site represents."""
    heads: Heads
    nodes: tuple[int, int]
    """Range of nodes: (id of the first node, id after the last node)."""
