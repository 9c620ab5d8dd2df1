"""Random problems as the three YAML files that a user writes: hardware, mapping and workload."""

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from tilewright.hardware.core import Core, Memory, OperationalArray, Port
from tilewright.mapping.constraints import Unrolling
from tilewright.workload.layer import Layer

from tests.plain.model import Links
from tests.plain.problems import random_core, random_layer, random_problem, random_unrolling

WITH_TWO_INPUTS = ("convolution", "pointwise", "grouped", "depthwise", "pooling", "gemm", "batched", "two inputs")
"""Kinds of layers that a workload file can have, as its equations have two inputs."""
NAMES = ("one", "two", "three")
MIRROR_BITS = (("W", 8), ("I", 8), ("O", 8), ("O_final", 8))
MIRROR_OPERANDS = (("O", ("D", "K")), ("I", ("D", "C")), ("W", ("C", "K")))
MIRROR_LINKS = (("O", "O"), ("W", "I2"), ("I", "I1"))


class WrittenProblem:
    """Random layers on a random core; some layers are equal, some ports tie, or the search generates lanes."""

    def __init__(self, rng: random.Random, kind: str) -> None:
        """`kind` is `any`, `narrow`, `mirror` or `tiny`.

        `narrow`: all ports are equally wide. `mirror`: both inputs of a product have equal ports. `tiny`: few cycles,
        so that several ports save equally many.
        """
        if kind == "mirror":
            self.layers, self.core, self.links, unrollings, self.model = _mirror(rng)
        else:
            loops = (0, 2) if kind == "tiny" else (0, 8)
            problem = random_problem(rng.randrange(2**32), loops, kind=rng.choice(WITH_TWO_INPUTS))
            self.core, self.links, self.model = problem.core, problem.links, problem.model
            self.layers, unrollings = [problem.layer], [problem.unrolling]
            if kind == "narrow" or (kind == "tiny" and rng.random() < 0.5):
                self.core = with_equal_ports(self.core, rng.choice((4, 8, 16)))
        more = {"tiny": (0,), "mirror": (0, 0, 0, 0, 1)}.get(kind, (0, 0, 1, 1, 2))
        for _ in range(rng.choice(more)):
            if rng.random() < 0.3:  # an equal layer, which has a record and a row together with the first one
                self.layers.append(self.layers[0])
                unrollings.append(unrollings[0])
            else:
                self.layers.append(random_layer(rng, rng.choice(WITH_TWO_INPUTS)))
                unrollings.append(random_unrolling(rng, self.layers[-1], self.core))
        self.unrollings = [() if rng.random() < 0.2 else one for one in unrollings]

    def write(self, folder: Path) -> tuple[Path, Path, Path]:
        """Write the files of hardware, mapping and workload, and return their paths."""
        files = folder / "core.yaml", folder / "mapping.yaml", folder / "net.yaml"
        layers = [layer_entry(number, layer) for number, layer in enumerate(self.layers)]
        entries = [mapping_entry(NAMES[n], one, self.links) for n, one in enumerate(self.unrollings)]
        entries.append({"name": "default", "memory_operand_links": dict(self.links)})
        for file, data in zip(files, (hardware_file(self.core), entries, layers), strict=True):
            file.write_text(yaml.safe_dump(data, sort_keys=False), "utf-8")
        return files


def _mirror(rng: random.Random) -> tuple[list[Layer], Core, Links, list[Unrolling], str]:
    """A matrix product with a memory and a port for each operand; the ports of both inputs are equally wide."""
    side = rng.choice((1, 1, 2, 4))
    sizes = (("D", side), ("K", side), ("C", rng.choice((3, 4, 6, 8, 12))))
    layer = Layer("gemm", "Gemm", MIRROR_OPERANDS, sizes, (), MIRROR_BITS)
    width = rng.choice((1, 2, 4, 64))
    memories = []
    for operand, wide in {"I1": width, "I2": width, "O": rng.choice((width, 64))}.items():
        moves = ("tl", "fl", "th", "fh") if operand == "O" else ("tl", "fh")
        port = Port("rw", "read_write", min(wide, 8), wide, tuple((operand, one) for one in moves))
        memories.append(Memory(f"m{operand}", 10**6, 1.0, 2.0, (operand,), (port,), ("D1",)))
    core = Core("mirror", OperationalArray((("D1", rng.choice((1, 2))),), 0.5), tuple(memories))
    return [layer], core, MIRROR_LINKS, [()], rng.choice(("corrected", "zigzag-3.9.1"))


def with_equal_ports(core: Core, width: int) -> Core:
    """The core with all ports equally wide."""
    memories = []
    for memory in core.memories:
        ports = tuple(replace(port, bandwidth_min_bits=width, bandwidth_max_bits=width) for port in memory.ports)
        memories.append(replace(memory, ports=ports))
    return replace(core, memories=tuple(memories))


def core_for_matrices(rng: random.Random) -> Core:
    """A random core whose outermost memories have room for all tensors of a small language model."""
    layer = random_layer(rng, "gemm")
    core = random_core(rng, layer, tuple((name, rng.choice((1, 2, 4))) for name in ("D1", "D2")))
    memories = [replace(one, size_bits=10**9) if one.name.startswith("top") else one for one in core.memories]
    return replace(core, memories=tuple(memories))


def hardware_file(core: Core) -> dict[str, Any]:
    """Content of the hardware file of a core."""
    array = core.operational_array
    return {
        "name": core.name,
        "operational_array": {
            "dimensions": [name for name, _ in array.dimensions],
            "sizes": [size for _, size in array.dimensions],
            "unit_energy": array.unit_energy_pj,
            "unit_area": array.unit_area_mm2,
            "systolic_dimensions": list(array.systolic_dimensions),
        },
        "memories": {memory.name: _memory_entry(memory) for memory in core.memories},
    }


def _memory_entry(memory: Memory) -> dict[str, Any]:
    return {
        "size": memory.size_bits,
        "r_cost": memory.read_energy_pj,
        "w_cost": memory.write_energy_pj,
        "area": 0,
        "operands": list(memory.operands),
        "served_dimensions": list(memory.served_dimensions),
        "force_double_buffering": memory.force_double_buffering,
        "ports": [
            {
                "name": port.name,
                "type": port.port_type,
                "bandwidth_min": port.bandwidth_min_bits,
                "bandwidth_max": port.bandwidth_max_bits,
                "allocation": [", ".join(link) for link in port.allocation],
            }
            for port in memory.ports
        ],
    }


def mapping_entry(name: str, unrolling: Unrolling, links: Links) -> dict[str, Any]:
    """Entry of a mapping file; without lanes, the search generates them."""
    lanes = {side: [f"{dimension}, {factor}" for dimension, factor in factors] for side, factors in unrolling}
    return {"name": name, **({"spatial_mapping": lanes} if lanes else {}), "memory_operand_links": dict(links)}


def layer_entry(number: int, layer: Layer) -> dict[str, Any]:
    """Entry of a workload file; both inputs are constants of the network."""
    bits = {"W": 0, **dict(layer.precision_bits)}
    entry: dict[str, Any] = {
        "id": number,
        "name": NAMES[number],
        "operator_type": "Conv" if layer.relations else "Gemm",
        "equation": _equation(layer),
        "dimension_relations": [_relation(one.data_dimension, one.terms) for one in layer.relations],
        "loop_dims": [name for name, _ in layer.loop_sizes],
        "loop_sizes": [size for _, size in layer.loop_sizes],
        "operand_precision": {name: bits[name] for name in ("W", "I", "O", "O_final")},
        "operand_source": {"I": number, "W": number},
    }
    extents = dict(layer.data_dimension_sizes)
    if layer.padding or extents:
        names = [one.data_dimension for one in layer.relations]
        entry["pr_loop_dims"] = names
        entry |= {"padding": [list(dict(layer.padding)[name]) for name in names]} if layer.padding else {}
        entry |= {"pr_loop_sizes": [extents[name] for name in names]} if extents else {}
    return entry


def _equation(layer: Layer) -> str:
    operands = sorted(layer.operand_dimensions[1:], key=lambda one: not one[1])  # one without dimensions comes last
    output, first, second = (
        name + ("".join(f"[{axis.lower()}]" for axis in axes) or "[]")
        for name, axes in (layer.operand_dimensions[0], *operands)
    )
    return f"{output} += {first} * {second}"


def _relation(name: str, terms: Sequence[tuple[str, int]]) -> str:
    (first, times), (second, more) = terms
    return f"{name.lower()} = {times}*{first.lower()} + {more}*{second.lower()}"
