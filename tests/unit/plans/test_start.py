"""An earlier plan as the start of a search: the answer is no worse than this plan, on any hardware with its cores."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tilewright
from tilewright.base.errors import InputError
from tilewright.cli.main import main
from tilewright.hardware.system import MultiCoreAccelerator
from tilewright.pipeline.sources import parse_accelerator
from tilewright.plans.answer import Fusion

from tests.members import members
from tests.unit.cli.multi_core import HARDWARE, write_network
from tests.unit.multi_core.random_cases import RandomNetwork, further_parts, random_system, with_wider_links
from tests.unit.multi_core.runs import write_accelerator
from tests.unit.plans.cases import SHORT, random_case

EARLIER = SHORT | {"nb_plans": members(30, 10), "lpf_limit": 3}
FEW = EARLIER | {"nb_plans": 1}
"""Settings with fewer plans than the earlier search had."""


def with_memory(system: MultiCoreAccelerator, factor: float) -> MultiCoreAccelerator:
    """The system with the outermost on-chip memories multiplied in size."""
    cores = []
    for core in system.cores:
        largest = max(own.size_bits for own in core.memories)
        sizes = [int(own.size_bits * factor) if own.size_bits == largest else own.size_bits for own in core.memories]
        memories = [replace(own, size_bits=bits) for own, bits in zip(core.memories, sizes, strict=True)]
        cores.append(replace(core, memories=tuple(memories)))
    return replace(system, cores=tuple(cores))


def search(network: Path, hardware: Any, objective: str, **more: Any) -> Fusion:
    """The answer of a search."""
    found: Fusion = tilewright.fuse(network, hardware, objective=objective, **more)
    return found


def value(figures: Any, objective: str) -> float:
    """Latency, energy or EDP of figures, or of an answer."""
    latency, energy = figures["latency_cycles"], figures["energy_pj"]
    return {"latency": latency, "energy": energy, "EDP": latency * energy}[objective]  # type: ignore[no-any-return]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(members(3, 2)))
def test_more_memory_is_no_worse_with_the_plan_for_less_as_start(seed: int, tmp_path: Path) -> None:
    """A search for more memory that starts from the plan for less is no worse, for random networks and systems.

    On its own hardware, the start gives the figures that it had.
    """
    network, hardware = random_case(seed, tmp_path)
    objective = ("latency", "energy", "EDP")[seed % 3]
    less = search(network, hardware, objective, **EARLIER, output=tmp_path / "less")
    again = search(network, hardware, objective, **FEW, start=tmp_path / "less").document
    before = {name: less.document[name] for name in ("latency_cycles", "energy_pj", "edp")}
    assert again["start"] == before
    assert value(again, objective) <= value(before, objective)
    larger = with_memory(parse_accelerator(hardware), (1.3, 2, 4)[seed % 3])
    more = search(network, larger, objective, **FEW, start=tmp_path / "less" / "fusion.json").document
    assert value(more, objective) <= value(more["start"], objective)
    assert more["search"]["origins"][0]["origin"] == "start"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(members(30, 1)))
def test_a_further_part_is_no_worse_with_the_plan_without_it_as_start(seed: int, tmp_path: Path) -> None:
    """A search for one plan is no worse than its start if the system has a further core or link, multicast, or wider
    links.
    """
    draw = random.Random(seed // 5)
    network, system = RandomNetwork(draw).save(tmp_path), random_system(draw)
    better = {**further_parts(draw, system), "wider": with_wider_links(system)}
    name, changed = list(better.items())[seed % 5]
    objective = ("latency", "energy", "EDP")[seed % 3]
    given = write_accelerator(tmp_path / "given", system)
    less = search(network, given, objective, **EARLIER, output=tmp_path / "less").document
    grown = write_accelerator(tmp_path / name, {**system, **changed})
    more = search(network, grown, objective, **FEW, start=tmp_path / "less").document
    assert value(more, objective) <= value(less, objective) * (1 + 1e-12)


def test_what_does_not_fit_is_refused_with_reasons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Another network, other fixed choices, missing cores, and a file that is no answer are refused with reasons."""
    network = write_network(tmp_path)
    search(network, HARDWARE, "latency", **EARLIER, output=tmp_path / "first", layer_stacks=[[0], [1], [2]])
    words = ["--hardware", HARDWARE, "--workload", str(network), "--start", str(tmp_path / "first")]
    assert main(["fuse", *words, "--layer-stacks", "[[0, 1, 2]]", "--nb-plans", "1", "--jobs", "1"]) == 2
    assert "layer_stacks" in capsys.readouterr().err
    other, _ = random_case(3, tmp_path)
    with pytest.raises(InputError, match="is the plan of"):
        search(other, HARDWARE, "latency", **FEW, start=tmp_path / "first")
    (tmp_path / "torn.json").write_text(json.dumps({"schema": "tilewright/fusion"}))
    for wrong in (tmp_path / "torn.json", tmp_path / "absent"):
        with pytest.raises(InputError):
            search(network, HARDWARE, "latency", **FEW, start=wrong)


def test_the_answer_tells_what_the_start_gives(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The answer and the text state what the start gives, if there is a start."""
    network = write_network(tmp_path)
    words = ["fuse", "--hardware", HARDWARE, "--workload", str(network), "--nb-plans", "5", "--jobs", "1"]
    assert main([*words, "-o", str(tmp_path / "first")]) == 0
    assert "the start" not in capsys.readouterr().out
    assert main([*words, "--start", str(tmp_path / "first"), "-o", str(tmp_path / "second")]) == 0
    found = tilewright.load(tmp_path / "first" / "fusion.json")
    assert f"the plan of --start, unchanged: {found['latency_cycles']:,} cycles" in capsys.readouterr().out
