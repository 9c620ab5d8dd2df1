"""Weights of a language model, tensor by tensor; also the number of parameters and the number of cached elements."""

import math
from collections.abc import Iterator
from typing import NamedTuple

from tilewright.workload.language_models.architecture import (
    PARALLEL,
    SANDWICH,
    Architecture,
    Attention,
    Block,
    FeedForward,
    LatentAttention,
    Mixture,
    Norm,
    StateSpace,
)
from tilewright.workload.language_models.request import Precision


class Weight(NamedTuple):
    """Weight tensors with the same name and shape."""

    name: str
    """Name of the weight in checkpoints, such as `q_proj` or `input_layernorm`."""
    shape: tuple[int, ...]
    copies: int = 1
    """Number of tensors of this name and shape."""
    inputs: int = 0
    """Number of inputs per output, if the tensor is the matrix of a product; 0 for other tensors."""

    @property
    def elements(self) -> int:
        """Number of elements of all copies."""
        return math.prod(self.shape) * self.copies


def parameter_count(model: Architecture) -> int:
    """Number of parameters of a model. Tied weights count one time."""
    return sum(weight.elements for weight in weights_of(model))


def weight_bits(model: Architecture, precision: Precision) -> int:
    """Bits of all weights, with the scales and zero points of their groups. Tied weights count one time."""
    total = 0
    for weight in weights_of(model):
        total += weight.elements * precision.weights
        if weight.inputs:
            outputs = weight.elements // weight.inputs
            total += outputs * precision.groups(weight.inputs) * precision.group_bits
    return total


def active_parameter_count(model: Architecture) -> int:
    """Number of parameters that one token uses. Experts that the token does not go to are left out."""
    unused = 0
    for block, count in model.kinds.items():
        mixture = block.feed_forward
        if isinstance(mixture, Mixture):
            expert = sum(weight.elements for weight in _feed_forward_weights("", mixture.expert, model.hidden))
            unused += count * (mixture.experts - mixture.experts_per_token) * expert
    return parameter_count(model) - unused


def weights_of(model: Architecture) -> Iterator[Weight]:
    """Weights of a model. Equal weights of equal blocks are one Weight with several copies."""
    # If weights are tied, the last product reads the embedding too.
    yield Weight("embed_tokens", (model.vocabulary, model.hidden), inputs=model.hidden if model.is_tied else 0)
    if model.positions:
        yield Weight("embed_positions", (model.positions, model.hidden))
    for block, count in model.kinds.items():
        for weight in block_weights(block, model.hidden):
            yield weight._replace(copies=weight.copies * count)
    if model.last_norm is not None:
        yield from _norm_weights("norm", model.last_norm, model.hidden)
    if not model.is_tied:
        yield Weight("lm_head", (model.vocabulary, model.hidden), inputs=model.hidden)


def block_weights(block: Block, hidden: int) -> Iterator[Weight]:
    """Weights of one block."""
    yield from _norm_weights("input_layernorm", block.norm, hidden)
    if isinstance(block.mixer, Attention):
        yield from _attention_weights(block.mixer, hidden)
    elif isinstance(block.mixer, LatentAttention):
        yield from _latent_weights(block.mixer, hidden)
    else:
        yield from _state_space_weights(block.mixer, hidden)
    if block.feed_forward is None:
        return
    others = {PARALLEL: (), SANDWICH: ("post_attention", "pre_feedforward", "post_feedforward")}
    for name in others.get(block.norms, ("post_attention",)):
        yield from _norm_weights(f"{name}_layernorm", block.norm, hidden)
    if isinstance(block.feed_forward, Mixture):
        yield from _mixture_weights(block.feed_forward, hidden)
    else:
        yield from _feed_forward_weights("mlp", block.feed_forward, hidden)


def _linear(name: str, inputs: int, outputs: int, has_bias: bool) -> Iterator[Weight]:
    yield Weight(f"{name}.weight", (inputs, outputs), inputs=inputs)
    if has_bias:
        yield Weight(f"{name}.bias", (outputs,))


def _norm_weights(name: str, norm: Norm, width: int) -> Iterator[Weight]:
    yield Weight(f"{name}.weight", (width,))
    if norm.has_shift:
        yield Weight(f"{name}.bias", (width,))


def _attention_weights(attention: Attention, hidden: int) -> Iterator[Weight]:
    queries, keys = attention.heads * attention.width, attention.key_heads * attention.width
    for name, outputs in (("q_proj", queries), ("k_proj", keys), ("v_proj", keys)):
        yield from _linear(name, hidden, outputs, attention.has_input_bias)
    yield from _linear("o_proj", queries, hidden, attention.has_output_bias)
    if attention.head_norm is not None:
        for name in ("q_norm", "k_norm"):
            yield from _norm_weights(name, attention.head_norm, attention.width)


def _latent_weights(attention: LatentAttention, hidden: int) -> Iterator[Weight]:
    queries = attention.heads * (attention.width + attention.rotary_width)
    if attention.query_rank is None:
        yield from _linear("q_proj", hidden, queries, False)
    else:
        yield from _linear("q_a_proj", hidden, attention.query_rank, attention.has_bias)
        yield Weight("q_a_layernorm.weight", (attention.query_rank,))
        yield from _linear("q_b_proj", attention.query_rank, queries, False)
    yield from _linear("kv_a_proj_with_mqa", hidden, attention.rank + attention.rotary_width, attention.has_bias)
    yield Weight("kv_a_layernorm.weight", (attention.rank,))
    yield from _linear("kv_b_proj", attention.rank, attention.heads * (attention.width + attention.value_width), False)
    yield from _linear("o_proj", attention.heads * attention.value_width, hidden, attention.has_bias)


def _state_space_weights(mixer: StateSpace, hidden: int) -> Iterator[Weight]:
    yield from _linear("in_proj", hidden, 2 * mixer.width, mixer.has_bias)
    yield Weight("conv1d.weight", (mixer.width, mixer.kernel))
    if mixer.has_kernel_bias:
        yield Weight("conv1d.bias", (mixer.width,))
    yield from _linear("x_proj", mixer.width, mixer.rank + 2 * mixer.state, False)
    yield from _linear("dt_proj", mixer.rank, mixer.width, True)
    yield Weight("A_log", (mixer.width, mixer.state))
    yield Weight("D", (mixer.width,))
    yield from _linear("out_proj", mixer.width, hidden, mixer.has_bias)


def _feed_forward_weights(name: str, part: FeedForward, hidden: int) -> Iterator[Weight]:
    for gate in ("gate_proj", "up_proj") if part.is_gated else ("up_proj",):
        yield from _linear(f"{name}.{gate}", hidden, part.width, part.has_bias)
    yield from _linear(f"{name}.down_proj", part.width, hidden, part.has_bias)


def _mixture_weights(mixture: Mixture, hidden: int) -> Iterator[Weight]:
    yield Weight("gate.weight", (hidden, mixture.experts), inputs=hidden)
    if mixture.uses_sigmoid:
        yield Weight("gate.e_score_correction_bias", (mixture.experts,))
    for weight in _feed_forward_weights("experts", mixture.expert, hidden):
        yield weight._replace(copies=mixture.experts)
    if mixture.shared is not None:
        yield from _feed_forward_weights("shared_experts", mixture.shared, hidden)


def kept_numbers(model: Architecture, tokens: int) -> int:
    """Number of cached elements of a request with `tokens` tokens: keys and values, latent vectors, or states.

    With a window, only tokens that the next token sees are counted.
    """
    total = 0
    for block, count in model.kinds.items():
        mixer = block.mixer
        if isinstance(mixer, Attention):
            seen = tokens if mixer.window is None else min(tokens, max(1, mixer.window - 1))
            total += count * seen * 2 * mixer.key_heads * mixer.width
        elif isinstance(mixer, LatentAttention):
            total += count * tokens * (mixer.rank + mixer.rotary_width)
        else:
            total += count * mixer.width * (mixer.state + mixer.kernel - 1)
    return total
