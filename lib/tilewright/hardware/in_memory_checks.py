"""Checks of a core file whose array computes in memory, and of keys that only such arrays have."""

from collections.abc import Mapping

from tilewright.errors import WRITTEN, Problems, nearest_name
from tilewright.hardware.system import CELLS
from tilewright.hardware.yaml_schema import ArrayEntry, MemoryEntry
from tilewright.validation import names_of

IN_MEMORY_KEYS = ("imc_type", "adc_resolution", "bit_serial_precision")
"""What only arrays that compute in memory have."""
_POWERS_OF_TWO = "1, 2, 4, 8, ..."


def check_in_memory(
    problems: Problems, array: ArrayEntry, memories: Mapping[str, MemoryEntry | None], is_computing: bool
) -> None:
    """Record what is wrong with an in-memory array and its cells, or that another array has keys of such ones."""
    place = problems.within("operational_array")
    if not array.is_imc:
        for key in IN_MEMORY_KEYS:
            if getattr(array, key):
                place.at(
                    (key,), "only in-memory arrays have it, those with `is_imc: true`", WRITTEN, "leave the key out"
                )
        is_misspelt = any(one.nearest == "unit_energy" for one in place.found)
        if is_computing and array.unit_energy is None and not place.has("unit_energy") and not is_misspelt:
            place.at(("unit_energy",), "required key is missing")
        return
    _check_kind(place, array)
    _check_precisions(place, array)
    _check_sides(place, array)
    _check_cells(problems.within("memories"), array, memories)
    for key in ("unit_energy", "unit_area"):
        if getattr(array, key):
            place.notice((key,), "not used: an in-memory array has a model of its circuits")


def _check_kind(problems: Problems, array: ArrayEntry) -> None:
    if array.imc_type is None and not problems.has("imc_type"):
        problems.at(("imc_type",), "required key is missing: an in-memory array is one of", allowed="analog, digital")
    if array.imc_type == "digital" and array.adc_resolution:
        problems.at(
            ("adc_resolution",), "a digital in-memory array converts nothing", WRITTEN, "0, or leave the key out"
        )
    if array.imc_type == "analog" and not array.adc_resolution and not problems.has("adc_resolution"):
        problems.notice(("adc_resolution",), "not given, or 0: the analog array has no converters, at no cost")


def _check_precisions(problems: Problems, array: ArrayEntry) -> None:
    if array.input_precision is None and not problems.has("input_precision"):
        told = "required key is missing: an in-memory array is built for widths"
        problems.at(("input_precision",), told, allowed="[activation bits, weight bits]")
    if array.bit_serial_precision is None and not problems.has("bit_serial_precision"):
        told = "required key is missing: input bits that come at a time"
        problems.at(("bit_serial_precision",), told, allowed=_POWERS_OF_TWO)
    for index, bits in enumerate(array.input_precision or ()):
        if bits is not None and not _is_power_of_two(bits):
            problems.at(("input_precision", index), "must be a power of two", bits, _POWERS_OF_TWO)
    serial, activations = array.bit_serial_precision, array.input_precision[0] if array.input_precision else None
    if serial is None:
        return
    if not _is_power_of_two(serial):
        problems.at(("bit_serial_precision",), "must be a power of two", WRITTEN, _POWERS_OF_TWO)
    elif activations is not None and serial > activations:
        told = f"more bits at a time than an activation has ({activations})"
        problems.at(("bit_serial_precision",), told, WRITTEN, f"up to {activations}")


def _check_sides(problems: Problems, array: ArrayEntry) -> None:
    names = names_of(array.dimensions)
    if array.dimensions and len(names) == len(array.dimensions) < 2:
        told = "an in-memory array has two dimensions or more: word lines, bit lines, then banks"
        problems.at(("dimensions",), told, WRITTEN, "[D1, D2]")
        return
    if array.imc_type != "digital" or array.sizes is None or len(array.sizes) != len(names):
        return
    index = names.index(sorted(names)[1]) if len(names) > 1 else 0
    rows = array.sizes[index]
    if rows is not None and not _is_power_of_two(rows):
        told = f"adder trees of a digital in-memory array need a power of two along {names[index]}, its bit lines"
        problems.at(("sizes", index), told, rows, _POWERS_OF_TWO)


def _check_cells(problems: Problems, array: ArrayEntry, memories: Mapping[str, MemoryEntry | None]) -> None:
    if CELLS not in memories:
        told = f"an in-memory array needs the memory '{CELLS}', which holds I2 at each crossing of lines"
        problems.at((), told, nearest=nearest_name(CELLS, list(memories)))
        return
    cells = memories[CELLS]
    if cells is None:
        return
    if cells.operands and [name for name in cells.operands if name is not None] != ["I2"]:
        problems.at((CELLS, "operands"), "cells of an in-memory array hold weights alone", WRITTEN, "[I2]")
    if cells.served_dimensions:
        told = "there is a cell at each crossing of word lines and bit lines"
        problems.at((CELLS, "served_dimensions"), told, WRITTEN, "[]")
    for key in ("cost", "auto_cost_extraction"):
        if getattr(cells, key):
            told = "cells are no memory of the library of costs: give r_cost, w_cost and area"
            problems.at((CELLS, key), told, WRITTEN, "leave the key out")
    weights = array.input_precision[-1] if array.input_precision else None
    if cells.size and weights and cells.size % weights:
        told = f"cells hold whole weights of {weights} bits (input_precision)"
        problems.at((CELLS, "size"), told, WRITTEN, f"{weights}, {2 * weights}, ...")


def _is_power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0
