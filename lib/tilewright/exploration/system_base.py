"""The base of a space of systems: the file of an accelerator of several cores and its core files as one table."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tilewright.errors import KeyPath, Problem, Problems
from tilewright.hardware.core_files import missing_file_problem
from tilewright.hardware.core_paths import contained_cores, core_file_names, core_files_of, find_core_file
from tilewright.hardware.dotted_paths import with_values
from tilewright.yamlfile import YamlDocument, load_yaml

CORES = "core_files"


@dataclass(frozen=True)
class SystemBase:
    """An accelerator with all that its core files say."""

    document: YamlDocument
    """The file of the accelerator, with core files under CORES by name; `cores` and `offchip_core` name them."""
    parts: Mapping[str, YamlDocument] = field(default_factory=dict)
    """Name -> core file, of those that do not stand in the accelerator file."""
    space_file: str = ""
    """That of the space, in which cores may stand under CORES too."""

    def told(self, problem: Problem) -> Problem:
        """A problem with something in a core file as that of the file."""
        for name, part in self.parts.items():
            start = f"{CORES}.{name}"
            if problem.path == start or problem.path.startswith((f"{start}.", f"{start}[")):
                path = problem.path.removeprefix(start).removeprefix(".")
                lines = {part.dotted(known): line for known, line in part.lines.items()}
                shown = problem.path if part.file == self.space_file else path
                return replace(problem, file=part.file, line=lines.get(path, 0), path=shown)
        return problem


def system_base(
    document: YamlDocument, further: Mapping[str, YamlDocument], problems: Problems, space_file: str = ""
) -> SystemBase | None:
    """The base of an accelerator file with the `further` cores that a space has; None, with problems, if a core file is
    not there or cannot be read."""
    contained = contained_cores(document.data)
    parts: dict[str, YamlDocument] = {}
    data = document.data
    if contained is None:
        paths = _paths(document, problems)
        if paths is None:
            return None
        names = dict(zip(paths, core_file_names(list(paths.values())), strict=True))
        for place, path in paths.items():
            read = problems.attempt(load_yaml, path)
            if read is None:
                return None
            parts[names[place]] = read
        data = with_values(data, names.items())
    known = {**(contained or {}), **{name: part.data for name, part in parts.items()}}
    for name in further:
        if name in known:
            problems.at((CORES, name), "the accelerator has a core of this name")
    whole = {**data, CORES: known | {name: part.data for name, part in further.items()}}
    return SystemBase(replace(document, data=whole), {**parts, **further}, space_file)


def _paths(document: YamlDocument, problems: Problems) -> dict[KeyPath, Path] | None:
    """Where the accelerator names a core -> its file; None if one is not there."""
    folder = Path(document.file).parent
    found: dict[KeyPath, Path] = {}
    is_whole = True
    for place, name in core_files_of(document.data).values():
        path = find_core_file(name, folder)
        if path is not None:
            found[place] = path
            continue
        missing = missing_file_problem(name, folder)
        file, line, where = document.place_of(place)
        problems.found.append(replace(missing, file=file, line=line, path=where))
        is_whole = False
    return found if is_whole else None
