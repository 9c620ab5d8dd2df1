"""Inputs of a run, found by the command line, the manifest of the run, or the digests in its provenance."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilewright.base.artifacts.manifest import read_manifest, results_above
from tilewright.base.artifacts.step_code import code_digest
from tilewright.base.errors import InputError, Problem, TilewrightError
from tilewright.base.steps import ACCELERATOR, FIXED_MAPPING, PLAN
from tilewright.base.steps import MAPPING as MAPPING_FILE
from tilewright.base.steps import WORKLOAD as WORKLOAD_FILE
from tilewright.cli.described_run import HARDWARE, MAPPING, WORKLOAD, WRITTEN, DescribedRun
from tilewright.workload.network_options import NetworkOptions

KINDS = (HARDWARE, WORKLOAD, MAPPING)
_FILES = {ACCELERATOR: HARDWARE, WORKLOAD_FILE: WORKLOAD, MAPPING_FILE: MAPPING, FIXED_MAPPING: MAPPING}
"""Kind of description of each file that a unit of the pipeline makes, by file name."""


@dataclass(frozen=True)
class GivenDescriptions:
    """Descriptions that a user names, for all runs of the folder."""

    files: Mapping[str, Path | None] = field(default_factory=dict)
    """Files or artifacts of HARDWARE, WORKLOAD and MAPPING."""
    space: Path | None = None
    network_options: NetworkOptions = NetworkOptions()  # noqa: RUF009  frozen


def named_by_manifest(run: Path, verb: str) -> dict[str, Path]:
    """Existing descriptions that a verb read for a run, by kind, as the manifest of the results names them."""
    results = results_above(run)
    if results is None:
        return {}
    unit = (run.absolute().relative_to(results.absolute()) / verb).as_posix()
    manifest = read_manifest(results, unit)
    found: dict[str, Path] = {}
    for need in () if manifest is None else manifest.needs:
        made = read_manifest(results, need)
        for name in () if made is None else made.files:
            path, kind = results / name, _FILES.get(Path(name).name)
            if kind is None or not path.is_file():
                continue
            if path.name != FIXED_MAPPING:
                found[kind] = path
            elif path.parent.name == PLAN:  # others are what a search for an allocation wrote, and did not read
                found.setdefault(kind, path)  # beside a mapping file a plan says settings alone
    return found


def first_of(
    given: Path | None, digest_of: Callable[[Path], str], wanted: str | None, *others: Callable[[], Path | None]
) -> Path | None:
    """Description that the user names, if its digest is that of the run; else the first of the others that exists; else
    the one that the user names.
    """
    try:
        if given is not None and digest_of(given) == wanted:
            return given
    except TilewrightError:  # told where the descriptions are read
        return given
    return next((found for other in others if (found := other()) is not None), given)


def not_found(run: DescribedRun, found: Mapping[str, object]) -> InputError | None:
    """Error for descriptions that are not found; None if `found` has a value for every kind."""
    lacking = run.not_found({kind: found[kind] for kind in KINDS})
    kinds = [problem.path.removeprefix("--") for problem in lacking]
    if not kinds:
        return None
    told, options = ", ".join(kinds), ", ".join(f"--{kind}" for kind in kinds)
    have, are, them = ("has", "is", "it") if len(kinds) == 1 else ("have", "are", "them")
    places = f"{WRITTEN}, {run.folder.parent}, the working folder and the results that it is a part of"
    message = (
        f"the {told} that it was made of {have} changed since, or {are} not in {places}: name {them} with {options}"
    )
    return InputError([Problem(message)])


def changed(stated: Mapping[str, Any], now: Mapping[str, str], places: Mapping[str, object]) -> list[str]:
    """Messages on inputs whose digest differs from that in a provenance."""
    return [
        f"its {key} has changed since it was made, or is another one: {places.get(key, 'it')} has the digest {digest},"
        f" and its provenance says {stated.get(key, 'nothing')}"
        for key, digest in now.items()
        if stated.get(key) != digest
    ]


def is_of_this_code(provenance: Mapping[str, Any], step: str) -> bool:
    """Whether a file was made by this version of the code."""
    return bool(provenance.get("code") == code_digest(step))


def note_of_code(file: Path, provenance: Mapping[str, Any], step: str) -> list[str]:
    """Note if a file was made by another version of the code; else []."""
    if is_of_this_code(provenance, step):
        return []
    return [f"{file} was made by other code than this version of it ({provenance.get('tilewright', 'unknown')})"]
