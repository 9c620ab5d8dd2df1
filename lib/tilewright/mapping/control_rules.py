"""Rules of the control of a core (docs/model/control.md) that apply before loop orders are searched.

The rules say which loops the array can unroll, and which memories can be the topmost memory of an operand. Some kinds
of runs refuse hardware files with such rules.
"""

from collections.abc import Iterable

from tilewright.base.errors import InputError, Problem
from tilewright.base.profile import ModelProfile
from tilewright.hardware.core import ORDERED, TILED, UNROLLED, Core, Memory
from tilewright.workload.layer import Layer
from tilewright.workload.relevancy import operand_relevancy


def control_keys(core: Core) -> tuple[str, ...]:
    """Keys of the hardware file that give rules: of the array first, then of the memories."""
    found = [f"operational_array.{UNROLLED}"] if core.operational_array.unrolled_dimensions else []
    for memory in core.memories:
        found += [f"memories.{memory.name}.{TILED}"] if memory.tile_dimensions is not None else []
        found += [f"memories.{memory.name}.{ORDERED}"] if memory.loop_order else []
    return tuple(found)


def refuse_control(cores: Iterable[Core], flow: str) -> None:
    """Raise InputError if the hardware file of a core has rules of the core's control. The function is for kinds of
    runs that do not obey the rules. `flow` names the kind of run, as the subject of a sentence.
    """
    problems = [
        Problem(
            f"{flow} does not obey rules of the control",
            core.name,
            path=key,
            allowed="leave the key out, or use the command map, evaluate or explore",
        )
        for core in cores
        for key in control_keys(core)
    ]
    if problems:
        raise InputError(problems)


def can_unroll(core: Core, side: str, dimension: str) -> bool:
    """True if the array can unroll a loop dimension along the array dimension `side`."""
    can = dict(core.operational_array.unrolled_dimensions).get(side)
    return can is None or dimension in can


def unrolling_fault(core: Core, side: str, factors: Iterable[tuple[str, int]]) -> str:
    """Message that names the loops of `factors` that the array cannot unroll along the array dimension `side`; '' if it
    can unroll all of them. A factor of 1 unrolls nothing.
    """
    wrong = [dimension for dimension, factor in factors if factor > 1 and not can_unroll(core, side, dimension)]
    if not wrong:
        return ""
    can = ", ".join(dict(core.operational_array.unrolled_dimensions)[side]) or "nothing"
    return (
        f"core '{core.name}' cannot unroll {', '.join(wrong)} along {side}: {UNROLLED} of the hardware file allow {can}"
    )


def can_hold_whole(memory: Memory, layer: Layer, operand: str, profile: ModelProfile) -> bool:
    """True if a memory can be the topmost memory of an operand: its control can run all loops that step through the
    data of the operand (`tile_dimensions` of the hardware file).
    """
    can = memory.tile_dimensions
    reused = operand_relevancy(layer, operand, profile).irrelevant
    return can is None or all(d in can or d in reused or size == 1 for d, size in layer.loop_sizes)
