"""Points of a profile: the operators of a block, the sizes at which they are timed, and the source of the times."""

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
"""Operators that process each token separately. The time of such an operator depends only on the number of tokens."""
OF_EXPERT = (GATE, UP, ACTIVATION, DOWN)
"""Operators of one expert. The operator DOWN includes the weighted sum of the results of the experts."""


class ProfileLimits(NamedTuple):
    """Limits of the sizes for which a profile has times."""

    tokens: int
    """Largest number of new tokens in one step, summed over all requests."""
    requests: int
    """Largest number of requests that get one new token each in the same step."""
    context: int
    """Largest number of cached tokens of a request."""


class MixtureSize(NamedTuple):
    """Number of experts of a block, and number of experts that each token uses."""

    experts: int
    chosen: int


@dataclass(frozen=True)
class TimedPoints:
    """Points at which operators are timed."""

    rows: tuple[int, ...]
    """Numbers of tokens at which the operators of BY_ROWS are timed."""
    prompts: tuple[tuple[int, int], ...]
    """Points for prompts, as pairs (new tokens, cached tokens) of one request."""
    answers: tuple[tuple[int, int], ...]
    """Points for decode steps, as pairs (number of requests with one new token each, cached tokens of each request)."""
    expert_rows: tuple[int, ...] = ()
    """Numbers of tokens for which the operators of one expert are timed."""
    mixtures: tuple[tuple[int, int], ...] = ()
    """Points for mixtures of experts, as pairs (number of tokens, number of experts that process at least one token).
    """


class OperatorTimes(Protocol):
    """Times in ns of the operators of one block, and of the operators before and after all blocks."""

    def rows_ns(self, operator: str, rows: int) -> float:
        """Time in ns of an operator of BY_ROWS for `rows` tokens."""

    def prompt_ns(self, tokens: int, context: int) -> float:
        """Time of attention for `tokens` new tokens of one request that has `context` cached tokens."""

    def answers_ns(self, requests: int, context: int) -> float:
        """Time of attention for one new token of each request; each request has `context` cached tokens."""

    def expert_ns(self, operator: str, rows: int) -> float:
        """Time in ns of an operator of OF_EXPERT if one expert processes `rows` tokens."""

    def mixture_ns(self, tokens: int, experts: int) -> float:
        """Time for `tokens` tokens in a whole mixture of experts, including the router and the shared experts.
        `experts` is the number of experts that process at least one token.
        """


def doubling(first: int, last: int) -> tuple[int, ...]:
    """Numbers from `first` to `last`, each twice the previous number, and `last` itself."""
    found = []
    while first < last:
        found.append(first)
        first *= 2
    return (*found, last)
