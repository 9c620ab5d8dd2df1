"""Compare the results of a set of verbs with the results at another commit: `make numbers`.

    .venv/bin/python tools/compare_numbers.py [--against COMMIT] [--write FILE]

Runs the verbs with the code of this checkout and with the code of the commit. Compares the text of each table, and the
content of each artifact without provenance and without digests of code. In the results of the commit, renamed keys get
their present names (`artifacts.envelope.RENAMED`). Prints the number of artifacts and of differences. For each artifact
that differs, prints the first keys that differ. The exit code is 1 if an artifact differs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tilewright.base.artifacts.envelope import RENAMED

PROJECT = Path(__file__).resolve().parent.parent
CONFIG, TINY = "config/hardware", "tests/workflow/tiny"
ONE_CORE = f"--hardware {TINY}/hardware/narrow.yaml --workload {TINY}/workload/two_layers.yaml"
VECTOR = f"--hardware {CONFIG}/zigzag/tpu_like_vector.yaml --mapping config/mapping/zigzag/tpu_like_vector.yaml"
QWEN = "--workload config/workload/qwen2.5_0.5b_decode.yaml"
CALLS = {
    "single": f"map {ONE_CORE} --mapping {TINY}/mapping/free.yaml --no-store -o {{out}}/single",
    "operators": f"map {VECTOR} --workload config/workload/bert_tiny.onnx --model corrected --objective energy"
    " --no-store -o {out}/operators",
    "locality": f"map --hardware {CONFIG}/zigzag/eyeriss_like.yaml --workload config/workload/resnet18.onnx"
    " --mapping config/mapping/zigzag/eyeriss_like.yaml --temporal-mapping-search-engine salsa"
    " --salsa-iteration-number 200 --exploit-data-locality --no-store -o {out}/locality",
    "exact": f"map {ONE_CORE} --mapping {TINY}/mapping/free.yaml --temporal-mapping-search-engine exact --no-store"
    " -o {out}/exact",
    "fused": f"fuse --hardware {CONFIG}/multi/quad_core.yaml --workload config/workload/bert_tiny.onnx --nb-plans 6"
    " --fusion-time-budget-s none --jobs 1 -o {out}/fused",
    "schedule": f"schedule --hardware {CONFIG}/multi/quad_core.yaml --workload config/workload/bert_tiny.onnx"
    " --mapping {out}/fused/mapping.yaml --cns {out}/fused --costs {out}/fused/cost -o {out}/fused",
    "tokens": f"tokens {VECTOR} {QWEN} --batches 1,16 -o {{out}}/tokens",
    "attention": f"attention {VECTOR} {QWEN} --objective energy -o {{out}}/attention",
    "advise": f"advise {{out}}/single {ONE_CORE} --mapping {TINY}/mapping/free.yaml -o {{out}}/advise",
    "explain": f"explain {{out}}/single {ONE_CORE} --mapping {TINY}/mapping/free.yaml --json",
    "explore": "explore {out}/space.yaml --no-store -o {out}/explore",
    "front": "front {out}/space.yaml -o {out}/front",
}
"""Calls of verbs in the order in which they run: the words of the command line, by name of the call."""
SPACE = f"""\
accelerator: {PROJECT}/{TINY}/hardware/wide.yaml
mapping: {PROJECT}/{TINY}/mapping/free.yaml
networks: [{PROJECT}/{TINY}/workload/two_layers.yaml]
axes:
  lanes: {{path: operational_array.sizes.0, values: [2, 4]}}
  read_pj: {{path: memories.memory.r_cost, values: [30, 50]}}
options: {{objective: energy, lpf_limit: 3}}
shard_designs: 2
"""
LEFT_OUT = {"provenance", "file_digest", "digest", "code", "made_by", "head", "reproduce", "version"}
"""Keys of artifacts that are not compared, because they describe how a file was made or its format."""
MOST_KEYS = 5


def main() -> int:
    """Compute the numbers of both versions and print the differences. Returns 1 if an artifact differs, else 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", default="HEAD~1", help="commit whose results are compared")
    parser.add_argument("--write", type=Path, help="file to which the present results are also written")
    given = parser.parse_args()
    now = numbers(PROJECT)
    if given.write:
        given.write.write_text(json.dumps(now, indent=1, sort_keys=True))
    before = renamed(numbers_at(given.against))
    lines = list(differences(before, now))
    print("\n".join([*lines, f"{len(now)} artifacts, {len(before)} at {given.against}: {len(lines)} differ"]))
    return int(bool(lines))


def numbers(checkout: Path) -> dict[str, Any]:
    """Numbers of each artifact that the code in the folder `checkout` makes, by name of the artifact."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        (out / "space.yaml").write_text(SPACE)
        found: dict[str, Any] = {}
        for name, call in CALLS.items():
            text = run_verb(checkout, call.format(out=out).split())
            if "--json" in call:
                found[f"{name}, text"] = plain(json.loads(text))
        for path in sorted(path for path in out.rglob("*") if path.is_file()):
            if (value := numbers_of(path)) is not None:
                found[path.relative_to(out).as_posix()] = value
    return found


def run_verb(checkout: Path, words: Sequence[str]) -> str:
    """Output of a verb of a checkout. Raises RuntimeError if the verb fails."""
    environment = os.environ | {"PYTHONPATH": str(checkout / "lib")}
    command = [sys.executable, "-m", "tilewright", *words]
    done = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr}")
    return done.stdout


def numbers_at(commit: str) -> dict[str, Any]:
    """Numbers of each artifact at a commit.

    The files of the commit are written into a folder of the cache. Kernels are not compiled again; the kernels of this
    checkout are used.
    """
    sha = subprocess.run(
        ["git", "rev-parse", commit], cwd=PROJECT, capture_output=True, text=True, check=True
    ).stdout.strip()
    checkout = PROJECT / ".cache" / "numbers" / sha
    if not checkout.is_dir():
        subprocess.run(["git", "worktree", "prune"], cwd=PROJECT, check=True)
        add = ["git", "worktree", "add", "--detach", "--force", str(checkout), sha]
        subprocess.run(add, cwd=PROJECT, check=True, capture_output=True)
    kernels = checkout / ".cache" / "kernels"
    if not kernels.exists():
        kernels.parent.mkdir(exist_ok=True)
        (PROJECT / ".cache" / "kernels").mkdir(parents=True, exist_ok=True)
        kernels.symlink_to(PROJECT / ".cache" / "kernels")
    try:
        return numbers(checkout)
    finally:
        remove = ["git", "worktree", "remove", "--force", str(checkout)]
        subprocess.run(remove, cwd=PROJECT, check=True, capture_output=True)


def numbers_of(path: Path) -> Any:
    """Numbers in a file that are compared; None for figures, pages and texts for people."""
    if path.suffix == ".json":
        return plain(json.loads(path.read_text()))
    if path.suffix == ".jsonl":
        return [plain(json.loads(line)) for line in path.read_text().splitlines()[1:]]
    if path.suffix == ".csv":
        return path.read_text()
    if path.suffix == ".npz":
        import numpy as np

        arrays = np.load(path, allow_pickle=False)
        return {name: array_numbers(arrays[name]) for name in sorted(arrays)}
    if path.suffix == ".parquet":
        import pandas

        return pandas.read_parquet(path).to_csv(index=False)
    return None


def array_numbers(array: Any) -> Any:
    """Content of an array: JSON values if the array is a JSON text, else the digest of its bytes."""
    content = array.tobytes()
    try:
        return plain(json.loads(content.rstrip(b"\0")))
    except ValueError:
        return digest(content)


def digest(content: bytes) -> str:
    """Digest of 8 bytes, as text."""
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def plain(value: Any) -> Any:
    """JSON value without the keys in LEFT_OUT."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items() if key not in LEFT_OUT}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return value


def renamed(value: Any) -> Any:
    """Artifacts of the earlier commit, in which the keys listed in RENAMED have their present names."""
    if not isinstance(value, dict):
        return value
    value = {key: renamed(one) for key, one in value.items()}
    for (schema, _), keys in RENAMED.items():
        payload = value.get("payload")
        if schema == value.get("schema") and isinstance(payload, dict) and keys.keys() <= payload.keys():
            value["payload"] = {keys.get(key, key): one for key, one in payload.items()}
    return value


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Lines on differences: one for each artifact that only one version has, and one for each artifact whose numbers
    differ.
    """
    for name in sorted({*before, *now}):
        if name not in before or name not in now:
            yield f"{name}: only {'now' if name in now else 'before'}"
        elif before[name] != now[name]:
            keys = [*differing(before[name], now[name], "")]
            more = f" and {len(keys) - MOST_KEYS} more" if len(keys) > MOST_KEYS else ""
            yield f"{name}: {'; '.join(keys[:MOST_KEYS])}{more}"


def differing(before: Any, now: Any, place: str) -> Iterator[str]:
    """Paths at which two values differ, each with both values. `place` is the path of the values in the artifact."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in sorted({*before, *now}, key=str):
            yield from differing(before.get(key), now.get(key), f"{place}.{key}".lstrip("."))
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for number, (one, other) in enumerate(zip(before, now, strict=True)):
            yield from differing(one, other, f"{place}[{number}]")
    elif before != now:
        yield f"{place or 'text'} {str(before)[:40]!r} -> {str(now)[:40]!r}"


if __name__ == "__main__":
    sys.exit(main())
