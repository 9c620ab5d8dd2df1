"""Where a run keeps the data between layers, in words: what a comparison of runs assumes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

TOP_MEMORY, KEPT, NOT_SAID = "top memory", "kept below", "not said"
"""Data go through the outermost memory between layers; they stay below it where there is room; an old summary."""


def setting_of(summary: Mapping[str, Any]) -> str:
    """Which of the settings a run has."""
    locality = summary.get("data_locality")
    if locality is None:
        return NOT_SAID
    return KEPT if locality["exploited"] else TOP_MEMORY


def setting_text(summary: Mapping[str, Any]) -> str:
    """The setting, with what came of it."""
    locality = summary.get("data_locality")
    if locality is None or not locality["exploited"]:
        return setting_of(summary)
    return f"{KEPT}: {locality['layers_below_top']} of {locality['layers']}"


def locality_lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """Lines for the terminal on one run: what the option did, or would do."""
    locality = summary.get("data_locality")
    if locality is None or not locality["layers"]:
        return
    below, layers = locality["layers_below_top"], locality["layers"]
    if locality["exploited"] and not below:
        yield "exploit_data_locality changed nothing: every operand of every layer still ends at the top memory"
    elif locality["exploited"]:
        yield f"data between layers: {below} of {layers} layers keep data below the top memory"
    elif below:
        yield (
            "data between layers: every layer begins and ends in the top memory;"
            f" exploit_data_locality would keep data below it in {below} of {layers} layers"
        )


def could_keep(summary: Mapping[str, Any]) -> bool:
    """True for a run that sends data through the top memory although memories below have room for some."""
    locality = summary.get("data_locality")
    return bool(locality and not locality["exploited"] and locality["layers_below_top"])


def assumption(summaries: Sequence[Mapping[str, Any]]) -> str:
    """What figures of runs on one core assume, in one line; '' without runs."""
    if not summaries:
        return ""
    texts = {
        TOP_MEMORY: "every layer begins and ends in the top memory",
        KEPT: "data stay between layers below the top memory where there is room",
        NOT_SAID: "",
    }
    settings = dict.fromkeys(setting_of(summary) for summary in summaries)
    parts = [text for setting in settings if (text := texts[setting])]
    assumed = [", or ".join(parts)] if parts else []
    if any(not summary.get("coverage", {}).get("complete", True) for summary in summaries):
        assumed.append("operators that are not costed cost nothing")
    return "; ".join(assumed)
