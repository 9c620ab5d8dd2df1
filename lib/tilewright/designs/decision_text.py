"""Statements of a decision as text for the terminal and as Markdown, each with the commands that reproduce it."""

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tilewright.base.errors import count_of
from tilewright.base.harmless import ended_lines, markdown, terminal
from tilewright.base.measures import EDP_PJ_S, LATENCY_S
from tilewright.base.steps import HARDWARE_OF_DESIGN, SHOWN_DESIGNS
from tilewright.designs.advice_text import excess_text, share
from tilewright.designs.answer import EXCLUDED, UNMET
from tilewright.designs.axis_ends import LEAST_GAIN, end_sentence
from tilewright.designs.columns import ACCESS_CYCLES
from tilewright.designs.decision import CLOSE, LARGEST_FACTOR, CostOdds, Decision, Price, RatedDesign
from tilewright.designs.held_costs import constant_shares, constant_text, varied_text
from tilewright.designs.results import USE_MEASURES, measures_in_time
from tilewright.designs.slow_memories import EXCLUDING, PIPELINED
from tilewright.results.terminal_tables import TextTable, render, text_table
from tilewright.results.uncertainty import SAMPLES, samples_text

CHOICE, PRICE, RUNNER_UP = "The choice", "What it gives up", "The runner-up"
CERTAINTY, TURN, NEXT, ASSUMED = "How sure", "What would change the choice", "The next change to try", "Assumptions"
TENFOLD = 9.0
"""Relative excess from which a text gives a factor instead of a percentage. At this excess, one value is ten times as
large as the other value.
"""
SHARED_COMMANDS = "Numbers without a command of their own"
"""Heading above the commands that several statements share. These commands reproduce the numbers of each statement that
has no separate command.
"""
LARGEST_SHARE = 2.0
"""Largest factor that is written as a percentage, such as 1.2 as "20.0% more". The smallest factor that is written as a
percentage is 1 / LARGEST_SHARE.
"""
TOPICS = (CHOICE, PRICE, RUNNER_UP, CERTAINTY, TURN, NEXT)


class Statement(NamedTuple):
    """Sentences on one topic of a decision, with the commands that reproduce their numbers."""

    topic: str
    """Topic of the sentences, one of TOPICS."""
    text: str
    commands: tuple[str, ...] = ()


@dataclass(frozen=True)
class Commands:
    """Command lines that reproduce statements on a space."""

    space: Path
    """Path of the space file."""
    folder: Path
    """Path of the folder of the exploration."""
    networks: tuple[str, ...]
    """Networks of the decision."""
    network: str = ""
    """Network of the decision, if the space has further networks; otherwise ''."""

    def explore(self, *options: str) -> str:
        """Command that evaluates the space, or that shows one of its designs."""
        return command_line("explore", self.space, "-o", self.folder, *options)

    def decide(self, objective: str, *options: str) -> str:
        """Command that decides by another objective, one of OBJECTIVES."""
        only = ("--network", self.network) if self.network else ()
        return command_line("decide", self.folder, "--objective", objective, *only, *options)

    def decide_alone(self, objective: str, network: str) -> str:
        """Command that decides for one of several networks."""
        words = ("decide", self.folder, "--objective", objective, "--network", network)
        return command_line(*words, "--no-advice", "--no-write")

    def validate(self, design: str) -> tuple[str, str]:
        """Commands that write the hardware file of a design and check it."""
        file = self.folder / SHOWN_DESIGNS / design / HARDWARE_OF_DESIGN
        return self.explore("--show", design), command_line("validate", file)

    def compare(self, objective: str, first: str, second: str) -> tuple[str, ...]:
        """Commands that compare two designs. Each command compares the designs on one network. If there are several
        networks, a further command comes first: it makes the decision again, because only a decision shows the sums
        over the networks.
        """
        designs = [f"{self.folder}:{name}" for name in (first, second)]
        if len(self.networks) == 1 and not self.network:
            return (command_line("compare", *designs),)
        alone = (command_line("compare", *designs, "--network", network) for network in self.networks)
        sums = (self.decide(objective, "--no-advice", "--no-write"),) if len(self.networks) > 1 else ()
        return (*sums, *alone)


def command_line(*words: object) -> str:
    """Command line of tilewright, quoted for a shell."""
    return shlex.join(["tilewright", *map(str, words)])


def statements(decision: Decision, commands: Commands, further: Sequence[Statement] = ()) -> tuple[Statement, ...]:
    """All statements of a decision, in the order of TOPICS. `further` has the statements that cannot be made from the
    table of results.
    """
    made = (
        _choice(decision, commands),
        *_not_compared(decision, commands),
        *_slow_choice(decision, commands),
        *_extrapolated(decision, commands),
        *_shares(decision, commands),
        *_alone(decision, commands),
        *_prices(decision, commands),
        _runner_up(decision, commands),
        *_slow_runner_up(decision, commands),
        *_odds(decision, commands),
        *_turning(decision, commands),
        *_barred(decision, commands),
        *further,
    )
    return tuple(sorted(made, key=lambda one: TOPICS.index(one.topic)))


def heading(decision: Decision) -> str:
    """Title of the decision: the space, the objective, the number of compared designs, and the networks."""
    exploration = decision.answer.exploration
    count = count_of(decision.front.compared_count, "compared design")
    return f"Decision for {exploration.name}: least {decision.measure.words} of {count} on {_networks(decision)}"


def decision_text(decision: Decision, made: Sequence[Statement]) -> str:
    """Text of a decision for the terminal."""
    note = ended_lines(filter(None, [decision.table_note]))
    parts = [ended_lines([heading(decision)]), render(_table(decision)), note]
    shared = shared_commands(made)
    for topic in TOPICS:
        own = [one for one in made if one.topic == topic]
        if own:
            parts.append(f"\n{topic}\n")
        for one in own:
            parts += [ended_lines([one.text], "  "), ended_lines(own_commands(one, shared), "    $ ")]
    assumed = ended_lines(decision.answer.assumptions, "  ")
    parts.append(f"\n{ASSUMED}\n{assumed}")
    if shared:
        parts += [f"\n{SHARED_COMMANDS}\n", ended_lines(shared, "    $ ")]
    return "".join(parts).rstrip("\n")


def shared_commands(made: Sequence[Statement]) -> tuple[str, ...]:
    """Commands that a text shows only once, after all statements. Each of these commands runs an exploration, and is
    the only command of at least two statements.
    """
    alone = [one.commands[0] for one in made if len(one.commands) == 1]
    explored = dict.fromkeys(command for command in alone if command.startswith(f"{command_line('explore')} "))
    return tuple(command for command in explored if alone.count(command) > 1)


def own_commands(statement: Statement, shared: Sequence[str]) -> tuple[str, ...]:
    """Commands that a text shows below a statement: all commands of the statement, or none if its only command is in
    `shared`.
    """
    commands = statement.commands
    return () if len(commands) == 1 and commands[0] in shared else commands


def decision_markdown(decision: Decision, made: Sequence[Statement]) -> str:
    """Page of a decision in Markdown."""
    heads, rows = table_cells(decision)
    lines = [f"# {markdown(heading(decision))}", ""]
    lines += [_markdown_row(heads), "|" + "---|" * len(heads), *map(_markdown_row, rows)]
    lines += ["", markdown(note)] if (note := decision.table_note) else []
    shared = shared_commands(made)
    for topic in TOPICS:
        own = [one for one in made if one.topic == topic]
        lines += ["", f"## {topic}"] if own else []
        for one in own:
            lines += ["", markdown(one.text)]
            lines += _markdown_commands(own_commands(one, shared))
    lines += ["", f"## {ASSUMED}", "", *(f"* {markdown(one)}" for one in decision.answer.assumptions)]
    lines += ["", f"## {SHARED_COMMANDS}", *_markdown_commands(shared)] if shared else []
    return "\n".join(lines) + "\n"


def table_cells(decision: Decision) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Pair (headings, rows) of a table with one row for each design that the decision names. The columns are the role
    in the decision, the name, the values of axes and laws, and each known measure. If a design has a memory whose
    access takes longer than a clock cycle, the last column is the longest access time.
    """
    known = {key: decision.front.measures[key] for key in decision.choice.measures}
    access = (USE_MEASURES[ACCESS_CYCLES],) if decision.has_slow else ()
    heads = ("", "design", "values", *(measure.title for measure in (*known.values(), *access)))
    rows = [
        (
            *(role, design.name, design.values),
            *(measure.text(design.measures[key]) for key, measure in known.items()),
            *(measure.text(design.access_cycles) for measure in access),
        )
        for role, design in decision.named
    ]
    return heads, rows


def _table(decision: Decision) -> TextTable:
    heads, rows = table_cells(decision)
    table = text_table("", heads[:3], [head.replace(" [", "\n[") for head in heads[3:]])
    for row in rows:
        table.add_row(*row)
    return table


def _markdown_commands(commands: Sequence[str]) -> list[str]:
    return ["", *(f"    {terminal(command)}" for command in commands)] if commands else []


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(markdown(cell) for cell in cells) + " |"


def _networks(decision: Decision) -> str:
    networks = decision.answer.exploration.networks
    return networks[0] if len(networks) == 1 else f"{', '.join(networks)} together"


def _together(decision: Decision) -> str:
    """Words for a sentence whose numbers are sums over several networks; '' if there is one network."""
    return " for all networks together" if len(decision.answer.exploration.networks) > 1 else ""


def _value(decision: Decision, key: str, design: RatedDesign) -> str:
    measure = decision.front.measures[key]
    return f"{measure.text(design.measures[key])} {measure.unit}"


def _words(decision: Decision, key: str) -> str:
    return decision.front.measures[key].words


def _choice(decision: Decision, commands: Commands) -> Statement:
    choice, front = decision.choice, decision.front
    measures = ", ".join(f"{_words(decision, key)} {_value(decision, key, choice)}" for key in choice.measures)
    by = ", ".join(_words(decision, key) for key in front.objectives)
    if decision.dominated_by:
        place = f"It is not on the Pareto front by {by}: {decision.dominated_by} dominates it."
    else:
        place = f"It is on the Pareto front by {by}."
    values = f" ({choice.values})" if choice.values else ""
    text = f"{choice.name}{values} has the least {decision.measure.words}: {measures}.{_in_time(decision)} {place}"
    return Statement(CHOICE, text, (commands.explore(),))


def _in_time(decision: Decision) -> str:
    """Sentence with the latency and the EDP of the chosen design in time units, as `compare` states them. '' if the
    decision has these units, or if the clock is not known.
    """
    rows = decision.front.compared
    if LATENCY_S not in rows or LATENCY_S in decision.front.measures:
        return ""
    row = rows[rows["design"] == decision.choice.name]
    if not row[LATENCY_S].iloc[0] > 0:
        return ""
    times = ((key, measure) for key, measure in measures_in_time(row).items() if key in (LATENCY_S, EDP_PJ_S))
    told = ", ".join(f"{measure.words} {measure.text(row[key].iloc[0])} {measure.unit}" for key, measure in times)
    return f" At the clock of this design: {told}."


def _not_compared(decision: Decision, commands: Commands) -> Iterator[Statement]:
    """Statement on the designs that do not meet a constraint, and are therefore not compared."""
    causes = [cause.sentence for cause in decision.answer.causes if cause.status in (EXCLUDED, UNMET)]
    if causes:
        yield Statement(CHOICE, f"Not compared because of constraints: {'; '.join(causes)}.", (commands.explore(),))


def _slow_choice(decision: Decision, commands: Commands) -> Iterator[Statement]:
    """Warning that the chosen design has a memory whose access takes longer than a clock cycle."""
    if decision.choice.slow:
        text = f"{_slow_words(decision.choice)} {_fast(decision)}"
        yield Statement(CHOICE, text, commands.validate(decision.choice.name))


def _slow_runner_up(decision: Decision, commands: Commands) -> Iterator[Statement]:
    """Warning that the runner-up has a memory whose access takes longer than a clock cycle."""
    second = None if decision.runner_up is None else decision.runner_up.design
    if second is not None and second.slow:
        yield Statement(RUNNER_UP, _slow_words(second), commands.validate(second.name))


def _extrapolated(decision: Decision, commands: Commands) -> Iterator[Statement]:
    """Warnings that the chosen design or the runner-up has extrapolated costs, if the objective depends on costs."""
    second = None if decision.runner_up is None else decision.runner_up.design
    for topic, design in ((CHOICE, decision.choice), (RUNNER_UP, second)) if decision.depends_on_costs else ():
        if design is not None and design.extrapolated:
            text = (
                f"Warning: in {design.name}, costs of memories are extrapolated beyond the table of the library"
                f" ({design.extrapolated}). Ranges of costs do not cover the error of the extrapolation."
            )
            yield Statement(topic, text, commands.validate(design.name))


def _shares(decision: Decision, commands: Commands) -> Iterator[Statement]:
    """Statement on the share of each network in the sum over the networks, and on the design that would be chosen if
    each network counted equally.
    """
    if not decision.shares:
        return
    words, chosen, weights = decision.measure.words, decision.choice.name, decision.equal_weights
    ordered = sorted(decision.shares, key=lambda one: -one.share)
    told = ", ".join(f"{one.network} {samples_text(one.share)}" for one in ordered)
    text = f"The choice minimises the sum over the networks. Shares of this sum for {chosen}: {told}."
    changed = [one for one in ordered if one.without != chosen]
    for one in changed:
        text += f" Without {one.network}, the choice would be {one.without}."
    for one in ordered if changed else []:
        text += f" Without {one.network}, the choice would be the same." if one.without == chosen else ""
    if weights is not None:
        mean = f"the least geometric mean of the {words} of the networks"
        if weights.design == chosen or not weights.excess:
            text += f" {chosen} also has {mean}, in which each network counts equally."
        else:
            text += (
                f" If each network counts equally, {weights.design} is better: it has {mean};"
                f" that of {chosen} is {share(weights.excess)} larger."
            )
    yield Statement(CHOICE, text, (commands.explore(),))


def _alone(decision: Decision, commands: Commands) -> Iterator[Statement]:
    """Statements on the design that each network alone would choose."""
    words, chosen = decision.measure.words, decision.choice.name
    compared = set(decision.front.compared["design"])
    for one in decision.alone:
        again = (commands.decide_alone(decision.objective_name, one.network),)
        if one.design == chosen or not one.excess:
            same = chosen if one.design == chosen else f"{one.design}, which has as little {words} as {chosen}"
            yield Statement(CHOICE, f"{one.network} alone would also choose {same}.", again)
            continue
        values = [f"{decision.measure.text(value)} {decision.measure.unit}" for value in (one.chosen, one.value)]
        why = "it has no results or violates a constraint on another network"
        part = "" if one.design in compared else f" {one.design} is not compared, because {why}."
        text = (
            f"{one.network} alone would choose {one.design}: on {one.network}, {chosen} has"
            f" {more_text(one.excess, words, one.design)} ({values[0]} instead of {values[1]}).{part}"
        )
        yield Statement(CHOICE, text, again)


def _slow_words(design: RatedDesign) -> str:
    return f"Warning: in {design.name}, an access takes longer than a clock cycle ({design.slow}). {PIPELINED}."


def _fast(decision: Decision) -> str:
    """Sentences on the best design in which no access is known to take longer than a cycle."""
    fast, words = decision.fast, decision.measure.words
    excluding = f"The constraint `{EXCLUDING}` in the file of the space excludes the designs with such memories."
    if fast.design is None:
        return "All compared designs have such memories."
    of = count_of(fast.count, "compared design")
    other = f"that of {decision.choice.name}"
    excess = excess_text(fast.excess, "more than", other) if fast.excess else f"equal to {other}"
    return (
        f"Of {of} without such memories, {fast.design.name} has the least {words}: {excess}"
        f" ({_value(decision, decision.objective, fast.design)}). {excluding}"
    )


def _prices(decision: Decision, commands: Commands) -> Iterator[Statement]:
    if decision.runner_up is None:
        return
    unknown = [measure.words for key, measure in decision.front.measures.items() if key not in decision.choice.measures]
    for words in unknown:
        yield Statement(PRICE, f"The {words} is unknown for some compared designs, so it is not compared.")
    for price in decision.prices:
        words = _words(decision, price.measure)
        again = (commands.explore(),)
        if not price.excess:
            yield Statement(PRICE, f"No compared design has less {words} than {decision.choice.name}.", again)
            continue
        chosen, least = (_value(decision, price.measure, one) for one in (decision.choice, price.best))
        yield Statement(
            PRICE,
            f"{decision.choice.name} has {more_text(price.excess, words, price.best.name)}, the design with the least"
            f" {words}: {chosen} instead of {least}.",
            again,
        )


def _runner_up(decision: Decision, commands: Commands) -> Statement:
    runner, words = decision.runner_up, decision.measure.words
    if runner is None:
        name = decision.choice.name
        text = f"There is no runner-up, because {name} is the only compared design."
        return Statement(RUNNER_UP, text, (commands.explore(),))
    again = commands.compare(decision.objective_name, decision.choice.name, runner.design.name)
    if runner.equal:
        same, name = f"the same {words} as {decision.choice.name}", runner.design.name
        equal = f"{name} has {same}" if runner.equal == 1 else f"{runner.equal:,} others have {same}, among them {name}"
        text = f"{equal}. {decision.choice.name} was chosen by the other measures, then by the order of the space."
        return Statement(RUNNER_UP, text, again)
    text = (
        f"{runner.design.name} ({runner.design.values}) has {more_text(runner.excess, words, decision.choice.name)}:"
        f" {_value(decision, decision.objective, runner.design)}. {_close(decision)}"
    )
    return Statement(RUNNER_UP, text, again)


def _close(decision: Decision) -> str:
    assert decision.runner_up is not None
    close, others = decision.runner_up.close, decision.front.compared_count - 1
    verb = "are" if close > 1 else "is"
    return f"Of {count_of(others, 'other design')}, {count_or_none(close)} {verb} within {CLOSE:.0%} of the choice."


def count_or_none(count: int) -> str:
    """Number of designs as text: "none" for 0."""
    return f"{count:,}" if count else "none"


def _odds(decision: Decision, commands: Commands) -> Iterator[Statement]:
    if decision.runner_up is None:
        return
    name, words, odds = decision.choice.name, decision.measure.words, decision.odds
    if not decision.depends_on_costs:
        text = f"Energies and areas do not change the {words} of a design while its {decision.held} stay the same."
        yield Statement(CERTAINTY, text)
    elif odds is None:
        text = (
            "It is not known how much uncertain costs affect the choice, because no cost of this space has a range"
            " (docs/costs.md, Ranges)."
        )
        yield Statement(CERTAINTY, text)
    else:
        second = decision.runner_up.design.name
        shares = samples_text(odds.choice), samples_text(odds.runner_up or 0.0)
        tied = " (a tie counts for both)" if odds.choice + (odds.runner_up or 0.0) > 1 else ""
        row = decision.front.rows.set_index("design").loc[name].to_dict()
        text = (
            f"If only the costs with a range vary ({varied_text(row, decision.objective)} of {name}), {name} has the"
            f" least {words}{_together(decision)} in {shares[0]} of {SAMPLES:,} samples, and {second} in {shares[1]}"
            f"{tied}.{_more_probable(name, second, odds)} {_constant(decision, row)}The {decision.held} stay the same"
            f" in all samples, so this says nothing about better {decision.held}."
        )
        yield Statement(CERTAINTY, text, (commands.explore(),))


def _more_probable(name: str, second: str, odds: CostOdds) -> str:
    """Sentence for a runner-up that is best in more samples than the choice `name`; '' for any other runner-up."""
    if (odds.runner_up or 0.0) <= odds.choice:
        return ""
    return f" {name} is the choice at the nominal costs, but {second} is the best in more samples."


def _constant(decision: Decision, row: Mapping[Any, Any]) -> str:
    """Sentences on the parts of the energy that have no range, first for the chosen design, then for all compared
    designs. '' if the objective does not depend on the energy.
    """
    told = constant_text(row) if decision.depends_on_energy else ""
    if not told:
        return ""
    least, most = constant_shares(decision.front.compared)
    return (
        f"These parts of its energy have no range and do not vary, however uncertain they are: {told}. In the compared"
        f" designs, such parts are {least:.1%} to {most:.1%} of the energy. "
    )


def _turning(decision: Decision, commands: Commands) -> Iterator[Statement]:
    if decision.runner_up is None:
        return
    yield from _turning_part(decision, commands)
    for end in decision.ends:
        yield Statement(TURN, end_sentence(decision.front, (end,)), (commands.explore(),))
    if not decision.ends:
        text = (
            "No axis seems to end too early: on no axis does the smallest or largest value give clearly less"
            f" {decision.measure.words} than all other values."
        )
        yield Statement(TURN, text, (commands.explore(),))
    for price in decision.prices:
        yield from _trade(decision, price, commands)


def _barred(decision: Decision, commands: Commands) -> Iterator[Statement]:
    if decision.barred is not None:
        barred, words = decision.barred, decision.measure.words
        text = (
            f"{barred.name} has {share(barred.saving)} less {words} than {decision.choice.name}, but does not meet"
            f" {barred.unmet}. Of the designs that only constraints on results exclude, it has the least {words}."
        )
        yield Statement(TURN, text, commands.compare(decision.objective_name, decision.choice.name, barred.name))


def _turning_part(decision: Decision, commands: Commands) -> Iterator[Statement]:
    turning, words = decision.turning, decision.measure.words
    if turning is not None:
        change = _change(turning.factor)
        text = (
            f"If the energy term `{turning.words}` were {change} in all designs, {turning.design} would have as"
            f" little {words} as {decision.choice.name}. No smaller change of one energy term makes another design as"
            f" good while the {decision.held} stay the same."
        )
        yield Statement(TURN, text, commands.compare(decision.objective_name, decision.choice.name, turning.design))
    elif decision.depends_on_energy and decision.runner_up is not None and not decision.runner_up.equal:
        text = (
            f"No single energy term changes the choice, even if the term is multiplied or divided by up to"
            f" {LARGEST_FACTOR:g} in all designs, while the {decision.held} stay the same."
        )
        yield Statement(
            TURN, text, commands.compare(decision.objective_name, decision.choice.name, decision.runner_up.design.name)
        )


def more_text(excess: float, words: str, other: str) -> str:
    """Text that says how much more of a measure a design has than the design `other`. The text has a percentage for up
    to ten times the value of `other`, a factor for more, and no number if `other` has 0.
    """
    if math.isinf(excess):
        return f"more {words} than {other}, which has 0"
    if excess < TENFOLD:
        return f"{share(excess)} more {words} than {other}"
    return f"{1 + excess:,.1f} times as much {words} as {other}"


def _change(factor: float) -> str:
    """Factor as text: a percentage if the factor is near 1, else the factor itself."""
    if not 1 / LARGEST_SHARE <= factor <= LARGEST_SHARE:
        return f"{factor:.3g} times as much"
    return f"{share(factor - 1)} more" if factor > 1 else f"{share(1 - factor)} less"


def _trade(decision: Decision, price: Price, commands: Commands) -> Iterator[Statement]:
    words, goal = _words(decision, price.measure), decision.measure.words
    if price.nearest is None:
        return
    name = decision.choice.name
    loss = more_text(price.loss, goal, name) if price.loss else f"the same {goal} as {name}"
    least = f"at least {LEAST_GAIN:.1%} less {words}"
    which = f"No other design has {least}."
    if price.count > 1:
        which = f"Of the {price.count:,} designs with {least}, {price.nearest.name} has the least {goal}."
    text = f"If {words} matters more: {price.nearest.name} has {share(price.saving)} less {words} and {loss}. {which}"
    yield Statement(TURN, text, commands.compare(decision.objective_name, decision.choice.name, price.nearest.name))
