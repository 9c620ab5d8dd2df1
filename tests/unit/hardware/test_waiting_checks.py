"""Keys of calls, commands and requests in hardware files: values that are read, and values refused with their line."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tilewright.base.errors import InputError
from tilewright.cli.main import main
from tilewright.hardware.attributes import WAITING
from tilewright.hardware.core import CacheLevel
from tilewright.hardware.source import parse_accelerator

EXAMPLE = Path(__file__).parents[3] / "config/hardware/zigzag/tpu_like.yaml"
REQUESTS = {"request_latency_cycles": 300, "requests_in_flight": 16, "burst": "64 B"}
COMMANDS = {"command_iterations": 16, "command_latency_cycles": 66, "commands_in_flight": 8}


def document(core: dict[str, Any], array: dict[str, Any], memories: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The data of the example with further keys of the core, its array and its memories."""
    data: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text())
    data["operational_array"] |= array
    for name, keys in memories.items():
        data["memories"][name] |= keys
    return data | core


def outermost() -> str:
    """Return the name of the outermost memory in the example."""
    return list(yaml.safe_load(EXAMPLE.read_text())["memories"])[-1]


def innermost() -> str:
    """Return the name of the innermost memory in the example."""
    return next(iter(yaml.safe_load(EXAMPLE.read_text())["memories"]))


def test_all_keys_are_read() -> None:
    """All keys of each table are read, as numbers or as lists; sizes can have units."""
    top = {**REQUESTS, "page": "4 KiB", "page_cycles": 17, "row_dimensions": ["K", "C"], "line": "32 B"}
    top |= {"word_cycles": 0.5, "store_latency_cycles": 9, "store_burst": "16 B"}
    top["caches"] = [{"size": "1 KiB", "request_latency_cycles": 20}]
    array = COMMANDS | {"least_command_cycles": 4.5, "queued_commands": 3, "command_dimensions": ["OX"]}
    calls = {"start_cycles": 1000.5, "call_cycles": 230, "calls_in_flight": 2}
    data = document(calls, array, {outermost(): top})
    core = parse_accelerator(data).cores[0]
    assert core.waits
    assert dict(core.figures) == calls
    assert dict(core.operational_array.figures) == COMMANDS | {"least_command_cycles": 4.5, "queued_commands": 3}
    assert core.operational_array.command_dimensions == ("OX",)
    memory = core.memories[-1]
    assert dict(memory.figures) == {
        "request_latency_cycles": 300,
        "requests_in_flight": 16,
        "burst_bits": 512,
        "word_cycles": 0.5,
        "store_latency_cycles": 9,
        "store_burst_bits": 128,
        "line_bits": 256,
        "page_bits": 32768,
        "page_cycles": 17,
    }
    assert (memory.caches, memory.row_dimensions) == ((CacheLevel(8192, 20),), ("K", "C"))


def test_a_file_without_keys_does_not_wait() -> None:
    """A core whose keys are all 0 equals a core without these keys and does not wait."""
    core = parse_accelerator(yaml.safe_load(EXAMPLE.read_text())).cores[0]
    zeros = {one.key: 0 for one in WAITING if one.of == "core"}
    assert core == parse_accelerator(document(zeros, {}, {})).cores[0]
    assert not core.waits


def wrong() -> Iterator[tuple[str, dict[str, Any], dict[str, Any], dict[str, dict[str, Any]], str]]:
    """Yield (name, keys of the core, keys of the array, keys of memories, part of the message)."""
    top, low = outermost(), innermost()
    caches = [{"size": 4096, "request_latency_cycles": 20}, {"size": 4096, "request_latency_cycles": 10}]
    yield "negative", {"call_cycles": -1}, {}, {}, "call_cycles"
    yield "fraction of a call", {"calls_in_flight": 1.5}, {}, {}, "calls_in_flight"
    yield "infinite", {}, {}, {top: REQUESTS | {"request_latency_cycles": float("inf")}}, "request_latency_cycles"
    yield "latency alone", {}, {"command_latency_cycles": 3}, {}, "has no effect without `command_iterations`"
    yield "nothing in flight", {}, {"command_iterations": 3, "command_latency_cycles": 3}, {}, "`commands_in_flight`"
    yield "only in flight", {}, {"commands_in_flight": 3}, {}, "has no effect without `command_latency_cycles`"
    yield "least alone", {}, {"least_command_cycles": 3}, {}, "has no effect without `command_iterations`"
    yield "dimensions alone", {}, {"command_dimensions": ["OX"]}, {}, "has no effect without `command_iterations`"
    yield "twice", {}, COMMANDS | {"command_dimensions": ["OX", "OX"]}, {}, "is listed twice"
    yield "burst alone", {}, {}, {top: {"burst": 64}}, "has no effect without `request_latency_cycles`"
    yield "no burst", {}, {}, {top: {"request_latency_cycles": 3, "requests_in_flight": 1}}, "`burst`"
    yield "queue alone", {"calls_in_flight": 2}, {"queued_commands": 3}, {}, "without `command_iterations`"
    yield "queue without calls", {}, COMMANDS | {"queued_commands": 3}, {}, "has no effect without `calls_in_flight`"
    yield "words alone", {}, {}, {top: {"word_cycles": 1}}, "has no effect without `request_latency_cycles`"
    yield "stores alone", {}, {}, {top: REQUESTS | {"store_latency_cycles": 3}}, "has no effect without `caches`"
    yield "store alone", {}, {}, {top: REQUESTS | {"store_burst": 8}}, "has no effect without `store_latency_cycles`"
    yield "line alone", {}, {}, {top: REQUESTS | {"line": 512}}, "has no effect without `caches`"
    yield "page alone", {}, {}, {top: REQUESTS | {"page": "4 KiB"}}, "has no effect without `page_cycles`"
    yield "page cycles alone", {}, {}, {top: REQUESTS | {"page_cycles": 3}}, "has no effect without `page`"
    yield "small page", {}, {}, {top: REQUESTS | {"page": "32 B", "page_cycles": 3}}, "is smaller than a request"
    yield "caches alone", {}, {}, {top: {"caches": caches[:1]}}, "has no effect without `request_latency_cycles`"
    yield "rows alone", {}, {}, {top: {"row_dimensions": ["K"]}}, "has no effect without `request_latency_cycles`"
    yield "equal caches", {}, {}, {top: REQUESTS | {"caches": caches}}, "must be larger than the cache before it"
    yield (
        "faster cache",
        {},
        {},
        {top: REQUESTS | {"caches": caches}},
        "must not be below the latency of the cache before it",
    )
    slow = [{"size": 4096, "request_latency_cycles": 301}]
    yield "slow cache", {}, {}, {top: REQUESTS | {"caches": slow}}, "is above `request_latency_cycles` of the memory"
    yield "inner memory", {}, {}, {low: REQUESTS}, "only requests to the outermost memory take time"
    yield "misspelt", {"call_cycle": 3}, {}, {}, "did you mean 'call_cycles'"


@pytest.mark.parametrize("case", list(wrong()), ids=lambda case: case[0])
def test_what_has_no_effect_or_contradicts_is_refused(
    case: tuple[str, dict[str, Any], dict[str, Any], dict[str, dict[str, Any]], str], tmp_path: Path, capsys: Any
) -> None:
    """A key without effect or in contradiction is refused with exit code 2, its file and its line."""
    _, core, array, memories, said = case
    file = tmp_path / "core.yaml"
    file.write_text(yaml.safe_dump(document(core, array, memories), sort_keys=False))
    assert main(["validate", str(file)]) == 2
    errors = [line for line in capsys.readouterr().err.splitlines() if said in line]
    assert errors, said
    assert f"{file}:" in errors[0]


def test_all_problems_are_told_at_once() -> None:
    """Problems of the core, its array and its memories are reported together."""
    data = document({"call_cycles": -1}, {"commands_in_flight": 3}, {outermost(): {"burst": 64, "page": 64}})
    with pytest.raises(InputError) as error:
        parse_accelerator(data)
    text = str(error.value)
    assert all(key in text for key in ("call_cycles", "commands_in_flight", "burst", "page"))


def test_an_unusual_dimension_is_noted() -> None:
    """An unusual loop dimension gets a notice with the nearest usual one."""
    notices: list[str] = []
    data = document({}, COMMANDS | {"command_dimensions": ["OXX"]}, {})
    from tilewright.hardware.yaml_reader import read_accelerator

    read_accelerator(data, notices)
    assert any("OXX" in notice and "OX" in notice for notice in notices)


def test_a_core_that_only_stores_has_no_keys(tmp_path: Path, capsys: Any) -> None:
    """A core that only stores refuses all keys of waiting, because no layer runs on it."""
    file = tmp_path / "dram.yaml"
    data = document({"type": "offchip", "call_cycles": 3}, COMMANDS, {outermost(): REQUESTS})
    file.write_text(yaml.safe_dump(data, sort_keys=False))
    assert main(["validate", str(file)]) == 2
    said = capsys.readouterr().err
    assert said.count("no layer runs on a core that only stores data") == 1 + len(COMMANDS) + len(REQUESTS)


def test_two_outermost_memories_cannot_both_have_requests() -> None:
    """Request keys on two outermost memories, one for weights and one for other data, are refused."""
    data = document({}, {}, {outermost(): REQUESTS})
    memories = data["memories"]
    top = memories[outermost()]
    memories["dram_weights"] = top | {
        "operands": ["I2"],
        "ports": [{"name": "r", "type": "read", "bandwidth_min": 64, "bandwidth_max": 64, "allocation": ["I2, tl"]}],
    }
    memories[outermost()] = top | {
        "operands": ["I1", "O"],
        "ports": [
            {
                "name": "rw",
                "type": "read_write",
                "bandwidth_min": 64,
                "bandwidth_max": 64,
                "allocation": ["I1, tl", "O, tl", "O, fl"],
            }
        ],
    }
    with pytest.raises(InputError, match=f"only requests to one memory take time; {outermost()} has the key, too"):
        parse_accelerator(data)
