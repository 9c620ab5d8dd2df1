"""Notices about a mapping file for a core and a network: idle units, operands too wide for the array, and memories
that are too small."""

import math
from collections.abc import Iterable, Iterator
from pathlib import Path

from tilewright.base.artifacts.envelope import is_artifact
from tilewright.base.artifacts.files import file_of
from tilewright.base.errors import InputError, Problem, Problems, count_of, some_of
from tilewright.base.yamlfile import YamlDocument, load_yaml
from tilewright.hardware.attributes import UNIT_ENERGY_BITS, figure
from tilewright.hardware.core import Core
from tilewright.hardware.system import IN_CELLS
from tilewright.mapping.constraints import Mapping
from tilewright.mapping.runnable import can_run
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.layer import FINAL_OUTPUT, OUTPUT, Layer

TooSmall = tuple[str, str, int]
"""Triple (memory, layer operand, bits of one element)."""


def too_small_memories(layer: Layer, core: Core, mapping: Mapping) -> list[TooSmall]:
    """Memories of a core that are smaller than one element of an operand of the layer."""
    link = dict(mapping.constraints_for(layer).memory_operand_links)
    found = []
    for operand in layer.operands:
        bits = layer.bits_of[operand]
        if operand == OUTPUT:
            bits = min(bits, layer.bits_of[FINAL_OUTPUT])
        holders = [memory for memory in core.memories if link.get(operand) in memory.operands]
        found += [(memory.name, operand, bits) for memory in holders if bits > memory.size_bits]
    return found


def element_fit_problems(layers: Iterable[Layer], core: Core, mapping: Mapping, source: object) -> list[Problem]:
    """Problems of memories that are too small for one element of an operand.

    Each problem names the layers concerned and the line in the file of the core. `source` is the source from which the
    core was read. If the source is no file, or is an artifact, problems have no line numbers.
    """
    elements: dict[str, dict[str, None]] = {}
    hit: dict[str, dict[str, None]] = {}
    for layer in layers:
        for memory, operand, bits in too_small_memories(layer, core, mapping):
            elements.setdefault(memory, {})[f"of {operand} has {bits:,}"] = None
            hit.setdefault(memory, {})[layer.name] = None
    problems = Problems(hardware_document(source, core))
    sizes = {memory.name: count_of(memory.size_bits, "bit") for memory in core.memories}
    for memory, names in hit.items():
        where = f"{count_of(len(names), 'layer')}: {some_of(list(names))}"
        message = f"holds {sizes[memory]}, but one element {', '.join(elements[memory])} (in {where})"
        problems.at(("memories", memory, "size"), message)
    return problems.found


def hardware_document(source: object, core: Core) -> YamlDocument:
    """Document from which a core was read. If the source is an artifact or not a readable file, the document is empty
    and has no line numbers.
    """
    file = file_of(source)
    if file and not is_artifact(Path(file)):
        try:
            return load_yaml(file)
        except InputError:
            pass
    return YamlDocument(file or core.name, {})


ACTIVATIONS, WEIGHTS = "activations", "weights"


def array_width_notices(layers: Iterable[Layer], core: Core, mapping: Mapping, source: object) -> list[str]:
    """Notices of operands that are wider than the numbers for which an in-memory array is built. For any other array,
    the result is that of `unit_energy_notices`. Each notice names the layers and the line in the core's file.

    For operands that are too wide, zigzag-dse and all model profiles compute cycles and energy with the number of bits
    of the array. `source` is the source from which the core was read.
    """
    array = core.operational_array
    if not array.is_in_memory:
        return unit_energy_notices(layers, core, source)
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
        told = (
            f"energy and cycles are computed for {role} of {most[role]} bits, but {role} have {bits} bits (in {where})"
        )
        problems.notice(("operational_array", "input_precision"), told)
    return problems.notices


def unit_energy_notices_of_cores(nodes: Iterable[WorkloadNode], cores: Iterable[Core], source: object) -> list[str]:
    """Notices of `unit_energy_notices` for the layers that each core can run. Of several cores with the same name, only
    one core counts. `source` is the source from which the cores were read.
    """
    known = list(nodes)
    found: list[str] = []
    for core in {core.name: core for core in cores}.values():
        layers = [node.layer for node in known if node.layer is not None and can_run(core, node)]
        found += unit_energy_notices(layers, core, source)
    return found


def unit_energy_notices(layers: Iterable[Layer], core: Core, source: object) -> list[str]:
    """List with one notice if inputs of some layers have other widths than `unit_energy_bits`, the width for which
    `unit_energy` holds. The list is empty if there are no such layers, or if the file does not give the width.

    The cost model takes the same energy for each operation, whatever the widths are. `source` is the source from which
    the core was read.
    """
    bits = int(figure(UNIT_ENERGY_BITS, core.operational_array.figures))
    hit: dict[str, None] = {}
    others: dict[str, dict[int, None]] = {}
    for layer in layers:
        for operand in layer.input_operands:
            if bits and layer.bits_of[operand] != bits:
                others.setdefault(operand, {})[layer.bits_of[operand]] = None
                hit[layer.name] = None
    if not hit:
        return []
    widths = ", ".join(f"{operand} {'/'.join(map(str, sorted(others[operand])))}" for operand in sorted(others))
    where = f"{count_of(len(hit), 'layer')}: {some_of(list(hit))}"
    told = (
        f"the energy of an operation is given for numbers of {bits} bits, and is used without scaling for inputs of"
        f" other widths ({widths}; in {where})"
    )
    problems = Problems(hardware_document(source, core))
    problems.notice(("operational_array", "unit_energy"), told)
    return problems.notices


def note_idle_units(problems: Problems, mapping: Mapping, core: Core, workload: Workload | None = None) -> None:
    """Add a notice for each array dimension on which some units never work. On this dimension, every entry fixes the
    lanes, but no entry uses all units. The notice has the line of the entry with the most lanes.

    `problems` belongs to the document of the mapping. If a network is given, only the entries that apply to its layers
    are considered.
    """
    whose = "no entry of this file" if workload is None else f"no entry for the layers of {workload.name}"
    for side, place, lanes in _idle_sides(mapping, core, _places(mapping, workload)):
        units = core.operational_array.size_of[side]
        message = (
            f"{whose} uses more than {lanes} of the {units} units of {side} of core {core.name}: the other"
            " units never work"
        )
        problems.notice((place, "spatial_mapping", side), message)


def _places(mapping: Mapping, workload: Workload | None) -> list[int]:
    place_of = {id(entry): place for place, entry in enumerate(mapping.entries)}
    if workload is None:
        return list(place_of.values())
    layers = (node.layer for node in workload.nodes if node.layer is not None)
    return sorted({place_of[id(mapping.constraints_for(layer))] for layer in layers})


def _idle_sides(mapping: Mapping, core: Core, places: Iterable[int]) -> Iterator[tuple[str, int, int]]:
    """Array dimensions on which all entries in `places` fix the lanes, but none uses all units. The result has triples
    (array dimension, index of the entry with the most lanes on this dimension, number of these lanes). `places` has
    indices of mapping entries.
    """
    entries = [(place, dict(mapping.entries[place].spatial_mapping)) for place in places]
    for side, units in core.operational_array.dimensions:
        lanes = [(math.prod(n for _, n in fixed[side]), place) for place, fixed in entries if side in fixed]
        if lanes and len(lanes) == len(entries):
            most = max(count for count, _ in lanes)
            if most < units:
                yield side, next(place for count, place in lanes if count == most), most
