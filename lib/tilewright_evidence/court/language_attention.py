"""Sets of measurements `llmservingsim_attention` and `aiconfigurator_attention`: attention of language models.

On GPUs, `gpu_attention` gives the estimate. On the TPU, the estimate is made as for attention in the set `tpu-v6e`. The
constants for DRAM and launches come from matrix products on the same device. The further constants of a kernel are
fitted.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tilewright.base.errors import Problem

from tilewright_evidence.court.case import Case, CourtSet, Values, in_hundred
from tilewright_evidence.court.gpu import LLMCOMPASS, constants, gpus
from tilewright_evidence.court.gpu_attention import (
    KERNEL,
    MEANINGS,
    AlikeSequences,
    AttentionCall,
    AttentionKernel,
    HeadsOfCall,
    attention_part,
)
from tilewright_evidence.court.language_devices import (
    GPU_NAMES,
    STAND_INS,
    device_of,
    known_time,
    row_problems,
    unknown,
    values_of,
)
from tilewright_evidence.court.language_products import SERVING as SERVING_PRODUCTS
from tilewright_evidence.court.language_products import salt_of
from tilewright_evidence.court.rows import read_rows
from tilewright_evidence.court.tpu import DEVICE as TPU_DEVICE
from tilewright_evidence.court.tpu import AttentionWork

SERVING_NAME, CONFIGURATOR_NAME = "llmservingsim_attention", "aiconfigurator_attention"
SHARE = 6
"""Number of hundredths of the rows on GPUs to which constants are fitted, as in the set `gpu-gemm`."""
SERVING_COLUMNS: dict[str, type | tuple[type, ...]] = {
    **{"row_id": str, "profiler": str, "device": str, "model": str, "dtype": str, "tp": int},
    **{"prefill_chunk_tokens": int, "prefill_kv_tokens": int},
    **{"decode_sequences": int, "decode_kv_tokens": int, "latency_us": float},
}
CONFIGURATOR_COLUMNS: dict[str, type | tuple[type, ...]] = {
    **{"row_id": str, "system": str, "op": str, "dtype": str, "batch": int, "isl_tokens": int},
    **{"context_tokens": int, "heads": int, "kv_heads": int, "head_dim": int, "latency_us": float},
    "roofline_flag": (str, type(None)),
}
MODELS: Mapping[str, HeadsOfCall] = {
    "meta-llama/Llama-3.1-8B": HeadsOfCall(32, 8, 128),
    "meta-llama/Llama-3.1-70B": HeadsOfCall(64, 8, 128),
    "mistralai/Mixtral-8x7B-v0.1": HeadsOfCall(32, 8, 128),
    "microsoft/Phi-mini-MoE-instruct": HeadsOfCall(32, 8, 128),
    "Qwen/Qwen3-8B": HeadsOfCall(32, 8, 128),
    "Qwen/Qwen3-32B": HeadsOfCall(64, 8, 128),
    "Qwen/Qwen3-30B-A3B-Instruct-2507": HeadsOfCall(32, 4, 128),
}
"""Heads of each model, from its published configuration."""
OTHER_MODELS = (
    "MiniMaxAI/MiniMax-M3",
    "Qwen/Qwen3.8-27B",
    "deepseek-ai/DeepSeek-V3.2-Exp",
    "deepseek-ai/DeepSeek-V3.2-Exp-16L64E",
    "zai-org/GLM-5",
)
"""Models of the source whose rows are left out, because their attention has latent keys, is linear or is sparse."""
OLD, NEW = "v0", "v1"
"""Versions of the profiler of LLMServingSim: the first word of the column `profiler`. The two versions measured
different kernels.
"""
NO_SPLITS: Mapping[str, AttentionKernel] = {"rtx_a6000": AttentionKernel(128, 32), "rtx_3090": AttentionKernel(128, 32)}
"""Kernel of the old profiler, by GPU; OTHER_NO_SPLITS for other GPUs. Each query head reads its keys separately, and no
sequence is cut. The measured times show how many keys a tile has: times grow in steps of 32 keys on the A6000, and in
steps of 64 keys on the H100.
"""
OTHER_NO_SPLITS = AttentionKernel(128, 64)
MIXED = AttentionKernel(64, 64, has_heads_outermost=True)
"""Kernel of the new profiler (vLLM 0.19) for a call with a chunk of a prompt."""
DECODING = AttentionKernel(64, 64, most_packed=64, splits=True)
"""Kernel of the new profiler for a call that only decodes."""
CONTEXT = AttentionKernel(64, 64)
GENERATION = AttentionKernel(16, 64, most_packed=32, splits=True)
"""Kernels of TensorRT-LLM for a prompt (CONTEXT), and for decoding (GENERATION)."""
SERVING_FITTED = {
    "h100": (0.403, 1.13),
    "rtx_a6000": (0.909, 0.846),
    "rtx_4090": (0.805, 3.13),
    "rtx_pro_6000": (0.648, 3.75),
}
CONFIGURATOR_FITTED = {
    "a100, prefill": (0.491, 5.82, 6.86),
    "a100, decode": (0.324, 5.6, 5.78),
    "h100, prefill": (0.51, 4.47, 12.3),
    "h100, decode": (0.0923, 2.67, 6.87),
}
"""Fitted values of the constants, in the order of `gpu_attention.MEANINGS`. In LLMServingSim, the time of a call is the
time of a launch. In TensorRT-LLM, the time of a call is fitted, because further kernels belong to the call. In
TensorRT-LLM, prompts and decoding have separate kernels with separate constants.
"""
NOT_TAKEN = ("b200_sxm", "b60", "h200_sxm", "l40s")
"""Systems of AIConfigurator whose rows are left out, because no other set has a hardware file for them."""
PREFILL, DECODE, BOTH = "prefill", "decode", "mixed"


@dataclass(frozen=True)
class _GpuAttention:
    """Row with the measured time of a call on a GPU."""

    identity: str
    gpu: str
    device: str
    """Name under which the constants of the row are fitted: the GPU, or the GPU and the phase."""
    phase: str
    drawn_by: str
    """Text of the sequences of the call, from which the rule of the set decides whether constants are fitted to the
    row.
    """
    salt: str
    heads: HeadsOfCall
    kernel: AttentionKernel
    sequences: Sequence[AlikeSequences]
    measured_us: float
    flag: str = ""

    @property
    def is_fitted(self) -> bool:
        """True if constants are fitted to this row. The rule of the set (`CourtSet.rule`) decides this."""
        return in_hundred(self.drawn_by, self.salt) < SHARE

    @cached_property
    def call(self) -> AttentionCall:
        """Call with the numbers that determine its time."""
        gpu = gpus()[self.gpu]
        return AttentionCall(gpu, [attention_part(gpu, self.heads, self.kernel, alike) for alike in self.sequences])

    def case(self, constants: Mapping[str, Values]) -> Case:
        """Measurement of the row and our predictions for it; times are in microseconds."""
        values = dict(values_of(self.gpu, SERVING_PRODUCTS.values()))
        # A call without kernels of its own before and after attention takes a launch.
        values = {KERNEL: values["launch_us"], **values, **_fitted_values(self.device, constants)}
        estimate, cause = self.call.microseconds(values)
        return Case(
            identity=self.identity,
            part=f"{self.gpu}, {self.phase}",
            group=f"{self.gpu} {self.drawn_by}",
            measured=self.measured_us,
            bound=self.call.bound,
            estimate=estimate,
            roofline=max(self.call.roofline_terms[:2]),
            roofline_terms=self.call.roofline_terms,
            limited_by=cause,
            fitted=self.is_fitted,
            explained=f"the source marks the row: {self.flag}" if self.flag else "",
        )


def _fitted_values(device: str, constants: Mapping[str, Values]) -> Values:
    return constants[device] if device in constants else constants[STAND_INS[device]]


@dataclass(frozen=True)
class _TpuAttention:
    """Row with the measured time of a call on the TPU."""

    identity: str
    phase: str
    heads: HeadsOfCall
    sequences: Sequence[AlikeSequences]
    measured_us: float
    is_fitted: bool = False
    drawn_by: None = None
    device: str = TPU_DEVICE

    @property
    def works(self) -> list[AttentionWork]:
        """Work of the sequences of each kind."""
        heads = self.heads
        return [
            AttentionWork(
                heads=heads.query,
                key_value_heads=heads.key_value,
                flops=4.0 * heads.query * heads.width * alike.pairs(),
                kv_bytes=4.0 * heads.key_value * heads.width * alike.count * alike.tokens,
                scores=float(heads.query * alike.count * alike.new_tokens * alike.tokens),
            )
            for alike in self.sequences
        ]

    def case(self, constants: Mapping[str, Values]) -> Case:
        """Measurement of the row and our predictions for it; times are in microseconds."""
        busy = [work.busy(values_of(TPU_DEVICE, constants)) for work in self.works]
        computing, moving = (sum(work.least[place] for work in self.works) / 1e3 for place in (0, 1))
        matrix, memory = (sum(times[place] for times in busy) for place in (0, 1))
        return Case(
            identity=self.identity,
            part=f"{TPU_DEVICE}, {self.phase}",
            group=f"{TPU_DEVICE} {self.identity}",
            measured=self.measured_us,
            bound=max(computing, moving),
            estimate=sum(map(max, busy)) / 1e3,
            roofline=max(computing, moving),
            roofline_terms=(computing, moving, 1.0),
            fitted_roofline=known_time(TPU_DEVICE, (computing, moving, 1.0)),
            limited_by="matrix units" if matrix > memory else "HBM",
            fitted=False,
        )


def _serving_problems(row: Mapping[str, Any]) -> Iterator[Problem]:
    if row["model"] in OTHER_MODELS:
        return
    counts = ("prefill_chunk_tokens", "prefill_kv_tokens", "decode_sequences", "decode_kv_tokens")
    devices = (*SERVING_FITTED, *STAND_INS, TPU_DEVICE)
    yield from row_problems(row, devices, {"tp": 1} | dict.fromkeys(counts, 0), "latency_us")
    if row["model"] not in MODELS:
        yield unknown("model", row["model"], tuple(MODELS))
    elif row["tp"] >= 1 and MODELS[row["model"]].query % row["tp"]:
        yield Problem("does not divide the heads", path="tp", value=repr(row["tp"]))
    if not row["profiler"].startswith((OLD, NEW)):
        yield unknown("profiler", row["profiler"], (OLD, NEW))
    if not row["prefill_chunk_tokens"] and not (row["decode_sequences"] and row["decode_kv_tokens"]):
        yield Problem("the call has no tokens", path="prefill_chunk_tokens", allowed="a chunk, or decode_sequences")
    if _is_old_gpu(row) and row["prefill_kv_tokens"] < row["prefill_chunk_tokens"]:
        allowed = "at least prefill_chunk_tokens"
        yield Problem("wrong number", path="prefill_kv_tokens", value=repr(row["prefill_kv_tokens"]), allowed=allowed)


def _is_old_gpu(row: Mapping[str, Any]) -> bool:
    """True if the row counts tokens as the old profiler does on GPUs: `prefill_kv_tokens` includes the chunk, and
    `decode_kv_tokens` is the sum over all sequences. In all other rows, `prefill_kv_tokens` does not include the
    chunk, and `decode_kv_tokens` is the number of tokens of one sequence.
    """
    return bool(row["profiler"].startswith(OLD)) and device_of(row["device"]) != TPU_DEVICE


def _sequences_of(row: Mapping[str, Any]) -> list[AlikeSequences]:
    chunk, history, count, cached = (
        row[name] for name in ("prefill_chunk_tokens", "prefill_kv_tokens", "decode_sequences", "decode_kv_tokens")
    )
    found = []
    if chunk:
        found.append(AlikeSequences(1, chunk, history if _is_old_gpu(row) else history + chunk))
    if count and _is_old_gpu(row):
        found.append(AlikeSequences(count, 1, cached / count))
    elif count:
        found.append(AlikeSequences(count, 1, cached + 1))
    return found


def _serving_row(row: Mapping[str, Any]) -> _GpuAttention | _TpuAttention:
    device, model, tp = device_of(row["device"]) or "", MODELS[row["model"]], row["tp"]
    heads = HeadsOfCall(model.query // tp, max(1, model.key_value // tp), model.width)
    chunk, count = row["prefill_chunk_tokens"], row["decode_sequences"]
    phase = BOTH if chunk and count else PREFILL if chunk else DECODE
    sequences = _sequences_of(row)
    if device == TPU_DEVICE:
        return _TpuAttention(row["row_id"], phase, heads, sequences, row["latency_us"])
    new = MIXED if chunk else DECODING
    old = NO_SPLITS.get(device, OTHER_NO_SPLITS)
    return _GpuAttention(
        identity=row["row_id"],
        gpu=device,
        device=device,
        phase=phase,
        drawn_by=f"{chunk} {row['prefill_kv_tokens']} {count} {row['decode_kv_tokens']}",
        salt=salt_of(SERVING_NAME),
        heads=heads,
        kernel=old if row["profiler"].startswith(OLD) else new,
        sequences=sequences,
        measured_us=row["latency_us"],
    )


def prepare_serving(files: Sequence[Path]) -> list[_GpuAttention | _TpuAttention]:
    """Rows of LLMServingSim, ready for predictions. Raises InputError if there are mistakes in the files."""
    rows = read_rows(files, SERVING_COLUMNS, _serving_problems)
    return [_serving_row(row) for row in rows if row["model"] not in OTHER_MODELS]


CONFIGURATOR_PHASES = {"context": PREFILL, "generation": DECODE}


def _configurator_problems(row: Mapping[str, Any]) -> Iterator[Problem]:
    numbers = {"batch": 1, "isl_tokens": 1, "context_tokens": 1, "heads": 1, "kv_heads": 1, "head_dim": 1}
    device = "a100" if row["system"] in NOT_TAKEN else row["system"]
    yield from row_problems({**row, "device": device}, ("a100", "h100"), numbers, "latency_us")
    if row["op"] not in CONFIGURATOR_PHASES:
        yield unknown("op", row["op"], tuple(CONFIGURATOR_PHASES))
    if row["kv_heads"] >= 1 and row["heads"] % row["kv_heads"]:
        yield Problem("does not divide heads", path="kv_heads", value=repr(row["kv_heads"]))


def _configurator_row(row: Mapping[str, Any]) -> _GpuAttention:
    gpu, phase = GPU_NAMES[row["system"].replace("_", "")], CONFIGURATOR_PHASES[row["op"]]
    tokens, new = (row["isl_tokens"], row["isl_tokens"]) if phase == PREFILL else (row["context_tokens"] + 1, 1)
    names = ("op", "batch", "context_tokens", "heads", "kv_heads", "head_dim")
    return _GpuAttention(
        identity=row["row_id"],
        gpu=gpu,
        device=f"{gpu}, {phase}",
        phase=phase,
        drawn_by=" ".join(str(row[name]) for name in names),
        salt=salt_of(CONFIGURATOR_NAME),
        heads=HeadsOfCall(row["heads"], row["kv_heads"], row["head_dim"]),
        kernel=CONTEXT if phase == PREFILL else GENERATION,
        sequences=[AlikeSequences(row["batch"], new, tokens)],
        measured_us=row["latency_us"],
        flag=row["roofline_flag"] or "",
    )


def prepare_configurator(files: Sequence[Path]) -> list[_GpuAttention]:
    """Rows of AIConfigurator on A100 and H100, ready for predictions. Raises InputError if there are mistakes in the
    files.
    """
    rows = read_rows(files, CONFIGURATOR_COLUMNS, _configurator_problems)
    return [_configurator_row(row) for row in rows if row["system"] not in NOT_TAKEN]


SERVING = CourtSet(
    name=SERVING_NAME,
    title="Attention of language models on H100, TPU v6e and three other GPUs",
    unit="us",
    source=SERVING_PRODUCTS.source,
    rule="calls on GPUs whose tokens and sequences have a hash"
    f" (0 to 99, salt {salt_of(SERVING_NAME)!r}) below {SHARE}",
    constants=constants(SERVING_FITTED, MEANINGS[:-1]),
    prepare=prepare_serving,
    published=(LLMCOMPASS,),
    patterns=("*.csv", "*.csv.gz"),
)
CONFIGURATOR = CourtSet(
    name=CONFIGURATOR_NAME,
    title="Attention of TensorRT-LLM on A100 and H100",
    unit="us",
    source="NVIDIA, AIConfigurator, arXiv 2601.06288; github.com/ai-dynamo/aiconfigurator 095f58a, Apache-2.0",
    rule=f"calls whose shape has a hash (0 to 99, salt {salt_of(CONFIGURATOR_NAME)!r}) below {SHARE}",
    constants=constants(CONFIGURATOR_FITTED, MEANINGS),
    prepare=prepare_configurator,
    published=(LLMCOMPASS,),
    patterns=("*.csv", "*.csv.gz"),
)
