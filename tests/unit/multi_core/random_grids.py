"""Random systems with regular graphs of cores, several ports, dataflows and small memories; random matrix products."""

import random
from pathlib import Path
from typing import Any

import numpy as np
from onnx.helper import make_node
from tilewright.hardware.topologies import topology

from tests.unit.multi_core.random_cases import RandomNetwork, random_system
from tests.unit.multi_core.runs import core, off_chip, pipe, saved

SHAPES = ("bus", "2d_mesh", "2d_torus", "ring", "star", "row")
WIDTHS = (8, 8, 16, 24, 64, 1000)


class RandomProducts:
    """A random network of matrix products, sums, activation functions and softmax on matrices."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.rows, self.width = draw.choice((1, 4, 6, 9)), draw.choice((4, 6, 12))
        self.nodes: list[Any] = []
        self.constants: dict[str, np.ndarray] = {}
        self.tensors: list[tuple[str, tuple[int, int]]] = [("x", (self.rows, self.width))]
        for _ in range(draw.randint(2, 5)):
            name, shape = self.tensors[-1] if draw.random() < 0.7 else draw.choice(self.tensors)
            kinds = (self.product, self.product, self.gemm, self.square, self.add, self.bias, self.relu, self.softmax)
            draw.choice(kinds)(name, shape)
        if not self.nodes:
            self.product(*self.tensors[0])

    def node(self, kind: str, inputs: list[str], shape: tuple[int, int], **attributes: Any) -> str:
        """Add a node and return the name of its output."""
        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(make_node(kind, inputs, [name], name=name, **attributes))
        self.tensors.append((name, shape))
        return name

    def constant(self, *shape: int) -> str:
        """Add a constant and return its name."""
        name = f"w{len(self.constants)}"
        self.constants[name] = np.ones(shape, np.float32)
        return name

    def product(self, name: str, shape: tuple[int, int]) -> None:
        """Add a product with weights, sometimes those of an earlier product."""
        same = [one for one, value in self.constants.items() if value.ndim == 2 and value.shape[0] == shape[1]]
        if same and self.draw.random() < 0.3:
            weight = self.draw.choice(same)
        else:
            weight = self.constant(shape[1], self.draw.choice((self.width, self.width, 5, 16)))
        self.node("MatMul", [name, weight], (shape[0], self.constants[weight].shape[1]))

    def gemm(self, name: str, shape: tuple[int, int]) -> None:
        """Add a product with weights and a bias, which is a row, a matrix, or an earlier result."""
        weight, width = self.constant(shape[1], self.width), self.width
        earlier = [one for one, its in self.tensors if its == (shape[0], width)]
        beside = [self.constant(width), self.constant(shape[0], width), *earlier[-1:]]
        self.node("Gemm", [name, weight, self.draw.choice(beside)], (shape[0], width))

    def square(self, name: str, shape: tuple[int, int]) -> None:
        """Add the product of a matrix with its own transpose, like the scores of attention."""
        turned = self.node("Transpose", [name], (shape[1], shape[0]), perm=[1, 0])
        self.node("MatMul", [name, turned], (shape[0], shape[0]))

    def add(self, name: str, shape: tuple[int, int]) -> None:
        """Append an addition of the tensor and a random earlier tensor of the same shape."""
        self.node("Add", [name, self.draw.choice([one for one, its in self.tensors if its == shape])], shape)

    def bias(self, name: str, shape: tuple[int, int]) -> None:
        """Append an addition of the tensor and a constant."""
        self.node("Add", [name, self.constant(shape[1])], shape)

    def relu(self, name: str, shape: tuple[int, int]) -> None:
        """Add an activation function."""
        self.node("Relu", [name], shape)

    def softmax(self, name: str, shape: tuple[int, int]) -> None:
        """Add a softmax along the rows."""
        self.node("Softmax", [name], shape, axis=-1)

    def save(self, folder: Path) -> Path:
        """Write the ONNX file and return its path."""
        return saved(folder, self.nodes, {"x": (self.rows, self.width)}, self.constants)


def random_small_network(draw: random.Random) -> RandomNetwork | RandomProducts:
    """Return a network of convolutions or of matrix products."""
    return RandomNetwork(draw) if draw.random() < 0.6 else RandomProducts(draw)


def flowing(name: str, side: int, size: str) -> dict[str, Any]:
    """Return a core whose array supports only its dataflows: channels on both sides, or groups along one side."""
    described = core(name, side, size)
    array = {**described["operational_array"], "dimensions": ["D1", "D2"], "sizes": [side, side]}
    memory = {**described["memories"]["memory"], "served_dimensions": ["D1", "D2"]}
    flows = [{"D1": [f"K, {side}"], "D2": [f"C, {side}"]}, {"D1": [f"G, {side}"]}]
    more = {"exclusive_dataflows": True, "dataflows": flows}
    return {**described, "operational_array": array, "memories": {"memory": memory}, **more}


def random_kind(draw: random.Random, name: str, is_fast: bool) -> dict[str, Any]:
    """Return a core with one memory, with a memory for each operand, with dataflows, or without limits.

    The core without limits is so fast and large that only links limit it.
    """
    if is_fast:
        return core(name, 64, "64 KiB", energy=draw.choice((20, 50)))
    size = draw.choice(("256 B", "512 B", "1 KiB", "4 KiB"))
    style = draw.random()
    if style < 0.25:
        return pipe(name, draw.choice((2, 4)))
    if style < 0.5:
        return flowing(name, draw.choice((2, 4)), size)
    return core(name, draw.choice((2, 4, 8)), size, energy=draw.choice((20, 50)))


def graph_edges(draw: random.Random, shape: str, cores: int) -> list[tuple[int, int]]:
    """Return pairs of linked cores of a regular graph, of a star around core 0, or of a row."""
    if shape == "star":
        return [(0, other) for other in range(1, cores)]
    if shape == "row":
        return [(one, one + 1) for one in range(cores - 1)]
    rows = draw.choice([number for number in range(1, cores + 1) if cores % number == 0])
    return sorted(topology(shape).edges({"nb_rows": rows, "nb_cols": cores // rows}, cores))


def random_grid(draw: random.Random) -> dict[str, Any]:
    """Return two to six cores in a graph with links of any width; one core can be a vector unit.

    The off-chip memory is on a bus, on links, or has one port or several.
    """
    count, shape = draw.randint(2, 6), draw.choice(SHAPES)
    is_fast = draw.random() < 0.5
    kinds = [random_kind(draw, name, is_fast) for name in ("one", "two", "three")[: draw.randint(1, 3)]]
    cores = {number: draw.choice(kinds) for number in range(count)}
    roles = {}
    if draw.random() < 0.6:
        if draw.random() < 0.5:  # only the vector unit can add
            cores = {number: {**one, "operator_types": ["mac"]} for number, one in cores.items()}
        cores[count - 1] = core("vector", 64 if is_fast else 4, draw.choice(("512 B", "8 KiB")), ["vector", "pooling"])
        roles = {count - 1: "simd"}

    def link(ids: list[int], **more: Any) -> dict[str, Any]:
        energy = draw.choice(("0 fJ", "100 fJ", "300 fJ"))
        return {"cores": ids, "bandwidth": draw.choice(WIDTHS), "energy_per_bit": energy, **more}

    place = draw.choice(("ports of the core file", "ports", "ports", "links", "bus"))
    links: list[dict[str, Any]] = []
    if shape == "bus":
        on_bus = [*range(count), *([count] if place == "bus" else [])]
        links.append(link(on_bus, type="bus"))
    else:
        kind = draw.choice(({}, {}, {"duplex": "half"}, {"directed": True}))
        edges = graph_edges(draw, shape, count)
        links += [link([one, other], **kind) for one, other in edges]
        links += [link([other, one], **kind) for one, other in edges if "directed" in kind]
    found: dict[str, Any] = {"cores": cores, "offchip": off_chip(*draw.choice(((64,), (96, 64), (1000,))))}
    if place == "links":
        links += [link([one, count]) for one in sorted(draw.sample(range(count), draw.choice((1, 2))))]
    if place == "ports":
        chosen = draw.sample(range(count), min(count, draw.choice((1, 2, 3))))
        found["offchip_ports"] = [{"cores": [one], "bandwidth": draw.choice(WIDTHS)} for one in sorted(chosen)]
    if draw.random() < 0.3:
        found["equal_paths"] = "load"
    routers = list(range(count - (draw.random() < 0.3)))
    return found | {"links": links, "roles": roles, "routers": routers}


def random_wide_system(draw: random.Random) -> dict[str, Any]:
    """Return a system of `random_grid` or of `random_system`, with or without multicast and forwarding."""
    found = random_grid(draw) if draw.random() < 0.75 else random_system(draw)
    return found | {"multicast": draw.random() < 0.4, "forwarding": draw.random() < 0.4}


def random_core_entries(draw: random.Random, network: RandomNetwork | RandomProducts, cores: int) -> list[Any]:
    """Return entries of a mapping file that allow some layers only some cores."""
    entries: list[dict[str, Any]] = [{"name": "default"}]
    for node in network.nodes:
        if draw.random() < 0.3:
            chosen = sorted(draw.sample(range(cores), draw.randint(1, cores)))
            entries.append({"name": node.name, "core_allocation": chosen})
    return entries
