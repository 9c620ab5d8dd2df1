"""Architecture of a language model of any family: blocks, each with a mixer of tokens and a feed-forward part.

Sizes are in elements. Facts only: what a step computes with them is in the modules beside this one.
"""

from dataclasses import dataclass

PRE, SANDWICH, PARALLEL = "pre", "sandwich", "parallel"
"""Where a block normalises: before both parts; before and after both; once, for both parts side by side."""


@dataclass(frozen=True)
class Norm:
    """A normalisation along the features of a token."""

    is_centred: bool
    """LayerNorm subtracts the mean; RMSNorm does not."""
    has_shift: bool
    """Whether a bias is added."""


RMS_NORM = Norm(is_centred=False, has_shift=False)
LAYER_NORM = Norm(is_centred=True, has_shift=True)


@dataclass(frozen=True)
class Attention:
    """Attention with query heads that share key heads: as many (MHA), groups of them (GQA), or one for all (MQA)."""

    heads: int
    key_heads: int
    width: int
    """Width of a head."""
    has_input_bias: bool
    """Whether the projections to queries, keys and values have a bias."""
    has_output_bias: bool
    is_rotary: bool
    """Whether queries and keys are turned by their position (RoPE)."""
    head_norm: Norm | None = None
    """Normalisation of each head of queries and keys."""
    window: int | None = None
    """Tokens that a query sees, itself included; None for all before it."""
    has_softcap: bool = False
    """Whether scores are limited by a tanh."""


@dataclass(frozen=True)
class LatentAttention:
    """Attention with a cache of one latent vector and one turned key a token, shared by all heads (DeepSeek's MLA)."""

    heads: int
    query_rank: int | None
    """Width of the latent queries; None where queries are projected at once."""
    rank: int
    """Width of the latent vector of keys and values."""
    width: int
    """Width of the part of a query that is not turned."""
    rotary_width: int
    value_width: int
    has_bias: bool
    """Whether the projections to latent vectors and of the output have a bias."""


@dataclass(frozen=True)
class StateSpace:
    """A selective state space (Mamba): a short convolution and a recurrence instead of attention."""

    width: int
    """Channels inside the block."""
    state: int
    """Numbers of the state for each channel."""
    kernel: int
    """Tokens that the convolution sees."""
    rank: int
    """Rank of the step sizes."""
    has_bias: bool
    has_kernel_bias: bool


@dataclass(frozen=True)
class FeedForward:
    """Two matrix products with an activation function between them, or three where one gates the other."""

    width: int
    is_gated: bool
    activation: str
    """Operator type, such as Silu."""
    has_bias: bool


@dataclass(frozen=True)
class Mixture:
    """A mixture of experts: a router sends each token to some of them."""

    experts: int
    experts_per_token: int
    expert: FeedForward
    shared: FeedForward | None
    """What all tokens go through besides."""
    uses_sigmoid: bool = False
    """Scores of the router are sigmoids, corrected by a bias, instead of a softmax."""


@dataclass(frozen=True)
class Block:
    """One layer of the model, in the sense of its configuration."""

    name: str
    """Name of its kind; '' where all are of one kind."""
    mixer: Attention | LatentAttention | StateSpace
    feed_forward: FeedForward | Mixture | None
    norm: Norm
    norms: str = PRE


@dataclass(frozen=True)
class Architecture:
    """A language model: embedding, blocks in their order, a last norm, and the projection to the vocabulary."""

    name: str
    model_type: str
    hidden: int
    vocabulary: int
    blocks: tuple[Block, ...]
    last_norm: Norm | None
    is_tied: bool
    """Whether the projection to the vocabulary has the weights of the embedding."""
    positions: int = 0
    """Learned position embeddings; 0 for none."""
    scales_embedding: bool = False
    has_output_softcap: bool = False
    most_tokens: int | None = None
    """Positions that the model was made for; None where the configuration does not say."""

    @property
    def kinds(self) -> dict[Block, int]:
        """Kind of block -> how many of them there are, in the order of first use."""
        counts: dict[Block, int] = {}
        for block in self.blocks:
            counts[block] = counts.get(block, 0) + 1
        return counts
