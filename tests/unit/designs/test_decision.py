"""Decisions on random small spaces: each number equals a plain computation from the CSV."""

import html
import math
import re
from itertools import product
from pathlib import Path

import pytest
from tilewright.base.artifacts.digests import canonical_text
from tilewright.base.errors import InputError
from tilewright.base.objectives import DECISIONS
from tilewright.designs.answer import answer_of
from tilewright.designs.decision import CLOSE, LARGEST_FACTOR, decision_object, decision_of
from tilewright.designs.decision_bounds import MappingBounds, bounds_statement
from tilewright.designs.decision_page import decision_page
from tilewright.designs.decision_text import (
    CERTAINTY,
    CHOICE,
    PRICE,
    RUNNER_UP,
    TURN,
    decision_markdown,
    decision_text,
    share,
)
from tilewright.designs.front_odds import part_columns
from tilewright.designs.page import explore_page
from tilewright.designs.tables import answer_text
from tilewright.search.cost_ranges import CostPart

from tests.unit.designs.conftest import costs, exploration
from tests.unit.designs.decision_cases import PARTS, Plain, made_of, random_answer, texts

CASES = [(seed, DECISIONS[seed % 4]) for seed in range(36)]


def more(excess: float, words: str) -> str:
    """Return a comparison with a smaller value, in percent for up to ten times as much."""
    return f"{share(excess)} more {words} than" if excess < 9 else f"{1 + excess:,.1f} times as much {words} as"


def words(plain: Plain, measure: str) -> str:
    """Return the name of a measure in the sentences."""
    return "time" if measure == "latency" and plain.is_in_time else measure


@pytest.mark.parametrize(("seed", "objective"), CASES)
def test_choice_prices_and_runner_up(seed: int, objective: str) -> None:
    """The choice has the least objective, and each share in a sentence follows from the sums of the CSV."""
    answer = random_answer(seed)
    plain, decision = Plain.of(answer), decision_of(answer, objective)
    least, goal = plain.best(objective), words(plain, objective)
    chosen = plain.sums[decision.choice.name]
    assert chosen[objective] == pytest.approx(least, rel=1e-12)
    assert texts(decision, CHOICE)[0].startswith(f"{decision.choice.name} (")
    others = {name: one[objective] for name, one in plain.sums.items() if name != decision.choice.name}
    (second,) = texts(decision, RUNNER_UP)
    if not others:
        assert second.startswith("There is no runner-up")
        assert decision.prices == () or not texts(decision, PRICE)
        return
    assert decision.runner_up is not None
    assert others[decision.runner_up.design.name] == pytest.approx(min(others.values()), rel=1e-12)
    if "the same" not in second:
        assert f"has {more(min(others.values()) / least - 1, goal)}" in second
        close = sum(value <= least * (1 + CLOSE) for value in others.values())
        assert f"{close or 'none'} {'are' if close > 1 else 'is'} within" in second
    told = texts(decision, PRICE)
    assert len(told) == 3
    for measure in DECISIONS:
        if measure == objective:
            continue
        excess = chosen[measure] / plain.best(measure) - 1
        own = words(plain, measure)
        name = decision.choice.name
        none_less = f"No compared design has less {own} than {name}"
        expected = f"{name} has {more(excess, own)} " if excess > 1e-12 else none_less
        assert any(text.startswith(expected) for text in told)


@pytest.mark.parametrize(("seed", "objective"), CASES)
def test_trades_are_the_nearest_designs(seed: int, objective: str) -> None:
    """The named trade has the least objective among the designs with less of a measure."""
    answer = random_answer(seed)
    plain, decision = Plain.of(answer), decision_of(answer, objective)
    chosen, goal = plain.sums[decision.choice.name], words(plain, objective)
    told = [text for text in texts(decision, TURN) if "matters more" in text]
    for measure in DECISIONS:
        own = words(plain, measure)
        less = {name: one for name, one in plain.sums.items() if one[measure] <= chosen[measure] * 0.999}
        found = [text for text in told if text.startswith(f"If {own} matters more")]
        assert len(found) == bool(less and measure != objective)
        if not found:
            continue
        name = re.search(r": (\S+) has", found[0])[1]  # type: ignore[index]
        loss = less[name][objective] / chosen[objective] - 1
        assert less[name][objective] == pytest.approx(min(one[objective] for one in less.values()), rel=1e-12)
        assert f"has {share(1 - less[name][measure] / chosen[measure])} less {own} and" in found[0]
        assert (more(loss, goal) if loss > 1e-12 else f"the same {goal}") in found[0]
        which = rf"Of the {len(less)} designs with" if len(less) > 1 else "No other design has at least 0.1% less"
        assert which in found[0]
        assert not any(text.startswith(f"No compared design has less {own} ") for text in texts(decision, PRICE))


@pytest.mark.parametrize(("seed", "objective"), CASES)
def test_designs_that_constraints_exclude(seed: int, objective: str) -> None:
    """The best design that constraints exclude is named if it is better than the choice."""
    answer = random_answer(seed)
    plain, decision = Plain.of(answer), decision_of(answer, objective)
    chosen = plain.sums[decision.choice.name][objective]
    less = {name: one[objective] for name, one in plain.barred.items() if one[objective] <= chosen * 0.999}
    told = [text for text in texts(decision, TURN) if "does not meet" in text]
    assert len(told) == bool(less)
    if told:
        name = min(less, key=lambda one: less[one])
        assert told[0].startswith(f"{name} has {share(1 - less[name] / chosen)} less {words(plain, objective)} than")
        assert "does not meet area_mm2 <= 2.9." in told[0]


@pytest.mark.parametrize(("seed", "objective"), [case for case in CASES if case[1] in ("energy", "EDP")])
def test_the_part_that_turns_the_choice(seed: int, objective: str) -> None:
    """A part changed by the named factor makes the named design as good as the choice.
    Nine tenths of the change reverse nothing, and neither does the same change of another part.
    """
    answer = random_answer(seed)
    plain, decision = Plain.of(answer), decision_of(answer, objective)

    def values(part: str, factor: float) -> dict[str, float]:
        return {name: one[objective] + (factor - 1) * one[f"{objective} {part}"] for name, one in plain.sums.items()}

    runner, turning, name = decision.runner_up, decision.turning, decision.choice.name
    if runner is None or runner.equal:
        assert turning is None
        return
    size = math.log(LARGEST_FACTOR) if turning is None else abs(math.log(turning.factor))
    for part, sign in product(PARTS, (1, -1)):
        tried = values(part, math.exp(0.99 * size * sign))
        assert min(tried, key=lambda one: tried[one]) == name
    if turning is not None:
        assert 1 / LARGEST_FACTOR <= turning.factor <= LARGEST_FACTOR
        after = values(turning.column, turning.factor)
        assert after[turning.design] == pytest.approx(after[name], rel=1e-9)
        assert min(after.values()) == pytest.approx(after[name], rel=1e-9)
        beyond = values(turning.column, math.exp(1.01 * math.log(turning.factor)))
        assert beyond[turning.design] < beyond[name]
        (text,) = (text for text in texts(decision, TURN) if "energy term `" in text)
        change = f"{share(abs(turning.factor - 1))} {'more' if turning.factor > 1 else 'less'}"
        assert change in text if 0.5 <= turning.factor <= 2 else f"{turning.factor:.3g} times" in text


@pytest.mark.parametrize(("seed", "objective"), CASES[::4])
def test_text_markdown_and_page_say_the_same(seed: int, objective: str) -> None:
    """Text, Markdown and page have each sentence and command, and the page loads nothing."""
    decision = decision_of(random_answer(seed), objective)
    made = made_of(decision)
    text, source = decision_text(decision, made), decision_page(decision, made)
    page, plain = html.unescape(source), html.unescape(re.sub(r"\\(.)", r"\1", decision_markdown(decision, made)))
    for one in made:
        for line in (one.text, *one.commands):
            assert line in text
            assert line in plain
            assert line in page
    assert "src=" not in source
    assert "http" not in source
    assert "prefers-color-scheme: dark" in page
    assert 'name="viewport"' in page


def test_ends_of_axes_are_those_of_the_objective() -> None:
    """Ends of axes are reported for the objective, in the words of the exploration."""
    axes = {"rows": (8, 16, 32)}
    rows = [costs(100.0, 1000.0 / 2**n, 1.0 + n) | {"rows": 8 * 2**n} for n in range(3)]
    answer = answer_of(exploration(rows, axis_values=axes))
    told = texts(decision_of(answer, "latency"), TURN)
    assert (
        "Axis rows may end too early: from 16 to 32, its largest value, the least latency falls by 50.0%."
        " Values to try next: 64, 128."
    ) in told
    assert any(text.startswith("No axis seems to end too early") for text in texts(decision_of(answer, "area"), TURN))


def test_samples_of_costs() -> None:
    """The decision has the share of samples in which the choice stays the best; latency does not depend on costs."""
    part = CostPart("", "sram", 0.0, 0.0, 0.5, 2.0)
    rows = [
        costs(energy, 10.0, 1.0) | part_columns((part._replace(energy_pj=energy - 4.0),), 10.0) for energy in (5.0, 6.0)
    ]
    answer = answer_of(exploration(rows))
    decision = decision_of(answer, "EDP")
    assert decision.odds is not None
    assert (decision.odds.choice, decision.odds.runner_up) == (1.0, 0.0)
    assert (
        "design-0 has the least EDP in 100.0% of 100,000 samples, and design-1 in 0.0%."
        in texts(decision, CERTAINTY)[0]
    )
    assert texts(decision_of(answer, "latency"), CERTAINTY)[0].startswith("Energies and areas do not change")
    # Of 5 pJ, 1 pJ has a range; of the others, 1.25 pJ are of the array. Of 6 pJ of the other design, 2 pJ have one.
    said = texts(decision, CERTAINTY)[0]
    assert "(sram: 20.0% of the energy of design-0)" in said
    cells = {line.split()[0]: line.split()[-1] for line in answer_text(answer).splitlines() if "design-0" in line}
    assert (cells["energy"], cells["EDP"], cells["latency"]) == ("100.0%", "100.0%", "-")
    assert "-: latency does not depend on costs." in answer_text(answer)
    assert "do not vary, however uncertain they are: memories without a range 55.0%, MAC 25.0%." in said
    assert "such parts are 66.7% to 80.0% of the energy" in said
    assert "which are 66.7% to 80.0% of the energies of designs, do not vary" in answer_text(answer)


@pytest.mark.parametrize(("low", "high", "is_turned"), [(0.95, 2.0, True), (0.5, 1.05, False), (0.9, 1.0, False)])
def test_a_choice_that_is_not_the_most_probable_says_so(low: float, high: float, is_turned: bool) -> None:
    """A choice that is not the most probable best design says so.
    Statements on samples and bounds agree with the shares of the samples.
    """
    parts = [CostPart("", "sram", energy, 0.0, low, high) for energy in (4.0, 0.0)]
    rows = [
        costs(energy, 10.0, 1.0) | part_columns((part,), 10.0) for energy, part in zip((5.0, 5.1), parts, strict=True)
    ]
    decision = decision_of(answer_of(exploration(rows)), "EDP")
    assert decision.choice.name == "design-0"
    assert decision.odds is not None
    assert decision.odds.runner_up is not None
    assert (decision.odds.runner_up > decision.odds.choice) == is_turned
    said = "design-0 is the choice at the nominal costs, but design-1 is the best in more samples."
    assert (said in texts(decision, CERTAINTY)[0]) == is_turned
    bounds = bounds_statement(decision, MappingBounds(10.0, 20.0, 16.0), [(Path("a"), Path("b"))], "EDP").text
    nominal = "certain at the nominal costs only: within the ranges of the costs, design-0 has the least EDP in"
    assert (nominal in bounds) == (decision.odds.choice < 1)
    assert (decision.odds.choice < 1) == (high > 1)


@pytest.mark.parametrize(("seed", "objective"), CASES)
def test_each_network_alone(seed: int, objective: str) -> None:
    """The decision names the choice of each network alone, and the excess of the choice there."""
    answer = random_answer(seed)
    decision = decision_of(answer, objective)
    networks = answer.exploration.networks
    if len(networks) == 1 or objective == "area":
        assert decision.alone == ()
        return
    table = answer.exploration.table
    told = texts(decision, CHOICE)
    latency = "latency_s" if Plain.of(answer).is_in_time else "latency_cycles"
    for network, one in zip(networks, decision.alone, strict=True):
        rows = table[(table["network"] == network) & (table["status"] == "ok") & (table["unmet"] == "")]
        values = {"energy": rows["energy_pj"], "latency": rows[latency], "EDP": rows["energy_pj"] * rows[latency]}
        own = dict(zip(rows["design"], values[objective], strict=True))
        assert own[one.design] == pytest.approx(min(own.values()), rel=1e-12)
        excess = own[decision.choice.name] / min(own.values()) - 1
        assert one.excess == pytest.approx(excess, abs=1e-12)
        (text,) = (text for text in told if text.startswith(f"{network} alone would"))
        if excess > 1e-12:
            assert f"{decision.choice.name} has {share(excess)} more" in text
            assert f"would choose {one.design}: on {network}" in text
        else:
            assert "would also choose" in text
        again = decision_of(answer_of(answer.exploration.on_network(network)), objective)
        assert again.choice.name == one.design
        assert again.alone == ()
        assert f"Only {network} is compared, of 2 networks of the space" in " ".join(again.answer.assumptions)


@pytest.mark.parametrize(("seed", "objective"), CASES)
def test_networks_in_the_sum(seed: int, objective: str) -> None:
    """The decision states the share of each network, its influence, and the choice by the geometric mean."""
    answer = random_answer(seed)
    decision, networks = decision_of(answer, objective), answer.exploration.networks
    if len(networks) == 1 or objective == "area":
        assert decision.shares == ()
        return
    table, compared = answer.exploration.table, {*answer.overall.compared["design"]}
    latency = "latency_s" if Plain.of(answer).is_in_time else "latency_cycles"
    values = {"energy": table["energy_pj"], "latency": table[latency], "EDP": table["energy_pj"] * table[latency]}
    own = {(row["design"], row["network"]): float(values[objective][place]) for place, row in table.iterrows()}
    name = decision.choice.name
    (text,) = (text for text in texts(decision, CHOICE) if "Shares of this sum" in text)
    for one, other in (networks, networks[::-1]):
        assert f"{one} {own[name, one] / (own[name, one] + own[name, other]):.1%}" in text
        is_same = own[name, other] <= min(own[design, other] for design in compared)
        others_same = own[name, one] <= min(own[design, one] for design in compared)
        assert (f"Without {one}, the choice would be the same" in text) == (is_same and not others_same)
        if not is_same:
            least = min(own[design, other] for design in compared)
            named = re.search(rf"Without {one}, the choice would be ([^ ]+)\. ", text)
            assert named is not None
            assert own[named[1], other] == least
    means = {design: math.prod(own[design, network] for network in networks) ** 0.5 for design in compared}
    best = min(means, key=lambda design: means[design])
    if means[name] > means[best] * (1 + 1e-12):
        assert f"{best} is better: it has the least geometric mean" in text
        assert f"that of {name} is {share(means[name] / means[best] - 1)} larger." in text
    else:
        assert f"{name} also has the least geometric mean" in text


@pytest.mark.parametrize("networks", [("one",), ("one", "two")])
def test_a_command_reproduces_sums_over_networks(networks: tuple[str, ...]) -> None:
    """Commands for several networks begin with `decide`, because `compare` of two runs has no sums over networks."""
    rows = [costs(energy, 10.0, 1.0) for energy in (5.0, 2.0, 7.0, 4.0)]
    decision = decision_of(answer_of(exploration(rows[: 2 * len(networks)], networks)), "energy")
    told = [one.commands for one in made_of(decision) if any(" compare " in command for command in one.commands)]
    assert told
    for commands in told:
        again = [command for command in commands if " compare " not in command]
        assert again == ["tilewright decide out --objective energy --no-advice --no-write"] * (len(networks) > 1)
        assert commands[: len(again)] == tuple(again)


@pytest.mark.parametrize("networks", [("one",), ("one", "two")])
def test_tables_say_that_edps_are_added_up(networks: tuple[str, ...]) -> None:
    """Tables of several networks say that EDPs are added up and are not the product of their row."""
    rows = [costs(energy, latency, 1.0) for energy, latency in ((5.0, 2.0), (7.0, 4.0), (6.0, 8.0), (9.0, 3.0))]
    answer = answer_of(exploration(rows[: 2 * len(networks)], networks))
    decision = decision_of(answer, "EDP")
    row = answer.overall.rows.iloc[0]
    is_product = row["edp_pj_cycles"] == pytest.approx(row["energy_pj"] * row["latency_cycles"])
    made = made_of(decision)
    pages = decision_text(decision, made), decision_markdown(decision, made), decision_page(decision, made)
    for page in (*pages, answer_text(answer), explore_page(answer)):
        assert ("sum of the EDPs of the networks, not the product" in page) == (len(networks) > 1) == (not is_product)


def test_energy_without_a_range_is_named_for_several_networks() -> None:
    """The text names shares of energy without a range, such as leakage, for sums over several networks."""
    rows = []
    for energy, leakage in ((5.0, 2.0), (7.0, 1.0), (6.0, 3.0), (9.0, 3.0)):
        part = CostPart("", "sram", energy / 2 - 1.0, 0.0, 0.5, 2.0)
        row = costs(energy, 10.0, 1.0) | part_columns((part,), 10.0) | {"energy_leakage_pj": leakage}
        rows.append(row)
    answer = answer_of(exploration(rows, ("one", "two")))
    decision = decision_of(answer, "energy")
    said = texts(decision, CERTAINTY)[0]
    total, ranged, array, leakage = 12.0, 4.0, 3.0, 3.0
    rest = total - ranged - array - leakage
    assert f"(sram: {ranged / total:.1%} of the energy of design-0)" in said
    parts = f"MAC {array / total:.1%}, leakage {leakage / total:.1%}, memories without a range {rest / total:.1%}."
    assert parts in said
    least, most = sorted((1 - ranged / total, 1 - 5.5 / 15))
    assert f"such parts are {least:.1%} to {most:.1%} of the energy" in said
    assert "of the area of design-0)" in texts(decision_of(answer, "area"), CERTAINTY)[0]


def test_a_single_design_is_no_choice() -> None:
    """A single compared design is said to be the only one, and nothing is compared."""
    answer = answer_of(exploration([costs(1.0, 2.0, 3.0), {"status": "invalid", "reason": "no"}]))
    decision = decision_of(answer, "EDP")
    assert [one.topic for one in made_of(decision)] == [CHOICE, RUNNER_UP]
    assert "the only compared design" in texts(decision, RUNNER_UP)[0]


@pytest.mark.parametrize("objective", DECISIONS)
def test_values_of_zero_have_no_percentage(objective: str) -> None:
    """A value above a least value of 0 has no percentage and no infinite number in JSON."""
    barred = costs(0.0, 10.0, 0.0) | {"unmet": "latency_cycles <= 9"}
    rows = [costs(5.0, 10.0, 2.0), costs(0.0, 10.0, 0.0), barred, costs(7.0, 9.0, 0.0)]
    decision = decision_of(answer_of(exploration(rows)), objective)
    said = " ".join(one.text for one in made_of(decision))
    canonical_text(decision_object(decision))
    assert decision.barred is None
    if objective == "latency":
        assert decision.choice.name == "design-3"
        assert "design-3 has more energy than design-1, which has 0, the design with the least energy" in said
    else:
        assert decision.choice.name == "design-1"
        assert objective == "area" or "No compared design has less area than design-1" in said
    if objective in ("energy", "EDP"):
        assert f"has more {objective} than design-1, which has 0: " in texts(decision, RUNNER_UP)[0]
        assert "none is within" in texts(decision, RUNNER_UP)[0]


def test_no_design_can_be_chosen() -> None:
    """The message names the reasons if no design can be chosen, or if areas are missing."""
    rows = [{"status": "infeasible", "reason": "too small"}, costs(1.0, 1.0, 9.0) | {"unmet": "area_mm2 <= 2"}]
    with pytest.raises(InputError, match="none of 2 evaluated designs has results and meets all constraints") as raised:
        decision_of(answer_of(exploration(rows)), "EDP")
    assert "1 design is infeasible: too small" in str(raised.value)
    assert "area_mm2 <= 2" in str(raised.value)
    unknown = answer_of(exploration([costs(1.0, 1.0, float("nan")), costs(2.0, 2.0, 1.0)]))
    with pytest.raises(InputError, match="the area of 1 of 2 compared designs is not given"):
        decision_of(unknown, "area")
    assert "The area is unknown for some compared designs" in texts(decision_of(unknown, "EDP"), PRICE)[0]


def test_the_nearest_design_to_a_constraint_that_none_meets() -> None:
    """The nearest design, its value and its distance are named by explore and decide if no design meets a constraint.

    The design that is nearest to all constraints is named if no design meets all of them together.
    """
    area, energy = "area_mm2 <= 2", "energy_pj<=4.0"
    rows = [costs(1.0, 1.0, 9.0) | {"unmet": area}, costs(5.0, 1.0, 2.5) | {"unmet": f"{area}; {energy}"}]
    rows.append(costs(1.0, 1.0, 0.5) | {"status": "infeasible", "reason": "too small"})
    answer = answer_of(exploration(rows))
    told = "No design meets `area_mm2 <= 2`. The nearest is design-1: area_mm2 2.5, 25.00% above the limit"
    assert f"{told}." in answer_text(answer)
    with pytest.raises(InputError) as raised:
        decision_of(answer, "EDP")
    assert told in str(raised.value)
    apart = answer_of(exploration([rows[0], costs(5.0, 1.0, 1.5) | {"unmet": energy}]))
    assert apart.nearest_notes == (
        "No design meets all constraints together. The nearest is design-1, which does not meet `energy_pj<=4.0`"
        " (energy_pj 5, 25.00% above the limit).",
    )
    latency = answer_of(exploration([costs(1.0, 3.0, 1.0) | {"unmet": "latency_cycles > 4"}]))
    assert "latency_cycles 3, 25.00% below the limit" in latency.nearest_notes[0]
    for text in ("3 / 2 >= latency_cycles", "latency_cycles <= +1.5"):
        (note,) = answer_of(exploration([costs(1.0, 3.0, 1.0) | {"unmet": text}])).nearest_notes
        assert note == f"No design meets `{text}`. The nearest is design-0: latency_cycles 3, 100.00% above the limit."
    for text in ("area_mm2 * rows <= 1", "area_mm2 <= 1: area_mm2 is not known"):
        assert answer_of(exploration([costs(1.0, 3.0, 1.0) | {"unmet": text}])).nearest_notes == ()
    assert answer_of(exploration([rows[0], costs(1.0, 1.0, 1.0)])).nearest_notes == ()


def test_equal_designs_are_told() -> None:
    """Equal designs are reported; the other measures decide between them, and no change reverses the choice."""
    answer = answer_of(exploration([costs(5.0, 2.0, 2.0), costs(5.0, 2.0, 1.0), costs(9.0, 9.0, 9.0)]))
    decision = decision_of(answer, "EDP")
    assert decision.choice.name == "design-1"
    assert texts(decision, RUNNER_UP)[0].startswith("design-0 has the same EDP as design-1. design-1 was")
    assert decision.turning is None
    assert not any("energy term `" in text for text in texts(decision, TURN))
    three = answer_of(exploration([costs(5.0, 2.0, 2.0), costs(5.0, 2.0, 1.0), costs(5.0, 2.0, 3.0)]))
    said = texts(decision_of(three, "EDP"), RUNNER_UP)[0]
    assert said.startswith("2 others have the same EDP as design-1, among them design-0.")
