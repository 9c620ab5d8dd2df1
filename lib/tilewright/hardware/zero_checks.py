"""Checks of the keys for zeros, `zero_gating` and `run_length` (docs/model/zeros.md): each key must have an effect.

Invalid fields are None in the checked tree, and are reported elsewhere.
"""

from tilewright.base.errors import WRITTEN, Problems
from tilewright.base.validation import TableModel, whole
from tilewright.hardware.attributes import REQUEST_LATENCY
from tilewright.hardware.waiting_checks import LEAVE_OUT
from tilewright.hardware.yaml_schema import ArrayEntry, HardwareFile, MemoryEntry

RUN_LENGTH, ZERO_GATING = "run_length", "zero_gating"
"""Keys of the hardware file: compression of the data in a memory, and gating of the array."""


def check_zeros(problems: Problems, entry: HardwareFile, *, is_alone: bool = True) -> None:
    """Report each key for zeros that has no effect, or that the cost model does not support.

    If `is_alone` is false, the core is one of several cores. Runs on several cores do not model zeros, so every key is
    reported.
    """
    if entry.operational_array is not None:
        _check_gating(problems.within("operational_array"), entry.operational_array, is_alone)
    for name, memory in (entry.memories or {}).items():
        if memory is not None:
            _check_code(problems.within("memories", name), memory, is_alone)


def _is_refused(problems: Problems, entry: TableModel, key: str, is_alone: bool) -> bool:
    """True if a table has the key although the core is one of several cores. Such a key is reported."""
    if getattr(entry, key) is not None and not is_alone:
        message = "zeros are modelled only on a single core; this file describes one of several cores"
        problems.at((key,), message, None, LEAVE_OUT)
    return getattr(entry, key) is not None and not is_alone


def _check_gating(problems: Problems, array: ArrayEntry, is_alone: bool) -> None:
    gating = array.zero_gating
    if gating is None or _is_refused(problems, array, ZERO_GATING, is_alone):
        return
    if array.is_imc:
        message = "has no effect on an in-memory array, whose circuits compute with all elements at once"
        problems.at((ZERO_GATING,), message, None, LEAVE_OUT)
    place = problems.within(ZERO_GATING)
    for key in ("operands", "reads_of"):
        place.repeated((key,), getattr(gating, key) or (), "is listed twice")
    stopping = whole(gating.operands)
    for index, operand in enumerate(gating.reads_of or ()):
        if operand is not None and not set(stopping) - {operand}:
            message = "has no effect: only a zero of another operand stops a read, and `operands` has no other operand"
            place.at(("reads_of", index), message, WRITTEN, LEAVE_OUT)


def _check_code(problems: Problems, memory: MemoryEntry, is_alone: bool) -> None:
    code = memory.run_length
    if code is None or _is_refused(problems, memory, RUN_LENGTH, is_alone):
        return
    place = problems.within(RUN_LENGTH)
    place.repeated(("operands",), code.operands or (), "is listed twice")
    held = whole(memory.operands)
    for index, operand in enumerate(code.operands or ()):
        if operand is not None and operand not in held:
            place.at(("operands", index), "the memory does not hold this operand", operand, ", ".join(held))
    if code.run_bits is not None and code.pairs is not None and code.word is not None:
        least = code.pairs * (code.run_bits + 1)
        if code.word < least:
            message = f"has no room for {code.pairs} pairs of {code.run_bits} bits for zeros and 1 bit for an element"
            place.at(("word",), message, WRITTEN, f"{least} bits or more")
    if getattr(memory, REQUEST_LATENCY.key, None):
        message = f"cannot be combined with `{REQUEST_LATENCY.key}`: requests count the bits of plain data"
        place.at((), message, None, "one of the two keys")
