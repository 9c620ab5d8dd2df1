"""Cases as folders: which there are, and which file of a case has what."""

from dataclasses import dataclass
from pathlib import Path

from tilewright.errors import InputError, Problem, nearest_name

VARIANT = "variant_"
_YAML = (".yaml", ".yml")
_NAMES = {
    "run": tuple(f"run{suffix}" for suffix in _YAML),
    "hardware": tuple(f"{stem}{suffix}" for stem in ("accelerator", "hardware") for suffix in _YAML),
    "workload": tuple(f"{stem}{suffix}" for stem in ("workload", "network") for suffix in (*_YAML, ".onnx")),
    "mapping": tuple(f"mapping{suffix}" for suffix in _YAML),
    "expected": tuple(f"expected{suffix}" for suffix in _YAML),
}
"""Kind of file -> its names; the first one that a folder has counts."""
NEEDED = ("run", "hardware", "workload", "mapping")
"""The kinds that every case has."""


@dataclass(frozen=True)
class CaseFiles:
    """The files of a case; a variant has some of its own in place of those of the case."""

    folder: Path
    variant: Path | None = None

    def find(self, kind: str) -> Path | None:
        """The file of a kind, None if there is none."""
        folders = [self.folder] if self.variant is None else [self.variant, self.folder]
        return next((found for folder in folders if (found := _find(folder, kind))), None)

    def missing(self) -> list[Problem]:
        """A problem for each file that a case needs and this one lacks."""
        allowed = {kind: " or ".join(_NAMES[kind]) for kind in NEEDED}
        return [
            Problem("is missing", str(self.folder / _NAMES[kind][0]), allowed=allowed[kind])
            for kind in NEEDED
            if self.find(kind) is None
        ]

    def notices(self) -> list[str]:
        """A notice for each file that has no effect, because another one of the folder says the same thing."""
        folders = [self.folder] if self.variant is None else [self.variant, self.folder]
        return [
            f"{folder / name}: has no effect beside {_find(folder, kind)}"
            for folder in folders
            for kind, names in _NAMES.items()
            for name in names
            if (folder / name).is_file() and folder / name != _find(folder, kind)
        ]


def find_cases(folder: Path, names: tuple[str, ...] = ()) -> dict[str, CaseFiles]:
    """Name -> files of all cases in a folder, or of the folder as a case itself; each before its variants.

    A folder is a case if it has any of the files of one, so that a case from which one is missing is not passed over;
    others may have cases in them. Names are paths below the folder. With `names` only those, what is in them, and
    their variants. Raises InputError where there are none of them.
    """
    if not folder.is_dir():
        raise InputError([Problem("no such folder", value=str(folder), allowed="a folder of cases")])
    found: dict[str, CaseFiles] = {}
    for case in _case_folders(folder):
        name = case.resolve().name if case == folder else case.relative_to(folder).as_posix()
        found[name] = CaseFiles(case)
        for variant in sorted(case.glob(f"{VARIANT}*")):
            if variant.is_dir():
                found[f"{name}/{variant.name}"] = CaseFiles(case, variant)
    if not found:
        files = ", ".join(_NAMES[kind][0] for kind in NEEDED)
        raise InputError([Problem("has no case", str(folder), allowed=f"folders with {files}")])
    problems = [
        Problem(
            "no such case", path="case", value=name, allowed=", ".join(found), nearest=nearest_name(name, list(found))
        )
        for name in names
        if not any(_is_in(case, name) for case in found)
    ]
    if problems:
        raise InputError(problems)
    return {case: files for case, files in found.items() if not names or any(_is_in(case, name) for name in names)}


def _is_in(case: str, name: str) -> bool:
    return case == name or case.startswith(f"{name.rstrip('/')}/")


def _case_folders(folder: Path) -> list[Path]:
    """The folder if it is a case, else all cases in it, in the order of their paths; hidden folders are left out."""
    if any(_find(folder, kind) for kind in _NAMES):
        return [folder]
    inside = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    return [case for path in inside if not path.is_symlink() or path.exists() for case in _case_folders(path)]


def _find(folder: Path, kind: str) -> Path | None:
    """The file of a kind in a folder; a network may have any name if it is the only ONNX file."""
    named = next((folder / name for name in _NAMES[kind] if (folder / name).is_file()), None)
    if named is None and kind == "workload":
        networks = sorted(folder.glob("*.onnx"))
        return networks[0] if len(networks) == 1 else None
    return named
