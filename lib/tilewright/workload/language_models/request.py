"""Requests of one step of a language model: tokens, caches, and bits of numbers."""

from dataclasses import dataclass

PREFILL, DECODE = "prefill", "decode"
PHASES = (PREFILL, DECODE)
LAST, ALL = "last", "all"
"""Tokens for which the next one is computed: the last of each request, or all."""
ABSORBED, EXPANDED = "absorbed", "expanded"
"""How latent attention runs: on the latent vectors themselves, or on the keys and values that they are expanded to."""
EXPECTED, BALANCED = "expected", "balanced"
"""How tokens spread over experts: as on average where each goes to some at random, or over as many as there can be."""
DEFAULT_BITS = 8
DEFAULT_SCALE_BITS = 16
DEFAULT_BLOCK = 1024
"""Keys that attention takes at a time, and tokens of a prompt in one step, where costs are wanted for many contexts."""


@dataclass(frozen=True)
class Requests:
    """Equal requests that run side by side in one step."""

    count: int
    tokens: int
    """New tokens of each."""
    context: int
    """Tokens of each whose keys and values, or whose state, were computed before."""

    @property
    def rows(self) -> int:
        """New tokens of all of them."""
        return self.count * self.tokens


@dataclass(frozen=True)
class Precision:
    """Bits of a number."""

    weights: int = DEFAULT_BITS
    activations: int = DEFAULT_BITS
    cache: int = DEFAULT_BITS
    """Bits of keys, values and latent vectors that are kept, and of states."""
    partial_sums: int | None = None
    """None: twice the widest input, as where an ONNX file does not say it."""
    weight_group: int | None = None
    """Weights of an output, one input after the other, that share a scale; None where weights have no scales."""
    weight_scale: int = 0
    """Bits of a scale."""
    weight_zero_point: int = 0
    """Bits of the number that stands for 0 in a group; 0 where it is 0 in all of them."""

    @property
    def group_bits(self) -> int:
        """What comes with each group of weights."""
        return self.weight_scale + self.weight_zero_point if self.weight_group else 0

    def groups(self, inputs: int) -> int:
        """Groups of the weights of an output with so many inputs; the last one may be shorter."""
        return -(-inputs // self.weight_group) if self.weight_group else 0


@dataclass(frozen=True)
class ModelStep:
    """One pass of a model over new tokens."""

    groups: tuple[Requests, ...]
    precision: Precision = Precision()
    experts: str | tuple[int, ...] = EXPECTED
    """EXPECTED, BALANCED, or the tokens that each expert gets, in every block."""
    latent: str = ABSORBED
    """ABSORBED or EXPANDED."""
    key_block: int | None = None
    """Keys that attention takes at a time; None for all at once."""
    logits: str = LAST
    """LAST or ALL."""
    is_written_out: bool = False
    """Whether every block and expert has layers of its own, instead of one for all that are equal."""

    @property
    def rows(self) -> int:
        """New tokens of all requests."""
        return sum(group.rows for group in self.groups)
