"""Generate the committed data-locality set by running the pinned peer (zigzag-dse 3.9.1).

Run with the reference environment's Python (`benchmarks/reference/setup_environment.py` prints its path):

    python tests/conformance/make_locality_reference.py [NAME ...]

Each run is a whole search of a network with `exploit_data_locality`, or with `enable_mix_spatial_mapping`, which turns
it on. It writes `data/locality-<name>.json`: the totals, and for each layer the reach of each operand, the reduced
accelerator, the best mapping and its cost. The stages are composed as by the peer's API, without stages that only save
or draw.

`--graphs` instead writes `data/locality-graphs.json`, which has only the reach, for random networks and cores. Inputs
are the peer's example inputs (MIT licence) in its installation, and the files of `--inputs`. `make_locality_inputs.py`
keeps their content in `data/locality-inputs.json`.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import logging
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import yaml
import zigzag
from zigzag.mapping.temporal_mapping import TemporalMappingType
from zigzag.stages.evaluation.cost_model_evaluation import CostModelStage
from zigzag.stages.exploit_data_locality_stages import (
    ExploitInterLayerDataLocalityStage,
    SearchInterLayerDataLocalityStage,
)
from zigzag.stages.main import MainStage
from zigzag.stages.mapping.spatial_mapping_generation import SpatialMappingGeneratorStage
from zigzag.stages.mapping.temporal_mapping_generator_stage import TemporalMappingGeneratorStage
from zigzag.stages.parser.accelerator_parser import AcceleratorParserStage
from zigzag.stages.parser.onnx_model_parser import ONNXModelParserStage
from zigzag.stages.parser.workload_parser import WorkloadParserStage
from zigzag.stages.results.reduce_stages import MinimalEDPStage, MinimalEnergyStage, MinimalLatencyStage
from zigzag.stages.stage import Stage
from zigzag.stages.workload_iterator import WorkloadStage

PROJECT = Path(__file__).resolve().parents[2]
DATA = Path(__file__).with_name("data")
sys.path.insert(0, str(PROJECT / "benchmarks" / "reference"))

from locality_networks import HARDWARE, random_hardware, random_mapping, random_network  # noqa: E402
from runner import DIRECTIONS, plain_numbers, spatial_dict  # noqa: E402  (found through the lines above)

OBJECTIVES = {"energy": MinimalEnergyStage, "latency": MinimalLatencyStage, "EDP": MinimalEDPStage}
ACCELERATORS = ("tpu_like", "edge_tpu_like", "meta_prototype", "tesla_npu_like", "ascend_like", "eyeriss_like")
GRAPHS = 400
NETWORKS = ("alexnet.onnx", "resnet18.onnx", "mobilenetv2.onnx", "resnet18.yaml")


@dataclass(frozen=True)
class Run:
    """One search of the peer."""

    hardware: str
    workload: str
    mixed: bool = False
    objective: str = "latency"
    lpf_limit: int = 6
    temporal_mapping_type: str = "uneven"
    always_from_top: bool = False

    @property
    def mapping(self) -> str:
        """The mapping file that the peer's tests use with this accelerator."""
        stem = "meta_prototype_like" if self.hardware == "meta_prototype" else self.hardware
        return f"{stem}_mixed" if self.mixed else stem

    @property
    def name(self) -> str:
        """File name stem of the result, without the prefix."""
        words = [self.hardware, self.workload.replace(".onnx", "").replace(".", "_")]
        words += [word for word, on in (("mixed", self.mixed), ("top", self.always_from_top)) if on]
        words += [w for w in (self.objective, self.temporal_mapping_type) if w not in ("latency", "uneven")]
        return "-".join(words) + (f"-lpf{self.lpf_limit}" if self.lpf_limit != 6 else "")


def all_runs() -> Iterator[Run]:
    """Every run, the cheap and important ones first."""
    named = ACCELERATORS[:5]
    for workload in NETWORKS[:3]:
        yield from (Run(hardware, workload) for hardware in ACCELERATORS)
    yield from (Run(hardware, "resnet18.onnx", mixed=True) for hardware in named)
    yield from (Run(hardware, "resnet18.yaml") for hardware in named)
    yield from (Run(hardware, "resnet18.yaml", mixed=True) for hardware in named)
    yield Run("meta_prototype", "resnet18.onnx", objective="energy")
    yield Run("ascend_like", "alexnet.onnx", objective="EDP")
    yield Run("tpu_like", "resnet18.onnx", always_from_top=True)
    yield Run("ascend_like", "alexnet.onnx", always_from_top=True)
    yield Run("tpu_like", "resnet18.onnx", temporal_mapping_type="even", lpf_limit=5)
    yield from (Run(hardware, "alexnet.onnx", mixed=True) for hardware in named)


class _FirstAndLastFromTop(SearchInterLayerDataLocalityStage):
    """The search of levels with an optional step that the peer's API does not reach."""

    def run(self) -> Iterator[Any]:
        yield from super().run(workload_data_always_from_top_mem=True)


class _Observer(Stage):
    """Stage between the reduction of the accelerator and the rest; it keeps the decisions for each layer."""

    seen: ClassVar[list[dict[str, Any]]] = []

    def __init__(self, list_of_callables: list[Any], *, accelerator: Any, layer: Any, **kwargs: Any):
        super().__init__(list_of_callables, **kwargs)
        self.accelerator, self.layer = accelerator, layer

    def run(self) -> Iterator[Any]:
        self.seen.append({"layer": self.layer.name, "memories": list(_memories(self.accelerator))})
        rest = self.list_of_callables[0](
            self.list_of_callables[1:], accelerator=self.accelerator, layer=self.layer, **self.kwargs
        )
        yield from rest.run()


class _ReachObserver(ExploitInterLayerDataLocalityStage):
    """The reduction stage, which also keeps the levels it gets: [memory operand, index in the memory list]."""

    reach: ClassVar[dict[str, list[list[Any]]]] = {}
    weight: ClassVar[set[int]] = set()

    def run(self) -> Iterator[Any]:
        self.reach[self.layer.name] = [[str(op), level] for op, level in self.mem_update_list[self.layer.id].items()]
        self.weight.add(self.mem_update_weight)
        yield from super().run()


def _memories(accelerator: Any) -> Iterator[list[Any]]:
    """[name, operands, level of each, [services of each port]] of each remaining memory, in order of definition."""
    keys = {direction: key for key, direction in DIRECTIONS.items()}
    for memory in accelerator.memory_hierarchy.mem_level_list:
        services = [
            [f"{operand} {level} {keys[direction]}" for operand, level, direction in port.served_op_lv_dir]
            for port in memory.ports
        ]
        operands = [str(operand) for operand in memory.operands]
        yield [memory.name, operands, [memory.mem_level_of_operands[op] for op in memory.operands], services]


def search(run: Run, inputs: list[Path]) -> dict[str, Any]:
    """The record of one run."""
    is_onnx = run.workload.endswith(".onnx")
    reduce_stage = OBJECTIVES[run.objective]
    _Observer.seen.clear()
    _ReachObserver.reach.clear()
    _ReachObserver.weight.clear()
    main = MainStage(
        list_of_callables=[
            ONNXModelParserStage if is_onnx else WorkloadParserStage,
            AcceleratorParserStage,
            _FirstAndLastFromTop if run.always_from_top else SearchInterLayerDataLocalityStage,
            WorkloadStage,
            _ReachObserver,
            _Observer,
            reduce_stage,
            SpatialMappingGeneratorStage,
            reduce_stage,
            TemporalMappingGeneratorStage,
            CostModelStage,
        ],
        accelerator=str(_find(f"hardware/{run.hardware}.yaml", inputs)),
        workload=str(_find(f"workload/{run.workload}", inputs)),
        mapping=str(_find(f"mapping/{run.mapping}.yaml", inputs)),
        loma_lpf_limit=run.lpf_limit,
        loma_show_progress_bar=False,
        nb_mappings_generated=3,
        enable_mix_spatial_mapping_generation=run.mixed,
        access_same_data_considered_as_no_access=True,
        temporal_mapping_type=TemporalMappingType(run.temporal_mapping_type),
    )
    winners = main.run()
    return _record(run, winners)


def _find(path: str, inputs: list[Path]) -> Path:
    return next(folder / path for folder in inputs if (folder / path).is_file())


def _record(run: Run, winners: list[Any]) -> dict[str, Any]:
    cores: list[Any] = []
    layers = []
    (weight_level,) = _ReachObserver.weight
    energy, latency = 0.0, 0.0
    for seen, (cme, (layer, _)) in zip(_Observer.seen, winners, strict=True):
        assert seen["layer"] == layer.name
        if seen["memories"] not in cores:
            cores.append(seen["memories"])
        energy += cme.energy_total
        latency += cme.latency_total2
        layers.append(
            {
                "name": layer.name,
                "reach": _ReachObserver.reach[layer.name],
                "core": cores.index(seen["memories"]),
                "energy": cme.energy_total,
                "mem_energy": cme.mem_energy,
                "latency": [cme.latency_total0, cme.latency_total1, cme.latency_total2],
                "spatial_mapping": spatial_dict(cme.layer.spatial_mapping),
                "temporal_mapping": {
                    str(operand): [[[str(dim), size] for dim, size in level] for level in levels]
                    for operand, levels in cme.temporal_mapping.mapping_dic_stationary.items()
                },
            }
        )
    return {
        "zigzag_version": "3.9.1",
        "hardware": run.hardware,
        "workload": run.workload,
        "mapping": run.mapping,
        "objective": run.objective,
        "lpf_limit": run.lpf_limit,
        "nb_spatial_mappings": 3,
        "mixed_spatial_mapping": run.mixed,
        "temporal_mapping_type": run.temporal_mapping_type,
        "always_from_top": run.always_from_top,
        "weight_level": weight_level,
        "energy": energy,
        "latency": latency,
        "cores": cores,
        "layers": layers,
    }


class _End(Stage):
    """Stage that replaces the rest of a search and keeps the found levels."""

    found: ClassVar[list[Any]] = []

    def __init__(self, list_of_callables: list[Any], *, mem_update_list: Any, mem_update_weight: int, **kwargs: Any):
        super().__init__(list_of_callables, **kwargs)
        self.found[:] = [mem_update_list, mem_update_weight, kwargs["workload"]]

    def run(self) -> Iterator[Any]:
        yield from ()

    def is_leaf(self) -> bool:
        return True


def graph_reach(seed: int, folder: Path) -> list[Any]:
    """[seed, hardware, weight level, [[layer, activation level, output level], ...]], or the exception instead."""
    rng = random.Random(seed)
    hardware = rng.choice(HARDWARE)
    data = random_hardware(yaml.safe_load((DATA / "hardware" / f"{hardware}.yaml").read_text()), rng)
    (folder / "core.yaml").write_text(yaml.safe_dump(data, sort_keys=False))
    (folder / "mapping.yaml").write_text(yaml.safe_dump(random_mapping(rng), sort_keys=False))
    main = MainStage(
        [ONNXModelParserStage, AcceleratorParserStage, SearchInterLayerDataLocalityStage, _End],
        workload=random_network(rng),
        accelerator=str(folder / "core.yaml"),
        mapping=str(folder / "mapping.yaml"),
    )
    try:
        main.run()
    except Exception as error:  # whatever the peer stops with
        return [seed, hardware, f"{type(error).__name__}: {error}"]
    levels, weight, workload = _End.found
    names = {node.id: node.name for node in workload.node_list}
    rows = [
        [names[node], *(level for _, level in sorted(by_operand.items(), key=_output_last))]
        for node, by_operand in levels.items()
    ]
    return [seed, hardware, weight, rows]


def _output_last(item: tuple[Any, int]) -> bool:
    return str(item[0]) == "O"


def write_graphs() -> None:
    """Write the reach in random networks, one on each line."""
    with tempfile.TemporaryDirectory() as folder:
        rows = [graph_reach(seed, Path(folder)) for seed in range(GRAPHS)]
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    (DATA / "locality-graphs.json").write_text(f"[\n{lines}\n]\n")


def write(record: dict[str, Any], path: Path) -> None:
    """Write the record as JSON, with one layer and one reduced accelerator on each line."""
    plain = plain_numbers(record)
    head = {name: value for name, value in plain.items() if name not in ("cores", "layers")}
    lines = [f" {json.dumps(name)}: {json.dumps(value)}," for name, value in head.items()]
    for name, end in (("cores", ","), ("layers", "")):
        rows = ",\n".join(f"  {json.dumps(row, separators=(',', ':'))}" for row in plain[name])
        lines.append(f' "{name}": [\n{rows}\n ]{end}')
    path.write_text("{\n" + "\n".join(lines) + "\n}\n")


def main() -> int:
    """Command line: make the runs whose names match, by default those that are missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["*"], help="names of runs, with wildcards")
    parser.add_argument("--inputs", type=Path, action="append", default=[], help="more folders of inputs")
    parser.add_argument("--graphs", action="store_true", help="the reach in random networks instead")
    parser.add_argument("--again", action="store_true", help="also runs whose files exist")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    if arguments.graphs:
        write_graphs()
        return 0
    inputs = [Path(zigzag.__file__).parent / "inputs", *arguments.inputs]
    for run in all_runs():
        path = DATA / f"locality-{run.name}.json"
        is_wanted = any(fnmatch.fnmatch(run.name, name) for name in arguments.names)
        if not is_wanted or (path.exists() and not arguments.again):
            continue
        start = time.time()
        record = search(run, inputs)
        write(record, path)
        print(run.name, record["energy"], record["latency"], f"{time.time() - start:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
