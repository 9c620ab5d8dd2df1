"""Requests of one step of a language model: tokens, caches, and bits of numbers."""

from dataclasses import dataclass

PREFILL, DECODE = "prefill", "decode"
PHASES = (PREFILL, DECODE)
LAST, ALL = "last", "all"
"""Tokens for which logits are computed. LAST: the last token of each request. ALL: all tokens."""
ABSORBED, EXPANDED = "absorbed", "expanded"
"""Forms of latent attention. ABSORBED runs on the latent vectors. EXPANDED runs on keys and values that are computed
from the latent vectors.
"""
EXPECTED, BALANCED = "expected", "balanced"
"""Spreads of tokens over experts. EXPECTED: the average spread if each token goes to random experts. BALANCED: an even
spread over all experts that can have a token."""
DEFAULT_BITS = 8
DEFAULT_SCALE_BITS = 16
DEFAULT_BLOCK = 1024
"""Default of two sizes, used if costs are computed for many contexts: the number of keys that attention processes at a
time, and the number of prompt tokens per step."""


@dataclass(frozen=True)
class Requests:
    """Group of equal requests that run together in one step."""

    count: int
    tokens: int
    """Number of new tokens of each request."""
    context: int
    """Number of tokens of each request before the step. The cache holds the keys and values of these tokens, or the
    state after these tokens."""

    @property
    def rows(self) -> int:
        """Number of new tokens of the group: the sum over all its requests."""
        return self.count * self.tokens


@dataclass(frozen=True)
class Precision:
    """Bits of the numbers of a model."""

    weights: int = DEFAULT_BITS
    activations: int = DEFAULT_BITS
    cache: int = DEFAULT_BITS
    """Bits of cached keys, values and latent vectors, and of the states of state-space layers."""
    partial_sums: int | None = None
    """Bits of partial sums. None means twice the bits of the widest input, as for an ONNX file that does not give
    these bits.
    """
    weight_group: int | None = None
    """Number of weights that share a scale. These weights belong to one output and to consecutive inputs. None if
    weights have no scales."""
    weight_scale: int = 0
    """Bits of a scale."""
    weight_zero_point: int = 0
    """Bits of the zero point of each group of weights; 0 if there are no zero points."""

    @property
    def group_bits(self) -> int:
        """Total bits of the scale and the zero point of one group of weights; 0 if weights have no scales."""
        return self.weight_scale + self.weight_zero_point if self.weight_group else 0

    def groups(self, inputs: int) -> int:
        """Number of weight groups for one output that has `inputs` inputs; 0 if weights have no scales. The last group
        can be smaller."""
        return -(-inputs // self.weight_group) if self.weight_group else 0


@dataclass(frozen=True)
class ModelStep:
    """One pass of a model over new tokens."""

    groups: tuple[Requests, ...]
    precision: Precision = Precision()
    experts: str | tuple[int, ...] = EXPECTED
    """Number of tokens per expert in every block: EXPECTED, BALANCED, or the tokens of each expert."""
    latent: str = ABSORBED
    """Form of latent attention: ABSORBED or EXPANDED."""
    key_block: int | None = None
    """Number of keys that attention processes at a time; None for all keys at once."""
    logits: str = LAST
    """Tokens for which logits are computed: LAST or ALL."""
    is_written_out: bool = False
    """True if every block and every expert has separate layers in the workload. If false, one repeated layer represents
    all equal layers."""

    @property
    def rows(self) -> int:
        """Number of new tokens of all requests."""
        return sum(group.rows for group in self.groups)
