"""Published keys of chips: keys of hardware files that are added to the core files of a case.

`keys.yaml` beside this module has the keys, with a source for each line.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from tilewright.base.errors import KeyPath
from tilewright.base.json_values import JsonObject
from tilewright.base.yamlfile import load_yaml, table
from tilewright.hardware.core_paths import core_files_of, core_paths, find_core_file
from tilewright.hardware.text_edits import with_values

KEYS_FILE = Path(__file__).with_name("keys.yaml")
"""File with the published keys: for each case, a table from names of core files to keys of these files."""


@cache
def _all_keys() -> JsonObject:
    return table(load_yaml(KEYS_FILE).data)


def published_keys(case: str, hardware: Path) -> JsonObject:
    """Published keys of a case, by name of the core file; {} if there are none, or if the accelerator file `hardware`
    lacks a core file that the keys name. A variant of a case (`CASE/VARIANT`) has the keys of the case.
    """
    keys = table(_all_keys().get(case.partition("/")[0]))
    return keys if keys.keys() <= core_paths(hardware).keys() else {}


def hardware_with_keys(file: Path, keys: Mapping[str, object]) -> JsonObject:
    """Content of the accelerator file `file`, with the content of its core files inserted. `keys` has further keys for
    the core files, by name of the core file.
    """
    data, paths = table(load_yaml(file).data), core_paths(file)
    name_of = {path.resolve(): name for name, path in paths.items()}
    cores = {name: with_values(load_yaml(path).data, _values(table(keys.get(name)))) for name, path in paths.items()}
    found = [(place, find_core_file(written, file.parent)) for place, written in core_files_of(data).values()]
    named = [(place, name_of[path.resolve()]) for place, path in found if path is not None]
    return {**with_values(data, named), "core_files": cores}


def _values(keys: Mapping[str, object], above: KeyPath = ()) -> Iterator[tuple[KeyPath, object]]:
    """Pairs (path, value) of all values in nested tables."""
    for key, value in keys.items():
        if isinstance(value, Mapping):
            yield from _values(value, (*above, key))
        else:
            yield (*above, key), value
