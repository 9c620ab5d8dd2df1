"""Comparison of the multi-core flow with the pinned peer stream-dse 0.0.8, part by part and as a whole, in one run.

    .venv/bin/python benchmarks/multi_core.py [--quick] [--only graph stages run scale]

Both tools map resnet18 on the quad core of `config/hardware/multi/quad_core.yaml`. The peer reads this system from
`stream_dse/quad_core.py`. Both tools use the same outer loops. Activation functions are left out, because the peer
ignores them. The graphs of computation nodes (CNs) are therefore equal. Times are CPU seconds. Each tool runs in
separate processes, in turn with the other tool; the numbers are medians. Prints tables in Markdown and writes
`benchmarks/results/multi_core.json`. A slow result is reported, but is no failure. `README.md` describes the
measurement.
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
from peer_networks import without_activations  # noqa: E402
from stream_dse.setup_environment import ensure_stream  # noqa: E402

OURS, PEER = HERE / "multi_core_ours.py", HERE / "stream_dse" / "runner.py"
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
HARDWARE = PROJECT / "config" / "hardware" / "multi" / "quad_core.yaml"
CORE_FILES = ("k16_c16", "pooling", "simd")
PARTS = ("graph", "stages", "run", "scale")
TARGETS = {"graph": 100, "cost": 50, "schedule": 300, "run": 100}
SCALE_INPUT_SIDES = {3: 32, 4: 80, 5: 256, 6: 832}
"""Side of the input image of resnet18 that gives about 10^n computation nodes (CNs) if cut into single pixels, by n."""
PLURAL = {"CN": "CNs", "edge": "edges", "search": "searches"}
Row = dict[str, Any]


@dataclass(frozen=True)
class Cut:
    """Cut of the network for both tools."""

    name: str
    loops: list[list[Any]] | None
    """Outer loops of every layer. If it is None, each layer has the loops of the mapping file and of its stack."""
    mapping: Path = HERE / "stream_dse" / "free_allocation.yaml"
    stack_cutoffs: tuple[int, ...] = ()
    has_activations: bool = False
    """True if activation functions stay in the network. They are layers in our network; the peer ignores them."""

    @property
    def flags(self) -> list[str]:
        """Command-line options for our measuring script."""
        return ["--loops", json.dumps(self.loops), "--stack-cutoffs", json.dumps(self.stack_cutoffs)]


LINES = Cut("lines", [["OY", "all"]])
PIXELS = Cut("pixels", [["OX", "all"], ["OY", "all"]])
DEFAULT_RUN = Cut(
    "as in config.yaml", None, PROJECT / "config/mapping/multi/quad_core.yaml", (12, 23), has_activations=True
)
EQUAL_DEFAULT = Cut("as in config.yaml, equal layers", None, DEFAULT_RUN.mapping, (7, 14))
"""Cut into the same stacks, which are given by node ids of the network without activation functions. With this cut,
both tools have the same CNs.
"""
CUTS = (LINES, EQUAL_DEFAULT, DEFAULT_RUN, Cut("lines in 8 parts", [["OX", 8], ["OY", "all"]]), PIXELS)
"""Cuts, from few CNs to many CNs. The graph is measured for each cut."""
SHORT_REPEATS, PROCESSES_OF_OURS = 21, 3
"""Number of repeats of short measurements, and number of our processes for each process of the peer.

Times of a few milliseconds vary, so they are measured more often.
"""


@dataclass(frozen=True)
class Settings:
    """Extent of the measurement."""

    peer_python: Path
    workload: Path
    bare_workload: Path
    """Path of the workload without activation functions."""
    rounds: int
    """Number of processes of each tool. They run in turn."""
    cuts: tuple[Cut, ...]
    say: Callable[[str], None]


def network(cut: Cut, settings: Settings) -> Path:
    """File of the network that both tools read."""
    return settings.workload if cut.has_activations else settings.bare_workload


def ours(part: str, cut: Cut, settings: Settings, *arguments: str, workload: Path | None = None) -> ChildRun:
    """Run one of our measuring processes. Returns its result."""
    inputs = [str(HARDWARE), str(workload or network(cut, settings)), str(cut.mapping)]
    command = [sys.executable, str(OURS), part, *inputs, *cut.flags, *arguments]
    return run_child(command, {"PYTHONPATH": str(PROJECT / "lib")} | ONE_THREAD, PROJECT)


def peer(part: str, cut: Cut, settings: Settings, *arguments: str) -> ChildRun:
    """Run one of the peer's measuring processes in a separate folder. The process cuts the network as our tool does. If
    the cut has no loops for all layers, the process gets the loops of each layer.
    """
    loops = cut.loops if cut.loops is not None else answer(ours("tiling", cut, settings))
    command = [str(settings.peer_python), str(PEER), part, str(network(cut, settings)), "--loops", json.dumps(loops)]
    with tempfile.TemporaryDirectory() as folder:
        return run_child([*command, *arguments], ONE_THREAD, Path(folder))


def answer(run: ChildRun) -> Row:
    """JSON object on the last line of the output of a process."""
    found: Row = json.loads(run.output.splitlines()[-1])
    return found


def middle(found: list[Row], *path: str) -> float:
    """Median of the value at `path`, over the repeats of all processes."""
    values: list[float] = []
    for row in found:
        for key in path:
            row = row[key]
        values += row
    return statistics.median(values)


def compared(what: str, cut: Cut, times: tuple[float, float], sizes: dict[str, tuple[int, int]], target: int) -> Row:
    """Row with both times. If the tools have different amounts of work, the row also has the ratio for each unit of
    work.
    """
    mine, theirs = times
    ratio = theirs / mine
    return {
        "what": f"{what}, {cut.name}",
        "ours_cpu_s": mine,
        "peer_cpu_s": theirs,
        "ratio": ratio,
        "target": target,
        "sizes": sizes,
        "ratio_per": {unit: ratio * own / other for unit, (own, other) in sizes.items()},
    }


def graph_sizes(mine: Row, theirs: Row) -> dict[str, tuple[int, int]]:
    """Numbers of CNs and edges, as (ours, the peer's)."""
    return {"CN": (mine["cns"], theirs["cns"]), "edge": (mine["edges"], theirs["edges"])}


def measure_graphs(settings: Settings) -> list[Row]:
    """Measure the graph of computation nodes with its edges, for each cut."""
    rows = []
    for cut in settings.cuts:
        mine, theirs = [], []
        for _ in range(settings.rounds):
            settings.say(f"graph: {cut.name}")
            for _ in range(PROCESSES_OF_OURS):
                mine.append(answer(ours("graph", cut, settings, "--repeats", str(SHORT_REPEATS))))
            theirs.append(answer(peer("graph", cut, settings, "--repeats", "1" if cut == PIXELS else "5")))
        times = middle(mine, "graph", "cpu_seconds"), middle(theirs, "graph", "cpu_seconds")
        sizes = graph_sizes(mine[0]["graph"], theirs[0]["graph"])
        row = compared("CN graph", cut, times, sizes, TARGETS["graph"])
        rows.append(row | {"ours_peak_mib": mine[0]["peak_mib"], "peer_peak_mib": theirs[0]["peak_mib"]})
    return rows


def measure_stages(cut: Cut, rounds: int, settings: Settings) -> tuple[list[Row], Row]:
    """Pair (rows for the cost table and the evaluation of a schedule, further results)."""
    mine, theirs = [], []
    for _ in range(rounds):
        settings.say(f"stages, {cut.name}: the peer")
        theirs.append(answer(peer("stages", cut, settings, "--repeats", "3" if cut == LINES else "1")))
        settings.say(f"stages, {cut.name}: tilewright")
        allocation = json.dumps(theirs[0]["schedule"]["allocation"])
        mine.append(answer(ours("stages", cut, settings, "--allocation", allocation)))
    searches = {"search": (mine[0]["cost"]["entries"], theirs[0]["cost"]["searches"])}
    cns = {"CN": (mine[0]["graph"]["cns"], theirs[0]["graph"]["cns"])}
    table = middle(mine, "cost", "cpu_seconds"), statistics.median(row["cost"]["cpu_seconds"] for row in theirs)
    evaluation = middle(mine, "schedule", "cpu_seconds")
    whole, bare = (middle(theirs, "schedule", name) for name in ("cpu_seconds", "scheduler_cpu_seconds"))
    rows = [
        compared("cost table", cut, table, searches, TARGETS["cost"]),
        compared("one evaluation of an allocation", cut, (evaluation, whole), cns, TARGETS["schedule"]),
        compared("the same, the peer's scheduler alone", cut, (evaluation, bare), cns, TARGETS["schedule"]),
    ]
    return rows, {"ours": mine, "peer": theirs}


def measure_run(cut: Cut, individuals: int, generations: int, rounds: int, settings: Settings) -> tuple[list[Row], Row]:
    """Measure the whole run with equal numbers of individuals and generations. Each tool runs in a separate process."""
    counts = ["--individuals", str(individuals), "--generations", str(generations)]
    settings.say(f"whole run, {cut.name}: tilewright")
    mine = [ours("run", cut, settings, *counts) for _ in range(rounds)]
    settings.say(f"whole run, {cut.name}: the peer")
    theirs = peer("run", cut, settings, *counts)
    times = statistics.median(run.cpu_seconds for run in mine), theirs.cpu_seconds
    what = f"whole run, GA {individuals} x {generations}"
    rows = [compared(what, cut, times, {}, TARGETS["run"])]
    if not cut.has_activations:  # the peer's time is the same: it gives them no CNs
        more = [ours("run", cut, settings, *counts, workload=settings.workload) for _ in range(rounds)]
        times = statistics.median(run.cpu_seconds for run in more), theirs.cpu_seconds
        rows.append(compared("the same, ours with activations", cut, times, {}, TARGETS["run"]))
        commands = statistics.median(cpu_seconds_of_commands(cut, counts, settings) for _ in range(rounds))
        what = "the same, ours as six commands, with activations"
        rows.append(compared(what, cut, (commands, theirs.cpu_seconds), {}, TARGETS["run"]))
    return rows, {"ours": answer(mine[0]), "peer": answer(theirs)}


def cpu_seconds_of_commands(cut: Cut, counts: list[str], settings: Settings) -> float:
    """CPU time of our commands as the pipeline runs them, including process starts and artifacts, without a store."""
    inputs = ["--hardware", str(HARDWARE), "--workload", str(settings.workload), "--mapping", str(cut.mapping)]
    with tempfile.TemporaryDirectory() as folder:
        made = ["--cns", folder, "--costs", f"{folder}/cost"]
        tiling = ["--cn-define-mode", "1", "--hint-loops", json.dumps(cut.loops)]
        search = ["--model", "corrected", "--no-store", "--jobs", "1"]
        counts = [flag.replace("--", "--nb-ga-", 1) for flag in counts]
        commands = [
            ["cns", *inputs, *tiling, "-o", folder],
            *(
                ["cost", *inputs, "--core", core, "--cns", folder, *search, "-o", f"{folder}/cost/{core}.jsonl"]
                for core in CORE_FILES
            ),
            ["allocate", *inputs, *made, *counts, "--jobs", "1", "--no-single-core", "-o", folder],
            ["schedule", *inputs, *made, "--core-allocation", f"{folder}/allocation.json", "-o", folder],
        ]
        environment = {"PYTHONPATH": str(PROJECT / "lib")} | ONE_THREAD
        return sum(
            run_child([sys.executable, "-m", "tilewright", *command], environment, PROJECT).cpu_seconds
            for command in commands
        )


def measure_scale(settings: Settings, largest: int) -> list[Row]:
    """Measure our tool alone: resnet18 on images of growing size, cut into single pixels, from files to a schedule."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for power in range(3, largest + 1):
            settings.say(f"scale: 10^{power}")
            path = with_input_side(settings.workload, SCALE_INPUT_SIDES[power], Path(folder))
            rows.append(answer(ours("scale", PIXELS, settings, workload=path)))
    return rows


def with_input_side(model: Path, side: int, folder: Path) -> Path:
    """Network for a square image of another size."""
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
    """Time as text for readers."""
    return f"{value * 1e3:.2f} ms" if value < 1 else f"{value:.2f} s"


def markdown(headings: list[str], rows: list[list[str]]) -> str:
    """Markdown table whose first column is aligned to the left."""
    lines = [headings, ["---"] + ["---:"] * (len(headings) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def comparison_table(rows: list[Row]) -> str:
    """Table that compares tilewright with the peer."""
    cells = []
    for row in rows:
        sizes = "; ".join(
            f"{mine:,} {PLURAL[unit]}" if mine == theirs else f"{mine:,} and {theirs:,} {PLURAL[unit]}"
            for unit, (mine, theirs) in row["sizes"].items()
        )
        unequal = [unit for unit, (mine, theirs) in row["sizes"].items() if mine != theirs]
        each = ", ".join(f"{row['ratio_per'][unit]:,.0f}x for each {unit}" for unit in unequal)
        times = [seconds(row["ours_cpu_s"]), seconds(row["peer_cpu_s"])]
        cells.append([row["what"], *times, f"{row['ratio']:,.0f}x", f"{row['target']}x", sizes, each])
    headings = [
        "CPU time of",
        "tilewright",
        "stream-dse 0.0.8",
        "ratio",
        "target",
        "work",
        "ratio where it differs",
    ]
    return markdown(headings, cells)


def scale_table(rows: list[Row]) -> str:
    """Table with seconds and MiB of growing graphs, and with the exponents of growth from row to row."""
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


def parse_arguments(given: list[str] | None = None) -> argparse.Namespace:
    """Arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small graphs, one round, 4 individuals, 1 generation")
    parser.add_argument("--only", choices=PARTS, nargs="+", default=list(PARTS))
    parser.add_argument("--workload", type=Path, default=PROJECT / "config" / "workload" / "resnet18.onnx")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each side that take turns")
    parser.add_argument("--individuals", type=int, default=16)
    parser.add_argument("--generations", type=int, default=16)
    parser.add_argument("--largest", type=int, default=6, help="10 to this power is the largest number of CNs")
    parser.add_argument("--output", type=Path, default=HERE / "results" / "multi_core.json")
    return parser.parse_args(given)


def main() -> None:
    """Install the peer if needed. Measure, print the tables, and write the file."""
    arguments = parse_arguments()
    console = Console(width=None if sys.stdout.isatty() else 200)
    with console.status("the peer's environment (.cache/stream-venv)") as status:
        found = measure_all(arguments, status.update)
    print_tables(found, console)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(found, indent=1) + "\n")
    console.print(f"written: {arguments.output}")


def measure_all(arguments: argparse.Namespace, say: Callable[[str], None]) -> dict[str, Any]:
    """Results of all requested measurements. The environment of the peer is made if needed."""
    try:
        python = ensure_stream()
    except subprocess.CalledProcessError as failure:
        raise RuntimeError(f"stream-dse could not be installed: {failure}") from failure
    with tempfile.TemporaryDirectory() as scratch:
        return measure(arguments, python, Path(scratch), say)


def print_tables(found: dict[str, Any], console: Console) -> None:
    """Print the comparison and the growth in Markdown."""
    rows = [row for part in ("graph", "stages", "run") for row in found[part]]
    for text in ([comparison_table(rows)] if rows else []) + ([scale_table(found["scale"])] if found["scale"] else []):
        console.print(text + "\n", highlight=False, markup=False, soft_wrap=True)


def measure(arguments: argparse.Namespace, python: Path, scratch: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Results of all requested measurements. One process runs at a time."""
    quick = arguments.quick
    settings = Settings(
        peer_python=python,
        workload=arguments.workload.resolve(),
        bare_workload=without_activations(arguments.workload, scratch),
        rounds=1 if quick else arguments.rounds,
        cuts=CUTS[:2] if quick else CUTS,
        say=say,
    )
    found: dict[str, Any] = {"graph": [], "stages": [], "run": [], "scale": [], "details": {}}
    stages = [(LINES, settings.rounds)] if quick else [(LINES, settings.rounds), (DEFAULT_RUN, 1)]
    runs = [(LINES, 4, 1)] if quick else [(LINES, arguments.individuals, arguments.generations), (DEFAULT_RUN, 4, 1)]
    if "graph" in arguments.only:
        found["graph"] = measure_graphs(settings)
    for cut, rounds in stages if "stages" in arguments.only else []:
        rows, found["details"][f"stages, {cut.name}"] = measure_stages(cut, rounds, settings)
        found["stages"] += rows
    for cut, individuals, generations in runs if "run" in arguments.only else []:
        rows, details = measure_run(cut, individuals, generations, settings.rounds, settings)
        found["run"] += rows
        found["details"][f"run, {cut.name}"] = details
    if "scale" in arguments.only:
        found["scale"] = measure_scale(settings, min(arguments.largest, 4) if quick else arguments.largest)
    return found


if __name__ == "__main__":
    main()
