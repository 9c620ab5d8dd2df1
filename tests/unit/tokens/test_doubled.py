"""Doubling a part equals doubling its number in the hardware file, and the schedule then saves the stated time."""

from typing import Any

from tilewright.hardware.system import MultiCoreAccelerator
from tilewright.pipeline.sources import parse_accelerator, parse_mapping
from tilewright.pipeline.stages.base import Control
from tilewright.search.options import CnSearchOptions
from tilewright.tokens.doubled import LINKS, SIZE, WIDTH, Doubled, combined, doubled_parts
from tilewright.tokens.layer_networks import layer_network
from tilewright.tokens.layer_schedules import LayerSchedules
from tilewright.tokens.strategies import TENSOR
from tilewright.workload.source import parse_workload

from tests.unit.tokens.test_system_tokens import one_core_system
from tests.unit.workload.language_models.models import TINY_LLAMA


def parsed(system: dict[str, Any]) -> MultiCoreAccelerator:
    """The system, parsed as an accelerator of several cores."""
    found = parse_accelerator(system)
    assert isinstance(found, MultiCoreAccelerator)
    return found


def parts_of(system: dict[str, Any]) -> dict[tuple[str, str], Doubled]:
    """(kind, name) -> part, for all parts of a system that can be doubled."""
    accelerator = parsed(system)
    return {(part.kind, part.name): part for part in doubled_parts(accelerator, accelerator.distinct_cores)}


def test_files_with_twice_the_number_say_the_same() -> None:
    """Doubling a part gives the system that is read from a file with the doubled number.

    The parts are the off-chip port, the size of a memory, and the ports of a memory.
    """
    parts = parts_of(one_core_system())
    wider, larger, ports = one_core_system(), one_core_system(), one_core_system()
    for port in wider["core_files"]["off"]["memories"]["dram"]["ports"]:
        port["bandwidth_max"] *= 2
    assert parts[WIDTH, "dram"].accelerator == parsed(wider)
    larger["core_files"]["core"]["memories"]["sram_2MB"]["size"] *= 2
    assert parts[SIZE, "core sram_2MB"].accelerator == parsed(larger)
    for port in ports["core_files"]["core"]["memories"]["sram_2MB"]["ports"]:
        port["bandwidth_max"] *= 2
    assert parts[WIDTH, "core sram_2MB"].accelerator == parsed(ports)
    assert (WIDTH, LINKS) not in parts  # there are none
    assert len(parts) == 1 + 2 * 3


def test_parts_that_are_doubled_together_are_those_of_one_file() -> None:
    """Parts that are doubled together equal one file with twice each number, in any order."""
    system, both = parsed(one_core_system()), one_core_system()
    parts = parts_of(one_core_system())
    chosen = [parts[WIDTH, "dram"], parts[WIDTH, "core sram_2MB"]]
    for core, memory in (("off", "dram"), ("core", "sram_2MB")):
        for port in both["core_files"][core]["memories"][memory]["ports"]:
            port["bandwidth_max"] *= 2
    for order in (chosen, chosen[::-1]):
        assert combined(system, order).accelerator == parsed(both)
    assert combined(system, chosen).name == "dram and core sram_2MB"
    assert combined(system, chosen).core_files == chosen[0].core_files | chosen[1].core_files


def test_links_between_cores_are_one_part() -> None:
    """The links between cores are one part, without the links to the off-chip memory."""
    accelerator = parse_accelerator("config/hardware/multi/quad_core.yaml")
    assert isinstance(accelerator, MultiCoreAccelerator)
    found = {part.name: part for part in doubled_parts(accelerator, ["k16_c16"]) if part.kind == WIDTH}
    widths = [link.bandwidth_bits_per_cycle for link in found[LINKS].accelerator.links]
    assert widths == [128] * (len(widths) - 1) + [64]
    assert [link.bandwidth_bits_per_cycle for link in found["dram"].accelerator.links] == [64] * (len(widths) - 1) + [
        128
    ]
    assert found["dram"].column == "saved_by_twice_the_width_of_dram"


def test_a_port_that_is_busy_all_the_time_saves_half() -> None:
    """Doubling the port of the off-chip memory saves almost half if weights come from there; no doubling makes a layer
    slower.
    """
    model = TINY_LLAMA | {"hidden_size": 512}
    workload = parse_workload({"language_model": model, "phase": "decode", "context": 7}, "corrected")
    node = next(node for node in workload.nodes if node.name == "layers/feedforward/down_proj")
    entry = parse_mapping([{"name": "default"}]).constraints_for(node.layer)  # type: ignore[arg-type]
    accelerator = parsed(one_core_system())
    parts = tuple(doubled_parts(accelerator, ["core"]))
    schedules = LayerSchedules(accelerator, CnSearchOptions(lpf_limit=3), Control(), parts)
    found = schedules.cost(layer_network(workload, node), entry, TENSOR, -1, ())
    by_name = dict(zip(((part.kind, part.name) for part in parts), found.doubled_latency_cycles, strict=True))
    assert found.latency_cycles > 512 * 64 * 8 / 64
    assert by_name[WIDTH, "dram"] < 0.6 * found.latency_cycles
    assert max(found.doubled_latency_cycles) <= found.latency_cycles
