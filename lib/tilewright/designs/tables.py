"""Text of the answer for a design space: counts of designs, best designs, fronts, and causes of failure."""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from tilewright.base.errors import count_of
from tilewright.base.harmless import ended_lines
from tilewright.designs.answer import Answer, Cause, best_probability, values_text
from tilewright.designs.columns import (
    ACCESS_CYCLES,
    LARGEST_ENERGY,
    LARGEST_LATENCY,
    ON_FRONT,
    PLAN_GAPS,
)
from tilewright.designs.effects import best_designs, marked_designs
from tilewright.designs.front import STEPS, Front, spread
from tilewright.designs.front_odds import FRONT_PROBABILITY, LEAST_ENERGY, MOST_ENERGY
from tilewright.designs.held_costs import constant_shares
from tilewright.designs.results import ENERGY, USE_MEASURES
from tilewright.designs.slow_memories import are_slow
from tilewright.results.terminal_tables import render, text_table
from tilewright.results.uncertainty import SAMPLES, samples_text

MOST_ROWS, MOST_CAUSES = 20, 4
"""Largest number of front rows in the text, and largest number of causes per status."""
NOT_VARIED = "-"
"""Cell of a measure that is the same in all samples of the costs."""


def answer_text(answer: Answer) -> str:
    """Text with the number of designs, the best designs, the front, and the reasons why other designs are not
    compared.
    """
    return "\n".join(part for part in (_counts(answer), _best(answer), _front(answer), _rest(answer)) if part)


def design_counts_line(answer: Answer) -> str:
    """Line with the number of all designs, and with the numbers of designs that were not evaluated, by reason."""
    missing, settled = answer.exploration.missing, answer.exploration.settled
    dropped = answer.exploration.dropped
    evaluated = answer.design_count - answer.excluded - missing - settled - dropped
    parts = [f"{answer.excluded:,} excluded by constraints"] if answer.excluded else []
    parts += [f"{missing:,} not evaluated yet"] if missing else []
    parts += [f"{settled:,} on no front"] if settled else []
    parts += [f"{dropped:,} dropped by their bounds"] if dropped else []
    what = "on a front" if settled else "evaluated"
    told = f": {', '.join([*parts, f'{evaluated:,} {what}'])}" if parts else ""
    return f"{answer.design_count:,} design{'s' * (answer.design_count != 1)}{told}"


def front_line(front: Front) -> str:
    """Line on a front: its network, its objectives, and its number of designs."""
    by = ", ".join(front.measures[key].words for key in front.objectives) or "nothing"
    of = count_of(front.compared_count, "design")
    return f"Pareto front of {front.network} by {by}: {len(front.members):,} of {of}"


def _counts(answer: Answer) -> str:
    has_dropped = any(counts.dropped for counts in answer.counts)
    columns: tuple[str, ...] = (
        "in rows" if has_dropped else "evaluated",
        "compared",
        "on front",
        "constraint\nnot met",
    )
    columns = (*columns, "infeasible", "invalid", *(("dropped by\nbounds",) if has_dropped else ()))
    table = text_table("", ("network",), columns)
    for front, counts in zip(answer.fronts, answer.counts, strict=False):
        found = (counts.designs, counts.ok, len(front.members), counts.unmet, counts.infeasible, counts.invalid)
        numbers = (*found, *((counts.dropped,) if has_dropped else ()))
        table.add_row(counts.network, *(f"{number:,}" for number in numbers))
    return ended_lines([f"{answer.exploration.name}: {design_counts_line(answer)}"]) + render(table)


def _best(answer: Answer) -> str:
    front = answer.overall
    has_odds = FRONT_PROBABILITY in front.rows
    headings = (*_headings(front), *(("best in\nsamples",) if has_odds else ()))
    table = text_table(f"Best designs, {front.network}", ("least", "design", "values"), headings)
    _, latency, _, _ = front.measures
    for key, row in best_designs(front):
        values = values_text(row, answer.exploration.value_names)
        measures = [measure.text(row[m]) for m, measure in front.measures.items()]
        stays = [samples_text(best_probability(front, key)) if key != latency else NOT_VARIED] if has_odds else []
        table.add_row(front.measures[key].words, row["design"], values, *measures, *stays)
    samples = (
        f"best in samples: share of {SAMPLES:,} samples of the costs with a range in which the design has the least"
        " value. Mappings stay the same in all samples, so this says nothing about better mappings."
        f" {NOT_VARIED}: {front.measures[latency].words} does not depend on costs."
    )
    note = ended_lines(filter(None, [answer.table_note, samples if has_odds else ""]))
    return render(table) + note if table.row_count else ""


def _front(answer: Answer) -> str:
    front = answer.overall
    members = front.members
    if members.empty:
        return ended_lines([f"no design has results for {front.network} and meets all constraints: there is no front"])
    headings = (*_headings(front), *_range_headings(front))
    has_slow = are_slow(front.compared).any()
    table = text_table("", ("design", "values", "largest parts"), headings)
    rows, axes = spread(members, MOST_ROWS, [*marked_designs(front)]), answer.exploration.axis_names
    fixed = tuple(name for name in axes if rows[name].nunique() == 1 and len(rows) > 1)
    for row in rows.to_dict("records"):
        terms = " / ".join(filter(None, (row[LARGEST_ENERGY], row[LARGEST_LATENCY])))
        values = values_text(row, tuple(name for name in axes if name not in fixed))
        measures = [measure.text(row[key]) for key, measure in front.measures.items()]
        table.add_row(row["design"], values, terms, *measures, *_range_cells(row, has_slow))
    more = f"{MOST_ROWS} of the {len(members):,} designs on the front: {STEPS}\n" if len(members) > MOST_ROWS else ""
    same = f"in all rows: {values_text(rows.iloc[0].to_dict(), fixed)}" if fixed else ""
    legend = "largest parts: of the energy / of the latency"
    notes = ended_lines(line for line in (legend, same, answer.table_note, front.note, odds_line(front)) if line)
    return ended_lines([front_line(front)]) + render(table) + more + notes


def odds_line(front: Front) -> str:
    """Line on designs that are off the front at nominal costs, but on the front in some samples of the cost ranges.

    The line has the number of these designs, and names the design with the largest probability. If there are none, or
    if the probabilities are not known, the line says this. The result is '' if no costs have ranges.
    """
    rows = front.rows
    if LEAST_ENERGY not in rows:
        return ""
    least, most = constant_shares(front.compared)
    told = (
        f"{SAMPLES:,} samples of costs within their ranges (in a sample, a cost law has one factor for all designs;"
        f" costs without a range, which are {least:.1%} to {most:.1%} of the energies of designs, do not vary)"
    )
    if FRONT_PROBABILITY not in rows:
        return (
            "the probability that a design is on the front, if costs vary within their ranges, is not known: only"
            " totals are stored for designs off the front; `tilewright explore` computes this probability"
        )
    off = rows[~rows[ON_FRONT] & (rows[FRONT_PROBABILITY] > 0)]
    if off.empty:
        return f"{told}: in all samples, the front has only designs that are also on the front at nominal costs"
    first = off.sort_values([FRONT_PROBABILITY, "index"], ascending=[False, True], kind="stable").iloc[0]
    verb = "are" if len(off) > 1 else "is"
    others = f"{count_of(len(off), 'design')} off the front at nominal costs {verb} on the front in some samples"
    probability = samples_text(first[FRONT_PROBABILITY])
    return f"{told}: {others}; {first['design']} is on the front in {probability} of the samples"


def _range_headings(front: Front) -> Iterator[str]:
    """Headings of additional columns in the table of a front. They are needed if costs have ranges, if some accesses
    take longer than a cycle, or if fusion is searched.
    """
    if LEAST_ENERGY in front.rows:
        yield f"energy between\n[{ENERGY.unit}]"
    if FRONT_PROBABILITY in front.rows:
        yield "on the\nfront"
    if are_slow(front.compared).any():
        yield "access\n[cycles]"
    if PLAN_GAPS[0] in front.rows:
        yield from ("gap of\nenergy", "gap of\nlatency")


def _range_cells(row: dict[Any, Any], has_slow: bool) -> Iterator[str]:
    if LEAST_ENERGY in row:
        yield " to ".join(ENERGY.text(row[key]) for key in (LEAST_ENERGY, MOST_ENERGY))
    if FRONT_PROBABILITY in row:
        yield samples_text(row[FRONT_PROBABILITY])
    if has_slow:
        yield USE_MEASURES[ACCESS_CYCLES].text(row[ACCESS_CYCLES])
    if PLAN_GAPS[0] in row:
        yield from (f"{row[gap]:.1%}" for gap in PLAN_GAPS[:2])


def _rest(answer: Answer) -> str:
    return ended_lines((*_cause_lines(answer), *answer.notes, *_assumed(answer)))


def _cause_lines(answer: Answer) -> Iterator[str]:
    for status, group in groupby(answer.causes, key=lambda cause: cause.status):
        causes = list(group)
        for cause in causes[:MOST_CAUSES]:
            yield f"{cause.sentence}{_of_some(cause, answer)}"
        if len(causes) > MOST_CAUSES:
            yield f"{status}: {len(causes) - MOST_CAUSES:,} further causes"


def _of_some(cause: Cause, answer: Answer) -> str:
    """Text with the networks for which a cause holds; '' if these are all networks."""
    some = cause.networks and len(cause.networks) < len(answer.exploration.networks)
    return f" ({', '.join(cause.networks)})" if some else ""


def _assumed(answer: Answer) -> Iterator[str]:
    yield from (f"assumed: {sentence}" for sentence in answer.assumptions)


def _headings(front: Front) -> tuple[str, ...]:
    return tuple(f"{measure.words}\n[{measure.unit}]" for measure in front.measures.values())
