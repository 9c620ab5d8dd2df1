"""Architecture of a language model of any family: blocks, each with a token mixer and a feed-forward part.

Sizes are in elements. This module computes no costs; other modules of this package compute the work of a step.
"""

from dataclasses import dataclass

PRE, SANDWICH, PARALLEL = "pre", "sandwich", "parallel"
"""Positions of the norms of a block. PRE: one norm before each part. SANDWICH: one norm before and one norm after each
part. PARALLEL: one norm; both parts read its output."""


@dataclass(frozen=True)
class Norm:
    """Normalisation along the features of a token."""

    is_centred: bool
    """True if the mean is subtracted. LayerNorm subtracts the mean; RMSNorm does not."""
    has_shift: bool
    """True if a bias is added."""


RMS_NORM = Norm(is_centred=False, has_shift=False)
LAYER_NORM = Norm(is_centred=True, has_shift=True)


@dataclass(frozen=True)
class Attention:
    """Attention with groups of query heads. All query heads of a group share one key head. A group has one query head
    (MHA), several query heads (GQA), or all query heads (MQA)."""

    heads: int
    key_heads: int
    width: int
    """Width of a head, in elements."""
    has_input_bias: bool
    """True if the projections to queries, keys and values have a bias."""
    has_output_bias: bool
    is_rotary: bool
    """True if queries and keys are rotated by their position (RoPE)."""
    head_norm: Norm | None = None
    """Normalisation of the queries and keys of each head; None if these are not normalised."""
    window: int | None = None
    """Size of the sliding window: largest number of tokens that a query sees, its own token included. None for no
    limit."""
    has_softcap: bool = False
    """True if the scores have a soft cap: a tanh limits them."""


@dataclass(frozen=True)
class LatentAttention:
    """Attention whose cache holds one latent vector and one rotary key per token. All heads share the vector and the
    key (DeepSeek's MLA)."""

    heads: int
    query_rank: int | None
    """Width of the latent queries; None if queries are projected in one step."""
    rank: int
    """Width of the latent vector of keys and values."""
    width: int
    """Width of the non-rotary part of a query head."""
    rotary_width: int
    value_width: int
    has_bias: bool
    """True if the output projection and the projections to latent vectors have a bias."""


@dataclass(frozen=True)
class StateSpace:
    """Selective state space (Mamba): a short convolution and a recurrence instead of attention."""

    width: int
    """Number of channels inside the block."""
    state: int
    """Number of elements of the state per channel."""
    kernel: int
    """Kernel size of the convolution, in tokens."""
    rank: int
    """Rank of the projection that computes the step sizes. A step size is the discretisation step of the recurrence."""
    has_bias: bool
    has_kernel_bias: bool


@dataclass(frozen=True)
class FeedForward:
    """Two matrix products with an activation function between them. A gate adds a third matrix product."""

    width: int
    is_gated: bool
    activation: str
    """ONNX operator type of the activation function, such as Silu."""
    has_bias: bool


@dataclass(frozen=True)
class Mixture:
    """Mixture of experts. A router sends each token to some of the experts."""

    experts: int
    experts_per_token: int
    expert: FeedForward
    shared: FeedForward | None
    """Expert that processes all tokens; None if the block has no shared expert."""
    uses_sigmoid: bool = False
    """True if the scores of the router are sigmoids with a correcting bias, instead of a softmax."""


@dataclass(frozen=True)
class Block:
    """Block of the model: a token mixer and a feed-forward part. In configurations, a block is called a layer."""

    name: str
    """Name of the block type; '' if all blocks of the model have the same type."""
    mixer: Attention | LatentAttention | StateSpace
    feed_forward: FeedForward | Mixture | None
    norm: Norm
    norms: str = PRE


@dataclass(frozen=True)
class Architecture:
    """Language model: embedding, blocks in order, a last norm, and the projection to the vocabulary."""

    name: str
    model_type: str
    hidden: int
    vocabulary: int
    blocks: tuple[Block, ...]
    last_norm: Norm | None
    is_tied: bool
    """True if the projection to the vocabulary shares the weights of the embedding."""
    positions: int = 0
    """Number of learned position embeddings; 0 for none."""
    scales_embedding: bool = False
    has_output_softcap: bool = False
    most_tokens: int | None = None
    """Size, in tokens, of the largest request that the model was made for; None if the configuration does not give it.
    """

    @property
    def kinds(self) -> dict[Block, int]:
        """Number of blocks of each type, in the order of first occurrence: block -> number."""
        counts: dict[Block, int] = {}
        for block in self.blocks:
            counts[block] = counts.get(block, 0) + 1
        return counts
