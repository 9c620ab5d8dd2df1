"""Comparison of `tilewright fuse` with whole runs of the pinned peer stream-dse 0.0.8, at equal CPU time.

    .venv/bin/python benchmarks/fusion_peer.py [--networks FOLDER] [--only resnet18] [--individuals 16 --generations 16]

Each network runs on the quad core, without activation functions. The peer makes its whole run with its genetic
algorithm, with layers cut into lines. Our search then gets as many CPU seconds as the peer used. Our search has no
fixed decisions, and the objective EDP.

Costs of two schedule models cannot be compared. Our scheduler therefore schedules each allocation in the peer's hall of
fame, with the same cut into lines. It does so with each candidate rule, with and without prefetch. The result of the
peer is the least EDP of these schedules. Prints a table in Markdown, and adds each row to
`benchmarks/results/fusion_peer.jsonl` when it is complete. The peer's results are stored in
`benchmarks/results/fusion_peer`; `--again` makes the peer run again. A slow result is reported, but is no failure.
`README.md` describes the measurement.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fusion import SYSTEMS, Row, measured, network_file  # extends sys.path
from multi_core import HERE, LINES, Settings, answer, markdown, peer
from peer_networks import without_activations
from stream_dse.setup_environment import ensure_stream
from tilewright.base.errors import InputError, MappingError
from tilewright.base.objectives import OBJECTIVES
from tilewright.mapping.constraints import TilingEntry
from tilewright.mapping.source import parse_mapping
from tilewright.mapping.words import ALL_TILES
from tilewright.multicore.scheduling.options import ScheduleSettings
from tilewright.pipeline.sources import parse_accelerator, parse_workload
from tilewright.pipeline.stages.multi.items import SystemProblem
from tilewright.plans.cores import PlanFigures
from tilewright.plans.evaluate import PlanEvaluator, Task
from tilewright.plans.plan import LayerTiles, Plan
from tilewright.plans.space import SELECTIONS, Fixed, PlanSpace, plan_space
from tilewright.search.options import CnSearchOptions

SYSTEM = "quad_core"
OBJECTIVE = "EDP"
RESULTS = HERE / "results"


@dataclass(frozen=True)
class Case:
    """Network, with the extent of the peer's genetic algorithm. The extent is chosen so that the peer takes 100 to 200
    CPU seconds.
    """

    network: str
    individuals: int
    generations: int


CASES = (
    Case("resnet18", 16, 16),
    Case("mobilenetv2", 8, 6),
    Case("squeezenet1_1_dynamo", 12, 10),
    Case("alexnet_dynamo", 32, 32),
    Case("vgg16_dynamo", 12, 10),
    Case("resnet50_dynamo", 8, 8),
)


def answer_of_peer(case: Case, bare: Path, settings: argparse.Namespace) -> Row:
    """Result of the peer's whole run, stored by an earlier run or made now. Raises RuntimeError if it fails."""
    kept = RESULTS / "fusion_peer" / f"{case.network}-{case.individuals}x{case.generations}.json"
    if settings.again or not kept.exists():
        given = Settings(ensure_stream(), bare, bare, 1, (), lambda text: None)
        counts = ["--individuals", str(case.individuals), "--generations", str(case.generations)]
        found = answer(peer("run", LINES, given, *counts, "--seed", str(settings.seed)))
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(found) + "\n")
    read: Row = json.loads(kept.read_text())
    return read


def edp(latency_cycles: float, energy_pj: float) -> float:
    """Energy-delay product in pJ cycles."""
    return OBJECTIVES[OBJECTIVE].value(energy_pj, latency_cycles)


def with_fixed_cores(bare: Path, cores: dict[str, list[int]]) -> SystemProblem:
    """Network on the system, with each layer fixed to the core that an allocation of the peer assigns.

    Raises InputError if the peer assigns no core or several cores to a layer.
    """
    workload, accelerator = parse_workload(bare, "corrected"), parse_accelerator(SYSTEMS / f"{SYSTEM}.yaml")
    entries = [{"name": name, "core_allocation": given} for name, given in cores.items()]
    names = [node.name for node in workload.nodes if node.layer is not None]
    unclear = [name for name in names if len(cores.get(name, ())) != 1]
    if unclear:
        raise InputError(f"the peer assigns no core, or several cores, to {', '.join(unclear)}")
    return SystemProblem(workload, accelerator, parse_mapping([*entries, {"name": "default"}]))


def plans_in_lines(space: PlanSpace) -> Iterator[Plan]:
    """Plans for the whole network in lines, in one stack: one for each candidate rule, with prefetch and without."""
    one_stack = (tuple(one.node.node_id for one in space.layers),)
    tiles = tuple(
        LayerTiles((), (TilingEntry("OY", ALL_TILES),) if one.size("OY") > 1 else one.rows_within(1))
        for one in space.layers
    )
    for selection, prefetch in itertools.product(SELECTIONS, dict.fromkeys(((), space.prefetchable))):
        yield Plan(tiles, one_stack, selection, prefetch)


def handed_over(bare: Path, found: list[Row]) -> Row:
    """Allocation of the peer whose schedule by our scheduler has the least EDP. Raises MappingError with a reason if
    none has a schedule.
    """
    best: PlanFigures | None = None
    row: Row = {}
    reasons, schedules = [], 0
    for one in found:
        problem = with_fixed_cores(bare, one["cores"])
        evaluator = PlanEvaluator(problem, CnSearchOptions(), ScheduleSettings(), OBJECTIVE)
        for plan in plans_in_lines(plan_space(problem, Fixed())):
            outcome = evaluator.evaluate(Task(plan))
            schedules += 1
            if outcome.figures is None:
                reasons.append(outcome.reason)
            elif best is None or outcome.figures.rank(OBJECTIVE) < best.rank(OBJECTIVE):
                best = outcome.figures
                row = {"selection": plan.selection, "prefetch": list(plan.prefetch), "of_peer": one}
    if best is None:
        raise MappingError(f"no allocation of the peer has a schedule here: {reasons[0]}")
    figures = {"latency_cycles": best.latency_cycles, "energy_pj": best.energy_pj}
    return {**row, **figures, "schedules": schedules, "edp": edp(best.latency_cycles, best.energy_pj)}


def compared(case: Case, network: Path, settings: argparse.Namespace) -> Row:
    """Row with the results of both tools on a network. Raises RuntimeError, InputError or MappingError if the peer has
    no result.
    """
    with tempfile.TemporaryDirectory() as folder:
        bare = without_activations(network, Path(folder))
        of_peer = answer_of_peer(case, bare, settings)
        handed = handed_over(bare, of_peer["found"])
        ours = measured(bare, SYSTEM, OBJECTIVE, of_peer["cpu_seconds"], settings.seed)
    own = min(edp(one["latency_cycles"], one["energy_pj"]) for one in of_peer["found"])
    return {
        "network": case.network,
        "genetic_algorithm": f"{case.individuals} x {case.generations}",
        "seed": settings.seed,
        "peer": {name: of_peer[name] for name in ("cpu_seconds", "evaluations")} | {"edp_of_its_model": own},
        "peer_by_our_scheduler": handed,
        "ours": ours,
        "margin": handed["edp"] / ours["edp"],
    }


def table(rows: list[Row]) -> str:
    """Rows as a table in Markdown. EDPs are in J cycles."""
    cells = []
    for row in rows:
        peer_side, handed, ours = row["peer"], row["peer_by_our_scheduler"], row["ours"]
        cells.append(
            [
                row["network"],
                row["genetic_algorithm"],
                f"{peer_side['cpu_seconds']:.0f}, {ours['cpu_seconds']:.0f}",
                f"{peer_side['evaluations']:,}, {ours['schedules']:,}",
                f"{peer_side['edp_of_its_model'] / 1e12:,.0f}",
                f"{handed['edp'] / 1e12:,.0f}",
                f"{handed['latency_cycles']:,}",
                f"{ours['edp'] / 1e12:,.0f}",
                f"{ours['latency_cycles']:,}",
                f"{row['margin']:.2f} ×",
            ]
        )
    headings = ["network", "its GA", "CPU s: peer, ours", "evaluations: peer, ours", "peer, its own model"]
    headings += ["peer, our scheduler", "its cycles", "ours", "our cycles", "margin"]
    return markdown(headings, cells)


def parse_arguments(given: list[str] | None = None) -> argparse.Namespace:
    """Arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [case.network for case in CASES]
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NETWORK")
    parser.add_argument("--networks", type=Path, help="folder with further ONNX files")
    parser.add_argument("--individuals", type=int, help="of the peer's genetic algorithm, for all networks")
    parser.add_argument("--generations", type=int, help="the same")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--again", action="store_true", help="run the peer again even if its result is stored")
    parser.add_argument("--output", type=Path, default=RESULTS / "fusion_peer.jsonl")
    return parser.parse_args(given)


def measure_all(arguments: argparse.Namespace) -> tuple[list[Row], dict[str, str]]:
    """Pair (row for each network, reason for each network without a row). Networks without a file are left out."""
    rows: list[Row] = []
    failures: dict[str, str] = {}
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    for case in CASES:
        network = network_file(case.network, arguments.networks)
        if case.network not in arguments.only:
            continue
        if network is None:
            failures[case.network] = "no such file; --networks names a folder"
            continue
        counts = arguments.individuals or case.individuals, arguments.generations or case.generations
        try:
            rows.append(compared(Case(case.network, *counts), network, arguments))
        except (RuntimeError, InputError, MappingError) as failure:
            failures[case.network] = str(failure).strip().splitlines()[-1]
            continue
        with arguments.output.open("a") as file:
            file.write(json.dumps(rows[-1]) + "\n")
        print(table(rows[-1:]).splitlines()[-1], file=sys.stderr, flush=True)
    return rows, failures


def main() -> None:
    """Measure the networks, one after the other."""
    rows, failures = measure_all(parse_arguments())
    print(table(rows))
    for network, reason in failures.items():
        print(f"{network}: {reason}")


if __name__ == "__main__":
    main()
