"""Digests of what people wrote."""

import subprocess
import sys
from pathlib import Path

from tilewright.artifacts.digests import input_digest


def digest_of(path: Path, text: str) -> str:
    """Digest of a YAML file with this text."""
    path.write_text(text)
    return input_digest(path)


def test_input_digest_is_of_what_yaml_says(tmp_path: Path) -> None:
    """Comments, blanks and quotes do not count; values and the order of memories do."""
    path = tmp_path / "core.yaml"
    first = digest_of(path, "name: a\nmemories: {x: 1, y: 2}\n")
    assert digest_of(path, '# words\nname: "a"\n\nmemories:\n  x: 1\n  y: 2 # more\n') == first
    assert digest_of(path, "name: a\nmemories: {x: 1, y: 3}\n") != first
    assert digest_of(path, "name: a\nmemories: {y: 2, x: 1}\n") != first
    assert digest_of(path, "name: 'a'\nmemories: {x: '1', y: 2}\n") != first


def test_input_digest_of_broken_files(tmp_path: Path) -> None:
    """A file that is missing or not YAML has a digest too: the rule that reads it says what is wrong."""
    assert input_digest(tmp_path / "none.yaml") == "missing"
    assert digest_of(tmp_path / "a.yaml", "a: [") != digest_of(tmp_path / "a.yaml", "a: [[")


def test_snakefile_imports_nothing_heavy() -> None:
    """What the Snakefile imports at every parse loads none of the heavy libraries."""
    code = (
        "import sys; import tilewright.artifacts.step_code, tilewright.cli.config, tilewright.yamlfile;"
        "print([m for m in ('numpy','pandas','onnx','numba','pydantic','networkx','matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
