"""A file of one kind given as another: one problem names both kinds, without the content of the file."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tilewright.base.errors import InputError
from tilewright.base.file_kinds import (
    CONFIG,
    HARDWARE,
    ITEM_KEYS,
    MAPPING,
    PIPELINE,
    SPACE,
    TABLE_KEYS,
    WORKLOAD,
    kind_of,
)
from tilewright.base.yamlfile import YamlDocument, parse_yaml
from tilewright.cli.main import main
from tilewright.designs.space_reader import space_of
from tilewright.designs.space_schema import SpaceFile
from tilewright.hardware.system_schema import ConnectivityFile, GraphFile
from tilewright.hardware.yaml_reader import accelerator_of
from tilewright.hardware.yaml_schema import HardwareFile
from tilewright.mapping.yaml_reader import mapping_of
from tilewright.mapping.yaml_schema import MappingEntry
from tilewright.workload.yaml_reader import LayerEntry, workload_of

FILES = {
    HARDWARE: "name: x\nmemories: {}\noperational_array: {}\n",
    WORKLOAD: "- {id: 0, name: a, equation: 'O[k] += W[k] * I[k]', loop_dims: [K], loop_sizes: [4]}\n",
    MAPPING: "- {name: default, spatial_mapping: {D1: ['K, 4']}}\n",
    CONFIG: "model: corrected\nruns: {a: {hardware: x, workload: y}}\n",
    PIPELINE: "- {replace: Loma, stage: Salsa}\n",
    SPACE: "accelerator: x.yaml\nnetworks: [y.onnx]\naxes: {}\n",
}
NAMES = {
    HARDWARE: "a hardware file",
    WORKLOAD: "a workload file",
    MAPPING: "a mapping file",
    SPACE: "a design space",
}
SEEMS = NAMES | {CONFIG: "a configuration", PIPELINE: "a list of stages"}
READERS: dict[str, Callable[[YamlDocument], Any]] = {
    HARDWARE: accelerator_of,
    WORKLOAD: lambda document: workload_of(document, "net"),
    MAPPING: mapping_of,
    SPACE: space_of,
}


def told(wanted: str, text: str) -> str:
    """Return the message of the reader for a kind about a file."""
    with pytest.raises(InputError) as caught:
        READERS[wanted](parse_yaml(text, "it.yaml"))
    return str(caught.value)


@pytest.mark.parametrize(
    ("wanted", "given"), [(wanted, given) for given in FILES for wanted in READERS if wanted != given]
)
def test_another_kind_is_told_in_one_line(wanted: str, given: str) -> None:
    """The message says what the file seems to be, what is needed and what such a file contains."""
    said = told(wanted, FILES[given])
    assert said.startswith(f"it.yaml:1 seems to be {SEEMS[given]}, but {NAMES[wanted]} is needed (allowed: a ")
    assert "\n" not in said
    assert "'K, 4'" not in said


@pytest.mark.parametrize("wanted", READERS)
@pytest.mark.parametrize("text", ["hello", "3", "[1, 2]", "[a, [b]]", "~"])
def test_no_kind_at_all(wanted: str, text: str) -> None:
    """The message about a file that is only a text, a number or a list says so."""
    said = told(wanted, text)
    assert said.startswith("it.yaml:1 contains ")
    assert f"{NAMES[wanted]} is needed" in said
    assert "\n" not in said


def test_an_entry_without_its_dash() -> None:
    """The message about a mapping entry outside a list says that a list is needed."""
    assert "contains a table of keys, but a mapping file is needed (allowed: a list of entries" in told(
        MAPPING, "name: default\nspatial_mapping: {}\n"
    )


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("memorys: {}\noperation_array: {}\n", HARDWARE),
        ("- nmae: default\n  spatial_maping: {}\n", MAPPING),
        ("- equatoin: x\n  loop_dim: [K]\n", WORKLOAD),
        ("acelerator: x.yaml\n", SPACE),
        ("colour: blue\n", ""),
        ("- colour: blue\n", ""),
    ],
)
def test_misspelt_keys_tell_the_kind_too(text: str, kind: str) -> None:
    """Misspelt keys still identify the kind of a file."""
    assert kind_of(parse_yaml(text).data) == kind


def test_keys_are_those_of_the_schemas() -> None:
    """The keys that identify a kind are keys of its schema."""
    several = {*ConnectivityFile.model_fields, *GraphFile.model_fields}
    assert set(TABLE_KEYS[HARDWARE]) <= {*HardwareFile.model_fields, *several, "multipliers"}
    assert set(TABLE_KEYS[SPACE]) <= set(SpaceFile.model_fields)
    assert set(MappingEntry.model_fields) <= set(ITEM_KEYS[MAPPING])
    assert set(LayerEntry.model_fields) - {"name"} <= set(ITEM_KEYS[WORKLOAD])


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`map` and `validate` report each file of a wrong kind, with all files of a command at once."""
    mapping, hardware, network = (
        f"config/{name}"
        for name in ("mapping/zigzag/tpu_like.yaml", "hardware/zigzag/tpu_like.yaml", "workload/resnet18.onnx")
    )
    assert main(["map", "--hardware", mapping, "--workload", network, "--mapping", hardware, "--no-store"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert [line.partition(" (allowed")[0] for line in said] == [
        f"error: {mapping}:2 seems to be a mapping file, but a hardware file is needed",
        f"error: {hardware}:4 seems to be a hardware file, but a mapping file is needed",
    ]
    described = ["--workload", network, "--mapping", mapping, "--no-store"]
    assert main(["map", "--hardware", network, *described]) == 2
    assert capsys.readouterr().err == f"error: {network} is an ONNX model; a YAML file is needed\n"
    assert main(["map", "--hardware", hardware, *described, "--pipeline", hardware]) == 2
    assert "seems to be a hardware file, but a list of stages is needed" in capsys.readouterr().err
    assert main(["validate", "--kind", "config", hardware]) == 2
    assert "seems to be a hardware file, but a configuration is needed" in capsys.readouterr().err
