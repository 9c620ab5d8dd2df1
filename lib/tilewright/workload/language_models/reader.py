"""Reader of a workload file that names a language model and describes the step that the model runs.

The model is given by a configuration in the form of Hugging Face's `config.json`, in a separate file or in the workload
file. Invalid fields are reported as problems, and have no value in the object that is read from the file.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from tilewright.base.artifacts.digests import LANGUAGE_MODEL, model_file
from tilewright.base.artifacts.files import existing_file
from tilewright.base.errors import InputError, Problem, Problems
from tilewright.base.validation import TableModel, validate
from tilewright.base.yamlfile import YamlDocument, load_yaml
from tilewright.workload.graph import Workload
from tilewright.workload.language_models.architecture import (
    Architecture,
    Attention,
    LatentAttention,
    Mixture,
    StateSpace,
)
from tilewright.workload.language_models.families import architecture_of
from tilewright.workload.language_models.model import language_model_workload
from tilewright.workload.language_models.request import (
    ABSORBED,
    BALANCED,
    DECODE,
    DEFAULT_BITS,
    DEFAULT_SCALE_BITS,
    EXPANDED,
    EXPECTED,
    ModelStep,
    Precision,
    Requests,
)

MOST_OPERATIONS = 2**60
"""Largest number of operations of one layer. The limit exists because counts of operations and cycles are 64-bit
integers.
"""
MOST_NODES = 20_000
_MOST_TOKENS = 2**31
Bits = Annotated[int, Field(gt=0, le=1024)]
Tokens = Annotated[int, Field(gt=0, le=_MOST_TOKENS)]
Context = Annotated[int, Field(ge=0, le=_MOST_TOKENS)]
Batch = Annotated[int, Field(gt=0, le=1_000_000)]


class PrecisionOfModel(TableModel):
    """Bits of the numbers of a model."""

    weights: Bits = DEFAULT_BITS
    """Bits of weights."""
    activations: Bits = DEFAULT_BITS
    """Bits of activations. Cached keys, values and latent vectors, and states of state-space layers, have the bits
    `kv_cache` instead.
    """
    kv_cache: Bits = DEFAULT_BITS
    """Bits of cached keys, values and latent vectors, and of the states of state-space layers."""
    partial_sums: Bits | None = None
    """Bits of partial sums. By default, partial sums have twice the bits of the widest input of a layer."""
    weight_group: Tokens | None = None
    """Number of weights that share a scale. These weights belong to one output of a matrix product and to consecutive
    inputs. By default, weights have no scales."""
    weight_scale: Bits | None = None
    """Bits of each scale; the default is 16."""
    weight_zero_point: Bits | None = None
    """Bits of the zero point of each group of weights. By default, groups have no zero points."""


class RequestsEntry(TableModel):
    """Group of equal requests in one step."""

    count: Batch = 1
    """Number of equal requests in this group."""
    tokens: Tokens
    """Number of new tokens of each request."""
    context: Context
    """Number of tokens that the cache of each request holds before the step."""


class LanguageModelFile(TableModel):
    """Workload file for one step of a language model (one pass over new tokens): the model, and the requests of the
    step."""

    language_model: str | dict[str, Any]
    """Path of a configuration (`config.json` of Hugging Face) relative to the folder of this file, or the fields
    themselves.
    """
    fields: dict[str, Any] | None = None
    """Values that replace fields of the configuration, by field name."""
    phase: Literal["prefill", "decode"] | None = None
    """Phase of the requests. `prefill`: the new tokens are a prompt or a chunk of a prompt. `decode`: each request
    gets one more token.
    """
    batch: Batch | None = None
    """Number of requests that run together; the default is 1."""
    tokens: Tokens | None = None
    """Number of new tokens of each request. Required in prefill; 1 by default in decode."""
    context: Context | None = None
    """Number of tokens of each request that the cache holds before the step. Required in decode; 0 by default in
    prefill."""
    requests: Annotated[list[RequestsEntry], Field(min_length=1)] | None = None
    """Groups of equal requests that run together in one step. This key replaces `phase`, `batch`, `tokens` and
    `context`."""
    precision: PrecisionOfModel | None = None
    """Bits of the numbers of the model; the default is 8."""
    experts: Literal["expected", "balanced"] | list[Context] = "expected"
    """Number of tokens per expert. `expected`: the average spread if each token goes to random experts. `balanced`: an
    even spread over all experts that can have a token. A list gives the tokens of each expert."""
    latent_attention: Literal["absorbed", "expanded"] | None = None
    """Form of latent attention. `absorbed` runs on latent vectors; `expanded` runs on keys and values that are
    computed from the latent vectors. The default is `absorbed` if every request has one new token, else `expanded`.
    """
    key_block: Tokens | None = None
    """Number of keys that attention processes at a time. The maximum, the sum and the output of each query are then
    merged over the blocks of keys. By default, attention processes all keys at once."""
    logits: Literal["last", "all"] = "last"
    """Tokens for which logits are computed: the last token of each request (`last`), or all tokens (`all`)."""
    written_out: bool = False
    """True if every block and every expert has separate layers in the workload. If false, one repeated layer represents
    all equal layers."""


@dataclass(frozen=True)
class DescribedModel:
    """Model and step that a workload file describes."""

    name: str
    model: Architecture
    step: ModelStep


def read_language_model(document: YamlDocument, name: str, notices: list[str] | None = None) -> Workload:
    """Workload of a step of a language model. Raises InputError with every problem of the file."""
    described = describe_language_model(document, name, notices)
    workload = language_model_workload(described.model, described.step, described.name)
    problems = Problems(document)
    for node in workload.nodes:
        if node.layer is not None and node.layer.mac_count * node.repeats > MOST_OPERATIONS:
            problems.at(
                (), f"layer {node.name} has more than 2^60 operations", f"{node.repeats} x {node.layer.mac_count}"
            )
    problems.finish()
    return workload


def describe_language_model(document: YamlDocument, name: str, notices: list[str] | None = None) -> DescribedModel:
    """Description of the model and the step in a workload file. Raises one InputError that names every problem of the
    file.

    If `notices` is given, notices about the file are appended to this list.
    """
    problems = Problems(document)
    entry: LanguageModelFile | None = validate(LanguageModelFile, document.data, problems)
    model = _model(document, problems)
    groups = _groups(entry, problems) if entry is not None else ()
    if entry is not None and model is not None:
        _note_other_models(entry, document.data, model, problems)
        _check_experts(entry, model, groups, problems)
        _check_scales(entry.precision, model, problems)
        _check_positions(model, groups, problems)
        _check_size(entry, model, groups, problems)
    problems.finish(notices)
    assert entry is not None
    assert model is not None
    return DescribedModel(name, model, _step(entry, groups))


def _model(document: YamlDocument, problems: Problems) -> Architecture | None:
    """Architecture of the model; None if the configuration is wrong. Faults are reported in `problems`."""
    named, more = document.data.get(LANGUAGE_MODEL), document.data.get("fields")
    more = more if isinstance(more, dict) else {}
    if isinstance(named, dict):
        return architecture_of({**named, **more}, Path(document.file).stem or "model", problems, (LANGUAGE_MODEL,))
    file = model_file(document.data, Path(document.file))
    if file is None:
        return None
    found = problems.attempt(_configuration, file, problems.notices)
    if found is None:
        return None
    own = Problems(found)
    model = architecture_of({**found.data, **more}, file.stem, own)
    problems.found += own.found
    problems.notices += own.notices
    return model


def _configuration(file: Path, notices: list[str]) -> YamlDocument:
    """Table of fields in a configuration file, with line numbers. JSON is read as YAML. Raises InputError if the file
    cannot be read or has no table.
    """
    document = load_yaml(existing_file(file, "configuration"), notices)
    if not isinstance(document.data, dict):
        raise InputError([Problem("a table of fields is needed", document.file, 1)])
    return document


def _groups(entry: LanguageModelFile, problems: Problems) -> tuple[Requests, ...]:
    """Requests of the step; () if the requests in the file are invalid."""
    single = ("phase", "batch", "tokens", "context")
    if problems.has("requests"):
        return ()
    if entry.requests is not None:
        for key in single:
            if getattr(entry, key) is not None:
                problems.at(
                    (key,), "cannot be given together with `requests`, which replaces this key", getattr(entry, key)
                )
        found = [Requests(one.count, one.tokens, one.context) for one in entry.requests]
        return tuple(found)
    if any(problems.has(key) for key in single):
        return ()
    if entry.phase is None:
        problems.at(("phase",), "required key is missing; give this key or `requests`", allowed="prefill, decode")
        return ()
    needed = "context" if entry.phase == DECODE else "tokens"
    if getattr(entry, needed) is None:
        problems.at((needed,), f"required key is missing: the phase {entry.phase} needs this key")
        return ()
    return (Requests(entry.batch or 1, entry.tokens or 1, entry.context or 0),)


def _note_other_models(
    entry: LanguageModelFile, written: Mapping[str, object], model: Architecture, problems: Problems
) -> None:
    """Add a notice for each key of the file that acts only on parts that the model does not have."""
    mixers = {type(block.mixer) for block in model.blocks}
    has_experts = any(isinstance(block.feed_forward, Mixture) for block in model.blocks)
    for key, part, is_there in (
        ("latent_attention", "latent attention", LatentAttention in mixers),
        ("key_block", "attention", bool(mixers & {Attention, LatentAttention})),
        ("experts", "experts", has_experts or isinstance(entry.experts, list)),
    ):
        if written.get(key) is not None and not is_there:
            problems.unused((key,), f"has no effect: {model.name} has no {part}", written[key])


def _check_experts(
    entry: LanguageModelFile, model: Architecture, groups: tuple[Requests, ...], problems: Problems
) -> None:
    """Check the numbers of tokens that a file gives for the experts. A problem is reported in four cases: the model has
    no experts, the list does not have one number per expert, a number exceeds the number of new tokens, or the sum is
    wrong. The right sum is the number of new tokens times the number of experts per token.
    """
    if not isinstance(entry.experts, list) or not groups or None in entry.experts:
        return
    mixtures = {block.feed_forward for block in model.blocks if isinstance(block.feed_forward, Mixture)}
    if not mixtures:
        problems.at(("experts",), f"{model.name} has no experts", allowed=f"{EXPECTED}, {BALANCED}")
    rows = sum(group.rows for group in groups)
    for mixture in mixtures:
        if len(entry.experts) != mixture.experts:
            problems.at(
                ("experts",),
                "needs one number of tokens for each expert",
                f"{len(entry.experts)} items",
                f"{mixture.experts}",
            )
        elif sum(entry.experts) != rows * mixture.experts_per_token:
            told = f"{rows} tokens x {mixture.experts_per_token} experts = {rows * mixture.experts_per_token}"
            problems.at(("experts",), "the sum of the tokens of all experts is wrong", sum(entry.experts), told)
        for place, tokens in enumerate(entry.experts):
            if tokens > rows:
                problems.at(("experts", place), "the expert has more tokens than the step", tokens, f"0 to {rows}")


def _check_scales(precision: PrecisionOfModel | None, model: Architecture, problems: Problems) -> None:
    """Check that scales are given only with groups of weights, and not for a model with latent attention.

    Scales are not modelled for latent attention, because its up-projection is split into two matrix products.
    """
    if precision is None or problems.has("precision", "weight_group"):
        return
    if precision.weight_group is None:
        for key in ("weight_scale", "weight_zero_point"):
            if getattr(precision, key) is not None:
                message = "needs `weight_group`, the number of weights that share one scale or zero point"
                problems.at(("precision", key), message, getattr(precision, key))
    elif any(isinstance(block.mixer, LatentAttention) for block in model.blocks):
        message = "is not modelled for latent attention, which splits one weight matrix into two products"
        problems.at(("precision", "weight_group"), message, precision.weight_group)


def _check_positions(model: Architecture, groups: tuple[Requests, ...], problems: Problems) -> None:
    """Check the positions of tokens. If the model has learned position embeddings, a position beyond the last embedding
    is a problem. In any other model, a position gives a notice if it exceeds the number of tokens that the model was
    made for."""
    last = max((group.context + group.tokens for group in groups), default=0)
    told = beyond_positions(model, last)
    if told and model.positions:
        problems.at(("context",), told, last, f"at most {model.most_tokens}")
    elif told:
        problems.notice((), told)


def beyond_positions(model: Architecture, last: int) -> str:
    """Warning about a request that reaches position `last`. '' if the model was made for this position."""
    if model.most_tokens is None or last <= model.most_tokens:
        return ""
    return f"{model.name} was made for {model.most_tokens:,} tokens, but a request has {last:,}"


def _check_size(
    entry: LanguageModelFile, model: Architecture, groups: tuple[Requests, ...], problems: Problems
) -> None:
    """Report a problem if the workload of the step would have more than MOST_NODES layers, by an estimate. The causes
    are many entries in `requests`, or the option `written_out` for a large model."""
    if not groups:
        return
    from tilewright.workload.language_models.model import expert_loads

    rows = sum(group.rows for group in groups)
    if not entry.written_out:
        nodes = len(model.kinds) * (_NODES_OF_BLOCK + len(groups) * _NODES_OF_REQUESTS)
        if nodes > MOST_NODES:
            told = "the step has too many layers, because each entry of `requests` has layers of its own"
            problems.at(("requests",), told, f"some {nodes:,}", f"at most {MOST_NODES:,}")
        return
    nodes = 0
    for block in model.blocks:
        nodes += _NODES_OF_BLOCK + len(groups) * _NODES_OF_REQUESTS
        if entry.key_block is not None and not isinstance(block.mixer, StateSpace):
            blocks = sum((group.context + group.tokens) // entry.key_block for group in groups)
            nodes += _NODES_OF_PIECE * blocks
        if isinstance(block.mixer, Attention) and block.mixer.window is not None:
            nodes += _NODES_OF_PIECE * sum(2 * group.tokens // block.mixer.window for group in groups)
        if isinstance(block.feed_forward, Mixture) and isinstance(entry.experts, str):
            nodes += _NODES_OF_EXPERT * sum(expert_loads(block.feed_forward, rows, entry.experts).values())
        if block.feed_forward is None:
            nodes += _NODES_OF_TOKEN * sum(group.tokens for group in groups)
    if nodes > MOST_NODES:
        told = (
            "with `written_out`, the step has too many layers; for one block only, use `fields: {num_hidden_layers: 1}`"
        )
        problems.at(("written_out",), told, f"some {nodes:,}", f"at most {MOST_NODES:,}")


_NODES_OF_BLOCK, _NODES_OF_EXPERT, _NODES_OF_TOKEN, _NODES_OF_REQUESTS, _NODES_OF_PIECE = 40, 8, 3, 15, 9


def _precision(given: PrecisionOfModel) -> Precision:
    plain = Precision(given.weights, given.activations, given.kv_cache, given.partial_sums)
    if given.weight_group is None:
        return plain
    scale, zero = given.weight_scale or DEFAULT_SCALE_BITS, given.weight_zero_point or 0
    return replace(plain, weight_group=given.weight_group, weight_scale=scale, weight_zero_point=zero)


def _step(entry: LanguageModelFile, groups: tuple[Requests, ...]) -> ModelStep:
    given = entry.precision or PrecisionOfModel()
    one_token = all(group.tokens == 1 for group in groups)
    return ModelStep(
        groups=groups,
        precision=_precision(given),
        experts=entry.experts if isinstance(entry.experts, str) else tuple(entry.experts),
        latent=entry.latent_attention or (ABSORBED if one_token else EXPANDED),
        key_block=entry.key_block,
        logits=entry.logits,
        is_written_out=entry.written_out,
    )
