"""The benchmark beside stream-dse 2.1.1: equal CPU time, the joined mapping, and the Python that stream-dse needs."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

BENCHMARKS = Path(__file__).resolve().parents[4] / "benchmarks"


@pytest.fixture(name="modules")
def _modules(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The benchmark's programs, imported as modules: (stream_two, child, groups, setup_environment)."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import child
    import stream_dse_2.groups
    import stream_dse_2.setup_environment
    import stream_two

    return stream_two, child, stream_dse_2.groups, stream_dse_2.setup_environment


@pytest.mark.parametrize(("used", "tries"), [([9.0], 1), ([10.5, 9.9], 2), ([14.0, 11.0, 10.0], 3)])
def test_a_result_that_took_more_than_the_peer_is_discarded(
    modules: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, used: list[float], tries: int
) -> None:
    """The row has the result of the first process that stays within the peer's CPU seconds; the limit falls
    each time.
    """
    stream_two, child, *_ = modules
    limits: list[float] = []

    def run(command: list[str], _environment: dict[str, str]) -> Any:
        limits.append(float(command[command.index("--fusion-cpu-budget-s") + 1]))
        file = Path(command[command.index("-o") + 1]) / "fusion.json"
        file.write_text(json.dumps({"payload": {"latency_cycles": 100 + len(limits)}}))
        return child.ChildRun(0.0, used[len(limits) - 1], 0.0, "")

    monkeypatch.setattr(stream_two, "run_child", run)
    row = stream_two.searched({"cpu_seconds": 10.0, "hardware": "system.yaml"}, tmp_path, None, 0)
    assert (row["cycles"], row["cpu_seconds"]) == (100 + tries, used[-1])
    assert row["cpu_seconds"] <= 10.0
    assert len(limits) == tries
    assert limits == sorted(set(limits), reverse=True)


def test_a_search_that_always_takes_more_than_the_peer_has_no_row(
    modules: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The error message has the peer's CPU seconds."""
    stream_two, child, *_ = modules

    def run(command: list[str], _environment: dict[str, str]) -> Any:
        (Path(command[command.index("-o") + 1]) / "fusion.json").write_text('{"payload": {"latency_cycles": 1}}')
        return child.ChildRun(0.0, 4.0, 0.0, "")

    monkeypatch.setattr(stream_two, "run_child", run)
    with pytest.raises(RuntimeError, match=r"more than the 3\.0 CPU s"):
        stream_two.searched({"cpu_seconds": 3.0, "hardware": "system.yaml"}, tmp_path, None, 0)


def test_groups_of_all_files_are_joined_with_names_of_their_own(modules: Any, tmp_path: Path) -> None:
    """The joined mapping has all layers and groups, though all files of stream-dse give their group the same name."""
    for place, layer in enumerate(("Conv1", "Conv2")):
        group = {"name": "Fused_Group_1", "layers": [layer], "intra_core_tiling": [{"dim": f"{layer}.D0", "tile": 1}]}
        entry = {"name": layer, "core_allocation": [[0, 1]], "inter_core_tiling": [[{"dim": "D2", "split": 2}]]}
        folder = tmp_path / f"group_{place}"
        folder.mkdir()
        (folder / "mapping.yaml").write_text(yaml.safe_dump({"layers": [entry], "fused_groups": [group]}))
    whole = modules[2].joined(tmp_path, 2)
    assert [layer["name"] for layer in whole["layers"]] == ["Conv1", "Conv2"]
    assert [(group["name"], group["layers"]) for group in whole["fused_groups"]] == [
        ("group_0", ["Conv1"]),
        ("group_1", ["Conv2"]),
    ]


def test_a_missing_or_old_python_is_told(modules: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says which version of Python is needed and how to name its program."""
    setup = modules[3]
    with pytest.raises(RuntimeError, match=r"no program python0\.1: .* needs Python 3\.12 or newer; --python names"):
        setup.interpreter("python0.1")
    monkeypatch.setattr(setup, "OLDEST", (99, 0))
    with pytest.raises(RuntimeError, match=r"is Python 3.* needs Python 3\.12 or newer"):
        setup.interpreter(sys.executable)
    monkeypatch.setattr(setup, "OLDEST", (3, 0))
    assert setup.interpreter(sys.executable) == sys.executable


def test_the_table_has_the_newest_row_of_each_pair(modules: Any, tmp_path: Path) -> None:
    """The table has the newest row of each pair, ordered by network and then by system."""
    stream_two = modules[0]
    pairs = [("simba", "two_conv"), ("simba_small", "two_conv"), ("fusemax", "resnet18"), ("simba", "two_conv")]
    file = tmp_path / "rows.jsonl"
    file.write_text(
        "".join(
            json.dumps({"system": system, "network": network, "number": number}) + "\n"
            for number, (system, network) in enumerate(pairs)
        )
    )
    assert [row["number"] for row in stream_two.stored_rows(file)] == [2, 1, 3]
