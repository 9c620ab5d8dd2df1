"""The configuration files of this repository, the published JSON Schemas, and the detection of a file's kind."""

import json
from pathlib import Path

import pytest
import yaml
from tilewright.cli.validate import validate_file

from tools.generate import AGAIN
from tools.validate_files import SCHEMAS, schema_text, write_schemas

ROOT = Path(__file__).resolve().parents[3]
CONFIGURED = [
    pytest.param(kind, path, id=f"{kind}-{path.stem}")
    for kind in ("hardware", "mapping", "workload", "space")
    for path in sorted((ROOT / "config" / kind).glob("*.y*ml"))
]


@pytest.mark.parametrize(("kind", "path"), CONFIGURED)
def test_the_files_in_config_are_valid(kind: str, path: Path) -> None:
    """The files of the default run have no problem."""
    assert validate_file(path)[:2] == (kind, [])


@pytest.mark.parametrize("kind", SCHEMAS)
def test_the_published_schemas_are_up_to_date(kind: str) -> None:
    """`workflow/schemas` is up to date with the models; `python -m tools.validate_files` writes it."""
    published = ROOT / "workflow" / "schemas" / f"{kind}.schema.json"
    assert published.read_text(encoding="utf-8") == schema_text(kind), AGAIN


def test_schemas_are_written_where_asked(tmp_path: Path) -> None:
    """Schemas are written into the given folder, one file a kind."""
    write_schemas(tmp_path / "new")
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == sorted(f"{k}.schema.json" for k in SCHEMAS)


@pytest.mark.parametrize("kind", SCHEMAS)
def test_every_field_is_described(kind: str) -> None:
    """Each key in the schemas has a description."""
    schema = json.loads(schema_text(kind))
    tables = [*schema.get("$defs", {}).values(), *([schema] if "properties" in schema else [])]
    assert tables
    for table in tables:
        for name, field in table.get("properties", {}).items():
            assert field.get("description"), f"{table['title']}.{name}"


@pytest.mark.parametrize(("kind", "path"), CONFIGURED)
def test_the_files_in_config_satisfy_the_schemas(kind: str, path: Path) -> None:
    """The JSON Schemas accept the files that the reader accepts."""
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(yaml.safe_load(path.read_text()), json.loads(schema_text(kind)))


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ("name: x\nmemories: {}\n", "hardware"),
        ("cores: {}\n", "hardware"),
        ("axes: {}\n", "space"),
        ("- id: 0\n  name: a\n  loop_dims: [K]\n", "workload"),
        ("- name: default\n", "mapping"),
        ("- name: default\n  spatial_mapping: {}\n", "mapping"),
        ("a: 1\n", ""),
        ("- 1\n", ""),
        ("text\n", ""),
        ("", ""),
    ],
)
def test_the_kind_is_told_by_the_keys(content: str, kind: str, tmp_path: Path) -> None:
    """The keys of a file tell its kind; a file without a recognizable kind is a problem."""
    file = tmp_path / "some.yml"
    file.write_text(content)
    found, problems, _ = validate_file(file)
    assert found == kind
    assert problems or kind == "mapping"
    assert all(problem.file == str(file) for problem in problems)


def test_a_broken_onnx_file_is_a_list_of_problems(tmp_path: Path) -> None:
    """A broken ONNX file is a workload with problems."""
    file = tmp_path / "net.onnx"
    file.write_bytes(b"no model")
    kind, problems, _ = validate_file(file)
    assert kind == "workload"
    assert problems
