"""Keys for zeros in hardware files: values that are read, and values refused with their place."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from tilewright.base.errors import InputError
from tilewright.hardware.core import RunLength, ZeroGating
from tilewright.hardware.source import parse_accelerator

EXAMPLE = Path(__file__).parents[3] / "docs/examples/accelerator.yaml"
CODE: dict[str, Any] = {"operands": ["I1", "O"], "run_bits": 5, "pairs": 3, "word": 64}
GATING: dict[str, Any] = {"operands": ["I1"], "reads_of": ["I2"]}


def document(gating: Any = None, code: Any = None, memory: str = "dram") -> dict[str, Any]:
    """The data of the example with keys for zeros."""
    data: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text())
    data["operational_array"] |= {} if gating is None else {"zero_gating": gating}
    data["memories"][memory] |= {} if code is None else {"run_length": code}
    return data


def problems_of(data: dict[str, Any]) -> str:
    """Return the message about a wrong file."""
    with pytest.raises(InputError) as refused:
        parse_accelerator(data)
    return str(refused.value)


def test_keys_are_read() -> None:
    """The keys are read, with units in sizes; a file without the keys has no gating and no code."""
    core = parse_accelerator(document(GATING, CODE | {"word": "8 B"})).cores[0]
    assert core.operational_array.zero_gating == ZeroGating(("I1",), ("I2",))
    assert [memory.run_length for memory in core.memories] == [None, None, RunLength(("I1", "O"), 5, 3, 64)]
    bare = parse_accelerator(document()).cores[0]
    assert bare.operational_array.zero_gating is None
    assert not any(memory.run_length for memory in bare.memories)


@pytest.mark.parametrize(
    ("gating", "code", "memory", "parts"),
    [
        ({"operands": ["I3"]}, None, "dram", ["zero_gating.operands[0]", "'I3'", "allowed: I1, I2"]),
        ({"operands": ["O"]}, None, "dram", ["zero_gating.operands[0]", "'O'"]),
        ({"operands": ["I1", "I1"]}, None, "dram", ["zero_gating.operands[1]: is listed twice"]),
        ({"operands": ["I1"], "reads_of": ["I1"]}, None, "dram", ["zero_gating.reads_of[0]: has no effect"]),
        ({"operands": ["I1"], "reads": ["I2"]}, None, "dram", ["zero_gating.reads", "did you mean 'reads_of'?"]),
        (None, CODE | {"word": 17}, "dram", ["dram.run_length.word", "no room for 3 pairs", "18 bits or more"]),
        (None, CODE | {"run_bits": 0}, "dram", ["dram.run_length.run_bits", "got 0"]),
        (None, CODE, "registers", ["registers.run_length.operands[0]", "does not hold", "allowed: O"]),
        (None, CODE | {"run_bit": 5}, "dram", ["run_length.run_bit", "did you mean 'run_bits'?"]),
    ],
)
def test_wrong_values_are_told_with_what_is_allowed(gating: Any, code: Any, memory: str, parts: list[str]) -> None:
    """Each wrong value is refused with its place and the allowed values."""
    said = problems_of(document(gating, code, memory))
    assert all(part in said for part in parts), said


def test_requests_and_codes_exclude_each_other() -> None:
    """A memory with run-length coded zeros cannot have requests, because requests count uncompressed bits."""
    data = document(None, CODE)
    data["memories"]["dram"] |= {"request_latency_cycles": 300, "requests_in_flight": 16, "burst": "64 B"}
    assert "dram.run_length: cannot be combined with `request_latency_cycles`" in problems_of(data)


def test_one_of_several_cores_is_refused(tmp_path: Path) -> None:
    """A system refuses a core file with keys for zeros, and the message names each key."""
    (tmp_path / "core.yaml").write_text(yaml.safe_dump(document(GATING, CODE)))
    system = {"name": "two", "cores": {0: "core.yaml", 1: "core.yaml"}, "core_connectivity": [{"cores": [0, 1]}]}
    (tmp_path / "system.yaml").write_text(yaml.safe_dump(system))
    with pytest.raises(InputError) as refused:
        parse_accelerator(tmp_path / "system.yaml")
    assert "zero_gating: zeros are modelled only on a single core" in str(refused.value)
    assert "run_length: zeros are modelled only on a single core" in str(refused.value)
