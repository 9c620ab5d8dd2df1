"""Layers whose numbers are wider than those that an in-memory array is built for: it costs what its own width costs."""

from collections.abc import Iterable

from tilewright.errors import Problems, count_of, some_of
from tilewright.hardware.core import DIGITAL, Core
from tilewright.hardware.system import IN_CELLS
from tilewright.mapping.constraints import Mapping
from tilewright.mapping.element_fit import hardware_document
from tilewright.workload.layer import Layer

ACTIVATIONS, WEIGHTS = "activations", "weights"


def array_width_notices(layers: Iterable[Layer], core: Core, mapping: Mapping, source: object) -> list[str]:
    """A notice for each width that is exceeded, with the layers, on its line of the file of the core.

    zigzag-dse has the cycles and the energy of the array's own width there, and so have all models here. `source` is
    what the core was read from.
    """
    array = core.operational_array
    if array.kind == DIGITAL:
        return []
    built = dict(array.parameters)
    most = {ACTIVATIONS: int(built["activation_bits"]), WEIGHTS: int(built["weight_bits"])}
    hit: dict[tuple[str, int], list[str]] = {}
    for layer in layers:
        link = dict(mapping.constraints_for(layer).memory_operand_links)
        for operand in layer.input_operands:
            role = WEIGHTS if link.get(operand) == IN_CELLS else ACTIVATIONS
            if layer.bits_of[operand] > most[role]:
                hit.setdefault((role, layer.bits_of[operand]), []).append(layer.name)
    if not hit:
        return []
    problems = Problems(hardware_document(source, core))
    for (role, bits), names in hit.items():
        where = f"{count_of(len(names), 'layer')}: {some_of(names)}"
        told = f"energy and cycles are those of {role} of {most[role]} bits, and {role} have {bits} (in {where})"
        problems.notice(("operational_array", "input_precision"), told)
    return problems.notices
