"""The meaning of a shipped file, alone or with the files it is used with, and the notices on it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from tilewright.base.artifacts.codec import encode
from tilewright.base.yamlfile import load_yaml
from tilewright.cli.config import plan_of
from tilewright.designs.space_reader import space_of
from tilewright.hardware.core_paths import core_files_of
from tilewright.hardware.source import parse_accelerator
from tilewright.mapping.constraints import Mapping, MappingConstraints
from tilewright.mapping.temporal import applicable_ordering
from tilewright.multicore.nodes.tiling_options import TilingOptions
from tilewright.pipeline.stages.descriptions import Descriptions
from tilewright.pipeline.stages.multi.items import read_system_problem
from tilewright.pipeline.stages.preflight.network import preflight
from tilewright.pipeline.stages.run import read_problem
from tilewright.search.options import SearchOptions
from tilewright.workload.graph import Workload
from tilewright.workload.layer import Layer
from tilewright.workload.source import parse_workload
from tilewright.workload.yaml_reader import read_workload_yaml

from benchmarks.shipped import shipped as shipped_file

CONFIG = Path(__file__).resolve().parents[2] / "config"
ANY_NETWORK = ("resnet18.onnx", "mobilenetv2.onnx", "bert_tiny.onnx")
"""Networks for mapping entries that apply to any network; each entry finds layers in at least one of them."""
Reading = Callable[[Path, list[str]], Any]
"""Function that returns the meaning of a file as a comparable value, and appends notices."""


@dataclass(frozen=True)
class Shipped:
    """A file of config/ and the function that reads it."""

    path: Path
    read: Reading

    @property
    def data(self) -> Any:
        """The document in the file."""
        return yaml.safe_load(self.path.read_text("utf-8"))


@cache
def network(name: str, model: str) -> Workload:
    """A network of config/."""
    return parse_workload(CONFIG / "workload" / name, model)


def hardware(file: Path, notices: list[str]) -> Any:
    """The accelerator in a file, of one core or of several."""
    return encode(parse_accelerator(file, notices))


def core_of(system: str) -> Reading:
    """Reading of a core file together with the accelerator that names it."""
    return lambda file, notices: hardware(file.parents[1] / f"{system}.yaml", notices)


def core_files() -> Iterator[tuple[Path, str]]:
    """Core files, each with the first accelerator that names it."""
    found: dict[Path, str] = {}
    for file in sorted((CONFIG / "hardware" / "multi").glob("*.yaml")):
        for _, name in core_files_of(yaml.safe_load(file.read_text("utf-8"))).values():
            found.setdefault((file.parent / name).resolve(), file.stem)
    yield from sorted(found.items())


def layers(file: Path, notices: list[str]) -> Any:
    """The network in a workload file."""
    return encode(read_workload_yaml(file, notices))


def language_model(file: Path, notices: list[str]) -> Any:
    """The first blocks of a step of a model."""
    step = {"language_model": str(file), "phase": "decode", "context": 128}
    return encode(read_workload_yaml(step, notices))


def configuration(file: Path, notices: list[str]) -> Any:
    """The plan of a configuration file."""
    document = load_yaml(file, notices)
    plan = plan_of(document.data, [document])
    notices += plan.unused
    runs = [(run.name, run.arguments("map" if run.flow == "single" else "cost"), run) for run in plan.every_run]
    return repr((runs, plan.files, plan.network_options, plan.results, plan.spaces, plan.fronts))


def space(file: Path, notices: list[str]) -> Any:
    """The design space in a file."""
    read = space_of(load_yaml(file, notices), notices)
    return repr({name: value for name, value in vars(read).items() if name != "document"})


def mapping_with(core: str, *workloads: str) -> Reading:
    """Reading of a mapping file on a core for networks: its settings for each layer."""

    def read(file: Path, notices: list[str]) -> Any:
        found = []
        for name in workloads:
            given = Descriptions(shipped_file("hardware", core), network(name, "zigzag-3.9.1"), file)
            problem = read_problem(given, SearchOptions())
            notices += problem.notices
            sides = dict(problem.core.operational_array.dimensions)
            found += meanings(problem.mapping, problem.workload, list(sides))
        return found

    return read


def mapping_on_cores(system: str, workload: str) -> Reading:
    """Reading of a mapping file on several cores for a network: its settings for each layer."""

    def read(file: Path, notices: list[str]) -> Any:
        given = Descriptions(CONFIG / "hardware" / "multi" / f"{system}.yaml", network(workload, "corrected"), file)
        problem = read_system_problem(given)
        found = preflight(problem, TilingOptions())
        if found.problems:
            from tilewright.base.errors import InputError

            raise InputError(found.problems)
        notices += [*problem.notices, *found.notices]
        sides = [side for core in problem.accelerator.cores for side, _ in core.operational_array.dimensions]
        return meanings(problem.mapping, problem.workload, sides)

    return read


def meanings(mapping: Mapping, workload: Workload, sides: list[str]) -> list[Any]:
    """The mapping's settings for each layer, without loops that the layer lacks and sides that no core has."""
    found = (node.layer for node in workload.nodes if node.layer is not None)
    return [meaning(mapping.constraints_for(layer), layer, sides) for layer in found]


def meaning(entry: MappingConstraints, layer: Layer, sides: list[str]) -> Any:
    """The mapping's settings for one layer."""
    fixed = {side: tuple((d, n) for d, n in loops if d in layer.size_of) for side, loops in entry.spatial_mapping}
    hints = {
        side: tuple(d for d in loops if d in layer.size_of)
        for side, loops in entry.spatial_mapping_hint
        if side in sides and side not in fixed
    }
    order = applicable_ordering(entry.temporal_ordering, layer)
    rest = replace(entry, name="", spatial_mapping=(), spatial_mapping_hint=(), temporal_ordering=())
    return fixed, hints, order, rest


def shipped() -> Iterator[Shipped]:
    """The shipped files, in the order of their names."""
    for file in sorted((CONFIG / "hardware").rglob("*.yaml")):
        if "cores" not in file.parts:
            yield Shipped(file, hardware)
    for file, system in core_files():
        yield Shipped(file, core_of(system))
    for name in ("cube_3d", "edge_tpu_like", "eyeriss_like", "tpu_like", "tpu_like_vector"):
        yield Shipped(shipped_file("mapping", name), mapping_with(name, *ANY_NETWORK))
    name = "meta_prototype_df"
    yield Shipped(shipped_file("mapping", name), mapping_with(name, "fsrcnn.yaml"))
    for name, workload in (("heterogeneous", "mobilenetv2.onnx"), ("quad_core", "resnet18.onnx")):
        yield Shipped(CONFIG / "mapping" / "multi" / f"{name}.yaml", mapping_on_cores(name, workload))
    for file in sorted((CONFIG / "workload").glob("*.yaml")):
        yield Shipped(file, layers)
    for file in sorted((CONFIG / "workload" / "language_models").glob("*.json")):
        yield Shipped(file, language_model)
    for file in sorted(CONFIG.glob("*.yaml")):
        yield Shipped(file, configuration)
    for file in sorted((CONFIG / "space").glob("*.yaml")):
        yield Shipped(file, space)
