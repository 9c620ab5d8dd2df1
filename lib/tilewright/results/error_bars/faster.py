"""Probability that one of two runs is faster, computed from the error bars of both runs, and sentences on this
probability.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from tilewright.base.errors import InputError, Problem, Problems
from tilewright.base.json_values import JsonObject
from tilewright.base.profile import CORRECTED
from tilewright.results.error_bars.bars import bars_of_run
from tilewright.results.error_bars.bars_text import bar_text, source_lines
from tilewright.results.error_bars.draws import faster_share, predicted_of_ledger, time_samples
from tilewright.results.error_bars.table import check_class
from tilewright.results.run_ledger import RunLedger

_CERTAIN = 0.99
"""Largest probability that sentences state as a number. The table has too few rows for larger numbers."""


def classes_of(text: str) -> tuple[str, str]:
    """Classes of the machines of two runs, from the value of the option --error-bars: one class for both runs, or two
    classes with a comma between them. Raises InputError for unknown classes.
    """
    names = [name.strip() for name in text.split(",")]
    if len(names) > 2:
        raise InputError([Problem("needs one class, or one for each run", path="error_bars", value=text)])
    problems = Problems()
    for name in dict.fromkeys(names):
        problems.attempt(check_class, name)
    problems.finish()
    return names[0], names[-1]


def faster_object(a: RunLedger, b: RunLedger, classes: tuple[str, str]) -> JsonObject:
    """Probability that the first of two runs is faster, and the error bars of both. If the clocks of both runs are
    known, times are compared, otherwise cycles. Raises InputError for runs whose errors are not measured.
    """
    problems = [problem for run in (a, b) for problem in unmeasured(run)]
    if problems:
        raise InputError(problems)
    runs = [predicted_of_ledger(ledger, name) for ledger, name in zip((a, b), classes, strict=True)]
    clocks = [ledger.run.clock_frequency_mhz for ledger in (a, b)]
    in_time = None not in clocks
    samples = [time_samples(run) / (mhz if in_time and mhz else 1.0) for run, mhz in zip(runs, clocks, strict=True)]
    probability = faster_share(samples[0], samples[1])
    bars = [bars_of_run(run) for run in runs]
    return {"probability_a_faster": probability, "in_time": in_time, "a": bars[0], "b": bars[1]}


def unmeasured(ledger: RunLedger) -> Iterator[Problem]:
    """Problems of a run whose errors are not measured."""
    run = ledger.run
    if run.is_of_several_cores:
        yield Problem("error bars are known only for runs on one core, and this run is on several cores", path=run.run)
    elif run.model not in ("", CORRECTED.name):
        yield unmeasured_model(run.model, run.run)


def unmeasured_model(model: str, path: str) -> Problem:
    """Problem of error bars for a model whose errors are not measured."""
    return Problem(f"error bars are known only for the model {CORRECTED.name}", path=path, value=f"model {model}")


def faster_lines(found: Mapping[str, Any]) -> tuple[str, ...]:
    """Lines on the probability that one of two runs is faster, and on the error bars of both."""
    a, b = found["a"], found["b"]
    lines = [f"error bars: {faster_text(found['probability_a_faster'], 'A', 'B')}"]
    for name, one in (("A", a), ("B", b)):
        lines.append(f"error bars of {one['share']:.0%}: {name}, class {one['class']}, takes {bar_text(one, {})}")
    told = {name: list(source_lines(one)) for name, one in (("A", a), ("B", b))}
    if told["A"] == told["B"]:
        return (*lines, *told["A"])
    return (*lines, *(f"{name}: {line}" for name, own in told.items() for line in own))


def faster_text(probability: float, first: str, second: str) -> str:
    """Sentence on the probability that the first of two runs is faster; the more probable one is named first."""
    if probability < 0.5:
        probability, first, second = 1 - probability, second, first
    share = f"more than {_CERTAIN:.0%}" if probability > _CERTAIN else f"{probability:.0%}"
    return f"{first} is faster than {second} with {share} probability"
