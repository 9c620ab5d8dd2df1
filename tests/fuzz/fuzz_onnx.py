"""Fuzz target of the ONNX front end: damaged models end in a workload or in an InputError, within seconds.

    python tests/fuzz/fuzz_onnx.py --seconds 60 --seed 0

It mutates the bytes and the messages of the committed example networks and of models made by code. Case N of a run
depends only on the seed and on N, and `--seed S --only N` repeats it. Cases run in child processes with limited memory,
so that a crash of a library (a signal) is found, too. It exits with 1 if a case ends otherwise than with success or
InputError, or takes longer than `LONGEST_SECONDS`.
"""

import argparse
import multiprocessing
import random
import resource
import signal
import sys
import time
import traceback
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError
from tilewright.base.errors import InputError
from tilewright.base.profile import CORRECTED, REFERENCE
from tilewright.workload.onnx import read_onnx
from tilewright.workload.onnx.loading import load_model
from tilewright.workload.onnx.resolution.network import resolve_graph

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]  # this file is run as a script too

from tests.fuzz.mutations import generated_models, mutated_bytes, mutated_message  # noqa: E402

LONGEST_SECONDS = 5.0
MEMORY_BYTES = 4 * 2**30
_LARGEST_SEED_FILE = 100_000
_DEEP_EVERY = 2
"""One case in this many is read completely, which takes longer than resolving it."""


def seed_models() -> list[bytes]:
    """The models to be damaged."""
    files = sorted((ROOT / "config" / "workload").glob("*.onnx"))
    contents = [path.read_bytes() for path in files if path.stat().st_size <= _LARGEST_SEED_FILE]
    return contents + [model.SerializeToString() for model in generated_models()]


def case_bytes(models: list[bytes], seed: int, number: int) -> bytes:
    """The bytes of one case."""
    draw = random.Random(f"{seed}/{number}")
    content = draw.choice(models)
    if draw.random() < 0.3:
        return mutated_bytes(content, draw)
    model = onnx.ModelProto.FromString(content)
    for _ in range(draw.choice([1, 1, 2, 4])):
        mutated_message(model, draw)
    try:
        return bytes(model.SerializeToString())
    except (ValueError, DecodeError):
        return content


def run_case(content: bytes, path: Path, *, is_deep: bool) -> str:
    """'ok', 'refused', or the traceback of an unexpected error. A deep case is read under both profiles."""
    path.write_bytes(content)
    readings = [lambda: resolve_graph(load_model(path)[0])]
    if is_deep:
        readings = [lambda: read_onnx(path, REFERENCE), lambda: read_onnx(path, CORRECTED)]
    result = "ok"
    for reading in readings:
        try:
            reading()
        except InputError as error:
            result = "refused"
            if not str(error).strip():
                return "an InputError without a message"
        except BaseException:  # whatever it is, it is a finding
            return traceback.format_exc()
    return result


def _work(pipe: Connection, seed: int, first: int, step: int, folder: Path) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    models = seed_models()
    number = first
    path = folder / f"fuzz-{first}.onnx"
    while True:
        content = case_bytes(models, seed, number)
        pipe.send((number, "start", 0.0))
        started = time.process_time()
        result = run_case(content, path, is_deep=number % _DEEP_EVERY == 0)
        pipe.send((number, result, time.process_time() - started))
        number += step


class _Child:
    """A process that runs cases one after the other, from `number` on."""

    def __init__(self, seed: int, number: int, folder: Path) -> None:
        self.pipe, theirs = multiprocessing.Pipe(duplex=False)
        self.number, self.since = number, time.monotonic()
        self.process = multiprocessing.Process(target=_work, args=(theirs, seed, number, 1, folder), daemon=True)
        self.process.start()
        theirs.close()

    def stop(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


def fuzz(seed: int, seconds: float, folder: Path) -> dict[str, Any]:
    """Run cases for `seconds`; returns {cases, ok, refused, findings: [(number, what happened)]}."""
    counts = {"ok": 0, "refused": 0}
    findings: list[tuple[int, str]] = []
    end = time.monotonic() + seconds
    child = _Child(seed, 0, folder)
    while time.monotonic() < end and len(findings) < 20:
        finding = None
        try:
            if child.pipe.poll(0.5):
                number, result, used = child.pipe.recv()
                child.number, child.since = number, time.monotonic()
                if result == "start":
                    continue
                if used > LONGEST_SECONDS:
                    findings.append((number, f"took {used:.1f} s"))
                elif result in counts:
                    counts[result] += 1
                else:
                    findings.append((number, result))
                continue
            if time.monotonic() - child.since > 4 * LONGEST_SECONDS:
                finding = "did not end"
        except (EOFError, OSError):
            child.process.join(5)
            finding = _end_of(child.process.exitcode)
        if finding:
            findings.append((child.number, finding))
            child.stop()
            child = _Child(seed, child.number + 1, folder)
    child.stop()
    return {"cases": sum(counts.values()) + len(findings), **counts, "findings": findings}


def _end_of(code: int | None) -> str:
    if code is not None and code < 0:
        return f"the process was ended by {signal.Signals(-code).name}"
    return f"the process ended with {code}"


def main() -> int:
    """Run the cases, print a report, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="run this case alone, in this process")
    parser.add_argument("--folder", type=Path, default=ROOT / ".cache" / "fuzz", help="where the damaged files go")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    if arguments.only is not None:
        path = arguments.folder / f"case-{arguments.seed}-{arguments.only}.onnx"
        content = case_bytes(seed_models(), arguments.seed, arguments.only)
        print(path, run_case(content, path, is_deep=arguments.only % _DEEP_EVERY == 0), sep="\n")
        return 0
    report = fuzz(arguments.seed, arguments.seconds, arguments.folder)
    print(f"{report['cases']} cases: {report['ok']} read, {report['refused']} refused, seed {arguments.seed}")
    for number, finding in report["findings"]:
        print(f"--seed {arguments.seed} --only {number}: {finding}")
    return 1 if report["findings"] or not report["cases"] else 0


if __name__ == "__main__":
    sys.exit(main())
