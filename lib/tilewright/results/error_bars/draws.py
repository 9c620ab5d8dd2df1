"""Samples of the time that a machine takes for a run, from the prediction and the table of errors.

The error of a layer is the sum of three parts: a part of the program (the same for all machines of a class), a part of
the machine, and a part of the layer. Each part is sampled from its quantiles. The samples of a part depend only on the
program, machine or layer to which it belongs, and not on the order of runs. Two runs with a common part therefore have
the same samples of this part.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple

import numpy as np

from tilewright.base.measures import LATENCY_CYCLES
from tilewright.results.error_bars.table import (
    LEVELS,
    MACHINE,
    OWN,
    PROGRAM,
    ErrorCell,
    ErrorTable,
    Values,
    error_table,
    has_waiting,
    limit_of,
)
from tilewright.results.run_ledger import RunLedger

SAMPLES = 20_000
LOW, HIGH = 0.1, 0.9
"""Quantile levels of the lower and the upper end of an error bar."""


class PredictedLayer(NamedTuple):
    """Predicted latency of a layer, or of a run whose layers are not known."""

    cycles: float
    limit: str
    """Kind of cause that limits the layer, one of `table.LIMITS`."""
    identity: str
    """Text made from the terms of the latency. If two layers have equal texts and belong to one program on one machine,
    the layer parts of their errors are equal.
    """


@dataclass(frozen=True)
class PredictedRun:
    """Predicted latency of a run, with the properties on which the error of the prediction depends."""

    machine: str
    """Text that identifies the hardware. Runs of one program on the same hardware have the same
    machine part of the error.
    """
    device_class: str
    has_keys: bool
    """True if the hardware file has keys of calls, commands and requests."""
    layers: tuple[PredictedLayer, ...]
    program: str = ""
    """Text that identifies the program. It is the same for all runs of one network."""

    @property
    def cycles(self) -> float:
        """Predicted latency in cycles."""
        return sum(layer.cycles for layer in self.layers)

    @property
    def limits(self) -> dict[str, tuple[int, float]]:
        """Pair (number of layers, share of the latency) for each limit of layers. The limit with the largest share
        comes first.
        """
        found: dict[str, tuple[int, float]] = {}
        for layer in self.layers:
            count, share = found.get(layer.limit, (0, 0.0))
            found[layer.limit] = count + 1, share + layer.cycles / (self.cycles or 1.0)
        return dict(sorted(found.items(), key=lambda one: -one[1][1]))

    def cells(self, table: ErrorTable) -> dict[str, ErrorCell]:
        """Errors for each limit that layers of the run have, by limit."""
        return {limit: table.cell(self.device_class, self.has_keys, limit) for limit in self.limits}


def predicted_run(machine: str, device_class: str, layers: Iterable[Mapping[str, float]]) -> PredictedRun:
    """Predicted latency of a run. `layers` has the terms of the latency of each layer, in cycles by name."""
    terms = [dict(own) for own in layers]
    found = (PredictedLayer(float(sum(own.values())), limit_of(own), _identity(own)) for own in terms)
    return PredictedRun(machine, device_class, has_waiting(terms), tuple(one for one in found if one.cycles))


def predicted_of_ledger(ledger: RunLedger, device_class: str) -> PredictedRun:
    """Predicted latency of a run from its ledger. A design without a full run counts as a single layer, because the
    tables of its space do not say what limits each layer.
    """
    layers: dict[str, dict[str, float]] = {}
    for place, value in ledger.entries.items():
        if place.quantity == LATENCY_CYCLES:
            terms = layers.setdefault(place.layer, {})
            terms[place.term] = terms.get(place.term, 0.0) + value
    machine = ledger.made_of.get("hardware") or f"{ledger.run.workload_digest} {ledger.run.run}"
    return predicted_run(machine, device_class, layers.values())


def time_samples(run: PredictedRun, table: ErrorTable | None = None) -> Values:
    """Samples of the time that the machine takes for a run, in predicted cycles: array of SAMPLES numbers. `table` is
    the table of errors; None stands for the table of this package.
    """
    known = table or error_table()
    cells = run.cells(known)
    counts: dict[tuple[str, str], float] = {}
    for layer in run.layers:
        key = layer.limit, layer.identity
        counts[key] = counts.get(key, 0.0) + layer.cycles
    found = np.zeros(SAMPLES)
    for (limit, identity), cycles in counts.items():
        found += cycles * np.exp(layer_errors(cells[limit], run.program, run.machine, identity))
    return found


def ends(samples: Values) -> tuple[float, float]:
    """Pair (low, high) of an error bar: the quantiles LOW and HIGH of samples."""
    low, high = np.quantile(samples, (LOW, HIGH)).tolist()
    return low, high


def faster_share(first: Values, second: Values) -> float:
    """Probability that the first of two runs is faster, from samples of their times in one unit. Samples in which both
    are equally fast count as half.
    """
    return float(np.mean(first < second) + 0.5 * np.mean(first == second))


@lru_cache(maxsize=256)
def layer_errors(cell: ErrorCell, program: str, machine: str, layer: str) -> Values:
    """Samples of log(time / predicted time) of a layer with the errors `cell`. The texts identify the program, the
    machine and the layer.
    """
    kind = f"{cell.key.device_class}|{cell.key.has_keys}|{cell.key.limit}|{program}"
    return (
        _samples(cell, PROGRAM, kind)
        + _samples(cell, MACHINE, f"{kind}|{machine}")
        + _samples(cell, OWN, f"{kind}|{machine}|{layer}")
    )


@lru_cache(maxsize=256)
def _samples(cell: ErrorCell, part: str, key: str) -> Values:
    """Samples of one part of an error: its quantiles at evenly spaced levels, in an order that depends on the key."""
    digest = sha256(f"{part}|{key}".encode()).digest()
    order = np.random.default_rng(int.from_bytes(digest[:8], "big")).permutation(SAMPLES)
    return np.interp((order + 0.5) / SAMPLES, LEVELS, cell.parts[part])


def _identity(terms: Mapping[str, float]) -> str:
    return " ".join(f"{name} {cycles:.17g}" for name, cycles in terms.items() if cycles)
