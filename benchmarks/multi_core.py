"""The multi-core flow beside the pinned peer stream-dse 0.0.8, part by part and as a whole, in one run.

    .venv/bin/python benchmarks/multi_core.py [--quick] [--only graph stages run scale]

Both map resnet18 on the quad core of `config/hardware/multi/quad_core.yaml`, each in the words of its own files
(`stream_dse/quad_core.py`), cut by the same outer loops. Times are CPU seconds, each side in processes of its own that
take turns; the numbers are medians. Prints tables in Markdown and writes `benchmarks/results/multi_core.json`. It
reports; it never fails because something is slow. `README.md` says what is counted.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent
sys.path[:0] = [str(HERE), str(PROJECT / "lib")]

from child import ChildRun, run_child  # noqa: E402
from stream_dse.setup_environment import ensure_stream  # noqa: E402

OURS, PEER = HERE / "multi_core_ours.py", HERE / "stream_dse" / "runner.py"
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
HARDWARE = PROJECT / "config" / "hardware" / "multi" / "quad_core.yaml"
MAPPING = HERE / "stream_dse" / "free_allocation.yaml"
PARTS = ("graph", "stages", "run", "scale")
LINES = [["OY", "all"]]
PIXELS = [["OX", "all"], ["OY", "all"]]
TILINGS: tuple[list[list[Any]], ...] = (LINES, [["OY", "all"], ["K", 4]], [["OX", 8], ["OY", "all"]], PIXELS)
"""From lines to single pixels; the graph is measured for each."""
TARGETS = {"graph": 100, "cost": 50, "schedule": 300, "run": 100}
SCALE_INPUT_SIDES = {3: 32, 4: 80, 5: 256, 6: 832}
"""Power of ten of the CNs wanted -> side of the input image of resnet18, cut into single pixels."""
Row = dict[str, Any]


@dataclass(frozen=True)
class Settings:
    """How much to measure."""

    peer_python: Path
    workload: Path
    rounds: int
    """Processes of each side that take turns."""
    individuals: int
    generations: int
    tilings: tuple[list[list[Any]], ...]
    say: Callable[[str], None]


def ours(part: str, settings: Settings, *arguments: str, workload: Path | None = None) -> ChildRun:
    """One of our measuring processes."""
    inputs = [str(HARDWARE), str(workload or settings.workload), str(MAPPING)]
    command = [sys.executable, str(OURS), part, *inputs, *arguments]
    return run_child(command, {"PYTHONPATH": str(PROJECT / "lib")} | ONE_THREAD, PROJECT)


def peer(part: str, settings: Settings, *arguments: str) -> ChildRun:
    """One of the peer's measuring processes, in a folder of its own."""
    command = [str(settings.peer_python), str(PEER), part, str(settings.workload), *arguments]
    with tempfile.TemporaryDirectory() as folder:
        return run_child(command, ONE_THREAD, Path(folder))


def answer(run: ChildRun) -> Row:
    """The JSON object on the last line of a child's output."""
    found: Row = json.loads(run.output.splitlines()[-1])
    return found


def loops_of(tiling: list[list[Any]]) -> list[str]:
    """The flag of a tiling."""
    return ["--loops", json.dumps(tiling)]


def middle(found: list[Row], *path: str) -> float:
    """Median over the repeats of all processes of what stands at `path`."""
    values: list[float] = []
    for row in found:
        for key in path:
            row = row[key]
        values += row
    return statistics.median(values)


def compared(what: str, our_seconds: float, peer_seconds: float, sizes: dict[str, tuple[int, int]], target: int) -> Row:
    """A row: both times and, where the two sides have different amounts of work, the ratio for each unit of it."""
    ratio = peer_seconds / our_seconds
    return {
        "what": what,
        "ours_cpu_s": our_seconds,
        "peer_cpu_s": peer_seconds,
        "ratio": ratio,
        "target": target,
        "sizes": sizes,
        "ratio_per": {unit: ratio * mine / theirs for unit, (mine, theirs) in sizes.items()},
    }


def graph_sizes(mine: Row, theirs: Row) -> dict[str, tuple[int, int]]:
    """(ours, the peer's) CNs and edges."""
    return {"CN": (mine["cns"], theirs["cns"]), "edge": (mine["edges"], theirs["edges"])}


def measure_graphs(settings: Settings) -> list[Row]:
    """The graph of computation nodes with its edges, for each tiling."""
    rows = []
    for tiling in settings.tilings:
        repeats = ["--repeats", "5" if tiling == LINES else "1"]
        mine, theirs = [], []
        for _ in range(settings.rounds):
            settings.say(f"graph: {named(tiling)}")
            mine.append(answer(ours("graph", settings, *loops_of(tiling), "--repeats", "5")))
            theirs.append(answer(peer("graph", settings, *loops_of(tiling), *repeats)))
        times = middle(mine, "graph", "cpu_seconds"), middle(theirs, "graph", "cpu_seconds")
        sizes = graph_sizes(mine[0]["graph"], theirs[0]["graph"])
        row = compared(f"CN graph, cut {named(tiling)}", *times, sizes, TARGETS["graph"])
        rows.append(row | {"ours_peak_mib": mine[0]["peak_mib"], "peer_peak_mib": theirs[0]["peak_mib"]})
    return rows


def named(tiling: list[list[Any]]) -> str:
    """A tiling for people."""
    return ", ".join(f"{dimension} {count}" for dimension, count in tiling)


def measure_stages(settings: Settings) -> tuple[list[Row], Row]:
    """(rows for cost table and schedule evaluation, what else was found)."""
    mine, theirs = [], []
    for _ in range(settings.rounds):
        settings.say("stages: the peer")
        theirs.append(answer(peer("stages", settings, "--repeats", "3")))
        settings.say("stages: tilewright")
        allocation = json.dumps(theirs[0]["schedule"]["allocation"])
        mine.append(answer(ours("stages", settings, "--allocation", allocation)))
    cost = [row["cost"]["cpu_seconds"] for row in theirs]
    first_mine, first_theirs = mine[0], theirs[0]
    entries = {"mapping searched": (first_mine["cost"]["entries"], first_theirs["cost"]["searches"])}
    cns = {"CN": (first_mine["graph"]["cns"], first_theirs["graph"]["cns"])}
    rows = [
        compared("cost table", middle(mine, "cost", "cpu_seconds"), statistics.median(cost), entries, TARGETS["cost"]),
        compared(
            "one schedule evaluation",
            middle(mine, "schedule", "cpu_seconds"),
            middle(theirs, "schedule", "cpu_seconds"),
            cns,
            TARGETS["schedule"],
        ),
        compared(
            "one schedule evaluation, the peer without copying its graph",
            middle(mine, "schedule", "cpu_seconds"),
            middle(theirs, "schedule", "scheduler_cpu_seconds"),
            cns,
            TARGETS["schedule"],
        ),
    ]
    return rows, {"ours": mine, "peer": theirs}


def measure_run(settings: Settings) -> tuple[list[Row], Row]:
    """The whole run with equal individuals and generations, each side in a process of its own."""
    counts = ["--individuals", str(settings.individuals), "--generations", str(settings.generations)]
    mine = []
    for _ in range(settings.rounds):
        settings.say("whole run: tilewright")
        mine.append(ours("run", settings, *counts))
    settings.say("whole run: the peer")
    theirs = peer("run", settings, *counts)
    row = compared(
        f"whole run, {settings.individuals} individuals, {settings.generations} generations",
        statistics.median(run.cpu_seconds for run in mine),
        theirs.cpu_seconds,
        {},
        TARGETS["run"],
    )
    found = {"ours": answer(mine[0]), "peer": answer(theirs)}
    row |= {"ours_peak_mib": found["ours"]["peak_mib"], "peer_peak_mib": found["peer"]["peak_mib"]}
    return [row], found


def measure_scale(settings: Settings, largest: int) -> list[Row]:
    """Ours alone: resnet18 on larger and larger images, cut into single pixels, from files to a schedule."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for power in range(3, largest + 1):
            settings.say(f"scale: 10^{power}")
            path = with_input_side(settings.workload, SCALE_INPUT_SIDES[power], Path(folder))
            rows.append(answer(ours("scale", settings, *loops_of(PIXELS), workload=path)))
    return rows


def with_input_side(model: Path, side: int, folder: Path) -> Path:
    """The network for a square image of another size."""
    import onnx

    network = onnx.load(model, load_external_data=False)
    for place in (2, 3):
        network.graph.input[0].type.tensor_type.shape.dim[place].dim_value = side
    del network.graph.value_info[:]
    for output in network.graph.output:
        output.type.tensor_type.ClearField("shape")
    path = folder / f"{model.stem}-{side}.onnx"
    onnx.save(onnx.shape_inference.infer_shapes(network), path)
    return path


def seconds(value: float) -> str:
    """A time for people."""
    return f"{value * 1e3:.2f} ms" if value < 1 else f"{value:.2f} s"


def markdown(headings: list[str], rows: list[list[str]]) -> str:
    """A Markdown table; the first column to the left."""
    lines = [headings, ["---"] + ["---:"] * (len(headings) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def comparison_table(rows: list[Row]) -> str:
    """tilewright beside the peer."""
    cells = []
    for row in rows:
        sizes = "; ".join(f"{unit}s: {mine:,} and {theirs:,}" for unit, (mine, theirs) in row["sizes"].items())
        each = ", ".join(f"{ratio:,.0f}x a {unit}" for unit, ratio in row["ratio_per"].items())
        times = [seconds(row["ours_cpu_s"]), seconds(row["peer_cpu_s"])]
        cells.append([row["what"], *times, f"{row['ratio']:,.0f}x", f"{row['target']}x", each, sizes])
    headings = [
        "CPU time of",
        "tilewright",
        "stream-dse 0.0.8",
        "ratio",
        "target",
        "ratio for each",
        "work of each side",
    ]
    return markdown(headings, cells)


def scale_table(rows: list[Row]) -> str:
    """Seconds and MiB of growing graphs, and the exponents of growth from row to row."""
    steps = ("graph", "assembly", "preparation", "schedule")
    cells = []
    for before, row in zip([None, *rows], rows, strict=False):
        line = [f"{row['cns']:,}", f"{row['edges']:,}"]
        for step in steps:
            text = f"{row['cpu_seconds'][step]:.3f}"
            if before is not None:
                growth = math.log(row["cpu_seconds"][step] / before["cpu_seconds"][step])
                text += f" ({growth / math.log(row['cns'] / before['cns']):.2f})"
            line.append(text)
        cells.append([*line, f"{max(row['peak_mib'].values()):,.0f}"])
    headings = ["CNs", "edges", *(f"{step} s (exponent)" for step in steps), "peak MiB"]
    return markdown(headings, cells)


def main() -> None:
    """Set the peer up when needed, measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="lines only, one round, 4 individuals, 1 generation")
    parser.add_argument("--only", choices=PARTS, nargs="+", default=list(PARTS))
    parser.add_argument("--workload", type=Path, default=PROJECT / "config" / "workload" / "resnet18.onnx")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each side that take turns")
    parser.add_argument("--individuals", type=int, default=16)
    parser.add_argument("--generations", type=int, default=16)
    parser.add_argument("--largest", type=int, default=6, help="10 to this power is the largest number of CNs")
    parser.add_argument("--output", type=Path, default=HERE / "results" / "multi_core.json")
    arguments = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 200)
    with console.status("the peer's environment (.cache/stream-venv)") as status:
        try:
            python = ensure_stream()
        except subprocess.CalledProcessError as failure:
            sys.exit(f"stream-dse could not be installed: {failure}")
        found = measure(arguments, python, status.update)
    rows = [row for part in ("graph", "stages", "run") for row in found[part]]
    for text in ([comparison_table(rows)] if rows else []) + ([scale_table(found["scale"])] if found["scale"] else []):
        console.print(text + "\n", highlight=False, markup=False, soft_wrap=True)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(found, indent=1) + "\n")
    console.print(f"written: {arguments.output}")


def measure(arguments: argparse.Namespace, python: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """All requested measurements, one process at a time."""
    quick = arguments.quick
    settings = Settings(
        peer_python=python,
        workload=arguments.workload.resolve(),
        rounds=1 if quick else arguments.rounds,
        individuals=4 if quick else arguments.individuals,
        generations=1 if quick else arguments.generations,
        tilings=TILINGS[:1] if quick else TILINGS,
        say=say,
    )
    found: dict[str, Any] = {"graph": [], "stages": [], "run": [], "scale": [], "details": {}}
    if "graph" in arguments.only:
        found["graph"] = measure_graphs(settings)
    if "stages" in arguments.only:
        found["stages"], found["details"]["stages"] = measure_stages(settings)
    if "run" in arguments.only:
        found["run"], found["details"]["run"] = measure_run(settings)
    if "scale" in arguments.only:
        found["scale"] = measure_scale(settings, min(arguments.largest, 4) if quick else arguments.largest)
    return found


if __name__ == "__main__":
    main()
