"""Verification of all files in a folder of results: finds the files that have changed after they were written.

Files that tilewright reads again contain a digest of their own content, the seal (`seals.py`). Some artifacts contain
the digests of files that lie next to them. Manifests (`manifest.py`) contain the digests of all files that jobs of the
pipeline wrote. A file with a name that the pipeline gives to artifacts must have a seal. Any other file is checked only
if it has a seal or the remains of a damaged seal.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from tilewright.base.artifacts.digests import digest_of_bytes
from tilewright.base.artifacts.envelope import is_artifact, read_artifact
from tilewright.base.artifacts.manifest import (
    FOLDER,
    files_digest,
    manifest_file,
    read_manifests,
    read_orders,
    results_above,
)
from tilewright.base.artifacts.seals import (
    FILES_BESIDE,
    IS_SEALED,
    REMEDY,
    check_seal,
    is_sealed_line,
    may_have_been_sealed,
    read_bytes,
)
from tilewright.base.errors import ArtifactError, Problem
from tilewright.base.report_files import TRACE
from tilewright.base.steps import STEPS

ARTIFACT_PATTERNS = tuple(
    dict.fromkeys(
        re.sub(r"{\w+}", "*", path)
        for step in STEPS.values()
        for path in step.paths
        if path.endswith(tuple(IS_SEALED)) and not path.endswith(f"/{TRACE}")
    )
)
"""Patterns of the paths, below the folder of results, at which the pipeline writes files with a seal. A seal is a
digest of the content of a file, stored in the same file.
"""
_STORED = re.compile(r"(?:.*/)?([0-9a-f]{2})/(\1[0-9a-f]+)\.json")
"""Pattern of the path of a file in the store of mapped layers: `<first two digits of a digest>/<digest>.json`."""


@dataclass(frozen=True)
class Verified:
    """Result of the verification of the files in a folder."""

    files: tuple[Path, ...]
    """Files that have digests, sorted."""
    problems: dict[Path, Problem]
    """Damaged file -> its problem."""


def verify_folder(folder: Path, paths: Iterable[Path] | None = None) -> Verified:
    """Compare each file in a folder of results with its digests: in its seal, in an artifact beside the file, and in a
    manifest. If `paths` is given, seals are checked only at these paths; the comparison with manifests still covers all
    files.
    """
    sealed = _with_seals(folder, folder.rglob("*") if paths is None else paths)
    return _together(sealed, _compared_with_manifests(folder))


def verify_part(folder: Path) -> Verified:
    """Verify a folder that is a part of a folder of results, or that contains several folders of results.

    All files in `folder` are compared with their seals. The files are also compared with the manifests of the folder of
    results that contains `folder`, and with the manifests of each folder of results inside `folder`.
    """
    above = results_above(folder)
    roots = [place.parent for place in sorted(folder.rglob(FOLDER)) if place.is_dir() and place.parent != above]
    compared = [pair for root in roots for pair in _compared_with_manifests(root)]
    if above is not None:
        compared += _compared_with_manifests(above, folder)
    return _together(_with_seals(above or folder, folder.rglob("*")), compared)


def _together(sealed: Verified, compared: Iterable[tuple[Path, Problem | None]]) -> Verified:
    """Combined result of two checks: the check of seals, and the comparison with manifests."""
    files, problems = [*sealed.files], dict(sealed.problems)
    for path, problem in compared:
        files.append(path)
        if problem:
            problems.setdefault(path, problem)
    return Verified(tuple(sorted(set(files))), dict(sorted(problems.items())))


def _with_seals(folder: Path, paths: Iterable[Path]) -> Verified:
    """Verify each file in `paths` that has a seal, and the files that were written together with it. `folder` is the
    folder of results that contains `paths`."""
    files: list[Path] = []
    problems: dict[Path, Problem] = {}
    for path in sorted(paths):
        if path.suffix not in IS_SEALED or not path.is_file() or path.name.startswith("."):
            continue
        name = path.absolute().relative_to(folder.absolute()).as_posix()
        try:
            if not _verify_file(path, name):
                continue
            files.append(path)
            for beside, problem in _damaged_beside(path):
                files.append(beside)
                problems |= {beside: problem} if problem else {}
        except ArtifactError as error:
            files.append(path)
            problems[path] = error.problems[0]
    return Verified(tuple(files), problems)


def _compared_with_manifests(folder: Path, part: Path | None = None) -> Iterator[tuple[Path, Problem | None]]:
    """Pairs (file, problem): all order files, all damaged manifests, and all files that intact manifests name. The
    problem is None for an intact file. If `part` is given, only files in this part of the folder are returned. Missing
    files are left out, because the next run makes them.
    """
    for path, is_intact in read_orders(folder):
        if part is None or _is_within(folder / path.relative_to(folder / FOLDER), part):
            yield path, None if is_intact else Problem(f"job order (.due file) is damaged; {REMEDY}", str(path))
    for unit, manifest in read_manifests(folder):
        if manifest is None:
            if part is not None and not _is_within(folder / unit, part):
                continue
            path = manifest_file(folder, unit)
            yield path, Problem(f"manifest is damaged; {REMEDY}", str(path))
            continue
        for name, digest in manifest.files.items():
            path = folder / name
            if path.exists() and (part is None or _is_within(path, part)):
                is_intact = files_digest(path) == digest
                message = f"differs from the file that its job wrote; {REMEDY}"
                yield path, None if is_intact else Problem(message, str(path))


def _is_within(path: Path, part: Path) -> bool:
    return path.absolute().is_relative_to(part.absolute())


def _verify_file(path: Path, name: str) -> bool:
    """True if a file has a digest that matches; False if it has no digest. Raises ArtifactError if the file is damaged
    or of another version."""
    content = read_bytes(path)
    if (stored := _STORED.fullmatch(name)) and content[:1] == b"{":
        is_named = content.startswith(b'{"key":"%s"' % stored[2].encode())
        check_seal(path, is_named and is_sealed_line(content))
        return True
    is_known = any(fnmatchcase(name, pattern) for pattern in ARTIFACT_PATTERNS)
    if not is_known and not may_have_been_sealed(path, content):
        return False
    check_seal(path, IS_SEALED[path.suffix](content))
    if path.suffix in (".json", ".jsonl") and is_artifact(path):
        read_artifact(path)
    return True


def _damaged_beside(path: Path) -> Iterator[tuple[Path, Problem | None]]:
    """Pairs (file that was written with an artifact, problem); the problem is None for an intact file. Missing files
    are left out."""
    if path.suffix != ".json" or not is_artifact(path):
        return
    for name, digest in read_artifact(path).provenance.get(FILES_BESIDE, {}).items():
        beside = path.with_name(name)
        if beside.is_file():
            is_intact = digest_of_bytes(beside.read_bytes()) == digest
            message = f"differs from the file that was written together with {path.name}; {REMEDY}"
            yield beside, None if is_intact else Problem(message, str(beside))
