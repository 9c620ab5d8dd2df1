"""The cache of machine code: same results as Numba, never outdated, never damaged."""

import ast
import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tilewright
from tilewright.base import compiled
from tilewright.base.noted_files import NUMBA_FILES, NotedFolder, damaged_caches, trust_as_noted
from tilewright.base.record_pointer import pointer_to
from tilewright.cost.problem import Problem, new_record
from tilewright.cost.workspace import new_workspace
from tilewright.mapping.constraints import MappingConstraints
from tilewright.multicore.scheduling.bounds.paths_kernel import longest_paths
from tilewright.multicore.scheduling.state_record import GRAPH
from tilewright.pipeline.sources import parse_accelerator, parse_workload
from tilewright.search.blocks import cost_rows, write_block
from tilewright.search.evaluate import prepare
from tilewright.search.loma_kernel import BLOCK_DTYPE, cost_block
from tilewright.search.options import SearchOptions

PACKAGE = Path(tilewright.__file__).parent
ORDERS = 48
"""Number of loop orders in a small block; Python evaluates forty a second."""


@pytest.fixture
def problem() -> Problem:
    """A convolution of ResNet-18 on a weight-stationary core."""
    layer = parse_workload("config/workload/resnet18.onnx").layers_in_order[1].layer
    core = parse_accelerator("config/hardware/zigzag/tpu_like.yaml").cores[0]
    assert layer is not None
    links = MappingConstraints("any").memory_operand_links
    unrolling = (("D1", (("K", 32),)), ("D2", (("C", 32),)))
    return prepare(layer, core, links, unrolling, SearchOptions()).arrays


def small_block() -> np.record:
    """Return some orders of six loops: K 2, OX 56, OY 56, C 2, FX 3, FY 3 by dimension index."""
    orders = np.array(list(itertools.permutations(range(6))))
    return write_block(new_record(BLOCK_DTYPE), [1, 3, 4, 5, 6, 7], [2, 56, 56, 2, 3, 3], orders[:: 720 // ORDERS])


def test_machine_code_gives_what_python_gives(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stored cost model and its source under Python leave the same bytes in block and workspace."""
    ours, theirs = small_block(), small_block()
    first, second = new_workspace(), new_workspace()
    cost_rows(problem, first, ours, ORDERS)
    monkeypatch.setattr(compiled.Kernel, "__call__", lambda self, *arguments: self.py_func(*arguments))
    with np.errstate(all="ignore"):  # kernels divide by zero without a warning
        cost_block(problem, second, theirs, ORDERS)
    assert ours.fitting == ORDERS
    assert len(set(ours.latency_cycles[:ORDERS].tolist())) > 4
    assert ours.tobytes() == theirs.tobytes()
    assert first.totals.tobytes() == second.totals.tobytes()
    assert first.words.tobytes() == second.words.tobytes()


def chain() -> tuple[np.record, list[np.ndarray]]:
    """Return two computation nodes of 3 and 4 cycles, the second after the first, with the arrays of the record."""
    arrays = {
        "head": [0, 0],
        "runtime": [3, 4],
        "tail": [0, 0],
        "waiting": [0, 1],
        "queue": [0, 0],
        "start": [0, 1, 1],
        "successor": [1],
        "delay": [0],
        "mark": [0, 0],
    }
    record: np.record = np.zeros(1, GRAPH).view(np.recarray)[0]
    record["node_count"] = 2
    kept = []
    for name, values in arrays.items():
        kept.append(np.array(values, np.int64))
        record[name] = pointer_to(kept[-1])
    return record, kept


def test_machine_code_gives_what_numba_gives() -> None:
    """The stored entry point of a small kernel and Numba's dispatcher leave the same numbers."""
    (ours, kept), (theirs, others) = chain(), chain()
    compiled.native_function(longest_paths, (GRAPH,))(ours, 0)
    longest_paths(theirs, 0)
    assert (ours["finished"], ours["latency"]) == (theirs["finished"], theirs["latency"]) == (2, 7)
    assert [array.tolist() for array in kept] == [array.tolist() for array in others]


def test_a_damaged_object_file_is_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A damaged object file is compiled again and not run."""
    monkeypatch.setattr(compiled, "cache_directory", lambda: tmp_path)
    compiled.native_function.__wrapped__(longest_paths, (GRAPH,))
    (stored,) = tmp_path.glob("*.o")
    intact = stored.read_bytes()
    for damaged in (intact[:-100], intact.replace(b"\n", b"", 1), b"", intact[:-1] + bytes([intact[-1] ^ 1])):
        stored.write_bytes(damaged)
        assert compiled._read(stored) is None
    record, _kept = chain()
    compiled.native_function.__wrapped__(longest_paths, (GRAPH,))(record, 0)
    assert compiled._read(stored) is not None
    assert (record["finished"], record["latency"]) == (2, 7)


def test_damaged_files_of_numba_are_not_read(tmp_path: Path) -> None:
    """A changed or unknown file of Numba is deleted before Numba reads it."""
    numba = tmp_path / "kernels/digest/numba"
    intact, changed, unknown = (numba / name for name in ("a/f.1.nbc", "a/f.nbi", "b/g.1.nbc"))
    for path in (intact, changed, unknown):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"code of " + path.name.encode())
    NotedFolder(numba, NUMBA_FILES).note()
    assert damaged_caches(tmp_path) == []
    changed.write_bytes(b"Code of f.nbi")
    unknown.with_name("h.1.nbc").write_bytes(b"more")
    assert damaged_caches(tmp_path) == [changed]
    unknown.unlink()
    assert damaged_caches(tmp_path) == [changed]
    note = numba / "digests.txt"
    content = note.read_text("utf-8")
    note.write_text(content.replace("a/f.1.nbc", "a/f.0.nbc"), "utf-8")
    assert damaged_caches(tmp_path) == [note]
    note.write_text(content, "utf-8")
    trust_as_noted.__wrapped__(numba, NUMBA_FILES)
    assert sorted(path.name for path in tmp_path.rglob("*.nb?")) == ["f.1.nbc"]


def test_what_another_process_writes_is_not_damaged(tmp_path: Path) -> None:
    """A file that a running process writes does not count as damaged.

    If the process is killed before it notes the file's contents, the file counts as damaged.
    """
    numba = tmp_path / "kernels/digest/numba"
    numba.mkdir(parents=True)
    (numba / "f.nbi").write_bytes(b"index")
    NotedFolder(numba, NUMBA_FILES).note()
    program = f"""
from pathlib import Path
from tilewright.base.noted_files import NotedFolder
folder = NotedFolder(Path({str(numba)!r}), {NUMBA_FILES!r})
folder.take_into_use()
(folder.folder / "f.nbi").write_bytes(b"index, with more")
print("written", flush=True)
input()
"""
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout
        assert other.stdout.readline() == b"written\n"
        assert damaged_caches(tmp_path) == []
        other.kill()
        other.wait()
    assert damaged_caches(tmp_path) == [numba / "f.nbi"]


def test_an_installed_package_stores_kernels_in_its_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An installed package stores kernels in a folder of its environment that depends on the sources."""
    package = tmp_path / "environment" / "lib" / "site-packages" / "tilewright"
    (package / "cost").mkdir(parents=True)
    monkeypatch.setattr(compiled, "_PACKAGE", package)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "environment"))
    folders = []
    for text in ("A = 1", "A = 2"):
        (package / "cost" / "kernel.py").write_text(text)
        folders.append(compiled.cache_directory.__wrapped__())
    assert {folder.parent for folder in folders} == {tmp_path / "environment" / ".cache" / "tilewright"}
    assert folders[0] != folders[1]
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "elsewhere"))
    assert compiled.cache_directory.__wrapped__() is None


def test_numba_caches_nothing_without_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numba caches nothing without a cache folder; its cache beside the sources would miss changes in other files."""
    for folder, caches in ((None, False), (compiled.cache_directory(), True)):
        monkeypatch.setattr(compiled, "cache_directory", lambda folder=folder: folder)
        dispatcher = compiled.Kernel(chain).dispatcher
        assert (type(dispatcher._cache).__name__ != "NullCache") == caches


def test_nothing_is_stored_where_there_is_no_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    """No object file is stored or read if there is no cache folder."""
    monkeypatch.setattr(compiled, "cache_directory", lambda: None)
    assert compiled._object_path(cost_block) is None
    assert compiled._read(None) is None
    compiled._store(None, "symbol", b"code")


def _kernel_sources() -> set[Path]:
    return {path for pattern in compiled._KERNEL_SOURCES for path in PACKAGE.glob(pattern)}


def test_every_constant_of_a_kernel_is_in_the_digest() -> None:
    """Each file from which a kernel takes constants is in the digest of the cache."""
    sources = _kernel_sources()
    kernels = [path for path in sources if "@kernel" in path.read_text()]
    assert len(kernels) >= 7
    for path in kernels:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tilewright."):
                home = PACKAGE.joinpath(*node.module.split(".")[1:])
                names = [home / name.name for name in node.names] if home.is_dir() else [home]
                for origin in (name.with_suffix(".py") for name in names):
                    assert origin in sources, f"{path.name} takes names from {origin.name}, outside of the digest"


def test_every_file_with_kernels_is_in_the_digest() -> None:
    """No module outside the declared sources defines a kernel."""
    with_kernels = {path for path in PACKAGE.rglob("*.py") if "\n@kernel\n" in path.read_text()}
    assert with_kernels <= _kernel_sources()
