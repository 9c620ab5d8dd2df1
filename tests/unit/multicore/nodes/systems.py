"""Accelerators of several cores for the tests of tilings and splits."""

from dataclasses import replace
from pathlib import Path

from tilewright.hardware.core import Core
from tilewright.hardware.source import parse_accelerator
from tilewright.hardware.system import MultiCoreAccelerator

CONFIG = Path(__file__).resolve().parents[4] / "config"
QUAD_CORE = CONFIG / "hardware" / "multi" / "quad_core.yaml"


def quad_core(**weight_bits: int) -> MultiCoreAccelerator:
    """Four equal cores (0 to 3), a pooling core (4), a vector unit (5) and off-chip memory (6).

    `core_0=1000` gives core 0 a memory of 1000 bits for weights. `all_cores=1000` does so for every core that has such
    a memory.
    """
    accelerator = parse_accelerator(QUAD_CORE)
    assert isinstance(accelerator, MultiCoreAccelerator)
    sizes = {core_id: weight_bits.get(f"core_{core_id}", weight_bits.get("all_cores", 0)) for core_id in range(4)}
    cores = tuple(
        _with_weight_memory(core, sizes[core_id]) if sizes.get(core_id) else core
        for core_id, core in zip(accelerator.core_ids, accelerator.cores, strict=True)
    )
    return replace(accelerator, cores=cores)


def _with_weight_memory(core: Core, bits: int) -> Core:
    memories = tuple(
        replace(memory, size_bits=bits) if memory.name == "sram_weight" else memory for memory in core.memories
    )
    return replace(core, memories=memories)
