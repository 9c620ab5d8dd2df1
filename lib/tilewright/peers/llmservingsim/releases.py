"""Operator profiles for each release of LLMServingSim: the points that the release looks up, and the files that it
reads.

The time of a residual sum is part of the time of the norm after it, as in kernels that fuse the sum and the norm. The
times of the layers therefore add up to the time of the step. The data movement of embeddings has no cost, and sampling
is not modelled.

The module also checks whether a release has all layers of a model, and whether the names for the release can be names
of folders.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from tilewright.base import harmless
from tilewright.base.errors import Problems
from tilewright.peers.llmservingsim.points import (
    ACTIVATION,
    ATTENTION_SUM,
    DOWN,
    EMBEDDING,
    FEED_FORWARD_SUM,
    FINAL_NORM,
    GATE,
    HEAD,
    HEAD_NORMS,
    INPUT_NORM,
    KEYS,
    OUTPUTS,
    POSITIONS,
    POST_NORM,
    QUERIES,
    ROUTER,
    UP,
    VALUES,
    MixtureSize,
    OperatorTimes,
    ProfileLimits,
    TimedPoints,
    doubling,
)
from tilewright.workload.language_models.architecture import PRE, Architecture, Attention, Mixture

FLAT, PREDICTIONS, BUNDLE = "llmservingsim-0.2", "llmservingsim-1.0", "llmservingsim-1.1"
RELEASES = (FLAT, PREDICTIONS, BUNDLE)
"""Formats of profiles, each named after the first release that reads it. FLAT: release 0.2.1. PREDICTIONS: release
1.0.0, the code of the paper on LLMServingSim 2.0. BUNDLE: release 1.1.0 and later.
"""
MOST_CONTEXT = {FLAT: 2048, PREDICTIONS: 2048, BUNDLE: 16384}
"""Default limit for the number of cached tokens in a profile, by format of the profile. The limits are those in the
scripts of the releases.
"""
CONTEXT_STEP, PROMPT_STEP = 64, 32
"""Steps in tokens to which release 1.0 rounds sizes before it looks up the time of attention. For an answer, the number
of keys is rounded up to a multiple of CONTEXT_STEP. For a prompt, the number of tokens is rounded up to a multiple of
PROMPT_STEP.
"""
_FIRST_CONTEXT = 16
_ROWS_OF_BLOCK = {
    "embedding": (EMBEDDING,),
    "input_layernorm": (FEED_FORWARD_SUM, INPUT_NORM),
    "q_proj": (QUERIES,),
    "k_proj": (KEYS,),
    "v_proj": (VALUES,),
    "rope": (HEAD_NORMS, POSITIONS),
    "o_proj": (OUTPUTS,),
    "post_layernorm": (ATTENTION_SUM, POST_NORM),
    "gate_proj": (GATE,),
    "up_proj": (UP,),
    "act_fn": (ACTIVATION,),
    "down_proj": (DOWN,),
    "gate": (ROUTER,),
    "final_layernorm": (FINAL_NORM,),
    "lm_head": (HEAD,),
}
"""Operators whose times add up to the time of a layer, by name of the layer in profiles of releases 0.2 and 1.0."""
_ROWS_OF_EXPERT = {"expert.w1": (GATE,), "expert.w3": (UP, ACTIVATION), "expert.w2": (DOWN,)}
_FUSED_ROWS = {
    "embedding": (EMBEDDING,),
    "qkv_proj": (QUERIES, KEYS, VALUES),
    "qk_norm": (HEAD_NORMS,),
    "rotary_emb": (POSITIONS,),
    "o_proj": (OUTPUTS,),
    "gate_up_proj": (GATE, UP),
    "act_fn": (ACTIVATION,),
    "down_proj": (DOWN,),
    "final_layernorm": (FINAL_NORM,),
}
"""Operators whose times add up to the time of a layer, by name of the layer in profiles of release 1.1.

`layernorm` is not in the table: a block has this layer twice, and the profile has the mean of both times.
"""
_BOTH_NORMS = (FEED_FORWARD_SUM, INPUT_NORM, ATTENTION_SUM, POST_NORM)
_OF_DENSE = {"gate_proj", "up_proj", "act_fn", "down_proj", "gate_up_proj"}


class Described(NamedTuple):
    """Hardware, model and number format of a profile, under the names that the simulator uses."""

    hardware: str
    """Hardware as the simulator's cluster configuration names it."""
    model: str
    """Model as the simulator's cluster configuration names it, such as meta-llama/Llama-3.1-8B."""
    variant: str
    """Number format, such as bf16. Release 1.1 looks for profiles in a folder with this name."""
    mixture: MixtureSize | None
    """Size of the mixture of experts; None for a model without experts."""
    has_head_norms: bool


def points_of(release: str, limits: ProfileLimits, mixture: MixtureSize | None) -> TimedPoints:
    """Points at which a profile must have times, so that a release can read the profile. Releases from 1.1 on
    interpolate between points. Earlier releases need a point for every size within `limits`.
    """
    if release == BUNDLE:
        return _sparse_points(limits, mixture)
    rows = tuple(range(1, limits.tokens + 1))
    experts = rows if mixture is not None else ()
    if release == FLAT:
        prompts = tuple((tokens, 0) for tokens in rows)
        return TimedPoints(rows, prompts, tuple((1, context) for context in range(limits.context)))
    longest = -(-limits.tokens // PROMPT_STEP) * PROMPT_STEP
    prompts = tuple((tokens, 0) for tokens in range(PROMPT_STEP, longest + 1, PROMPT_STEP))
    keys = range(CONTEXT_STEP, -(-limits.context // CONTEXT_STEP) * CONTEXT_STEP + 1, CONTEXT_STEP)
    answers = tuple((requests, seen - 1) for requests in range(1, limits.requests + 1) for seen in keys)
    return TimedPoints(rows, prompts, answers, experts)


def _sparse_points(limits: ProfileLimits, mixture: MixtureSize | None) -> TimedPoints:
    tokens = doubling(1, limits.tokens)
    contexts = (0, *doubling(min(_FIRST_CONTEXT, limits.context), limits.context))
    requests = doubling(1, limits.requests)
    mixtures: tuple[tuple[int, int], ...] = ()
    if mixture is not None:
        used = doubling(mixture.chosen, mixture.experts)
        mixtures = tuple((one, count) for count in used for one in tokens if count <= one * mixture.chosen)
    return TimedPoints(
        rows=tuple(sorted({*tokens, *requests})),
        prompts=tuple((new, context) for new in tokens for context in contexts),
        answers=tuple((count, context) for count in requests for context in contexts),
        mixtures=mixtures,
    )


def files_of(
    release: str, described: Described, limits: ProfileLimits, points: TimedPoints, times: OperatorTimes
) -> dict[str, str]:
    """Text of each file of a profile, by the path of the file below the folder of the profile."""
    if release == FLAT:
        return {f"perf_model/{described.hardware}.csv": _text(_flat_rows(described, points, times))}
    if release == PREDICTIONS:
        folder = f"perf_models/{described.hardware}/{described.model}/tp1"
        return {
            f"{folder}/layers.csv": _text(_layer_rows(described, points, times)),
            f"{folder}/predictions/attn_prefill_predictions.csv": _text(_prefill_rows(points, times)),
            f"{folder}/predictions/attn_decode_predictions.csv": _text(_decode_rows(points, times)),
        }
    folder = f"perf/{described.hardware}/{described.model}/{described.variant}/tp1"
    found = {
        f"{folder}/dense.csv": _text(_dense_rows(described, points, times)),
        f"{folder}/per_sequence.csv": _text(_sequence_rows(limits, points, times)),
        f"{folder}/attention.csv": _text(_attention_rows(points, times)),
    }
    if described.mixture is not None:
        found[f"{folder}/moe.csv"] = _text(_mixture_rows(points, times))
    return found


def _text(rows: Iterable[tuple[Any, ...]]) -> str:
    """Text of a CSV file with the rows."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerows([harmless.csv(cell) for cell in row] for row in rows)
    return stream.getvalue()


def _sum(times: OperatorTimes, operators: Iterable[str], rows: int) -> float:
    return sum(times.rows_ns(operator, rows) for operator in operators)


def _block_layers(described: Described) -> dict[str, tuple[str, ...]]:
    left_out = {"gate"} if described.mixture is None else _OF_DENSE
    return {name: operators for name, operators in _ROWS_OF_BLOCK.items() if name not in left_out}


def _flat_rows(described: Described, points: TimedPoints, times: OperatorTimes) -> Iterator[tuple[Any, ...]]:
    """Rows of the file for release 0.2, with the titles as the first row. Layers and the attention of a prompt have one
    row for each number of tokens. The attention and the rotary embedding of an answer have one row for each number of
    keys.
    """
    yield ("hardware", "model", "layer_name", "input", "kv_cache", "latency(ns)")
    head, layers = (described.hardware, described.model), _block_layers(described)
    for rows in points.rows:
        for name, operators in layers.items():
            yield (*head, name, rows, 0, round(_sum(times, operators, rows)))
        yield (*head, "attn", rows, 0, round(times.prompt_ns(rows, 0)))
    turned = round(_sum(times, layers["rope"], 1))
    for requests, context in points.answers:
        yield (*head, "rope", 1, context + 1, turned)
        yield (*head, "attn", 1, context + 1, round(times.answers_ns(requests, context)))


def _layer_rows(described: Described, points: TimedPoints, times: OperatorTimes) -> Iterator[tuple[Any, ...]]:
    yield ("layer_name", "input", "kv_cache", "tp_size", "latency(ns)")
    for rows in points.rows:
        for name, operators in _block_layers(described).items():
            yield (name, rows, 0, 1, round(_sum(times, operators, rows)))
        for name, operators in _ROWS_OF_EXPERT.items() if described.mixture is not None else ():
            yield (name, rows, 0, 1, round(sum(times.expert_ns(one, rows) for one in operators)))


def _prefill_rows(points: TimedPoints, times: OperatorTimes) -> Iterator[tuple[Any, ...]]:
    yield ("kv_cache_size", "prefill_chunk_size", "prediction")
    for tokens, context in points.prompts:
        yield (context, tokens, round(times.prompt_ns(tokens, context)))


def _decode_rows(points: TimedPoints, times: OperatorTimes) -> Iterator[tuple[Any, ...]]:
    yield ("batch_size", "kv_cache_size", "prediction")
    for requests, context in points.answers:
        yield (requests, context + 1, round(times.answers_ns(requests, context)))


def _microseconds(time_ns: float) -> str:
    return repr(time_ns / 1e3)


def _dense_rows(described: Described, points: TimedPoints, times: OperatorTimes) -> Iterator[tuple[Any, ...]]:
    yield ("layer", "tokens", "time_us")
    left_out = set() if described.mixture is None else set(_OF_DENSE)
    left_out |= set() if described.has_head_norms else {"qk_norm"}
    for name, operators in _FUSED_ROWS.items():
        for rows in points.rows if name not in left_out else ():
            yield (name, rows, _microseconds(_sum(times, operators, rows)))
    for rows in points.rows:
        yield ("layernorm", rows, _microseconds(_sum(times, _BOTH_NORMS, rows) / 2))


def _sequence_rows(limits: ProfileLimits, points: TimedPoints, times: OperatorTimes) -> Iterator[tuple[Any, ...]]:
    yield ("layer", "sequences", "time_us")
    for requests in points.rows:
        if requests <= limits.requests:
            yield ("lm_head", requests, _microseconds(times.rows_ns(HEAD, requests)))


def _attention_rows(points: TimedPoints, times: OperatorTimes) -> Iterator[tuple[Any, ...]]:
    """Rows of the attention file for release 1.1, with the titles as the first row. Each row is for a step with at most
    one prompt and several answers. The prompt and the answers run one after another, so the time of a row is the sum of
    their times.
    """
    yield ("layer", "prefill_chunk", "kv_prefill", "n_decode", "kv_decode", "decode_q_len", "time_us")
    for tokens, context in ((0, 0), *points.prompts):
        prompt_ns = times.prompt_ns(tokens, context) if tokens else 0.0
        for requests, cached in ((0, 0), *points.answers):
            if tokens or requests:
                answers_ns = times.answers_ns(requests, cached) if requests else 0.0
                yield ("attention", tokens, context, requests, cached, 1, _microseconds(prompt_ns + answers_ns))


def _mixture_rows(points: TimedPoints, times: OperatorTimes) -> Iterator[tuple[Any, ...]]:
    yield ("ep", "tokens", "activated_experts", "time_us")
    for tokens, experts in points.mixtures:
        yield (1, tokens, experts, _microseconds(times.mixture_ns(tokens, experts)))


_FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
_ROTARY_LEFT_OUT = "TPU"
"""Special text in names of hardware. If the name of the hardware contains this text, the simulator leaves out the time
of positional encodings, as if it were part of the time of attention.
"""


def check_model(model: Architecture, release: str, problems: Problems) -> None:
    """Report an error for each part of a model if the release has no layers for this part. Without the error, the
    simulator would silently leave out the part.
    """
    at = ("language_model",)
    mixers = {block.mixer for block in model.blocks}
    if any(not isinstance(mixer, Attention) for mixer in mixers):
        problems.at(at, f"{release} supports only attention with cached keys and values", model.model_type)
    if len(model.kinds) > 1:
        problems.at(
            at, f"{release} supports only models whose blocks are all equal", f"{len(model.kinds)} kinds of blocks"
        )
    if any(block.norms != PRE for block in model.blocks) or model.last_norm is None:
        problems.at(
            at, f"{release} needs a norm before each part of a block, and a norm after the last block", model.model_type
        )
    for part in dict.fromkeys(block.feed_forward for block in model.blocks):
        expert = part.expert if isinstance(part, Mixture) else part
        if expert is not None and not expert.is_gated:
            problems.at(at, f"{release} supports only feed-forward parts with a gate", model.model_type)
        if isinstance(part, Mixture) and release == FLAT:
            problems.at(at, f"{release} does not support experts", model.model_type)
        if isinstance(part, Mixture) and part.shared is not None and release != BUNDLE:
            problems.at(at, f"{release} does not support shared experts", model.model_type)


def mixture_of(model: Architecture) -> MixtureSize | None:
    """Size of the mixture of experts of a model; None for a model without experts."""
    part = model.blocks[0].feed_forward
    return MixtureSize(part.experts, part.experts_per_token) if isinstance(part, Mixture) else None


def check_names(release: str, hardware: str, model: str, variant: str, problems: Problems) -> None:
    """Report an error for each name that cannot be a folder name, or that has a special meaning for the simulator."""
    if not _FOLDER.fullmatch(hardware):
        problems.at(("hardware_name",), "cannot be the name of a folder", hardware, "letters, digits, . _ + -")
    elif _ROTARY_LEFT_OUT in hardware:
        told = f"the simulator leaves out positional encodings if the name of the hardware contains {_ROTARY_LEFT_OUT}"
        problems.at(("hardware_name",), told, hardware, "another name")
    parts = model.split("/")
    if len(parts) > 2 or not all(_FOLDER.fullmatch(part) for part in parts):
        problems.at(("served_model_name",), "cannot be the name of a model", model, "such as meta-llama/Llama-3.1-8B")
    elif release == FLAT and "llama" not in model.lower():
        told = f"{release} looks up the layers of Llama only for models with llama in their name"
        problems.at(("served_model_name",), told, model, "such as meta-llama/Llama-3.1-8B")
    if not _FOLDER.fullmatch(variant):
        problems.at(("variant",), "cannot be the name of a folder", variant, "such as bf16")
