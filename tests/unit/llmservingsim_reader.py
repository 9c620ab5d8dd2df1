"""The way in which LLMServingSim reads its profiles, from its sources: the keys it looks up, and the time of a step.

Releases 0.2.1 (`inference_serving/generate_trace.py` at 89f312f), 1.0.0 (`inference_serving/trace_generator.py` at
9e3f0ec) and 1.1.0 (`serving/core/trace_generator.py` at 88e3e3f); one chip, nothing offloaded. Steps are lists of
requests (new tokens, cached tokens). A request with cached tokens and one new token is an answer.
"""

import csv
import io
import math
from bisect import bisect_right
from collections.abc import Sequence

Requests = Sequence[tuple[int, int]]
BEFORE_ATTENTION = ("input_layernorm", "q_proj", "k_proj", "v_proj", "rope")
BEHIND_ATTENTION = ("o_proj", "post_layernorm")
DENSE = ("gate_proj", "up_proj", "act_fn", "down_proj")


def rows_of(text: str, required: set[str]) -> list[dict[str, str]]:
    """Return the rows of a file; raise KeyError for a missing column, as in the simulator."""
    rows = list(csv.DictReader(io.StringIO(text)))
    if missing := required - set(rows[0]):
        raise KeyError(missing)
    return rows


def is_answer(request: tuple[int, int]) -> bool:
    """Return whether a request gets one more token."""
    return request[0] == 1 and request[1] > 0


class Flat:
    """Release 0.2.1: a table of all models on a hardware, with rows by hardware, model, layer, tokens and keys."""

    def __init__(self, files: dict[str, str], hardware: str, model: str) -> None:
        rows = rows_of(
            files[f"perf_model/{hardware}.csv"],
            {"hardware", "model", "layer_name", "input", "kv_cache", "latency(ns)"},
        )
        self.time = {
            (row["layer_name"], int(row["input"]), int(row["kv_cache"])): int(row["latency(ns)"])
            for row in rows
            if (row["hardware"], row["model"]) == (hardware, model)
        }

    def step_ns(self, requests: Requests, layers: int) -> int:
        """Return the time of a step, with attention request by request; the head sees all tokens."""
        total = sum(tokens for tokens, _ in requests)
        block = sum(self.time[name, total, 0] for name in ("input_layernorm", "q_proj", "k_proj", "v_proj"))
        block += sum(self.time[name, total, 0] for name in (*BEHIND_ATTENTION, *DENSE))
        for tokens, cached in requests:
            key = (1, cached + 1) if is_answer((tokens, cached)) else (tokens, 0)
            block += self.time["rope", *key] + self.time["attn", *key]
        ends = (
            self.time["embedding", total, 0] + self.time["final_layernorm", total, 0] + self.time["lm_head", total, 0]
        )
        return layers * block + ends


class Predictions:
    """Release 1.0.0: layers by tokens, and attention of prompts and of answers by rounded numbers."""

    def __init__(self, files: dict[str, str], hardware: str, model: str) -> None:
        folder = f"perf_models/{hardware}/{model}/tp1"
        rows = rows_of(files[f"{folder}/layers.csv"], {"layer_name", "input", "kv_cache", "tp_size", "latency(ns)"})
        self.time = {
            (row["layer_name"], int(row["input"]), int(row["kv_cache"]), int(row["tp_size"])): int(row["latency(ns)"])
            for row in rows
        }
        rows = rows_of(
            files[f"{folder}/predictions/attn_prefill_predictions.csv"],
            {"kv_cache_size", "prefill_chunk_size", "prediction"},
        )
        self.prompts = {
            (int(row["kv_cache_size"]), int(row["prefill_chunk_size"])): int(row["prediction"]) for row in rows
        }
        rows = rows_of(
            files[f"{folder}/predictions/attn_decode_predictions.csv"], {"batch_size", "kv_cache_size", "prediction"}
        )
        self.answers = {(int(row["batch_size"]), int(row["kv_cache_size"])): int(row["prediction"]) for row in rows}

    def row(self, name: str, tokens: int) -> int:
        """Return the time of a layer that sees each token alone."""
        return self.time[name, tokens, 0, 1]

    def attention_ns(self, requests: Requests) -> int:
        """Return the time of attention in one block."""
        answers = [cached + 1 for tokens, cached in requests if is_answer((tokens, cached))]
        found = 0
        if len(answers) < len(requests):
            chunk = round(math.sqrt(sum(tokens**2 for tokens, _ in requests)))
            found += self.prompts[0, math.ceil(chunk / 32) * 32]
        if answers:
            found += self.answers[len(answers), (sum(answers) // len(answers) + 63) // 64 * 64]
        return found

    def step_ns(self, requests: Requests, layers: int, experts: Sequence[int] = ()) -> int:
        """Return the time of a step; `experts` are the tokens of each expert of a block."""
        total = sum(tokens for tokens, _ in requests)
        block = sum(self.row(name, total) for name in (*BEFORE_ATTENTION, *BEHIND_ATTENTION))
        block += self.attention_ns(requests)
        if experts:
            block += self.row("gate", total)
            block += sum(
                self.row(name, max(1, one)) for one in experts for name in ("expert.w1", "expert.w2", "expert.w3")
            )
        else:
            block += sum(self.row(name, total) for name in DENSE)
        ends = self.row("embedding", total) + self.row("final_layernorm", total) + self.row("lm_head", len(requests))
        return layers * block + ends


class Bundle:
    """Release 1.1.0: tables that are interpolated linearly along each axis."""

    def __init__(self, files: dict[str, str], hardware: str, model: str, variant: str) -> None:
        folder = f"perf/{hardware}/{model}/{variant}/tp1"
        self.dense = self.by_layer(files[f"{folder}/dense.csv"], "tokens")
        self.sequences = self.by_layer(files[f"{folder}/per_sequence.csv"], "sequences")
        axes = ("prefill_chunk", "n_decode", "kv_prefill", "kv_decode")
        rows = rows_of(files[f"{folder}/attention.csv"], {*axes, "time_us"})
        self.attention: dict[tuple[int, ...], int] = {
            tuple(int(row[a]) for a in axes): nanoseconds(row) for row in rows
        }
        self.experts: dict[int, dict[int, int]] = {}
        for row in rows_of(files.get(f"{folder}/moe.csv", "tokens,activated_experts,time_us\n1,1,0"), {"time_us"}):
            self.experts.setdefault(int(row["activated_experts"]), {})[int(row["tokens"])] = nanoseconds(row)

    @staticmethod
    def by_layer(text: str, axis: str) -> dict[str, dict[int, int]]:
        """Return layer -> number -> time."""
        found: dict[str, dict[int, int]] = {}
        for row in rows_of(text, {"layer", axis, "time_us"}):
            found.setdefault(row["layer"], {})[int(row[axis])] = nanoseconds(row)
        return found

    def step_ns(self, requests: Requests, layers: int, used_experts: int = 0) -> int:
        """Return the time of a step; `used_experts` is the number of experts of a block that have tokens."""
        total = sum(tokens for tokens, _ in requests)
        block = 2 * self.row("layernorm", total) + self.attention_ns(requests)
        block += sum(self.row(name, total) for name in ("qkv_proj", "rotary_emb", "o_proj"))
        block += self.row("qk_norm", total) if "qk_norm" in self.dense else 0
        if used_experts:
            block += max(1, int(along(self.experts[used_experts], total)))
        else:
            block += sum(self.row(name, total) for name in ("gate_up_proj", "act_fn", "down_proj"))
        ends = self.row("embedding", total) + self.row("final_layernorm", total)
        return layers * block + ends + max(1, int(along(self.sequences["lm_head"], len(requests))))

    def row(self, name: str, tokens: int) -> int:
        """Return the time of a layer that sees each token alone."""
        return max(1, int(along(self.dense[name], tokens)))

    def attention_ns(self, requests: Requests) -> int:
        """Return the time of attention in one block.

        The table is indexed by the new tokens of all prompts, the number of answers, the cached tokens of all prompts,
        and the mean number of cached tokens of an answer.
        """
        prompts = [one for one in requests if not is_answer(one)]
        cached = [one[1] for one in requests if is_answer(one)]
        point = (sum(one[0] for one in prompts), len(cached), sum(one[1] for one in prompts))
        return max(1, int(self.blend((*point, sum(cached) // len(cached) if cached else 0), ())))

    def blend(self, point: tuple[int, ...], known: tuple[int, ...]) -> float:
        """Return the time at a point whose first indices are on the grid."""
        if len(known) == len(point):
            return self.attention[known]
        place = len(known)
        values = sorted({key[place] for key in self.attention if key[:place] == known})
        table = {value: self.blend(point, (*known, value)) for value in neighbours(values, point[place])}
        return along(table, point[place])


def nanoseconds(row: dict[str, str]) -> int:
    """Return the time of a row with microseconds, at least 1 ns."""
    return max(1, round(float(row["time_us"]) * 1000))


def neighbours(values: list[int], at: int) -> list[int]:
    """Return the values around a number: the first value if all are above, the last two if all are below."""
    if len(values) == 1 or at <= values[0]:
        return values[:1]
    place = min(bisect_right(values, at), len(values) - 1)
    return values[place - 1 : place + 1]


def along(table: dict[int, int] | dict[int, float], at: int) -> float:
    """Interpolate between neighbours, and extrapolate beyond the last two."""
    around = neighbours(sorted(table), at)
    if len(around) == 1:
        return table[around[0]]
    low, high = around
    return table[low] + (at - low) / (high - low) * (table[high] - table[low])
