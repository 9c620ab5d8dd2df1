"""Checks of the control rules that a hardware file gives for a core (docs/model/control.md).

The keys are `unrolled_dimensions`, `tile_dimensions` and `loop_order`; each key must have an effect. Invalid fields are
None in the checked tree, and are reported elsewhere.
"""

from collections.abc import Iterator

from tilewright.base.errors import WRITTEN, Problems
from tilewright.base.validation import TableModel, names_of
from tilewright.hardware.core import MOST_ORDERS, ORDERED, TILED, UNROLLED
from tilewright.hardware.waiting_checks import LEAVE_OUT, check_loops
from tilewright.hardware.yaml_schema import HardwareFile


def check_control(problems: Problems, entry: HardwareFile, *, is_alone: bool = True) -> None:
    """Report each control rule that has no effect or contradicts the file.

    If `is_alone` is false, the core is one of several cores. Runs on several cores do not obey the rules, so every key
    is reported.
    """
    ordered = []
    for place, table, key in _tables(problems, entry):
        if getattr(table, key) is None:
            continue
        if not is_alone:
            message = "only runs on a single core obey rules of the control; this file describes one of several cores"
            place.at((key,), message, None, LEAVE_OUT)
        elif key == UNROLLED:
            _check_unrolled(place.within(UNROLLED), entry)
        else:
            check_loops(place, (key,), getattr(table, key))
            ordered += [place] if key == ORDERED else []
    for place in ordered[MOST_ORDERS:]:
        message = f"at most {MOST_ORDERS} memories can have a loop order, and {MOST_ORDERS} earlier memories have one"
        place.at((ORDERED,), message, None, LEAVE_OUT)


def _tables(problems: Problems, entry: HardwareFile) -> Iterator[tuple[Problems, TableModel, str]]:
    """Triples (problems, table, key): each table of the file that can have a rule, with the collector of its problems
    and the key of the rule."""
    if entry.operational_array is not None:
        yield problems.within("operational_array"), entry.operational_array, UNROLLED
    for name, memory in (entry.memories or {}).items():
        if memory is not None:
            for key in (TILED, ORDERED):
                yield problems.within("memories", name), memory, key


def _check_unrolled(problems: Problems, entry: HardwareFile) -> None:
    array = entry.operational_array
    known = names_of(array.dimensions)
    for side, loops in (array.unrolled_dimensions or {}).items():
        if known and side not in known:
            problems.unknown_name((side,), "no such array dimension", side, known)
        check_loops(problems, (side,), loops)
    if array.unrolled_dimensions == {}:
        problems.at((), "has no effect: it lists no array dimension", WRITTEN, LEAVE_OUT)
