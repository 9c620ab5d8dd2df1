"""Numbers for the next change of a run, where no wider port helps."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import tilewright
import yaml
from tilewright.cli.main import main
from tilewright.results import next_changes
from tilewright.results.bottlenecks import Bottlenecks
from tilewright.results.next_changes import ADVISED, TITLE, next_text

TINY = Path(__file__).resolve().parents[2] / "workflow" / "tiny"
WORKLOAD, MAPPING = TINY / "workload/two_layers.yaml", TINY / "mapping/free.yaml"


def hardware(units: int, bits: int = 2**16, size: str = "1 MiB") -> dict[str, Any]:
    """Hardware with `units` units, ports of the memory that are `bits` wide, and a buffer of `size` for inputs."""
    found: dict[str, Any] = yaml.safe_load((TINY / "hardware/wide.yaml").read_text())
    found["operational_array"]["sizes"] = [units]
    for port in found["memories"]["memory"]["ports"]:
        port["bandwidth_max"] = bits
    buffer = {**found["memories"]["register"], "operands": ["I1"], "size": size, "served_dimensions": ["D1"]}
    ways = (("r_port_1", "read", "I1, tl"), ("w_port_1", "write", "I1, fh"))
    kept = {"bandwidth_min": 8, "bandwidth_max": bits}
    buffer["ports"] = [{"name": name, "type": kind, **kept, "allocation": [way]} for name, kind, way in ways]
    memories = found["memories"]
    return {**found, "memories": {"register": memories["register"], "buffer": buffer, "memory": memories["memory"]}}


def explained(folder: Path, core: dict[str, Any]) -> Bottlenecks:
    """Bottlenecks of a run of two layers on `core`."""
    (folder / "core.yaml").write_text(yaml.safe_dump(core, sort_keys=False))
    options = {"objective": "latency", "lpf_limit": 3, "temporal_mapping_search_engine": "loma"}
    tilewright.map_workload(WORKLOAD, folder / "core.yaml", MAPPING, output=folder / "run", **options)
    return tilewright.explain(folder / "run")


def test_the_named_side_computes_in_the_same_cycles(tmp_path: Path) -> None:
    """The text names idle units, and the side of the array with which the loops take the same cycles."""
    found = explained(tmp_path, hardware(8))
    text = next_text(found)
    assert text.startswith(f"{TITLE}\n")
    assert found.array is not None
    free = [one for one in found.array.layers if not found.limits[one.layer].is_limited]
    assert free
    for layer in free:
        assert f"idle units: {layer.stall_cycles:,.0f} cycles" in text
        assert f"array: {layer.computing_cycles - layer.stall_cycles:,.0f} cycles" in text
    (units,) = set(
        re.findall(r"D1: 4 of 8 units work on average \(loops K 4\); with these loops, a side of (\d+)", text)
    )
    fitting = explained(tmp_path, hardware(int(units)))
    assert fitting.array is not None
    assert [one.computing_cycles for one in fitting.array.layers] == [
        one.computing_cycles for one in found.array.layers
    ]
    assert "idle units" not in next_text(fitting)


def test_layers_with_a_limiting_port_are_left_out(tmp_path: Path) -> None:
    """A layer that a wider port makes faster is not listed; a layer that no port makes faster is."""
    found = explained(tmp_path, hardware(8, bits=16))
    text = next_text(found)
    assert any(limit.is_limited for limit in found.limits.values())
    for layer, limit in found.limits.items():
        assert (f"  {layer} (" in text) != limit.is_limited
    for layer in found.layers:
        of_one = next_text(found.of_layer(layer))
        assert (f"  {layer}: " in of_one) != found.limits[layer].is_limited


@pytest.mark.parametrize("size", ["1 MiB", "8 B"])
def test_data_move_as_often_as_told(tmp_path: Path, size: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Data move at least once, more often with a small buffer, and the text has the ratio."""
    monkeypatch.setattr(next_changes, "_LEAST_OPERAND", 0.0)
    found = explained(tmp_path, hardware(8, bits=128, size=size))
    inner = [one for one in found.traffic if one.operand == "I" and not one.is_direct]
    moved, needed = sum(one.moved_bits for one in inner), sum(one.needed_bits for one in inner)
    assert all(one.moved_bits >= one.needed_bits > 0 for one in found.traffic)
    text = next_text(found)
    assert (moved > 1.5 * needed) == (size == "8 B")
    told = f"the accessed words have {moved / needed:.3g} times the bits of its data; 1 is the least within a layer"
    assert (told if size == "8 B" else "of the energy; its data move once") in text
    assert re.search(r"  O: .*; no inner memory holds its data", text)


def test_the_command_computes_the_effects(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The text of `explain` ends with a command of `advise` that runs; several cores and old runs have no such line."""
    explained(tmp_path, hardware(8))
    capsys.readouterr()
    given = ["--hardware", str(tmp_path / "core.yaml")]
    for options in ([], given):
        assert main(["explain", str(tmp_path / "run"), *options]) == 0
        (line,) = [line for line in capsys.readouterr().out.splitlines() if ADVISED in line]
        command = shlex.split(line.split("`")[1])
        assert command == ["tilewright", "advise", str(tmp_path / "run"), *options]
        assert main([*command[1:], "--no-search"]) == 0
        assert "operational_array.sizes.0" in capsys.readouterr().out
    (tmp_path / "run/mapping.json").unlink()
    (tmp_path / "run/accelerator.json").unlink()
    (tmp_path / "core.yaml").unlink()
    assert main(["explain", str(tmp_path / "run")]) == 0
    assert ADVISED not in capsys.readouterr().out
