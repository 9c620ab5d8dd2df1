"""Changes of the descriptions that must change the numbers of a run, and changes that must not."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilewright
import yaml
from tilewright.pipeline.stages import MultiCoreResult

from tests.unit.multi_core.runs import BUS, DUO, MIXED, branches, chain, write_accelerator, write_mapping

LINES = {"cn_define_mode": 1, "hint_loops": [("OY", "all")]}
SEARCH = {"lpf_limit": 4, "nb_ga_individuals": 4, "nb_ga_generations": 2}
SYSTEMS = {"links": DUO, "mixed": MIXED, "bus": BUS}
_COSTS = ("unit_energy", "r_cost", "w_cost", "unit_energy_cost")


def result(folder: Path, described: Any, network: Path, **settings: Any) -> MultiCoreResult:
    """Run all steps; `settings` replace the common ones."""
    energy_per_bit = settings.pop("energy_per_bit", "400 fJ")
    hardware = settings.pop("hardware", None) or write_accelerator(folder / "hw", described, energy_per_bit)
    found = tilewright.run_multi_core(network, hardware, write_mapping(folder), **{**LINES, **SEARCH, **settings})
    assert isinstance(found, MultiCoreResult)
    return found


def numbers(found: MultiCoreResult) -> tuple[Any, ...]:
    """Return all figures that a name must not change."""
    bounds = found.bounds
    assert bounds is not None
    times = found.artifact.schedule.start_cycles.tolist(), found.artifact.schedule.allocation.tolist()
    return found.latency_cycles, found.energy_pj, bounds.latency_cycles, bounds.energy_pj, *times


def changed(described: Any, change: Callable[[str, Any], Any]) -> Any:
    """Return a description with `change(key, value)` in place of each value that is no list or table."""
    if isinstance(described, dict):
        return {
            key: changed(value, change) if isinstance(value, dict | list) else change(str(key), value)
            for key, value in described.items()
        }
    return [changed(value, change) if isinstance(value, dict | list) else value for value in described]


def doubled(key: str, value: Any) -> Any:
    """Return twice the value of an energy, and other values as they are."""
    if key == "energy_per_bit":
        number, unit = value.split()
        return f"{2 * int(number)} {unit}"
    return 2 * value if key in _COSTS else value


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("objective", ["latency", "EDP"])
def test_twice_all_energies_are_twice_the_energy(system: str, objective: str, tmp_path: Path) -> None:
    """Twice all energies give twice the energy, and nothing else changes."""
    network = branches(tmp_path)
    one = result(tmp_path / "a", SYSTEMS[system], network, objective=objective)
    described = changed(SYSTEMS[system], doubled)
    two = result(tmp_path / "b", described, network, objective=objective, energy_per_bit="800 fJ")
    assert two.energy_pj == pytest.approx(2 * one.energy_pj, rel=1e-12)
    assert one.bounds is not None
    assert two.bounds is not None
    assert two.bounds.energy_pj == pytest.approx(2 * one.bounds.energy_pj, rel=1e-12)
    assert numbers(two)[4:] == numbers(one)[4:]
    assert (two.latency_cycles, two.bounds.latency_cycles) == (one.latency_cycles, one.bounds.latency_cycles)


def test_names_of_layers_and_tensors_change_nothing(tmp_path: Path) -> None:
    """Names of layers and tensors change no figure, whatever their alphabetical order."""
    networks = [chain(tmp_path / prefix, prefix) for prefix in ("z", "a_long_name_")]
    one, two = (result(tmp_path / f"{i}", DUO, network) for i, network in enumerate(networks))
    assert numbers(one) == numbers(two)


@pytest.mark.parametrize("system", SYSTEMS)
def test_core_files_may_be_copies_and_in_any_order(system: str, tmp_path: Path) -> None:
    """Copies of core files, renamed cores and reversed keys change no figure."""
    network = branches(tmp_path)
    one = result(tmp_path / "a", SYSTEMS[system], network)
    described = copy.deepcopy(SYSTEMS[system])
    for core_id, core in described["cores"].items():
        core["name"] = f"{9 - core_id}_renamed"
    path = write_accelerator(tmp_path / "b", described)
    for file in path.parent.glob("*.yaml"):
        content = yaml.safe_load(file.read_text())
        # Which of two memories comes first is part of a core's description, and so are the order of dimensions.
        file.write_text(yaml.safe_dump(dict(reversed(content.items())), sort_keys=False))
    assert numbers(result(tmp_path / "b", described, network, hardware=path)) == numbers(one)


def test_faster_links_never_raise_the_bound(tmp_path: Path) -> None:
    """Links of two or four times the width never raise the lower bound of latency."""
    network = branches(tmp_path)
    found = []
    for factor in (1, 2, 4):
        described = copy.deepcopy(MIXED)
        for link in described["links"]:
            link["bandwidth"] *= factor
        bounds = result(tmp_path / f"{factor}", described, network).bounds
        assert bounds is not None
        found.append(bounds.latency_cycles)
    assert found == sorted(found, reverse=True)


def test_a_core_that_runs_nothing_changes_no_schedule(tmp_path: Path) -> None:
    """An idle core changes no schedule if all layers keep their cores."""
    network = chain(tmp_path)
    costs = tilewright.cost
    found = []
    for cores in (2, 3):
        described = copy.deepcopy(DUO)
        for number in range(2, cores):
            described["cores"][number] = described["cores"][0] | {"name": "idle"}
            described["links"].append({"type": "link", "cores": [1, number], "bandwidth": 64, "energy_per_bit": "1 pJ"})
        hardware = write_accelerator(tmp_path / f"{cores}", described)
        cns = tilewright.cns(network, hardware, write_mapping(tmp_path), **LINES)
        placed = tilewright.schedule(costs(cns, lpf_limit=4), {"a": 0, "b": 1, "c": 0})
        found.append(placed)
    one, two = found
    assert (one.latency_cycles, one.energy_pj) == (two.latency_cycles, two.energy_pj)
    assert np.array_equal(one.artifact.schedule.start_cycles, two.artifact.schedule.start_cycles)


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("selection", ["latency", "memory"])
def test_the_mapping_file_of_a_result_reproduces_it(system: str, selection: str, tmp_path: Path) -> None:
    """The mapping file of a result gives the same schedule, although it allows each layer only its core."""
    network = branches(tmp_path)
    settings: dict[str, Any] = {"scheduler_candidate_selection": selection, "operands_to_prefetch": ["W"]}
    found = result(tmp_path / "a", SYSTEMS[system], network, **settings)
    (tmp_path / "fixed.yaml").write_text(found.mapping_text())
    hardware, mapping = tmp_path / "a" / "hw" / "system.yaml", tmp_path / "fixed.yaml"
    again = tilewright.run_multi_core(network, hardware, mapping, **{**LINES, **SEARCH, **settings})
    assert again.allocation.evaluations == 1
    assert (again.latency_cycles, again.energy_pj) == (found.latency_cycles, found.energy_pj)
    assert np.array_equal(again.artifact.schedule.start_cycles, found.artifact.schedule.start_cycles)


def test_an_exhaustive_search_is_never_worse_than_any_allocation(tmp_path: Path) -> None:
    """An exhaustive search is at least as good as each tried allocation in its objective."""
    network, hardware = chain(tmp_path), write_accelerator(tmp_path / "hw", BUS)
    cns = tilewright.cns(network, hardware, write_mapping(tmp_path), **LINES)
    costed = tilewright.cost(cns, lpf_limit=4)
    tried = [
        tilewright.schedule(costed, {"a": a, "b": b, "c": c})
        for a, b, c in ((0, 0, 0), (0, 1, 2), (2, 1, 2), (1, 1, 0))
    ]
    for objective, key in (("latency", "latency_cycles"), ("energy", "energy_pj"), ("EDP", "edp")):
        best = getattr(tilewright.allocate(costed, objective=objective), key)
        assert best <= min(getattr(one, key) for one in tried) * (1 + 1e-12)


def test_a_batch_of_two_is_twice_the_work(tmp_path: Path) -> None:
    """A batch of two images takes twice the energy on the core, twice the inputs and results, and the weights once."""
    from tests.unit.multi_core.runs import saved
    from tests.unit.multicore.nodes.networks import SAME, conv

    nodes = [conv("x", "w0", "a", **SAME), conv("a", "w1", "b", **SAME)]
    weights = {name: np.ones((4, 4, 3, 3), np.float32) for name in ("w0", "w1")}
    images = {"cn_define_mode": 1, "hint_loops": [("B", "all")]}
    whole = {"cn_define_mode": 1, "hint_loops": []}
    found = []
    for batch, tiling in ((1, whole), (2, images)):
        network = saved(tmp_path / f"{batch}", nodes, {"x": (batch, 4, 8, 8)}, weights)
        described = {**DUO, "cores": {0: DUO["cores"][0]}, "links": []}
        found.append(result(tmp_path / f"{batch}", described, network, **tiling).summary)
    one, two = found
    assert two["energy"]["on_core_pj"] == pytest.approx(2 * one["energy"]["on_core_pj"])
    assert two["coverage"]["mac_count"] == 2 * one["coverage"]["mac_count"]
    moved = [found["energy"]["causes"] for found in (one, two)]
    assert moved[1]["sink_output"]["bits"] == 2 * moved[0]["sink_output"]["bits"]
    image_bits, weight_bits = 4 * 8 * 8 * 8, 2 * 4 * 4 * 9 * 8
    assert [causes["off_chip_fetch"]["bits"] for causes in moved] == [
        weight_bits + image_bits,
        weight_bits + 2 * image_bits,
    ]
