"""Random small networks, accelerators, mappings and options, from a seed."""

import copy
import random
from pathlib import Path
from typing import Any

import numpy as np
from onnx.helper import make_node

from tests.unit.multi_core.runs import core, off_chip, saved

Shape = tuple[int, int, int]
"""Tuple (channels, height, width)."""


class RandomNetwork:
    """A random network of convolutions, elementwise operators, poolings and moves of data on small tensors."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.nodes: list[Any] = []
        self.constants: dict[str, np.ndarray] = {}
        self.tensors: list[tuple[str, Shape]] = [("x", (draw.choice((3, 4, 8)), draw.choice((7, 8)), 6))]
        count = draw.randint(3, 6)
        while len(self.nodes) < count:
            source = self.tensors[-1] if draw.random() < 0.7 else draw.choice(self.tensors)
            kinds = (self.conv, self.conv, self.strided, self.depthwise, self.grouped, self.transposed, self.relu)
            draw.choice((*kinds, self.add, self.concat, self.pool, self.cut))(*source)

    def constant(self, *shape: int) -> str:
        """Add a weight and return its name."""
        name = f"w{len(self.constants)}"
        self.constants[name] = np.ones(shape, np.float32)
        return name

    def node(self, kind: str, inputs: list[str], shape: Shape, **attributes: Any) -> None:
        """Add a node and return the name of its output."""
        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(make_node(kind, inputs, [name], name=name, **attributes))
        self.tensors.append((name, shape))

    def conv(self, name: str, shape: Shape) -> None:
        """Add a 3x3 or 1x1 convolution, with or without a bias."""
        size, outputs = self.draw.choice((1, 3)), self.draw.choice((4, 6))
        inputs = [name, self.constant(outputs, shape[0], size, size)]
        inputs += [self.constant(outputs)] if self.draw.random() < 0.5 else []
        self.node("Conv", inputs, (outputs, *shape[1:]), pads=[size // 2] * 4)

    def strided(self, name: str, shape: Shape) -> None:
        """Add a 1x1 convolution that reads every second pixel, so that input lines have gaps."""
        inputs = [name, self.constant(4, shape[0], 1, 1)]
        self.node("Conv", inputs, (4, (shape[1] + 1) // 2, (shape[2] + 1) // 2), strides=[2, 2])

    def depthwise(self, name: str, shape: Shape) -> None:
        """Add a convolution with a filter for each channel."""
        inputs = [name, self.constant(shape[0], 1, 3, 3)]
        self.node("Conv", inputs, shape, group=shape[0], pads=[1] * 4)

    def grouped(self, name: str, shape: Shape) -> None:
        """Add a convolution of two groups."""
        if shape[0] % 2 == 0:
            inputs = [name, self.constant(4, shape[0] // 2, 3, 3)]
            self.node("Conv", inputs, (4, *shape[1:]), group=2, pads=[1] * 4)

    def transposed(self, name: str, shape: Shape) -> None:
        """Add a transposed convolution that doubles height and width."""
        if shape[1] <= 8:
            inputs = [name, self.constant(shape[0], 4, 2, 2)]
            self.node("ConvTranspose", inputs, (4, 2 * shape[1], 2 * shape[2]), strides=[2, 2])

    def relu(self, name: str, shape: Shape) -> None:
        """Add an activation function."""
        self.node("Relu", [name], shape)

    def add(self, name: str, shape: Shape) -> None:
        """Add the sum of two tensors of one shape."""
        other = self.draw.choice([one for one, its_shape in self.tensors if its_shape == shape])
        self.node("Add", [name, other], shape)

    def concat(self, name: str, shape: Shape) -> None:
        """Add a concatenation of two tensors along the channels."""
        others = [one for one in self.tensors if one[1][1:] == shape[1:] and one[1][0] + shape[0] <= 16]
        if others:
            other, its_shape = self.draw.choice(others)
            self.node("Concat", [name, other], (shape[0] + its_shape[0], *shape[1:]), axis=1)

    def pool(self, name: str, shape: Shape) -> None:
        """Add a pooling that halves height and width."""
        if min(shape[1:]) >= 4:
            kind, size = self.draw.choice(("MaxPool", "AveragePool")), (shape[1] // 2, shape[2] // 2)
            self.node(kind, [name], (shape[0], *size), kernel_shape=[2, 2], strides=[2, 2])

    def cut(self, name: str, shape: Shape) -> None:
        """Add a slice without the first line."""
        if shape[1] >= 4:
            bounds = [f"{end}{len(self.nodes)}" for end in ("start", "stop", "axis")]
            self.constants |= {b: np.array([v], np.int64) for b, v in zip(bounds, (1, shape[1], 2), strict=True)}
            self.node("Slice", [name, *bounds], (shape[0], shape[1] - 1, shape[2]))

    def save(self, folder: Path) -> Path:
        """Write the ONNX file and return its path."""
        return saved(folder, self.nodes, {"x": (1, *self.tensors[0][1])}, self.constants)


def random_system(draw: random.Random) -> dict[str, Any]:
    """Return two to four cores of up to three kinds and a vector unit; a bus, links or only the DRAM connect them."""
    kinds = {
        name: core(name, draw.choice((2, 4, 8)), draw.choice(("512 B", "1 KiB", "4 KiB")), energy=draw.choice((20, 50)))
        for name in ("one", "two", "three")
    }
    count = draw.randint(1, 3)
    cores = {number: kinds[draw.choice(sorted(kinds))] for number in range(count)}
    cores[count] = core("vector", 4, "2 KiB", ["vector", "pooling"])
    links: list[dict[str, Any]] = []
    style = draw.choice(("bus", "bus and links", "links", "none"))
    if "bus" in style:
        ids = [*cores, *([count + 1] if draw.random() < 0.3 else [])]
        links.append({"type": "bus", "cores": ids, "bandwidth": draw.choice((16, 64)), "energy_per_bit": "320 fJ"})
    if "links" in style:
        for number in range(count):
            link = {"type": "link", "cores": [number, number + 1], "bandwidth": draw.choice((8, 96))}
            links.append(link | {"unit_energy_cost": 3.2} | ({"duplex": "half"} if draw.random() < 0.3 else {}))
    sharing = []
    if count >= 2 and cores[0] is cores[1] and style == "links":
        sharing, links = [[0, 1]], links[1:]
    return {
        **{"cores": cores, "offchip": off_chip(*draw.choice(((64,), (96, 64)))), "links": links},
        **{"roles": {count: "simd"}, "sharing": sharing},
    }


def further_parts(draw: random.Random, system: dict[str, Any], bandwidth: int = 96) -> dict[str, dict[str, Any]]:
    """Return name -> changes of a random system that add parts: a core, a link, multicast, or all of these.

    The link costs as much as the others. Its bandwidth is `bandwidth`, by default at least that of the widest link of
    `random_system`. The core has at most one link, so that no path between other cores changes.
    """
    cores, links = system["cores"], system["links"]
    new, off_chip_id = len(cores), len(cores) + 1
    moved = [{**link, "cores": [off_chip_id if core == new else core for core in link["cores"]]} for link in links]
    fastest = {"type": "link", "bandwidth": bandwidth, "energy_per_bit": "0 fJ"}
    tail = [{**fastest, "cores": [0, new]}] if links else []
    core = {"cores": {**cores, new: cores[draw.choice(range(len(cores) - 1))]}, "links": [*moved, *tail]}
    joined = {frozenset(link["cores"]) for link in links} | {frozenset(group) for group in system.get("sharing", [])}
    pairs = [(one, other) for other in cores for one in range(other) if frozenset((one, other)) not in joined]
    link = {"links": [*links, {**fastest, "cores": list(draw.choice(pairs))}]} if pairs else {}
    multicast = {"multicast": True}
    return {"core": core, "link": link, "multicast": multicast, "all": {**core, **multicast}}


def with_wider_links(given: dict[str, Any]) -> dict[str, Any]:
    """Return changes of a system that give all links and all off-chip ports twice the bandwidth."""
    off_chip_core = copy.deepcopy(given["offchip"])
    for port in off_chip_core["memories"]["dram"]["ports"]:
        port["bandwidth_max"] *= 2
    lists = {key: given[key] for key in ("links", "offchip_ports") if key in given}
    wider = {key: [{**one, "bandwidth": 2 * one["bandwidth"]} for one in found] for key, found in lists.items()}
    return {"offchip": off_chip_core, **wider}


def with_larger_memories(given: dict[str, Any]) -> dict[str, Any]:
    """Return changes of a system that give all memories of its cores twice the size."""
    cores = copy.deepcopy(given["cores"])
    for described in cores.values():
        for memory in described["memories"].values():
            number, unit = memory["size"].split()
            memory["size"] = f"{2 * int(number)} {unit}"
    return {"cores": cores}


def random_tiling(draw: random.Random) -> tuple[list[dict[str, Any]], list[str]]:
    """Return entries of a mapping file and options of `tilewright cns`."""
    inner, outer = draw.choice((["OY, all"], ["OY, 3"], ["OX, 2"])), draw.choice(([], ["K, 2"]))
    entry: dict[str, Any] = {"name": "default", "intra_core_tiling": inner}
    entry |= {"inter_core_tiling": outer} if outer else {}
    return [entry], draw.choice(
        (
            [],
            ["--mode", "lbl", "--cn-define-mode", "1"],
            ["--cn-define-mode", "1", "--hint-loops", '[["OY", "all"]]'],
            ["--cn-define-mode", "1", "--hint-loops", '[["C", 2], ["OY", 3]]'],
        )
    )


def random_options(draw: random.Random) -> list[str]:
    """Return options of `tilewright schedule`."""
    found = ["--scheduler-candidate-selection", draw.choice(("latency", "memory"))]
    found += ["--cn-runtime", draw.choice(("total0", "total1", "total2"))]
    found += ["--share-divisor", draw.choice(("1", "4"))]
    return found + (["--operands-to-prefetch", '["I"]'] if draw.random() < 0.4 else [])
