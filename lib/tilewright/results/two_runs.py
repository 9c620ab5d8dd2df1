"""Comparison of two runs: the differences of their ledgers, and their assumptions.

The differences add up to the difference of the totals. Runs of different networks are refused. If other inputs differ,
such as options, the comparison names them. The text for the terminal shows the totals, then the largest differences by
term and by layer.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tilewright.base.errors import InputError, Problem, some_of
from tilewright.base.harmless import ended_lines
from tilewright.base.json_values import JsonObject
from tilewright.base.measures import AREA_MM2, ENERGY_PJ, LATENCY_CYCLES
from tilewright.base.units import PICOJOULES_A_MICROJOULE, energy_text, size_text
from tilewright.cost.ledger import ACCESSES
from tilewright.results.batch_turn import BatchTurn, batch_lines, batch_object
from tilewright.results.certain_order import order_notice
from tilewright.results.error_bars.bars import ERROR_BARS
from tilewright.results.error_bars.faster import faster_lines
from tilewright.results.held_costs import ranged_pj
from tilewright.results.order_turn import OrderTurn, UncertainNumber, order_turns, turn_lines, turn_object
from tilewright.results.pareto import BY_TIME, COSTED, ComparableRuns, objectives_of, uncertain_run
from tilewright.results.run_ledger import ENERGY, LATENCY, QUANTITIES, LedgerPlace, RunLedger, renamed, words_of_term
from tilewright.results.run_point import RunPoint
from tilewright.results.run_text import area_text
from tilewright.results.searched_turn import SearchedTurn, searched_lines, searched_object
from tilewright.results.size_turn import SizesOfRuns
from tilewright.results.text_tables import SMALLEST_SHOWN, render, text_table
from tilewright.results.text_tables import share_text as share_of
from tilewright.results.uncertainty import SAMPLES, UncertainRun, energy_range_pj, less_energy_counts, samples_text
from tilewright.results.unlike_runs import unlike_causes
from tilewright.results.words import short_layer_name

if TYPE_CHECKING:
    import pandas


DESCRIPTIONS = ("hardware", "mapping", "workload")
COLUMNS = ("quantity", "layer", "term", "memory", "part", "a", "b", "difference", "share_of_difference")
NO_LAYER = "not of a layer"


@dataclass(frozen=True)
class Difference:
    """Difference of two runs in one term, layer or total, with the value of both runs, in pJ or cycles."""

    name: str
    a: float
    b: float

    @property
    def difference(self) -> float:
        """Value of the second run minus the value of the first run."""
        return self.b - self.a


@dataclass(frozen=True, eq=False)
class RunComparison:
    """Two runs of one network. The function `compare_two` makes this object."""

    a: RunLedger
    b: RunLedger
    notices: tuple[str, ...]
    """Notices that limit the conclusions from the comparison, such as options that differ."""
    bandwidths: tuple[UncertainNumber, ...] | None = None
    """Uncertain bandwidths of off-chip memories; None if they are not known."""
    searched: tuple[SearchedTurn, ...] | None = None
    """Changes of one number, each with the order of the two runs after new searches of their mappings. None if no new
    searches were made.
    """
    batched: tuple[BatchTurn, ...] | None = None
    """Order of the two runs with other batch sizes, after new searches of the mappings. There is one element for each
    measure (energy, latency, EDP) in which the runs differ. None if no such searches were made.
    """
    sized: SizesOfRuns | None = None
    """Order of the two runs with other sizes of their memories; None if no sizes were tried."""
    error_bars: JsonObject | None = None
    """Probability that the first run is faster, with the error bars of both (`error_bars.faster.faster_object`). None
    without error bars.
    """

    @property
    def runs(self) -> tuple[RunPoint, RunPoint]:
        """Pair (first run, second run), each as a point in energy, latency and area."""
        return self.a.run, self.b.run

    @cached_property
    def places(self) -> tuple[tuple[LedgerPlace, float, float], ...]:
        """Tuples (key, value in the first run, value in the second run) for all keys of both ledgers. A value is 0 if
        its run does not have the key. The keys of the first run come first, in their order.
        """
        keys = dict.fromkeys((*self.a.entries, *self.b.entries))
        return tuple((key, self.a.entries.get(key, 0.0), self.b.entries.get(key, 0.0)) for key in keys)

    def totals(self, quantity: str) -> Difference:
        """Totals of a quantity (ENERGY in pJ or LATENCY in cycles) in both runs, with their difference."""
        return Difference("total", self.a.total(quantity), self.b.total(quantity))

    def by_term(self, quantity: str) -> tuple[Difference, ...]:
        """Differences by term, the largest first. The energy of accesses is one term for each memory. For the latency,
        the result is () if the runs have no common term that is above 0 in both.
        """
        found = self._added(quantity, _term_name)
        return found if quantity == ENERGY or any(row.a and row.b for row in found) else ()

    def by_layer(self, quantity: str) -> tuple[Difference, ...]:
        """Differences by layer, the largest first; () if the numbers of a run do not belong to single layers."""
        alike = [any(place.layer for place in run.entries if place.quantity == quantity) for run in (self.a, self.b)]
        return self._added(quantity, lambda place: place.layer or NO_LAYER) if all(alike) else ()

    @property
    def assumption(self) -> str:
        """Assumptions behind the results of both runs."""
        same = {key: value for key, value in self.a.options.items() if self.b.options.get(key) == value}
        alike = ", ".join(f"{key} {same[key]}" for key in ("model", "objective") if key in same)
        return "; ".join(filter(None, (alike, _group(*self.runs).assumption)))

    @property
    def differs(self) -> tuple[str, ...]:
        """Names of inputs that differ: kinds of input files (such as hardware), the model, and options. If the models
        differ, the network is not compared, because each model reads the network differently.
        """
        one, other = self.a.made_of, self.b.made_of
        kinds = [kind for kind in DESCRIPTIONS if one.get(kind) and other.get(kind) and one[kind] != other[kind]]
        if self.a.run.model != self.b.run.model:
            kinds = [kind for kind in kinds if kind != "workload"]
        return (*kinds, *different_options(self.a, self.b))

    @property
    def objectives(self) -> tuple[str, ...]:
        """Objectives by which the runs are compared. If the clocks of both runs are known and differ, the latency is
        compared in seconds instead of cycles.
        """
        return objectives_of(self.runs)

    @cached_property
    def turns(self) -> tuple[OrderTurn, ...]:
        """Changes that would reverse the order of the two runs, one element for each of the measures energy, latency
        and EDP. A measure in which the runs are equal has no element.
        """
        return order_turns(self.a, self.b, self.bandwidths)

    @property
    def turn_lines(self) -> tuple[str, ...]:
        """Sentences on the changes that would reverse the order of the two runs."""
        lines = turn_lines(self.turns, by_time=all(run.latency_s for run in self.runs))
        searched = () if self.searched is None else searched_lines(self.searched)
        batched = () if self.batched is None else batch_lines(self.batched)
        lines = (*(() if self.error_bars is None else faster_lines(self.error_bars)), *lines)
        return (*lines, *searched, *batched, *(() if self.sized is None else self.sized.lines))

    @property
    def lines(self) -> tuple[str, ...]:
        """Lines of text under a table or a figure of the comparison: the assumptions, then the notices."""
        assumed = (f"assumed: {self.assumption}",) if self.assumption else ()
        return (*assumed, *(f"note: {notice}" for notice in self.notices))

    def share(self, quantity: str, difference: float) -> float | None:
        """`difference` divided by the difference of the totals of a quantity; None if the totals are equal."""
        whole = self.totals(quantity).difference
        return difference / whole if whole else None

    def _added(self, quantity: str, name_of: Callable[[LedgerPlace], str]) -> tuple[Difference, ...]:
        sums: dict[str, tuple[float, float]] = {}
        for place, a, b in self.places:
            if place.quantity == quantity:
                before = sums.get(name := name_of(place), (0.0, 0.0))
                sums[name] = (before[0] + a, before[1] + b)
        return tuple(sorted((Difference(name, *pair) for name, pair in sums.items()), key=_size))


def compare_two(a: RunLedger, b: RunLedger) -> RunComparison:
    """Comparison of two runs. Raises InputError if the runs have different networks."""
    if reason := _refusal(a.run, b.run):
        raise InputError([Problem(reason, path=f"{a.run.run}, {b.run.run}")])
    return RunComparison(a, b, (*_notices(a, b), *_range_notices(a.run, b.run)))


def _range_notices(a: RunPoint, b: RunPoint) -> Iterator[str]:
    """Notices on the range of each run's energy, and on the probability that run A needs less energy than run B. No
    notices if no costs have ranges.
    """
    if not (a.cost_parts or b.cost_parts):
        return
    for name, run in (("A", a), ("B", b)):
        low, high = energy_range_pj(run.energy_pj, run.cost_parts)
        if run.cost_parts:
            yield f"{name} needs {energy_text(low, 4)} to {energy_text(high, 4)} within the ranges of its costs"
    yield less_energy_text(uncertain_run(a), uncertain_run(b))


def less_energy_text(a: UncertainRun, b: UncertainRun) -> str:
    """Sentence on two shares of the samples of costs: the samples in which run A needs less energy than run B, and the
    samples in which both need the same energy.
    """
    less, same = less_energy_counts(a, b)
    varied = [share_of(ranged_pj(run), run.energy_pj) for run in (a, b)]
    samples = (
        f"{SAMPLES:,} samples of costs within their ranges (costs with a range: {varied[0]} of the energy of A and"
        f" {varied[1]} of the energy of B)"
    )
    if same == SAMPLES:
        return f"A and B need the same energy in all of {samples}"
    equal = f", and as much as B in {samples_text(same / SAMPLES)}" if same else ""
    return f"A needs less energy than B in {samples_text(less / SAMPLES)} of {samples}{equal}"


def with_own_names(a: RunLedger, b: RunLedger, places: Sequence[str]) -> tuple[RunLedger, RunLedger]:
    """Both runs, with distinct names. `places` are the paths that the user wrote. If the names of the runs are equal,
    each run is named by the end of its path, from the last folder in which the paths differ.
    """
    if a.run.run != b.run.run:
        return a, b
    one, other = _ends(*places)
    return renamed(a, one), renamed(b, other)


def _ends(one: str, other: str) -> tuple[str, str]:
    """Ends of two paths, from the last folder in which they differ. Paths of unequal length and equal paths are
    returned unchanged.
    """
    pairs = [*zip(one.split("/"), other.split("/"), strict=False)]
    if one.count("/") != other.count("/") or one == other:
        return one, other
    start = max(place for place, (left, right) in enumerate(pairs) if left != right)
    first, second = zip(*pairs[start:], strict=True)
    return "/".join(first), "/".join(second)


def large_differences(table: "pandas.DataFrame") -> tuple["pandas.DataFrame", list[str]]:
    """Pair (rows of the table of differences for a paper, notes on the rows that are left out).

    A row is left out if its difference is below the share SMALLEST_SHOWN of the largest difference of its quantity. If
    the runs are equal, all rows are kept.
    """
    sizes = table["difference"].abs()
    largest = sizes.groupby(table["quantity"]).transform("max")
    is_shown = (largest == 0) | (sizes >= SMALLEST_SHOWN * largest)
    notes = []
    for quantity, rows in table.groupby("quantity", sort=False):
        left = rows.loc[~is_shown[rows.index], "difference"]
        if len(left):
            notes.append(
                f"{quantity}: {len(left):,} of {len(rows):,} rows are left out, because each differs by less than"
                f" {SMALLEST_SHOWN:.1%} of the largest difference; their differences add up to {sum(left):,.6g}."
            )
    return table[is_shown], notes


def titles_of(comparison: RunComparison) -> str:
    """Titles of both runs with an arrow between them. If the titles are equal, the title is given once, and the arrow
    is between the names of the runs.
    """
    a, b = comparison.runs
    if title_of(a) == title_of(b):
        return f"{title_of(a)}, {a.run} → {b.run}"
    return f"{title_of(a)} → {title_of(b)}"


def comparison_table(comparison: RunComparison) -> "pandas.DataFrame":
    """Table with a row for each key of the two ledgers: value in both runs (pJ or cycles), difference, and share of the
    total difference. The rows on energy come before the rows on latency. In both groups, rows with a larger absolute
    difference come first.

    The column `assumes` has the assumptions of the comparison, its notes, and the changes that would reverse the order
    of the two runs.
    """
    import pandas  # slow to load, and the text needs none

    rows = [dict(zip(COLUMNS, row, strict=True)) for row in _rows(comparison)]
    return pandas.DataFrame(rows, columns=list(COLUMNS)).assign(
        assumes=". ".join((*comparison.lines, *comparison.turn_lines))
    )


def comparison_object(comparison: RunComparison) -> JsonObject:
    """Comparison as a JSON object."""
    return {
        "a": _run_object(comparison.a),
        "b": _run_object(comparison.b),
        "differs": list(comparison.differs),
        "assumes": comparison.assumption,
        "notes": list(comparison.notices),
        "turns": [turn_object(one) for one in comparison.turns],
        **_searched_objects(comparison),
        "totals": {
            quantity: {"a": total.a, "b": total.b, "difference": total.difference}
            for quantity in QUANTITIES
            for total in (comparison.totals(quantity),)
        },
        "differences": [dict(zip(COLUMNS, row, strict=True)) for row in _rows(comparison)],
    }


def _searched_objects(comparison: RunComparison) -> JsonObject:
    """Order of the two runs under changed inputs, as a JSON object: with changed numbers (`searched_turns`), with other
    batch sizes (`batch_turns`) and with other memory sizes (`size_turns`). A field is missing if its changes were not
    tried. The field `error_bars` is missing without error bars.
    """
    searched, batched = comparison.searched, comparison.batched
    return {
        **({} if searched is None else {"searched_turns": list(map(searched_object, searched))}),
        **({} if batched is None else {"batch_turns": list(map(batch_object, batched))}),
        **({} if comparison.sized is None else {"size_turns": comparison.sized.objects}),
        **({} if comparison.error_bars is None else {ERROR_BARS: comparison.error_bars}),
    }


def _rows(comparison: RunComparison) -> list[tuple[Any, ...]]:
    found = [(*place, a, b, b - a, comparison.share(place.quantity, b - a)) for place, a, b in comparison.places]
    return sorted(found, key=lambda row: (QUANTITIES.index(row[0]), -abs(row[7])))


def _run_object(ledger: RunLedger) -> JsonObject:
    run = ledger.run
    return {
        "run": run.run,
        "workload": run.workload,
        "hardware": run.core,
        "several_cores": run.is_of_several_cores,
        ENERGY_PJ: run.energy_pj,
        LATENCY_CYCLES: run.latency_cycles,
        **({} if run.latency_s is None else {"latency_s": run.latency_s}),
        AREA_MM2: run.area_mm2,
        "options": ledger.options,
    }


def _term_name(place: LedgerPlace) -> str:
    if place.term == ACCESSES and place.memory:
        return place.memory
    words = words_of_term(place.term)
    return f"{words}, {place.part}" if place.part else words


def _size(one: Difference) -> tuple[float, float]:
    return -abs(one.difference), -max(one.a, one.b)


def _refusal(a: RunPoint, b: RunPoint) -> str:
    """Reason why two runs cannot be compared; '' if they can be compared."""
    if _is_one_network(a, b):
        return ""
    if a.workload != b.workload:
        names = (f"{one.workload!r}" if one.workload else "an unknown network" for one in (a, b))
        return f"runs of different networks cannot be compared: {' and '.join(names)}"
    read_alike = a.model and a.model == b.model and a.is_of_several_cores == b.is_of_several_cores
    runs_alike = dict(a.options).get(COSTED) == dict(b.options).get(COSTED)
    if read_alike and runs_alike and a.workload_digest and b.workload_digest:
        return f"the network {a.workload!r} is not the same in both runs: its file or its shapes changed"
    return ""


def _group(a: RunPoint, b: RunPoint) -> ComparableRuns:
    """Group of comparable runs with only these two runs. The group has their assumptions and notes."""
    return ComparableRuns(a.workload, "", (a, b), objectives_of((a, b)), ((), ()))


def different_options(a: RunLedger, b: RunLedger) -> list[str]:
    """Names of the options that differ, including the model and the objective."""
    options = (a.options, b.options)
    keys = [key for key in dict.fromkeys((*options[0], *options[1])) if options[0].get(key) != options[1].get(key)]
    if a.run.is_of_several_cores != b.run.is_of_several_cores or not (a.run.model and b.run.model):
        # The two flows have different options, and a design gives its assumptions only as text.
        return [key for key in keys if all(key in one for one in options)]
    return keys


def _notices(a: RunLedger, b: RunLedger) -> Iterator[str]:
    """Notices that can limit the conclusions from the comparison:

    * Options that differ.
    * Energy terms or layers that only one run has.
    * Benefits of larger memories that are not counted.
    * Order of the two runs, and whether this order is certain.
    * Reasons why a ranking can mislead (`unlike_causes`).
    * More memory in the run that takes more cycles.
    """
    runs, options = (a.run, b.run), (a.options, b.options)
    one_flow = a.run.is_of_several_cores == b.run.is_of_several_cores
    keys = different_options(a, b)
    texts = [" | ".join(one.get(key, "not given") for one in options) for key in keys]
    if texts:
        yield f"options differ: {'; '.join(f'{key} {text}' for key, text in zip(keys, texts, strict=True))}"
    if not one_flow:
        yield (
            "only one run is on several cores: it has other energy terms, and data that move between cores belong"
            " to no layer"
        )
    if not _is_one_network(*runs):
        read_in_two_ways = all(run.workload_digest and run.model for run in runs)
        yield (
            "some layers are in one run only: the models read the network in different ways, or one run has only a part"
            " of the network"
            if read_in_two_ways
            else "the networks of both runs have the same name, but whether the networks are the same is not known"
        )
    if warning := _group(*runs).warning:
        yield warning
    if order := order_notice(*runs):
        yield order
    yield from (cause.text for cause in unlike_causes(runs))
    if more := slower_with_more_memory(a, b):
        yield more


def slower_with_more_memory(a: RunLedger, b: RunLedger) -> str:
    """Notice that the run with more memory takes more cycles; '' if it does not take more cycles, or if sizes are not
    known.

    The rules of the scheduler can cause the additional cycles (docs/multi-core-model.md#operands-that-are-too-large).
    The notice therefore says that the difference does not show the benefit of the memory.
    """
    for small, large in ((a, b), (b, a)):
        sizes = [(name, bits, large.memory_bits.get(name, 0)) for name, bits in small.memory_bits.items()]
        more = [f"{name} {size_text(bits)} -> {size_text(other)}" for name, bits, other in sizes if other > bits]
        has_less = small.memory_bits.keys() != large.memory_bits.keys() or any(bits > other for _, bits, other in sizes)
        less, cycles = small.total(LATENCY), large.total(LATENCY)
        if more and not has_less and cycles > less:
            return (
                f"{large.run.run} has more memory than {small.run.run} ({some_of(more)}) and takes {cycles:,.0f} cycles"
                f" instead of {less:,.0f}. The scheduler can cause this: data that fit into a core are fetched before"
                " use instead of streamed, and with more room the scheduler takes other decisions. The difference"
                " therefore does not show the benefit of the memory"
            )
    return ""


def _is_one_network(a: RunPoint, b: RunPoint) -> bool:
    return bool(a.workload_digest) and a.workload_digest == b.workload_digest


MOST_ROWS = 12
UNITS = {ENERGY: ("energy", "µJ", PICOJOULES_A_MICROJOULE), LATENCY: ("latency", "cycles", 1.0)}
"""Units of energy and latency in texts, as tuples (name, unit, number of pJ or cycles in one unit)."""


def comparison_text(comparison: RunComparison) -> str:
    """Text of the comparison: the totals, the differences (the largest first), the assumptions and notes, and the
    changes that would reverse the order of the two runs.
    """
    tables = [
        _differences(comparison, quantity, what, rows)
        for quantity in QUANTITIES
        for what, rows in (("term", comparison.by_term(quantity)), ("layer", comparison.by_layer(quantity)))
        if any(row.difference for row in rows)
    ]
    return "\n".join([_heading(comparison), *tables, ended_lines((*comparison.lines, *comparison.turn_lines))])


def shown(rows: Sequence[Difference], most: int) -> tuple[Difference, ...]:
    """Rows with the largest differences, at most `most`. A last row has the sum of all other differences, so that the
    rows add up to the total.
    """
    kept = tuple(row for row in rows if row.difference)
    rest = [row for row in rows if row not in kept[:most]]
    if not rest:
        return kept
    others = Difference(
        f"{len(rest)} other{'s' * (len(rest) > 1)}", sum(row.a for row in rest), sum(row.b for row in rest)
    )
    return (*kept[:most], others)


def title_of(run: RunPoint) -> str:
    """Title of a run: its network and its hardware."""
    return f"{run.workload or 'a network'} on {run.core or 'a core'}"


def amount(value: float, quantity: str, signed: bool = False) -> str:
    """Text of an energy (given in pJ) or a latency (given in cycles), in the unit for texts (UNITS). `quantity` is
    ENERGY or LATENCY.
    """
    scaled = value / UNITS[quantity][2]
    sign = "+" if signed and value else ""
    return f"{scaled:{sign},.0f}" if abs(scaled) >= 1e4 or quantity == LATENCY else f"{scaled:{sign},.4g}"


def change(one: Difference) -> str:
    """Text of the change from the first to the second run, in percent of the value of the first run. If that value is
    0, the text is `new`, or `-` if both values are 0.
    """
    return f"{one.difference / one.a:+.1%}" if one.a else "new" if one.b else "-"


def share_text(comparison: RunComparison, quantity: str, row: Difference, digits: int = 0) -> str:
    """Difference `row` as a text: its percentage of the difference of the totals of `quantity`, with `digits` decimals.
    '' if the totals are equal.
    """
    share = comparison.share(quantity, row.difference)
    return "" if share is None else f"{round(share, digits + 2) + 0.0:.{digits}%}"


def _heading(comparison: RunComparison) -> str:
    a, b = comparison.runs
    table = text_table("", ("",), ("A", "B", "difference", ""))
    for quantity, (words, unit, _) in UNITS.items():
        row = comparison.totals(quantity)
        table.add_row(f"{words} [{unit}]", *_numbers(row, quantity), change(row))
    if BY_TIME in comparison.objectives:
        time = Difference("", *(float(run.latency_s or 0.0) for run in (a, b)))
        seconds = (f"{time.a:.4g}", f"{time.b:.4g}", f"{time.difference:+.4g}")
        table.add_row("time [s]", *seconds, change(time))
    area = [area_text(run.area_mm2, run.area_note) for run in (a, b)]
    if a.area_mm2 is not None and b.area_mm2 is not None:
        both = Difference("", a.area_mm2, b.area_mm2)
        area += [f"{both.difference:+,.4g}", change(both)]
    table.add_row("area [mm²]", *area, *[""] * (4 - len(area)))
    heads = [f"A: {a.run}, {title_of(a)}", f"B: {b.run}, {title_of(b)}", *_differs(comparison)]
    return ended_lines(heads) + render(table)


def _differs(comparison: RunComparison) -> list[str]:
    """List with one line that names the inputs that differ, or says that all inputs are equal. [] if neither is known,
    because digests of inputs are missing.
    """
    if comparison.differs:
        return [f"they differ in: {', '.join(comparison.differs)}"]
    known = all(run.made_of.get(kind) for run in (comparison.a, comparison.b) for kind in DESCRIPTIONS)
    return ["they have the same hardware, mapping, workload and options"] if known else []


def _differences(comparison: RunComparison, quantity: str, what: str, rows: Sequence[Difference]) -> str:
    words, unit, _ = UNITS[quantity]
    table = text_table(
        f"{words.capitalize()} by {what} [{unit}]", (what,), ("A", "B", "difference", "share of the\nwhole difference")
    )
    for row in (*shown(rows, MOST_ROWS), comparison.totals(quantity)):
        name = short_layer_name(row.name, limit=40)
        table.add_row(name, *_numbers(row, quantity), share_text(comparison, quantity, row, 1) or "-")
    return render(table)


def _numbers(row: Difference, quantity: str) -> tuple[str, str, str]:
    return amount(row.a, quantity), amount(row.b, quantity), amount(row.difference, quantity, signed=True)
