"""Makes data/reference-exports.json.gz: the output files of zigzag-dse 3.9.1 for the small conformance network.

Run in the environment of the pinned peer (benchmarks/reference/setup_environment.py):
PYTHONHASHSEED=0 .cache/reference-venv/bin/python tests/unit/peers/zigzag/make_reference_exports.py
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import logging
import tempfile
from pathlib import Path
from typing import Any

from zigzag.mapping.temporal_mapping import TemporalMappingType
from zigzag.stages.evaluation.cost_model_evaluation import CostModelStage
from zigzag.stages.main import MainStage
from zigzag.stages.mapping.spatial_mapping_generation import SpatialMappingGeneratorStage
from zigzag.stages.mapping.temporal_mapping_generator_stage import TemporalMappingGeneratorStage
from zigzag.stages.parser.accelerator_parser import AcceleratorParserStage
from zigzag.stages.parser.workload_parser import WorkloadParserStage
from zigzag.stages.results.reduce_stages import MinimalLatencyStage, SumStage
from zigzag.stages.results.save import CompleteSaveStage, SimpleSaveStage
from zigzag.stages.workload_iterator import WorkloadStage
from zigzag.visualization.results.print_mapping import print_mapping

HERE = Path(__file__).parent
DATA = HERE.parents[2] / "conformance" / "data"
RUNS = ("weight_stationary_16x16", "row_stationary_12x14")
LPF_LIMIT = 5


def run(hardware: str, folder: Path) -> dict[str, Any]:
    """All files that zigzag-dse writes for the small network on one accelerator, by name."""
    stages = [
        WorkloadParserStage,
        AcceleratorParserStage,
        SimpleSaveStage,
        CompleteSaveStage,
        SumStage,
        WorkloadStage,
        SimpleSaveStage,
        CompleteSaveStage,
        MinimalLatencyStage,
        SpatialMappingGeneratorStage,
        MinimalLatencyStage,
        TemporalMappingGeneratorStage,
        CostModelStage,
    ]
    main = MainStage(
        list_of_callables=stages,
        accelerator=str(DATA / "hardware" / f"{hardware}.yaml"),
        workload=str(DATA / "workload" / "small_network.yaml"),
        mapping=str(DATA / "mapping" / "user_2d.yaml"),
        loma_lpf_limit=LPF_LIMIT,
        loma_show_progress_bar=False,
        nb_mappings_generated=3,
        enable_mix_spatial_mapping_generation=False,
        access_same_data_considered_as_no_access=True,
        temporal_mapping_type=TemporalMappingType.UNEVEN,
        dump_folder=str(folder),
    )
    ((_, layers),) = main.run()
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        for evaluation, _ in layers:
            print_mapping(evaluation)
    files = {path.name: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}
    return {"hardware": hardware, "files": files, "loop_ordering": text.getvalue()}


def main() -> None:
    """Write the fixture."""
    logging.disable(logging.CRITICAL)
    runs = []
    for hardware in RUNS:
        with tempfile.TemporaryDirectory() as folder:
            runs.append(run(hardware, Path(folder)))
    content = {"zigzag_version": "3.9.1", "objective": "latency", "lpf_limit": LPF_LIMIT, "runs": runs}
    data = json.dumps(content, separators=(",", ":")).encode()
    (HERE / "data").mkdir(exist_ok=True)
    (HERE / "data" / "reference-exports.json.gz").write_bytes(gzip.compress(data, 9, mtime=0))


if __name__ == "__main__":
    main()
