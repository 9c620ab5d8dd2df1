"""Files that a configuration names: lookup of names and globs, and digests of the inputs of each step."""

import glob
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tilewright.base.artifacts.digests import input_digest, said_digest
from tilewright.base.errors import InputError, nearest_name
from tilewright.base.json_values import JsonObject
from tilewright.base.missing_files import nearest_file
from tilewright.base.yamlfile import YamlDocument, load_yaml, table
from tilewright.hardware.core_paths import (
    contained_cores,
    core_copies,
    core_file_names,
    core_files_of,
    core_ids_of,
    find_core_file,
)

DESCRIPTIONS: dict[str, tuple[str, ...]] = {
    "hardware": (".yaml", ".yml"),
    "workload": (".onnx", ".yaml", ".yml"),
    "mapping": (".yaml", ".yml"),
}
"""Suffixes of files, by kind of file. A name without suffix is looked up in config/<kind>/ with these suffixes, in this
order.
"""
SPACE = "space"
"""Kind of the files of design spaces."""
SUFFIXES = {**DESCRIPTIONS, SPACE: (".yaml", ".yml")}
"""Suffixes of all files that a configuration names, by kind."""


def find_file(kind: str, value: str) -> Path:
    """File that a run names.

    A path with a suffix is returned unchanged. A name without suffix is looked up by `files_named`. If there is no such
    file, the result is the path that the file would have in config/<kind>/.
    """
    if value.endswith(SUFFIXES[kind]):
        return Path(value)
    return next(iter(files_named(kind, value)), _in_folder(kind, value)[0])


def files_named(kind: str, value: str) -> list[Path]:
    """Files that a name without suffix can mean; [] if there is none. A name with several files is ambiguous.

    Three places are searched in turn. Later places are searched only if earlier places have no file.

    * The folder config/<kind>/. If several suffixes of the kind match, only the file with the first of them is
      returned.
    * The path `value` itself.
    * The subfolders of config/<kind>/, but not for a name with a slash. All files of this name are returned, sorted by
      path.
    """
    direct = next((path for path in (*_in_folder(kind, value), Path(value)) if path.is_file()), None)
    if direct is not None:
        return [direct]
    if "/" in value:
        return []
    names = {path.name for path in _in_folder(kind, value)}
    return sorted(path for path in Path("config", kind).rglob("*") if path.name in names and path.is_file())


def ambiguity(kind: str, value: str) -> str:
    """Message that a name can mean several files; '' if it means at most one file."""
    found = files_named(kind, value)
    names = " and ".join(map(str, found))
    return f"several {kind} files have this name, {names}: add the folder to the name" if len(found) > 1 else ""


def is_in_folder(kind: str, value: str) -> bool:
    """True if config/<kind>/ has a file with the name `value` and a suffix of the kind. Subfolders are not searched,
    but the name can begin with a subfolder.
    """
    return any(path.is_file() for path in _in_folder(kind, value))


def _in_folder(kind: str, value: str) -> list[Path]:
    return [Path("config") / kind / f"{value}{suffix}" for suffix in SUFFIXES[kind]]


def known_files(kind: str, value: str) -> tuple[Path, list[str]]:
    """Pair (folder in which a file was looked for, existing files of this kind there). If `value` has a suffix, the
    folder is that of the path `value`, and the files are given as paths. Otherwise, the folder is config/<kind>/, and
    the files are given as names without suffix.
    """
    if value.endswith(SUFFIXES[kind]):
        place = Path(value).parent
        files = place.glob("*") if place.is_dir() else []
        return place, sorted(str(path) for path in files if path.suffix in SUFFIXES[kind])
    place = Path("config") / kind
    files = (path for path in place.rglob("*") if path.suffix in SUFFIXES[kind])
    return place, sorted(path.relative_to(place).with_name(name_of(kind, path.name)).as_posix() for path in files)


def nearest_known(kind: str, value: str, known: Sequence[str]) -> str:
    """Suggestion for a name or path without a file.

    The suggestion is a file of the same name in another subfolder. If there is none, it is the known file with the most
    similar name. Names of files in subfolders are compared with and without the subfolder.
    """
    if value.endswith(SUFFIXES[kind]):
        return nearest_file(Path(value)) or nearest_name(value, known)
    # The name of a file in a subfolder includes the subfolder; users forget it easily, or remember an earlier one.
    last = value.rpartition("/")[2]
    same = next((name for name in known if name.rpartition("/")[2] == last), "")
    return same or nearest_name(value, [*known, *(name.rpartition("/")[2] for name in known)])


def some_of(names: Sequence[str], shown: int = 8) -> str:
    """Text with the first `shown` names and the number of further names."""
    more = f", and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more


def mapping_for(hardware: str) -> str:
    """Name, without suffix, of the mapping file in config/mapping/ for a run that names no mapping. The result is the
    name of the hardware.

    If the hardware is in a subfolder of config/hardware/, and the same subfolder of config/mapping/ has a file of this
    name, the result also contains the subfolder.
    """
    path, folder = find_file("hardware", hardware), Path("config", "hardware")
    if path.is_relative_to(folder):
        place = path.relative_to(folder)
        beside = place.with_name(name_of("hardware", place.name)).as_posix()
        if find_file("mapping", beside).is_file():
            return beside
    return name_of("hardware", hardware)


def name_of(kind: str, value: str) -> str:
    """Name of a file without folder and suffix. Other dots in the name stay, as in tpu_like.v2."""
    name = Path(value).name
    suffix = next((suffix for suffix in SUFFIXES[kind] if name.endswith(suffix)), "")
    return name.removesuffix(suffix)


Globs = dict[tuple[str, str], list[str]]
"""Names or paths of matching files, by (kind of file, glob)."""
NAMED = ("workload", "hardware", "mapping")
"""Kinds of files whose names are added to the name of a run, in this order."""
_CONTENT_OF_CORES = {"memories", "cores"}
_CONTENT_OF_VARIANTS = "vary"


def is_glob(value: Any) -> bool:
    """True if a value of a configuration is a glob. The path of an existing file is not a glob."""
    return isinstance(value, str) and any(sign in value for sign in "*?[") and not Path(value).is_file()


def matching(kind: str, value: str) -> list[str]:
    """Files that match a glob, sorted, in the form in which a run names files.

    If the glob ends with a suffix, the results are paths. Otherwise, they are names of files in config/<kind>/, or
    paths if no file there matches. Hidden files and files of variants are excluded.
    """
    suffixes, folder = DESCRIPTIONS[kind], Path("config", kind)
    if value.endswith(suffixes):
        return _files(value)
    named = {name.removesuffix(suffix) for suffix in suffixes for name in _files(f"{value}{suffix}", folder)}
    return sorted(named) or sorted(path for suffix in suffixes for path in _files(f"{value}{suffix}"))


def expand_run(name: str, entry: Mapping[str, Any], globs: Globs) -> Iterator[tuple[str, JsonObject]]:
    """Pairs (name, run), one pair for each combination of files that match the globs of a run. The names of these files
    are added to the name of the run in the order workload, hardware, mapping: for example, mine-systolic-16x16.
    """
    keys = [key for key in NAMED if (key, entry.get(key)) in globs]
    for values in itertools.product(*(globs[key, entry[key]] for key in keys)):
        names = (name_of(key, value) for key, value in zip(keys, values, strict=True))
        yield "-".join((name, *names)), {**entry, **dict(zip(keys, values, strict=True))}


def expand_choices(entry: Mapping[str, Any], globs: Globs) -> JsonObject:
    """Sweep in which the matching files replace each glob. Each file is listed only once, even if several globs match
    it.
    """
    found = dict(entry)
    for key in {key for key, _ in globs}:
        value = entry[key]
        given = value if isinstance(value, list) else [value]
        names = [name for choice in given for name in (globs[key, choice] if is_glob(choice) else [choice])]
        # A list can still have wrong values here; they are reported when each run is read.
        found[key] = [name for index, name in enumerate(names) if name not in names[:index]]
    return found


def _files(pattern: str, folder: Path = Path()) -> list[str]:
    found = glob.glob(pattern, root_dir=folder, recursive=True)
    return sorted(path for path in found if (folder / path).is_file() and not _is_of_variants(folder / path))


def _is_of_variants(path: Path) -> bool:
    """True if a hardware file was made by `tilewright vary`, which writes variants next to the original file."""
    if path.suffix not in (".yaml", ".yml"):
        return False
    try:
        data = load_yaml(path).data
    except (InputError, OSError):
        return False
    return isinstance(data, dict) and _CONTENT_OF_VARIANTS in data and not _CONTENT_OF_CORES & set(data)


Note = Callable[..., None]
"""Type of a function `note(message, path, value=, allowed=, nearest=)` that reports a problem."""


ROLE_IDS = ("pooling_core_id", "simd_core_id", "offchip_core_id")
"""Keys of the `graph` of an accelerator file that give a core a role. The value of each key is the id of the core."""
GRAPH_KEYS_OF_CORE = ("type", "operator_types")
GRAPH_KEYS_OF_MEMORY = ("size", "operands", "served_dimensions", "force_double_buffering")
"""Keys of a memory in a core file that affect the graph of computation nodes. Other keys have no effect on this graph.
"""


@dataclass(frozen=True)
class SystemFiles:
    """Unchecked content of the file of an accelerator with several cores and of its core files.

    An unreadable file is treated as empty here; the step that reads it reports the problem.
    """

    file: Path
    data: Mapping[Any, Any]
    """Data of the accelerator file."""
    name_of: Mapping[int, str]
    """Names of the core files by core id, for cores whose file exists."""
    path_of: Mapping[str, Path]
    """Path of each core file by name, in the order of core ids."""
    offchip_id: int | None
    """Id of the off-chip core; None if the accelerator has no off-chip core."""
    contained: Mapping[str, Any] = field(default_factory=dict)
    """Cores without a separate file, because the accelerator file itself describes them: descriptions by name."""

    @cached_property
    def core_names(self) -> tuple[str, ...]:
        """Distinct names of the core files, in the order of core ids. The off-chip core is left out."""
        return tuple(dict.fromkeys(name for core_id, name in self.name_of.items() if core_id != self.offchip_id))

    @property
    def everything(self) -> list[str]:
        """Digests of the complete content of the accelerator file and of its core files."""
        return [input_digest(self.file), *(f"{name} {input_digest(path)}" for name, path in self.path_of.items())]

    def of_core(self, name: str) -> str:
        """Digest of the content of one core file."""
        if name in self.contained:
            return said_digest(self.contained[name])
        return input_digest(self.path_of[name]) if name in self.path_of else "missing"

    def of_cost_table(self, name: str) -> str:
        """Digest of the inputs of the cost table of one core file.

        The inputs are the core file, the cores that use it, their roles, the operators that they can run, and the file
        of the off-chip core. The off-chip core is included because operands that are too large for the core are
        streamed from it.
        """
        uses = [[core_id, *self._use(core_id)] for core_id, found in self.name_of.items() if found == name]
        offchip = self.name_of.get(self.offchip_id) if self.offchip_id is not None else None
        return said_digest([self.of_core(name), uses, self.of_core(offchip) if offchip else None])

    @cached_property
    def of_graph(self) -> str:
        """Digest of the inputs of the graph of computation nodes. Four properties of the cores are inputs: the roles of
        the cores, the operators that each core can run, the sizes and operands of its memories, and the memories that
        cores share. Links and costs do not change the digest.
        """
        cores = [[core_id, name, self._use(core_id)] for core_id, name in self.name_of.items()]
        said = {name: _document_of(path).data for name, path in self.path_of.items()} | dict(self.contained)
        capacities = {name: _capacities(table(core)) for name, core in said.items()}
        return said_digest([cores, self.offchip_id, self.data.get("core_memory_sharing"), capacities])

    def _use(self, core_id: int) -> list[Any]:
        """Roles of a core and the operators that it can run, from the accelerator file."""
        graph, core_id = table(self.data.get("graph")), core_copies(self.data).get(core_id, core_id)
        roles = [key for key in ROLE_IDS if graph.get(key) == core_id]
        said = (table(self.data.get(key)).get(core_id) for key in ("core_roles", "core_operator_types"))
        return [core_id == self.offchip_id, roles, *said]


def read_system(file: Path | str) -> SystemFiles:
    """Content of an accelerator file and of its core files. No error is raised; unreadable files count as empty."""
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
    """True if a hardware file describes an accelerator of several cores; None if the file is empty or unreadable."""
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
