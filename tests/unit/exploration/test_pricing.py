"""What the members of a family cost together is what each costs alone; bounds are no larger."""

import random
from typing import Any

import numpy as np
import pytest
from tilewright.exploration.evaluate import NetworkEvaluator
from tilewright.exploration.families import Families
from tilewright.exploration.figure_reader import FigureReader
from tilewright.exploration.pricing import FamilyPricer, Members, Prices, members_of
from tilewright.exploration.results import OK
from tilewright.exploration.shard import ShardMaker
from tilewright.exploration.space import Space
from tilewright.exploration.space_reader import read_space

from tests.unit.exploration.front_cases import front_space

CASES: list[dict[str, Any]] = [
    {"options": {"objective": objective, "lpf_limit": limit, "model": model, "exploit_data_locality": locality}}
    for objective, limit, model, locality in (
        ("EDP", 3, "corrected", True),
        ("energy", 3, "corrected", False),
        ("latency", 3, "corrected", True),
        ("EDP", 3, "zigzag-3.9.1", False),
        ("latency", 3, "zigzag-3.9.1", True),
        ("EDP", 3, "zigzag-3.9.1+every_transfer_takes_port_time", True),
        ("EDP", 3, "zigzag-3.9.1+every_transfer_takes_port_time+whole_tiles", True),
    )
]


def evaluators_of(space: Space) -> dict[str, NetworkEvaluator]:
    """Those of one core."""
    return {name: one for name, one in ShardMaker(space).evaluators.items() if isinstance(one, NetworkEvaluator)}


def check(space: Space, members: Members, prices: dict[str, Prices], only_values: bool, chosen: list[int]) -> int:
    """Compare with designs alone; returns how many had results."""
    compared = 0
    maker = ShardMaker(space)
    for place in chosen:
        index = int(members.indexes[place])
        for row in next(maker.rows([index]))[0]:
            one = prices[row["network"]]
            assert (one.status, one.reason) == (row["status"], row["reason"])
            if row["status"] != OK:
                continue
            compared += 1
            assert row["area_mm2"] == members.area_mm2[place]
            found = one.energy_pj[place], one.latency_cycles[place]
            alone = row["energy_pj"], row["latency_cycles"]
            assert not only_values or one.is_value[place]
            if one.is_value[place]:
                assert found == alone
            else:
                assert found[0] <= alone[0]
                assert found[1] <= alone[1]
    return compared


@pytest.mark.parametrize("case", CASES, ids=[f"{i}-{case['options']['objective']}" for i, case in enumerate(CASES)])
def test_families_cost_what_their_members_cost(case: dict[str, Any]) -> None:
    """Bounds and values, under several profiles and objectives, with and without data kept on the chip."""
    space = read_space(front_space(**case))
    families, reader = Families(space), FigureReader(space.base)
    pricer = FamilyPricer(space, evaluators_of(space))
    rng = random.Random(1)
    compared = bounded = 0
    for number in range(len(families)):
        members = members_of(space, families[number], reader)
        chosen = rng.sample(range(len(members.indexes)), 4)
        bounds, values = pricer.bounds(members), pricer.values(members)
        compared += check(space, members, bounds, False, chosen)
        compared += check(space, members, values, True, chosen)
        for name, one in bounds.items():
            if one.status == OK:
                bounded += int((~one.is_value).sum())
                assert (one.energy_pj <= values[name].energy_pj).all()
                assert (one.latency_cycles <= values[name].latency_cycles).all()
    assert compared > 20
    assert bounded > 0, "no width but the widest was bounded"


def test_the_widths_of_innermost_memories_decide_spatial_mappings() -> None:
    """Members that try other spatial mappings are costed apart."""
    path = [f"memories.weight_register.ports.{port}.bandwidth_max" for port in ("r_port_1", "w_port_1")]
    small = [f"memories.sum_register.ports.{port}.bandwidth_max" for port in ("r_port_1", "w_port_1")]
    axes = {
        "weights": {"path": path, "values": [8, 16]},
        "sums": {"path": small, "values": [16, 32]},
        "mac": {"path": "operational_array.unit_energy", "values": [0.1, 0.2]},
    }
    space = read_space(front_space(axes=axes, laws={}))
    members = members_of(space, Families(space)[0], FigureReader(space.base))
    pricer = FamilyPricer(space, evaluators_of(space))
    everyone = list(range(len(members.indexes)))
    check(space, members, pricer.bounds(members), False, everyone)
    assert check(space, members, pricer.values(members), True, everyone) == 2 * len(space)


def test_many_widths_are_several_rounds() -> None:
    """More widths than the kernel has room for at once."""
    sram = [f"memories.sram.ports.{port}.bandwidth_max" for port in ("r_port_1", "w_port_1")]
    axes = {
        "word": {"path": sram, "values": [64 * number for number in range(1, 7)]},
        "dram": {"path": "memories.dram.ports.rw_port_1.bandwidth_max", "values": [64 * n for n in range(1, 7)]},
    }
    space = read_space(front_space(axes=axes, laws={}, networks=[front_space()["networks"]["two"]]))
    members = members_of(space, Families(space)[0], FigureReader(space.base))
    assert members.variants is not None
    assert len(members.variants.widths) == 36
    pricer = FamilyPricer(space, evaluators_of(space))
    everyone = list(range(len(members.indexes)))
    assert check(space, members, pricer.values(members), True, everyone) == 36
    assert check(space, members, pricer.bounds(members), False, everyone) == 36


def test_members_that_are_no_accelerators_are_told() -> None:
    """And those that a constraint excludes are counted; areas that are not given are not numbers."""
    axes = {
        "mac": {"path": "operational_array.unit_energy", "values": [0.1, -1]},
        "read": {"path": "memories.sram.r_cost", "values": [1, 2, 3]},
        "area": {"path": "memories.sram.area", "values": [0, 1]},
    }
    space = read_space(front_space(axes=axes, laws={}, constraints=["read != 2"]))
    members = members_of(space, Families(space)[0], FigureReader(space.base))
    assert dict(members.excluded) == {"read != 2": 4}
    assert sorted(members.invalid) == [6, 7, 10, 11]
    assert all("unit_energy" in reason for reason in members.invalid.values())
    assert members.indexes.tolist() == [0, 1, 4, 5]
    assert np.isnan(members.area_mm2).tolist() == [True, False, True, False]
