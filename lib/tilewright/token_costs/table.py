"""The table of a language model: a row for each batch and context, with units in the names of its columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilewright.cost.rates import time_and_power
from tilewright.hardware.core import Core, Memory
from tilewright.hardware.hierarchy import top_memories
from tilewright.hardware.static_power import clock_period_ns
from tilewright.report.text_tables import render, text_table
from tilewright.token_costs.curves import TokenCurves
from tilewright.token_costs.doubled import SIZE, saved_column
from tilewright.token_costs.layer_figures import ENERGY, LATENCY, MACS, OPERATIONS, Figures, LayerFigures
from tilewright.workload.graph import Workload
from tilewright.workload.language_models.architecture import Architecture
from tilewright.workload.language_models.kept import kept_numbers
from tilewright.workload.language_models.reader import beyond_positions
from tilewright.workload.language_models.weights import active_parameter_count, parameter_count, weight_bits

if TYPE_CHECKING:
    import pandas

COMPUTE = "compute"
NOTABLE_GAIN = 0.1
"""A memory limits where twice the width of one of its ports saves at least this share of the time."""
PJ_A_JOULE = 1e12
_BITS_A_GIBIBYTE = 8 * 2**30
_WIDTH = 160


@dataclass(frozen=True)
class TokenCosts:
    """What tokens of a model cost on a core, for batches and contexts."""

    model: str
    core: str
    parameters: int
    active_parameters: int
    weight_bits: int
    """Of all weights, with the scales of their groups."""
    memory: str
    """The memory that has to hold weights, caches and activations: the largest of the outermost ones."""
    memory_bits: int
    searched_layers: int
    rows: tuple[dict[str, Any], ...]
    notes: tuple[str, ...]

    @property
    def is_shared(self) -> bool:
        """Whether several cores share each step."""
        return bool(self.rows) and "parallel" in self.rows[0]

    @property
    def table(self) -> "pandas.DataFrame":
        """A row for each batch and context."""
        import pandas

        return pandas.DataFrame(list(self.rows))


@dataclass(frozen=True)
class Capacity:
    """The memory that has to hold weights, caches and activations, and what they take of it."""

    memory: str
    memory_bits: int
    weight_bits: int
    """Of all weights, with the scales of their groups."""
    request_bits: int
    """Of activations of one request."""
    model: Architecture
    cache_bits: int
    """Of a number that is kept."""

    def row(self, batch: int, context: int) -> dict[str, Any]:
        """What is said of the room for a batch: the first columns of a row."""
        cache = kept_numbers(self.model, context) * self.cache_bits
        most = max(0, (self.memory_bits - self.weight_bits) // (cache + self.request_bits))
        row = {"batch": batch, "context": context, "fits": batch <= most, "largest_batch": most}
        return row | {"cache_bits": batch * cache}


def capacity_of(curves: TokenCurves[Any], memory: Memory) -> Capacity:
    """The room that the model of curves has in a memory."""
    model, step = curves.described.model, curves.described.step
    one = activation_bits(curves.decode_step(1, 1))
    bits = weight_bits(model, step.precision)
    return Capacity(memory.name, memory.size_bits, bits, one, model, step.precision.cache)


def token_costs(
    curves: TokenCurves[LayerFigures], batches: Sequence[int], contexts: Sequence[int], with_prompts: bool
) -> TokenCosts:
    """The costs at all points. Raises MappingError naming each layer that nothing fits."""
    curves.search(contexts, batches, contexts if with_prompts else ())
    core = curves.figures.core
    room = capacity_of(curves, max((memory for memory, _ in top_memories(core)), key=lambda one: one.size_bits))
    prompts = {context: curves.prompt(context) for context in contexts} if with_prompts else {}
    rows = []
    for batch in batches:
        for context in contexts:
            row = room.row(batch, context) | _token_figures(curves, batch, context)
            rows.append(row | (_prompt_figures(core, prompts[context]) if with_prompts else {}))
    return token_costs_of(curves, core.name, room, rows, _notes(curves.figures))


def token_costs_of(
    curves: TokenCurves[Any], core: str, room: Capacity, rows: Sequence[dict[str, Any]], notes: tuple[str, ...]
) -> TokenCosts:
    """The costs of the model of curves, with rows that were made of them."""
    model = curves.described.model
    beyond = beyond_positions(model, max((row["context"] for row in rows), default=0))
    return TokenCosts(
        model=model.name,
        core=core,
        parameters=parameter_count(model),
        active_parameters=active_parameter_count(model),
        weight_bits=room.weight_bits,
        memory=room.memory,
        memory_bits=room.memory_bits,
        searched_layers=curves.figures.searched,
        rows=tuple(rows),
        notes=(*((beyond,) if beyond else ()), *notes),
    )


def activation_bits(workload: Workload) -> int:
    """The most bits that a layer reads and writes that are neither weights nor kept between steps."""
    kept = {name for node in workload.nodes if node.layer is None for name in (*node.inputs, *node.outputs)}
    kept &= {*workload.inputs, *workload.outputs, *(name for name in workload.tensor_of if name.endswith("_keys"))}
    most = 0
    for node in workload.nodes:
        if node.layer is not None:
            tensors = (workload.tensor_of[name] for name in {*node.inputs, *node.outputs} - kept)
            most = max(most, sum(tensor.size_bits for tensor in tensors if not tensor.is_constant))
    return most


def _token_figures(curves: TokenCurves[LayerFigures], batch: int, context: int) -> dict[str, Any]:
    found = curves.next_token(batch, context)
    row: dict[str, Any] = {
        "time_per_token_cycles": float(found[LATENCY]),
        "energy_per_token_pj": float(found[ENERGY]) / batch,
        "tokens_per_joule": batch * PJ_A_JOULE / float(found[ENERGY]),
        "mac_count": int(found[MACS]),
        "operation_count": int(found[OPERATIONS]),
    }
    known = time_and_power(clock_period_ns(curves.figures.core), float(found[LATENCY]), float(found[ENERGY]))
    if known:
        row |= {"time_per_token_s": known["latency_s"], "tokens_per_s": batch / known["latency_s"]}
    return row | limit_of(curves.figures, found)


def _prompt_figures(core: Core, found: Figures) -> dict[str, Any]:
    row = {"time_to_first_token_cycles": float(found[LATENCY]), "prompt_energy_pj": float(found[ENERGY])}
    known = time_and_power(clock_period_ns(core), float(found[LATENCY]), float(found[ENERGY]))
    return row | ({"time_to_first_token_s": known["latency_s"]} if known else {})


def limit_of(figures: LayerFigures, found: Figures) -> dict[str, Any]:
    """What limits a step, and the shares of the time that more width and more room would save.

    That is twice the width of the best port, and twice the size of each memory below the outermost ones.
    """
    wider, larger = figures.wider_cycles(found), figures.larger_cycles(found)
    gains = [max(0.0, 1 - float(cycles) / float(found[LATENCY])) for cycles in (*wider, *larger)]
    widths, sizes = gains[: len(wider)], gains[len(wider) :]
    best = max(range(len(widths)), key=lambda place: widths[place])
    port = figures.ports[best]
    row = {
        "bound_by": port.memory if widths[best] >= NOTABLE_GAIN else COMPUTE,
        "widest_gain_port": str(port) if widths[best] > 0 else "",
        "gain_of_twice_the_width": widths[best],
    }
    most = max(sizes, default=0.0)
    row |= {
        "largest_gain_memory": figures.larger[sizes.index(most)] if most > 0 else "",
        "gain_of_twice_the_size": most,
    }
    return row | {saved_column(SIZE, name): one for name, one in zip(figures.larger, sizes, strict=True)}


def _notes(figures: LayerFigures) -> tuple[str, ...]:
    left_out = [f"{row.operator_type} {row.reason}" for row in figures.uncosted.values()]
    return (f"not costed: {', '.join(left_out)}",) if left_out else ()


def tokens_text(found: TokenCosts) -> str:
    """The table for the terminal, with what its columns mean."""
    has_time = bool(found.rows) and "time_per_token_s" in found.rows[0]
    unit = "ms" if has_time else "10⁶ cycles"
    prompt = ("first token\n" + f"[{unit}]",) if found.rows and "time_to_first_token_cycles" in found.rows[0] else ()
    shared = ("parallel", f"next step\nafter [{unit}]") if found.is_shared else ()
    table = text_table(
        f"{found.model} on {found.core}: {found.parameters:,} parameters, {_gib(found.weight_bits)} of weights",
        (),
        ("batch", "context", *prompt, *shared[:1], f"a token\n[{unit}]", *shared[1:], "energy a\ntoken [mJ]",
         "tokens/s\na watt", "cache\n[GiB]", "largest\nbatch", "bound by",
         "twice the\nwidth saves", "twice the\nsize saves"),
    )  # fmt: skip
    for row in found.rows:
        cells = [f"{row['batch']:,}", f"{row['context']:,}"]
        cells += [_time(row, "time_to_first_token")] if prompt else []
        cells += [row["parallel"]] if shared else []
        cells += [_time(row, "time_per_token")]
        cells += [_time(row, "time_between_steps")] if shared else []
        cells += [f"{row['energy_per_token_pj'] / 1e9:,.3f}"]
        cells += [f"{row['tokens_per_joule']:,.3f}", f"{row['cache_bits'] / _BITS_A_GIBIBYTE:,.3f}"]
        cells += [f"{row['largest_batch']:,}" + ("" if row["fits"] else " (too few)"), row["bound_by"]]
        cells += [f"{row['gain_of_twice_the_width']:.1%}"]
        table.add_row(*cells, f"{row['gain_of_twice_the_size']:.1%}")
    return render(table, _WIDTH) + _legend(found)


def _legend(found: TokenCosts) -> str:
    lines = [
        "first token: all of a prompt of `context` tokens, one request; a token: one step of the batch, where each new",
        "  token sees `context` tokens, itself included. Largest batch: weights, caches and activations in the memory"
        f" {found.memory} ({_gib(found.memory_bits)}).",
    ]
    if found.is_shared:
        lines += [
            "parallel: how the cores share a step, the way that takes the least time of those that are looked at; next"
            " step after:",
            "  between the ends of two steps where there are always more, as a pipeline has them.",
            "bound by: the memory, or the links, of which twice the width saves"
            f" {NOTABLE_GAIN:.0%} or more of the time; else compute. Twice the size: of the memory on the chip"
            " that saves most.",
            "Layers run one after the other, each from the off-chip memory to it: times are upper bounds.",
            f"{found.searched_layers} classes of computation nodes searched.",
        ]
        if "prompt_parallel" in found.rows[0]:
            ways = dict.fromkeys(row["prompt_parallel"] for row in found.rows)
            lines.append(f"Prompts: {', '.join(ways)} parallel.")
    else:
        lines += [
            f"bound by: the memory of which a port of twice the width saves {NOTABLE_GAIN:.0%} or more of the time;"
            " else compute. Twice the size: of the memory",
            "  below the outermost ones that saves most.",
            f"{found.searched_layers} distinct layers searched.",
        ]
    return "".join(f"  {line}\n" for line in (*lines, *found.notes))


def _time(row: dict[str, Any], name: str) -> str:
    seconds = row.get(f"{name}_s")
    return f"{row[f'{name}_cycles'] / 1e6:,.3f}" if seconds is None else f"{seconds * 1e3:,.3f}"


def _gib(bits: int) -> str:
    return f"{bits / _BITS_A_GIBIBYTE:,.2f} GiB"
