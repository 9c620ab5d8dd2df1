"""The files that artifacts were read from, where the artifacts are used."""

from collections.abc import Sequence
from pathlib import Path

from tilewright.errors import InputError
from tilewright.file_kinds import HARDWARE, MAPPING, WORKLOAD, kind_of
from tilewright.hardware.source import parse_accelerator
from tilewright.mapping.source import parse_mapping
from tilewright.stages.descriptions import WrittenFiles
from tilewright.workload.source import read_layers
from tilewright.yamlfile import load_yaml


def written_files(files: Sequence[Path]) -> tuple[WrittenFiles, list[str]]:
    """The files by their kinds, and what is unusual in them.

    What is wrong with one is left to the step that reads it: the artifact is what counts.
    """
    found: dict[str, str] = {}
    notices: list[str] = []
    for file in files:
        own: list[str] = []
        try:
            kind = kind_of(load_yaml(file).data)
            _read(file, kind, own)
        except InputError:
            continue
        found[kind] = str(file)
        notices += own
    return WrittenFiles(found.get(HARDWARE, ""), found.get(MAPPING, "")), notices


def _read(file: Path, kind: str, notices: list[str]) -> None:
    if kind == HARDWARE:
        parse_accelerator(file, notices)
    elif kind == MAPPING:
        parse_mapping(file, notices)
    elif kind == WORKLOAD:
        read_layers(file, notices)
