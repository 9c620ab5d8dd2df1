"""Writing, reading and verifying artifacts."""

import re
from pathlib import Path

import pytest
from tilewright.base.artifacts.envelope import (
    PLUG_INS,
    SCHEMA_VERSIONS,
    read_artifact,
    read_object,
    write_document,
    write_rows,
)
from tilewright.base.errors import ArtifactError
from tilewright.mapping.constraints import Mapping

ROWS = [{"a": 1}, {"a": 2.5}, {"a": "ü"}]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Write a table artifact."""
    path = tmp_path / "layers.jsonl"
    write_rows(path, "tilewright/layers", ROWS, {"tilewright": "0"})
    return path


@pytest.fixture
def document(tmp_path: Path) -> Path:
    """Write an artifact of one object."""
    path = tmp_path / "summary.json"
    write_document(path, "tilewright/single-summary", {"a": 1, "b": [1.5]}, {"tilewright": "0"})
    return path


def test_what_was_written_is_read(table: Path, document: Path) -> None:
    """Payload, schema and provenance of an artifact are read back."""
    assert list(read_artifact(table, "tilewright/layers").payload) == ROWS
    assert read_artifact(document).payload == {"a": 1, "b": [1.5]}
    assert read_artifact(document).provenance == {"tilewright": "0"}


def test_every_changed_byte_is_noticed(table: Path, document: Path) -> None:
    """A change of any byte of the content is reported with the advice to delete the file and repeat the run."""
    for path in (table, document):
        good = path.read_bytes()
        begin = good.index(b'"a"')
        for index in range(begin, len(good), 3):
            if good[index : index + 1].isspace():
                continue
            path.write_bytes(good[:index] + b"7" + good[index + 1 :])
            if path.read_bytes() != good:
                with pytest.raises(ArtifactError, match=r"damaged.*delete it, and repeat the run"):
                    read_artifact(path)


def test_every_truncation_is_noticed(table: Path, document: Path) -> None:
    """A file that is truncated anywhere is refused."""
    for path in (table, document):
        good = path.read_bytes()
        for length in range(0, len(good) - 1, 5):
            path.write_bytes(good[:length])
            with pytest.raises(ArtifactError):
                read_artifact(path)


def test_missing_row_is_noticed(table: Path) -> None:
    """A missing row is noticed by the footer."""
    lines = table.read_text().splitlines(keepends=True)
    table.write_text("".join(lines[:2] + lines[3:]))
    with pytest.raises(ArtifactError, match="damaged"):
        read_artifact(table)


def test_other_schema_or_version_is_refused(document: Path) -> None:
    """An artifact of another kind or version is refused."""
    with pytest.raises(ArtifactError, match="wrong kind"):
        read_artifact(document, "tilewright/layers")
    document.write_text(re.sub(r'"version": \d+', '"version": 99', document.read_text()))
    with pytest.raises(ArtifactError, match="version 99"):
        read_artifact(document)


def test_missing_file_is_told(tmp_path: Path) -> None:
    """A missing artifact is an ArtifactError with its path."""
    with pytest.raises(ArtifactError, match=r"none\.json: no such artifact"):
        read_artifact(tmp_path / "none.json")


def test_line_separators_in_text_are_no_rows(tmp_path: Path) -> None:
    """Rows may contain all characters that Unicode counts as line ends."""
    rows = [{"name": "a\u2028b\x85c\x0bd\u2029"}]
    path = tmp_path / "layers.jsonl"
    write_rows(path, "tilewright/layers", rows, {"tilewright": "0"})
    assert list(read_artifact(path).payload) == rows


@pytest.mark.parametrize("schema", ["3", "[]", "{}", "null"])
def test_schema_that_is_no_text(schema: str, document: Path) -> None:
    """An artifact whose schema is not text is reported as damaged."""
    text = document.read_text()
    document.write_text(text.replace('"tilewright/single-summary"', schema))
    assert document.read_text() != text
    with pytest.raises(ArtifactError, match="damaged"):
        read_artifact(document)


@pytest.mark.parametrize(
    ("schema", "version", "before", "now"),
    [
        ("tilewright/single-summary", 3, {"core": "a", "model": "m"}, {"hardware": "a", "model": "m"}),
        (
            "tilewright/multi-summary",
            2,
            {"hardware": "a", "model": "causal", "cost_model": "m"},
            {"hardware": "a", "schedule_model": "causal", "model": "m"},
        ),
    ],
)
def test_renamed_keys_of_the_version_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schema: str, version: int, before: object, now: object
) -> None:
    """A summary of the previous version is read under the current names; older versions are refused."""
    path = tmp_path / "summary.json"
    for written, is_read in ((version, True), (version - 1, False)):
        monkeypatch.setitem(SCHEMA_VERSIONS, schema, written)
        write_document(path, schema, before, {})
        monkeypatch.undo()
        if is_read:
            assert read_artifact(path, schema).payload == now
        else:
            with pytest.raises(ArtifactError, match=f"version {written} was written by another version of tilewright"):
                read_artifact(path, schema)


def test_an_artifact_of_a_plug_in_that_is_not_installed(tmp_path: Path) -> None:
    """The message about an unknown key names the plug-ins of the artifact that are not installed."""
    path = tmp_path / "mapping.json"
    made_by = {"tilewright": "0", "code": "", "inputs": {}, "options": {}, PLUG_INS: {"tilewright-tree 1": "d"}}
    write_document(path, "tilewright/mapping", {"entries": [], "tree_pj": 1}, made_by)
    with pytest.raises(ArtifactError, match="unknown key 'tree_pj'; it was made with tilewright-tree 1, which is not"):
        read_object(Mapping, path, "tilewright/mapping")
