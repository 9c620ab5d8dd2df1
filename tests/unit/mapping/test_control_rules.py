"""Control rules outside the kernels: spatial mappings, data locality, messages with lines, refusals."""

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
import tilewright
import yaml
from tilewright.base.errors import InputError, MappingError
from tilewright.base.profile import CORRECTED
from tilewright.hardware.core import Core
from tilewright.hardware.source import parse_accelerator
from tilewright.mapping.constraints import Mapping, MappingConstraints, Unrolling
from tilewright.mapping.control_rules import can_hold_whole, control_keys, refuse_control
from tilewright.mapping.locality import find_memory_reach
from tilewright.mapping.spatial_generation import spatial_candidates
from tilewright.mapping.spatial_space import SpatialSpace
from tilewright.workload.layer import Layer

from tests.unit.cost.engine_cases import LINKS
from tests.unit.search.exact.exact_cases import random_case

EXAMPLES = Path(__file__).parents[3] / "docs/examples"


def ruled(core: Core, **sides: tuple[str, ...]) -> Core:
    """Return the core with an array that can unroll only some loops."""
    array = replace(core.operational_array, unrolled_dimensions=tuple(sides.items()))
    return replace(core, operational_array=array)


def lanes(unrolling: Unrolling) -> frozenset[tuple[str, str, int]]:
    """Return the loops that a spatial mapping unrolls, as a set without factors of 1."""
    return frozenset((side, d, n) for side, loops in unrolling for d, n in loops if n > 1)


def space(layer: Layer, core: Core, mixed: bool) -> set[frozenset[tuple[str, str, int]]]:
    """Return all spatial mappings of the exact search, with all sides of the array open."""
    given = MappingConstraints("default", memory_operand_links=LINKS)
    return {lanes(one.unrolling) for one in SpatialSpace(layer, core, given, CORRECTED, mixed)}


def generated(layer: Layer, core: Core) -> list[Unrolling]:
    """Return the spatial mappings that loma tries, or none if no mapping is possible."""
    try:
        return spatial_candidates(layer, core, MappingConstraints("default", memory_operand_links=LINKS), CORRECTED)
    except MappingError:
        return []


@pytest.mark.parametrize("mixed", [False, True])
def test_open_spatial_mappings_are_those_that_obey_the_rule(mixed: bool) -> None:
    """The space under a rule is the whole space without the mappings that break the rule."""
    fewer = tried = 0
    for seed in range(60):
        rng = random.Random(seed)
        case = random_case(rng)
        can = {
            side: tuple(d for d in case.layer.size_of if rng.random() < 0.5)
            for side, _ in case.core.operational_array.dimensions
            if rng.random() < 0.8
        }
        try:
            whole = space(case.layer, case.core, mixed)
        except MappingError:
            continue
        plain = {one for one in whole if all(side not in can or d in can[side] for side, d, _ in one)}
        found = space(case.layer, ruled(case.core, **can), mixed)
        assert found <= plain, seed
        assert plain == found, seed
        fewer += len(plain) < len(whole)
        for one in generated(case.layer, ruled(case.core, **can)):
            assert all(side not in can or d in can[side] for side, d, _ in lanes(one)), seed
            tried += 1
    assert tried > 40
    assert fewer > 20


def test_a_given_unrolling_that_cannot_be_is_refused() -> None:
    """The message about a forbidden unrolling names the loop, the side and the allowed loops.
    A loop that the layer does not have is accepted.
    """
    case = random_case(random.Random(3))
    side = case.core.operational_array.dimensions[0][0]
    name = next(d for d, size in case.layer.loop_sizes if size > 1)
    core = ruled(case.core, **{side: ("ZZ",)})
    given = MappingConstraints("default", spatial_mapping=((side, ((name, 2),)),), memory_operand_links=LINKS)
    with pytest.raises(MappingError, match=f"cannot unroll {name} along {side}: unrolled_dimensions .* allow ZZ"):
        spatial_candidates(case.layer, core, given, CORRECTED)
    absent = MappingConstraints("default", spatial_mapping=((side, (("QQ", 2),)),), memory_operand_links=LINKS)
    assert spatial_candidates(case.layer, core, absent, CORRECTED)


def test_a_memory_holds_a_tensor_only_with_all_its_loops() -> None:
    """A memory can hold a whole tensor if its rules allow all loops of the tensor; loops of size 1 do not count."""
    core = parse_accelerator(EXAMPLES / "accelerator.yaml").cores[0]
    network = tilewright.parse_workload(EXAMPLES / "workload.yaml")
    layer = network.layers_in_order[0].layer
    assert layer is not None
    memory = core.memories[1]
    for dimensions, holds in (
        (None, {"O", "W", "I"}),
        (("K", "OX", "OY"), {"O"}),
        (("K", "C", "FX", "FY"), {"W"}),
        (("C", "OX", "OY", "FX", "FY"), {"I"}),
        (("K", "OX"), set()),
    ):
        one = replace(memory, tile_dimensions=dimensions)
        assert {o for o in layer.operands if can_hold_whole(one, layer, o, CORRECTED)} == holds


def hardware(folder: Path, **keys: object) -> Path:
    """Write the example with further keys of array and DRAM, and a buffer that holds only some loops."""
    data = yaml.safe_load((EXAMPLES / "accelerator.yaml").read_text())
    for name, value in keys.items():
        place = data["operational_array"] if name == "unrolled_dimensions" else data["memories"]["dram"]
        place[name] = value
    data["memories"]["buffer"]["tile_dimensions"] = ["K", "C", "FX", "FY", "B"]
    (folder / "core.yaml").write_text(yaml.safe_dump(data, sort_keys=False))
    return folder / "core.yaml"


def test_data_do_not_stay_where_loops_are_missing() -> None:
    """The output of the first layer stays in the buffer, unless the buffer cannot hold rows of outputs."""
    network = tilewright.parse_workload(EXAMPLES / "workload.yaml")
    mapping = Mapping((MappingConstraints("default", memory_operand_links=LINKS),))
    core = parse_accelerator(EXAMPLES / "accelerator.yaml").cores[0]
    tops = []
    for rule in (None, ("K", "C", "FX", "FY", "OX", "D")):
        registers, buffer, dram = core.memories
        own = replace(core, memories=(registers, replace(buffer, tile_dimensions=rule), dram))
        reach = find_memory_reach(network, own, mapping, CORRECTED)
        tops.append([own.memories[one.output].name for one in reach] + [own.memories[reach[1].activation].name])
    assert tops[0] == ["buffer", "buffer", "buffer"]
    assert tops[1] == ["dram", "buffer", "dram"]


def test_lines_of_mappings_that_break_rules(tmp_path: Path) -> None:
    """Errors name the line of an unrolling in `map`, and the line of a loop order or a point in `evaluate`."""
    core = hardware(tmp_path, loop_order=["OY", "K", "C"], unrolled_dimensions={"D2": ["C"]})
    mapping = tmp_path / "mapping.yaml"
    mapping.write_text(
        "- name: default\n  memory_operand_links: { O: O, W: I2, I: I1 }\n  spatial_mapping:\n"
        "    D1: ['K, 8']\n    D2: ['OX, 7']\n"
    )
    with pytest.raises(InputError, match=r"mapping.yaml:5 .*cannot unroll OX along D2.* allow C"):
        tilewright.map(hardware=core, workload=EXAMPLES / "workload.yaml", mapping=mapping)
    order = [["K", 4], ["OX", 14], ["C", 2], ["FX", 3], ["FY", 3], ["OY", 14]]
    point = {"layer": "conv", "spatial_mapping": {"D1": {"K": 8}, "D2": {"C": 8}}, "loop_order": order}
    (tmp_path / "points.jsonl").write_text("\n" + json.dumps(point) + "\n")
    with pytest.raises(MappingError, match=r"points.jsonl:2 a loop over OY has the wrong place: memory 'dram'"):
        tilewright.evaluate(hardware=core, workload=EXAMPLES / "workload.yaml", points=tmp_path / "points.jsonl")
    mapping.write_text(
        "- name: default\n  memory_operand_links: { O: O, W: I2, I: I1 }\n  spatial_mapping:\n"
        f"    D1: ['K, 8']\n    D2: ['C, 8']\n  temporal_ordering: {json.dumps(order)}\n"
    )
    with pytest.raises(MappingError, match=r"mapping.yaml:6 a loop over OY has the wrong place"):
        tilewright.evaluate("conv", hardware=core, workload=EXAMPLES / "workload.yaml", mapping=mapping)


def test_other_runs_refuse_the_keys(tmp_path: Path) -> None:
    """Runs without control rules refuse each of the keys by name and accept a core without them."""
    core = parse_accelerator(
        hardware(tmp_path, loop_order=["OY", "K"], tile_dimensions=["K"], unrolled_dimensions={"D2": ["C"]})
    ).cores[0]
    assert control_keys(core) == (
        "operational_array.unrolled_dimensions",
        "memories.buffer.tile_dimensions",
        "memories.dram.tile_dimensions",
        "memories.dram.loop_order",
    )
    with pytest.raises(InputError, match="a run of tests does not obey rules of the control"):
        refuse_control([core], "a run of tests")
    refuse_control([parse_accelerator(EXAMPLES / "accelerator.yaml").cores[0]], "a run of tests")
