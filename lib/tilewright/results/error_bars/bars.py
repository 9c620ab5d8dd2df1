"""Error bars of a run, as JSON values."""

from collections.abc import Mapping, Sequence
from math import exp
from typing import Any

from tilewright.base.errors import count_of
from tilewright.base.json_values import JsonObject
from tilewright.cost.record import LayerRecord
from tilewright.results.error_bars.draws import (
    HIGH,
    LOW,
    PredictedRun,
    ends,
    predicted_run,
    time_samples,
)
from tilewright.results.error_bars.table import LEAST_ROWS, WHOLE, ErrorCell, error_table
from tilewright.results.records import layers_in_order

SHARE = HIGH - LOW


def bars_of_records(
    records: Sequence[LayerRecord], summary: Mapping[str, Any], hardware: str, device_class: str
) -> JsonObject:
    """Error bars of a run on one core. `hardware` is the digest of the hardware, and `device_class` the class of its
    machine.
    """
    layers = [layer.record.latency_breakdown_cycles for layer in layers_in_order(records, summary)]
    return bars_of_run(predicted_run(hardware, device_class, layers))


def bars_of_run(run: PredictedRun) -> JsonObject:
    """Error bars of a run as JSON values: ends of the bar in cycles, and the errors from which the bar is computed."""
    low, high = ends(time_samples(run))
    cells = run.cells(error_table())
    limits: list[JsonObject] = [
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
    """Text on the errors of the layers with one limit: the rows, machines and sets of measurements from which the
    errors come. `device_class` is the class of machines to which these errors are applied.
    """
    rows, machines = count_of(cell.rows, "row"), count_of(cell.machines, "machine")
    text = f"errors of {rows} on {machines} ({', '.join(cell.sets)})"
    if cell.key.device_class == device_class:
        return text
    return f"{text}, of all classes, because {device_class} has fewer than {LEAST_ROWS} such rows"


def energy_line(device_class: str, power: ErrorCell | None) -> str:
    """Line that says why the energy has no error bars. `power` has the errors of the predicted power of chips; None if
    the power of no machine of the class was measured.
    """
    if power is None:
        return f"the energy has no error bars: no energy or power of class {device_class} is measured"
    low, high = (exp(power.quantile(WHOLE, level)) for level in (LOW, HIGH))
    return (
        "the energy has no error bars: only the power of a chip without its DRAM is measured,"
        f" {low:.2f} to {high:.2f} times the prediction ({SHARE:.0%} of {power.rows} rows of {', '.join(power.sets)})"
    )
