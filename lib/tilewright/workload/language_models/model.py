"""The layers of one step of a language model: embedding, blocks, last norm, and the projection to the vocabulary.

Blocks of one kind are there once, standing for all of them, in the order in which the kinds first come; written out,
every block is there, in its place.
"""

from tilewright.workload.access import AxisIndex, IndexMap, affine
from tilewright.workload.graph import Workload
from tilewright.workload.language_models.architecture import (
    PARALLEL,
    SANDWICH,
    Architecture,
    Attention,
    Block,
    LatentAttention,
    Mixture,
)
from tilewright.workload.language_models.attended import AttentionSite
from tilewright.workload.language_models.attention import attention
from tilewright.workload.language_models.builder import Builder, at
from tilewright.workload.language_models.feed_forward import feed_forward, mixture_of_experts
from tilewright.workload.language_models.latent_attention import latent_attention
from tilewright.workload.language_models.request import ALL, Step
from tilewright.workload.language_models.state_space import state_space


def language_model_workload(model: Architecture, step: Step, name: str = "") -> Workload:
    """The workload of one step; inputs are the caches before the step, outputs those after it and the logits."""
    return _built(model, step).workload(name or model.name)


def attentions_of(model: Architecture, step: Step) -> tuple[Builder, tuple[AttentionSite, ...]]:
    """Each attention of the workload of one step, with the builder that has its nodes and tensors."""
    builder = _built(model, step)
    return builder, tuple(builder.attentions)


def _built(model: Architecture, step: Step) -> Builder:
    builder = Builder(step.precision)
    hidden = _embedding(builder, model, step)
    if step.is_written_out:
        for place, block in enumerate(model.blocks):
            with builder.scope(f"layers.{place}"):
                hidden = _block(builder, hidden, block, step)
    else:
        for block, count in model.kinds.items():
            with builder.scope(f"layers.{block.name}" if block.name else "layers", count):
                hidden = _block(builder, hidden, block, step)
    if model.last_norm is not None:
        hidden = builder.norm("norm", hidden, model.last_norm)
    _logits(builder, hidden, model, step)
    return builder


def _embedding(builder: Builder, model: Architecture, step: Step) -> str:
    """The rows of the table of embeddings that the tokens choose: data that move, at no cost."""
    rows = step.rows
    table = builder.weight("embed_tokens.weight", model.vocabulary, model.hidden)
    hidden = builder.tensor("embed_tokens", (rows, model.hidden))
    builder.move("embed_tokens", "Gather", builder.any_of(hidden, table))
    if model.scales_embedding:
        hidden = builder.elementwise("embed_scale", "Mul", hidden)
    if model.positions:
        table = builder.weight("embed_positions.weight", model.positions, model.hidden)
        chosen = builder.tensor("embed_positions", (rows, model.hidden))
        builder.move("embed_positions", "Gather", builder.any_of(chosen, table))
        hidden = builder.elementwise("embed_sum", "Add", hidden, chosen)
    return hidden


def _block(builder: Builder, hidden: str, block: Block, step: Step) -> str:
    normed = builder.norm("input_norm", hidden, block.norm)
    mixed = _mixer(builder, normed, block, step)
    if block.feed_forward is None:
        return builder.elementwise("mixer_residual", "Add", hidden, mixed)
    if block.norms == PARALLEL:
        both = builder.elementwise("parts_sum", "Add", mixed, _second(builder, normed, block, step))
        return builder.elementwise("residual", "Add", hidden, both)
    if block.norms == SANDWICH:
        mixed = builder.norm("post_attention_norm", mixed, block.norm)
    hidden = builder.elementwise("attention_residual", "Add", hidden, mixed)
    before = "pre_feedforward_norm" if block.norms == SANDWICH else "post_attention_norm"
    found = _second(builder, builder.norm(before, hidden, block.norm), block, step)
    if block.norms == SANDWICH:
        found = builder.norm("post_feedforward_norm", found, block.norm)
    return builder.elementwise("feedforward_residual", "Add", hidden, found)


def _mixer(builder: Builder, normed: str, block: Block, step: Step) -> str:
    if isinstance(block.mixer, Attention):
        with builder.scope("attention"):
            return attention(builder, normed, block.mixer, step)
    if isinstance(block.mixer, LatentAttention):
        with builder.scope("attention"):
            return latent_attention(builder, normed, block.mixer, step)
    with builder.scope("mixer"):
        return state_space(builder, normed, block.mixer, step.groups, is_written_out=step.is_written_out)


def _second(builder: Builder, normed: str, block: Block, step: Step) -> str:
    part = block.feed_forward
    assert part is not None
    with builder.scope("feedforward"):
        if isinstance(part, Mixture):
            return mixture_of_experts(builder, normed, part, step.experts, is_written_out=step.is_written_out)
        return feed_forward(builder, normed, part)


def _logits(builder: Builder, hidden: str, model: Architecture, step: Step) -> None:
    rows, width = builder.shape(hidden)
    if step.logits != ALL:
        rows = sum(group.count for group in step.groups)
        hidden = _last_rows(builder, hidden, step)
    weight = ""
    if model.is_tied:
        # The same numbers as those of the embedding, read as columns.
        weight = builder.tied("embed_tokens.weight", "lm_head.weight", (width, model.vocabulary))
    logits = builder.product("lm_head", hidden, (rows, width, model.vocabulary), weight=weight)
    if model.has_output_softcap:
        logits = builder.elementwise("logits_cap", "Tanh", logits)
    builder.outputs.append(logits)


def _last_rows(builder: Builder, hidden: str, step: Step) -> str:
    """The last token of each request."""
    width = builder.shape(hidden)[1]
    last = builder.tensor("last_tokens", (sum(group.count for group in step.groups), width))
    maps, first, row = [], 0, 0
    for group in step.groups:
        loops = (("B", group.count), ("K", width))
        read = at(hidden, AxisIndex((("B", group.tokens),), first + group.tokens - 1), "K")
        maps.append(IndexMap(loops, at(last, affine(("B", 1), offset=row), "K"), read))
        first, row = first + group.rows, row + group.count
    return builder.move("last_tokens", "Slice", *maps)
