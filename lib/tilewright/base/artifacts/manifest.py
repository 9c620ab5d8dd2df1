"""Manifests of results: the inputs of each unit of the pipeline, and the digests of the files that it made.

A unit is the set of files that one job of the pipeline makes. Two files in the folder `.manifest` of the results belong
to each unit:

* `<unit>.json` is the manifest. The job writes the manifest when all files of the unit are there. The manifest has the
  digests of the unit's inputs and of the bytes of the unit's files. If a person copies the results, the manifest is
  copied too.
* `<unit>.due` is the job order: it tells the job to make the unit. The order is written before the job runs, and has
  the content that the manifest is expected to have. For each file that exists at that time, the order also has the
  digest, size, times and inode. The bytes of a file are read again only if its size, times or inode have changed. The
  order is valid only on this machine. If the order is lost, all files are read again.

Snakemake looks at the age and the bytes of the order (`workflow/rules/common.smk`). The order of a unit that has to be
made contains a random number, because Snakemake ignores a younger file whose bytes it has recorded before.

Standard library only: the Snakefile imports this at every parse.
"""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tilewright.base.artifacts.digests import JsonValue, bytes_digest, canonical_text, content_digest, says
from tilewright.base.artifacts.files import write_atomically
from tilewright.base.errors import InputError, Problem

FOLDER = ".manifest"
"""Folder of manifests and order files (`<unit>.due`), below the folder of results."""
VERSION = 1
UP_TO_DATE = ""
"""State of a unit (the files that one job makes) if a run from scratch would make the same files again."""
_LONG_AGO_NS = 10**18
"""Time stamp of an order file (`<unit>.due`) whose unit is up to date, in ns. The time stamp is in September 2001, so
that the order file is older than all result files."""
_UNSETTLED_NS = 2 * 10**9
"""Time in ns that must pass between a change of a file and the computation of its digest. An earlier digest is not
trusted: clocks of file systems are coarse, so that a second change soon after the first can get the same time stamp."""


class Job(NamedTuple):
    """Command that makes a unit."""

    words: tuple[str, ...]
    """Verb of tilewright with its arguments. Empty for a unit without a command; such a unit is complete as soon as the
    units in `needs` are made.
    """
    log: str
    removes: tuple[str, ...] = ()
    """Files below the folder of results that are deleted before the job runs, so that no file of an earlier result
    remains."""


@dataclass(frozen=True)
class Unit:
    """Unit: the files that one job makes, and the inputs on which they depend."""

    name: str
    """Name of the unit: a path below the folder of manifests, such as `single/mine/map` for the job `map` of the run
    `mine`."""
    files: tuple[str, ...]
    """Files and folders that the job makes, below the folder of results."""
    said: Mapping[str, Callable[[], JsonValue]]
    """Name of an input -> function that returns the input. The inputs are digests of code, digests of files that people
    wrote, and options. Inputs that other units make are in `needs`."""
    needs: tuple[str, ...] = ()
    """Units whose files the job reads."""
    besides: tuple[str, ...] = ()
    """Patterns of files that the job makes only in some cases. For example, only some design spaces have figures."""
    job: Job | None = None
    """Command of the job, if the job can share one process with other jobs; else None."""
    step: str = ""
    """Step of the pipeline whose code digest is `said['code']`; '' if `said` has no key `code`."""
    reads: Mapping[str, Callable[[], Sequence[str]]] = field(default_factory=dict)
    """File that a person writes and the job reads -> function that returns the digests of its bytes and of its content
    (`digests_of_file`)."""


class _Seen(NamedTuple):
    """State of a file at the time when the digest of its bytes was computed."""

    stat: tuple[int, ...]
    """Size in bytes, time of the last modification in ns, time of the last change of the inode in ns, and number of the
    inode."""
    digest: str
    at_ns: int


def files_digest(path: Path) -> str:
    """Digest of the bytes of a file, or of the names and bytes of all files in a folder; 'missing' if the path does not
    exist.
    """
    if path.is_dir():
        # Snakemake notes the age of a folder in a hidden file.
        inner = sorted(file for file in path.rglob("*") if file.is_file() and not file.name.startswith(".snakemake"))
        return content_digest([[file.relative_to(path).as_posix(), bytes_digest(file)] for file in inner])
    try:
        return bytes_digest(path)
    except OSError:
        return "missing"


class Manifest(NamedTuple):
    """Manifest of a unit: its inputs, and the files that were made."""

    made_of: str
    said: Mapping[str, JsonValue]
    needs: Mapping[str, str]
    """Name of a unit that the job read -> digest of the files of this unit at the time of the job."""
    files: Mapping[str, str]
    """File below the folder of results -> digest of its bytes."""

    @property
    def digest(self) -> str:
        """Digest of all files of the unit."""
        return content_digest(self.files)


def manifest_file(results: Path, unit: str) -> Path:
    """Path of the manifest of a unit."""
    return results / FOLDER / f"{unit}.json"


def order_file(results: Path, unit: str) -> Path:
    """Path of the file `<unit>.due`, which contains the order to make the unit `unit`."""
    return results / FOLDER / f"{unit}.due"


def read_manifest(results: Path, unit: str) -> Manifest | None:
    """Manifest of a unit; None if it is missing or damaged."""
    try:
        content = json.loads(manifest_file(results, unit).read_bytes())
        payload = content["payload"]
        if content["version"] != VERSION or content_digest(payload) != content["digest"] or payload["unit"] != unit:
            return None
        return Manifest(payload["made_of"], payload["said"], payload["needs"], payload["files"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def read_manifests(results: Path) -> Iterator[tuple[str, Manifest | None]]:
    """Pairs (name of a unit, its manifest), one for each manifest in a folder of results. The second element is None
    for a damaged manifest.
    """
    for file in sorted((results / FOLDER).rglob("*.json")):
        unit = file.relative_to(results / FOLDER).as_posix().removesuffix(".json")
        yield unit, read_manifest(results, unit)


_CHANGED = "has changed since this run began; start the run again"


def results_above(folder: Path) -> Path | None:
    """Nearest folder of results, recognised by its manifests: `folder` itself or a folder above it. None if there is no
    such folder."""
    places = (folder, *folder.parents, *folder.absolute().parents)
    return next((place for place in places if (place / FOLDER).is_dir()), None)


def read_orders(results: Path) -> Iterator[tuple[Path, bool]]:
    """Pairs (path, is_intact), one for each order file (`<unit>.due`) in a folder of results. The next run replaces
    damaged order files.
    """
    for file in sorted((results / FOLDER).rglob("*.due")):
        yield file, bool(_read_json(file))


class Order(NamedTuple):
    """Order to make a unit: all data that its job needs."""

    results: Path
    unit: str
    made_of: str
    said: Mapping[str, JsonValue]
    needs: Mapping[str, str]
    files: tuple[str, ...]
    besides: tuple[str, ...]
    job: Job
    is_due: bool
    """True if the unit has to be made; false if a run from scratch would make the same files again."""
    step: str = ""
    reads: Mapping[str, Sequence[str]] = {}
    unmade: tuple[str, ...] = ()
    """Units that the job reads, but that are missing or were made from other inputs than planned."""

    def refuse_unmade(self) -> None:
        """Raise InputError if a unit that the job reads is missing, or was made from other inputs than planned."""
        if self.unmade:
            raise InputError(
                [Problem("has no up-to-date result: run `make run` again to make it", name) for name in self.unmade]
            )

    def remove_earlier(self) -> None:
        """Delete files of an earlier result that the job might not replace."""
        for file in (*(self.results / file for file in self.job.removes), *self._besides()):
            if file.is_dir() and not file.is_symlink():
                shutil.rmtree(file)
            else:
                file.unlink(missing_ok=True)

    def _besides(self) -> list[Path]:
        """Existing files that match the patterns `besides` of the unit. The job makes such files only in some cases.
        Such files can therefore be left over from an earlier result.
        """
        found = {path for pattern in self.besides for path in self.results.glob(pattern)}
        return sorted(found - {self.results / file for file in self.files})

    def refuse_changed_files(self) -> None:
        """Raise InputError if the content of a file that people write has changed since the pipeline was planned.
        Without this check, the manifest would name inputs that the job has not read."""
        changed = [file for file, digests in self.reads.items() if not says(file, *digests)]
        if changed:
            raise InputError([Problem(_CHANGED, file) for file in changed])

    def _refuse_changed_code(self) -> None:
        from tilewright.base.artifacts.step_code import PACKAGE, code_digest  # the Snakefile needs neither

        if self.step and code_digest(self.step) != self.said["code"]:
            raise InputError([Problem(_CHANGED, str(PACKAGE))])

    def record(self) -> None:
        """Write the manifest of the unit.

        Raises InputError if a file is missing, if an input has changed after the pipeline was planned, or if the
        manifest cannot be written.
        """
        self.refuse_changed_files()
        self._refuse_changed_code()
        names = [*self.files, *(path.relative_to(self.results).as_posix() for path in self._besides())]
        digests = {file: files_digest(self.results / file) for file in names}
        if missing := [file for file, digest in digests.items() if digest == "missing"]:
            raise InputError([Problem("was not made", str(self.results / file)) for file in missing])
        payload = {
            **{"unit": self.unit, "made_of": self.made_of, "said": self.said},
            **{"needs": self.needs, "files": digests},
        }
        content = {"version": VERSION, "digest": content_digest(payload), "payload": payload}
        write_atomically(manifest_file(self.results, self.unit), canonical_text(content) + "\n")


def read_order(file: Path | str) -> Order:
    """Order in an order file. The digests of the needed units are looked up in their manifests. Call this function
    before the job begins, so that the digests are those of the files that the job reads. Raises InputError if the file
    holds no order.
    """
    path = Path(file)
    try:
        said = _read_json(path)
        unit: str = said["unit"]
        results = path.parents[unit.count("/") + 1]
        planned: dict[str, str] = said["needs"]
        made = {name: read_manifest(results, name) for name in planned}
        unmade = (name for name, found in made.items() if found is None or found.made_of != planned[name])
        needs = {name: manifest.digest if manifest else "missing" for name, manifest in made.items()}
        job = Job(tuple(said["words"]), said["log"], tuple(said["removes"]))
        files, besides, made_of = tuple(said["files"]), tuple(said["besides"]), said["made_of"]
        checked = "seen" not in said, said["step"], said["reads"], tuple(unmade)
        return Order(results, unit, made_of, said["said"], needs, files, besides, job, *checked)
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise InputError(
            [Problem("is not a job order (.due file) of the pipeline; run the pipeline again", str(path))]
        ) from error


@dataclass
class ResultsLedger:
    """All units of a configuration, compared with the files in the folder of results."""

    results: Path
    units: Mapping[str, Unit]
    is_main: bool = True
    """True if this process decides which jobs run. Such a process rewrites the order file of every unit that has to be
    made. False if this process only runs a job that another process has ordered. Such a process keeps an order file
    that is still up to date.
    """
    damaged: list[str] = field(default_factory=list)
    """Files whose bytes have changed since their unit wrote them. Only the units that were passed to `state` are
    checked."""
    _made_of: dict[str, str] = field(default_factory=dict)
    _said: dict[str, Mapping[str, JsonValue]] = field(default_factory=dict)
    _reads: dict[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    _states: dict[str, str] = field(default_factory=dict)
    _manifests: dict[str, Manifest | None] = field(default_factory=dict)
    _seen: dict[str, dict[str, _Seen]] = field(default_factory=dict)
    _ordered: set[str] = field(default_factory=set)

    def made_of(self, name: str) -> str:
        """Digest of all inputs of a unit. It can be computed before any job runs."""
        if name not in self._made_of:
            unit = self.units[name]
            self._reads[name] = {file: list(digests()) for file, digests in unit.reads.items()}
            self._said[name] = {key: value() for key, value in unit.said.items()}
            needs = [self.made_of(need) for need in unit.needs]
            self._made_of[name] = content_digest([name, list(unit.files), list(unit.besides), self._said[name], needs])
        return self._made_of[name]

    def state(self, name: str) -> str:
        """State of a unit: UP_TO_DATE, or the reason why its files have to be made again."""
        if name not in self._states:
            self._states[name] = self._find_state(self.units[name])
        return self._states[name]

    def order(self, name: str) -> Path:
        """Write the order file of a unit and return its path. For a unit that has to be made, the order file is younger
        than all files of the unit. For a unit that is up to date, the order file is older."""
        file = order_file(self.results, name)
        if name not in self._ordered:
            self._ordered.add(name)
            self._write_order(self.units[name], file)
            self._bring_to_present(self.units[name])
        return file

    def _write_order(self, unit: Unit, file: Path) -> None:
        is_due, old = self.state(unit.name) != UP_TO_DATE, _read_json(file)
        self.made_of(unit.name)
        told = {"unit": unit.name, "made_of": self._made_of[unit.name], "said": self._said[unit.name]}
        told |= {"needs": {need: self.made_of(need) for need in unit.needs}}
        told |= {"files": list(unit.files), "besides": list(unit.besides)}
        job = unit.job or Job((), "")
        told |= {"words": list(job.words), "log": job.log, "removes": list(job.removes)}
        told |= {"step": unit.step, "reads": self._reads[unit.name]}
        is_told = all(old.get(key) == value for key, value in told.items())
        if not is_due:
            seen = {
                file: [list(was.stat), was.digest, was.at_ns] for file, was in self._seen.get(unit.name, {}).items()
            }
            if not is_told or old.get("seen") != seen:
                _write_order(file, {**told, "seen": seen})
            _set_age(file, _LONG_AGO_NS)
        elif self.is_main or not (is_told and "seen" not in old and self._is_younger(file, unit)):
            _write_order(file, {**told, "number": os.urandom(8).hex()})
            self._make_older(file, unit)

    def _find_state(self, unit: Unit) -> str:
        for need in unit.needs:
            if self.state(need) != UP_TO_DATE:
                return f"{need} is made again"
        manifest = self._manifest(unit.name)
        if manifest is None:
            return (
                "it was never finished"
                if not manifest_file(self.results, unit.name).exists()
                else "its manifest is damaged"
            )
        if manifest.made_of != self.made_of(unit.name):
            changed = [key for key, value in self._said[unit.name].items() if manifest.said.get(key) != value]
            others = "the list of its files, or the inputs of a unit that it reads"
            return f"changed: {', '.join(changed) or others}"
        for need in unit.needs:
            made = self._manifest(need)
            if made is None or manifest.needs.get(need) != made.digest:
                return f"{need} has changed since it was read"
        return self._compare_bytes(unit, manifest)

    def _compare_bytes(self, unit: Unit, manifest: Manifest) -> str:
        before = _seen_before(_read_json(order_file(self.results, unit.name)))
        others = []
        for file in dict.fromkeys((*unit.files, *manifest.files)):
            now = _look(self.results / file, before.get(file))
            self._seen.setdefault(unit.name, {})[file] = now
            if now.digest != manifest.files.get(file):
                others.append(file)
        self.damaged += [str(self.results / file) for file in others]
        return f"files changed after the job: {', '.join(others)}" if others else UP_TO_DATE

    def _manifest(self, name: str) -> Manifest | None:
        if name not in self._manifests:
            self._manifests[name] = read_manifest(self.results, name)
        return self._manifests[name]

    def _bring_to_present(self, unit: Unit) -> None:
        """Replace time stamps in the future by the present time, for the files that the unit makes or reads. Time
        stamps in the future appear if the clock was set back. Without this step, Snakemake reports an error if a job
        reads a file that is younger than the files that the job wrote.
        """
        now = time.time_ns()
        for file in (*(self.results / file for file in unit.files), *map(Path, unit.reads)):
            age = _age(file)
            if age is not None and age > now:
                with suppress(OSError):  # a file of another user: Snakemake then reports the job that it refuses
                    os.utime(file, ns=(now, now))

    def _is_younger(self, order: Path, unit: Unit) -> bool:
        ages = [age for file in unit.files if (age := _age(self.results / file)) is not None]
        own = _age(order)
        return own is not None and all(age < own for age in ages)

    def _make_older(self, order: Path, unit: Unit) -> None:
        """Make the files of a unit older than its order file. This is needed if the files have to be made again, but
        are younger than the order file."""
        own = os.stat(order).st_mtime_ns
        for file in unit.files:
            age = _age(self.results / file)
            if age is not None and age >= own:
                _set_age(self.results / file, own - _UNSETTLED_NS)


def _look(path: Path, before: _Seen | None) -> _Seen:
    """Present state of a file or folder. `before` is the earlier state. The digest in `before` is used again if size,
    times and inode have not changed, and if it was computed long enough after the last change. In all other cases, the
    bytes are read. The files in a folder are always read.
    """
    if path.is_dir():  # the times of a folder do not show changes of the files in it
        return _Seen((0, 0, 0, 0), files_digest(path), 0)
    stat = _stat(path)
    if before and stat == before.stat and max(stat[1:3]) + _UNSETTLED_NS < before.at_ns:
        return before
    return _Seen(stat, files_digest(path), time.time_ns())


def _stat(path: Path) -> tuple[int, ...]:
    try:
        found = os.stat(path)
    except OSError:
        return (0, 0, 0, 0)
    return (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


def _seen_before(order: Mapping[str, Any]) -> dict[str, _Seen]:
    return {file: _Seen(tuple(stat), digest, at) for file, (stat, digest, at) in order.get("seen", {}).items()}


def _read_json(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    if not isinstance(content, dict) or content.pop("digest", None) != content_digest(content):
        return {}
    return content


def _write_order(file: Path, content: Mapping[str, Any]) -> None:
    write_atomically(file, canonical_text({**content, "digest": content_digest(content)}) + "\n")


def _age(path: Path) -> int | None:
    """Time of the last change of a file, in ns; None if it does not exist."""
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return None


def _set_age(path: Path, age_ns: int) -> None:
    if _age(path) != age_ns:
        os.utime(path, ns=(age_ns, age_ns))


def paths_below(results: Path, paths: Sequence[Path | str]) -> tuple[str, ...]:
    """Paths of files relative to the folder of results. `Unit.files` has this form."""
    return tuple(Path(path).relative_to(results).as_posix() for path in paths)
