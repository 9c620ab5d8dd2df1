"""The files that a run names: where they are looked for, and what they are called."""

from collections.abc import Sequence
from pathlib import Path

DESCRIPTIONS: dict[str, tuple[str, ...]] = {
    "hardware": (".yaml", ".yml"),
    "workload": (".onnx", ".yaml", ".yml"),
    "mapping": (".yaml", ".yml"),
}
"""Kind of file that a run names -> suffixes tried for a bare name in config/<kind>/."""


def find_file(kind: str, value: str) -> Path:
    """The file that a run names: a path as it is, a name in config/<kind>/ with the first suffix that exists."""
    if value.endswith(DESCRIPTIONS[kind]):
        return Path(value)
    candidates = [Path("config") / kind / f"{value}{suffix}" for suffix in DESCRIPTIONS[kind]]
    return next((path for path in (*candidates, Path(value)) if path.is_file()), candidates[0])


def known_files(kind: str, value: str) -> tuple[Path, list[str]]:
    """Where a file was looked for, and what it could have been called."""
    if value.endswith(DESCRIPTIONS[kind]):
        place = Path(value).parent
        files = place.glob("*") if place.is_dir() else []
        return place, sorted(str(path) for path in files if path.suffix in DESCRIPTIONS[kind])
    place = Path("config") / kind
    files = (path for path in place.rglob("*") if path.suffix in DESCRIPTIONS[kind])
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
    suffix = next((suffix for suffix in DESCRIPTIONS[kind] if name.endswith(suffix)), "")
    return name.removesuffix(suffix)
