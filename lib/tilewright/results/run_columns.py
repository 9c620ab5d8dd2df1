"""Columns of runs for tables and the page; each column is declared once for both flows.

`summary.csv`, the tables of the page, texts and docs/artifacts.md are made from `run_columns`. A column gives a value
of a summary: None if it is not known, or ABSENT if it does not apply, in which case the run has no such column. To add
a column, enter a `Column` in `ENTERED` under a name.
"""

from collections.abc import Callable, Mapping
from typing import Any

from tilewright.base.measures import AREA_MM2, EDP_PJ_CYCLES, ENERGY_PJ, LATENCY_CYCLES
from tilewright.base.registry import Registry, taken
from tilewright.base.steps import MULTI, SINGLE
from tilewright.cost.ledger import LATENCY_TERMS, energy_columns, energy_terms
from tilewright.multicore.scheduling.energy_ledger import ON_CORE, further_terms, moved_pj, term_pj, terms_of_summary
from tilewright.results.columns import ABSENT, Column, Columns, row_of
from tilewright.results.proof_text import run_proof
from tilewright.results.records import Summary
from tilewright.results.run_text import DONE, bits_text, range_columns, setting_of

RUN = "run"
"""Column with the name of a run, the first of each table."""
BASELINES = {"layer_by_layer": "layer by layer", "single_core": "one core"}
"""Words for each baseline."""


Value = Callable[[Summary], Any]
RunColumn = Column[Summary] | Columns[Summary]


def flow_of(summary: Summary) -> str:
    """Flow of the run of a summary."""
    return MULTI if "cn_count" in summary else SINGLE


def _given(key: str) -> Value:
    return lambda summary: summary[key]


def _if_given(key: str) -> Value:
    return lambda summary: summary.get(key, ABSENT)


def _either(one_core: Value, several_cores: Value) -> Value:
    return lambda summary: (several_cores if flow_of(summary) == MULTI else one_core)(summary)


def _coverage(key: str) -> Value:
    return lambda summary: summary.get("coverage", {}).get(key)


def _bound(key: str) -> Value:
    return lambda summary: (summary["lower_bound"] or {}).get(key)


def _terms(summary: Summary) -> Mapping[str, Any]:
    """Energy terms of the layers, or further terms of a schedule."""
    if flow_of(summary) == MULTI:
        return energy_columns(further_terms(terms_of_summary(summary["energy"])))
    return energy_columns(energy_terms(summary))


def _latency_parts(summary: Summary) -> Mapping[str, Any]:
    """Parts of the latency on one core; {} for a network without layers."""
    parts = dict.fromkeys(LATENCY_TERMS, 0) | summary["latency_breakdown_cycles"]
    return {f"{part}_cycles": cycles for part, cycles in parts.items()}


def _array_use(summary: Summary) -> float:
    ideal, latency = _latency_parts(summary)["ideal_cycles"], summary[LATENCY_CYCLES]
    return float(ideal / latency) if latency else 0.0


def _baselines(summary: Summary) -> Mapping[str, Any]:
    return {
        f"{baseline['name']}_{key}": baseline[key]
        for baseline in summary.get("baselines", ())
        if baseline["name"] in BASELINES
        for key in (ENERGY_PJ, LATENCY_CYCLES)
    }


NAME = Column(RUN, "Name of the run.", _given(RUN), "run", is_number=False)
"""Column that is the first of each table."""
_RATES = (
    Column("clock_frequency_mhz", "Frequency of the clock.", _if_given("clock_frequency_mhz")),
    Column("latency_s", "Latency in seconds.", _if_given("latency_s"), "time", "s", is_cost=True),
    Column("power_w", "Mean power, static power included.", _if_given("power_w"), "power", "W", is_cost=True),
    Column("static_power_w", "Power that is drawn whether anything runs or not.", _if_given("static_power_w")),
    Column("tops", "10¹² operations a second; a MAC is two.", _if_given("tops")),
    Column("tops_per_w", "The same a watt.", _if_given("tops_per_w"), "TOP/s/W"),
    Column("tops_per_mm2", "The same a mm².", _if_given("tops_per_mm2")),
)
"""Rates, present if the clock is known."""

BUILT_IN: tuple[RunColumn, ...] = (
    Column("flow", "`single`: one core, `multi`: several cores.", flow_of, "flow", is_number=False),
    Column("state", "`done`, or why there is no result.", lambda _: DONE, "state", is_number=False),
    Column("workload", "Name of the network.", _given("workload"), "network", is_number=False),
    Column("hardware", "Name of the core or accelerator.", _given("hardware"), "hardware", is_number=False),
    Column("objective", "What was minimised.", _given("objective"), "objective", is_number=False),
    Column("model", "Cost model.", _given("model"), "model", is_number=False),
    Column("schedule_model", "Model of schedules.", _given("schedule_model"), flow=MULTI),
    Column("layers", "Layers of the network.", _given("layers"), "layers"),
    Column("distinct_layers", "Layers that differ.", _given("distinct_layers"), flow=SINGLE),
    Column(
        "operand_bits",
        "Bits of the operands, several where layers differ; `O` are partial sums.",
        bits_text,
        "bits",
        is_number=False,
    ),
    Column("mac_count", "Multiply-accumulates that are costed.", _either(_given("mac_count"), _coverage("mac_count"))),
    Column(
        "operation_count",
        "Other operations that are costed.",
        _either(_given("operation_count"), _coverage("operation_count")),
    ),
    Column(ENERGY_PJ, "Energy of the network.", _given(ENERGY_PJ), "energy", "µJ", 1e6, is_cost=True),
    Column(LATENCY_CYCLES, "Latency of the network.", _given(LATENCY_CYCLES), "latency", "cycles", is_cost=True),
    Column(EDP_PJ_CYCLES, "Energy times latency.", _given(EDP_PJ_CYCLES), "EDP", "J cycles", 1e12, is_cost=True),
    Column(
        "on_core_energy_pj",
        "Energy on cores.",
        lambda summary: term_pj(terms_of_summary(summary["energy"])[ON_CORE]),
        flow=MULTI,
    ),
    Column(
        "moved_data_energy_pj",
        "Energy of data that moves between cores and off-chip memory.",
        lambda summary: moved_pj(terms_of_summary(summary["energy"])),
        flow=MULTI,
    ),
    Columns("<term>_energy_pj", "Terms of the energy on one core; further terms of a schedule.", _terms),
    Columns("<part>_cycles", "Parts of the latency.", _latency_parts, flow=SINGLE),
    Column("mac_utilization", "Ideal cycles over the latency.", _array_use, "array use", "%", 0.01, flow=SINGLE),
    Column(AREA_MM2, "Area of the chip; empty: not known.", _given(AREA_MM2), "area", "mm²", is_cost=True),
    Column("area_note", "Why the area is not known, or what it lacks.", _given("area_note")),
    *_RATES,
    Columns(
        "energy_low_pj, energy_high_pj, area_low_mm2, area_high_mm2",
        "Ends of energy and area where costs have ranges.",
        range_columns,
    ),
    Column(
        "corrected_energy_pj",
        "Energy of the same mappings without the known faults of the model; empty: they do not fit.",
        lambda summary: summary["corrected"][ENERGY_PJ],
        "corrected energy",
        "µJ",
        1e6,
        is_cost=True,
        flow=SINGLE,
    ),
    Column(
        "corrected_latency_cycles",
        "Latency of the same.",
        lambda summary: summary["corrected"][LATENCY_CYCLES],
        "corrected latency",
        "cycles",
        is_cost=True,
        flow=SINGLE,
    ),
    Column(
        "costed_mac_share",
        "Share of the multiply-accumulates that is costed; empty: not known.",
        _coverage("mac_share"),
        "costed MACs",
        "%",
        0.01,
    ),
    Column(
        "costed_operation_share",
        "Share of the other operations that is costed; empty: not known.",
        _coverage("operation_share"),
        "costed other operations",
        "%",
        0.01,
    ),
    Column(
        "layers_differing_over_5_percent",
        "Layers whose corrected figures differ by more.",
        lambda summary: len(summary["layers_differing_over_5_percent"]),
        flow=SINGLE,
    ),
    Column("evaluations", "Mappings that were costed.", _given("evaluations"), flow=SINGLE),
    Column(
        "between_layers",
        "Where data is between layers: `top memory`, or `kept below` it where there is room.",
        setting_of,
        flow=SINGLE,
    ),
    Column(
        "layers_below_top",
        "Layers for which that makes a difference, or would.",
        lambda summary: summary.get("data_locality", {}).get("layers_below_top"),
        flow=SINGLE,
    ),
    Columns(
        "proven_problems, largest_gap, objective_lower_bound, objective_gap, proof_covers",
        "Layers with a proof, the largest gap of the others; lower bound of the objective of the network, in its units,"
        " and the gap to it; over what all hold.",
        run_proof,
        flow=SINGLE,
    ),
    Column("cn_count", "Computation nodes.", _given("cn_count"), flow=MULTI),
    Column(
        "lower_bound_latency_cycles",
        "Lower bound of the latency over schedules of these tiles.",
        _bound(LATENCY_CYCLES),
        flow=MULTI,
    ),
    Column("lower_bound_energy_pj", "Lower bound of their energy.", _bound(ENERGY_PJ), flow=MULTI),
    Column(
        "gap_latency",
        "Share of the latency above its bound over schedules of these tiles.",
        _given("gap_latency"),
        "latency above the bound of its tiles",
        "%",
        0.01,
        flow=MULTI,
    ),
    Column(
        "gap_energy",
        "Share of the energy above its bound over schedules of these tiles.",
        _given("gap_energy"),
        "energy above the bound of its tiles",
        "%",
        0.01,
        flow=MULTI,
    ),
    Columns(
        "single_core_energy_pj, single_core_latency_cycles, layer_by_layer_energy_pj, layer_by_layer_latency_cycles",
        "What the run is compared with: the best single core, and layer by layer on all cores.",
        _baselines,
        flow=MULTI,
    ),
)
"""Columns in the order of tables, after the name of the run."""


def _fault(name: str, entry: object) -> str:
    if not isinstance(entry, Column | Columns):
        return f"is a {type(entry).__name__}, not a Column"
    keys = {RUN, *(one.key for one in BUILT_IN if isinstance(one, Column))}
    return taken(entry.key, keys) if isinstance(entry, Column) else ""


ENTERED: Registry[Column[Summary]] = Registry(__name__, _fault)
"""Registry of further columns, which come last."""


def run_columns() -> tuple[RunColumn, ...]:
    """All columns in the order of tables."""
    return (*BUILT_IN, *(ENTERED[name] for name in ENTERED.names))


def run_row(run: str, summary: Summary) -> dict[str, Any]:
    """Totals of a run of either flow as one flat row. Raises InputError if two columns have the same name."""
    flow = flow_of(summary)
    return row_of((NAME, *(one for one in run_columns() if one.flow in ("", flow))), {RUN: run, **summary})
