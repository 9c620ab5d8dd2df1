"""Table of the costs of a language model, with a row for each batch and context.

Attention processes keys in blocks, and prompts are processed in chunks. All contexts therefore have the same layers
with different numbers of repetitions, and each distinct layer is searched only once.

The cost of one more token is linear in the number of key blocks. From a certain chunk on (`affine_from`), all attention
windows are full, and the cost of a chunk is an affine function of its index. The cost of a prompt is therefore a
polynomial of degree two. If a context is not a multiple of a block or chunk, the remainder has extra layers.

`TokenCurves` sums the costs of layers, and the columns of the table are computed from these sums.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tilewright.base.errors import InputError, Problem, Problems, count_of
from tilewright.base.harmless import ended_lines
from tilewright.base.json_values import JsonObject
from tilewright.base.unused import UnusedRow
from tilewright.cost.rates import time_and_power
from tilewright.results.terminal_tables import render, text_table
from tilewright.tokens.bound import LEGEND, LEGEND_OF_SEVERAL, bound_text
from tilewright.tokens.steps import ENERGY, MACS, OPERATIONS, StepFigures, Sums
from tilewright.workload.graph import Workload
from tilewright.workload.language_models.architecture import Architecture, Attention
from tilewright.workload.language_models.model import language_model_workload
from tilewright.workload.language_models.reader import DescribedModel, beyond_positions
from tilewright.workload.language_models.request import ABSORBED, DEFAULT_BLOCK, EXPANDED, ModelStep, Requests
from tilewright.workload.language_models.weights import (
    active_parameter_count,
    kept_numbers,
    parameter_count,
    weight_bits,
)

if TYPE_CHECKING:
    import pandas


IN_PAPER = (
    "batch", "context", "fits", "time_per_token_s", "time_per_token_cycles", "energy_per_token_pj", "tokens_per_joule",
    "bound_by", "bound_by_share", "time_to_first_token_s", "time_to_first_token_cycles", "prompt_energy_pj",
)  # fmt: skip
"""Columns of the table in its version for a paper."""
UNITS_IN_PAPER = {"_pj": (1e9, "mJ"), "_s": (1e-3, "ms")}
"""Units of the text for the terminal: ending of a column -> (divisor, unit). A table or figure for a paper has the same
units, unless its numbers would not be readable in these units.
"""


@dataclass
class TokenCurves:
    """Costs of a model on one or several cores, for any context and batch."""

    described: DescribedModel
    figures: StepFigures
    key_block: int = DEFAULT_BLOCK
    """Number of keys that attention processes at a time."""
    chunk: int = DEFAULT_BLOCK
    """Number of prompt tokens in one step."""
    _chunks: dict[int, Sums] = field(default_factory=dict)
    _steps: dict[tuple[int, int], Workload] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise InputError in two cases: the step states how many tokens each expert gets, although these numbers hold
        for only one step; or `chunk` is not a multiple of `key_block`.
        """
        problems = Problems()
        if not isinstance(self.described.step.experts, str):
            problems.at(
                ("experts",),
                "the numbers of tokens of the experts are valid for one step, not for a curve of several steps",
            )
        if self.chunk % self.key_block:
            problems.at(
                ("chunk",), "must be a multiple of the key block", self.chunk, f"a multiple of {self.key_block}"
            )
        problems.finish()

    def search(self, contexts: Sequence[int], batches: Sequence[int], prompts: Sequence[int]) -> None:
        """Search all layers of all contexts, batches and prompts together.

        Raises MappingError with the names of all layers for which no mapping fits. Raises InputError if a context is
        longer than the number of learned positions of the model.
        """
        self._check_positions(max((*contexts, *prompts), default=0))
        self.figures.search(self._steps_of(contexts, batches, prompts))

    def layers_of(self, contexts: Sequence[int], batches: Sequence[int], prompts: Sequence[int]) -> Workload:
        """Network with the layers of all contexts, batches and prompts.

        Entries of a mapping file select these layers by their names.
        """
        steps = self._steps_of(contexts, batches, prompts)
        return Workload(self.described.name, tuple(node for step in steps for node in step.nodes))

    def _steps_of(self, contexts: Sequence[int], batches: Sequence[int], prompts: Sequence[int]) -> list[Workload]:
        """Steps whose layers are searched, as one network per step."""
        steps = [self.decode_step(batch, context) for batch in batches for context in contexts]
        chunks = {place for prompt in prompts for place in self._chunks_built(prompt)}
        steps += [self._prompt_step(self.chunk, place * self.chunk) for place in sorted(chunks)]
        steps += [self._prompt_step(rest, prompt - rest) for prompt in prompts if (rest := prompt % self.chunk)]
        return steps

    def _check_positions(self, last: int) -> None:
        model = self.described.model
        beyond = beyond_positions(model, last)
        if beyond and model.positions:
            raise InputError(
                [Problem(beyond, path="contexts", value=str(last), allowed=f"at most {model.most_tokens}")]
            )

    def next_token(self, batch: int, context: int) -> Sums:
        """Figures of a decode step, summed over the layers of the step. The step makes one more token for each request
        of a batch.

        `context` is the number of tokens that the new token attends to, including the new token.
        """
        return self.figures.of(self.decode_step(batch, context))

    def prompt(self, tokens: int) -> Sums:
        """Figures of the prompt of one request, summed over the steps that process the prompt in chunks, up to the
        first token of the answer. `tokens` is the number of tokens of the prompt.
        """
        whole, rest = divmod(tokens, self.chunk)
        start = self.affine_from
        total = sum((self._chunk(place) for place in range(min(whole, start))), self.figures.zero)
        if (more := whole - start) > 0:
            first, step = self._chunk(start), self._chunk(start + 1) - self._chunk(start)
            total = total + more * first + (more * (more - 1) // 2) * step
        return total + self.figures.of(self._prompt_step(rest, whole * self.chunk)) if rest else total

    @property
    def affine_from(self) -> int:
        """Index (from 0) of a chunk of a prompt. From this chunk on, the cost of a whole chunk is an affine function of
        its index.
        """
        windows = [
            block.mixer.window
            for block in self.described.model.blocks
            if isinstance(block.mixer, Attention) and block.mixer.window is not None
        ]
        return math.ceil(max(windows) / self.chunk) + 1 if windows else 1

    def decode_step(self, batch: int, context: int) -> Workload:
        """Network of a decode step: one more token for each request of a batch."""
        key = (batch, context)
        if key not in self._steps:
            self._steps[key] = self._workload(Requests(batch, 1, context - 1), ABSORBED)
        return self._steps[key]

    def _chunks_built(self, tokens: int) -> list[int]:
        """Indexes (from 0) of the whole chunks of a prompt that are searched. The costs of all later whole chunks are
        extrapolated from the costs of these chunks.
        """
        whole = tokens // self.chunk
        return list(range(min(whole, self.affine_from + 2)))

    def _chunk(self, place: int) -> Sums:
        if place not in self._chunks:
            self._chunks[place] = self.figures.of(self._prompt_step(self.chunk, place * self.chunk))
        return self._chunks[place]

    def _prompt_step(self, tokens: int, context: int) -> Workload:
        return self._workload(Requests(1, tokens, context), EXPANDED if tokens > 1 else ABSORBED)

    def _workload(self, requests: Requests, latent: str) -> Workload:
        step: ModelStep = replace(
            self.described.step, groups=(requests,), latent=latent, key_block=self.key_block, is_written_out=False
        )
        return language_model_workload(self.described.model, step, self.described.name)


def spread(first: int, last: int, count: int, block: int) -> list[int]:
    """Context lengths from `first` to `last`: `count` numbers, evenly spaced on a logarithmic scale. The numbers are
    rounded to multiples of `block`, and duplicates are left out.

    Raises InputError if `first`, `last` and `count` do not define a range.
    """
    if not 1 <= first <= last or count < 1:
        raise InputError(
            f"cannot choose {count_of(count, 'context')} from {first} to {last}: the first must be at least 1 and"
            " at most the last,"
            " and the number of contexts must be at least 1"
        )
    if count == 1:
        return [last]
    ratio = math.log(last / first) / (count - 1)
    points = (first * math.exp(place * ratio) for place in range(count))
    return sorted(
        {max(1, round(point / block)) * block if point >= block else max(1, round(point)) for point in points}
    )


PJ_A_JOULE = 1e12
_BITS_A_GIBIBYTE = 8 * 2**30
_WIDTH = 160


@dataclass(frozen=True)
class TokenCosts:
    """Costs per token of a model on one or several cores, for all batches and contexts."""

    model: str
    core: str
    parameters: int
    active_parameters: int
    weight_bits: int
    """Bits of all weights, including the scales of groups of weights."""
    memory: str
    """Name of the memory that must hold weights, caches and activations."""
    memory_bits: int
    searched_layers: int
    rows: tuple[dict[str, Any], ...]
    notes: tuple[str, ...]
    unused: tuple[UnusedRow, ...] = ()
    """Unused parts of files and unused options, each with file, line, key and reason."""

    @property
    def is_shared(self) -> bool:
        """True if the table is for several cores, which share the work of each step."""
        return bool(self.rows) and "parallel" in self.rows[0]

    @property
    def table(self) -> "pandas.DataFrame":
        """Table with a row for each batch and context."""
        import pandas

        return pandas.DataFrame(list(self.rows))


@dataclass(frozen=True)
class Capacity:
    """Memory that must hold weights, caches and activations, with the bits that each of the three needs."""

    memory: str
    memory_bits: int
    weight_bits: int
    """Bits of all weights, including the scales of groups of weights."""
    request_bits: int
    """Bits of the activations of one request."""
    model: Architecture
    cache_bits: int
    """Number of bits of one element of the model's cache, such as an element of a cached key."""

    def row(self, batch: int, context: int) -> dict[str, Any]:
        """First columns of the table row for a batch at a context: batch, context, whether the memory holds this batch,
        the largest batch that it holds, and the bits of the caches.
        """
        cache = kept_numbers(self.model, context) * self.cache_bits
        most = max(0, (self.memory_bits - self.weight_bits) // (cache + self.request_bits))
        row = {"batch": batch, "context": context, "fits": batch <= most, "largest_batch": most}
        return row | {"cache_bits": batch * cache}


def capacity_of(curves: TokenCurves) -> Capacity:
    """Memory that must hold the language model of `curves`, with the numbers of bits that weights, caches and
    activations need.
    """
    model, step, memory = curves.described.model, curves.described.step, curves.figures.memory
    one = activation_bits(curves.decode_step(1, 1))
    bits = weight_bits(model, step.precision)
    return Capacity(memory.name, memory.size_bits, bits, one, model, step.precision.cache)


def token_costs(curves: TokenCurves, batches: Sequence[int], contexts: Sequence[int], with_prompts: bool) -> TokenCosts:
    """Costs for all batches and contexts.

    On several cores, the strategy with the least time is chosen for each batch and context. Raises InputError if the
    requested strategy cannot share a batch. Raises MappingError with the names of all layers that have no fitting
    mapping or no schedule.
    """
    figures, model = curves.figures, curves.described.model
    figures.check(batches)
    curves.search(contexts, batches, contexts if with_prompts else ())
    room = capacity_of(curves)
    prompts = {context: _prompt(curves, context) for context in contexts} if with_prompts else {}
    rows = [
        room.row(batch, context) | _token(curves, batch, context) | prompts.get(context, {})
        for batch in batches
        for context in contexts
    ]
    beyond = beyond_positions(model, max((row["context"] for row in rows), default=0))
    return TokenCosts(
        model=model.name,
        core=figures.name,
        parameters=parameter_count(model),
        active_parameters=active_parameter_count(model),
        weight_bits=room.weight_bits,
        memory=room.memory,
        memory_bits=room.memory_bits,
        searched_layers=figures.searched,
        rows=tuple(rows),
        notes=(*((beyond,) if beyond else ()), *figures.notes(room.weight_bits)),
    )


def activation_bits(workload: Workload) -> int:
    """Largest number of bits that one layer reads and writes.

    Weights, and data that are kept between steps, are not counted.
    """
    kept = {name for node in workload.nodes if node.layer is None for name in (*node.inputs, *node.outputs)}
    kept &= {*workload.inputs, *workload.outputs, *(name for name in workload.tensor_of if name.endswith("_keys"))}
    most = 0
    for node in workload.nodes:
        if node.layer is not None:
            tensors = (workload.tensor_of[name] for name in {*node.inputs, *node.outputs} - kept)
            most = max(most, sum(tensor.size_bits for tensor in tensors if not tensor.is_constant))
    return most


def _token(curves: TokenCurves, batch: int, context: int) -> JsonObject:
    """Table columns on a decode step: one more token for each request of a batch."""
    figures, clock = curves.figures, curves.figures.clock_period_ns
    ways = figures.runs(curves.next_token(batch, context), batch)
    best = min(ways, key=lambda way: way.latency_cycles)
    cycles = {"time_per_token": best.latency_cycles}
    cycles |= {"time_between_steps": best.interval_cycles} if best.strategy else {}
    energy = float(best.figures[ENERGY])
    row: dict[str, Any] = {"parallel": best.strategy} if best.strategy else {}
    row |= {f"{name}_cycles": value for name, value in cycles.items()}
    per_joule = batch * PJ_A_JOULE / energy if energy else None  # None: a hardware file without energies
    row |= {"energy_per_token_pj": energy / batch, "tokens_per_joule": per_joule}
    row |= {"mac_count": int(best.figures[MACS]), "operation_count": int(best.figures[OPERATIONS])}
    if clock is not None:
        row |= {f"{name}_s": _seconds(clock, value) for name, value in cycles.items()}
        row |= {"tokens_per_s": batch / _seconds(clock, best.interval_cycles)}
    row |= figures.limit(best, curves.decode_step(batch, context), batch)
    return row | {f"{way.strategy}_time_per_token_cycles": way.latency_cycles for way in ways if way.strategy}


def _prompt(curves: TokenCurves, tokens: int) -> JsonObject:
    """Table columns on the prompt of one request. If cores are data parallel, each core processes some tokens of the
    prompt.
    """
    figures, clock = curves.figures, curves.figures.clock_period_ns
    best = min(figures.runs(curves.prompt(tokens), tokens), key=lambda way: way.latency_cycles)
    row: dict[str, Any] = {"prompt_parallel": best.strategy} if best.strategy else {}
    row |= {"time_to_first_token_cycles": best.latency_cycles, "prompt_energy_pj": float(best.figures[ENERGY])}
    return row | ({} if clock is None else {"time_to_first_token_s": _seconds(clock, best.latency_cycles)})


def _seconds(clock_period_ns: float, cycles: float) -> float:
    return time_and_power(clock_period_ns, cycles, 0.0)["latency_s"]


def tokens_text(found: TokenCosts) -> str:
    """Text of the table for the terminal, with an explanation of its columns."""
    has_time = bool(found.rows) and "time_per_token_s" in found.rows[0]
    unit = "ms" if has_time else "10⁶ cycles"
    prompt = ("first token\n" + f"[{unit}]",) if found.rows and "time_to_first_token_cycles" in found.rows[0] else ()
    has_kinds = bool(found.rows) and "array_busy" in found.rows[0]
    part = "part" if found.is_shared else "port"
    shared = ("parallel", f"next step\nafter [{unit}]") if found.is_shared else ()
    table = text_table(
        f"{found.model} on {found.core}: {found.parameters:,} parameters, {_gib(found.weight_bits)} of weights",
        (),
        ("batch", "context", *prompt, *shared[:1], f"a token\n[{unit}]", *shared[1:], "energy a\ntoken [mJ]",
         "tokens/s\na watt", "cache\n[GiB]", "largest\nbatch", "bound by", *(("array\nbusy",) if has_kinds else ()),
         f"one {part}\ntwice as wide", "twice the\nsize saves"),
    )  # fmt: skip
    for row in found.rows:
        cells = [f"{row['batch']:,}", f"{row['context']:,}"]
        cells += [_time(row, "time_to_first_token")] if prompt else []
        cells += [row["parallel"]] if shared else []
        cells += [_time(row, "time_per_token")]
        cells += [_time(row, "time_between_steps")] if shared else []
        cells += [f"{row['energy_per_token_pj'] / 1e9:,.3f}"]
        per_joule = row["tokens_per_joule"]
        cells += ["" if per_joule is None else f"{per_joule:,.3f}", f"{row['cache_bits'] / _BITS_A_GIBIBYTE:,.3f}"]
        cells += [f"{row['largest_batch']:,}" + ("" if row["fits"] else " (too few)"), bound_text(row)]
        cells += [f"{row['array_busy']:.1%}"] if has_kinds else []
        cells += [f"-{row['gain_of_twice_the_width']:.1%}"]
        table.add_row(*cells, f"{row['gain_of_twice_the_size']:.1%}")
    return render(table, _WIDTH) + _legend(found)


def _legend(found: TokenCosts) -> str:
    lines = [
        "first token: time of a whole prompt of `context` tokens, for one request; a token: time of one step of the",
        "  batch, in which each new token attends to `context` tokens, including itself. Largest batch: largest batch",
        f"  for which weights, caches and activations fit into the memory {found.memory} ({_gib(found.memory_bits)}).",
    ]
    if found.is_shared:
        lines += [
            "parallel: the fastest of the strategies that were tried for sharing a step among the cores.",
            "next step after: time between the ends of two successive steps; in a pipeline, steps overlap.",
            *f"bound by: {LEGEND_OF_SEVERAL}".splitlines(),
            "  Twice the size saves: largest share of the time that doubling the size of one on-chip memory saves.",
            "Layers run one after the other, and each reads and writes the off-chip memory: times are upper bounds.",
            f"{found.searched_layers} classes of computation nodes searched.",
        ]
        if "prompt_parallel" in found.rows[0]:
            ways = dict.fromkeys(row["prompt_parallel"] for row in found.rows)
            lines.append(f"Prompts: {', '.join(ways)} parallel.")
    else:
        lines += [
            *f"bound by: {LEGEND}".splitlines(),
            "  array busy: share of the time in which all units of the array work. Twice the size saves: largest share",
            "  of the time that doubling the size of one memory saves (the outermost memories are not tried).",
            f"{found.searched_layers} distinct layers searched.",
        ]
    return ended_lines((*lines, *found.notes), "  ")


def _time(row: dict[str, Any], name: str) -> str:
    seconds = row.get(f"{name}_s")
    return f"{row[f'{name}_cycles'] / 1e6:,.3f}" if seconds is None else f"{seconds * 1e3:,.3f}"


def _gib(bits: int) -> str:
    return f"{bits / _BITS_A_GIBIBYTE:,.2f} GiB"
