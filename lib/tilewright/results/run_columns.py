"""Columns of runs, for tables and the page of results; runs on one core and on several cores use the same columns.

`summary.csv`, the tables of the page, texts and docs/artifacts/tables.md are made from `run_columns`. A column computes
its value from a summary. The value is None if it is not known, and ABSENT if the column does not apply to the run. To
add a column, enter a `Column` in `ENTERED` under a name.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from numbers import Real
from typing import Any

from tilewright.base.errors import InputError, Problem
from tilewright.base.measures import AREA_MM2, EDP_PJ_CYCLES, ENERGY_PJ, LATENCY_CYCLES
from tilewright.base.registry import Member, Registry, lacking, taken
from tilewright.base.steps import MULTI, SINGLE
from tilewright.cost.ledger import LATENCY_TERMS, energy_columns, energy_terms
from tilewright.multicore.scheduling.energy_ledger import ON_CORE, further_terms, moved_pj, term_pj, terms_of_summary
from tilewright.results.columns import ABSENT, Column, Columns, row_of
from tilewright.results.front_text import front_columns
from tilewright.results.proof_text import run_proof
from tilewright.results.records import Summary
from tilewright.results.run_text import DONE, bits_text, range_columns, setting_of

RUN = "run"
"""Key of the column with the name of a run, which is the first column of each table."""
BASELINES = {"layer_by_layer": "layer by layer", "single_core": "one core"}
"""Text for each baseline, by the name of the baseline."""


Value = Callable[[Summary], Any]
RunColumn = Column[Summary] | Columns[Summary]


def flow_of(summary: Summary) -> str:
    """Flow of the run of a summary: SINGLE for one core, MULTI for several cores."""
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
    """Columns of energy terms. For a run on one core, there is a column for each term. For a schedule, the energy on
    the cores and the energy of moved data have no column here.
    """
    if flow_of(summary) == MULTI:
        return energy_columns(further_terms(terms_of_summary(summary["energy"])))
    return energy_columns(energy_terms(summary))


def _latency_parts(summary: Summary) -> Mapping[str, Any]:
    """Parts of the latency on one core, as columns."""
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
"""First column of each table of runs."""
_RATES = (
    Column("clock_frequency_mhz", "Frequency of the clock.", _if_given("clock_frequency_mhz")),
    Column("latency_s", "Latency in seconds.", _if_given("latency_s"), "time", "s", is_cost=True),
    Column("power_w", "Mean power, including static power.", _if_given("power_w"), "power", "W", is_cost=True),
    Column("static_power_w", "Static power, which is drawn all the time.", _if_given("static_power_w")),
    Column("tops", "10¹² operations per second; a MAC counts as two operations.", _if_given("tops")),
    Column("tops_per_w", "10¹² operations per second and watt.", _if_given("tops_per_w"), "TOP/s/W"),
    Column("tops_per_mm2", "10¹² operations per second and mm².", _if_given("tops_per_mm2")),
)
"""Columns that have values only for runs with a known clock frequency."""

BUILT_IN: tuple[RunColumn, ...] = (
    Column("flow", "`single`: one core, `multi`: several cores.", flow_of, "flow", is_number=False),
    Column("state", "`done`, or the reason why there is no result.", lambda _: DONE, "state", is_number=False),
    Column("workload", "Name of the network.", _given("workload"), "network", is_number=False),
    Column("hardware", "Name of the core or accelerator.", _given("hardware"), "hardware", is_number=False),
    Column("objective", "Objective that was minimised.", _given("objective"), "objective", is_number=False),
    Column("model", "Cost model.", _given("model"), "model", is_number=False),
    Column("schedule_model", "Model of schedules.", _given("schedule_model"), flow=MULTI),
    Column("layers", "Number of layers of the network.", _given("layers"), "layers"),
    Column("distinct_layers", "Number of distinct layers.", _given("distinct_layers"), flow=SINGLE),
    Column(
        "operand_bits",
        "Precision of each operand in bits, with several numbers if layers differ; `O` are partial sums.",
        bits_text,
        "bits",
        is_number=False,
    ),
    Column(
        "mac_count",
        "Number of multiply-accumulates that have costs.",
        _either(_given("mac_count"), _coverage("mac_count")),
    ),
    Column(
        "operation_count",
        "Number of operations other than multiply-accumulates that have costs.",
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
        "Energy of data that move between cores or from and to the off-chip memory.",
        lambda summary: moved_pj(terms_of_summary(summary["energy"])),
        flow=MULTI,
    ),
    Columns(
        "<term>_energy_pj",
        "Terms of the energy. For a run on several cores, only terms other than the energy on cores and the energy of"
        " moved data.",
        _terms,
    ),
    Columns("<part>_cycles", "Parts of the latency.", _latency_parts, flow=SINGLE),
    Column("mac_utilization", "Ideal cycles divided by the latency.", _array_use, "array use", "%", 0.01, flow=SINGLE),
    Column(AREA_MM2, "Area of the chip; empty if not known.", _given(AREA_MM2), "area", "mm²", is_cost=True),
    Column("area_note", "Reason why the area is not known, or the parts whose area is missing.", _given("area_note")),
    *_RATES,
    Columns(
        "energy_low_pj, energy_high_pj, area_low_mm2, area_high_mm2",
        "Smallest and largest energy and area, if costs have ranges.",
        range_columns,
    ),
    Column(
        "corrected_energy_pj",
        "Energy of the same mappings under the corrected model; empty if a mapping does not fit.",
        lambda summary: summary["corrected"][ENERGY_PJ],
        "corrected energy",
        "µJ",
        1e6,
        is_cost=True,
        flow=SINGLE,
    ),
    Column(
        "corrected_latency_cycles",
        "Latency of the same mappings under the corrected model; empty if a mapping does not fit.",
        lambda summary: summary["corrected"][LATENCY_CYCLES],
        "corrected latency",
        "cycles",
        is_cost=True,
        flow=SINGLE,
    ),
    Column(
        "costed_mac_share",
        "Share of the multiply-accumulates that have costs; empty if not known.",
        _coverage("mac_share"),
        "costed MACs",
        "%",
        0.01,
    ),
    Column(
        "costed_operation_share",
        "Share of the operations other than multiply-accumulates that have costs; empty if not known.",
        _coverage("operation_share"),
        "costed other operations",
        "%",
        0.01,
    ),
    Column(
        "layers_differing_over_5_percent",
        "Number of layers whose energy or latency changes by more than 5 % under the corrected model.",
        lambda summary: len(summary["layers_differing_over_5_percent"]),
        flow=SINGLE,
    ),
    Column("evaluations", "Number of mappings whose costs were computed.", _given("evaluations"), flow=SINGLE),
    Column(
        "between_layers",
        "Place of data between layers: `top memory`, or `kept below` (in lower memories if there is room).",
        setting_of,
        flow=SINGLE,
    ),
    Column(
        "layers_below_top",
        "Number of layers with an operand that is kept in lower memories and never uses the top memory. If"
        " `between_layers` is `top memory`, the number counts the layers for which this would be possible.",
        lambda summary: summary.get("data_locality", {}).get("layers_below_top"),
        flow=SINGLE,
    ),
    Columns(
        "proven_problems, largest_gap, objective_lower_bound, objective_gap, proof_covers",
        "Number of distinct layers with a proven optimum; largest gap of the other layers; lower bound of the objective"
        " of the network, in the units of the objective; gap to this bound; mappings over which the proofs hold.",
        run_proof,
        flow=SINGLE,
    ),
    Columns(
        "front_points, front_largest_miss, front_knee_energy_pj, front_knee_latency_cycles, front_least_energy_pj,"
        " front_least_energy_latency_cycles, front_least_latency_cycles, front_least_latency_energy_pj",
        "Pareto front of the network, only with the option `front`: number of points; largest miss x (for every"
        " covered mapping, some point has at most 1 + x times its energy and its latency; empty if not bounded); energy"
        " and latency of the knee; energy and latency of the point with the least energy; latency and energy of the"
        " point with the least latency.",
        front_columns,
        flow=SINGLE,
    ),
    Column("cn_count", "Number of computation nodes.", _given("cn_count"), flow=MULTI),
    Column(
        "lower_bound_latency_cycles",
        "Lower bound of the latency over all schedules with the tiles of the run.",
        _bound(LATENCY_CYCLES),
        flow=MULTI,
    ),
    Column(
        "lower_bound_energy_pj",
        "Lower bound of the energy over all schedules with the tiles of the run.",
        _bound(ENERGY_PJ),
        flow=MULTI,
    ),
    Column(
        "gap_latency",
        "Share of the latency that is above `lower_bound_latency_cycles`.",
        _given("gap_latency"),
        "latency above the bound of its tiles",
        "%",
        0.01,
        flow=MULTI,
    ),
    Column(
        "gap_latency_if_copied",
        "Share of the latency that is above the lower bound over schedules that copy data into a core before use if the"
        " data fit.",
        lambda summary: summary.get("gap_latency_if_copied"),
        flow=MULTI,
    ),
    Column(
        "gap_energy",
        "Share of the energy that is above `lower_bound_energy_pj`.",
        _given("gap_energy"),
        "energy above the bound of its tiles",
        "%",
        0.01,
        flow=MULTI,
    ),
    Columns(
        "single_core_energy_pj, single_core_latency_cycles, layer_by_layer_energy_pj, layer_by_layer_latency_cycles",
        "Energy and latency of the baselines: the best single core, and layer by layer on all cores.",
        _baselines,
        flow=MULTI,
    ),
)
"""Built-in columns of a table of runs, in the order of the table. The column with the name of the run (`NAME`) comes
before them.
"""


def _fault(name: str, entry: object) -> str:
    if not isinstance(entry, Column | Columns):
        return f"is a {type(entry).__name__}, not a Column"
    if isinstance(entry, Columns):
        return lacking(entry, (Member("values", ("run",)),))
    keys = {RUN, *(one.key for one in BUILT_IN if isinstance(one, Column))}
    return taken(entry.key, keys) or lacking(entry, (Member("value", ("run",)),))


ENTERED: Registry[Column[Summary]] = Registry(__name__, _fault)
"""Registry of columns that users add to the tables of runs. These columns follow the built-in columns."""


def run_columns() -> tuple[RunColumn, ...]:
    """Columns of the tables of runs, in the order of the tables: the built-in columns, then those that users added. The
    values of added columns are checked.
    """
    return (*BUILT_IN, *(_checked(name, ENTERED[name]) for name in ENTERED.names))


def _checked(name: str, column: RunColumn) -> RunColumn:
    """Column of a plug-in whose values are checked. Its functions raise InputError for a value that is not a finite
    number, a text, None, or ABSENT.
    """
    if isinstance(column, Columns):
        values = column.values
        return replace(column, values=lambda run: {key: _sound(name, key, one) for key, one in values(run).items()})
    value = column.value
    return replace(column, value=lambda run: _sound(name, column.key, value(run)))


def _sound(name: str, key: str, value: Any) -> Any:
    """Value of a column of the plug-in `name`. Raises InputError for a value that a table cannot hold."""
    is_number = isinstance(value, Real) and math.isfinite(value)
    if not is_number and value is not None and value is not ABSENT and not isinstance(value, str):
        message, allowed = f"is not a valid value of the column {key}", "a finite number, a text, None, or ABSENT"
        raise InputError([Problem(message, f"plug-in {name}", value=repr(value)[:80], allowed=allowed)])
    return value


def run_row(run: str, summary: Summary) -> dict[str, Any]:
    """Totals of a run on one core or on several cores, by column name. Raises InputError if two columns have the same
    name.
    """
    flow = flow_of(summary)
    return row_of((NAME, *(one for one in run_columns() if one.flow in ("", flow))), {RUN: run, **summary})
