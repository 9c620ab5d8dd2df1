"""Counts, causes, best designs, effects, tables and text of artificial spaces."""

import hashlib
from pathlib import Path

import pandas
import pytest
from tilewright.designs.answer import Cause, answer_of
from tilewright.designs.decision import decision_of
from tilewright.designs.effects import best_designs, effects
from tilewright.designs.table_files import front_table, space_table, write_tables
from tilewright.designs.tables import answer_text
from tilewright.hardware.attributes import BUILT_IN, Attribute, _checked

from tests.unit.designs.conftest import costs, exploration, grid


def test_every_design_is_counted_once() -> None:
    """Compared, excluded by constraints, infeasible and invalid designs add up to the evaluated designs."""
    answer = answer_of(grid())
    assert answer.design_count == 72
    assert answer.excluded == 12
    for counts in answer.counts:
        assert counts.ok + counts.unmet + counts.infeasible + counts.invalid == counts.designs == 60
    mobilenet, bert = answer.counts
    assert (mobilenet.infeasible, bert.infeasible, mobilenet.invalid, mobilenet.unmet) == (3, 0, 4, 3)


def test_causes_are_counted() -> None:
    """A cause counts each design once and names its networks."""
    causes = answer_of(grid()).causes
    assert causes[0] == Cause("excluded", "rows <= 128", 12, ())
    assert causes[1] == Cause("invalid", "memory `dram`: a bandwidth of 0 <bits>", 4, ("mobilenet", "bert"))
    assert causes[2] == Cause("infeasible", "conv48: 4,048 bits do not fit sram", 1, ("mobilenet",))


def test_many_causes_are_counted_without_their_numbers() -> None:
    """Many causes that differ only in their numbers are counted as one; digits in names stay."""
    rows = [{"status": "infeasible", "reason": f"{n},096 b of conv2 do not fit 12.5 KiB"} for n in range(1, 40)]
    assert answer_of(exploration(rows)).causes == (Cause("infeasible", "N b of conv2 do not fit N KiB", 39, ("net",)),)


def test_the_best_designs_are_the_smallest() -> None:
    """The best designs have the least value among the compared ones; other measures and the index break ties."""
    front = answer_of(grid()).overall
    for key, row in best_designs(front):
        assert row[key] == front.compared[key].min()
        equal = front.compared[front.compared[key] == row[key]].to_dict("records")
        order = [key, "energy_pj", "latency_cycles", "edp_pj_cycles", "area_mm2", "index"]
        assert row["index"] == min(equal, key=lambda one: [one[name] for name in order])["index"]
    assert best_designs(answer_of(exploration([])).overall) == ()


def test_explore_and_decide_have_one_rule_for_ties() -> None:
    """`explore` and `decide` name the same design among those of equal area: the one with the least energy."""
    rows = [costs(energy, latency, 1.0) for energy, latency in ((5.0, 2.0), (3.0, 9.0), (3.0, 8.0), (3.0, 8.0))]
    answer = answer_of(exploration([*rows, costs(1.0, 1.0, 4.0)]))
    assert dict(best_designs(answer.overall))["area_mm2"]["design"] == "design-2"
    (price,) = (one for one in decision_of(answer, "EDP").prices if one.measure == "area_mm2")
    assert price.best.name == "design-2"
    assert decision_of(answer, "area").choice.name == "design-2"
    assert [line for line in answer.exploration.best_designs() if "area" in line] == [
        "least area: design design-2 with 1 mm²"
    ]


@pytest.mark.parametrize("terms", [("leakage",), ("refresh",), ("leakage", "refresh")], ids="+".join)
def test_static_power_of_some_designs_alone_is_told(terms: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """A note names static power that only some designs have; designs that all have or all lack it get no note."""
    refresh = Attribute("refresh", "memory", "refresh_mw", "power_mw", "Power that keeps data.", term="refresh")
    monkeypatch.setattr("tilewright.hardware.attributes.BUILT_IN", (*BUILT_IN, refresh))
    monkeypatch.setattr("tilewright.hardware.attributes._checked", _checked.__wrapped__)
    unknown = float("nan")
    parts = {0.0: (unknown, unknown), 2.0: (2.0, unknown), 5.0: (1.0, 4.0)} if len(terms) > 1 else {}
    rows = [
        costs(10.0 - total, 10.0, 1.0)
        | {f"energy_{term}_pj": part for term, part in zip(terms, parts.get(total, (total or unknown,)), strict=True)}
        for total in (0.0, 2.0, 5.0)
    ]
    told = (
        "The energy of 1 of 3 designs has no static power, because their hardware gives none, or gives 0. In the other"
        " designs, static power is 25.0% to 100.0% of the energy. The energies of all designs are comparable"
        " only if a static power that is not given is really 0."
    )
    assert answer_of(exploration(rows)).assumptions[-1] == told
    for alike in (rows[1:], [costs(1.0, 1.0, 1.0), costs(2.0, 0.5, 1.0)]):
        assert answer_of(exploration(alike)).assumptions == exploration(alike).assumptions


def test_the_effect_of_an_axis_is_of_the_compared_designs() -> None:
    """The effect of an axis covers the compared designs, with ordered numbers; an axis of one value has none."""
    answer = answer_of(grid())
    found = {effect.axis: effect.table for effect in effects(answer.overall, answer.exploration.axis_names)}
    assert found["rows"]["value"].tolist() == [8, 16, 32, 64, 128]
    assert found["dram"]["value"].tolist() == ["LPDDR4", "HBM", "a<b>"]
    compared = answer.overall.compared
    own = compared[compared["dram"] == "HBM"]["energy_pj"]
    row = found["dram"].set_index("value").loc["HBM"]
    assert (row["designs"], row["best_energy_pj"], row["median_energy_pj"]) == (len(own), own.min(), own.median())
    one_value = exploration([{"energy_pj": 1.0, "latency_cycles": 1.0, "area_mm2": 1.0}])
    assert effects(answer_of(one_value).overall, ("rows", "sram")) == ()


def test_tables_are_the_same_bytes(tmp_path: Path) -> None:
    """Tables are written with equal bytes each time and read back."""
    first = write_tables(answer_of(grid()), tmp_path / "one")
    second = write_tables(answer_of(grid()), tmp_path / "two")
    assert [path.name for path in first] == ["space.csv", "space.parquet", "front.csv", "front.parquet"]
    for one, two in zip(first, second, strict=True):
        assert hashlib.sha256(one.read_bytes()).digest() == hashlib.sha256(two.read_bytes()).digest()
    table = pandas.read_parquet(first[1])
    assert len(table) == 120
    assert table["pareto"].dtype == bool
    assert table["energy_pj"].equals(pandas.read_csv(first[0])["energy_pj"])


def test_the_table_of_the_space_says_who_is_on_a_front() -> None:
    """The table of the space marks the front of each network, and on each row if its design is on the common front."""
    answer = answer_of(grid())
    table = space_table(answer)
    for front in answer.fronts[:-1]:
        own = table[table["network"] == front.network]
        assert own[own["pareto"]]["design"].tolist() == sorted(
            front.members["design"], key=lambda name: int(name.removeprefix("design-"))
        )
    members = set(answer.overall.members["design"])
    assert set(table[table["pareto_all_networks"]]["design"]) == members
    assert set(front_table(answer)["network"]) == {"mobilenet", "bert", "all networks"}
    assert "pareto_all_networks" not in space_table(answer_of(grid(("net",))))


@pytest.mark.parametrize("rows", [[], [{"status": "infeasible", "reason": "too small"}] * 3])
def test_tables_without_a_front(rows: list[dict], tmp_path: Path) -> None:
    """The table of a front without designs has its columns and no rows."""
    paths = write_tables(answer_of(exploration(rows)), tmp_path)
    front = pandas.read_parquet(paths[3])
    assert front.empty
    assert "energy_pj" in front.columns
    assert len(pandas.read_csv(paths[0])) == len(rows)


def test_values_may_be_of_several_kinds() -> None:
    """An axis of numbers and texts becomes one of texts; missing values of an invalid design stay missing."""
    rows = [{"sram": 32, "energy_pj": 1.0, "latency_cycles": 1.0}, {"sram": "none"}, {"rows_x_2": None}]
    table = answer_of(exploration(rows)).exploration.table
    assert table["sram"].tolist() == ["32", "none", "32 KiB"]
    assert table["rows_x_2"].isna().tolist() == [False, False, True]


def test_the_text_has_the_answer() -> None:
    """The text has counts, best designs with their values, the front, causes and assumptions."""
    text = answer_text(answer_of(grid()))
    assert "made up: 72 designs: 12 excluded by constraints, 60 evaluated" in text
    assert "Pareto front of all networks by energy, latency, area: 17 of 50 designs" in text
    assert "rows 8, sram 2048, dram HBM" in text
    assert "4 designs are invalid: memory `dram`: a bandwidth of 0 <bits>" in text
    assert "1 design is infeasible: conv48: 4,048 bits do not fit sram (mobilenet)" in text
    assert "assumed: model corrected" in text


def test_a_long_front_is_spread_over_the_text() -> None:
    """The text shows twenty designs of a long front, both ends included, and says how many there are."""
    rows = [{"energy_pj": 1e6 * n, "latency_cycles": 1e3 - n, "area_mm2": 1.0} for n in range(1, 101)]
    text = answer_text(answer_of(exploration(rows)))
    assert "20 of the 100 designs on the front: the best designs, and others at equal steps along it" in text
    assert "design-0 " in text
    assert "design-99 " in text
    assert "no design has results" in answer_text(answer_of(exploration([])))


def test_what_is_not_evaluated_yet_is_said() -> None:
    """The text and the tables say how many designs are not evaluated yet."""
    answer = answer_of(grid(missing=40))
    assert answer.design_count == 112
    text = answer_text(answer)
    assert "112 designs: 12 excluded by constraints, 40 not evaluated yet, 60 evaluated" in text
    assert "assumed: Not evaluated yet: 40 designs. This answer covers only the evaluated designs." in text
    assert front_table(answer)["assumes"].str.startswith("Not evaluated yet: 40 designs").all()


def test_each_unmet_constraint_has_its_count() -> None:
    """The text counts the designs that violate each constraint, and the front names each constraint once."""
    area, cycles = "area_mm2 <= 1", "latency_cycles <= 5"
    unmet = [f"{area}; {cycles}", area, area, cycles, cycles, "", "", ""]
    cost = {"energy_pj": 1.0, "latency_cycles": 1.0, "area_mm2": 1.0}
    answer = answer_of(exploration([cost | {"unmet": text} for text in unmet], networks=("one", "two")))
    found = {cause.text: cause.designs for cause in answer.causes}
    assert found == {area: 2, cycles: 3}
    assert answer.overall.rows["unmet"].tolist() == [f"{area}; {cycles}", f"{area}; {cycles}", cycles, ""]
    assert "3 designs with results do not meet the constraint `latency_cycles <= 5`" in answer_text(answer)
