"""Comparison of the exact search with loma, salsa and the peer accelforge, layer by layer.

    .venv/bin/python benchmarks/exact_search.py [--objective energy] [--accelforge all|some|none]

There is a row for each distinct layer of resnet18 and mobilenetv2, accelerator and allocation. The row has the number
of loops, the number of orders in the space, the number of visited nodes, the CPU time, the value, and whether the value
is proven. It also has the excess of loma and salsa over this value. The last columns are the results of accelforge for
the same layer, on an architecture like ours. `accelforge/README.md` lists the differences. Prints the table and writes
it to `benchmarks/results/`. A slow result is reported, but is no failure.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent
sys.path[:0] = [str(HERE), str(PROJECT / "lib")]

from accelforge.setup_environment import NoSuitablePythonError, ensure_accelforge  # noqa: E402
from child import run_child  # noqa: E402
from layer_cases import ACCELERATORS, REPRESENTATIVE_LAYERS, layer_cases, peer_layer  # noqa: E402
from tilewright.base.objectives import OBJECTIVES  # noqa: E402

PEER_RUNNER = HERE / "accelforge" / "runner.py"
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
Row = dict[str, Any]


@dataclass(frozen=True)
class Settings:
    """Extent of the measurement."""

    objective: str
    accelerators: tuple[str, ...]
    layers: tuple[str, ...]
    """Names of layers as network/layer; () for all layers."""
    time_budget_s: float
    """Time budget in seconds of the exact search, for each layer and allocation."""
    accelforge: str
    """Layers that accelforge also searches: all, some (REPRESENTATIVE_LAYERS) or none."""
    accelforge_limit_s: int
    """Largest CPU time in seconds of accelforge for one layer."""
    accelforge_memory_orders: str
    """Orders in which accelforge nests its memories. file: only the order of the hardware file. all: all orders, with a
    separate search for each.
    """
    say: Callable[[str], None]
    """Function that is called with a text on the present measurement."""


def measure_ours(accelerator: str, settings: Settings) -> list[Row]:
    """Results of our searches for the layers of one accelerator, in a separate process: one row for each allocation."""
    command = [sys.executable, str(HERE / "searches.py"), accelerator, "--objective", settings.objective]
    command += ["--time-budget-s", str(settings.time_budget_s), "--layers", *settings.layers]
    run = run_child(command, {"PYTHONPATH": str(PROJECT / "lib")} | ONE_THREAD, PROJECT)
    found = json.loads(run.output.splitlines()[-1])
    return [
        row_of(accelerator, settings.objective, layer, allocation)
        for layer in found["layers"]
        for allocation in layer["exact"]
    ]


def row_of(accelerator: str, objective: str, layer: Row, allocation: str) -> Row:
    """Row of one layer and allocation. Excesses are relative to the value of the exact search."""
    exact, loma, salsa = layer["exact"][allocation], layer["loma"], layer["salsa"]
    notes = exact.get("notes", {})
    row = {
        "accelerator": accelerator,
        "objective": objective,
        "allocation": allocation,
        "layer": layer["layer"],
        "repeats": layer["repeats"],
        "loops": layer["loops"],
        "orders_in_space": notes.get("orders_in_space"),
        "nodes": notes.get("nodes"),
        "cpu_seconds": exact.get("cpu_seconds"),
        "value": exact.get("value"),
        "proven": notes.get("proven"),
        "lower_bound": notes.get("lower_bound"),
        "gap": notes.get("gap"),
        "failure": exact.get("failure", "" if notes else "nothing fits"),
        "loma_orders": loma["visited"],
        "loma_cpu_seconds": loma["cpu_seconds"],
        "loma_value": loma["value"],
        "loma_excess": excess(loma["value"], exact.get("value")),
    }
    for budget, run in zip(("equal", "large"), salsa, strict=True):
        row[f"salsa_{budget}_evaluations"] = run["evaluations"]
        row[f"salsa_{budget}_cpu_seconds"] = run["cpu_seconds"]
        row[f"salsa_{budget}_value"] = run["value"]
        row[f"salsa_{budget}_excess"] = excess(run["value"], exact.get("value"))
    return row


def excess(value: float, best: float | None) -> float | None:
    """Relative excess of a value over the best value."""
    return value / best - 1 if best else None


def measure_accelforge(rows: list[Row], settings: Settings) -> None:
    """Add the CPU time of accelforge to the rows of the chosen layers. Each layer has a separate process; the processes
    run one after another.
    """
    if settings.accelforge == "none":
        return
    try:
        python = ensure_accelforge()
    except (NoSuitablePythonError, subprocess.CalledProcessError) as missing:
        for row in rows:
            row |= {"accelforge_outcome": "left out", "accelforge_reason": str(missing)}
        return
    cases = {(name, case.name): case for name in settings.accelerators for case in layer_cases(name)}
    found: dict[tuple[str, str], Row] = {}
    for row in rows:
        key = (row["accelerator"], row["layer"])
        if settings.accelforge == "some" and row["layer"] not in REPRESENTATIVE_LAYERS:
            continue
        if key not in found:
            settings.say(f"accelforge: {row['layer']} on {row['accelerator']}")
            found[key] = run_accelforge(python, row, peer_layer(cases[key]), settings)
        row |= {f"accelforge_{name}": value for name, value in found[key].items()}
        if row["cpu_seconds"] and "cpu_seconds" in found[key]:
            row["accelforge_ratio"] = found[key]["cpu_seconds"] / row["cpu_seconds"]


def run_accelforge(python: Path, row: Row, layer: Row, settings: Settings) -> Row:
    """Run accelforge on one layer. The outcome in the result is found, timeout or failed."""
    command = [str(python), str(PEER_RUNNER), str(PEER_RUNNER.with_name(f"{row['accelerator']}.yaml"))]
    command += ["--layer", json.dumps(layer), "--objective", row["objective"]]
    command += ["--cpu-limit-s", str(settings.accelforge_limit_s)]
    command += ["--memory-orders", settings.accelforge_memory_orders]
    try:
        answer: Row = json.loads(run_child(command, ONE_THREAD).output.splitlines()[-1])
    except RuntimeError as failure:
        return {"outcome": "failed", "reason": str(failure)}
    return answer


def measure(settings: Settings) -> list[Row]:
    """Rows of all measurements. One process runs at a time."""
    rows: list[Row] = []
    for accelerator in settings.accelerators:
        settings.say(f"exact, loma and salsa: all layers on {accelerator}")
        rows += measure_ours(accelerator, settings)
    measure_accelforge(rows, settings)
    return rows


def print_layers(rows: list[Row], console: Console) -> None:
    """Print a table for each accelerator and allocation, with a line for each layer."""
    headings = ["layer", "loops", "orders", "nodes", "CPU", "value", "proven", "loma 6", "salsa", "salsa x10"]
    headings += ["accelforge", "ratio"]
    for title, group in groups(rows):
        table = Table(title=title)
        for heading in headings:
            table.add_column(heading, justify="left" if heading == "layer" else "right", no_wrap=True)
        for row in group:
            table.add_row(*cells(row))
        console.print(table)
    console.print(
        "orders: in the space; loma 6, salsa: how much worse than the exact search, loma at lpf_limit 6, salsa (median "
        "of five seeds) with as many evaluations as loma and ten times as many; accelforge: its CPU time; ratio: that "
        "over the CPU time of the exact search",
        highlight=False,
    )


def cells(row: Row) -> list[str]:
    """Cells of one line of the table."""
    if row["failure"]:
        return [row["layer"], str(row["loops"]), row["failure"]]
    return [
        row["layer"],
        str(row["loops"]),
        f"{row['orders_in_space']:.1e}",
        f"{row['nodes']:,}",
        seconds(row["cpu_seconds"]),
        f"{row['value']:.6g}",
        "yes" if row["proven"] else f"gap {row['gap']:.2%}",
        f"+{row['loma_excess']:.2%}",
        f"+{row['salsa_equal_excess']:.2%}",
        f"+{row['salsa_large_excess']:.2%}",
        peer_time(row),
        f"{row['accelforge_ratio']:,.0f}x" if "accelforge_ratio" in row else "",
    ]


def seconds(value: float) -> str:
    """CPU time as text for readers."""
    return f"{value * 1e3:.1f} ms" if value < 1 else f"{value:.2f} s"


def peer_time(row: Row) -> str:
    """CPU time of accelforge as text; the reason if there is no time."""
    outcome = row.get("accelforge_outcome", "")
    if outcome == "found":
        return seconds(row["accelforge_cpu_seconds"])
    return f"> {row['accelforge_cpu_seconds']:.0f} s" if outcome == "timeout" else outcome


def groups(rows: list[Row]) -> Iterable[tuple[str, list[Row]]]:
    """Pairs (title, rows), one for each accelerator, objective and allocation."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        title = f"{row['accelerator']}, {row['objective']}, {row['allocation']} allocation"
        found.setdefault(title, []).append(row)
    return found.items()


def print_summary(rows: list[Row], console: Console) -> None:
    """Print medians and maxima over the layers."""
    table = Table(title="exact search: median (largest) over the layers")
    headings = ["accelerator, objective, allocation", "proven", "CPU", "nodes", "loma 6", "salsa", "salsa x10"]
    for heading in [*headings, "accelforge", "ratio"]:
        table.add_column(heading, justify="left" if heading == headings[0] else "right")
    for title, group in groups(rows):
        solved = [row for row in group if not row["failure"]]
        proven = f"{sum(bool(row['proven']) for row in solved)} of {len(group)}"
        columns = [
            spread(solved, "cpu_seconds", seconds),
            spread(solved, "nodes", lambda value: f"{value:,.0f}"),
            *(
                spread(solved, name, lambda value: f"+{value:.2%}")
                for name in ("loma_excess", "salsa_equal_excess", "salsa_large_excess")
            ),
            spread(solved, "accelforge_cpu_seconds", seconds),
            spread(solved, "accelforge_ratio", lambda value: f"{value:,.0f}x"),
        ]
        table.add_row(title, proven, *columns)
    console.print(table)
    print_accelforge_troubles(rows, console)


def print_accelforge_troubles(rows: list[Row], console: Console) -> None:
    """Print the layers for which accelforge gave no optimum, with the reasons."""
    late = {(row["accelerator"], row["layer"]) for row in rows if row.get("accelforge_outcome") == "timeout"}
    if late:
        console.print(f"accelforge stopped at its limit on {len(late)} layers, with the limit as its time")
    for outcome in ("left out", "failed"):
        reasons = {row["accelforge_reason"]: row for row in rows if row.get("accelforge_outcome") == outcome}
        for reason in reasons:
            console.print(f"accelforge {outcome}: {reason}", highlight=False)


def spread(rows: list[Row], name: str, show: Callable[[float], str]) -> str:
    """Median and largest value of a column as text; '' if no row has a value."""
    values = [row[name] for row in rows if row.get(name) is not None]
    return f"{show(statistics.median(values))} ({show(max(values))})" if values else ""


def default_output(objective: str) -> Path:
    """Path of the file for the rows of one objective."""
    return HERE / "results" / f"exact-{objective}.csv"


def write_csv(rows: list[Row], path: Path) -> None:
    """Write all columns of all rows to a CSV file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objective", choices=tuple(OBJECTIVES), default="latency")
    parser.add_argument("--accelerators", nargs="+", choices=ACCELERATORS, default=list(ACCELERATORS))
    parser.add_argument("--layers", nargs="*", default=[], help="names as network/layer; default all")
    parser.add_argument("--time-budget-s", type=float, default=30.0, help="of the exact search, for each layer")
    parser.add_argument("--accelforge", choices=("all", "some", "none"), default="some", help="layers for accelforge")
    parser.add_argument("--accelforge-limit-s", type=int, default=300, help="CPU seconds of accelforge per layer")
    parser.add_argument("--accelforge-memory-orders", choices=("file", "all"), default="file", help="see its README")
    parser.add_argument("--output", type=Path, help="default benchmarks/results/exact-OBJECTIVE.csv")
    arguments = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 180)
    settings = Settings(
        arguments.objective,
        tuple(arguments.accelerators),
        tuple(arguments.layers),
        arguments.time_budget_s,
        arguments.accelforge,
        arguments.accelforge_limit_s,
        arguments.accelforge_memory_orders,
        console.log,
    )
    try:
        rows = measure(settings)
    except RuntimeError as failure:  # a measured command failed; its own message says why
        sys.exit(str(failure))
    print_layers(rows, console)
    print_summary(rows, console)
    output = arguments.output or default_output(arguments.objective)
    write_csv(rows, output)
    console.print(f"written: {output}")


if __name__ == "__main__":
    main()
