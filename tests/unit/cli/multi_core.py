"""A small run of the flow for several cores, made by its verbs."""

from pathlib import Path

import onnx
from tilewright.cli.main import main

from tests.unit.multicore.nodes.networks import SAME, conv
from tests.unit.workload.onnx.dependency_checks import build_model

TINY = Path(__file__).resolve().parents[2] / "workflow" / "tiny_multi"
HARDWARE, MAPPING = str(TINY / "hardware" / "duo.yaml"), str(TINY / "mapping" / "duo.yaml")
CORES = ("left", "right")
GA = ["--nb-ga-individuals", "4", "--nb-ga-generations", "2", "--exhaustive-nodes", "0"]


def write_network(folder: Path) -> Path:
    """Write three 3x3 convolutions in a row as an ONNX file."""
    import numpy as np

    nodes = [conv("x", "w0", "a", **SAME), conv("a", "w1", "b", **SAME), conv("b", "w2", "c", **SAME)]
    weights = {name: np.ones((4, 4, 3, 3), np.float32) for name in ("w0", "w1", "w2")}
    path = folder / "net.onnx"
    onnx.save(build_model(nodes, {"x": (1, 4, 8, 8)}, weights), str(path))
    return path


def given(network: Path, mapping: Path | str = MAPPING) -> list[str]:
    """Return the descriptions as arguments."""
    return ["--hardware", HARDWARE, "--workload", str(network), "--mapping", str(mapping)]


def inputs(network: Path, folder: Path, mapping: Path | str = MAPPING) -> list[str]:
    """Return the descriptions and the folder of a run as arguments of `allocate` and `schedule`."""
    return [*given(network, mapping), "--cns", str(folder), "--costs", str(folder / "cost")]


def cut_and_cost(network: Path, folder: Path, *options: str, mapping: Path | str = MAPPING) -> None:
    """Make the CN graph and the cost tables of a run."""
    assert main(["cns", *given(network, mapping), *options, "-o", str(folder)]) == 0
    for core in CORES:
        table = str(folder / "cost" / f"{core}.jsonl")
        arguments = ["--core", core, "--cns", str(folder), "--model", "corrected", "--no-store", "-o", table]
        assert main(["cost", *given(network, mapping), *arguments]) == 0
