"""Three measurements of tilewright and a peer. Each returns numbers for the table and for `results/benchmarks.json`."""

from __future__ import annotations

import json
import shutil
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from child import ChildRun, run_child

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent
OURS = str(HERE / "ours.py")
REFERENCE = str(HERE / "reference" / "measure.py")
RATE_TARGET_RATIO = 2000.0
WHOLE_TARGET_RATIO = {6: 50.0, 8: 1500.0}
PEAK_TARGET_MB = 600.0


@dataclass(frozen=True)
class Case:
    """Accelerator, with the mapping file and the workload to run on it."""

    hardware: Path
    mapping: Path
    workload: Path

    @property
    def name(self) -> str:
        """Names of the accelerator and the workload."""
        return f"{self.workload.stem} on {self.hardware.stem}"

    @property
    def paths(self) -> list[str]:
        """Paths as arguments of the measuring scripts."""
        return [str(self.hardware), str(self.workload), str(self.mapping)]


@dataclass(frozen=True)
class Settings:
    """Extent of the measurement."""

    reference_python: Path
    scratch: Path
    quick: bool
    repeats: int
    sample: int


def ours(arguments: list[str]) -> ChildRun:
    """Run one of our commands with this interpreter. The package is imported from `lib`."""
    return run_child([sys.executable, *arguments], {"PYTHONPATH": str(PROJECT / "lib")}, PROJECT)


def reference(settings: Settings, arguments: list[str]) -> ChildRun:
    """Run the measuring script of the peer with the peer's interpreter."""
    return run_child(
        [str(settings.reference_python), REFERENCE, *arguments], {"OPENBLAS_NUM_THREADS": "1"}, settings.scratch
    )


def last_json(run: ChildRun) -> Any:
    """JSON object on the last line of the output of a process. The peer prints other lines before it."""
    return json.loads(run.output.splitlines()[-1])


def rates(measured: list[dict[str, Any]]) -> list[float]:
    """Loop orders per CPU second, for each layer."""
    return [row["orders"] / row["cpu_seconds"] for row in measured]


def measure_rate(case: Case, lpf_limit: int, settings: Settings) -> dict[str, Any]:
    """Measure the number of loop orders that are allocated and costed per second and core, over the distinct layers of
    the workload.
    """
    limit = ["--lpf-limit", str(lpf_limit)]
    their_run = reference(settings, ["orders", *case.paths, *limit, "--layers", "99", "--sample", str(settings.sample)])
    theirs = last_json(their_run)["measured"]
    our_medians, whole_medians = [], []
    for _ in range(settings.repeats):
        measured = last_json(ours([OURS, "rate", *case.paths, *limit]))["measured"]
        our_medians.append(statistics.median(rates(measured)))
        whole_medians.append(statistics.median(rates([row["whole"] for row in measured])))
    whole_rate = statistics.median(whole_medians)
    our_rate, their_rate = statistics.median(our_medians), statistics.median(rates(theirs))
    return {
        "case": case.name,
        "lpf_limit": lpf_limit,
        "ours_orders_per_second": our_rate,
        "reference_orders_per_second": their_rate,
        "ours_with_everything_per_second": whole_rate,
        "ratio": our_rate / their_rate,
        "target_ratio": RATE_TARGET_RATIO,
        "how": f"process CPU time, compilation excluded; ours: making, allocating and costing all orders, "
        f"median of {len(measured)} layers and {settings.repeats} processes (with spatial mapping, two breakdowns and "
        f"record of each layer: {whole_rate:,.0f}, {whole_rate / their_rate:,.0f}x); "
        f"reference: allocation and cost of about {settings.sample} orders a layer, spread evenly, "
        f"median of {len(theirs)} layers, making the orders not counted",
    }


def measure_whole(case: Case, lpf_limit: int, settings: Settings) -> dict[str, Any]:
    """Measure the time from the start of a process to the written result: our command, and the peer's API call in its
    own process.
    """
    output = settings.scratch / "ours"
    command = ["-m", "tilewright", "map", "--hardware", case.paths[0], "--workload", case.paths[1]]
    command += ["--preset", "zigzag", "--mapping", case.paths[2], "--lpf-limit", str(lpf_limit)]
    command += ["--objective", "latency"]
    command += ["-o", str(output), "--no-store"]
    first = ours(command)
    runs = []
    for _ in range(settings.repeats):
        shutil.rmtree(output, ignore_errors=True)
        runs.append(ours(command))
    our_seconds = {
        "wall_seconds": statistics.median(run.wall_seconds for run in runs),
        "cpu_seconds": statistics.median(run.cpu_seconds for run in runs),
    }
    whole = lpf_limit <= 6 and not settings.quick
    theirs = _whole_reference(case, settings, lpf_limit) if whole else _scaled_reference(case, settings, lpf_limit)
    return {
        "case": case.name,
        "lpf_limit": lpf_limit,
        "ours": our_seconds | {"first_run_wall_seconds": first.wall_seconds, "totals": _our_totals(output)},
        "reference": theirs,
        "ratio": theirs["wall_seconds"] / our_seconds["wall_seconds"],
        "target_ratio": WHOLE_TARGET_RATIO.get(lpf_limit),
        "how": f"wall time from process start to written result; ours: median of {settings.repeats} processes after "
        f"one that compiles, no store; reference: {theirs['how']}",
    }


def _our_totals(output: Path) -> dict[str, float] | None:
    path = output / "summary.json"
    if not path.exists():
        return None
    summary = json.loads(path.read_text())
    summary = summary.get("payload", summary)
    return {key: summary[key] for key in ("energy_pj", "latency_cycles") if key in summary}


def _whole_reference(case: Case, settings: Settings, lpf_limit: int) -> dict[str, Any]:
    arguments = ["whole", *case.paths, "--lpf-limit", str(lpf_limit), "--objective", "latency"]
    run = reference(settings, [*arguments, "--output", str(settings.scratch / "reference")])
    totals = last_json(run)
    return {
        "wall_seconds": run.wall_seconds,
        "cpu_seconds": run.cpu_seconds,
        "totals": {key: totals[key] for key in ("energy_pj", "latency_cycles")},
        "how": f"one whole run, {totals['layers']} layers",
    }


def _scaled_reference(case: Case, settings: Settings, lpf_limit: int) -> dict[str, Any]:
    """Time of the peer, scaled by number of orders from two measured layers.

    The result is a lower bound: start, parsing and writing are not included.
    """
    sample = ["--sample", str(settings.sample)] if settings.quick else []
    run = reference(settings, ["orders", *case.paths, "--lpf-limit", str(lpf_limit), "--layers", "2", *sample])
    result = last_json(run)
    measured = result["measured"]
    seconds_per_order = sum(row["cpu_seconds"] for row in measured) / sum(row["orders"] for row in measured)
    seconds = seconds_per_order * result["order_count"]
    orders = ", ".join(f"{row['orders']} orders of {row['layer']}" for row in measured)
    return {
        "wall_seconds": seconds,
        "cpu_seconds": seconds,
        "totals": None,
        "how": f"SCALED, not run whole: CPU time of {orders}, times {result['order_count']} orders of all layers; "
        "start, parsing and writing left out",
    }


def measure_peak_memory(case: Case, lpf_limit: int, settings: Settings) -> dict[str, Any]:
    """Measure the peak resident memory of a process that maps the layer with most loop orders. Imports are included."""
    counted = last_json(reference(settings, ["orders", *case.paths, "--lpf-limit", str(lpf_limit), "--layers", "0"]))[
        "orders_of_layer"
    ]
    layer = max(counted, key=lambda name: counted[name])
    run = ours([OURS, "one", *case.paths, "--lpf-limit", str(lpf_limit), "--layer", layer])
    result = last_json(run)
    return {
        "case": case.name,
        "lpf_limit": lpf_limit,
        "layer": layer,
        "orders": result["orders"],
        "cpu_seconds": result["cpu_seconds"],
        "peak_memory_mb": run.peak_memory_mb,
        "target_mb": PEAK_TARGET_MB,
        "how": f"peak resident set of the process that maps {layer} ({result['orders']} orders)",
    }
