"""Memories that cannot hold a single element of an operand that layers keep there: no mapping of those layers fits."""

from collections.abc import Iterable
from pathlib import Path

from tilewright.artifacts.envelope import is_artifact
from tilewright.artifacts.files import file_of
from tilewright.errors import InputError, Problem, Problems, count_of, some_of
from tilewright.hardware.core import Core
from tilewright.mapping.constraints import Mapping
from tilewright.workload.layer import FINAL_OUTPUT, OUTPUT, Layer
from tilewright.yamlfile import YamlDocument, load_yaml

TooSmall = tuple[str, str, int]
"""(memory, layer operand, bits of one element)."""


def too_small_memories(layer: Layer, core: Core, mapping: Mapping) -> list[TooSmall]:
    """The memories of a core that have no room for one element of an operand of the layer."""
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
    """A problem for each such memory, with the layers that it hits, on its line in the file of the core.

    `source` is what the core was read from: problems have lines where that is a file that a person wrote.
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
        message = f"holds {sizes[memory]}, and one element {', '.join(elements[memory])} (in {where})"
        problems.at(("memories", memory, "size"), message)
    return problems.found


def hardware_document(source: object, core: Core) -> YamlDocument:
    """The file that a core was read from, for lines; without lines if a person did not write it."""
    file = file_of(source)
    if file and not is_artifact(Path(file)):
        try:
            return load_yaml(file)
        except InputError:
            pass
    return YamlDocument(file or core.name, {})
