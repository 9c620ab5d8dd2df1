"""Digests of inputs, canonical JSON and atomic writing."""

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tilewright.base.artifacts.digests import canonical_text, document_text, input_digest
from tilewright.base.artifacts.files import write_atomically
from tilewright.base.errors import InputError


def digest_of(path: Path, text: str) -> str:
    """Return the digest of a YAML file with this text."""
    path.write_text(text)
    return input_digest(path)


def test_input_digest_is_of_what_yaml_says(tmp_path: Path) -> None:
    """Comments, blanks and quotes do not change the digest of an input; values and the order of memories do."""
    path = tmp_path / "core.yaml"
    first = digest_of(path, "name: a\nmemories: {x: 1, y: 2}\n")
    assert digest_of(path, '# words\nname: "a"\n\nmemories:\n  x: 1\n  y: 2 # more\n') == first
    assert digest_of(path, "name: a\nmemories: {x: 1, y: 3}\n") != first
    assert digest_of(path, "name: a\nmemories: {y: 2, x: 1}\n") != first
    assert digest_of(path, "name: 'a'\nmemories: {x: '1', y: 2}\n") != first


def test_input_digest_knows_keys_that_are_given_twice(tmp_path: Path) -> None:
    """The digest of an input depends on a repeated key and on the line of its first occurrence."""
    file, found = tmp_path / "core.yaml", set()
    for text in ("a: 1\n", "a: 2\na: 1\n", "# words\na: 2\na: 1\n"):
        file.write_text(text)
        found.add(input_digest(file))
    assert len(found) == 3


def test_input_digest_of_broken_files(tmp_path: Path) -> None:
    """A missing or broken file has a digest too; the rule that reads the file reports the fault."""
    assert input_digest(tmp_path / "none.yaml") == "missing"
    assert digest_of(tmp_path / "a.yaml", "a: [") != digest_of(tmp_path / "a.yaml", "a: [[")


def test_snakefile_imports_nothing_heavy() -> None:
    """The modules that the Snakefile imports load no heavy library."""
    code = (
        "import sys; import tilewright.base.artifacts.step_code, tilewright.cli.config, tilewright.base.yamlfile;"
        "print([m for m in ('numpy','pandas','onnx','numba','pydantic','networkx','matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_text_keeps_the_given_order_and_exact_floats() -> None:
    """Canonical text keeps the order of keys and writes floats in their shortest exact form."""
    assert canonical_text({"b": 0.1 + 0.2, "a": [1, True, None]}) == '{"b":0.30000000000000004,"a":[1,true,null]}'


def test_document_ends_with_a_newline() -> None:
    """A document is text with a final newline."""
    assert document_text({"a": 1}).endswith("}\n")


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_numbers_that_json_lacks_are_refused(value: float) -> None:
    """NaN and infinities are refused by canonical JSON."""
    with pytest.raises(ValueError, match="JSON"):
        canonical_text({"a": value})


def test_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed write keeps the old content and leaves no further file."""
    path = tmp_path / "a.json"
    write_atomically(path, "old")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(InputError, match="cannot be written: disk full"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert [item.name for item in tmp_path.iterdir()] == ["a.json"]


def test_written_file_has_ordinary_permissions(tmp_path: Path) -> None:
    """A written file has the permissions of other new files."""
    write_atomically(tmp_path / "a", "text")
    (tmp_path / "b").write_text("text")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode
