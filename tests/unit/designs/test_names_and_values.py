"""Names and values in spaces: no name replaces a column, and each value is used or refused."""

import random
from pathlib import Path
from typing import Any

import pytest
import yaml
from tilewright.base.errors import InputError
from tilewright.cost.rates import RATES
from tilewright.designs import columns
from tilewright.designs.answer import Answer, answer_of
from tilewright.designs.explore import assumptions, explored
from tilewright.designs.front_search import front_of_folder, make_parts
from tilewright.designs.space_reader import read_space
from tilewright.designs.table_files import front_table, space_table
from tilewright.designs.tables import answer_text, front_line
from tilewright.mapping.temporal import loop_multiset
from tilewright.search.options import loops_of_loma
from tilewright.workload.source import parse_workload

from tests.unit.designs.front_cases import NETWORKS
from tests.unit.designs.space_cases import BASE, ROOT, space_of

TINY = {"two": NETWORKS["two"]}
READ_COST = "memories.sram.r_cost"
DOUBLE = "memories.sram.force_double_buffering"


def a_space(folder: Path, **changes: Any) -> Path:
    """Write a small space."""
    given = {"accelerator": str(BASE), "networks": TINY, "options": {"objective": "EDP", "lpf_limit": 2}}
    path = folder / "given.yaml"
    path.write_text(yaml.safe_dump(given | changes, sort_keys=False))
    return path


def by_exploring(path: Path) -> Answer:
    """Return the answer of all designs, each evaluated alone."""
    return answer_of(explored(path, read_space(path), 1, lambda count: None))


def by_the_front(path: Path, folder: Path) -> Answer:
    """Return the answer of the complete front."""
    space = read_space(path)
    make_parts(path, space, folder, 1, lambda count: None)
    found = front_of_folder(path, space, folder, folder / "certificate.parquet", 1, lambda count: None)
    return answer_of(found.exploration)


# names ----------------------------------------------------------------------------------------------------------------


def test_every_column_of_a_table_is_in_the_one_list(tmp_path: Path) -> None:
    """The list of columns contains each column that a table can have."""
    base = yaml.safe_load(BASE.read_text()) | {"clock_frequency": "1 GHz"}
    for key in ("r_cost", "w_cost", "area"):
        del base["memories"]["sram"][key]
    base["memories"]["sram"]["cost"] = {"from": "sram", "node_nm": 45}
    two = {"one": NETWORKS["two"], "other": NETWORKS["two"]}
    path = a_space(
        tmp_path,
        accelerator=base,
        networks=two,
        axes={"rows": {"path": "operational_array.sizes.0", "values": [8, 16]}},
    )
    answer = by_exploring(path)
    found = {*space_table(answer).columns, *front_table(answer).columns} - {"rows"}
    assert {"energy_low_pj", "latency_s", "pareto_all_networks", "assumes", "energy_mac_pj"} <= found
    assert [name for name in found if not columns.is_column(str(name))] == []
    assert {*RATES[:2], "edp_pj_s"} == {*columns.RATES}


@pytest.mark.parametrize(
    "name", ["energy_mac_pj", "status", "reason", "unmet", "index", "network", "pareto", "power_w"]
)
@pytest.mark.parametrize("kind", ["axis", "law", "choice"])
def test_no_axis_and_no_law_is_called_like_a_column(name: str, kind: str) -> None:
    """Axes, laws and axes of choices cannot have the name of a column."""
    axes: dict[str, Any] = {"cost": {"path": READ_COST, "values": [1, 2]}}
    laws = {}
    if kind == "axis":
        axes = {name: {"path": READ_COST, "values": [1, 2]}}
    elif kind == "choice":
        axes = {name: {"choices": {"a": {READ_COST: 1}, "b": {READ_COST: 2}}}}
    else:
        laws = {name: "cost + 1", READ_COST.replace("r_cost", "w_cost"): name}
    with pytest.raises(InputError, match=f"{name}: is already the name of a column in tables of designs"):
        space_of(axes=axes, laws=laws)


@pytest.mark.parametrize(
    "name", ["energy", "latency", "rows", "area", "power", "value", "designs", "front", "status_2"]
)
def test_names_that_are_no_columns_are_free(name: str, tmp_path: Path) -> None:
    """Names that are no columns appear in tables and texts as they are."""
    path = a_space(tmp_path, axes={name: {"path": READ_COST, "values": [1, 2]}})
    answer = by_exploring(path)
    assert space_table(answer)[name].tolist() == [1, 2]
    assert f"{name} 1" in answer_text(answer)


# values ---------------------------------------------------------------------------------------------------------------

MEMBERS = ["index", "energy_pj", "k", "said"]
VALUES: tuple[Any, ...] = (
    *(True, False, 0, 1, 2, 2.0, 0.1, -3, 2**53 + 1, 2**63 - 1, 2**63, 10**400, float("inf"), float("nan")),
    *("1", "2", "true", "false", "x", "", "nan", "1e3", None, [1], [[1], 2], {"a": 1}),
    *(yaml.safe_load("2024-01-01"), yaml.safe_load("2024-01-01 10:00:00")),
)


def random_values_hold(count: int, seed: int, folder: Path) -> tuple[int, int]:
    """Return how many random lists of values were explored and how many were refused with a place."""
    ran = refused = 0
    for number in range(count):
        draw = random.Random(f"{seed}/{number}")
        values = [draw.choice(VALUES) for _ in range(draw.choice([1, 2, 2, 3]))]
        axes: dict[str, Any] = {"k": {"values": values}}
        laws = {
            "said": draw.choice(["k", "k == 1", "1 if k == 2 else 'no'", "k == 'x' or 3"]),
            READ_COST: "2 if said else 3",
        }
        constraint = draw.choice(
            ["energy_pj > 0 and k == k", "energy_pj > 0 and said != 'no'", "energy_pj < 1 or said"]
        )
        place = folder / str(number)
        place.mkdir()
        path = a_space(place, axes=axes, laws=laws, constraints=[constraint])
        try:
            whole = by_exploring(path)
            front = by_the_front(path, place)
        except InputError:
            refused += 1
            continue
        ran += 1
        assert [vars(one) for one in whole.counts] == [vars(one) for one in front.counts], (number, values)
        assert whole.causes == front.causes, (number, values)
        members = [answer.overall.members[MEMBERS].to_numpy().tolist() for answer in (whole, front)]
        assert members[0] == members[1], (number, values, laws, constraint)
        assert answer_text(whole)
    return ran, refused


def test_values_of_any_kind_are_used_or_refused(tmp_path: Path) -> None:
    """Values of any type are used by both explore and front, or refused by both."""
    ran, refused = random_values_hold(count=24, seed=1, folder=tmp_path)
    assert ran >= 4
    assert refused >= 4


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, "1"], "k.values[1]: looks like another value of the list in tables, got '1'"),
        ([True, "true"], "looks like another value of the list in tables"),
        ([2**63, 1], "is an integer that is too large"),
        ([float("inf")], "must be a finite number"),
        ([None, 1], "k.values[0]"),
    ],
)
def test_values_that_cannot_be_told_apart_or_held_are_refused(values: list[Any], message: str) -> None:
    """Values with equal text, and values that tables cannot hold, are refused with their place."""
    with pytest.raises(InputError) as raised:
        space_of(axes={"k": {"values": values}}, laws={READ_COST: "2 if k == 1 else 3"})
    assert message in str(raised.value)


def test_true_and_false_are_words_in_tables_and_truths_in_constraints(tmp_path: Path) -> None:
    """True and false are words in tables and truth values in constraints."""
    axes = {"double": {"path": DOUBLE, "values": [True, False]}, "k": {"path": READ_COST, "values": [1, 2]}}
    path = a_space(tmp_path, axes=axes, laws={"big": "k > 1"}, constraints=["energy_pj > 0 and double and not big"])
    whole, front = by_exploring(path), by_the_front(path, tmp_path)
    table = space_table(whole)
    assert table["double"].tolist() == ["true", "true", "false", "false"]
    assert table["big"].tolist() == ["false", "true", "false", "true"]
    for answer in (whole, front):
        assert [(one.designs, one.ok, one.unmet) for one in answer.counts] == [(4, 1, 3)]
        assert "double true" in answer_text(answer)


# counts and sentences -------------------------------------------------------------------------------------------------


def test_the_front_counts_all_designs(tmp_path: Path) -> None:
    """The front counts all designs, and compares those with results that meet the constraints."""
    axes = {
        "k": {"path": READ_COST, "values": [1, 2, 3, 4]},
        "rows": {"path": "operational_array.sizes.0", "values": [8, 16]},
    }
    plain = by_exploring(a_space(tmp_path, axes=axes))
    limit = sorted(plain.overall.rows["energy_pj"])[5]
    path = a_space(
        tmp_path, axes=axes, constraints=[f"energy_pj < {limit}"], networks=TINY | {"again": NETWORKS["two"]}
    )
    whole, front = by_exploring(path), by_the_front(path, tmp_path)
    assert front.counts == whole.counts
    assert front.causes == whole.causes
    assert [one.compared_count for one in front.fronts] == [len(one.compared) for one in whole.fronts]
    assert [front_line(one) for one in front.fronts] == [front_line(one) for one in whole.fronts]
    assert front_line(front.overall).endswith(f"of {len(whole.overall.compared)} designs")
    assert 1 < len(whole.overall.compared) < 8
    assert front.counts[0].designs == 8


def test_only_what_the_front_is_over_has_a_best_design(tmp_path: Path) -> None:
    """A front over energy alone names no design of least latency."""
    axes = {
        "rows": {"path": "operational_array.sizes.0", "values": [8, 16, 32]},
        "k": {"path": READ_COST, "values": [1, 9]},
    }
    front = by_the_front(a_space(tmp_path, axes=axes, objectives=["energy_pj"]), tmp_path)
    text = answer_text(front)
    assert "\n energy " in text
    assert "\n latency " not in text


@pytest.mark.parametrize("limit", [1, 3, 4, 6, 9])
def test_what_is_said_of_loma_is_true(limit: int) -> None:
    """The sentence on `lpf_limit` is true: no layer keeps more loops than it says."""
    largest = 0
    for node in parse_workload(ROOT / "config" / "workload" / "mobilenetv2.onnx", model="corrected").layers_in_order:
        assert node.layer is not None
        sizes = tuple((name, size) for name, size in node.layer.loop_sizes if size > 1)
        length = loop_multiset(sizes, limit).length
        assert length <= max(limit, len(sizes))
        largest = max(largest, length)
    assert largest > 4
    told = loops_of_loma(limit)
    assert f"at most {limit} loops are left (or one loop for each loop dimension" in told
    space = space_of(axes={"k": {"path": READ_COST, "values": [1]}}, options={"lpf_limit": limit})
    assert told in " ".join(assumptions(space))
