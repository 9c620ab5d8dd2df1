"""Keys of a hardware file that use shares of zeros: notices where they have no effect, and errors for runs that do not
support them."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from tilewright.base.errors import InputError, Problem, Unused
from tilewright.hardware.core import Core
from tilewright.hardware.zero_checks import RUN_LENGTH, ZERO_GATING
from tilewright.workload.layer import FINAL_OUTPUT, OUTPUT, Layer

ZEROS = "zeros"
"""Key of workload files, and option for ONNX files, with shares of zeros."""


def zero_keys(core: Core) -> tuple[str, ...]:
    """Keys of the hardware file that use shares of zeros. The key of the array comes first, then those of memories."""
    found = [f"operational_array.{ZERO_GATING}"] if core.operational_array.zero_gating else []
    found += [f"memories.{memory.name}.{RUN_LENGTH}" for memory in core.memories if memory.run_length]
    return tuple(found)


def refuse_zeros(cores: Iterable[Core], flow: str) -> None:
    """Raise InputError if the hardware file of a core has keys that use shares of zeros. The function is for kinds of
    runs that do not model zeros. `flow` names the kind of run, as the subject of a sentence.
    """
    problems = [
        Problem(
            f"{flow} does not model zeros",
            core.name,
            path=key,
            allowed="leave the key out, or use the command map, evaluate or explore",
        )
        for core in cores
        for key in zero_keys(core)
    ]
    if problems:
        raise InputError(problems)


def note_unused_zeros(
    layers: Sequence[Layer], core: Core, links: Callable[[Layer], Mapping[str, str]], files: tuple[str, str]
) -> list[Unused]:
    """Notices about two kinds of unused input: shares of zeros that no key of the hardware file uses, and keys of the
    hardware file for which no layer gives a share of zeros.

    `links` gives the memory operand of each operand of a layer. `files` are the hardware file and the workload file.
    """
    hardware_file, workload_file = files
    read: dict[str, set[str]] = {key: set() for key in zero_keys(core)}
    given: dict[str, set[str]] = {}
    for layer in layers:
        link, shares = links(layer), layer.zeros_of
        for operand in layer.operands:
            key = FINAL_OUTPUT if operand == OUTPUT else operand
            if key not in shares:
                continue
            used = [name for name, operands in _operands_of_keys(core) if link.get(operand) in operands]
            for name in used:
                read[name].add(str(link.get(operand)))
            given.setdefault(key, set()).add("used" if used else "unused")
    found = [
        Unused(Problem(f"has no effect: no key of the hardware file uses the zeros of {key}", workload_file, 0, ZEROS))
        for key, uses in given.items()
        if uses == {"unused"}
    ]
    for name, operands in _operands_of_keys(core):
        for operand in operands:
            if operand not in read[name]:
                why = f"has no effect on {operand}: no layer gives the share of its zeros"
                found.append(Unused(Problem(why, hardware_file, 0, name)))
    return found


def _operands_of_keys(core: Core) -> list[tuple[str, tuple[str, ...]]]:
    """Pairs (key of the hardware file, memory operands whose zeros the key reads)."""
    gating = core.operational_array.zero_gating
    codes = [memory.run_length.operands for memory in core.memories if memory.run_length]
    return list(zip(zero_keys(core), [*([gating.operands] if gating else []), *codes], strict=True))
