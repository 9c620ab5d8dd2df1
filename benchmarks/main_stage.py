"""Comparison of tilewright and zigzag-dse 3.9.1 on a script that is written for zigzag-dse: numbers and CPU seconds.
Both tools run the script unchanged.

    .venv/bin/python benchmarks/main_stage.py [--lpf-limit 4] [--runs 3]

The script has a stage that reads every cost model evaluation (CME). The numbers of both tools must be equal for every
layer, to the last digit. Prints CMEs per second of both tools, and the CPU time of a script with built-in stages,
compared with `tilewright map`. The exit code is 1 if a number differs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

from child import run_child
from reference.setup_environment import ensure_reference

PROJECT = Path(__file__).resolve().parent.parent
FILES = ("config/hardware/zigzag/tpu_like.yaml", "config/workload/resnet18.onnx", "config/mapping/zigzag/tpu_like.yaml")
SCRIPT = """
import json, logging, sys, time
logging.disable(logging.CRITICAL)
from zigzag.mapping.temporal_mapping import TemporalMappingType
from zigzag.stages.evaluation.cost_model_evaluation import CostModelStage
from zigzag.stages.main import MainStage
from zigzag.stages.mapping.spatial_mapping_generation import SpatialMappingGeneratorStage
from zigzag.stages.mapping.temporal_mapping_generator_stage import TemporalMappingGeneratorStage
from zigzag.stages.parser.accelerator_parser import AcceleratorParserStage
from zigzag.stages.parser.onnx_model_parser import ONNXModelParserStage
from zigzag.stages.results.reduce_stages import MinimalLatencyStage
from zigzag.stages.stage import Stage
from zigzag.stages.workload_iterator import WorkloadStage

accelerator, workload, mapping, lpf_limit, place = sys.argv[1:]
seen = 0


class Look(Stage):
    def run(self):
        global seen
        for cme, extra_info in self.list_of_callables[0](self.list_of_callables[1:], **self.kwargs).run():
            seen += 1
            yield cme, extra_info


stages = [ONNXModelParserStage, AcceleratorParserStage, WorkloadStage, MinimalLatencyStage,
          SpatialMappingGeneratorStage, MinimalLatencyStage, TemporalMappingGeneratorStage, CostModelStage]
if place:
    stages.insert(int(place), Look)
start = time.process_time()
answers = MainStage(
    stages, accelerator=accelerator, workload=workload, mapping=mapping, loma_lpf_limit=int(lpf_limit),
    loma_show_progress_bar=False, temporal_mapping_type=TemporalMappingType.UNEVEN,
).run()
spent = time.process_time() - start
figures = [
    [cme.layer.name, cme.energy_total, cme.mac_energy, cme.mem_energy, cme.latency_total0, cme.latency_total1,
     cme.latency_total2, {str(name): levels for name, levels in cme.mem_energy_breakdown.items()}]
    for cme, _ in answers
]
print(json.dumps({"seen": seen, "cpu_seconds": spent, "figures": figures}))
"""
PLACES = {"above the mapper": "6", "below the mapper": "7"}
"""Positions of the user's stage in the list of stages, by description of the position."""


def main() -> int:
    """Run the comparison. Returns 1 if a number differs, else 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lpf-limit", type=int, default=4)
    parser.add_argument("--runs", type=int, default=3, help="number of runs; the median is printed")
    given = parser.parse_args()
    own = [sys.executable, "-m", "tilewright.main_stage"]
    peer = [str(ensure_reference())]
    differ = 0
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script.py"
        script.write_text(SCRIPT)
        for name, place in PLACES.items():
            words = [str(script), *FILES, str(given.lpf_limit), place]
            theirs = json.loads(run_child([*peer, *words], cwd=PROJECT).output.splitlines()[-1])
            runs = [json.loads(run_child([*own, *words], cwd=PROJECT).output) for _ in range(given.runs)]
            differ += any(run["figures"] != theirs["figures"] for run in runs)
            rate, their_rate = (
                statistics.median(run["seen"] / run["cpu_seconds"] for run in of) for of in (runs, [theirs])
            )
            same = "equal" if all(run["figures"] == theirs["figures"] for run in runs) else "DIFFERENT"
            beside = f"reference {their_rate:,.0f}: {rate / their_rate:.0f} times"
            print(f"stage {name}: {rate:,.0f} CMEs a second, {beside}; figures {same}")
        words = [str(script), *FILES, str(given.lpf_limit), ""]
        verb = [sys.executable, "-m", "tilewright", "map", "--preset", "zigzag", "--no-store"]
        verb += ["--lpf-limit", str(given.lpf_limit)]
        for option, file in zip(("--hardware", "--workload", "--mapping"), FILES, strict=True):
            verb += [option, file]
        pairs = [(run_child([*own, *words], cwd=PROJECT), run_child(verb, cwd=PROJECT)) for _ in range(given.runs)]
        ratio = statistics.median(one.cpu_seconds / other.cpu_seconds for one, other in pairs)
        print(f"a script with built-in stages: {ratio:.2f} times the CPU time of tilewright map")
    return int(differ > 0)


if __name__ == "__main__":
    sys.exit(main())
