"""Digests of the parts of an accelerator's files on which each step of the multi-core flow depends.

As parameters of rules they decide what reruns: an edited core reruns the cost table of that core, not those of others.
The Snakefile computes them at every parse: nothing heavier than YAML here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tilewright.artifacts.digests import input_digest, said_digest
from tilewright.errors import InputError
from tilewright.hardware.core_paths import (
    contained_cores,
    core_copies,
    core_file_names,
    core_files_of,
    core_ids_of,
    find_core_file,
)
from tilewright.yamlfile import YamlDocument, load_yaml, table

ROLE_IDS = ("pooling_core_id", "simd_core_id", "offchip_core_id")
"""Keys of a regular graph that give a core a role."""
GRAPH_KEYS_OF_CORE = ("type", "operator_types")
GRAPH_KEYS_OF_MEMORY = ("size", "operands", "served_dimensions", "force_double_buffering")
"""What of a core file the graph of computation nodes depends on: what the core can run, what its memories hold."""


@dataclass(frozen=True)
class SystemFiles:
    """What the file of an accelerator of several cores and its core files say, unchecked.

    A file that cannot be read says nothing here; the step that reads it says what is wrong.
    """

    file: Path
    data: Mapping[Any, Any]
    """Of the accelerator file."""
    name_of: Mapping[int, str]
    """Core id -> name of its core file, where that exists."""
    path_of: Mapping[str, Path]
    """Name of a core file -> path, in the order of core ids."""
    offchip_id: int | None
    """Id of the off-chip core, None if there is none."""
    contained: Mapping[str, Any] = field(default_factory=dict)
    """Name -> core description of cores that the accelerator file has in itself, which have no path."""

    @cached_property
    def core_names(self) -> tuple[str, ...]:
        """Names of the core files of all cores but the off-chip one, each once, in the order of core ids."""
        return tuple(dict.fromkeys(name for core_id, name in self.name_of.items() if core_id != self.offchip_id))

    @property
    def everything(self) -> list[str]:
        """Digests of all that the files say."""
        return [input_digest(self.file), *(f"{name} {input_digest(path)}" for name, path in self.path_of.items())]

    def of_core(self, name: str) -> str:
        """Digest of what one core file says."""
        if name in self.contained:
            return said_digest(self.contained[name])
        return input_digest(self.path_of[name]) if name in self.path_of else "missing"

    def of_cost_table(self, name: str) -> str:
        """Digest of what the cost table of one core file depends on: that file, which cores have it, what they are for
        and can run, and the off-chip memory, from which operands that are too large stream."""
        uses = [[core_id, *self._use(core_id)] for core_id, found in self.name_of.items() if found == name]
        offchip = self.name_of.get(self.offchip_id) if self.offchip_id is not None else None
        return said_digest([self.of_core(name), uses, self.of_core(offchip) if offchip else None])

    @cached_property
    def of_graph(self) -> str:
        """Digest of what the graph of computation nodes depends on: which cores there are, what they can run, and
        what their memories hold; neither links nor costs."""
        cores = [[core_id, name, self._use(core_id)] for core_id, name in self.name_of.items()]
        said = {name: _document_of(path).data for name, path in self.path_of.items()} | dict(self.contained)
        capacities = {name: _capacities(table(core)) for name, core in said.items()}
        return said_digest([cores, self.offchip_id, self.data.get("core_memory_sharing"), capacities])

    def _use(self, core_id: int) -> list[Any]:
        """What the accelerator file says that a core is for, and can run."""
        graph, core_id = table(self.data.get("graph")), core_copies(self.data).get(core_id, core_id)
        roles = [key for key in ROLE_IDS if graph.get(key) == core_id]
        said = (table(self.data.get(key)).get(core_id) for key in ("core_roles", "core_operator_types"))
        return [core_id == self.offchip_id, roles, *said]


def read_system(file: Path | str) -> SystemFiles:
    """What an accelerator file and its core files say. Never raises."""
    path = Path(file)
    document = _document_of(path)
    data = table(document.data)
    offchip, contained = core_ids_of(document).offchip, contained_cores(data)
    if contained is not None:
        known = {core_id: name for core_id, (_, name) in core_files_of(data).items() if name in contained}
        return SystemFiles(path, data, known, {}, offchip, contained)
    found = {core_id: find_core_file(name, path.parent) for core_id, (_, name) in core_files_of(data).items()}
    paths = {core_id: core_path for core_id, core_path in found.items() if core_path is not None}
    names = dict(zip(paths, core_file_names(list(paths.values())), strict=True))
    path_of = {names[core_id]: core_path for core_id, core_path in paths.items()}
    return SystemFiles(path, data, names, path_of, offchip)


def is_system(file: Path | str) -> bool | None:
    """Whether a hardware file is of an accelerator of several cores; None if it says nothing."""
    data = table(_document_of(Path(file)).data)
    return "cores" in data if data else None


def _capacities(core: Mapping[Any, Any]) -> list[Any]:
    memories = {
        name: [table(memory).get(key) for key in GRAPH_KEYS_OF_MEMORY]
        for name, memory in table(core.get("memories")).items()
    }
    # The step that makes the graph also checks which array dimensions a mapping file names.
    arrays = [table(core.get(key)).get("dimensions") for key in ("operational_array", "multipliers")]
    return [[core.get(key) for key in GRAPH_KEYS_OF_CORE], arrays, memories]


def _document_of(path: Path) -> YamlDocument:
    try:
        return load_yaml(path)
    except (InputError, OSError):
        return YamlDocument(str(path), {})
