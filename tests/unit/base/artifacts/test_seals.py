"""Seals of files: any changed bit is noticed, and other readers of the format still read the file."""

import io
import json
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from tilewright.base.artifacts.columns import packed, unpacked
from tilewright.base.artifacts.digests import canonical_text, document_text
from tilewright.base.artifacts.envelope import read_artifact, read_beside, write_document, write_rows
from tilewright.base.artifacts.seals import (
    IS_SEALED,
    may_have_been_sealed,
    read_sealed,
    sealed_document,
    sealed_parquet,
)
from tilewright.base.artifacts.verification import verify_folder
from tilewright.base.errors import ArtifactError
from tilewright.designs.stamped_tables import digest_in, read_stamped, write_stamped
from tilewright.results.text_tables import write_parquet
from tilewright.search.store import Store

MADE_BY = {"tilewright": "0", "code": "ab", "inputs": {"workload": "cd"}, "options": {"x": 1e-7}}
TABLE = pandas.DataFrame({"index": [0, 1], "design": ["a", "b"], "energy_pj": [160020.0, 1e300], "more": [np.nan, 2.0]})


def write_document_file(path: Path) -> None:
    """Write an object with a head and its provenance."""
    write_document(path, "tilewright/checks", {"checks": [1.5, 1e-7, "é\x1b"]}, MADE_BY)


def write_row_file(path: Path) -> None:
    """Write a table of rows."""
    write_rows(path, "tilewright/layers", [{"a": 1}, {"b": 2.5e30}], MADE_BY)


def write_arrays(path: Path) -> None:
    """Write an archive of arrays."""
    path.write_bytes(packed({"a": np.arange(50), "b": np.zeros(3)}))


def write_shard_file(path: Path) -> None:
    """Write a shard of a space."""
    write_stamped(path, TABLE, {"schema": "tilewright/shard", "digest": "abc", "excluded": {}})


def write_plain_document(path: Path) -> None:
    """Write an object of a report."""
    path.write_bytes(sealed_document(document_text({"shares": [0.5, 2e-9]})))


KINDS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "document": ("single/mine/checks.json", write_document_file),
    "rows": ("single/mine/layers.jsonl", write_row_file),
    "arrays": ("multi/mine/schedule.npz", write_arrays),
    "shard": ("space/mine/shards/00000.parquet", write_shard_file),
    "table": ("space/mine/front.parquet", lambda path: write_parquet(TABLE, path)),
    "report": ("single/mine/report/bottlenecks.json", write_plain_document),
    "elsewhere": ("attention.json", write_plain_document),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_flip_of_a_bit_is_noticed(kind: str, tmp_path: Path) -> None:
    """A changed bit is noticed in each kind of file: in data, heads, provenance, footers and seals."""
    name, write = KINDS[kind]
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path)
    assert verify_folder(tmp_path).files == (path,)
    assert not verify_folder(tmp_path).problems
    content = path.read_bytes()
    tail = range(8 * len(content) - 8 * 70, 8 * len(content))
    bits = {*random.Random(25).sample(range(8 * len(content)), 200), *random.Random(26).sample(tail, 100)}
    for bit in bits:
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << (bit % 8)
        path.write_bytes(damaged)
        assert list(verify_folder(tmp_path).problems) == [path], bit
        with pytest.raises(ArtifactError):
            read_sealed(path, is_required=False)
    for length in (0, 1, 20, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        assert not IS_SEALED[path.suffix](path.read_bytes())


def test_a_shard_with_another_number_is_not_read(tmp_path: Path) -> None:
    """A shard with any changed bit is refused, and its digest is not read."""
    path = tmp_path / "00000.parquet"
    write_shard_file(path)
    content = path.read_bytes()
    for bit in random.Random(3).sample(range(8 * len(content)), 150):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << (bit % 8)
        path.write_bytes(damaged)
        assert digest_in(path, "tilewright/shard") == ""
        with pytest.raises(Exception, match="damaged"):
            read_stamped(path, "tilewright/shard")
    path.write_bytes(content)
    assert read_stamped(path, "tilewright/shard")[0].equals(TABLE)


def test_other_readers_pass_over_seals(tmp_path: Path) -> None:
    """Other readers read sealed JSON, archives and Parquet files as before; JSON has one more key."""
    for name, write in KINDS.values():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path)
    assert json.loads((tmp_path / "attention.json").read_text())["shares"] == [0.5, 2e-9]
    assert pandas.read_parquet(tmp_path / "space/mine/front.parquet").equals(TABLE)
    assert pandas.read_parquet(tmp_path / "space/mine/shards/00000.parquet").equals(TABLE)
    with np.load(tmp_path / "multi/mine/schedule.npz") as arrays:
        assert arrays["a"].tolist() == list(range(50))
    with zipfile.ZipFile(tmp_path / "multi/mine/schedule.npz") as archive:
        assert archive.testzip() is None
    assert len(json.loads((tmp_path / "single/mine/layers.jsonl").read_text().splitlines()[-1])) == 3


def test_files_of_others_are_no_damaged_ones(tmp_path: Path) -> None:
    """Files that were never sealed are read where this is allowed, and verification passes over them."""
    TABLE.to_parquet(tmp_path / "theirs.parquet")
    (tmp_path / "theirs.json").write_text('{"a": 1}\n')
    (tmp_path / "theirs.jsonl").write_text('{"a":1}\n')
    np.savez(tmp_path / "theirs.npz", a=np.arange(3))
    for path in tmp_path.iterdir():
        assert not may_have_been_sealed(path, path.read_bytes())
        read_sealed(path, is_required=False)
    assert verify_folder(tmp_path).files == ()
    with pytest.raises(ArtifactError):
        unpacked((tmp_path / "theirs.npz").read_bytes(), "theirs.npz")


def test_entries_of_the_store_are_verified(tmp_path: Path) -> None:
    """An entry of the store is refused if it is damaged or under the name of another problem."""
    key, other = "ab" + "0" * 30, "ab" + "1" * 30
    store = Store(tmp_path / ".store")
    store.put(key, [])
    assert store.get(key) == []
    content = store.path_of(key).read_bytes()
    assert verify_folder(tmp_path).files == (store.path_of(key),)
    store.path_of(other).write_bytes(content)
    assert store.get(other) is None
    assert list(verify_folder(tmp_path).problems) == [store.path_of(other)]
    for bit in random.Random(4).sample(range(8 * len(content)), 200):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << (bit % 8)
        store.path_of(key).write_bytes(damaged)
        assert store.get(key) is None
        assert store.path_of(key) in verify_folder(tmp_path).problems


def test_files_beside_an_artifact_are_verified(tmp_path: Path) -> None:
    """A table beside an artifact is verified by the table's digest, which the artifact contains."""
    import hashlib

    table = tmp_path / "generations.csv"
    table.write_text("generation\n1\n")
    digest = hashlib.blake2b(table.read_bytes(), digest_size=16).hexdigest()
    artifact = tmp_path / "allocation.json"
    write_document(artifact, "tilewright/allocation", {}, {**MADE_BY, "files": {table.name: digest}})
    assert read_beside(table, artifact) == b"generation\n1\n"
    assert verify_folder(tmp_path).files == (artifact, table)
    table.write_text("generation\n3\n")
    with pytest.raises(ArtifactError, match="damaged"):
        read_beside(table, artifact)
    assert list(verify_folder(tmp_path).problems) == [table]


def test_sealed_bytes_depend_on_the_content_alone() -> None:
    """Equal content gives equal sealed bytes."""
    buffer = io.BytesIO()
    TABLE.to_parquet(buffer)
    assert sealed_parquet(buffer.getvalue()) == sealed_parquet(buffer.getvalue())
    assert packed({"a": np.arange(3)}) == packed({"a": np.arange(3)})


def test_provenance_is_part_of_what_is_verified(tmp_path: Path) -> None:
    """A changed digest of an input in the head of an artifact is noticed."""
    path = tmp_path / "single/mine/checks.json"
    write_document_file(path)
    path.write_text(path.read_text().replace('"cd"', '"ce"'))
    with pytest.raises(ArtifactError, match="its digest does not match"):
        read_artifact(path)
    assert canonical_text(MADE_BY)
