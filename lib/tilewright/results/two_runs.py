"""Comparison of two runs: the differences of their ledgers, and their assumptions.

The differences add up to the difference of the totals. Runs of different networks are refused. If other inputs differ,
such as options, the comparison names them. The text for the terminal shows the totals, then the largest differences by
term and by layer.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tilewright.base.artifacts.envelope import PLUG_INS
from tilewright.base.errors import InputError, Problem, some_of
from tilewright.base.json_values import JsonObject
from tilewright.base.measures import AREA_MM2, ENERGY_PJ, LATENCY_CYCLES
from tilewright.base.units import energy_text, size_text
from tilewright.cost.ledger import ACCESSES
from tilewright.results.batch_turn import BatchTurn, batch_lines, batch_object
from tilewright.results.certain_order import EQUAL, order_notice
from tilewright.results.error_bars.bars_text import ERROR_BARS
from tilewright.results.error_bars.faster import faster_lines
from tilewright.results.held_costs import ranged_pj
from tilewright.results.order_turn import OrderTurn, UncertainNumber, order_turns, turn_lines, turn_object
from tilewright.results.pareto import COSTED, ComparableRuns, objectives_of, uncertain_run
from tilewright.results.run_ledger import ENERGY, LATENCY, QUANTITIES, LedgerPlace, RunLedger, renamed, words_of_term
from tilewright.results.run_point import RunPoint
from tilewright.results.searched_turn import SearchedTurn, searched_lines, searched_object
from tilewright.results.size_turn import SizesOfRuns
from tilewright.results.text_tables import SMALLEST_SHOWN
from tilewright.results.text_tables import share_text as share_of
from tilewright.results.uncertainty import SAMPLES, UncertainRun, energy_range_pj, less_energy_counts, samples_text
from tilewright.results.unlike_runs import BITS, NO_SAMPLES, WARNED, WARNING, one_sided_ranges, unlike_causes
from tilewright.workload.network_identity import NetworkDifference

if TYPE_CHECKING:
    import pandas


DESCRIPTIONS = ("hardware", "mapping", "workload")
COLUMNS = ("quantity", "layer", "term", "memory", "part", "a", "b", "difference", "share_of_difference")
NO_LAYER = "not of a layer"
BITS_OF_OPERANDS, ZEROS_OF_OPERANDS = "bits of the operands", "shares of zeros in the operands"


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

    @property
    def real_difference(self) -> float:
        """Difference that readers see. The difference is 0 if the two values differ by at most the share EQUAL of the
        larger value.
        """
        return 0.0 if abs(self.difference) <= EQUAL * max(abs(self.a), abs(self.b)) else self.difference


@dataclass(frozen=True, eq=False)
class RunComparison:
    """Two runs of one network. The function `compare_two` makes this object."""

    a: RunLedger
    b: RunLedger
    notices: tuple[str, ...]
    """Notices that limit the conclusions from the comparison, such as options that differ."""
    warnings: tuple[str, ...] = ()
    """Reasons why the comparison allows no conclusion about the architectures, such as different process nodes."""
    network: NetworkDifference | None = None
    """Difference of the two networks; None if they are equal, or if the difference is not known."""
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
        the result is () if no term is above 0 in both runs.
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
        """Names of inputs that differ: kinds of input files (such as hardware), the model, options, and plug-ins. If
        the models differ, the network is not compared, because each model reads the network differently.
        """
        one, other = self.a.made_of, self.b.made_of
        kinds = [kind for kind in DESCRIPTIONS if one.get(kind) and other.get(kind) and one[kind] != other[kind]]
        if self.a.run.model != self.b.run.model or _has_one_structure(self.network):
            kinds = [kind for kind in kinds if kind != "workload"]
        found = self.network or NetworkDifference()
        data = [words for words, text in ((BITS_OF_OPERANDS, found.bits), (ZEROS_OF_OPERANDS, found.zeros)) if text]
        return (*kinds, *data, *different_options(self.a, self.b), *different_plug_ins(self.a, self.b))

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
        """Lines of text under a table or a figure of the comparison: warnings, the assumptions, then the notices."""
        return (*self.warning_lines, *self.assumed, *self.notes)

    @property
    def warning_lines(self) -> tuple[str, ...]:
        """Lines of text with the warnings."""
        return tuple(f"{WARNING}{warning}" for warning in self.warnings)

    @property
    def assumed(self) -> tuple[str, ...]:
        """Line of text with the assumptions; () if none are known."""
        return (f"assumed: {self.assumption}",) if self.assumption else ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Lines of text with the notices."""
        return tuple(f"note: {notice}" for notice in self.notices)

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


def needs_networks(a: RunLedger, b: RunLedger) -> bool:
    """True if the comparison of two runs needs the difference of their networks: the networks have the same name and
    were read in the same way, but have different digests.
    """
    return a.run.workload == b.run.workload and _differ_unexplained(a.run, b.run)


def compare_two(a: RunLedger, b: RunLedger, network: NetworkDifference | None = None) -> RunComparison:
    """Comparison of two runs. `network` is the difference of their networks; None if they are equal, or if the
    difference is not known. Raises InputError if the runs have different networks.
    """
    if reason := _refusal(a.run, b.run, network):
        raise InputError([Problem(reason, path=f"{a.run.run}, {b.run.run}")])
    notices = (*_notices(a, b, network), *_range_notices(a.run, b.run))
    warnings = tuple(cause.text for cause in unlike_causes((a.run, b.run)) if cause.kind in WARNED)
    return RunComparison(a, b, notices, warnings, network)


def _range_notices(a: RunPoint, b: RunPoint) -> Iterator[str]:
    """Notices on the range of each run's energy, and on the probability that run A needs less energy than run B. No
    notices if no costs have ranges.
    """
    if not (a.cost_parts or b.cost_parts):
        return
    for name, run in (("A", a), ("B", b)):
        low, high = energy_range_pj(run.energy_pj, run.cost_parts)
        if run.cost_parts:
            yield f"{name} needs {energy_text(low)} to {energy_text(high)} within the ranges of its costs"
    if one_sided := one_sided_ranges((a, b)):
        yield f"{NO_SAMPLES}: {one_sided}"
        return
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
    """Pair of runs with distinct names. The folder of a run, such as that of the full result of a design, can have only
    the name of the network. The run then also gets the name of the folder above. If the names are still equal, each run
    gets the end of its path in `places`, from the last folder in which the two paths differ. `places` are the paths
    that the user wrote.
    """
    one, other = (_with_folder_above(*pair) for pair in zip((a, b), places, strict=True))
    if one.run.run != other.run.run:
        return one, other
    names = _ends(*places)
    return renamed(a, names[0]), renamed(b, names[1])


def _with_folder_above(ledger: RunLedger, place: str) -> RunLedger:
    folders = place.rstrip("/").split("/")
    is_named = ledger.run.run != ledger.run.workload or ledger.run.run not in folders[1:]
    if is_named:
        return ledger
    last = len(folders) - 1 - folders[::-1].index(ledger.run.run)
    return renamed(ledger, "/".join(folders[last - 1 : last + 1]))


def _ends(one: str, other: str) -> tuple[str, str]:
    """Ends of two paths. Both ends begin with the last name (folder or file) in which the paths differ. Paths with
    different numbers of folders, and equal paths, are returned unchanged.
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
    the runs are equal, all rows are kept. Two values that differ by rounding only (EQUAL) count as equal.
    """
    sizes = table["difference"].abs()
    sizes = sizes.where(sizes > EQUAL * table[["a", "b"]].abs().max(axis=1), 0.0)
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
        "warnings": list(comparison.warnings),
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
        **({PLUG_INS: dict(ledger.made_with)} if ledger.made_with else {}),
    }


def _term_name(place: LedgerPlace) -> str:
    if place.term == ACCESSES and place.memory:
        return place.memory
    words = words_of_term(place.term)
    return f"{words}, {place.part}" if place.part else words


def _size(one: Difference) -> tuple[float, float]:
    return -abs(one.difference), -max(one.a, one.b)


def _refusal(a: RunPoint, b: RunPoint, network: NetworkDifference | None) -> str:
    """Reason why two runs cannot be compared; '' if they can be compared."""
    if _is_one_network(a, b):
        return ""
    if a.workload != b.workload:
        names = (f"{one.workload!r}" if one.workload else "an unknown network" for one in (a, b))
        return f"runs of different networks cannot be compared: {' and '.join(names)}"
    if not _differ_unexplained(a, b) or _has_one_structure(network):
        return ""
    if network is not None:
        return f"the network {a.workload!r} is not the same in both runs: {network.structure}"
    if not _cost_alike(a, b):
        return ""
    texts = [run.bits or "not known" for run in (a, b)]
    bits = f" (bits of the operands: {texts[0]} in A; {texts[1]} in B)" if a.bits != b.bits else ""
    return (
        f"the network {a.workload!r} is not the same in both runs{bits}; more is not known, because the network of at"
        " least one run was not found"
    )


def _differ_unexplained(a: RunPoint, b: RunPoint) -> bool:
    """True if two networks have different digests, although both runs read their networks in the same way."""
    read_alike = a.model and a.model == b.model and a.is_of_several_cores == b.is_of_several_cores
    known = bool(a.workload_digest and b.workload_digest)
    return bool(read_alike and known and a.workload_digest != b.workload_digest)


def _cost_alike(a: RunPoint, b: RunPoint) -> bool:
    """True if the same amount of work has costs in both runs."""
    return dict(a.options).get(COSTED) == dict(b.options).get(COSTED)


def _has_one_structure(network: NetworkDifference | None) -> bool:
    """True if two networks are known to differ at most in the bits and the zeros of their operands."""
    return network is not None and not network.structure


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


def different_plug_ins(a: RunLedger, b: RunLedger) -> list[str]:
    """Texts that name the plug-ins that only one run used, or whose code differs between the runs."""
    found = []
    for package in sorted({*a.made_with, *b.made_with}):
        digests = [ledger.made_with.get(package) for ledger in (a, b)]
        if None in digests:
            found.append(f"plug-in {package} (only in {'B' if digests[0] is None else 'A'})")
        elif digests[0] != digests[1]:
            found.append(f"plug-in {package} (with different code)")
    return found


def _notices(a: RunLedger, b: RunLedger, network: NetworkDifference | None) -> Iterator[str]:
    """Notices that can limit the conclusions from the comparison:

    * Options that differ.
    * Bits and shares of zeros that differ.
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
            "only one run is on several cores: this run has other energy terms, and data that move between cores belong"
            " to no layer"
        )
    if network and network.bits:
        bits = f": {a.run.bits} in A; {b.run.bits} in B" if a.run.bits != b.run.bits else ""
        yield (
            f"the {BITS_OF_OPERANDS} differ in {network.bits} of the network{bits}; the difference between A and B"
            " contains the effect of the bits"
        )
    if network and network.zeros:
        yield f"the {ZEROS_OF_OPERANDS} differ in {network.zeros} of the network"
    if _has_one_structure(network):
        if not _cost_alike(*runs):
            yield "some layers are in one run only, because the cores run different parts of the network"
    elif _differ_unexplained(*runs):
        yield (
            "different work has costs in the two runs: it is not known whether the network, its shapes or only its"
            " costed operators differ, because the network of at least one run was not found"
        )
    elif not _is_one_network(*runs):
        read_in_two_ways = all(run.workload_digest and run.model for run in runs)
        yield (
            "some layers are in one run only: the models read the network in different ways, or one run has only a part"
            " of the network"
            if read_in_two_ways
            else "the networks of both runs have the same name, but it is not known whether they are the same"
        )
    if warning := _group(*runs).warning:
        yield warning
    if order := order_notice(*runs):
        yield order
    causes = unlike_causes(runs)
    said_above = (*WARNED, *((BITS,) if network and network.bits else ()))
    yield from (cause.text for cause in causes if cause.kind not in said_above)
    if more := slower_with_more_memory(a, b):
        yield more


def slower_with_more_memory(a: RunLedger, b: RunLedger) -> str:
    """Notice that the run with more memory takes more cycles; '' if it does not take more cycles, or if sizes are not
    known.

    The rules of the scheduler can cause the additional cycles (docs/multi-core-model/large-operands.md).
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
