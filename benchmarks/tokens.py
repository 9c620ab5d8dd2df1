"""CPU seconds of `tilewright tokens` for every published language model, on one core and on several cores.

    .venv/bin/python benchmarks/tokens.py [--models llama-3.1-8b ...] [--systems quad_core] [--no-curves]

Each model runs in a separate process with the model profile `corrected` and without a store. The time includes start
and reading. The process computes a prompt of 2k tokens, and the next token at 11 context lengths of 1k to 1M tokens.
Models with fewer learned positions have shorter contexts. Then a curve over 64 contexts from 1k to 1M tokens is
measured. Its CPU time is compared with the CPU time of one point at 32k tokens. Prints a table, and writes
results/tokens.json in this folder. The targets are 60 s for a model, and a curve in at most 3 times the time of a
point.
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
    "tpu_like_vector": ("config/hardware/zigzag/tpu_like_vector.yaml", "config/mapping/zigzag/tpu_like_vector.yaml"),
    "quad_core": ("config/hardware/multi/quad_core.yaml", "config/mapping/multi/open.yaml"),
}
TARGET_S, TARGET_RATIO = 60.0, 3.0
CHILD = """
import json, sys, time
import tilewright

model, hardware, mapping, contexts, prompt, key_block, key_tokens = json.loads(sys.argv[1])
started = time.process_time()
step = {"language_model": model, "phase": "decode", "context": 1}
given = {"hardware": hardware, "mapping": mapping, "model": "corrected", "key_block": key_block}
found = tilewright.tokens(step, contexts=contexts, prompts=False, **given)
if prompt:
    first = tilewright.tokens(step, contexts=[prompt], **given)
rows = [row for row in found.rows if row["context"] in key_tokens]
keys = ("context", "parallel", "time_per_token_cycles", "energy_per_token_pj", "bound_by", "fits")
told = [{key: row.get(key, "") for key in keys} for row in rows]
if prompt:
    row = first.rows[0]
    told.append({"prompt": prompt, "parallel": row.get("prompt_parallel", ""),
                 "time_to_first_token_cycles": row["time_to_first_token_cycles"]})
print(json.dumps({"cpu_s": time.process_time(), "rows": told}))
"""


PROMPT, MOST = 2048, 1 << 20
LEARNED = {"gpt2": 1024, "opt-6.7b": 2048}
"""Number of tokens for which a model has learned positions. Models that are not listed take any number of tokens."""


def run(model: str, system: str, contexts: Any, prompt: int = 0, key_block: int = 1024) -> dict[str, Any]:
    """Result of one process, with its CPU time."""
    hardware, mapping = SYSTEMS[system]
    given = json.dumps(
        [str(MODELS / f"{model}.json"), hardware, mapping, contexts, prompt, key_block, [1024, 32768, MOST]]
    )
    command = [sys.executable, "-c", CHILD, given]
    made = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    if made.returncode:
        return {"refused": made.stderr.strip().rpartition("\n")[2].strip()}
    found: dict[str, Any] = json.loads(made.stdout)
    return found


def measured(model: str, system: str, with_curves: bool) -> dict[str, Any]:
    """Measured numbers of a model on a system."""
    most = LEARNED.get(model, MOST)
    whole = run(model, system, f"{min(1024, most // 2)}:{most}:11", min(PROMPT, most))
    if not with_curves or "refused" in whole:
        return {"model": model, "system": system, **whole}
    first = min(1024, most // 64)  # and the block of keys, so that contexts are whole numbers of blocks
    of_point, of_curve = [min(32768, most)], f"{first}:{most}:64"
    point, curve = (run(model, system, contexts, key_block=first)["cpu_s"] for contexts in (of_point, of_curve))
    return {"model": model, "system": system, **whole, "point_cpu_s": point, "curve_cpu_s": curve}


def told(row: dict[str, Any]) -> str:
    """Cells of a row of the table. Numbers that miss their target are marked."""
    if "refused" in row:
        return f"{row['refused']} | | |"
    whole = f"{row['cpu_s']:.1f}" + " (target missed)" * (row["cpu_s"] > TARGET_S)
    if "point_cpu_s" not in row:
        return f"{whole} | | |"
    ratio = row["curve_cpu_s"] / row["point_cpu_s"]
    missed = " (target missed)" * (ratio > TARGET_RATIO)
    return f"{whole} | {row['point_cpu_s']:.1f} | {row['curve_cpu_s']:.1f} | {ratio:.2f}{missed}"


def main() -> None:
    """Measure all models and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = sorted(file.stem for file in MODELS.glob("*.json"))
    parser.add_argument("--models", nargs="+", choices=names, default=names)
    parser.add_argument("--systems", nargs="+", choices=list(SYSTEMS), default=list(SYSTEMS))
    parser.add_argument("--no-curves", action="store_true", help="leave out the curve over 64 contexts")
    chosen = parser.parse_args()
    target = PROJECT / "benchmarks" / "results" / "tokens.json"
    target.parent.mkdir(exist_ok=True)
    found = []
    print("| model | system | prefill and decode [CPU s] | point [CPU s] | 64 contexts [CPU s] | ratio |")
    print("|---|---|---|---|---|---|")
    for model in chosen.models:
        for system in chosen.systems:
            row = measured(model, system, not chosen.no_curves)
            print(f"| {model} | {system} | {told(row)} |", flush=True)
            found.append(row)
            target.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
