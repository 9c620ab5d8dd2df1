"""Comparison of `tilewright fuse` with the plans that stream-dse 2.1.1 finds by itself, at equal CPU time.

    .venv/bin/python benchmarks/stream_two.py [--systems simba_small fusemax] [--networks two_conv FILE.onnx]
        [--python python3.12] [--again] [--write]

stream-dse (the peer) runs on its own example systems without a mapping file, as its Quick Start shows. It proposes a
mapping: groups of layers, cores, parts and tiles. The cycles that the peer estimates are not comparable with ours.
Therefore `tilewright fuse --mapping` reads this mapping, and finds the least latency with these groups, cores, parts
and tiles. It tries everything that the mapping leaves open. Then `tilewright fuse` searches without a mapping file. All
three programs run in separate processes with one job. Their CPU times are those of the whole processes (getrusage). The
search without a mapping file must not use more CPU seconds than the peer. If its process uses more, the result is
discarded, and the search runs again with a smaller limit. The search with the mapping of the peer may exceed its limit.

Prints a table in Markdown, and adds each row to `benchmarks/results/stream_two.jsonl` when it is complete. The results
of the peer are stored in the folder `benchmarks/results/stream_two`; `--again` makes the peer run again. Errors of the
peer are listed below the table. The exit code is 1 if a plan of ours has more cycles than the plan of the peer.
`--write` puts the newest rows of all pairs in this file into benchmarks/README.md, and measures nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from child import run_child
from multi_core import HERE, ONE_THREAD, markdown
from pair_tables import write_between
from stream_dse_2.setup_environment import INTERPRETER, ensure_stream_2

RUNNER = HERE / "stream_dse_2" / "runner.py"
RESULTS = HERE / "results"
SYSTEMS = (
    "eyeriss_like_single_core",
    "eyeriss_like_dual_core",
    "eyeriss_like_quad_core",
    "tpu_like_quad_core",
    "simba_small",
    "simba",
    "fusemax",
    "meta_prototype_dual_core_simd_offchip",
    "tpu_v7_ironwood",
)
"""Names of the hardware files in `stream/inputs/examples/hardware` of stream-dse 2.1.1."""
NETWORKS = ("two_conv", "swiglu_1_16_32")
"""Networks of the tests of stream-dse, which run on each of the systems."""
FIRST_SHARE, LESS, ATTEMPTS = 0.95, 0.02, 5
"""FIRST_SHARE: first limit of a search, as a share of the CPU seconds of the peer. LESS: share of these CPU seconds by
which the limit is reduced further after a process that used too much. ATTEMPTS: number of attempts.
"""
BEGIN, END = "<!-- made by stream_two.py -->", "<!-- end of stream_two.py -->"
Row = dict[str, Any]


def answer_of_peer(system: str, network: str, folder: Path, arguments: argparse.Namespace) -> Row:
    """Result of a run of the peer, stored by an earlier run or made now. Raises RuntimeError if the peer fails."""
    kept = folder / "answer.json"
    if arguments.again or not kept.exists():
        python = ensure_stream_2(arguments.python)
        folder.mkdir(parents=True, exist_ok=True)
        run = run_child([str(python), str(RUNNER), system, network, str(folder)], ONE_THREAD)
        kept.write_text(json.dumps({**json.loads(run.output), "cpu_seconds": run.cpu_seconds}) + "\n")
    found: Row = json.loads(kept.read_text())
    return found


def searched(of_peer: Row, folder: Path, mapping: Path | None, seed: int) -> Row:
    """Result of `tilewright fuse` with or without a mapping file. Without a mapping file, the process uses no more CPU
    seconds than the process of the peer. Raises RuntimeError if the process fails, or if all attempts without a mapping
    file use more.
    """
    most = of_peer["cpu_seconds"]
    limit = FIRST_SHARE * most
    for _ in range(ATTEMPTS):
        with tempfile.TemporaryDirectory() as output:
            command = [sys.executable, "-m", "tilewright", "fuse", "--hardware", of_peer["hardware"]]
            command += ["--workload", str(folder / "network.onnx"), "--precision", "file", "--jobs", "1"]
            command += ["--nb-plans", str(10**6), "--fusion-cpu-budget-s", f"{limit:.2f}", "--seed", str(seed)]
            command += [
                "--no-run",
                "--no-page",
                "-o",
                output,
                *([] if mapping is None else ["--mapping", str(mapping)]),
            ]
            run = run_child(command, ONE_THREAD)
            document = json.loads((Path(output) / "fusion.json").read_text())["payload"]
        if run.cpu_seconds <= most or mapping is not None:
            return {"cycles": document["latency_cycles"], "cpu_seconds": run.cpu_seconds, "limit_s": limit}
        limit = max(0.1, limit - (run.cpu_seconds - most) - LESS * most)
    took = f"its shortest call took {run.cpu_seconds:.1f} CPU s and found {document['latency_cycles']:,} cycles"
    raise RuntimeError(f"fuse needs more than the {most:.1f} CPU s of the peer: {took}")


def compared(system: str, network: str, arguments: argparse.Namespace) -> Row:
    """Row with the results of both tools. Raises RuntimeError if one of the processes fails."""
    folder = RESULTS / "stream_two" / f"{system}-{Path(network).stem}"
    of_peer = answer_of_peer(system, network, folder, arguments)
    return {
        "system": system,
        "network": Path(network).stem,
        "seed": arguments.seed,
        "peer": of_peer,
        "peer_by_our_scheduler": searched(of_peer, folder, folder / "mapping.yaml", arguments.seed),
        "ours": searched(of_peer, folder, None, arguments.seed),
    }


def table(rows: list[Row]) -> str:
    """Rows as a table in Markdown."""
    cells = [
        [
            row["system"],
            row["network"],
            f"{row['peer']['groups']}",
            f"{row['peer']['cpu_seconds']:.1f}",
            f"{row['peer']['cycles']:,.0f}",
            f"{row['peer_by_our_scheduler']['cycles']:,}",
            f"{row['peer_by_our_scheduler']['cpu_seconds']:.1f}",
            f"{row['ours']['cycles']:,}",
            f"{row['ours']['cpu_seconds']:.1f}",
            f"{ratio(row):.3f}",
        ]
        for row in rows
    ]
    headings = ["system", "network", "groups of the peer", "CPU s of the peer", "cycles in the model of the peer"]
    headings += ["plan of the peer, cycles", "CPU s", "found, cycles", "CPU s", "ratio"]
    return markdown(headings, cells)


def ratio(row: Row) -> float:
    """Cycles of our plan divided by the cycles of the plan of the peer, both in our model."""
    return float(row["ours"]["cycles"] / row["peer_by_our_scheduler"]["cycles"])


def parse_arguments(given: list[str] | None = None) -> argparse.Namespace:
    """Arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=SYSTEMS, metavar="SYSTEM")
    parser.add_argument("--networks", nargs="+", default=NETWORKS, metavar="NETWORK", help="see stream_dse_2/runner.py")
    parser.add_argument("--python", default=INTERPRETER, help="Python 3.12 or newer for the environment of the peer")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--again", action="store_true", help="run the peer again even if its result is stored")
    parser.add_argument("--write", action="store_true", help="put the stored rows into benchmarks/README.md")
    parser.add_argument("--output", type=Path, default=RESULTS / "stream_two.jsonl")
    return parser.parse_args(given)


def stored_rows(file: Path) -> list[Row]:
    """Newest row of each pair of a system and a network in a file of rows, by network and then by system."""
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    newest = {(row["network"], row["system"]): row for row in rows}
    return [newest[pair] for pair in sorted(newest, key=lambda pair: (pair[0], SYSTEMS.index(pair[1])))]


def main() -> None:
    """Measure all pairs of a system and a network, one after the other."""
    arguments = parse_arguments()
    if arguments.write:
        write_between((BEGIN, END), table(stored_rows(arguments.output)))
        return
    rows: list[Row] = []
    failures: list[str] = []
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    for network in arguments.networks:
        for system in arguments.systems:
            try:
                rows.append(compared(system, network, arguments))
            except RuntimeError as failure:
                failures.append(f"{system}, {Path(network).stem}: {str(failure).strip().splitlines()[-1]}")
                print(failures[-1], file=sys.stderr, flush=True)
                continue
            with arguments.output.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
            print(table(rows[-1:]).splitlines()[-1], file=sys.stderr, flush=True)
    print(table(rows))
    print("\n".join(failures))
    sys.exit(any(ratio(row) > 1 for row in rows))


if __name__ == "__main__":
    main()
