"""Costs of families: equal to the costs of each member alone."""

import json
import random
from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pytest
from tilewright.base.errors import InputError
from tilewright.designs import pricing
from tilewright.designs.evaluate import NetworkEvaluator
from tilewright.designs.families import Families
from tilewright.designs.pricing import FamilyMembers, FamilyPricer, FigureReader, Prices, members_of
from tilewright.designs.results import INFEASIBLE, OK
from tilewright.designs.shard import ShardMaker
from tilewright.designs.space import Space
from tilewright.designs.space_reader import read_space
from tilewright.search import priced_orders

from tests.unit.designs.front_cases import NETWORKS, WIDE, front_space

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
    """Return the evaluators of designs with one core."""
    return {name: one for name, one in ShardMaker(space).evaluators.items() if isinstance(one, NetworkEvaluator)}


def priced(space: Space) -> list[tuple[FamilyMembers, dict[str, Prices]]]:
    """Return all families of a space with their costs."""
    reader = FigureReader(space.base)
    families = [members_of(space, family, reader) for family in Families(space)]
    return list(zip(families, FamilyPricer(space, evaluators_of(space)).prices(families), strict=True))


def check(space: Space, found: list[tuple[FamilyMembers, dict[str, Prices]]], sample: int) -> Counter[str]:
    """Compare some members of each family exactly with single designs, and count their statuses."""
    rng, maker = random.Random(1), ShardMaker(space)
    compared: Counter[str] = Counter()
    for members, prices in found:
        for place in rng.sample(range(len(members.indexes)), min(sample, len(members.indexes))):
            for row in next(maker.rows([int(members.indexes[place])]))[0]:
                one = prices[row["network"]]
                compared[row["status"]] += 1
                assert (one.status[place], one.reason[place]) == (row["status"], row["reason"])
                if row["status"] == OK:
                    assert row["area_mm2"] == members.area_mm2[place]
                    alone = row["energy_pj"], row["latency_cycles"]
                    assert (one.energy_pj[place], one.latency_cycles[place]) == alone
    return compared


@pytest.mark.parametrize("case", CASES, ids=[f"{i}-{case['options']['objective']}" for i, case in enumerate(CASES)])
def test_families_cost_what_their_members_cost(case: dict[str, Any]) -> None:
    """Families have the costs of their members under several profiles and objectives, with and without data on chip."""
    space = read_space(front_space(**case))
    assert check(space, priced(space), 6)[OK] > 20


SIZES: dict[str, Any] = {
    "axes": {
        "weights": {"path": "memories.weight_register.size", "values": [8, 16, 64]},
        "sums": {"path": "memories.sum_register.size", "values": [8, 32]},
        "kib": {"values": [0.0625, 0.25, 1, 8]},
        "pj": {"path": "memories.dram.r_cost", "values": [100, 700]},
        "bits": {"path": "memories.dram.ports.rw_port_1.bandwidth_max", "values": [64, 256]},
    },
    "laws": {"memories.sram.size": "kib * 8192", "memories.sram.r_cost": "kib ** 0.5"},
}


@cache
def sizes_priced(case: str) -> tuple[Space, list[tuple[FamilyMembers, dict[str, Prices]]]]:
    """Return a space with axes of memory sizes, and its families with costs; `case` has the options as JSON."""
    space = read_space(front_space(**SIZES, **json.loads(case)))
    return space, priced(space)


@pytest.mark.slow
@pytest.mark.parametrize("case", [CASES[0], CASES[2], CASES[3], CASES[6]])
def test_families_of_other_sizes_share_what_is_equal(case: dict[str, Any]) -> None:
    """Costs of families that differ in sizes equal those of single designs.

    The sizes range from memories that hold no data to memories that hold all data.
    """
    compared = check(*sizes_priced(json.dumps(case)), 2)
    assert compared[OK] > 20
    assert compared[INFEASIBLE] > 2


def test_little_room_for_what_is_known_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Costs stay the same if there is hardly room to remember evaluated orders."""
    space, whole = sizes_priced(json.dumps(CASES[0]))
    original = priced_orders.native_function
    calls = 0

    def forgetful(entry: Any, records: Any) -> Any:
        """Return the function with nearly no room before every pass."""
        function = original(entry, records)

        def call(*arguments: Any) -> None:
            nonlocal calls
            if entry is priced_orders.price_orders:
                calls += 1
                arguments[3].room = 3
            function(*arguments)

        return call

    monkeypatch.setattr(priced_orders, "native_function", forgetful)
    again = priced(space)
    assert calls > 100
    for (_, one), (_, other) in zip(whole, again, strict=True):
        for name in one:
            np.testing.assert_array_equal(one[name].energy_pj, other[name].energy_pj)
            np.testing.assert_array_equal(one[name].latency_cycles, other[name].latency_cycles)


def test_the_widths_of_innermost_memories_decide_spatial_mappings() -> None:
    """Members with other spatial mappings are costed separately."""
    path = [f"memories.weight_register.ports.{port}.bandwidth_max" for port in ("r_port_1", "w_port_1")]
    small = [f"memories.sum_register.ports.{port}.bandwidth_max" for port in ("r_port_1", "w_port_1")]
    axes = {
        "weights": {"path": path, "values": [8, 16]},
        "sums": {"path": small, "values": [16, 32]},
        "mac": {"path": "operational_array.unit_energy", "values": [0.1, 0.2]},
    }
    space = read_space(front_space(axes=axes, laws={}))
    assert check(space, priced(space), len(space))[OK] == 2 * len(space)


def test_many_widths_are_several_rounds() -> None:
    """More port widths than the kernel has room for are costed in several rounds."""
    sram = [f"memories.sram.ports.{port}.bandwidth_max" for port in ("r_port_1", "w_port_1")]
    axes = {
        "word": {"path": sram, "values": [64 * number for number in range(1, 7)]},
        "dram": {"path": "memories.dram.ports.rw_port_1.bandwidth_max", "values": [64 * n for n in range(1, 7)]},
    }
    space = read_space(front_space(axes=axes, laws={}, networks=[front_space()["networks"]["two"]]))
    found = priced(space)
    assert found[0][0].variants is not None
    assert len(found[0][0].variants.widths) == 36
    assert check(space, found, 36)[OK] == 36


def test_designs_that_leak_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A design with leakage is refused, because the inputs of further terms are unknown."""
    monkeypatch.setattr(pricing, "further_energy_terms", lambda core: {"leakage": core})
    with pytest.raises(InputError, match=r"further terms of energy or latency \(leakage\)"):
        priced(read_space(front_space()))


def test_in_memory_arrays_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """An in-memory array is refused."""
    monkeypatch.setattr(pricing, "DIGITAL", "another kind")
    with pytest.raises(InputError, match="complete fronts are not available for in-memory computing arrays"):
        priced(read_space(front_space()))


def test_cycles_that_cannot_be_counted_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A design whose cycles cannot be counted is refused."""
    monkeypatch.setattr(pricing, "MOST_CYCLES", 10)
    with pytest.raises(InputError, match="moves too much data for the narrowest ports"):
        priced(read_space(front_space()))


def test_members_that_are_no_accelerators_are_told() -> None:
    """Invalid members are reported, excluded ones are left out, and missing areas are NaN."""
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


def code(operands: list[str], bits: int) -> dict[str, Any]:
    """Return a run-length code with so many bits for an element."""
    return {"operands": operands, "run_bits": 3, "pairs": 2, "word": 2 * (bits + 3)}


PORTS = ("memories.sram.ports.r_port_1", "memories.sram.ports.w_port_1")
KEYED: dict[str, Any] = {
    "zeros": {"weights": 0.1, "activations": 0.75, "outputs": 0.6},
    "networks": {"bert": NETWORKS["bert"]},
    "axes": {
        "mac_pj": {"path": "operational_array.unit_energy", "values": [0.1, 0.3]},
        "sram_kib": {"values": [2, 64]},
        "word_bits": {"path": [f"{port}.bandwidth_max" for port in PORTS], "values": [64, 256]},
        "dram_bits": {"path": "memories.dram.ports.rw_port_1.bandwidth_max", "values": [64, 256]},
        "least": {"path": [f"{port}.bandwidth_min" for port in PORTS], "values": [1]},
        "gating": {
            "choices": {
                "off": {},
                "on": {"operational_array.zero_gating": {"operands": ["I1", "I2"], "reads_of": ["I1", "I2"]}},
            }
        },
        "code": {
            "choices": {
                "none": {},
                "dram": {"memories.dram.run_length": code(["I1", "I2", "O"], 16)},
                "sram": {"memories.sram.run_length": code(["I1", "O"], 8)},
                "long": {"memories.sram.run_length": code(["I1", "O"], 2000)},
            }
        },
        "rule": {
            "choices": {
                "any": {},
                "order": {"memories.dram.loop_order": ["C", "K", "D", "B"]},
                "tile": {"memories.sram.tile_dimensions": ["K", "D"]},
                "none": {"memories.sram.tile_dimensions": [], "memories.dram.tile_dimensions": ["B"]},
            }
        },
    },
}


@pytest.mark.parametrize("dram_bits", [[64], pytest.param([64, 256], marks=pytest.mark.slow)])
def test_families_with_zeros_and_rules_cost_what_their_members_cost(dram_bits: list[int]) -> None:
    """Families with gating, compression and control rules have the costs of their members.
    Some codes are too long for narrow ports, and some rules leave no mapping.
    """
    laws = {"memories.sram.size": "sram_kib * 8192", "memories.sram.r_cost": "sram_kib ** 0.5 * word_bits"}
    keyed = KEYED | {"axes": KEYED["axes"] | {"dram_bits": KEYED["axes"]["dram_bits"] | {"values": dram_bits}}}
    space = read_space(front_space(**keyed, laws=laws, options={"objective": "EDP", "lpf_limit": 3}))
    compared = check(space, priced(space), 1)
    assert compared[OK] > 50
    assert compared[INFEASIBLE] > 20


def test_a_rule_can_exclude_only_the_narrow_members_of_a_family() -> None:
    """A control rule can exclude the members with a narrow port and keep the other members of a family."""
    rule: dict[str, Any] = {
        f"memories.{name}.tile_dimensions": ["B", "C", "OY", "OX", "FY", "FX"]
        for name in ("sum_register", "sram", "dram")
    }
    rule["operational_array.unrolled_dimensions"] = {"D1": ["C"], "D2": ["K"]}
    rule |= {"memories.sum_register.served_dimensions": ["D2"], "memories.sum_register.size": 256}
    ports = [WIDE.format("sum_register", port) for port in ("r_port_1", "r_port_2", "w_port_1", "w_port_2")]
    axes = {"rule": {"choices": {"kernels": rule}}, "bits": {"path": ports, "values": [16, 128]}}
    space = read_space(front_space(networks={"two": NETWORKS["two"]}, axes=axes, laws={}))
    found = priced(space)
    assert [members.indexes.tolist() for members, _ in found] == [[0, 1]]
    assert check(space, found, 2) == {INFEASIBLE: 1, OK: 1}
