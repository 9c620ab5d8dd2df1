"""Points of a profile: operators of a block, where they are timed, and who says the times."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

EMBEDDING, INPUT_NORM, POST_NORM, FINAL_NORM = "embedding", "input norm", "norm after attention", "last norm"
QUERIES, KEYS, VALUES, OUTPUTS = "queries", "keys", "values", "outputs"
HEAD_NORMS, POSITIONS, ATTENTION = "norms of heads", "positions", "attention"
GATE, UP, ACTIVATION, DOWN = "gate", "up", "activation", "down"
ATTENTION_SUM, FEED_FORWARD_SUM = "sum after attention", "sum after the feed-forward part"
ROUTER, EXPERTS, HEAD = "router", "experts", "head"
BY_ROWS = (
    *(EMBEDDING, INPUT_NORM, POST_NORM, FINAL_NORM, QUERIES, KEYS, VALUES, OUTPUTS, HEAD_NORMS, POSITIONS),
    *(GATE, UP, ACTIVATION, DOWN, ATTENTION_SUM, FEED_FORWARD_SUM, ROUTER, HEAD),
)
"""Operators that see each token by itself: their time depends on how many there are, and on nothing else."""
OF_EXPERT = (GATE, UP, ACTIVATION, DOWN)
"""Operators of one expert; its weighted sum is part of DOWN."""


class ProfileLimits(NamedTuple):
    """How far a profile goes."""

    tokens: int
    """New tokens of all requests in one step."""
    requests: int
    """Requests side by side that get one more token each."""
    context: int
    """Tokens of a request in its cache."""


class MixtureSize(NamedTuple):
    """Experts of a block, and how many each token goes to."""

    experts: int
    chosen: int


@dataclass(frozen=True)
class TimedPoints:
    """Where operators are timed."""

    rows: tuple[int, ...]
    """Tokens, for operators that see each by itself."""
    prompts: tuple[tuple[int, int], ...]
    """(new tokens, cached tokens) of one request."""
    answers: tuple[tuple[int, int], ...]
    """(requests with one new token each, cached tokens of each)."""
    expert_rows: tuple[int, ...] = ()
    """Tokens of one expert."""
    mixtures: tuple[tuple[int, int], ...] = ()
    """(tokens, experts that have some of them)."""


class OperatorTimes(Protocol):
    """Times of one block, or of what comes before and after all blocks, in ns."""

    def rows_ns(self, operator: str, rows: int) -> float:
        """Time of an operator of BY_ROWS."""

    def prompt_ns(self, tokens: int, context: int) -> float:
        """Time of attention for new tokens of one request behind cached ones."""

    def answers_ns(self, requests: int, context: int) -> float:
        """Time of attention for one more token of each request."""

    def expert_ns(self, operator: str, rows: int) -> float:
        """Time of an operator of OF_EXPERT on the tokens of one expert."""

    def mixture_ns(self, tokens: int, experts: int) -> float:
        """Time of the whole mixture of experts, router and shared experts included."""


def doubling(first: int, last: int) -> tuple[int, ...]:
    """first, twice of it, ..., and the last."""
    found = []
    while first < last:
        found.append(first)
        first *= 2
    return (*found, last)
