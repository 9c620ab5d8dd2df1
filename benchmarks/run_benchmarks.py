"""Comparison of tilewright with its pinned peers (zigzag-dse, accelforge, stream-dse), in one run.

    .venv/bin/python benchmarks/run_benchmarks.py [--quick]

Prints tables and writes `results/benchmarks.json`. A slow result is reported, but is no failure.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent
sys.path[:0] = [str(HERE), str(HERE / "reference")]

import design_space  # noqa: E402
import exact_search  # noqa: E402
import multi_core  # noqa: E402
from measurements import Case, Settings, measure_peak_memory, measure_rate, measure_whole  # noqa: E402
from setup_environment import ensure_reference  # noqa: E402

ACCELERATORS = ("tpu_like", "eyeriss_like")
PARTS = ("rate", "whole", "memory", "explore", "exact", "multi")
WHOLE_LIMITS = (6, 8)
PEAK_LIMIT = 10
EXACT_BUDGET_S = 10.0
"""Time budget in seconds of the exact search, for each layer and allocation."""


def parse_arguments() -> argparse.Namespace:
    """Arguments of the command line. Every default is a file of `config/`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--quick", action="store_true", help="time the peer on samples of two layers, and scale the time"
    )
    parser.add_argument("--hardware-dir", type=Path, default=PROJECT / "config" / "hardware" / "zigzag")
    parser.add_argument("--mapping-dir", type=Path, default=PROJECT / "config" / "mapping" / "zigzag")
    parser.add_argument("--workload", type=Path, default=PROJECT / "config" / "workload" / "resnet18.onnx")
    parser.add_argument("--accelerators", nargs="+", default=list(ACCELERATORS), help="names of hardware files")
    parser.add_argument("--rate-lpf-limits", nargs="+", type=int, default=[6, 8])
    parser.add_argument("--only", choices=PARTS, nargs="+", default=list(PARTS))
    parser.add_argument(
        "--repeats", type=int, default=3, help="processes of tilewright per number, which is their median"
    )
    parser.add_argument("--sample", type=int, default=60, help="loop orders per layer for which the peer is timed")
    parser.add_argument(
        "--accelforge",
        choices=("all", "some", "none"),
        default="some",
        help="number of layers for which the peer is timed",
    )
    parser.add_argument("--output", type=Path, default=PROJECT / "results" / "benchmarks.json")
    return parser.parse_args()


def find_case(arguments: argparse.Namespace, accelerator: str) -> Case:
    """Input files of one accelerator. The mapping file has the name of the accelerator; if there is none, it is
    `default.yaml`.
    """
    mapping = arguments.mapping_dir / f"{accelerator}.yaml"
    case = Case(
        hardware=(arguments.hardware_dir / f"{accelerator}.yaml").resolve(),
        mapping=(mapping if mapping.exists() else arguments.mapping_dir / "default.yaml").resolve(),
        workload=arguments.workload.resolve(),
    )
    missing = [str(path) for path in (case.hardware, case.mapping, case.workload) if not path.exists()]
    if missing:
        sys.exit("no such file: " + ", ".join(missing))
    return case


def measure(arguments: argparse.Namespace, settings: Settings, console: Console) -> dict[str, list[dict[str, Any]]]:
    """Results of all requested measurements, which run one after the other."""
    cases = [find_case(arguments, name) for name in arguments.accelerators]
    results: dict[str, list[dict[str, Any]]] = {part: [] for part in PARTS}
    with console.status("") as status:
        for case in cases if "rate" in arguments.only else []:
            for limit in arguments.rate_lpf_limits:
                status.update(f"rate: {case.name}, lpf_limit {limit}")
                results["rate"].append(measure_rate(case, limit, settings))
        for case in cases if "whole" in arguments.only else []:
            for limit in WHOLE_LIMITS:
                status.update(f"whole command: {case.name}, lpf_limit {limit}")
                results["whole"].append(measure_whole(case, limit, settings))
        for case in cases if "memory" in arguments.only else []:
            status.update(f"peak memory: {case.name}, lpf_limit {PEAK_LIMIT}")
            results["memory"].append(measure_peak_memory(case, PEAK_LIMIT, settings))
        if "explore" in arguments.only:
            status.update("explore: designs of a space")
            results["explore"].append(design_space.measure_designs(settings))
        if "exact" in arguments.only:
            results["exact"] = exact_search.measure(exact_settings(arguments, status.update))
        if "multi" in arguments.only:
            options = multi_core.parse_arguments(["--quick"] if arguments.quick else [])
            results["multi"] = [multi_core.measure_all(options, status.update)]
    return results


def exact_settings(arguments: argparse.Namespace, say: Callable[[str], None]) -> exact_search.Settings:
    """Settings of `exact_search.py` for this run: one objective, and all layers (a few with `--quick`)."""
    return exact_search.Settings(
        objective="latency",
        accelerators=exact_search.ACCELERATORS,
        layers=exact_search.REPRESENTATIVE_LAYERS if arguments.quick else (),
        time_budget_s=EXACT_BUDGET_S,
        accelforge="none" if arguments.quick else arguments.accelforge,
        accelforge_limit_s=300,
        accelforge_memory_orders="file",
        say=say,
    )


def rows_of(results: dict[str, list[dict[str, Any]]]) -> list[tuple[str, ...]]:
    """Rows of the table: name, tilewright, zigzag-dse, ratio, target, method."""
    rows: list[tuple[str, ...]] = []
    for row in results["rate"]:
        what = f"orders per second and core\n{row['case']}, lpf_limit {row['lpf_limit']}"
        ours, theirs = f"{row['ours_orders_per_second']:,.0f}", f"{row['reference_orders_per_second']:,.0f}"
        rows.append((what, ours, theirs, f"{row['ratio']:,.0f}x", f"{row['target_ratio']:,.0f}x", row["how"]))
    for row in results["whole"]:
        what = f"whole command\n{row['case']}, lpf_limit {row['lpf_limit']}"
        ours, theirs = f"{row['ours']['wall_seconds']:.2f} s", f"{row['reference']['wall_seconds']:,.1f} s"
        target = f"{row['target_ratio']:,.0f}x" if row["target_ratio"] else ""
        rows.append((what, ours, theirs, f"{row['ratio']:,.0f}x", target, row["how"] + totals_note(row)))
    for row in results["memory"]:
        what = f"peak memory\n{row['case']}, lpf_limit {row['lpf_limit']}"
        rows.append((what, f"{row['peak_memory_mb']:.0f} MB", "", "", f"< {row['target_mb']:.0f} MB", row["how"]))
    for found in results["explore"]:
        rows += design_space.rows_of(found)
    return rows


def totals_note(row: dict[str, Any]) -> str:
    """Note on whether both tools found equal network energy and latency, if both ran the whole network."""
    ours, theirs = row["ours"]["totals"], row["reference"]["totals"]
    if not ours or not theirs:
        return ""
    worst = max(abs(ours[key] - theirs[key]) / theirs[key] for key in theirs)
    return "; same energy and latency" if worst < 1e-9 else f"; RESULTS DIFFER by {worst:.1e} relative"


def print_table(results: dict[str, list[dict[str, Any]]], console: Console) -> None:
    """Print the rows."""
    if results.get("exact"):
        exact_search.print_summary(results["exact"], console)
    for found in results.get("multi", []):
        multi_core.print_tables(found, console)
    rows = rows_of(results)
    if not rows:
        return
    table = Table(title="tilewright beside zigzag-dse 3.9.1")
    table.add_column("measured", min_width=26)
    for heading in ("tilewright", "zigzag-dse", "ratio", "target"):
        table.add_column(heading, justify="right", no_wrap=True)
    for number, row in enumerate(rows, 1):
        table.add_row(f"{number}. {row[0]}", *row[1:-1])
    console.print(table)
    for number, row in enumerate(rows, 1):
        console.print(f"{number}. {row[-1]}", highlight=False)


def main() -> None:
    """Install the peer if needed. Measure, print the tables, and write the file."""
    arguments = parse_arguments()
    console = Console(width=None if sys.stdout.isatty() else 180)
    with console.status("the peer's environment (.cache/reference-venv)"):
        python = ensure_reference()
    with tempfile.TemporaryDirectory() as scratch:
        settings = Settings(python, Path(scratch), arguments.quick, arguments.repeats, arguments.sample)
        try:
            results = measure(arguments, settings, console)
        except RuntimeError as failure:  # a measured command failed; its own message says why
            sys.exit(str(failure))
    print_table(results, console)
    if results["exact"]:
        exact_search.write_csv(results["exact"], exact_search.default_output("latency"))
    machine = {"machine": platform.machine(), "python": platform.python_version(), "quick": arguments.quick}
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(machine | results, indent=1) + "\n")
    console.print(f"written: {arguments.output}")


if __name__ == "__main__":
    main()
