"""Error bars of a run and of two runs: their numbers as JSON values, and the sentences on them."""

from collections.abc import Iterator, Mapping, Sequence
from math import exp
from typing import Any

from tilewright.base.errors import InputError, Problem, count_of
from tilewright.base.json_values import JsonObject
from tilewright.base.profile import CORRECTED
from tilewright.cost.record import LayerRecord
from tilewright.results.error_bars.draws import (
    HIGH,
    LOW,
    PredictedRun,
    ends,
    faster_share,
    predicted_of_ledger,
    predicted_run,
    time_samples,
)
from tilewright.results.error_bars.table import LEAST_ROWS, WHOLE, ErrorCell, check_class, error_table
from tilewright.results.records import layers_in_order
from tilewright.results.run_ledger import RunLedger
from tilewright.results.text_tables import share_text

ERROR_BARS = "error_bars"
"""Key of the error bars in a summary."""
SHARE = HIGH - LOW
PAGE = "docs/accuracy.md#error-bars"
_CERTAIN = 0.99
"""Largest probability that sentences state as a number. The table has too few rows for larger ones."""


def bars_of_records(
    records: Sequence[LayerRecord], summary: Mapping[str, Any], hardware: str, device_class: str
) -> JsonObject:
    """Error bars of a run on one core. `hardware` is the digest of the hardware, and `device_class` the class of its
    machine.
    """
    layers = [layer.record.latency_breakdown_cycles for layer in layers_in_order(records, summary)]
    return bars_of_run(predicted_run(hardware, device_class, layers))


def bars_of_run(run: PredictedRun) -> JsonObject:
    """Error bars of a run as JSON values: the ends of the bar in cycles, and the errors that it is made of."""
    low, high = ends(time_samples(run))
    cells = run.cells(error_table())
    limits = [
        {
            "limit": limit,
            "layers": layers,
            "latency_share": share,
            "errors": errors_text(cells[limit], run.device_class),
        }
        for limit, (layers, share) in run.limits.items()
    ]
    power = error_table().power(run.device_class)
    return {
        "class": run.device_class,
        "share": SHARE,
        "low_cycles": low,
        "predicted_cycles": run.cycles,
        "high_cycles": high,
        "has_waiting_keys": run.has_keys,
        "limits": limits,
        "energy": energy_line(run.device_class, power),
    }


def errors_text(cell: ErrorCell, device_class: str) -> str:
    """Text on the errors of one limit: the rows, machines and sets that they come from. `device_class` is the class for
    which they are used.
    """
    rows, machines = count_of(cell.rows, "row"), count_of(cell.machines, "machine")
    text = f"errors of {rows} on {machines} ({', '.join(cell.sets)})"
    if cell.key.device_class == device_class:
        return text
    return f"{text}, of all classes, because {device_class} has fewer than {LEAST_ROWS} such rows"


def energy_line(device_class: str, power: ErrorCell | None) -> str:
    """Line on the energy, which has no error bars. `power` has the errors of the power of a chip; None if no power of a
    machine of the class is measured.
    """
    if power is None:
        return f"the energy has no error bars: no energy or power of class {device_class} is measured"
    low, high = (exp(power.quantile(WHOLE, level)) for level in (LOW, HIGH))
    return (
        "the energy has no error bars: only the power of a chip without its DRAM is measured,"
        f" {low:.2f} to {high:.2f} times the prediction ({SHARE:.0%} of {power.rows} rows of {', '.join(power.sets)})"
    )


def bar_lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """Lines on the error bars in the summary of a run; no lines if it has none."""
    found = summary.get(ERROR_BARS)
    if found is None:
        return
    yield f"error bars of {found['share']:.0%}, class {found['class']}: a machine takes {_bar_text(found, summary)}"
    yield from source_lines(found)


def _bar_text(found: Mapping[str, Any], summary: Mapping[str, Any]) -> str:
    low, predicted, high = (found[f"{name}_cycles"] for name in ("low", "predicted", "high"))
    told = f"{cycles_text(low)} to {cycles_text(high)} cycles"
    if mhz := summary.get("clock_frequency_mhz"):
        told += f" ({low / mhz * 1e-6:.3g} to {high / mhz * 1e-6:.3g} s)"
    return f"{told}, {low / predicted:.2f} to {high / predicted:.2f} times the prediction"


def cycles_text(cycles: float) -> str:
    """Number of cycles with three significant digits."""
    return f"{float(f'{cycles:.3g}'):,.0f}" if cycles >= 100 else f"{cycles:.3g}"


def source_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Lines on the errors from which a bar is made, and on the energy."""
    parts = "; ".join(_limit_text(one) for one in found["limits"])
    yield f"errors by what limits a layer ({PAGE}): {parts}"
    if not found["has_waiting_keys"]:
        yield (
            "no layer waits for calls, commands or requests, so the errors are those of predictions without such keys"
            " (docs/model.md#waiting)"
        )
    yield found["energy"]


def _limit_text(one: Mapping[str, Any]) -> str:
    share = share_text(one["latency_share"], 1.0)
    return f"{one['limit']}: {count_of(one['layers'], 'layer')} with {share} of the latency, {one['errors']}"


def classes_of(text: str) -> tuple[str, str]:
    """Classes of two runs from the value of the option --error-bars: one class for both, or two with a comma between
    them. Raises InputError for unknown classes.
    """
    names = [name.strip() for name in text.split(",")]
    if len(names) > 2:
        raise InputError([Problem("needs one class, or one for each run", path="--error-bars", value=text)])
    problems: list[Problem] = []
    for name in dict.fromkeys(names):
        try:
            check_class(name)
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
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
        lines.append(f"error bars of {one['share']:.0%}: {name}, class {one['class']}, takes {_bar_text(one, {})}")
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
