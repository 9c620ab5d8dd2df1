"""Tables of a run: CSV and Parquet for programs, text for the terminal with lines that explain its columns. Units stand
in the names.

What the proofs of the exact search are about, in words and as columns of tables (docs/exact.md).
"""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tilewright.cost.ledger import LATENCY_TERMS, energy_columns, energy_terms, term_words
from tilewright.cost.rates import rates_of
from tilewright.cost.record import LayerRecord
from tilewright.errors import count_of, some_of
from tilewright.harmless import ended_lines
from tilewright.proof import ALLOWED_ALLOCATIONS, covered_text
from tilewright.report.records import PlacedLayer, Summary, layers_in_order
from tilewright.report.run_text import assumption, range_columns, setting_of, share_text
from tilewright.report.text_tables import TERMINAL_WIDTH, millions, render, spatial_text, text_table
from tilewright.report.words import short_layer_name

if TYPE_CHECKING:
    import pandas


def layer_proof(search: Mapping[str, Any]) -> dict[str, Any]:
    """Columns on the proof of a layer, from the `search` of its record; {} where the search proves nothing."""
    if "proven" not in search:
        return {}
    covered = covered_text(search.get("covers", ""), search.get("allocation"))
    return {"proven": search["proven"], "gap": search["gap"], "proof_covers": covered}


def run_proof(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Columns on the proofs of a run, from its `summary.json`; {} where the search proves nothing."""
    if "certificate" not in summary:
        return {}
    proof = summary["certificate"]
    return {
        "proven_problems": proof["proven"],
        "largest_gap": proof["largest_gap"],
        "proof_covers": "; ".join(covered_texts(proof)),
    }


def covered_texts(certificate: Mapping[str, Any]) -> list[str]:
    """What the proofs of a run cover, each text once: of most runs it is one."""
    allocations = certificate.get("allocations") or [None]
    return [covered_text(covers, one) for covers in certificate.get("covers", ()) for one in allocations]


def proof_lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """Lines for the terminal on a run: how many optima are proven, and over what; why others are not."""
    for reason, layers in summary.get("without_proof", {}).items():
        yield f"no proof for {count_of(len(layers), 'layer')} ({some_of(layers)}): {reason}"
    if "certificate" not in summary:
        return
    proof = summary["certificate"]
    counts = f"{proof['proven']} of {proof['of']} distinct layers"
    covers = covered_texts(proof)
    scope = "over orders of the spatial mappings that were tried" if not covers else f"over {covers[0]}"
    scope = "each over what it covers" if len(covers) > 1 else scope
    yield f"optimum proven for {counts}, largest gap {proof['largest_gap']:.2%}, {scope}"
    for what in covers if len(covers) > 1 else ():
        yield f"a proof covers {what}"


WORK = (
    ("MACs", "multiply-accumulates; ops: all other operations, such as comparisons, additions and exponentials"),
    ("array use", "cycles that the operations need at least on the whole array, over the latency"),
)
SINGLE = (("corrected energy, latency", "change, for the same mappings, under the model without its known faults"),)
MULTI = (
    (
        "gap to bound of its tiles",
        f"no schedule over {ALLOWED_ALLOCATIONS} saves more than this share of the latency; other tiles may",
    ),
    ("of this run", "latency of what the run is compared with, over that of the run"),
)
COSTED = "shares of the MACs and of the other operations of the network that the figures contain; the rest is free"
UNKNOWN = "; ?: not known, the model has no layers for these operations"
STALLS = ("stalls and loading", "shares of the latency of the layer")
WIDTH = 110


def runs_legend(single: Sequence[Mapping[str, Any]], multi: Sequence[Mapping[str, Any]]) -> str:
    """The legend of the tables of runs of one core and of several, given as rows of the table of runs; '' for none."""
    entries = [*(WORK + SINGLE if single else ()), *(MULTI if multi else ())]
    shares = [row[f"costed_{kind}_share"] for row in (*single, *multi) for kind in ("mac", "operation")]
    costed = ("costed", COSTED + (UNKNOWN if None in shares else ""))
    return _lines([*entries, costed]) if shares else ""


def layers_legend() -> str:
    """The legend of the table of the layers of a run."""
    return _lines([*WORK, STALLS])


def _lines(entries: Sequence[tuple[str, str]]) -> str:
    return "".join(f"{line}\n" for entry in entries for line in _wrapped(*entry))


def _wrapped(name: str, meaning: str) -> Iterator[str]:
    yield from textwrap.wrap(f"{name}: {meaning}", WIDTH, initial_indent="  ", subsequent_indent="    ")


COSTED_HEADING = "costed\nMACs, ops"
TOTAL_HEADINGS = ("MACs\n[10⁶]", "ops\n[10⁶]", "energy\n[µJ]", "latency\n[cycles]", "array\nuse")


def layer_table(records: Sequence[LayerRecord], summary: Summary | None = None) -> "pandas.DataFrame":
    """One row per layer of the network in execution order; `record` is its line (from 0) in `layers.jsonl`."""
    import pandas

    placed = layers_in_order(records, summary)
    is_folded = any(layer.repeats > 1 for layer in placed)
    return pandas.DataFrame([_layer_row(layer, is_folded) for layer in placed])


def summary_row(run: str, summary: Summary) -> dict[str, Any]:
    """The totals of one run as one flat row."""
    energy_pj, latency_cycles = summary["energy_pj"], summary["latency_cycles"]
    corrected = summary["corrected"]
    row = {
        "run": run,
        "workload": summary["workload"],
        "core": summary["core"],
        "objective": summary["objective"],
        "model": summary["model"],
        "layers": summary["layers"],
        "distinct_layers": summary["distinct_layers"],
        "mac_count": summary["mac_count"],
        "operation_count": summary["operation_count"],
        "energy_pj": energy_pj,
        "latency_cycles": latency_cycles,
        "edp_pj_cycles": summary["edp_pj_cycles"],
        **energy_columns(energy_terms(summary)),
    }
    # A network without layers has no parts.
    parts = dict.fromkeys(LATENCY_TERMS, 0) | summary["latency_breakdown_cycles"]
    row |= {f"{part}_cycles": cycles for part, cycles in parts.items()}
    return row | {
        "mac_utilization": _ratio(row["ideal_cycles"], latency_cycles),
        "area_mm2": summary["area_mm2"],
        "area_note": summary["area_note"],
        **rates_of(summary),
        **range_columns(summary),
        "corrected_energy_pj": corrected["energy_pj"],
        "corrected_latency_cycles": corrected["latency_cycles"],
        "costed_mac_share": summary.get("coverage", {}).get("mac_share"),
        "costed_operation_share": summary.get("coverage", {}).get("operation_share"),
        "layers_differing_over_5_percent": len(summary["layers_differing_over_5_percent"]),
        "evaluations": summary["evaluations"],
        "between_layers": setting_of(summary),
        "layers_below_top": summary.get("data_locality", {}).get("layers_below_top"),
        **run_proof(summary),
    }


def summary_text(summaries: Mapping[str, Summary], width: int = TERMINAL_WIDTH) -> str:
    """The runs as a text table for the terminal: totals, what the corrected model changes, and the shares of
    multiply-accumulates and of other operations that are costed."""
    headings = ("layers", *TOTAL_HEADINGS, "corrected\nenergy, latency", COSTED_HEADING)
    table = text_table("", ("run",), headings)
    for run, summary in summaries.items():
        row = summary_row(run, summary)
        table.add_row(
            run,
            str(row["layers"]),
            *_totals(row),
            _changes(row),
            costed_text(row),
        )
    assumed = assumption(list(summaries.values()))
    return render(table, width) + ended_lines([f"Assumed: {assumed}."] if assumed else [])


def layers_text(records: Sequence[LayerRecord], summary: Summary | None = None, width: int = TERMINAL_WIDTH) -> str:
    """The layers of a run as a text table for the terminal; the last columns are shares of the layer's latency."""
    title = f"{summary['workload']} on {summary['core']}" if summary else ""
    terms = dict.fromkeys(part for record in records for part in record.latency_breakdown_cycles)
    parts = [(part, term_words(part)) for part in (terms or LATENCY_TERMS) if part != "ideal"]
    table = text_table(title, ("layer",), (*TOTAL_HEADINGS, *(words.replace(" ", "\n") for _, words in parts)))
    for placed in layers_in_order(records, summary):
        row = _layer_row(placed)
        shares = (f"{_ratio(row[f'{part}_cycles'], row['latency_cycles']):.1%}" for part, _ in parts)
        also = f"{placed.repeats:,} x " if placed.repeats > 1 else ""
        table.add_row(also + short_layer_name(row["layer"], row["operator_type"], 40), *_totals(row), *shares)
    return render(table, width) + "\n" + layers_legend()


def _totals(row: dict[str, Any]) -> tuple[str, ...]:
    use = _ratio(row["ideal_cycles"], row["latency_cycles"])
    scaled = (millions(row[key]) for key in ("mac_count", "operation_count", "energy_pj"))
    return (*scaled, f"{row['latency_cycles']:,.0f}", f"{use:.1%}")


def order_text(record: LayerRecord) -> str:
    """The loop order of a record on one line, innermost first: OX 112, OY 7."""
    return ", ".join(f"{dimension} {size}" for dimension, size in record.loop_order)


def _layer_row(placed: PlacedLayer, is_folded: bool = False) -> dict[str, Any]:
    """The row of a layer; where some layer of the run stands for several it says for how many: the row is of all."""
    record = placed.record
    layer, corrected = record.layer, record.corrected
    row = {
        "layer": placed.name,
        "operator_type": layer.operator_type,
        "record": placed.record_index,
        **({"repeats": placed.repeats} if is_folded else {}),
        "mac_count": layer.mac_count,
        "operation_count": layer.operation_count,
        "energy_pj": record.energy_pj,
        "latency_cycles": record.latency_cycles,
        "edp_pj_cycles": record.edp_pj_cycles,
        **energy_columns(record.energy_terms_pj),
    }
    row |= {f"{part}_cycles": cycles for part, cycles in record.latency_breakdown_cycles.items()}
    row |= {f"mac_utilization_{use}": fraction for use, fraction in record.mac_utilization.items()}
    return row | {
        "corrected_energy_pj": corrected.energy_pj,
        "corrected_latency_cycles": corrected.latency_cycles,
        "spatial_mapping": spatial_text(record.spatial_mapping),
        "loop_order_innermost_first": order_text(record),
        "evaluations": record.evaluations,
        **layer_proof(record.search),
    }


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def costed_text(row: Mapping[str, Any]) -> str:
    """The shares of multiply-accumulates and of other operations that are costed, `?` where they are not known."""
    shares = (share_text(row[f"costed_{kind}_share"]) for kind in ("mac", "operation"))
    return ", ".join("?" if share == "unknown" else share for share in shares)


def _changes(row: Mapping[str, Any]) -> str:
    """What the model without known faults changes of energy and latency; it knows both or none."""
    pairs = [(row[f"corrected_{key}"], row[key]) for key in ("energy_pj", "latency_cycles")]
    if any(corrected is None for corrected, _ in pairs):
        return "does not fit"
    return ", ".join(f"{_ratio(corrected - reported, reported):+.1%}" for corrected, reported in pairs)
