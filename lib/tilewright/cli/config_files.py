"""The files that a run names: where they are looked for, what they are called, and which of them a glob stands for.

`hardware: systolic/*` in a configuration stands for every file that matches, in the order of their names.
"""

import glob
import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tilewright.errors import InputError
from tilewright.yamlfile import load_yaml

DESCRIPTIONS: dict[str, tuple[str, ...]] = {
    "hardware": (".yaml", ".yml"),
    "workload": (".onnx", ".yaml", ".yml"),
    "mapping": (".yaml", ".yml"),
}
"""Kind of file that a run names -> suffixes tried for a bare name in config/<kind>/."""
SPACE = "space"
"""The kind of the files of design spaces."""
SUFFIXES = {**DESCRIPTIONS, SPACE: (".yaml", ".yml")}
"""The same of all files that a configuration names."""


def find_file(kind: str, value: str) -> Path:
    """The file that a run names: a path as it is, a name in config/<kind>/ with the first suffix that exists."""
    if value.endswith(SUFFIXES[kind]):
        return Path(value)
    candidates = [Path("config") / kind / f"{value}{suffix}" for suffix in SUFFIXES[kind]]
    return next((path for path in (*candidates, Path(value)) if path.is_file()), candidates[0])


def known_files(kind: str, value: str) -> tuple[Path, list[str]]:
    """Where a file was looked for, and what it could have been called."""
    if value.endswith(SUFFIXES[kind]):
        place = Path(value).parent
        files = place.glob("*") if place.is_dir() else []
        return place, sorted(str(path) for path in files if path.suffix in SUFFIXES[kind])
    place = Path("config") / kind
    files = (path for path in place.rglob("*") if path.suffix in SUFFIXES[kind])
    return place, sorted(path.relative_to(place).with_name(name_of(kind, path.name)).as_posix() for path in files)


def some_of(names: Sequence[str], shown: int = 8) -> str:
    """The first of many names."""
    more = f", and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more


def mapping_for(hardware: str) -> str:
    """The mapping of a run that names none: that of its hardware, also by folder where there is one."""
    path, folder = find_file("hardware", hardware), Path("config", "hardware")
    if path.is_relative_to(folder):
        place = path.relative_to(folder)
        beside = place.with_name(name_of("hardware", place.name)).as_posix()
        if find_file("mapping", beside).is_file():
            return beside
    return name_of("hardware", hardware)


def name_of(kind: str, value: str) -> str:
    """The name of a file of a kind: without folder and suffix. Other dots belong to the name: tpu_like.v2."""
    name = Path(value).name
    suffix = next((suffix for suffix in SUFFIXES[kind] if name.endswith(suffix)), "")
    return name.removesuffix(suffix)


Globs = dict[tuple[str, str], list[str]]
"""(Kind of file, glob) -> what it stands for."""
NAMED = ("workload", "hardware", "mapping")
"""The order in which files name a run."""
_CONTENT_OF_CORES = {"memories", "cores"}
_CONTENT_OF_VARIANTS = "vary"


def is_glob(value: Any) -> bool:
    """Whether a value of a configuration stands for several files; the path of a file that exists does not."""
    return isinstance(value, str) and any(sign in value for sign in "*?[") and not Path(value).is_file()


def matching(kind: str, value: str) -> list[str]:
    """What a glob stands for, as a run would name it: paths where it ends with a suffix, else names in config/<kind>/,
    or paths where nothing there matches. Sorted; hidden files and files of variants are no descriptions."""
    suffixes, folder = DESCRIPTIONS[kind], Path("config", kind)
    if value.endswith(suffixes):
        return _files(value)
    named = {name.removesuffix(suffix) for suffix in suffixes for name in _files(f"{value}{suffix}", folder)}
    return sorted(named) or sorted(path for suffix in suffixes for path in _files(f"{value}{suffix}"))


def expand_run(name: str, entry: Mapping[str, Any], globs: Globs) -> Iterator[tuple[str, dict[str, Any]]]:
    """(name, run) of every combination of what the globs of a run stand for; the name is followed by those of the
    files, in the order workload, hardware, mapping: mine-systolic-16x16."""
    keys = [key for key in NAMED if (key, entry.get(key)) in globs]
    for values in itertools.product(*(globs[key, entry[key]] for key in keys)):
        names = (name_of(key, value) for key, value in zip(keys, values, strict=True))
        yield "-".join((name, *names)), {**entry, **dict(zip(keys, values, strict=True))}


def expand_choices(entry: Mapping[str, Any], globs: Globs) -> dict[str, Any]:
    """A sweep with its globs replaced by the files that they stand for, each file once."""
    found = dict(entry)
    for key in {key for key, _ in globs}:
        value = entry[key]
        given = value if isinstance(value, list) else [value]
        names = [name for choice in given for name in (globs[key, choice] if is_glob(choice) else [choice])]
        # A list may hold anything here: what is wrong with it is told of each run.
        found[key] = [name for index, name in enumerate(names) if name not in names[:index]]
    return found


def _files(pattern: str, folder: Path = Path()) -> list[str]:
    found = glob.glob(pattern, root_dir=folder, recursive=True)
    return sorted(path for path in found if (folder / path).is_file() and not _is_of_variants(folder / path))


def _is_of_variants(path: Path) -> bool:
    """Hardware files that `tilewright vary` made lie beside the file that it made them from."""
    if path.suffix not in (".yaml", ".yml"):
        return False
    try:
        data = load_yaml(path).data
    except (InputError, OSError):
        return False
    return isinstance(data, dict) and _CONTENT_OF_VARIANTS in data and not _CONTENT_OF_CORES & set(data)
