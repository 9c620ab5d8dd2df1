"""Tables of a run: CSV and Parquet files with units in column names, and texts for the terminal with a legend."""

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tilewright.base.harmless import ended_lines
from tilewright.base.measures import EDP_PJ_CYCLES, ENERGY_PJ, LATENCY_CYCLES
from tilewright.base.profile import CORRECTED
from tilewright.base.proof import ALLOWED_ALLOCATIONS
from tilewright.base.units import microjoules_text
from tilewright.cost.ledger import LATENCY_TERMS, energy_columns, term_words
from tilewright.cost.record import LayerRecord
from tilewright.results.columns import Column, Columns, Table, frame_of, row_of
from tilewright.results.proof_text import layer_proof
from tilewright.results.records import PlacedLayer, Summary, layers_in_order, merged_layers
from tilewright.results.reported_mapping import ReportedMapping
from tilewright.results.run_columns import run_row
from tilewright.results.run_text import assumption, share_text
from tilewright.results.terminal_tables import TERMINAL_WIDTH, render, text_table
from tilewright.results.text_tables import millions, spatial_text
from tilewright.results.words import short_layer_name

if TYPE_CHECKING:
    import pandas


WORK = (
    ("MACs", "multiply-accumulates; ops: other operations, such as additions and exponentials; only those with costs"),
    ("array use", "least number of cycles that the operations need on the whole array, divided by the latency"),
)
SINGLE = (
    (
        "corrected energy, latency",
        "change for the same mappings under the corrected model; -: the run has this model",
    ),
)
MULTI = (
    (
        "gap to bound of its tiles",
        f"no schedule over {ALLOWED_ALLOCATIONS} saves more than this share of the latency; other tiles can save more",
    ),
    ("of this run", "latency of the baseline divided by the latency of the run"),
)
COSTED = "shares of the MACs and of the other operations that have costs; operations without costs count as free"
UNKNOWN = "; ?: not known, because the model has no layers for these operations"
STALLS = ("stalls and loading", "shares of the latency of the layer")
WIDTH = 110


def runs_legend(single: Sequence[Mapping[str, Any]], multi: Sequence[Mapping[str, Any]]) -> str:
    """Legend of the tables of runs; '' if there are no runs. The two arguments are the rows of the tables: runs on one
    core, and runs on several cores.
    """
    has_changes = any(row["model"] != CORRECTED.name for row in single)
    entries = [*(WORK if single else ()), *(SINGLE if has_changes else ()), *(MULTI if multi else ())]
    shares = [row[f"costed_{kind}_share"] for row in (*single, *multi) for kind in ("mac", "operation")]
    costed = ("costed", COSTED + (UNKNOWN if None in shares else ""))
    return _lines([*entries, costed]) if shares else ""


def layers_legend() -> str:
    """Legend of the table of the layers of a run."""
    return _lines([*WORK, STALLS])


def _lines(entries: Sequence[tuple[str, str]]) -> str:
    return "".join(f"{line}\n" for entry in entries for line in _wrapped(*entry))


def _wrapped(name: str, meaning: str) -> Iterator[str]:
    yield from textwrap.wrap(f"{name}: {meaning}", WIDTH, initial_indent="  ", subsequent_indent="    ")


CORRECTED_HEADING = "corrected\nenergy, latency"
COSTED_HEADING = "costed\nMACs, ops"
TOTAL_HEADINGS = ("MACs\n[10⁶]", "ops\n[10⁶]", "energy\n[µJ]", "latency\n[cycles]", "array\nuse")


def order_text(record: LayerRecord) -> str:
    """Text of the loop order of a record on one line, innermost first, such as `OX 112, OY 7`."""
    return ", ".join(f"{dimension} {size}" for dimension, size in record.loop_order)


def _of_record(key: str, sentence: str, value: Callable[[LayerRecord], Any]) -> Column[PlacedLayer]:
    """Column whose value is taken from the record of a layer."""
    return Column(key, sentence, lambda placed: value(placed.record))


def _latency_columns(placed: PlacedLayer) -> dict[str, float]:
    return {f"{part}_cycles": cycles for part, cycles in placed.record.latency_breakdown_cycles.items()}


def _use_columns(placed: PlacedLayer) -> dict[str, float]:
    return {f"mac_utilization_{use}": fraction for use, fraction in placed.record.mac_utilization.items()}


REPEATS = "repeats"
IN_PAPER = ("layer", "mac_count", ENERGY_PJ, LATENCY_CYCLES, "mac_utilization_with_offloading", "gap")
"""Columns of the table of layers in a paper."""
LAYERS: Table[PlacedLayer] = (
    Column("layer", "Name of the layer.", lambda placed: placed.name),
    _of_record(
        "operator_type",
        "Operator of the layer, as named in the network file.",
        lambda record: record.layer.operator_type,
    ),
    Column(
        "record",
        "Index of the record of the layer in `layers.jsonl`, from 0; the header does not count.",
        lambda placed: placed.record_index,
    ),
    Column(
        REPEATS,
        "Number of equal layers that the row represents; values are sums over these layers. The column is absent if no"
        " row represents several layers.",
        lambda placed: placed.repeats,
    ),
    _of_record("mac_count", "Number of multiply-accumulates.", lambda record: record.layer.mac_count),
    _of_record(
        "operation_count",
        "Number of operations other than multiply-accumulates.",
        lambda record: record.layer.operation_count,
    ),
    _of_record(ENERGY_PJ, "Energy.", lambda record: record.energy_pj),
    _of_record(LATENCY_CYCLES, "Latency.", lambda record: record.latency_cycles),
    _of_record(EDP_PJ_CYCLES, "Energy times latency.", lambda record: record.edp_pj_cycles),
    Columns("<term>_energy_pj", "Terms of the energy.", lambda placed: energy_columns(placed.record.energy_terms_pj)),
    Columns("<part>_cycles", "Parts of the latency.", _latency_columns),
    Columns(
        "mac_utilization_<up to>",
        "Use of the array: ideal cycles divided by the latency, counted up to the part in the name of the column"
        " (`spatial`, `with_stalls`, `with_onloading`, `with_offloading`).",
        _use_columns,
    ),
    _of_record(
        "corrected_energy_pj",
        "Energy of the same mapping under the corrected model; empty if the mapping does not fit.",
        lambda record: record.corrected.energy_pj,
    ),
    _of_record(
        "corrected_latency_cycles",
        "Latency of the same mapping under the corrected model; empty if the mapping does not fit.",
        lambda record: record.corrected.latency_cycles,
    ),
    _of_record(
        "spatial_mapping", "Unrolled loops by array dimension.", lambda record: spatial_text(record.spatial_mapping)
    ),
    _of_record("loop_order_innermost_first", "Temporal loops.", order_text),
    _of_record("evaluations", "Number of mappings whose costs were computed.", lambda record: record.evaluations),
    Columns(
        "proven, gap, proof_covers",
        "Whether the mapping is proven to be the best of the mappings that the proof covers; gap to the lower bound"
        " over these mappings; description of these mappings. Only for searches with bounds.",
        lambda placed: layer_proof(placed.record.search),
    ),
)
"""Columns of the table that has a row for each layer of a run on one core."""
EACH_ONCE: Table[PlacedLayer] = tuple(one for one in LAYERS if getattr(one, "key", "") != REPEATS)
"""Columns of a table in which each layer has a row of its own: all columns of LAYERS except the number of repeats."""


def layer_table(records: Sequence[LayerRecord], summary: Summary | None = None) -> "pandas.DataFrame":
    """Table with a row for each layer of the network, in execution order. The column `record` has the number of the
    layer's line in `layers.jsonl`, counted from 0.
    """
    placed = layers_in_order(records, summary)
    is_folded = any(layer.repeats > 1 for layer in placed)
    return frame_of(LAYERS if is_folded else EACH_ONCE, placed)


def reported_layers(run: ReportedMapping) -> "pandas.DataFrame":
    """Table of layers, for the report of a run."""
    return layer_table(run.records, run.summary)


def table_in_paper(run: ReportedMapping) -> "tuple[pandas.DataFrame, tuple[str, ...]]":
    """Pair (table of layers for a paper, sentences below the table). Equal layers share a row, such as `conv1 x 3`, as
    they share a bar in the figures for a paper.
    """
    layers = merged_layers(layers_in_order(run.records, run.summary))
    named = [one._replace(name=f"{one.name} x {one.repeats}") if one.repeats > 1 else one for one in layers]
    told = ("“x 2” after a name: sums over 2 equal layers, named by the first of them.",)
    return frame_of(EACH_ONCE, named), told if any(one.repeats > 1 for one in layers) else ()


def summary_text(summaries: Mapping[str, Summary], width: int = TERMINAL_WIDTH) -> str:
    """Text table of the runs for the terminal. A row has the totals of a run, and two shares of operations that have
    costs: one of the multiply-accumulates, and one of the other operations.

    If clocks differ, the table also has the latency in seconds. If the model of a run is not the corrected model, the
    table has the relative changes of energy and latency under the corrected model.
    """
    by_time, changes = _clocks_differ(summaries.values()), not all(map(_is_corrected, summaries.values()))
    *totals, use = TOTAL_HEADINGS
    headings = (*totals, *(("time\n[s]",) if by_time else ()), use, *((CORRECTED_HEADING,) if changes else ()))
    table = text_table("", ("run",), ("layers", *headings, COSTED_HEADING))
    for run, summary in summaries.items():
        row = run_row(run, summary)
        *numbers, share = _totals(row)
        time = (f"{summary['latency_s']:.4g}",) if by_time else ()
        change = (("-" if _is_corrected(summary) else _changes(row)),) if changes else ()
        table.add_row(run, str(row["layers"]), *numbers, *time, share, *change, costed_text(row))
    assumed = assumption(list(summaries.values()))
    return render(table, width) + ended_lines([f"Assumed: {assumed}."] if assumed else [])


def _is_corrected(summary: Summary) -> bool:
    """True if a run used the corrected model. Its results then need no comparison with the corrected model."""
    return bool(summary["model"] == CORRECTED.name)


def _clocks_differ(summaries: Iterable[Summary]) -> bool:
    """True if all runs have a clock, and at least two clocks differ."""
    clocks = {summary.get("clock_frequency_mhz") for summary in summaries}
    return len(clocks) > 1 and None not in clocks


def layers_text(records: Sequence[LayerRecord], summary: Summary | None = None, width: int = TERMINAL_WIDTH) -> str:
    """Text table of the layers of a run for the terminal, with a legend. The last columns have the terms of the
    latency, except the ideal cycles, as shares of the latency of the layer.
    """
    title = f"{summary['workload']} on {summary['hardware']}" if summary else ""
    terms = dict.fromkeys(part for record in records for part in record.latency_breakdown_cycles)
    parts = [(part, term_words(part)) for part in (terms or LATENCY_TERMS) if part != "ideal"]
    table = text_table(title, ("layer",), (*TOTAL_HEADINGS, *(words.replace(" ", "\n") for _, words in parts)))
    for placed in layers_in_order(records, summary):
        row = row_of(LAYERS, placed)
        shares = (f"{_ratio(row[f'{part}_cycles'], row[LATENCY_CYCLES]):.1%}" for part, _ in parts)
        also = f"{placed.repeats:,} x " if placed.repeats > 1 else ""
        table.add_row(also + short_layer_name(row["layer"], row["operator_type"], 40), *_totals(row), *shares)
    return render(table, width) + "\n" + layers_legend()


def _totals(row: dict[str, Any]) -> tuple[str, ...]:
    use = _ratio(row["ideal_cycles"], row[LATENCY_CYCLES])
    counts = (millions(row[key]) for key in ("mac_count", "operation_count"))
    return (*counts, microjoules_text(row[ENERGY_PJ]), f"{row[LATENCY_CYCLES]:,.0f}", f"{use:.1%}")


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def costed_text(row: Mapping[str, Any]) -> str:
    """Text with the shares of the multiply-accumulates and of the other operations that have costs; `?` for an unknown
    share.
    """
    shares = (share_text(row[f"costed_{kind}_share"]) for kind in ("mac", "operation"))
    return ", ".join("?" if share == "unknown" else share for share in shares)


def _changes(row: Mapping[str, Any]) -> str:
    """Text with the relative changes of energy and latency under the corrected model; `does not fit` if a mapping does
    not fit under this model.
    """
    pairs = [(row[f"corrected_{key}"], row[key]) for key in (ENERGY_PJ, LATENCY_CYCLES)]
    if any(corrected is None for corrected, _ in pairs):
        return "does not fit"
    return ", ".join(f"{_ratio(corrected - reported, reported):+.1%}" for corrected, reported in pairs)
