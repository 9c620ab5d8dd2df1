"""Heads of attention: the queries of a group of requests with the keys and values that they see."""

from dataclasses import dataclass

from tilewright.workload.access import AxisIndex, affine
from tilewright.workload.language_models.request import Requests


@dataclass(frozen=True)
class Kept:
    """What is kept of the tokens of a request: [requests, heads, tokens, width]."""

    tensor: str
    width: int
    """Number of its first channels that count."""


@dataclass(frozen=True)
class Heads:
    """Queries of a group of requests with the keys and values that they see."""

    queries: str
    """[tokens of all requests, heads * query width]."""
    first_row: int
    """First row of the group."""
    group: Requests
    keys: Kept
    values: Kept
    key_heads: int
    shared: int
    """Query heads for each key head."""
    has_softcap: bool = False
    window: int | None = None
    """Keys that a query sees at most, itself included."""

    @property
    def outer(self) -> tuple[tuple[str, int], ...]:
        """Loops over requests, key heads, and the query heads of each."""
        return (("B", self.group.count), ("G", self.key_heads), ("H", self.shared))

    def row(self, query: AxisIndex) -> AxisIndex:
        """The row of a query of request B in the tensors of all requests."""
        return AxisIndex((("B", self.group.tokens), *query.terms), self.first_row + query.offset)

    def channel(self, width: int, inner: str) -> AxisIndex:
        """A channel of query head (G, H)."""
        return affine(("G", self.shared * width), ("H", width), (inner, 1))


@dataclass(frozen=True)
class AttentionSite:
    """Scores, softmax and weighted values of a group of requests, as they stand in a workload."""

    prefix: str
    """Prefix of the names of its layers, with `/` at the end."""
    repeats: int
    """Blocks that it stands for."""
    heads: Heads
    nodes: tuple[int, int]
    """The first node of it, and the first behind it."""
