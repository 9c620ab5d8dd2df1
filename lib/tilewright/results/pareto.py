"""Pareto fronts of runs in energy, latency and area: hardware variants that no other variant dominates.

Only runs with the same network and the same options (except the objective) are compared. Runs on several cores may cut,
allocate and order the network differently, but their cost model and schedule model must be the same.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas

from tilewright.base.artifacts.digests import content_digest
from tilewright.base.dominance import dominators
from tilewright.base.harmless import ended_lines
from tilewright.base.measures import AREA_MM2, EDP_PJ_CYCLES, ENERGY_PJ, LATENCY_CYCLES
from tilewright.base.objectives import energy_delay_product
from tilewright.base.units import energy_text, microjoules_text
from tilewright.hardware.system import lacks_unit
from tilewright.results.held_costs import ranged_pj
from tilewright.results.part_costs import HardwareCosts
from tilewright.results.records import Summary
from tilewright.results.run_point import RunPoint, run_label
from tilewright.results.run_text import NOT_SAID, area_text, assumption, bits_text, could_keep, setting_of, setting_text
from tilewright.results.static_parts import static_parts_of
from tilewright.results.terminal_tables import render, text_table
from tilewright.results.text_tables import share_text
from tilewright.results.uncertainty import (
    SAMPLES,
    UncertainRun,
    cost_parts,
    energy_range_pj,
    front_probabilities,
    samples_text,
)
from tilewright.results.unlike_runs import NO_SAMPLES, WARNED, UnlikeCause, one_sided_ranges, unlike_causes

OBJECTIVES = (ENERGY_PJ, LATENCY_CYCLES, AREA_MM2)
WITHOUT_AREA = OBJECTIVES[:2]
WORDS = {ENERGY_PJ: "energy", LATENCY_CYCLES: "latency", "latency_s": "time", AREA_MM2: "area"}
BY_TIME = "latency_s"
"""Objective that replaces the latency in cycles if clocks differ: the latency in seconds. The table has a column of
this name if the hardware files give clocks.
"""
LONGEST_OPTION = 40
_HEADINGS = ("between\nlayers", "Pareto", "dominated by")
MODEL_SETTINGS = ("schedule_model", "share_divisor", "cn_runtime")
"""Schedule settings that decide how time is counted, and must be equal in compared runs. Other settings may differ.
"""
COSTED = "costed"
"""Name of the option that states how much of the work of the network has costs."""
COLUMNS = (
    *("workload", "group", "run", "hardware", "objective", "model", *OBJECTIVES, EDP_PJ_CYCLES),
    *("compared_by", "pareto", "dominated_by", "area_note", "between_layers", "not_compared", "notes"),
)


IN_PAPER = ("workload", "group", "run", *OBJECTIVES, EDP_PJ_CYCLES, "pareto")
"""Columns of the table in a paper if latencies are compared in cycles in all groups."""
IN_PAPER_BY_TIME = ("workload", "group", "run", ENERGY_PJ, BY_TIME, AREA_MM2, "pareto")
"""Columns of the table in a paper if some group compares latencies in seconds."""
RANGE_COLUMNS = ("energy_low_pj", "energy_high_pj", "front_probability")
"""Additional columns if costs have ranges."""


@dataclass(frozen=True)
class ComparableRuns:
    """Group of comparable runs, in the order in which they were given, with the runs that dominate each of them."""

    workload: str
    difference: str
    """Options in which this group differs from the other groups of the same network; '' for the only group of a
    network.
    """
    candidates: tuple[RunPoint, ...]
    objectives: tuple[str, ...]
    dominators: tuple[tuple[int, ...], ...]
    """Indices of the runs that dominate each run, as one tuple for each run. Only dominating runs on the Pareto front
    are listed; the tuple is () for a run on the front.
    """
    not_compared: tuple[str, ...] = ()
    """Names of those runs of the same network whose results are missing or out of date. With a result, such a run could
    dominate runs of the group.
    """
    order_lines: tuple[str, ...] = ()
    """Sentences on the changes that would reverse the order of the two best runs, at most one for each measure. The
    last sentence says which changes were considered. () if these changes were not computed.
    """

    @property
    def name(self) -> str:
        """Name of the network, with the options in which this group differs from the other groups of the network."""
        return f"{self.workload}, {self.difference}" if self.difference else self.workload

    @cached_property
    def front_probabilities(self) -> tuple[float, ...]:
        """Probability, for each run, that the run is on the front if costs vary within their ranges; () if no costs
        have a range, or if the energy of a memory has a range in some of the runs only.
        """
        if not self.has_ranges or self.one_sided:
            return ()
        runs = [uncertain_run(point, self.objectives[1]) for point in self.candidates]
        return tuple(front_probabilities(runs, by_area=AREA_MM2 in self.objectives))

    @property
    def has_ranges(self) -> bool:
        """True if costs of a run have a range."""
        return any(point.cost_parts for point in self.candidates)

    @cached_property
    def one_sided(self) -> str:
        """Text on memories whose energy has a range in some runs, but not in all runs; '' if there are none."""
        return one_sided_ranges(self.candidates)

    @property
    def warning(self) -> str:
        """Warning that the comparison ignores an advantage of larger memories: a larger memory could keep data that one
        layer passes to another. '' if no compared run could keep such data.
        """
        cores = list(dict.fromkeys(candidate.core for candidate in self.candidates if candidate.could_keep))
        if not cores:
            return ""
        more = f" and {len(cores) - 2} more" if len(cores) > 2 else ""
        return (
            "exploit_data_locality is off, so the comparison does not show one benefit of a larger memory: with this"
            f" option, {', '.join(cores[:2])}{more} would keep data between layers in memories below the top memory"
        )

    @property
    def assumption(self) -> str:
        """Assumptions behind the energies, latencies and areas of the runs; '' if none are known."""
        return "; ".join(dict.fromkeys(candidate.assumes for candidate in self.candidates if candidate.assumes))

    @property
    def unlike(self) -> tuple[UnlikeCause, ...]:
        """Reasons why a ranking of the runs can mislead, such as different energies of the same memory."""
        return unlike_causes(self.candidates)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on missing or incomplete areas, on reasons why a ranking of the runs can mislead, on ranges of costs,
        and on runs without an up-to-date result.
        """
        cores: dict[str, dict[str, None]] = {}
        for one in self.candidates:
            if one.area_mm2 is None:
                cores.setdefault("without a unit" if lacks_unit(one.area_note) else "not given", {})[one.core] = None
        missing = "; ".join(f"area {word}: {', '.join(cores[word])}" for word in sorted(cores))
        area = f"{missing}; compared by energy and latency only" if missing else ""
        known = {one.core: one.area_note for one in self.candidates if one.area_mm2 is not None and one.area_note}
        left_out = "; ".join(f"area of {core}: {note}" for core, note in known.items())
        ranges = _range_note(self)
        absent = f"not compared, because failed or stale: {', '.join(self.not_compared)}" if self.not_compared else ""
        causes = [cause.text for cause in self.unlike if cause.kind not in WARNED]
        return tuple(filter(None, (area, left_out, *causes, ranges, absent)))

    @property
    def warning_lines(self) -> tuple[str, ...]:
        """Lines of text on differences that forbid a conclusion about the architectures, such as different process
        nodes.
        """
        return tuple(cause.line for cause in self.unlike if cause.kind in WARNED)

    @property
    def lines(self) -> tuple[str, ...]:
        """Lines of text under a table or a figure of the group: warnings, assumptions, notes, and the ignored advantage
        of larger memories (`warning`).
        """
        return (*self.warning_lines, *self.lines_below)

    @property
    def lines_below(self) -> tuple[str, ...]:
        """Lines of text like `lines`, without the warnings that stand above the table."""
        assumed = f"assumed: {self.assumption}" if self.assumption else ""
        return tuple(filter(None, (assumed, *self.notes, self.warning)))

    def on_front(self, index: int) -> bool:
        """True if no other run of the group dominates the run `index`."""
        return not self.dominators[index]


def candidate(run: str, summary: Summary, made_by: Mapping[str, Any], costs: HardwareCosts | None = None) -> RunPoint:
    """Point (energy, latency, area) of a run on one core. `made_by` is the provenance of its summary; `costs` are the
    costs of the parts of its core, if they are known.
    """
    options = {key: value for key, value in made_by.get("options", {}).items() if key != "objective"}
    return replace(
        _point(run, summary, made_by, _options(options, setting_of(summary))),
        between_layers=setting_text(summary),
        assumes=assumption([summary]),
        could_keep=could_keep(summary),
        costs=costs,
        objective_bound=summary.get("certificate", {}).get("run", {}).get("lower_bound"),
    )


def multi_candidate(run: str, summary: Summary, made_by: Mapping[str, Any]) -> RunPoint:
    """Point (energy, latency, area) of a run on several cores."""
    settings = [(key, str(summary["settings"][key])) for key in MODEL_SETTINGS]
    return replace(_point(run, summary, made_by, settings), is_of_several_cores=True)


def _point(run: str, summary: Summary, made_by: Mapping[str, Any], options: Iterable[tuple[str, str]]) -> RunPoint:
    """Point of a run on one core or on several cores, from the properties that all runs have."""
    return RunPoint(
        run=run,
        workload=summary["workload"],
        workload_digest=str(made_by.get("inputs", {}).get("workload", "")),
        core=summary["hardware"],
        objective=summary["objective"],
        model=summary["model"],
        options=(*options, *_work_costed(summary)),
        energy_pj=summary[ENERGY_PJ],
        latency_cycles=summary[LATENCY_CYCLES],
        area_mm2=summary[AREA_MM2],
        area_note=summary["area_note"],
        clock_frequency_mhz=summary.get("clock_frequency_mhz"),
        static_power_w=summary.get("static_power_w"),
        static_parts=static_parts_of(summary),
        cost_parts=cost_parts(summary),
        bits=bits_text(summary) or "",
        free_work=_free_work(summary),
    )


def _options(options: Mapping[str, Any], between_layers: str) -> Iterator[tuple[str, str]]:
    """Pairs (name of an option, its value as text). The memories in which data stay between layers replace the option
    `exploit_data_locality` if they are known, because a mapping file can override this option.
    """
    for key, value in options.items():
        if key != "exploit_data_locality" or between_layers == NOT_SAID:
            yield key, _option_text(value)
    if between_layers != NOT_SAID:
        yield "data between layers", between_layers


def _work_costed(summary: Summary) -> tuple[tuple[str, str], ...]:
    """Amount of work that has costs, in the form of an option: a tuple with one pair (COSTED, text). () if the summary
    has no coverage.

    Only runs with equal amounts can be compared, because work without costs counts as free.
    """
    if "coverage" not in summary:
        return ()
    coverage = summary["coverage"]
    return ((COSTED, f"{coverage['mac_count']:,} MACs and {coverage['operation_count']:,} other operations"),)


def _free_work(summary: Summary) -> str:
    """Text of the amount of work without costs, such as `5 MACs and 7 other operations`; '' if all operators have
    costs.
    """
    rows = summary.get("coverage", {}).get("not_costed", ())
    texts = (
        _amount_text([row[key] for row in rows], words)
        for key, words in (("mac_count", "MACs"), ("operation_count", "other operations"))
    )
    return " and ".join(text for text in texts if text)


def _amount_text(counts: Sequence[int | None], words: str) -> str:
    """Text with the sum of `counts` and the words for what is counted, such as `1,000 MACs`; '' if the sum is 0.

    A count of None is unknown. The text then has the sum of the known counts as a lower bound, or says that no count is
    known.
    """
    known = sum(count for count in counts if count is not None)
    if None not in counts:
        return f"{known:,} {words}" if known else ""
    return f"at least {known:,} {words}" if known else f"an unknown number of {words}"


def uncertain_run(point: RunPoint, latency: str = LATENCY_CYCLES) -> UncertainRun:
    """Run with its energy, latency and area, and with the ranges of its costs. `latency` is the name of the field of
    `point` that has the latency: in cycles or in seconds.
    """
    return UncertainRun(point.energy_pj, getattr(point, latency), point.area_mm2, point.cost_parts)


def _range_note(group: ComparableRuns) -> str:
    """Note on the ranges of energies, and on the probability that each run is on the front; '' if no costs have a
    range.
    """
    if not group.has_ranges:
        return ""
    told = []
    for index, point in enumerate(group.candidates):
        low, high = energy_range_pj(point.energy_pj, point.cost_parts)
        between = f"{energy_text(low)} to {energy_text(high)}" if point.cost_parts else "no range"
        varied = share_text(ranged_pj(uncertain_run(point)), point.energy_pj)
        shares = group.front_probabilities if len(group.candidates) > 1 else ()
        front = f", on the front in {samples_text(shares[index])} of the samples" if shares else ""
        told.append(f"{run_label(point)} {between}{front} ({varied} of its energy varies)")
    if group.one_sided:
        energies = f"energies if costs vary within their ranges: {'; '.join(told)}"
        return f"{energies}. {NO_SAMPLES.capitalize()}: {group.one_sided}"
    samples = f" ({SAMPLES:,} samples)" if len(group.candidates) > 1 else ""
    return f"energies if costs vary within their ranges{samples}: {'; '.join(told)}"


def compare(candidates: Sequence[RunPoint], unfinished: Sequence[Mapping[str, str]] = ()) -> tuple[ComparableRuns, ...]:
    """Groups of comparable runs; networks and groups are in the order of their first run. `unfinished` has a row with
    `run` and `workload` for each run without a result.
    """
    members: dict[tuple[Any, ...], list[RunPoint]] = {}
    for point in candidates:
        is_alike = (point.is_of_several_cores, point.workload_digest, point.model, point.options)
        members.setdefault((point.workload, *is_alike), []).append(point)
    by_workload: dict[str, list[list[RunPoint]]] = {}
    for group in members.values():
        by_workload.setdefault(group[0].workload, []).append(group)
    return tuple(
        _group(group, _difference(group[0], [other[0] for other in groups]), unfinished)
        for groups in by_workload.values()
        for group in groups
    )


def pareto_table(groups: Sequence[ComparableRuns]) -> pandas.DataFrame:
    """Table with a row for each run. Columns are, among others, energy, latency, area, whether the run is on the front,
    and the runs that dominate it.
    """
    rows = []
    for group in groups:
        names = [point.run for point in group.candidates]
        survival = group.front_probabilities
        for index, point in enumerate(group.candidates):
            rows.append(
                {
                    "workload": point.workload,
                    "group": group.difference,
                    "run": point.run,
                    "hardware": point.core,
                    "objective": point.objective,
                    "model": point.model,
                    ENERGY_PJ: point.energy_pj,
                    LATENCY_CYCLES: point.latency_cycles,
                    BY_TIME: point.latency_s,
                    AREA_MM2: point.area_mm2,
                    EDP_PJ_CYCLES: energy_delay_product(point.energy_pj, point.latency_cycles),
                    "compared_by": " ".join(WORDS[key] for key in group.objectives),
                    "pareto": "true" if group.on_front(index) else "false",
                    "dominated_by": " ".join(names[other] for other in group.dominators[index]),
                    "area_note": point.area_note,
                    "between_layers": point.between_layers,
                    "not_compared": " ".join(group.not_compared),
                    "notes": ". ".join(cause.line for cause in group.unlike),
                }
            )
            if group.has_ranges:
                ends = energy_range_pj(point.energy_pj, point.cost_parts)
                ranges = (*ends, survival[index] if survival else None)
                rows[-1] |= dict(zip(RANGE_COLUMNS, ranges, strict=True))
    uncertain = RANGE_COLUMNS if any(group.has_ranges for group in groups) else ()
    times = (BY_TIME,) if any(point.latency_s is not None for group in groups for point in group.candidates) else ()
    return pandas.DataFrame(rows, columns=[*COLUMNS, *times, *uncertain])


def paper_columns(groups: Sequence[ComparableRuns]) -> tuple[str, ...]:
    """Names of the columns of the table for a paper. If some group compares latencies in seconds, because clocks
    differ, the table has latencies in seconds instead of cycles.
    """
    return IN_PAPER_BY_TIME if any(BY_TIME in group.objectives for group in groups) else IN_PAPER


def paper_notes(groups: Sequence[ComparableRuns]) -> tuple[str, ...]:
    """Sentences below the table in a paper, for each group: its assumptions, its notes and warning, and the changes
    that would reverse the order of its best runs.
    """
    told = [
        f"{group.name}: {line}"
        for group in groups
        for assumed in ([f"assumed: {group.assumption}"] if group.assumption else [],)
        for line in (*group.warning_lines, *assumed, *group.notes, group.warning, *group.order_lines[:-1])
        if line
    ]
    covers = [line for group in groups for line in group.order_lines[-1:]]
    return (*told, *dict.fromkeys(covers))


def pareto_text(groups: Sequence[ComparableRuns]) -> str:
    """Text tables of the groups for the terminal."""
    return "\n".join(_group_text(group) for group in groups)


def figures_of(point: RunPoint) -> tuple[str, str, str]:
    """Triple of texts: energy in µJ; latency in cycles; area in mm², or the reason why the area is missing."""
    return microjoules_text(point.energy_pj), f"{point.latency_cycles:,.0f}", area_text(point.area_mm2, point.area_note)


def _option_text(value: Any) -> str:
    """Value of an option as text. If the text is longer than LONGEST_OPTION characters, such as for a user's pipeline,
    the digest of the value replaces it.
    """
    text = str(value)
    return text if len(text) <= LONGEST_OPTION else f"digest {content_digest(value)[:8]}"


def objectives_of(points: Sequence[RunPoint]) -> tuple[str, ...]:
    """Objectives by which runs are compared. If the area of some run is missing, area is not an objective. If clocks
    differ, latency in seconds replaces latency in cycles.
    """
    known = all(point.area_mm2 is not None for point in points)
    objectives: tuple[str, ...] = OBJECTIVES if known else WITHOUT_AREA
    clocks = {point.clock_frequency_mhz for point in points}
    if len(clocks) > 1 and None not in clocks:
        objectives = tuple(BY_TIME if key == LATENCY_CYCLES else key for key in objectives)
    return objectives


def _group(points: Sequence[RunPoint], difference: str, unfinished: Sequence[Mapping[str, str]]) -> ComparableRuns:
    objectives = objectives_of(points)
    values = np.array([[getattr(point, key) for key in objectives] for point in points], dtype=np.float64)
    workload = points[0].workload
    absent = tuple(row["run"] for row in unfinished if row["workload"] == workload)
    return ComparableRuns(workload, difference, tuple(points), objectives, tuple(dominators(values)), absent)


def _difference(point: RunPoint, others: Sequence[RunPoint]) -> str:
    """Text that distinguishes the group of comparable runs of `point` from the other groups of its network; '' if there
    is only one group. The text has the options in which the groups differ, with their values for `point`.

    `others` has one run of each group, including the group of `point`.
    """
    flow = "several cores" if point.is_of_several_cores else "one core"
    is_one_flow = len({other.is_of_several_cores for other in others}) == 1
    alike = [other for other in others if other.is_of_several_cores == point.is_of_several_cores]
    return ", ".join(filter(None, ("" if is_one_flow else flow, _other_options(point, alike))))


def _other_options(point: RunPoint, others: Sequence[RunPoint]) -> str:
    if len(others) == 1:
        return ""
    tables = [dict(other.options) for other in others]
    own = dict(point.options)
    keys = dict.fromkeys(key for table in tables for key in table)
    texts = [f"{key} {own.get(key, 'default')}" for key in keys if len({table.get(key) for table in tables}) > 1]
    read_alike = [other for other in others if other.model == point.model]
    if len({other.workload_digest for other in read_alike}) > 1:
        texts.append(_network_text(point, read_alike))
    return ", ".join(texts) or f"model {point.model}"


def _network_text(point: RunPoint, others: Sequence[RunPoint]) -> str:
    """Text that distinguishes the network of a run from other networks of the same name. The text has the bits of the
    operands if these bits differ. It also has the beginning of the digest of the network if the networks differ in more
    than the bits, or if the difference is not known.

    `others` has one run of each group whose model reads the network in the same way, including the group of `point`.
    """
    bits = f"bits {point.bits}" if point.bits and len({other.bits for other in others}) > 1 else ""
    same_bits = {other.workload_digest for other in others if other.bits == point.bits}
    structures = {other.structure_digest for other in others}
    is_one, is_known = len(structures) == 1, "" not in structures
    if bits and len(same_bits) == 1 and is_one and is_known:
        return bits
    one_file = "other bits, zeros or costed operators, "
    others_differ = "" if not is_known else one_file if is_one else "other layers or shapes, "
    return f"{others_differ}network {point.workload_digest[:8]}{f' ({bits})' if bits else ''}"


def _group_text(group: ComparableRuns) -> str:
    title = group.name
    by_time = BY_TIME in group.objectives
    times = ("time\n[s]",) if by_time else ()
    table = text_table(title, ("run",), ("energy\n[µJ]", "latency\n[cycles]", *times, "area\n[mm²]", *_HEADINGS))
    for index, point in enumerate(group.candidates):
        energy, cycles, area = figures_of(point)
        others = ", ".join(run_label(group.candidates[other]) for other in group.dominators[index])
        table.add_row(
            run_label(point),
            energy,
            cycles,
            *((f"{point.latency_s:.4g}",) if by_time else ()),
            area,
            point.between_layers,
            "yes" if group.on_front(index) else "no",
            others or "-",
        )
    lines = ended_lines((*group.lines_below, *group.order_lines))
    return ended_lines(group.warning_lines) + render(table) + lines
