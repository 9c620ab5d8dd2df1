"""Texts about the results of a run: operators without costs; precision; ranges of costs; time, power and area; memories
that keep data between layers; and runs without a result.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tilewright.base.errors import count_of
from tilewright.base.measures import AREA_MM2, ENERGY_PJ
from tilewright.base.objectives import OBJECTIVES, reduction_of
from tilewright.base.units import energy_text, number_text
from tilewright.cost.energy_terms import ENERGY_TERMS
from tilewright.cost.latency_terms import ENTERED as LATENCY_TERMS
from tilewright.cost.ledger import named_terms, term_words
from tilewright.hardware.system import lacks_unit
from tilewright.results.held_costs import held_lines
from tilewright.results.static_parts import parts_text, static_parts_of

SHOWN_ROWS = 6
"""Largest number of operator types that the terminal lists for each reason why operators have no costs. The summary
lists all of them.
"""


def coverage_lines(summary: Mapping[str, Any], shown: int = SHOWN_ROWS) -> Iterator[str]:
    """Lines for the terminal on operators without costs: the share of the work that has costs, and the operators that
    have none. `summary` is the content of `summary.json`. For each reason why operators have no costs, at most `shown`
    operator types are listed.
    """
    coverage = summary["coverage"]
    if not coverage["complete"]:
        macs, share = share_text(coverage["mac_share"]), coverage["operation_share"]
        others = (
            "the number of other operations is not known"
            if share is None
            else f"{share_text(share)} of other operations"
        )
        yield f"costed: {macs} of MACs; {others}"
    rows = coverage["not_costed"]
    for reason in dict.fromkeys(row["reason"] for row in rows):
        told = [_row_text(row) for row in rows if row["reason"] == reason]
        more = f", and {len(told) - shown} more operator types" if len(told) > shown else ""
        yield f"operators free of cost, because {_WHY.get(reason, reason)}: {', '.join(told[:shown])}{more}"
    if summary["passed_through"]:
        listed = ", ".join(f"{count} {operator}" for operator, count in summary["passed_through"].items())
        yield f"operators that only move data, at no cost: {listed}"
    if approximated := summary.get("approximated"):
        listed = ", ".join(f"{count} {operator}" for operator, count in approximated.items())
        yield f"estimated work or dependences (details: `tilewright parse` of the network): {listed}"


_WHY = {"not modelled": "the model has no layers for them", "not run by the core": "the core does not run them"}
"""Text for each reason why operators have no costs, by name of the reason in a summary."""


def alternative_lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """Line on layers for which the stages returned several mappings; no line if there are no such layers. Only the best
    mapping of such a layer is counted. The line also names a reduction: a stage that returns only the best mapping if
    it is put right below the stage `Workload`.
    """
    if found := summary.get("alternatives"):
        objective = summary["objective"]
        reduction = reduction_of(objective) if objective in OBJECTIVES else objective
        others, layers = count_of(found["mappings"], "further mapping"), count_of(found["distinct_layers"], "layer")
        yield (
            f"{others} of {layers} reached the stage Workload but {'is' if found['mappings'] == 1 else 'are'} not"
            f" counted: for each layer, only the mapping with the best {objective} counts. To return only this mapping,"
            f" put the stage {reduction} right below Workload"
        )


ASSUMED_BITS = {"W": [8], "I": [8], "O_final": [8], "O": [16]}
"""Precision in bits that operands of an ONNX network have by default, as in zigzag-dse 3.9.1."""


def bits_text(summary: Mapping[str, Any]) -> str | None:
    """Precision of each operand in bits, as text. If the precision of an operand differs between layers, the text has
    several numbers. None if the summary is too old to state the precision.
    """
    if "operand_bits" not in summary:
        return None
    return ", ".join(f"{operand} {'/'.join(map(str, bits))}" for operand, bits in summary["operand_bits"].items())


def distinct_text(summary: Mapping[str, Any]) -> str:
    """Text with the number of distinct layers, and with the properties in which distinct layers can differ. Each
    distinct layer has one search. The number can differ between runs of one network, because the memories in which data
    stay depend on the hardware.
    """
    return f"{summary['distinct_layers']} distinct in shape, bits, mapping entry or memories used"


def bits_lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """Line on the precision of the operands. No line if the summary is too old to state it."""
    if found := summary.get("operand_bits"):
        notes = ["O: partial sums"] if "O" in found else []
        if any(len(bits) > 1 for bits in found.values()):
            notes.append("a/b: the bits differ between layers")
        if found == ASSUMED_BITS:
            notes.append("these bits are assumed for ONNX networks, unless --bits sets others")
        told = f" ({'; '.join(notes)})" if notes else ""
        yield f"bits: {bits_text(summary)}{told}"


def range_lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """Lines on the ranges of energy and area, if costs have ranges."""
    if ranges := summary.get("cost_ranges"):
        low, high = ranges[ENERGY_PJ]
        area = ranges[AREA_MM2]
        more = f", area {number_text(area[0])} to {number_text(area[1])} mm²" if area else ""
        yield f"within the ranges of costs: energy {energy_text(low)} to {energy_text(high)}{more}"
        yield from held_lines(summary)


def plug_in_lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """Lines on the energy terms that installed plug-ins add to a run, and on their latency terms in a run on one core.
    On several cores, the energy of a term is the sum over all cores."""
    energies, cycles = named_terms(summary), summary.get("latency_breakdown_cycles", {})
    names = ENERGY_TERMS.names
    if not cycles:  # a schedule
        from tilewright.multicore.scheduling.energy_terms import SCHEDULE_TERMS  # a run on one core starts faster

        names = (*names, *SCHEDULE_TERMS.names)
    found = [name for name in dict.fromkeys(names) if name in energies]
    if found:
        total = summary[ENERGY_PJ]
        told = [
            f"{term_words(name)} {energy_text(energies[name])}"
            + (f" ({share_text(energies[name] / total)})" if total else "")
            for name in found
        ]
        yield f"the energy includes the terms of plug-ins: {', '.join(told)}"
    if told := [f"{term_words(name)} {cycles[name]:,} cycles" for name in LATENCY_TERMS.names if name in cycles]:
        yield f"the latency includes the terms of plug-ins: {', '.join(told)}"


def range_columns(summary: Mapping[str, Any]) -> dict[str, float]:
    """Table columns with the smallest and largest energy and area; {} if no costs have ranges."""
    ranges = summary.get("cost_ranges", {})
    columns = ((ENERGY_PJ, ("energy_low_pj", "energy_high_pj")), (AREA_MM2, ("area_low_mm2", "area_high_mm2")))
    return {name: end for key, names in columns for name, end in zip(names, ranges.get(key) or (), strict=False)}


def area_text(area_mm2: float | None, area_note: str) -> str:
    """Text of an area in mm². If the area is missing, the text has the reason in two words."""
    if area_mm2 is None:
        return "no unit" if lacks_unit(area_note) else "not given"
    return number_text(area_mm2)


def power_lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """Lines for the terminal on the time, power, operations per second and area of one run. If the hardware file gives
    no clock or no static power, a line says so.
    """
    yield from _rate_lines(summary)
    if summary.get(AREA_MM2) is not None:
        note = f": {summary['area_note']}" if summary.get("area_note") else ""
        yield f"area {number_text(summary[AREA_MM2])} mm²{note}"


def _rate_lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """Lines on the time, power and operations per second of one run."""
    if "clock_frequency_mhz" not in summary:
        yield "no clock and no static power in the hardware file: times are in cycles, static power is left out"
        return
    tops = [f"{summary['tops']:.4g} TOP/s"]
    tops += [f"{summary[key]:.4g} TOP/s/{unit}" for key, unit in TOPS_PER.items() if summary[key] is not None]
    yield (
        f"at {summary['clock_frequency_mhz']:g} MHz: {summary['latency_s']:.4g} s, {summary['power_w']:.4g} W,"
        f" {', '.join(tops)} (a multiply-accumulate counts as two operations)"
    )
    parts = static_parts_of(summary)
    told = f" ({text})" if (text := parts_text(parts)) else ""
    if summary["static_power_w"]:
        static, power = summary["static_power_w"], summary["power_w"]
        share = f", {share_text(static / power)} of the energy" if power else ""
        yield f"static power: {static:.4g} W{told}, drawn all the time{share}"
    elif parts.zero:
        yield f"static power: 0 W{told}"
    else:
        yield "static power: not given in the hardware file, therefore left out"


TOPS_PER = {"tops_per_w": "W", "tops_per_mm2": "mm²"}
"""Unit by which TOP/s are divided, by name of the field in a summary."""


def share_text(share: float | None) -> str:
    """Text of a share in percent; `unknown` for None. A share between 0 and 1 is never rounded to 0 % or 100 %."""
    if share is None:
        return "unknown"
    if 0 < share < 1:
        return f"{min(max(share, 0.001), 0.999):.1%}"
    return f"{share:.0%}"


def _row_text(row: Mapping[str, Any]) -> str:
    counts = [
        f"{row[key]:,} {what}" for key, what in (("mac_count", "MACs"), ("operation_count", "operations")) if row[key]
    ]
    return f"{row['nodes']} {row['operator_type']}" + (f" ({', '.join(counts)})" if counts else "")


TOP_MEMORY, KEPT, NOT_SAID = "top memory", "kept below", "not said"
"""Locations of the data that one layer passes to another. TOP_MEMORY: the outermost memory. KEPT: a lower memory, if it
has room. NOT_SAID: unknown, because the summary is too old to state the location.
"""


def setting_of(summary: Mapping[str, Any]) -> str:
    """Location of the data that layers pass to each other in a run: TOP_MEMORY, KEPT or NOT_SAID."""
    locality = summary.get("data_locality")
    if locality is None:
        return NOT_SAID
    return KEPT if locality["exploited"] else TOP_MEMORY


def setting_text(summary: Mapping[str, Any]) -> str:
    """Text that says where a run keeps the data that layers pass to each other. If the option `exploit_data_locality`
    is on, the text also has the number of layers whose data stay below the top memory.
    """
    locality = summary.get("data_locality")
    if locality is None or not locality["exploited"]:
        return setting_of(summary)
    return f"{KEPT}: {locality['layers_below_top']} of {locality['layers']}"


def locality_lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """Lines for the terminal on the option `exploit_data_locality` of one run. If the option is on, the lines state its
    effect; if it is off, they state the effect that it would have.
    """
    locality = summary.get("data_locality")
    if locality is None or not locality["layers"]:
        return
    below, layers = locality["layers_below_top"], locality["layers"]
    if locality["exploited"] and not below:
        yield "exploit_data_locality changed nothing: every operand of every layer still uses the top memory"
    elif locality["exploited"]:
        yield f"data between layers: {below} of {layers} layers keep data below the top memory"
    elif below:
        yield (
            "data between layers: every layer reads its inputs from the top memory and writes its outputs to the top"
            f" memory; exploit_data_locality would keep data below the top memory in {below} of {layers} layers"
        )


def could_keep(summary: Mapping[str, Any]) -> bool:
    """True if a run sends data through the top memory although lower memories have room for a part of the data."""
    locality = summary.get("data_locality")
    return bool(locality and not locality["exploited"] and locality["layers_below_top"])


def assumption(summaries: Sequence[Mapping[str, Any]]) -> str:
    """Line on the assumptions behind the results of runs on one core; '' if there are no runs."""
    if not summaries:
        return ""
    texts = {
        TOP_MEMORY: "every layer reads its inputs from the top memory and writes its outputs to the top memory",
        KEPT: "data between two layers stay in a memory below the top memory if such a memory has room",
        NOT_SAID: "",
    }
    settings = dict.fromkeys(setting_of(summary) for summary in summaries)
    parts = [text for setting in settings if (text := texts[setting])]
    assumed = [", or ".join(parts)] if parts else []
    if any(not summary.get("coverage", {}).get("complete", True) for summary in summaries):
        assumed.append("operators without costs are counted as free")
    return "; ".join(assumed)


DONE, FAILED, STALE = "done", "failed", "stale"
"""States of a run. DONE: the result is up to date. FAILED: there is no result, because a step failed or did not run.
STALE: an input has changed since the result was made.
"""
_MEANING = {
    FAILED: "failed",
    STALE: "stale: not made again; the result in its folder was made before an input changed",
}


def unfinished_lines(rows: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """Lines for the terminal that name the runs that are not in the table."""
    if rows:
        yield "Not in the table:"
    width = max((len(row["run"]) for row in rows), default=0)
    for row in rows:
        yield f"  {row['run']:<{width}}  {_MEANING[row['state']]}"
