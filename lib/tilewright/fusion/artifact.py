"""The CN graph as two files: `cn_graph.npz` with the columns, `cn_graph.json` with layers, stacks and shapes."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.artifacts.canonical import write_atomically
from tilewright.artifacts.codec import encode
from tilewright.artifacts.columns import packed, unpacked
from tilewright.artifacts.digests import DIGEST_BYTES
from tilewright.artifacts.envelope import REMEDY, write_document
from tilewright.artifacts.objects import read_object
from tilewright.errors import ArtifactError, Problem
from tilewright.fusion.graph import COLUMNS, CnGraph, CnLayer, CnLink, SourceTensor
from tilewright.workload.layer import Layer

SCHEMA = "tilewright/cn-graph"
_TYPES = {"edge_operand": np.int16, "read_operand": np.int16}


@dataclass(frozen=True)
class _Description:
    """What the JSON file holds."""

    network: str
    layers: tuple[CnLayer, ...]
    stacks: tuple[tuple[int, ...], ...]
    operands: tuple[str, ...]
    shapes: tuple[Layer, ...]
    links: tuple[CnLink, ...]
    sources: tuple[SourceTensor, ...]
    notices: tuple[str, ...]
    columns: str
    """Digest of the file with the columns."""


_FIELDS = ("network", "layers", "stacks", "operands", "shapes", "links", "sources", "notices")


def write_cn_graph(graph: CnGraph, json_path: Path | str, npz_path: Path | str, provenance: dict[str, Any]) -> str:
    """Write both files, each atomically, the same bytes for the same graph; returns the digest of the payload."""
    content = packed({name: getattr(graph, name).astype(_TYPES.get(name, np.int64)) for name in COLUMNS})
    write_atomically(npz_path, content)
    description = _Description(**{name: getattr(graph, name) for name in _FIELDS}, columns=_digest(content))
    return write_document(json_path, SCHEMA, encode(description), provenance)


def read_cn_graph(json_path: Path | str, npz_path: Path | str) -> CnGraph:
    """The graph of both files. Raises ArtifactError if one is missing or damaged, or if they are of two graphs."""
    description = read_object(_Description, Path(json_path), SCHEMA)
    try:
        content = Path(npz_path).read_bytes()
    except OSError as error:
        raise ArtifactError([Problem(f"cannot be read: {error.strerror}", str(npz_path))]) from error
    if _digest(content) != description.columns:
        message = f"artifact is damaged, or not of the graph that {json_path} describes; {REMEDY}"
        raise ArtifactError([Problem(message, str(npz_path))])
    arrays = unpacked(content, npz_path)
    columns: dict[str, Any] = {name: arrays[name] for name in COLUMNS}
    return CnGraph(**{name: getattr(description, name) for name in _FIELDS}, **columns)


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=DIGEST_BYTES).hexdigest()
