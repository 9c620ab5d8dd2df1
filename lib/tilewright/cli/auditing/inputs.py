"""Lookup of the input files of a run.

An input is named on the command line or in the manifest of the results, or it is found by its digest in the provenance.
"""

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
"""Kind of the input file (HARDWARE, WORKLOAD or MAPPING) from which the pipeline makes an artifact, by name of the
artifact.
"""


@dataclass(frozen=True)
class GivenDescriptions:
    """Input files that the user names on the command line, for all runs of the audited folder."""

    files: Mapping[str, Path | None] = field(default_factory=dict)
    """Path of a file or artifact for each of HARDWARE, WORKLOAD and MAPPING; None if no path is given."""
    space: Path | None = None
    network_options: NetworkOptions = NetworkOptions()  # noqa: RUF009  frozen


def named_by_manifest(run: Path, verb: str) -> dict[str, Path]:
    """Paths of the inputs of a run, by kind, as listed in the manifest of the results. Only existing files are
    returned.
    """
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
            elif path.parent.name == PLAN:  # other files were written by a search
                found.setdefault(kind, path)  # a parsed mapping file counts more
    return found


def first_of(
    given: Path | None, digest_of: Callable[[Path], str], wanted: str | None, *others: Callable[[], Path | None]
) -> Path | None:
    """Path of an input of a run.

    If the user's file `given` has the digest `wanted`, or cannot be read, the result is `given`. Otherwise, the
    functions of `others` are called in order, and the result is the first path that they find. If they find no path,
    the result is `given`.
    """
    try:
        if given is not None and digest_of(given) == wanted:
            return given
    except TilewrightError:  # reported when the file is read
        return given
    return next((found for other in others if (found := other()) is not None), given)


def not_found(run: DescribedRun, found: Mapping[str, object]) -> InputError | None:
    """Error that names the missing inputs; None if `found` has a path for each kind."""
    lacking = run.not_found({kind: found[kind] for kind in KINDS})
    kinds = [problem.path for problem in lacking]
    if not kinds:
        return None
    names, options = ", ".join(kinds), " and ".join(f"the option {kind}" for kind in kinds)
    were, them = ("was", "it") if len(kinds) == 1 else ("were", "them")
    places = f"{WRITTEN}, {run.folder.parent}, the working folder, or the results folder that contains the run"
    message = (
        f"the {names} of this run {were} not found in {places}, or {were} changed after the run: name {them} with"
        f" {options}"
    )
    return InputError([Problem(message)])


def changed(stated: Mapping[str, Any], now: Mapping[str, str], places: Mapping[str, object]) -> list[str]:
    """Messages, one for each input whose digest has changed since the result was made. `stated` has the digests in the
    provenance of the result, and `now` has the present digests. `places` has the file of each kind of input; the
    messages name these files.
    """
    return [
        f"its {key} has changed since the result was made, or is another file: {places.get(key, 'it')} has the"
        f" digest {digest}, but the result records {stated.get(key, 'no digest')}"
        for key, digest in now.items()
        if stated.get(key) != digest
    ]


def is_of_this_code(provenance: Mapping[str, Any], step: str) -> bool:
    """True if a file was made by the present code of the step `step`. `provenance` is the provenance of this file."""
    return bool(provenance.get("code") == code_digest(step))


def note_of_code(file: Path, provenance: Mapping[str, Any], step: str) -> list[str]:
    """List with one note: another version of the code of the step `step` made the file `file`. The list is [] if the
    present version made it. `provenance` is the provenance of this file.
    """
    if is_of_this_code(provenance, step):
        return []
    return [f"{file} was made by another version of the code ({provenance.get('tilewright', 'unknown')})"]
