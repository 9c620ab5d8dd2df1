"""CPU seconds of `tilewright tokens` for every published language model, on one core and on several.

    .venv/bin/python benchmarks/tokens.py [--models llama-3.1-8b ...] [--systems tpu_like_vector quad_core]

Each model is a process: the prompt of 2k tokens, and one more token at 1k to 1M tokens of context (11 points), the
model `corrected`, nothing in a store, start and reading included; then the curve over 64 contexts from 1k to 1M, and
its CPU time beside that of one point (at 32k). Prints a table, and writes results/tokens.json in this folder. The
target is 60 s for a model, and 3 times a point for a curve.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent
MODELS = PROJECT / "config" / "workload" / "language_models"
SYSTEMS = {
    "tpu_like_vector": ("config/hardware/tpu_like_vector.yaml", "config/mapping/tpu_like_vector.yaml"),
    "quad_core": ("config/hardware/multi/quad_core.yaml", "config/mapping/multi/open.yaml"),
}
TARGET_S, TARGET_RATIO = 60.0, 3.0
CHILD = """
import json, sys, time
import tilewright

model, hardware, mapping, contexts, prompts, key_tokens = json.loads(sys.argv[1])
started = time.process_time()
step = {"language_model": model, "phase": "decode", "context": 1}
given = {"hardware": hardware, "mapping": mapping, "model": "corrected"}
found = tilewright.tokens(step, contexts=contexts, prompts=False, **given)
if prompts:
    first = tilewright.tokens(step, contexts=[2048], **given)
rows = [row for row in found.rows if row["context"] in key_tokens]
keys = ("context", "parallel", "time_per_token_cycles", "energy_per_token_pj", "bound_by", "fits")
told = [{key: row.get(key, "") for key in keys} for row in rows]
if prompts:
    row = first.rows[0]
    told.append({"prompt": 2048, "parallel": row.get("prompt_parallel", ""),
                 "time_to_first_token_cycles": row["time_to_first_token_cycles"]})
print(json.dumps({"cpu_s": time.process_time(), "rows": told}))
"""


def run(model: str, system: str, contexts: Any, prompts: bool) -> dict[str, Any]:
    """What one process says, with its CPU time."""
    hardware, mapping = SYSTEMS[system]
    given = json.dumps([str(MODELS / f"{model}.json"), hardware, mapping, contexts, prompts, [1024, 32768, 1 << 20]])
    command = [sys.executable, "-c", CHILD, given]
    made = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    if made.returncode:
        raise SystemExit(made.stderr)
    found: dict[str, Any] = json.loads(made.stdout)
    return found


def measured(model: str, system: str) -> dict[str, Any]:
    """All numbers of a model on a system."""
    whole = run(model, system, "1k:1M:11", True)
    point, curve = (run(model, system, contexts, False)["cpu_s"] for contexts in ([32768], "1k:1M:64"))
    return {"model": model, "system": system, **whole, "point_cpu_s": point, "curve_cpu_s": curve}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = sorted(file.stem for file in MODELS.glob("*.json"))
    parser.add_argument("--models", nargs="+", choices=names, default=names)
    parser.add_argument("--systems", nargs="+", choices=list(SYSTEMS), default=list(SYSTEMS))
    chosen = parser.parse_args()
    found = []
    print("| model | system | prefill and decode [CPU s] | point [CPU s] | 64 contexts [CPU s] | ratio |")
    print("|---|---|---|---|---|---|")
    for model in chosen.models:
        for system in chosen.systems:
            row = measured(model, system)
            ratio = row["curve_cpu_s"] / row["point_cpu_s"]
            missed = " (target missed)" * (row["cpu_s"] > TARGET_S or ratio > TARGET_RATIO)
            numbers = f"{row['cpu_s']:.1f} | {row['point_cpu_s']:.1f} | {row['curve_cpu_s']:.1f} | {ratio:.2f}{missed}"
            print(f"| {model} | {system} | {numbers} |", flush=True)
            found.append(row)
    target = PROJECT / "benchmarks" / "results" / "tokens.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
