"""Options for ONNX files in a configuration (sizes, branches, precisions), as command-line arguments."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from tilewright.base.errors import InputError, nearest_name
from tilewright.base.units import LARGEST_WHOLE_NUMBER
from tilewright.cli.config_files import Note
from tilewright.workload.network_options import BRANCHES, PRECISIONS, NetworkOptions

NETWORK_KEYS = ("dims", "input_shapes", "branches", "precision", "bits", "zeros")
"""Configuration keys that hold options for ONNX files. The value of each key is a table with one entry per workload.
An entry is a table of sizes, shapes, branches, bits or shares of zeros, or the name of a precision.
"""


def network_arguments(config: Mapping[str, Any], workloads: Sequence[str], note: Note) -> dict[str, tuple[str, ...]]:
    """Command-line arguments with the network options, by workload name. Problems are reported by calls of `note`."""
    found: dict[str, list[str]] = {}
    for key in NETWORK_KEYS:
        table = config.get(key) or {}
        if not isinstance(table, Mapping):
            note("must be a table of keys", (key,), value=repr(table)[:40])
            continue
        for workload, said in table.items():
            path = (key, str(workload))
            if workload not in workloads:
                note("no run has this workload", path, nearest=nearest_name(str(workload), list(workloads)))
            found.setdefault(str(workload), []).extend(_ARGUMENTS[key](said, path, note))
    return {workload: tuple(arguments) for workload, arguments in found.items()}


def _dims(table: Any, path: tuple[str, ...], note: Note) -> Iterator[str]:
    for name, size in _items(table, path, note):
        if _is_size(size):
            yield f"--dim={name}={size}"
        else:
            note("must be a whole number from 0 to 2^53", (*path, str(name)), value=_short(size))


def _input_shapes(table: Any, path: tuple[str, ...], note: Note) -> Iterator[str]:
    for name, sizes in _items(table, path, note):
        if isinstance(sizes, list) and sizes and all(_is_size(size) for size in sizes):
            yield f"--input-shape={name}={','.join(map(str, sizes))}"
        else:
            allowed = "[1, 3, 224, 224]"
            note("must be a list of whole numbers from 0 to 2^53", (*path, str(name)), _short(sizes), allowed)


def _branches(table: Any, path: tuple[str, ...], note: Note) -> Iterator[str]:
    for name, branch in _items(table, path, note):
        if branch in BRANCHES:
            yield f"--branch={name}={branch}"
        else:
            note("unknown branch", (*path, str(name)), _short(branch), ", ".join(BRANCHES))


def _precision(name: Any, path: tuple[str, ...], note: Note) -> Iterator[str]:
    if name in PRECISIONS:
        yield f"--precision={name}"
    else:
        note("unknown precision", path, _short(name), ", ".join(PRECISIONS), nearest_name(str(name), PRECISIONS))


def _by_operand(option: str, table: Any, path: tuple[str, ...], note: Note) -> Iterator[str]:
    """Arguments of an option that has a value for each operand: `bits` or `zeros`."""
    for name, value in _items(table, path, note):
        given: dict[str, Any] = {option: ((str(name), value),)}
        try:
            NetworkOptions(**given).check()
        except InputError as error:
            for problem in error.problems:
                note(problem.message, (*path, str(name)), problem.value, problem.allowed, problem.nearest)
        else:
            yield f"--{option}={name}={value!r}"


_ARGUMENTS: dict[str, Callable[[Any, tuple[str, ...], Note], Iterator[str]]] = {
    "dims": _dims,
    "input_shapes": _input_shapes,
    "branches": _branches,
    "precision": _precision,
    "bits": partial(_by_operand, "bits"),
    "zeros": partial(_by_operand, "zeros"),
}


def _items(table: Any, path: tuple[str, ...], note: Note) -> Iterator[tuple[Any, Any]]:
    if isinstance(table, Mapping):
        yield from table.items()
    else:
        note("must be a table of keys", path, value=_short(table))


def _is_size(size: Any) -> bool:
    return isinstance(size, int) and not isinstance(size, bool) and 0 <= size <= LARGEST_WHOLE_NUMBER


def _short(value: Any) -> str:
    # Python refuses to convert very long numbers to text.
    return "more" if isinstance(value, int) and not isinstance(value, bool) and value >= 2**63 else repr(value)[:60]
