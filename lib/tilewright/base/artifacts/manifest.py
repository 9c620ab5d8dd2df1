"""The manifest of results: what each unit of the pipeline was made of, and the digests of the files that it made.

A unit is what one job makes. Two files in the folder `.manifest` of the results belong to it:

* `<unit>.json`, the manifest, is written by the job when all its files are there: digests of what they were made
  of, and of their bytes. Results that are copied take it along.
* `<unit>.due`, the order, is written before the job: what the manifest will have to say. It also remembers which bytes
  were seen when, by size, times and inode, so that files are read again only where one of these differs. It belongs to
  the machine; nothing is lost with it. Its age is what Snakemake looks at (`workflow/rules/common.smk`), and its bytes:
  an order that is due has a random number, since Snakemake passes over a younger file with bytes that it has recorded.

Standard library only: the Snakefile imports this at every parse.
"""

import json
import os
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
"""Folder below that of the results."""
VERSION = 1
UP_TO_DATE = ""
"""The state of a unit whose files are those that a run from scratch would make."""
_LONG_AGO_NS = 10**18
"""The age of the order of a unit that is up to date: older than every file that was ever made (September 2001)."""
_UNSETTLED_NS = 2 * 10**9
"""A file that changed so shortly before it was seen may change again without another time (coarse clocks)."""


class Job(NamedTuple):
    """How a unit is made."""

    words: tuple[str, ...]
    """The verb of tilewright with its arguments; none where the job is to make the units that the unit needs."""
    log: str
    removes: tuple[str, ...] = ()
    """Files below the folder of results that go before, so that none of an earlier result stays."""


@dataclass(frozen=True)
class Unit:
    """The files that one job makes, and what they depend on."""

    name: str
    """Path below the folder of manifests, such as `single/mine/map`."""
    files: tuple[str, ...]
    """What it makes, files or folders, below the folder of results."""
    said: Mapping[str, Callable[[], JsonValue]]
    """What it is made of besides other units: digests of code and of what people wrote, options; by what it is."""
    needs: tuple[str, ...] = ()
    """Units whose files it reads."""
    besides: tuple[str, ...] = ()
    """Patterns of further files that it may make, such as figures that not every space has."""
    job: Job | None = None
    """How it is made, where it can share a job with others."""
    step: str = ""
    """Whose code is the `code` that it is said to be made of; '' where none is."""
    reads: Mapping[str, Callable[[], Sequence[str]]] = field(default_factory=dict)
    """Files that people write and the job reads -> digests of their bytes and of what they say (`digests_of_file`)."""


class _Seen(NamedTuple):
    """A file as it was when its bytes were digested."""

    stat: tuple[int, ...]
    """Size in bytes, times of modification and of the last change in ns, inode."""
    digest: str
    at_ns: int


def files_digest(path: Path) -> str:
    """Digest of the bytes of a file, or of the names and bytes of all files in a folder; 'missing' without either."""
    if path.is_dir():
        # Snakemake notes the age of a folder in a hidden file.
        inner = sorted(file for file in path.rglob("*") if file.is_file() and not file.name.startswith(".snakemake"))
        return content_digest([[file.relative_to(path).as_posix(), bytes_digest(file)] for file in inner])
    try:
        return bytes_digest(path)
    except OSError:
        return "missing"


class Manifest(NamedTuple):
    """What a unit was made of, and what it made."""

    made_of: str
    said: Mapping[str, JsonValue]
    needs: Mapping[str, str]
    """Unit that was read -> digest of its files at that time."""
    files: Mapping[str, str]
    """File below the folder of results -> digest of its bytes."""

    @property
    def digest(self) -> str:
        """Digest of all files of the unit."""
        return content_digest(self.files)


def manifest_file(results: Path, unit: str) -> Path:
    """The file of the manifest of a unit."""
    return results / FOLDER / f"{unit}.json"


def order_file(results: Path, unit: str) -> Path:
    """The file of the order of a unit."""
    return results / FOLDER / f"{unit}.due"


def read_manifest(results: Path, unit: str) -> Manifest | None:
    """The manifest of a unit; None where there is none, or a damaged one."""
    try:
        content = json.loads(manifest_file(results, unit).read_bytes())
        payload = content["payload"]
        if content["version"] != VERSION or content_digest(payload) != content["digest"] or payload["unit"] != unit:
            return None
        return Manifest(payload["made_of"], payload["said"], payload["needs"], payload["files"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def read_manifests(results: Path) -> Iterator[tuple[str, Manifest | None]]:
    """All units with a manifest in a folder of results, by name; None for a manifest that is damaged."""
    for file in sorted((results / FOLDER).rglob("*.json")):
        unit = file.relative_to(results / FOLDER).as_posix().removesuffix(".json")
        yield unit, read_manifest(results, unit)


_CHANGED = "has changed since this run began; run it again"


def results_above(folder: Path) -> Path | None:
    """The folder of results that a folder is, or is a part of: the nearest with manifests; None where none has any."""
    places = (folder, *folder.parents, *folder.absolute().parents)
    return next((place for place in places if (place / FOLDER).is_dir()), None)


def read_orders(results: Path) -> Iterator[tuple[Path, bool]]:
    """All orders in a folder of results, each with whether it is as it was written; one that is not is written anew by
    the next run."""
    for file in sorted((results / FOLDER).rglob("*.due")):
        yield file, bool(_read_json(file))


class Order(NamedTuple):
    """What a job is told about the unit that it makes."""

    results: Path
    unit: str
    made_of: str
    said: Mapping[str, JsonValue]
    needs: Mapping[str, str]
    files: tuple[str, ...]
    besides: tuple[str, ...]
    job: Job
    is_due: bool
    """False if the files of the unit are what a run from scratch would make."""
    step: str = ""
    reads: Mapping[str, Sequence[str]] = {}
    unmade: tuple[str, ...] = ()
    """Units that it needs and that are not, or not yet, made of what the pipeline was planned with."""

    def refuse_unmade(self) -> None:
        """Raises InputError where a unit that is read is not made as planned."""
        if self.unmade:
            raise InputError(
                [Problem("has no up-to-date result: run `make run` again to make it", name) for name in self.unmade]
            )

    def remove_earlier(self) -> None:
        """Delete files of an earlier result that this one may not replace."""
        for file in (*(self.results / file for file in self.job.removes), *self._besides()):
            file.unlink(missing_ok=True)

    def _besides(self) -> list[Path]:
        """Files that the unit made, or an earlier one, and not every unit of its kind does."""
        found = {path for pattern in self.besides for path in self.results.glob(pattern)}
        return sorted(found - {self.results / file for file in self.files})

    def refuse_changed_files(self) -> None:
        """Raises InputError where files that people write say something else than when the pipeline was planned: what
        is made of them is not what the manifest would say."""
        changed = [file for file, digests in self.reads.items() if not says(file, *digests)]
        if changed:
            raise InputError([Problem(_CHANGED, file) for file in changed])

    def _refuse_changed_code(self) -> None:
        from tilewright.base.artifacts.step_code import PACKAGE, code_digest  # here: the Snakefile needs neither

        if self.step and code_digest(self.step) != self.said["code"]:
            raise InputError([Problem(_CHANGED, str(PACKAGE))])

    def record(self) -> None:
        """Write the manifest of the unit. Raises InputError where a file is missing, where what it was made of has
        changed since the pipeline was planned, or the disk is full."""
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
    """The order in a file, read before the job begins: the units that it needs are as the job will read them.

    Raises InputError for a file that holds none.
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
        raise InputError([Problem("is no order of the pipeline; run it again", str(path))]) from error


@dataclass
class ResultsLedger:
    """All units of a configuration, compared with what lies in the folder of its results."""

    results: Path
    units: Mapping[str, Unit]
    is_main: bool = True
    """Whether this process decides what runs; one that runs a job for another leaves orders that are due."""
    damaged: list[str] = field(default_factory=list)
    """Files with other bytes than their unit wrote, as far as units were asked about."""
    _made_of: dict[str, str] = field(default_factory=dict)
    _said: dict[str, Mapping[str, JsonValue]] = field(default_factory=dict)
    _reads: dict[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    _states: dict[str, str] = field(default_factory=dict)
    _manifests: dict[str, Manifest | None] = field(default_factory=dict)
    _seen: dict[str, dict[str, _Seen]] = field(default_factory=dict)
    _ordered: set[str] = field(default_factory=set)

    def made_of(self, name: str) -> str:
        """Digest of everything that a unit depends on, known before anything runs."""
        if name not in self._made_of:
            unit = self.units[name]
            self._reads[name] = {file: list(digests()) for file, digests in unit.reads.items()}
            self._said[name] = {key: value() for key, value in unit.said.items()}
            needs = [self.made_of(need) for need in unit.needs]
            self._made_of[name] = content_digest([name, list(unit.files), list(unit.besides), self._said[name], needs])
        return self._made_of[name]

    def state(self, name: str) -> str:
        """UP_TO_DATE, or why the files of a unit have to be made again."""
        if name not in self._states:
            self._states[name] = self._find_state(self.units[name])
        return self._states[name]

    def order(self, name: str) -> Path:
        """The order of a unit, in its file: younger than all files of the unit if these have to be made, else older."""
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
            return f"another {', '.join(changed)}" if changed else "another set of files"
        for need in unit.needs:
            made = self._manifest(need)
            if made is None or manifest.needs.get(need) != made.digest:
                return f"it was made of other bytes of {need}"
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
        return f"other bytes than were written: {', '.join(others)}" if others else UP_TO_DATE

    def _manifest(self, name: str) -> Manifest | None:
        if name not in self._manifests:
            self._manifests[name] = read_manifest(self.results, name)
        return self._manifests[name]

    def _bring_to_present(self, unit: Unit) -> None:
        """Files of tomorrow, as where the clock was set back, get the age of now: Snakemake refuses jobs that read
        something younger than what they wrote."""
        now = time.time_ns()
        for file in (*(self.results / file for file in unit.files), *map(Path, unit.reads)):
            age = _age(file)
            if age is not None and age > now:
                with suppress(OSError):  # a file of somebody else: Snakemake says what it refuses
                    os.utime(file, ns=(now, now))

    def _is_younger(self, order: Path, unit: Unit) -> bool:
        ages = [age for file in unit.files if (age := _age(self.results / file)) is not None]
        own = _age(order)
        return own is not None and all(age < own for age in ages)

    def _make_older(self, order: Path, unit: Unit) -> None:
        """Files that are to be made again, but are as young as their order (or of tomorrow), become older than it."""
        own = os.stat(order).st_mtime_ns
        for file in unit.files:
            age = _age(self.results / file)
            if age is not None and age >= own:
                _set_age(self.results / file, own - _UNSETTLED_NS)


def _look(path: Path, before: _Seen | None) -> _Seen:
    """A file or folder as it is now; bytes are read only where it is not as before."""
    if path.is_dir():  # the times of a folder say nothing of the files in it
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
    """Time of the last change, in ns."""
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return None


def _set_age(path: Path, age_ns: int) -> None:
    if _age(path) != age_ns:
        os.utime(path, ns=(age_ns, age_ns))


def paths_below(results: Path, paths: Sequence[Path | str]) -> tuple[str, ...]:
    """Paths as units name them, below the folder of results."""
    return tuple(Path(path).relative_to(results).as_posix() for path in paths)
