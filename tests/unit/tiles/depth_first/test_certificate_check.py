"""The check of certificates of depth-first optima: true certificates pass, and damage of any kind does not."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tilewright.base.artifacts.codec import encode
from tilewright.base.errors import InputError
from tilewright.cli.main import main
from tilewright.pipeline.sources import parse_mapping, parse_workload
from tilewright.results.checks import Check
from tilewright.tiles.depth_first.certificate import DepthFirstSpace
from tilewright.tiles.depth_first.certificate_check import check_certificate, read_certified
from tilewright.tiles.depth_first.optimum import find_optimum
from tilewright.tiles.depth_first.options import TileOptions
from tilewright.tiles.depth_first.schedule import stack_model

from tests.unit.tiles.depth_first.fsrcnn import HARDWARE
from tests.unit.tiles.depth_first.test_optimum import core_of, mapping_of
from tests.unit.tiles.depth_first.test_schedules import convolution

Told = dict[str, Any]


def layers() -> list[Told]:
    """A small chain of three convolutions."""
    found = [convolution(0, 8, 3, 8, 3), convolution(1, 4, 8, 6, 3), convolution(2, 6, 4, 4, 3)]
    found[1]["operand_source"] = {"W": 1, "I": 0}
    return found


def problem() -> tuple[Any, Any, Any]:
    """The chain on a core whose memories are too small for it."""
    core = core_of("meta_prototype_df", 64)
    return parse_workload(layers()), core, parse_mapping(mapping_of("meta_prototype_df"))


@pytest.fixture(scope="module")
def told() -> Told:
    """The certificate that a search for the optimum writes."""
    options = TileOptions(objective="EDP", lpf_limit=4)
    model = stack_model(problem(), options)
    found = find_optimum(model, DepthFirstSpace(tile_x=(1, 2, 4, 9), tile_y=(2, 3, 4)), options)
    assert found.is_proven
    text = json.dumps(
        {
            "core": model.chain.core.name,
            "workload": model.chain.name,
            "certificate": found.as_object(),
            "schedules": [found.schedule.as_object()],
            "options": encode(options),
        }
    )
    loaded: Told = json.loads(text)
    return loaded


def checks_of(told: Told, folder: Path) -> list[Check]:
    """The checks of a certificate."""
    file = folder / "depth_first.json"
    file.write_text(json.dumps(told))
    return check_certificate(read_certified(file), problem())


def test_a_true_certificate_passes(told: Told, tmp_path: Path) -> None:
    """A true certificate passes, and so does one that claims a lower bound below the value and no proof."""
    checks = checks_of(told, tmp_path)
    assert [check.passed for check in checks] == [True] * 4
    weaker = copy.deepcopy(told)
    claim = weaker["certificate"]
    claim |= {"lower_bound": 0.9 * claim["value"], "gap": 0.1, "proven": False}
    claim["gap"] = 1 - claim["lower_bound"] / claim["value"]
    assert all(check.passed for check in checks_of(weaker, tmp_path))


def _drop_best(told: Told) -> None:
    """Remove the costs of the schedule's stacks."""
    used = {
        (s["layers"][0], s["layers"][-1], s["mode"], s["tile_x"], s["tile_y"]) for s in told["schedules"][0]["stacks"]
    }
    rows = told["certificate"]["stacks_costed"]
    told["certificate"]["stacks_costed"] = [row for row in rows if tuple(row[:5]) not in used]


def _worse_schedule(told: Told) -> None:
    """Claim that the schedule of whole layers, one by one, is the best."""
    claim = told["certificate"]
    rows = claim["stacks_costed"][:3]
    keys = ("mode", "tile_x", "tile_y", "energy_pj", "latency_cycles")
    told["schedules"][0]["stacks"] = [{"layers": [row[0]], **dict(zip(keys, row[2:], strict=True))} for row in rows]
    value = sum(row[5] for row in rows) * sum(row[6] for row in rows)
    claim |= {"value": value, "lower_bound": value}


def _hide_what_is_left(told: Told) -> None:
    """Claim the optimum's bound for a worse schedule, and delete the stacks that contradict the claim."""
    _worse_schedule(told)
    claim = told["certificate"]
    claim["stacks_costed"] = claim["stacks_costed"][:3]
    claim["stacks_bounded"] = []


def _change(*path: Any, value: Any = None, times: float | None = None) -> Callable[[Told], None]:
    def damage(told: Told) -> None:
        place: Any = told
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value if times is None else place[path[-1]] * times

    return damage


CLAIM = ("certificate",)
DAMAGES: dict[str, Callable[[Told], None]] = {
    "value": _change(*CLAIM, "value", times=0.99),
    "lower bound above the value": _change(*CLAIM, "lower_bound", times=1.01),
    "not proven": _change(*CLAIM, "proven", value=False),
    "gap": _change(*CLAIM, "gap", value=0.02),
    "count of schedules": _change(*CLAIM, "schedules_in_space", value=7),
    "energy of a stack": _change(*CLAIM, "stacks_costed", 1, 5, times=1.001),
    "latency of a stack": _change(*CLAIM, "stacks_costed", 2, 6, times=0.5),
    "mode of a stack": _change(*CLAIM, "stacks_costed", 0, 2, value="fully-stored"),
    "size of a stack": _change(*CLAIM, "stacks_costed", 0, 3, value=1),
    "a size that is no number": _change(*CLAIM, "stacks_costed", 0, 3, value="4"),
    "name of a layer": _change(*CLAIM, "stacks_costed", 0, 0, value="conv9"),
    "stacks that are not bounded": _change(*CLAIM, "stacks_bounded", value=[]),
    "another space": _change(*CLAIM, "space", "tile_x", value=[1, 2, 3, 4]),
    "an unknown mode": _change(*CLAIM, "space", "modes", value=["cached"]),
    "objective": _change(*CLAIM, "objective", value="energy"),
    "a stack that fits": _change(*CLAIM, "stacks_unmappable", value=[["conv0", "conv1", "fully-cached", 2, 2]]),
    "options": _change("options", "objective", value="latency"),
    "core": _change("core", value="another"),
    "tile of the schedule": _change("schedules", 0, "stacks", 0, "tile_x", value=3),
    "layers of the schedule": _change("schedules", 0, "stacks", 0, "layers", value=["conv0"]),
    "best stack left out": _drop_best,
    "worse schedule": _worse_schedule,
    "worse schedule, better ones hidden": _hide_what_is_left,
    "no certificate": lambda told: told.pop("certificate"),
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
        assert "is not a valid certificate of `tilewright depth-first --optimum`" in str(error)  # noqa: PT017
        return
    assert not all(check.passed for check in checks)


def test_the_verb_checks_and_says_what_it_needs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A true certificate passes, a changed one fails with a named check, and without descriptions nothing is
    claimed.
    """
    chain = tmp_path / "chain.yaml"
    chain.write_text(yaml.safe_dump(layers()))
    mapping = tmp_path / "mapping.yaml"
    mapping.write_text(yaml.safe_dump(mapping_of("meta_prototype_df")))
    given = ["--hardware", str(HARDWARE), "--workload", str(chain), "--mapping", str(mapping)]
    run = str(tmp_path / "out")
    assert main(["depth-first", *given, "--optimum", "--tile-x", "2", "--tile-y", "4", "-o", run]) == 0
    assert main(["check", run, *given]) == 0
    assert "ok  certificate: lower bound" in capsys.readouterr().out
    assert main(["check", run]) == 2
    assert capsys.readouterr().err.count("this check needs hardware, workload and mapping") == 3
    file = tmp_path / "out" / "depth_first.json"
    changed = json.loads(file.read_text())
    changed["certificate"]["stacks_costed"][0][5] *= 2
    file.write_text(json.dumps(changed))
    assert main(["check", run, *given]) == 1
    assert "certificate: costs" in capsys.readouterr().err
