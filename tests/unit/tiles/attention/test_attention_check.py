"""The check of certificates of attentions: true certificates pass, and damage of any kind does not."""

import copy
import json
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
import tilewright
import yaml
from tilewright.base.errors import InputError
from tilewright.base.objectives import Objective
from tilewright.cli.attention import attention_problems
from tilewright.cli.main import main
from tilewright.results.checks import Check
from tilewright.tiles.attention.certificate_check import check_certificates, read_certified
from tilewright.tiles.attention.costs import AttentionCosts
from tilewright.tiles.attention.points import AttentionPoints
from tilewright.tiles.depth_first.options import LayerOptions

from tests.unit.tiles.attention.small_attention import MAPPING, described, hardware

Told = dict[str, Any]
WORKLOAD = described("prefill", 4, 4)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """The certificate that the verb writes for an attention that is best fused."""
    folder = tmp_path_factory.mktemp("attention")
    (found,) = tilewright.attention(
        WORKLOAD,
        hardware(),
        MAPPING,
        objective="EDP",
        lpf_limit=4,
        tile_units=[1],
        tile_queries=[2, 4],
        tile_heads=[2],
        tile_keys=[4, 8],
        output=folder,
    )
    assert found.plan is not None
    assert found.is_proven
    loaded: Told = json.loads((folder / "attention.json").read_text())
    return loaded


@lru_cache
def problems_of(points: AttentionPoints, objective: Objective) -> tuple[str, list[AttentionCosts]]:
    """The problems of the check, read and searched once for all tests."""
    options = LayerOptions(objective=objective, lpf_limit=4)
    return attention_problems((WORKLOAD, hardware(), MAPPING), points, options, [])


def checks_of(told: Told, folder: Path) -> list[Check]:
    """The checks of a certificate."""
    file = folder / "attention.json"
    file.write_text(json.dumps(told))
    read = read_certified(file)
    name, problems = problems_of(read.points, read.options.objective)
    return check_certificates(read, name, problems)


def test_a_true_certificate_passes(told: Told, tmp_path: Path) -> None:
    """A true certificate passes, and so does one that claims a lower bound below the value and no proof."""
    assert [check.passed for check in checks_of(told, tmp_path)] == [True] * 5
    weaker = copy.deepcopy(told)
    claim = weaker["attentions"][0]["certificate"]
    claim |= {"lower_bound": 0.9 * claim["value"], "proven": False}
    claim["gap"] = 1 - claim["lower_bound"] / claim["value"]
    assert all(check.passed for check in checks_of(weaker, tmp_path))


def _change(*path: Any, value: Any = None, times: float | None = None) -> Callable[[Told], None]:
    def damage(told: Told) -> None:
        place: Any = told["attentions"][0]
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value if times is None else place[path[-1]] * times

    return damage


def _unfused_as_best(told: Told) -> None:
    """Claim that the unfused attention is the best, with its value."""
    one = told["attentions"][0]
    energy, cycles = one["unfused"]["energy_pj"], one["unfused"]["latency_cycles"]
    one |= {"plan": None, "best": one["unfused"]}
    one["certificate"] |= {"value": energy * cycles, "lower_bound": energy * cycles}


def _forget(count: int) -> Callable[[Told], None]:
    def damage(told: Told) -> None:
        claim = told["attentions"][0]["certificate"]
        claim["searched"] = claim["searched"][:count]

    return damage


CLAIM = ("certificate",)
DAMAGES: dict[str, Callable[[Told], None]] = {
    "value": _change(*CLAIM, "value", times=0.99),
    "lower bound above the value": _change(*CLAIM, "lower_bound", times=1.01),
    "not proven": _change(*CLAIM, "proven", value=False),
    "gap": _change(*CLAIM, "gap", value=0.02),
    "count of plans": _change(*CLAIM, "plans_in_space", value=7),
    "energy of a layer": _change(*CLAIM, "searched", 1, 4, times=1.001),
    "latency of a layer": _change(*CLAIM, "searched", 0, 5, times=2),
    "a layer that fits nowhere": _change(*CLAIM, "searched", 0, slice(4, 6), value=[None, None]),
    "a layer that there is not": _change(*CLAIM, "searched", 0, 0, value="softmax.min"),
    "another size of a layer": _change(*CLAIM, "searched", 0, 1, value=[1, 1, 1, 1]),
    "a memory that there is not": _change(*CLAIM, "searched", 0, 2, 0, value=["I", "cache"]),
    "another space": _change(*CLAIM, "sizes", "queries", value=[1, 2, 4]),
    "an unknown order": _change(*CLAIM, "sizes", "orders", value=["heads-outer"]),
    "a size of nothing": _change(*CLAIM, "sizes", "queries", value=[0]),
    "objective": _change(*CLAIM, "objective", value="energy"),
    "best energy": _change("best", "energy_pj", times=0.9),
    "unfused energy": _change("unfused", "energy_pj", times=1.1),
    "tile of the plan": _change("plan", "tile_keys", value=3),
    "order of the plan": _change("plan", "order", value="heads-outer"),
    "place of the plan": _change("plan", "scores_in", value="dram"),
    "shape": _change("shape", "keys", value=9),
    "repeats": _change("repeats", value=3),
    "name": _change("name", value="another"),
    "nothing searched": _forget(0),
    "less searched": _forget(3),
    "unfused as best": _unfused_as_best,
    "core": lambda told: told.update(core="another"),
    "another context": lambda told: told["points"].update(contexts=[9]),
    "another size of a memory": lambda told: told["points"].update(memory="sram", sizes_bits=[1024]),
    "an attention less": lambda told: told.update(attentions=[]),
    "options": lambda told: told["options"].update(objective="latency"),
    "no options": lambda told: told.pop("options"),
    "no certificate": lambda told: told["attentions"][0].pop("certificate"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_found(name: str, told: Told, tmp_path: Path) -> None:
    """Damage of each kind fails a check, or makes the file invalid."""
    damaged = copy.deepcopy(told)
    DAMAGES[name](damaged)
    assert damaged != told
    try:
        checks = checks_of(damaged, tmp_path)
    except InputError as error:
        assert "is not a valid certificate of `tilewright attention`" in str(error)  # noqa: PT017
        return
    assert not all(check.passed for check in checks)


def test_the_verb_checks_and_says_what_it_needs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The verb prints a row for each context, checks its certificate, and claims nothing without the
    description files.
    """
    files = {"hardware": hardware(), "workload": described("decode", 1, 3), "mapping": MAPPING}
    given = []
    for name, data in files.items():
        file = tmp_path / f"{name}.yaml"
        file.write_text(yaml.safe_dump(data, sort_keys=False))
        given += [f"--{name}", str(file)]
    run = str(tmp_path / "out")
    sizes = ["--tile-keys", "8", "--lpf-limit", "4", "--objective", "energy"]
    assert main(["attention", *given, *sizes, "--contexts", "4,16", "-o", run]) == 0
    shown = capsys.readouterr().out
    assert shown.count("layers/attention") == 2
    table = (tmp_path / "out" / "attention.csv").read_text().splitlines()
    assert len(table) == 3
    assert main(["check", run, *given]) == 0
    assert "ok  layers/attention: lower bound" in capsys.readouterr().out
    assert main(["check", run]) == 2
    assert capsys.readouterr().err.count("this check needs hardware, workload and mapping") == 3
    assert main(["attention", *given, *sizes, "--memory-sizes", "sram=1 KiB,256 B", "-o", run]) == 0
    assert [line.split(",")[7] for line in (tmp_path / "out" / "attention.csv").read_text().splitlines()] == [
        "memory_bits",
        "2048",
        "8192",
    ]
    assert main(["check", run, *given]) == 0
    assert main(["attention", *given, "--memory-sizes", "ssram=1 KiB"]) == 2
    assert "did you mean 'sram'" in capsys.readouterr().err
    assert main(["attention", *given, "--memory-sizes", "sram=small"]) == 2
    assert main(["attention", *given, *sizes, "-v"]) == 0
    assert (
        "the best plan found is optimal over all plans of the space of tiles, with tensors only in"
        " memories that have one instance" in capsys.readouterr().out
    )
