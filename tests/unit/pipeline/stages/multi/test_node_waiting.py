"""Calls and commands of computation nodes: cycles worked out by hand, and commands as in the one-core model."""

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from tilewright.base.artifacts.codec import encode
from tilewright.base.unused import unused_in
from tilewright.hardware.core import Core
from tilewright.mapping.constraints import MappingConstraints
from tilewright.mapping.dataflows import constraints_on_core
from tilewright.multicore.scheduling.core_costs import CoreCostRow
from tilewright.pipeline.stages.descriptions import Descriptions
from tilewright.pipeline.stages.multi.core_mapping import map_core
from tilewright.pipeline.stages.multi.items import read_system_problem
from tilewright.pipeline.stages.multi.node_waiting import node_waiting, without_calls_and_commands
from tilewright.pipeline.stages.run import map_layer

from tests.unit.pipeline.stages.multi.core_cases import ANY, OPTIONS, core, cut, memory, system
from tests.unit.pipeline.stages.multi.test_core_mapping import matrix_product, separate

CONFIG = Path(__file__).parents[5] / "config"


def keyed(one: Core, keys: Mapping[str, float], dimensions: tuple[str, ...] = ("C",)) -> Core:
    """The core with the given keys of calls and commands."""
    calls = {name: value for name, value in keys.items() if name.startswith("call")}
    commands = {name: value for name, value in keys.items() if name not in calls}
    array = replace(
        one.operational_array,
        figures=tuple(sorted(commands.items())),
        command_dimensions=dimensions if commands else (),
    )
    return replace(one, figures=tuple(sorted(calls.items())), operational_array=array, waits=bool(keys))


def row_of(one: Core) -> CoreCostRow:
    """The row of the matrix product, 8 cycles on four multipliers, with all data on the core."""
    workload = matrix_product()
    (row,) = map_core(cut(workload), workload, ANY, system({"one": one}), "one", OPTIONS)
    return row


@pytest.mark.parametrize(
    ("keys", "waiting"),
    [
        ({"call_cycles": 23, "calls_in_flight": 1}, 23),
        ({"call_cycles": 23, "calls_in_flight": 2}, 23 - 9),
        ({"call_cycles": 23}, 23 - 9),
        ({"call_cycles": 5, "calls_in_flight": 2}, 0),
        ({"calls_in_flight": 1}, 0),
    ],
)
def test_a_node_is_one_call(keys: dict[str, float], waiting: int) -> None:
    """A node of 9 cycles waits for its call.

    With one call in flight, the whole call comes before the node. With more, the next call overlaps the run of a node.
    """
    bare, row = row_of(separate(256)), row_of(keyed(separate(256), keys))
    assert (bare.total1_cycles, row.total1_cycles, row.waiting_cycles) == (9, 9 + waiting, waiting)
    assert row.total0_cycles == bare.total0_cycles
    assert row.on_core_energy_pj == bare.on_core_energy_pj
    assert row.mapping == bare.mapping


@pytest.mark.parametrize(
    ("keys", "waiting"),
    [
        ({"command_iterations": 4, "command_latency_cycles": 3, "commands_in_flight": 1}, 2 * 3),
        ({"command_iterations": 3, "command_latency_cycles": 3, "commands_in_flight": 1}, 3 * 3),
        ({"command_iterations": 4, "command_latency_cycles": 3, "commands_in_flight": 2}, 0),
        ({"command_iterations": 4, "least_command_cycles": 6}, 2 * (6 - 4)),
    ],
)
def test_commands_cover_the_loops_of_a_node(keys: dict[str, float], waiting: int) -> None:
    """Eight iterations over C are split into commands of four or three, though no memory level ends there."""
    row = row_of(keyed(separate(256), keys))
    assert (row.total1_cycles, row.waiting_cycles) == (9 + waiting, waiting)


def test_calls_and_commands_add_up() -> None:
    """Two cycles for each of two commands, and 23 for the call of the node."""
    keys = {"command_iterations": 4, "command_latency_cycles": 2, "commands_in_flight": 1}
    keys |= {"call_cycles": 23, "calls_in_flight": 1}
    row = row_of(keyed(separate(256), keys))
    assert (row.total1_cycles, row.waiting_cycles) == (9 + 4 + 23, 27)


@pytest.mark.parametrize("dimensions", [(), ("C",), ("K",), ("K", "C")])
@pytest.mark.parametrize(("longest", "in_flight"), [(1, 1), (3, 1), (16, 2)])
def test_commands_are_those_of_one_core(dimensions: tuple[str, ...], longest: int, in_flight: int) -> None:
    """Commands add as many cycles as on one core, where one call runs all loops: the outermost memory has no loops."""
    registers = memory("registers", 16, ("O",), 16, served=())
    far = memory("far", 2**20, ("I1", "I2", "O"), 1024)
    bare = core(registers, memory("weights", 4096, ("I2",)), memory("rest", 4096, ("I1", "O")), far, lanes=2)
    keys = {"command_iterations": longest, "command_latency_cycles": 5.5, "commands_in_flight": in_flight}
    one = keyed(bare, keys, dimensions)
    (shape,) = cut(matrix_product()).shapes
    record = map_layer(shape, one, constraints_on_core(MappingConstraints(""), shape, one)[0], OPTIONS)
    assert all(not levels[-1] for levels in record.temporal_mapping.values())
    waited = record.latency_breakdown_cycles["command_waiting"]
    without = replace(record, latency_cycles=record.latency_cycles - waited)
    assert node_waiting(one).command_cycles(without) == waited
    assert waited > 0 or in_flight == 2


def test_files_without_the_keys_give_the_same_rows() -> None:
    """The core without the keys is the same object, and the row has no field for waiting."""
    bare = separate(256)
    assert without_calls_and_commands(bare) is bare
    assert "waiting_cycles" not in encode(row_of(bare))


def test_the_search_does_not_know_calls_and_commands() -> None:
    """The core that is searched has none of the keys, and `waits` is true only if a memory has requests."""
    one = keyed(separate(256), {"call_cycles": 3, "command_iterations": 4, "least_command_cycles": 6})
    assert without_calls_and_commands(one) == separate(256)
    rest = replace(one.memories[-1], figures=(("request_latency_cycles", 9.0),))
    assert without_calls_and_commands(replace(one, memories=(*one.memories[:-1], rest))).waits


def test_keys_without_effect_on_several_cores_are_told(tmp_path: Path) -> None:
    """Notices name the core file for two keys without effect: the host's time before a layer, and places in the
    queue.
    """
    hardware = tmp_path / "hw"
    shutil.copytree(CONFIG / "hardware" / "multi", hardware)
    file = hardware / "cores" / "k16_c16.yaml"
    document = yaml.safe_load(file.read_text())
    document |= {"start_cycles": 40, "call_cycles": 5, "calls_in_flight": 2}
    document["operational_array"] |= {"command_iterations": 16, "queued_commands": 4}
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    workload, mapping = CONFIG / "workload" / "resnet18.onnx", CONFIG / "mapping" / "multi" / "quad_core.yaml"
    read = read_system_problem(Descriptions(hardware / "quad_core.yaml", workload, mapping))
    told = [one.problem for one in unused_in(read.notices)]
    assert [(one.path, one.value) for one in told] == [("queued_commands", "4"), ("start_cycles", "40")]
    assert {one.file for one in told} == {"k16_c16"}
    assert all("several cores" in one.message for one in told)
