"""Error bars on the latencies of designs, and probabilities that one design is faster than another."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tilewright.base.errors import InputError, Problem, count_of
from tilewright.base.measures import LATENCY_CYCLES, LATENCY_S
from tilewright.base.profile import CORRECTED
from tilewright.designs.answer import Answer
from tilewright.designs.columns import EXPECTED
from tilewright.designs.results import OK, latency_parts
from tilewright.designs.space import Space
from tilewright.results.error_bars.bars import SHARE, energy_line, errors_text
from tilewright.results.error_bars.bars_text import PAGE
from tilewright.results.error_bars.draws import PredictedRun, ends, faster_share, predicted_run, time_samples
from tilewright.results.error_bars.faster import faster_text, unmeasured_model
from tilewright.results.error_bars.table import ANY, Values, check_class, error_table
from tilewright.search.options import SearchOptions

POSSIBLE = 0.1
"""Least probability with which a design counts as possibly faster than the design with the least predicted latency."""
_OPTION = "error_bars"


@dataclass(frozen=True, eq=False)
class _Timed:
    """Design with its predicted latency on all networks."""

    name: str
    runs: tuple[PredictedRun, ...]
    """Predicted latency on each network."""
    period: float
    """Time of a cycle in seconds; 1 if a clock is not known."""

    @property
    def predicted(self) -> float:
        """Predicted latency, in the unit of `period`."""
        return self.period * sum(run.cycles for run in self.runs)

    def samples(self, machine: str) -> Values:
        """Samples of the latency, in the unit of `period`. `machine` identifies the hardware of the design."""
        found = [time_samples(replace(run, machine=machine)) for run in self.runs]
        total: Values = self.period * np.sum(found, axis=0)
        return total


def check_space(space: Space, device_class: str) -> None:
    """Raise InputError for an unknown class of machines, and if the errors of predictions for the designs of a space
    are not measured.
    """
    check_class(device_class)
    options = space.options
    if space.is_of_systems or not isinstance(options, SearchOptions):
        raise InputError([Problem("error bars are known only for designs with one core", path=_OPTION)])
    if options.model != CORRECTED.name:
        raise InputError([unmeasured_model(options.model, _OPTION)])
    hardware = space.design(0).hardware if len(space) else {}
    array = hardware.get("operational_array", {}) if isinstance(hardware, dict) else {}
    if isinstance(array, dict) and array.get("is_imc"):
        raise InputError([Problem("no errors of in-memory arrays are measured", path=_OPTION)])


def can_have_bars(space: Space) -> bool:
    """True if errors of predictions for the designs of a space are measured."""
    try:
        check_space(space, ANY)
    except InputError:
        return False
    return True


def with_error_bars(answer: Answer, device_class: str) -> Answer:
    """Answer with the columns EXPECTED for all designs with results, and with sentences on the fastest design.

    The latency of a design on a network counts as the latency of a single layer, because the results do not name the
    limit of each layer.
    """
    table = answer.exploration.table
    parts = list(latency_parts(list(map(str, table.columns))))
    rows = {place: row for place, row in table.to_dict("index").items() if row["status"] == OK}
    runs = {place: _predicted(row, parts, device_class) for place, row in rows.items()}
    bars = np.full((len(table), 2), np.nan)
    for number, place in enumerate(table.index):
        if place in runs:
            bars[number] = ends(time_samples(runs[place]))
    columns = dict(zip(EXPECTED, bars.T, strict=True))
    exploration = replace(answer.exploration, table=table.assign(**columns))
    designs = list(_designs(answer, rows, runs))
    return replace(answer, exploration=exploration, error_notes=tuple(_sentences(designs, device_class)))


def _predicted(row: Mapping[Any, Any], parts: list[str], device_class: str) -> PredictedRun:
    """Prediction for a row. The parts of its latency are taken as the terms of one layer. All designs get the same
    hardware identity, so that equal predictions have equal bars.
    """
    known = {part: float(row[part]) for part in parts if row[part] == row[part]}
    terms = {part.removeprefix("latency_").removesuffix("_cycles"): cycles for part, cycles in known.items()}
    found = predicted_run("a design", device_class, [terms])
    return replace(found, layers=tuple(layer._replace(identity="all layers") for layer in found.layers))


def _designs(answer: Answer, rows: Mapping[Any, Any], runs: Mapping[Any, PredictedRun]) -> Iterator[_Timed]:
    """Compared designs, in the order of the space."""
    compared = set(answer.overall.compared["index"].tolist())
    places: dict[int, list[Any]] = {}
    for place, row in rows.items():
        if row["index"] in compared:
            places.setdefault(row["index"], []).append(place)
    has_clocks = all(rows[place].get(LATENCY_S, 0) > 0 for own in places.values() for place in own)
    for own in places.values():
        first = rows[own[0]]
        period = first[LATENCY_S] / first[LATENCY_CYCLES] if has_clocks and first[LATENCY_CYCLES] else 1.0
        yield _Timed(first["design"], tuple(runs[place] for place in own), period)


def _sentences(designs: list[_Timed], device_class: str) -> Iterator[str]:
    if not designs:
        return
    fastest, *others = sorted(designs, key=lambda design: design.predicted)
    low, high = (end / fastest.predicted for end in ends(fastest.samples(fastest.name)))
    yield (
        f"Error bars of {SHARE:.0%}, class {device_class}: {fastest.name} has the least predicted latency, and a"
        f" machine takes {low:.2f} to {high:.2f} times as long. The columns {EXPECTED[0]} and {EXPECTED[1]} have the"
        " bars of all designs."
    )
    if others:
        yield f"Error bars: {_faster_sentence(fastest, others)}."
    yield f"Error bars, errors by limit of the design ({PAGE}): {'; '.join(_limit_texts(designs, device_class))}."
    if not all(run.has_keys for design in designs for run in design.runs):
        yield (
            "Error bars: for a design whose hardware file has no keys of calls, commands and requests, the errors are"
            " those of predictions without these keys."
        )
    yield f"Error bars: {energy_line(device_class, error_table().power(device_class))}."


def _limit_texts(designs: list[_Timed], device_class: str) -> Iterator[str]:
    """Texts on the errors of predictions, one for each limit, with the number of predictions that have this limit."""
    runs = [run for design in designs for run in design.runs]
    counts = Counter((limit, run.has_keys) for run in runs for limit in run.limits)
    for (limit, has_keys), count in sorted(counts.items()):
        cell = error_table().cell(device_class, has_keys, limit)
        yield f"{limit}, {count:,} of {count_of(len(runs), 'prediction')}: {errors_text(cell, device_class)}"


def _faster_sentence(fastest: _Timed, others: list[_Timed]) -> str:
    own = fastest.samples("fastest")
    shares = [faster_share(own, other.samples("other")) for other in others]
    possible = sum(1 - share >= POSSIBLE for share in shares)
    verb = "is" if possible == 1 else "are"
    return (
        f"{faster_text(shares[0], fastest.name, others[0].name)}, where {others[0].name} has the second-least predicted"
        f" latency; of {count_of(len(others), 'other design')}, {possible:,} {verb} faster than {fastest.name} with a"
        f" probability of at least {POSSIBLE:.0%}"
    )
