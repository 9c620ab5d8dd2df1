"""The manifest of results: units that are up to date after changes to the folder."""

import os
import shutil
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tilewright.base.artifacts.digests import digests_of_file
from tilewright.base.artifacts.manifest import (
    UP_TO_DATE,
    ResultsLedger,
    Unit,
    files_digest,
    manifest_file,
    order_file,
    read_manifest,
    read_order,
)
from tilewright.base.errors import InputError

SAID = {"first": "1", "second": "2", "third": "3"}
"""Maps a unit to the word that its file depends on."""
NEEDS = {"first": (), "second": ("first",), "third": ("first", "second")}
NAMES = tuple(NEEDS)


def ledger(results: Path, said: dict[str, str] | None = None) -> ResultsLedger:
    """Return a ledger of three units, each of which reads earlier units."""
    words = {**SAID, **(said or {})}
    units = {
        name: Unit(name, (f"{name}.txt",), {"word": lambda name=name: words[name]}, needs)  # type: ignore[misc]
        for name, needs in NEEDS.items()
    }
    return ResultsLedger(results, units)


def make(results: Path, said: dict[str, str] | None = None) -> list[str]:
    """Make the outdated units as the jobs of the pipeline do, and return their names."""
    found, made = ledger(results, said), []
    for name in NAMES:
        order = found.order(name)
        if found.state(name) != UP_TO_DATE:
            told = read_order(order)
            inputs = "".join((results / f"{need}.txt").read_text() for need in NEEDS[name])
            (results / f"{name}.txt").write_text(f"{found.units[name].said['word']()}({inputs})")
            told.record()
            made.append(name)
    return made


def due(results: Path, said: dict[str, str] | None = None) -> list[str]:
    """Return the units that have to be made."""
    found = ledger(results, said)
    return [name for name in NAMES if found.state(name) != UP_TO_DATE]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Return a folder in which all units are made."""
    folder = tmp_path / "results"
    folder.mkdir()
    assert make(folder) == list(NAMES)
    return folder


def test_what_was_made_is_up_to_date(results: Path) -> None:
    """All made units are up to date, also in a copy of the folder with other ages of files."""
    assert due(results) == []
    copy = results.with_name("copy")
    shutil.copytree(results, copy, copy_function=shutil.copyfile)
    for number, file in enumerate(sorted(copy.rglob("*"))):
        os.utime(file, (1000 - number, 1000 - number))
    assert due(copy) == []


@pytest.mark.parametrize(("changed", "expected"), [("first", NAMES), ("second", NAMES[1:]), ("third", NAMES[2:])])
def test_what_depends_on_a_change_is_due(results: Path, changed: str, expected: tuple[str, ...]) -> None:
    """A changed word makes its unit and all readers outdated; with the old word nothing is outdated."""
    said = {changed: "other"}
    assert due(results, said) == list(expected)
    assert due(results) == []
    assert make(results, said) == list(expected)
    assert due(results, said) == []
    assert due(results) == list(expected)


def damage(results: Path, name: str) -> None:
    """Change one bit of a file and keep its times and size."""
    file = results / f"{name}.txt"
    stat, content = file.stat(), bytearray(file.read_bytes())
    content[0] ^= 1
    file.write_bytes(content)
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def remove(results: Path, name: str) -> None:
    """Delete the file of a unit."""
    (results / f"{name}.txt").unlink()


def forget(results: Path, name: str) -> None:
    """Delete the manifest of a unit."""
    manifest_file(results, name).unlink()


def spoil(results: Path, name: str) -> None:
    """Change a byte in the manifest of a unit."""
    file = manifest_file(results, name)
    file.write_bytes(file.read_bytes().replace(b"made_of", b"made_on"))


@pytest.mark.parametrize("fault", [damage, remove, forget, spoil])
@pytest.mark.parametrize("name", NAMES)
def test_a_fault_is_noticed(results: Path, name: str, fault: Callable[[Path, str], None]) -> None:
    """A damaged or missing file or manifest makes its unit and all readers outdated, and one run corrects it."""
    for _ in range(2):
        assert make(results) == []
    before = {file: (results / f"{file}.txt").read_bytes() for file in NAMES}
    fault(results, name)
    assert due(results) == list(NAMES[NAMES.index(name) :])
    found = ledger(results)
    found.state("third")
    assert found.damaged == ([str(results / f"{name}.txt")] if fault in (damage, remove) else [])
    make(results)
    assert due(results) == []
    assert {file: (results / f"{file}.txt").read_bytes() for file in NAMES} == before


def test_bytes_are_not_read_again(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes of a file are not read again if its size, times and inode are unchanged for long enough."""
    long_ago = time.time_ns() + 10 * 10**9
    monkeypatch.setattr(time, "time_ns", lambda: long_ago)
    assert make(results) == []
    monkeypatch.setattr("tilewright.base.artifacts.manifest.bytes_digest", lambda path: pytest.fail("read"))
    assert due(results) == []


def test_a_change_just_after_a_look_is_seen(results: Path) -> None:
    """A change within two seconds after the last reading is noticed, although clocks of file systems are coarse."""
    assert make(results) == []
    order = order_file(results, "first")
    assert "seen" in order.read_text()
    damage(results, "first")
    assert due(results)[0] == "first"


def test_files_of_another_making_are_due(results: Path) -> None:
    """A unit is outdated if a file that it reads was made again with other bytes, as a time budget can cause."""
    file = results / "first.txt"
    told = read_order(ledger(results).order("first"))
    file.write_text("another result")
    told.record()
    assert due(results) == ["second", "third"]


def test_ages_of_orders(results: Path) -> None:
    """The order of an outdated unit is younger than its files, even than files dated tomorrow; other orders are older.
    Two outdated orders never have the same bytes.
    """
    tomorrow = time.time_ns() + 86_400 * 10**9
    os.utime(results / "first.txt", ns=(tomorrow, tomorrow))
    found = ledger(results)
    order = found.order("first")
    assert order.stat().st_mtime < time.time() - 86_400 * 365
    seen = set()
    for word in ("other", "another", "other", "another"):
        found = ledger(results, {"first": word})
        os.utime(results / "first.txt", ns=(tomorrow, tomorrow))
        order = found.order("first")
        assert order.stat().st_mtime_ns > (results / "first.txt").stat().st_mtime_ns
        seen.add(order.read_bytes())
        assert ledger(results).order("first").stat().st_mtime < time.time() - 86_400 * 365
    assert len(seen) == 4


def test_an_order_that_is_due_is_never_that_of_before(results: Path) -> None:
    """A lost or restored order never has the bytes of an earlier one, since Snakemake passes over recorded bytes."""
    seen = set()
    for _ in range(3):
        order = ledger(results, {"first": "other"}).order("first")
        seen.add(order.read_bytes())
    order.unlink()
    seen.add(ledger(results, {"first": "other"}).order("first").read_bytes())
    assert len(seen) == 4


def test_an_order_stays_as_it_is_for_jobs(results: Path) -> None:
    """Planning in a cluster job leaves the orders as they are."""
    order = ledger(results, {"first": "other"}).order("first")
    before = order.read_bytes(), order.stat().st_mtime_ns
    job = ResultsLedger(results, ledger(results, {"first": "other"}).units, is_main=False)
    assert job.order("first") == order
    assert (order.read_bytes(), order.stat().st_mtime_ns) == before


@pytest.mark.parametrize(("text", "is_refused"), [("a: 2", True), ("# words\na: 1", False)])
def test_what_changes_during_a_run_is_refused(results: Path, tmp_path: Path, text: str, is_refused: bool) -> None:
    """An input that changes while the pipeline runs is refused; a change of comments is accepted."""
    file = tmp_path / "said.yaml"
    file.write_text("a: 1")
    unit = Unit("read", ("read.txt",), {}, reads={str(file): lambda: digests_of_file(file)})
    told = read_order(ResultsLedger(results, {"read": unit}).order("read"))
    (results / "read.txt").write_text("made")
    file.write_text(text)
    with pytest.raises(InputError, match="has changed since this run began") if is_refused else nullcontext():
        told.record()
    assert manifest_file(results, "read").exists() is not is_refused


def test_files_that_not_every_unit_makes_are_in_the_manifest(results: Path) -> None:
    """Optional files are in the manifest of their unit; those of an earlier result are deleted first."""
    unit = Unit("figure", ("figure.svg",), {}, besides=("figure-*.svg",))
    told = read_order(ResultsLedger(results, {"figure": unit}).order("figure"))
    for name in ("figure-earlier.svg", "figure-left.svg"):
        (results / name).write_text("earlier")
    told.remove_earlier()
    for name in ("figure.svg", "figure-left.svg"):
        (results / name).write_text("now")
    told.record()
    manifest = read_manifest(results, "figure")
    assert manifest
    assert [*manifest.files] == ["figure.svg", "figure-left.svg"]
    (results / "figure-left.svg").write_text("damaged")
    assert ResultsLedger(results, {"figure": unit}).state("figure") == "files changed after the job: figure-left.svg"


def test_files_of_tomorrow_get_the_age_of_now(results: Path, tmp_path: Path) -> None:
    """Files dated tomorrow get the current time, because Snakemake would refuse jobs that read them."""
    file, tomorrow = tmp_path / "said.yaml", time.time() + 86_400
    file.write_text("a: 1")
    units = {**ledger(results).units, "read": Unit("read", (), {}, reads={str(file): lambda: digests_of_file(file)})}
    for path in (file, results / "first.txt", results / "second.txt"):
        os.utime(path, (tomorrow, tomorrow))
    found = ResultsLedger(results, units)
    for name in ("read", "first", "second"):
        found.order(name)
    for path in (file, results / "first.txt", results / "second.txt"):
        assert path.stat().st_mtime <= time.time()
    assert due(results) == []


def test_code_that_changes_during_a_run_is_refused(results: Path) -> None:
    """Code that changes while the pipeline runs is refused."""
    units = {"code": Unit("code", ("first.txt",), {"code": lambda: "of before"}, step="check")}
    told = read_order(ResultsLedger(results, units).order("code"))
    with pytest.raises(InputError, match="has changed since this run began"):
        told.record()


def test_a_missing_file_fails_its_job(results: Path) -> None:
    """A job whose file is missing fails, and the earlier manifest stays."""
    told = read_order(ledger(results, {"first": "other"}).order("first"))
    (results / "first.txt").unlink()
    with pytest.raises(InputError, match="was not made"):
        told.record()
    manifest = read_manifest(results, "first")
    assert manifest
    assert manifest.said == {"word": "1"}


def test_a_damaged_order_is_told(results: Path) -> None:
    """A damaged order is refused with a message, and the next plan writes it anew."""
    order = ledger(results, {"first": "other"}).order("first")
    order.write_text(order.read_text().replace("other", "ether"))
    with pytest.raises(InputError, match="is not a job order"):
        read_order(order)
    assert read_order(ledger(results, {"first": "other"}).order("first")).said == {"word": "other"}


def test_digest_of_a_folder(tmp_path: Path) -> None:
    """The digest of a folder covers names and bytes of all files at any depth."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c").write_text("1")
    found = {files_digest(tmp_path / "a"), files_digest(tmp_path / "none")}
    (tmp_path / "a" / "b" / "c").write_text("2")
    found.add(files_digest(tmp_path / "a"))
    (tmp_path / "a" / "b" / "c").rename(tmp_path / "a" / "b" / "d")
    found.add(files_digest(tmp_path / "a"))
    assert len(found) == 4


STEPS = st.one_of(
    st.tuples(st.just("say"), st.sampled_from(NAMES), st.sampled_from(["1", "2", "x"])),
    st.tuples(st.sampled_from(["damage", "remove", "forget", "spoil"]), st.sampled_from(NAMES), st.just("")),
    st.tuples(
        st.sampled_from(["make", "look", "touch", "stop", "restore", "save"]), st.sampled_from(NAMES), st.just("")
    ),
)
FAULTS = {"damage": damage, "remove": remove, "forget": forget, "spoil": spoil}


@settings(max_examples=60, deadline=None)
@given(history=st.lists(STEPS, min_size=1, max_size=8))
def test_after_any_history_a_run_makes_what_a_fresh_one_would(
    history: list[tuple[str, str, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A run makes the same bytes as a fresh one after any edits, damage, stopped jobs and restored folders."""
    root = tmp_path_factory.mktemp("history")
    results, saved, said = root / "results", root / "saved", dict[str, str]()
    results.mkdir()
    make(results, said)
    for what, name, word in history:
        _take_step(what, name, word, results, saved, said)
    make(results, said)
    assert due(results, said) == []
    fresh = root / "fresh"
    fresh.mkdir()
    make(fresh, said)
    for file in (*(f"{name}.txt" for name in NAMES), *(f".manifest/{name}.json" for name in NAMES)):
        assert (results / file).read_bytes() == (fresh / file).read_bytes()


def _take_step(what: str, name: str, word: str, results: Path, saved: Path, said: dict[str, Any]) -> None:
    file = results / f"{name}.txt"
    if what == "say":
        said[name] = word
    elif what in FAULTS and file.exists() and manifest_file(results, name).exists():
        FAULTS[what](results, name)
    elif what == "make":
        make(results, said)
    elif what == "look":
        ledger(results, said).order(name)
    elif what == "touch" and file.exists():
        os.utime(file)
    elif what == "stop":  # killed after its file was written, before its manifest
        ledger(results, said).order(name)
        file.write_text("of a job that was killed")
    elif what == "save" and not saved.exists():
        shutil.copytree(results, saved)
    elif what == "restore" and saved.exists():
        shutil.rmtree(results)
        shutil.copytree(saved, results)
