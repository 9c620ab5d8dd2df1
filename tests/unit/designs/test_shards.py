"""Shards of a space: contents, independence from the way they are made, and kept results."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas
import pytest
from tilewright.base.errors import InputError
from tilewright.base.yamlfile import load_yaml
from tilewright.designs import explore
from tilewright.designs.answer import answer_of
from tilewright.designs.evaluate import NetworkEvaluator
from tilewright.designs.parts import SHARD_SCHEMA, ShardDigests, shards_of
from tilewright.designs.shard import ShardMaker, read_shards
from tilewright.designs.space_reader import read_space
from tilewright.designs.stamped_tables import digest_in
from tilewright.designs.table_files import space_table
from tilewright.pipeline.sources import parse_accelerator, parse_workload

TINY = Path(__file__).resolve().parents[2] / "workflow" / "tiny"


def ignore(count: int) -> None:
    """Ignore progress."""


def space_data(folder: Path, **changes: Any) -> dict[str, Any]:
    """Return a space of 24 designs on two networks: 3 are excluded, others fit no layer or are invalid."""
    for name in ("hardware/wide.yaml", "mapping/free.yaml", "workload/two_layers.yaml"):
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        shutil.copy(TINY / name, folder / name)
    shutil.copy(TINY / "workload" / "two_layers.yaml", folder / "workload" / "again.yaml")
    data = {
        "name": "small",
        "accelerator": str(folder / "hardware" / "wide.yaml"),
        "mapping": str(folder / "mapping" / "free.yaml"),
        "networks": {"first": str(folder / "workload/two_layers.yaml"), "again": str(folder / "workload/again.yaml")},
        "axes": {
            "lanes": {"path": "operational_array.sizes.0", "values": [2, 4, 8, 16]},
            "kib": {"values": [0.25, 16]},
            "read_pj": {"path": "memories.memory.r_cost", "values": [30, 50, -1]},
        },
        "laws": {"memories.memory.size": "kib * 8192", "memories.memory.area": "0.25 * kib + 0.125"},
        "constraints": ["lanes * kib <= 128", "latency_cycles <= 20000"],
        "options": {"objective": "energy", "lpf_limit": 3},
        "shard_designs": 5,
    }
    return data | changes


def table_of(data: dict[str, Any], jobs: int = 1) -> str:
    """Return the table of the whole space as text."""
    return space_table(answer_of(explore.explored(data, read_space(data), jobs, ignore))).to_csv(index=False)


def test_progress_counts_the_designs_that_are_evaluated(tmp_path: Path) -> None:
    """Progress counts only evaluated designs, without those excluded before evaluation."""
    data = space_data(tmp_path)
    space, counts = read_space(data), [0, 0]
    for number in range(2):  # the second time, all shards are up to date

        def advance(count: int, number: int = number) -> None:
            counts[number] += count

        explore.complete(data, space, tmp_path / "out", 1, advance)
    assert counts == [space.count_allowed()] * 2
    assert space.allowed_in(range(len(space))) == space.count_allowed() < len(space)


def complete(data: dict[str, Any], folder: Path) -> list[int]:
    """Make the missing shards and return their numbers."""
    space = read_space(data)
    missing = explore.shard_states(space, ShardDigests(space), folder).missing
    explore.complete(data, space, folder, 1, ignore)
    return [shard.number for shard in missing]


@pytest.mark.slow
def test_results_do_not_depend_on_how_they_are_made(tmp_path: Path) -> None:
    """The table does not depend on the number of processes or the size of shards, or on whether shards are stored."""
    data = space_data(tmp_path)
    expected = table_of(data)
    assert table_of(data, jobs=2) == expected
    for size in (1, 7, 100):
        sized = data | {"shard_designs": size}
        assert table_of(sized) == expected
        folder = tmp_path / f"of_{size}"
        assert complete(sized, folder) == list(range(-(-24 // size)))
        exploration, missing = explore.gathered(read_space(sized), folder)
        assert not missing
        assert space_table(answer_of(exploration)).to_csv(index=False) == expected


class _Interruption:
    """Progress that interrupts the exploration after some calls."""

    def __init__(self, calls: int) -> None:
        self.left = calls

    def __call__(self, count: int) -> None:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt


def evaluated(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that collects the designs evaluated from now on."""
    found: list[int] = []
    rows = ShardMaker.rows

    def seen(self: ShardMaker, indexes: Any) -> Any:
        found.extend(indexes)
        return rows(self, indexes)

    monkeypatch.setattr(ShardMaker, "rows", seen)
    return found


def test_designs_of_an_interrupted_shard_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Finished designs of an interrupted shard are kept and not evaluated again.
    The shards have the same bytes as without interruptions.
    """
    data = space_data(tmp_path, shard_designs=12)
    space, whole, folder = read_space(data), tmp_path / "whole", tmp_path / "parts"
    complete(data, whole)
    seen = evaluated(monkeypatch)
    for calls in (3, 4, 3):
        before = len(set(seen))
        with pytest.raises(KeyboardInterrupt):
            explore.complete(data, space, folder, 1, _Interruption(calls))
        exploration, missing = explore.gathered(space, folder)
        assert missing
        assert len(set(seen)) > before
        assert exploration.missing == 24 - len(set(seen))
        done = {*exploration.table["index"]}
        assert done < set(seen) | {-1}
        assert answer_of(exploration).exploration.table["status"].notna().all()
    explore.complete(data, space, folder, 1, ignore)
    assert sorted(seen) == list(range(24)), "a design was evaluated twice"
    files = [sorted((one / explore.SHARDS).iterdir()) for one in (whole, folder)]
    assert [one.name for one in files[0]] == [one.name for one in files[1]]
    assert [one.read_bytes() for one in files[0]] == [one.read_bytes() for one in files[1]]


def test_kept_designs_of_other_inputs_or_broken_lines_are_not_used(tmp_path: Path) -> None:
    """Kept designs are evaluated again after a change of the space or an incomplete line."""
    data, folder = space_data(tmp_path, shard_designs=24), tmp_path / "parts"
    with pytest.raises(KeyboardInterrupt):
        explore.complete(data, read_space(data), folder, 1, _Interruption(4))
    (file,) = (folder / explore.SHARDS).glob("*.jsonl")
    lines = file.read_text().splitlines(keepends=True)
    assert explore.gathered(read_space(data), folder)[0].missing == 8
    file.write_text("".join(lines)[:-5])
    assert explore.gathered(read_space(data), folder)[0].missing == 12
    changed = data | {"options": {"objective": "latency", "lpf_limit": 3}}
    assert explore.gathered(read_space(changed), folder)[0].missing == 24
    assert complete(data, folder) == [0]
    assert space_table(answer_of(explore.gathered(read_space(data), folder)[0])).to_csv(index=False) == table_of(data)


def test_every_row_is_a_design_on_a_network(tmp_path: Path) -> None:
    """Each row has the values of its design on a network or the reason of a failure; excluded designs are counted."""
    data = space_data(tmp_path)
    space = read_space(data)
    exploration = explore.explored(data, space, 1, ignore)
    assert sum(exploration.excluded.values()) == 3
    table = exploration.table
    assert len(table) == 2 * (24 - 3)
    assert table["status"].value_counts().to_dict().keys() == {"ok", "invalid", "infeasible"}
    network = parse_workload(TINY / "workload" / "two_layers.yaml", model="corrected")
    evaluator = NetworkEvaluator(network, load_yaml(TINY / "mapping" / "free.yaml").data, space.options)
    for row in table.to_dict("records"):
        design = space.design(row["index"])
        assert row["design"] == space.design_name(row["index"])
        assert {name: row[name] for name in design.values} == design.values
        if row["status"] == "invalid":
            with pytest.raises(InputError):
                parse_accelerator(design.hardware)
            assert row["reason"]
            continue
        cost = evaluator.cost(parse_accelerator(design.hardware))
        assert (row["status"], row["reason"]) == (cost.status, cost.reason)
        if row["status"] == "ok":
            assert (row["energy_pj"], row["latency_cycles"]) == (cost.energy_pj, cost.latency_cycles)
            assert row["edp_pj_cycles"] == cost.energy_pj * cost.latency_cycles
            assert row["unmet"] == ("latency_cycles <= 20000" if cost.latency_cycles > 20000 else "")


@pytest.mark.parametrize(
    ("changes", "made"),
    [
        ({}, []),
        ({"constraints": ["lanes * kib <= 128", "latency_cycles <= 10000"]}, []),
        ({"objectives": ["energy_pj"]}, []),
        ({"options": {"objective": "energy", "lpf_limit": 2}}, [0, 1, 2, 3, 4]),
        ({"laws": {"memories.memory.size": "kib * 8192", "memories.memory.area": "0.5"}}, [0, 1, 2, 3, 4]),
        ({"constraints": ["lanes * kib <= 64"]}, [3, 4]),
    ],
    ids=["nothing", "constraint on results", "objectives", "options", "laws", "constraint on designs"],
)
def test_what_a_change_makes_again(tmp_path: Path, changes: dict[str, Any], made: Sequence[int]) -> None:
    """A change makes again only the shards with changed designs, networks, mapping or options."""
    data = space_data(tmp_path)
    assert complete(data, tmp_path / "out") == [0, 1, 2, 3, 4]
    assert complete(data | changes, tmp_path / "out") == list(made)


def test_a_further_value_of_the_slowest_axis_keeps_full_shards(tmp_path: Path) -> None:
    """A further value of the slowest axis adds one shard and makes the last shard again, which was not full."""
    data = space_data(tmp_path)
    assert complete(data, tmp_path / "out") == [0, 1, 2, 3, 4]
    axes = data["axes"] | {"lanes": {"path": "operational_array.sizes.0", "values": [2, 4, 8, 16, 32]}}
    assert complete(data | {"axes": axes}, tmp_path / "out") == [4, 5]


def test_networks_and_mapping_are_part_of_every_shard(tmp_path: Path) -> None:
    """Changed contents of a mapping or network file make all shards again; changed comments do not."""
    data = space_data(tmp_path)
    complete(data, tmp_path / "out")
    mapping = tmp_path / "mapping" / "free.yaml"
    mapping.write_text("# the same\n" + mapping.read_text())
    assert complete(data, tmp_path / "out") == []
    mapping.write_text(mapping.read_text().replace("K, 4", "K, 2"))
    assert complete(data, tmp_path / "out") == [0, 1, 2, 3, 4]
    network = tmp_path / "workload" / "again.yaml"
    network.write_text(network.read_text().replace("[1, 8, 16]", "[1, 8, 32]"))
    assert complete(data, tmp_path / "out") == [0, 1, 2, 3, 4]


def test_what_is_damaged_is_made_again(tmp_path: Path) -> None:
    """Damaged shards are made again: other formats, other tables and truncated files; unneeded files are removed."""
    data = space_data(tmp_path)
    complete(data, tmp_path / "out")
    files = [tmp_path / "out" / "shards" / shard.file_name for shard in shards_of(read_space(data))]
    whole = [path.read_bytes() for path in files]
    files[0].write_bytes(b"PAR1")
    pandas.DataFrame({"a": [1]}).to_parquet(files[1])
    files[2].write_bytes(whole[2][:-20])
    (files[0].parent / "00077.parquet").write_bytes(whole[0])
    assert [digest_in(path, SHARD_SCHEMA) for path in files[:3]] == ["", "", ""]
    with pytest.raises(InputError, match="damaged"):
        read_shards([files[2]])
    assert complete(data, tmp_path / "out") == [0, 1, 2]
    assert [path.read_bytes() for path in files] == whole
    assert sorted(path.name for path in files[0].parent.iterdir()) == [path.name for path in files]


def test_an_interruption_keeps_finished_designs(tmp_path: Path) -> None:
    """An interrupted exploration keeps finished shards and says how many designs are missing."""
    data = space_data(tmp_path)
    space = read_space(data)
    told = 0

    def interrupt(count: int) -> None:
        nonlocal told
        told += count
        if told > 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        explore.complete(data, space, tmp_path / "out", 1, interrupt)
    exploration, missing = explore.gathered(space, tmp_path / "out")
    assert [shard.number for shard in missing] == [2, 3, 4]
    assert exploration.missing == len(space) - 14
    assert set(exploration.table["index"]) <= set(range(14))
    assert complete(data, tmp_path / "out") == [2, 3, 4]


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are looked up in /proc")
def test_processes_end_with_the_one_that_is_killed(tmp_path: Path) -> None:
    """All processes end with a killed parent; finished shards are kept, and a new run makes the same bytes."""
    lanes = {"path": "operational_array.sizes.0", "values": list(range(1, 400))}
    data = space_data(tmp_path, shard_designs=1, constraints=[])
    data["axes"] |= {"lanes": lanes}
    file, folder = tmp_path / "many.yaml", tmp_path / "out"
    file.write_text(json.dumps(data))
    command = [sys.executable, "-m", "tilewright", "explore", str(file), "-o", str(folder), "--jobs", "2"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        until(lambda: any((folder / "shards").glob("*.parquet")))
        workers = children(process.pid)
        process.kill()
    assert workers
    until(lambda: not any(is_alive(pid) for pid in workers))
    kept = {path.name: path.read_bytes() for path in (folder / "shards").glob("*.parquet")}
    space = read_space(file)
    shard = next(shard for shard in shards_of(space) if shard.file_name in kept)
    explore.complete(file, space, tmp_path / "again", 1, ignore, shard.number)
    assert (tmp_path / "again" / "shards" / shard.file_name).read_bytes() == kept[shard.file_name]


def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait for a condition that is soon true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the condition is still false"
        time.sleep(0.05)


def children(parent: int) -> list[int]:
    """Return the processes that a process has started."""
    found = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [int(pid) for pid in found]


def is_alive(pid: int) -> bool:
    """Return whether a process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_shards_without_any_row(tmp_path: Path) -> None:
    """A shard without allowed designs still counts the excluded ones."""
    data = space_data(tmp_path, constraints=["lanes <= 2"])
    complete(data, tmp_path / "out")
    exploration, missing = explore.gathered(read_space(data), tmp_path / "out")
    assert not missing
    assert exploration.excluded == {"lanes <= 2": 18}
    assert len(exploration.table) == 2 * 6
    assert space_table(answer_of(exploration)).to_csv(index=False) == table_of(data)


def test_all_networks_and_the_mapping_are_told_at_once(tmp_path: Path) -> None:
    """Faults of all networks are reported together before any evaluation."""
    data = space_data(tmp_path)
    space = read_space(data)
    for name in ("two_layers", "again"):
        path = tmp_path / "workload" / f"{name}.yaml"
        path.write_text(path.read_text().replace("operator_type: Conv", "operator_typ: Conv"))
    with pytest.raises(InputError) as raised:
        next(ShardMaker(space).rows([0]))
    assert len({problem.file for problem in raised.value.problems}) == 2
