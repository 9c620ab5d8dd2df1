"""Makes data/stream-plans.json: random mapping files, and the tiles that stream-dse 2.1.1 gives their layers.

Run it in an environment with stream-dse 2.1.1, in the folder of the project:

    PYTHONPATH=. python tests/unit/peers/stream/make_stream_plans.py
"""

from __future__ import annotations

import json
import math
import random
import tempfile
from pathlib import Path
from typing import Any

from stream.hardware.architecture.core import Core
from stream.parser.mapping_factory import MappingFactory
from stream.parser.mapping_validator import MappingValidator
from stream.parser.onnx.model import ONNXModelParser
from stream.workload.utils import (
    collect_spatial_unrollings,
    determine_fusion_splits,
    generate_steady_state_iteration_spaces,
)
from stream.workload.workload import Workload

from tests.unit.peers.stream.plan_networks import image_network, matrix_network

HERE = Path(__file__).parent
CASES = 160
UNEVEN_CASES = 120
"""Number of further cases. In most of these cases, a tile or a number of parts does not divide its loop."""
CORES = 4


class AnyCores:
    """Accelerator in which every id is a core that runs every operator."""

    kernel_library = None

    def get_core(self, core_id: int) -> Core:
        """Core without memories."""
        core = Core.__new__(Core)
        core.__dict__.update(id=core_id, operator_types=None)
        return core


def tiles(network: Workload, file: dict[str, Any]) -> dict[str, list[list[int]]] | None:
    """Layer -> pairs (position of a loop, number of tiles), innermost first; None if Stream refuses the file."""
    checked = MappingValidator(file)
    if not checked.validate():
        return None
    group = file["fused_groups"][0]["layers"]
    names = [node.name for node in network.get_computation_nodes()]
    first, last = names.index(group[0]), names.index(group[-1])
    cuts = ([names[first - 1]] if first else []) + ([names[last]] if last + 1 < len(names) else [])
    parts = network.split_fusion_groups(cut_points=cuts) if cuts else [network]
    part = next(one for one in parts if group[0] in [node.name for node in one.get_computation_nodes()])
    try:
        mapping = MappingFactory(checked.normalized_data, part, AnyCores()).create()
        splits = determine_fusion_splits(part, mapping)
        collect_spatial_unrollings(part, mapping)
        generate_steady_state_iteration_spaces(part, mapping, splits)
    except (AssertionError, ValueError, IndexError):
        return None
    return {
        node.name: [
            [place, count]
            for axis, count in splits.items()
            if count > 1
            for place, loop in enumerate(part.get_dims(node))
            if part.leading_dim(loop)[0] == axis
        ]
        for node in part.get_computation_nodes()
    }


def random_file(network: Workload, draw: random.Random) -> dict[str, Any]:
    """Mapping file with one group of consecutive layers, random parts and random tiles."""
    nodes = list(network.get_computation_nodes())
    first = draw.randrange(len(nodes))
    group = nodes[first : first + draw.randint(1, 5)]
    layers, given = [], []
    for node in group:
        sizes = [network.get_dimension_sizes()[network.global_idxs[node].start + at] for at in range(node.num_dims)]
        cuts = []
        for place in draw.sample(range(len(sizes)), draw.choice((0, 1, 1, 2))):
            parts = draw.choice((2, 4, 3 if draw.random() < 0.1 else 2))
            if sizes[place] > 1:
                cuts.append({"dim": f"D{place}", "split": parts})
        if math.prod(cut["split"] for cut in cuts) > CORES:
            cuts = cuts[:1]
        count = math.prod(cut["split"] for cut in cuts)
        entry = {"name": node.name, "core_allocation": [list(range(count))]}
        layers.append({**entry, "inter_core_tiling": [cuts] if cuts else []})
        for place in draw.sample(range(len(sizes)), draw.choice((0, 0, 1, 2))):
            divisors = [one for one in range(1, sizes[place] + 1) if sizes[place] % one == 0]
            given.append({"dim": f"{node.name}.D{place}", "tile": draw.choice(divisors)})
    given = given or [{"dim": f"{group[0].name}.D0", "tile": 1}]
    groups = [{"name": "group", "layers": [node.name for node in group], "intra_core_tiling": given}]
    return {"layers": layers, "fused_groups": groups}


def uneven_file(network: Workload, draw: random.Random) -> dict[str, Any]:
    """Mapping file like those of `random_file`, but one tile has any size, or one loop is cut into three parts."""
    file = random_file(network, draw)
    cuts = [cut for entry in file["layers"] for part in entry["inter_core_tiling"] for cut in part]
    if cuts and draw.random() < 0.4:
        entry = next(one for one in file["layers"] if one["inter_core_tiling"])
        entry["inter_core_tiling"] = [[{**entry["inter_core_tiling"][0][0], "split": 3}]]
        entry["core_allocation"] = [[0, 1, 2]]
    else:
        tile = draw.choice(file["fused_groups"][0]["intra_core_tiling"])
        tile["tile"] = draw.randint(1, 34)
    return file


def main() -> None:
    """Write the cases."""
    draw, cases = random.Random(20261129), []
    with tempfile.TemporaryDirectory() as folder:
        for make in (image_network, matrix_network):
            parser = ONNXModelParser(str(make(Path(folder))))
            parser.run()
            for _ in range(CASES // 2):
                file = random_file(parser.workload, draw)
                cases.append({"network": make.__name__, "file": file, "tiles": tiles(parser.workload, file)})
        for make in (image_network, matrix_network):
            parser = ONNXModelParser(str(make(Path(folder))))
            parser.run()
            for _ in range(UNEVEN_CASES // 2):
                file = uneven_file(parser.workload, draw)
                cases.append({"network": make.__name__, "file": file, "tiles": tiles(parser.workload, file)})
    (HERE / "data").mkdir(exist_ok=True)
    lines = ",\n".join(json.dumps(case) for case in cases)
    (HERE / "data" / "stream-plans.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
