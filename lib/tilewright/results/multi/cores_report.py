"""Limits of a run on several cores: cycles of each core, use of links, and the part of the system whose doubling saves
most cycles.

To find this part, the schedule is simulated again with each part doubled; cost tables and settings stay the same.
Causes of waiting alone do not identify a bottleneck, because another part can be almost as slow.

All cores with the same core file are one part, because a change of the file changes all of them. For the same reason,
memories of the same name in these cores are one part.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tilewright.base.artifacts.codec import decode, encode
from tilewright.base.errors import MappingError, count_of
from tilewright.base.harmless import ended_lines
from tilewright.base.measures import LATENCY_CYCLES
from tilewright.hardware.system import OFFCHIP_PORT
from tilewright.multicore.scheduling.assembled import WEIGHT
from tilewright.multicore.scheduling.options import CAUSAL, ScheduleOptions
from tilewright.multicore.scheduling.problem import OUTPUT_OPERAND, CoreSystem, Integers, SchedulingProblem
from tilewright.multicore.scheduling.result import ScheduleArtifact
from tilewright.multicore.scheduling.simulate import Scheduler
from tilewright.results.multi.bars import ScheduleView
from tilewright.results.multi.core_cycles import BUSY_CAUSES, CAUSES_OF_CYCLES, WAITS, CoreCycles, core_cycles
from tilewright.results.multi.use import LinkUse
from tilewright.results.terminal_tables import render, text_table
from tilewright.results.text_tables import NOTHING, share_text
from tilewright.results.verdict import Verdict, smallest_set
from tilewright.results.words import short_layer_name

if TYPE_CHECKING:
    import pandas

    from tilewright.multicore.scheduling.core_costs import CoreCosts


CORE, LINK, ROOM, WORD = "core", "link", "room", "word"
WORDS = {
    CORE: "{}, twice as fast",
    LINK: "{}, twice as wide",
    ROOM: "{}, twice the room",
    WORD: "{}, words twice as wide",
}
"""Texts that name a doubled part, by kind of part."""
SHORT = {CORE: "{}", LINK: "{}", ROOM: "room of {}", WORD: "words of {}"}
"""Short texts that name a part of the system (core, link, memory capacity or memory words), by kind of part."""
MOST_SETS_PLAYED = 60
"""Largest number of simulated sets of doubled parts, for each size of a set. Sets are simulated only if no single part
saves cycles.
"""
MOST_NODES_PLAYED = 3_000_000
"""Largest total number of computation nodes in all simulated schedules. If there are more, no schedule is simulated."""
_LARGEST = 2**60


Change = Callable[[SchedulingProblem], SchedulingProblem]


class DoubledPart(NamedTuple):
    """Part of the system that is doubled in a simulation."""

    kind: str
    name: str
    latency_cycles: int | None
    """Latency in cycles with the doubled part; None if the schedule cannot be simulated with it."""

    @property
    def words(self) -> str:
        """Text that names the part and how it is doubled, such as `<name>, twice as fast` for a core."""
        return WORDS[self.kind].format(self.name)

    @property
    def short(self) -> str:
        """Short text that names the part. The text does not say how the part is doubled."""
        return SHORT[self.kind].format(self.name)


@dataclass(frozen=True)
class ScheduleLimits:
    """Limits of a schedule: for each part of the system, the number of cycles that doubling this part saves."""

    parts: tuple[DoubledPart, ...] = ()
    """Parts that were doubled one at a time, the largest saving first. Parts with equal savings are in this order:
    cores, links, memories. Parts of the same kind with equal savings are in the order of their indices.
    """
    latency_cycles: int = 0
    """Latency of the unchanged schedule, in cycles."""
    unknown: str = ""
    """Reason why no part was doubled; '' if parts were doubled."""
    together: tuple[DoubledPart, ...] = ()
    """Smallest set of parts whose doubling saves cycles; () if a single part saves cycles, or if no set saves cycles.
    The field `latency_cycles` of each part has the latency with all parts of the set doubled.
    """

    @property
    def helpful(self) -> tuple[DoubledPart, ...]:
        """Parts that save cycles if doubled. The first part is the bottleneck, the second part is the runner-up."""
        return tuple(part for part in self.parts if self.gain_cycles(part) > 0)

    @property
    def verdict(self) -> Verdict:
        """Verdict on the cycles that doubling saves. It compares all single parts. If no single part saves cycles but
        the set `together` does, the set is the only candidate.
        """
        rivals = [(part.words, float(self.gain_cycles(part))) for part in (self.parts if not self.together else ())]
        if self.together:
            rivals = [(self.together_words, float(self.gain_cycles(self.together[0]))), *rivals]
        return Verdict.of("cycles that doubling a part saves", "cycles", self.latency_cycles, rivals, "-")

    @property
    def together_words(self) -> str:
        """Text that names the parts in `together`."""
        return " and ".join(part.words for part in self.together)

    def gain_cycles(self, part: DoubledPart) -> int:
        """Cycles saved by doubling the part; negative if the latency increases, and 0 if the latency with the doubled
        part is not known.
        """
        return 0 if part.latency_cycles is None else self.latency_cycles - part.latency_cycles

    def as_object(self) -> dict[str, Any]:
        """Limits as a JSON object."""
        rows = [part._asdict() | {"gain_cycles": self.gain_cycles(part)} for part in self.parts]
        together = [part._asdict() | {"gain_cycles": self.gain_cycles(part)} for part in self.together]
        known = {LATENCY_CYCLES: self.latency_cycles, "doubled": rows, "not_known": self.unknown}
        return known | ({"together": together} if together else {})


def schedule_limits(view: ScheduleView, node_ids: Sequence[int] | None = None) -> ScheduleLimits:
    """Limits of a schedule: for each part of the system, the latency with this part doubled. The parts are sorted by
    the cycles that doubling saves, the largest saving first. Allocation, cost tables and options stay unchanged. If no
    single part saves cycles, sets of parts are doubled too. If the schedule cannot be simulated again, the result has
    only the reason (`unknown`).

    `node_ids` are the ids of the layers, as in `cn_graph.json`. Without these ids, a schedule with the option
    `layers_by_off_chip` cannot be simulated again.
    """
    artifact = view.artifact
    if artifact.schedule_model != CAUSAL:
        return ScheduleLimits(unknown=f"schedules of the model {artifact.schedule_model} cannot be simulated again")
    changed = list(_doubled(view))
    if artifact.graph.node_count * (len(changed) + 1) > MOST_NODES_PLAYED:
        return ScheduleLimits(
            unknown=f"{artifact.graph.node_count:,} computation nodes are too many for further simulations"
        )
    options = options_of(artifact, node_ids)
    if options is None:
        return ScheduleLimits(unknown="the recorded options of the schedule do not reproduce it")
    latency = artifact.schedule.latency_cycles
    played = [
        (DoubledPart(kind, name, _latency(change(artifact.problem), artifact, options)), change)
        for kind, name, change in changed
    ]
    played.sort(key=lambda pair: latency if pair[0].latency_cycles is None else pair[0].latency_cycles)
    found = ScheduleLimits(tuple(part for part, _ in played), latency)
    if found.helpful:
        return found
    most = MOST_NODES_PLAYED // max(1, artifact.graph.node_count) - len(changed)
    return replace(found, together=_together(played, artifact, options, most))


def _together(
    played: Sequence[tuple[DoubledPart, Change]], artifact: ScheduleArtifact, options: ScheduleOptions, most: int
) -> tuple[DoubledPart, ...]:
    """Smallest set of parts whose doubling saves cycles; () if no such set is found, or if `most` is less than the
    number of parts. `most` is the number of schedules that may still be simulated. The field `latency_cycles` of each
    returned part is the latency with the whole set doubled.

    For each size of the sets, the number of simulated sets has two limits: MOST_SETS_PLAYED, and `most` minus the
    number of parts. If a size has more sets, only its sets that contain every necessary part are simulated. The
    necessary parts are found by simulations of all sets that lack exactly one part.
    """
    latency, places = artifact.schedule.latency_cycles, range(len(played))
    if most < len(played):
        return ()

    def of(chosen: tuple[int, ...]) -> int | None:
        problem = artifact.problem
        for place in chosen:
            problem = played[place][1](problem)
        return _latency(problem, artifact, options)

    def saved(chosen: tuple[int, ...]) -> float:
        cycles = of(chosen)
        return 0.0 if cycles is None else float(latency - cycles)

    found = smallest_set(tuple(places), saved, 1, min(MOST_SETS_PLAYED, most - len(played)))
    if found is None:
        return ()
    cycles = of(found[0])
    return tuple(played[place][0]._replace(latency_cycles=cycles) for place in found[0])


def options_of(artifact: ScheduleArtifact, node_ids: Sequence[int] | None) -> ScheduleOptions | None:
    """Options of the scheduler that reproduce this schedule; None if no known options reproduce it.

    Older files do not state which memory operands were prefetched. For these files, several choices are tried,
    beginning with the operands of weights.
    """
    stated = (artifact.provenance or {}).get("options", {})
    layers = tuple(stated.get("layers_by_off_chip", ()))
    if layers and (node_ids is None or any(one not in node_ids for one in layers)):
        return None
    names = ("scheduler_candidate_selection", "stack_order", "prefetch_results", "share_divisor")
    given = {name: stated[name] for name in names if name in stated}
    given["layers_by_off_chip"] = tuple(sorted((node_ids or []).index(one) for one in layers))
    for operands in _prefetched(artifact) if stated.get("operands_to_prefetch") else [()]:
        options = ScheduleOptions(**given, operands_to_prefetch=operands)
        played = Scheduler(artifact.problem, options)(artifact.schedule.allocation)
        if _is_equal(played.start_cycles, artifact.schedule.start_cycles) and np.array_equal(
            played.transfers, artifact.schedule.transfers
        ):
            return replace(options, record=False)
    return None


def _prefetched(artifact: ScheduleArtifact) -> Iterator[tuple[int, ...]]:
    """Candidates for the set of prefetched memory operands, as tuples of indices. If the artifact states the set, this
    set is the only candidate. Otherwise, the operands of weights come first, then all other non-empty sets of input
    operands, in order of size.
    """
    if artifact.operands_to_prefetch:
        yield artifact.operands_to_prefetch
        return
    graph = artifact.graph
    is_weight = np.array([kind == WEIGHT for kind in artifact.names.tensor_kinds], np.bool_)
    own = is_weight[artifact.piece_tensor[graph.need_piece]]
    first = tuple(one for one in np.unique(graph.need_operand[own]).tolist() if one != OUTPUT_OPERAND)
    operands = range(1, artifact.system.core_memory.shape[1])
    others = (choice for count in range(1, len(operands) + 1) for choice in itertools.combinations(operands, count))
    yield from dict.fromkeys((first, *others))


def _is_equal(one: Integers, other: Integers) -> bool:
    return bool(np.array_equal(one, other))


def _latency(problem: SchedulingProblem, artifact: ScheduleArtifact, options: ScheduleOptions) -> int | None:
    try:
        return Scheduler(problem, options)(artifact.schedule.allocation).latency_cycles
    except MappingError:
        return None


def _doubled(view: ScheduleView) -> Iterator[tuple[str, str, Change]]:
    """Triples (kind, name, function that doubles the part), one for each part of the system."""
    system, names = view.system, view.names
    for name, cores in _core_groups(view).items():
        yield CORE, name, partial(_faster, cores=cores)
    carries = view.schedule.link_bits.sum(axis=0) > 0
    for link, width in enumerate(system.link_bits_per_cycle.tolist()):
        if width < _LARGEST and carries[link]:
            tables: list[tuple[Sequence[str], Sequence[int]]] = [(["link_bits_per_cycle"], [link])]
            if names.link_kinds[link] == OFFCHIP_PORT:  # the port is what makes words of the memory as wide as they are
                tables.append((_WORD_WIDTHS, [system.off_chip_memory]))
            label = view.link_label(link)
            yield LINK, label if label[0].isalpha() else f"link {label}", partial(_more, tables=tables)
    for name, memories in _memory_groups(view).items():
        yield ROOM, name, partial(_more, tables=[(["memory_capacity_bits"], memories)])
        yield WORD, name, partial(_more, tables=[(_WORD_WIDTHS, memories)])


def _faster(problem: SchedulingProblem, cores: Sequence[int]) -> SchedulingProblem:
    """Scheduling problem in which CNs take half of the cycles on the given cores."""
    runtime = problem.costs.runtime_cycles.copy()
    runtime[:, cores] = np.where(runtime[:, cores] > 0, -(-runtime[:, cores] // 2), runtime[:, cores])
    return replace(problem, costs=replace(problem.costs, runtime_cycles=runtime))


def _more(problem: SchedulingProblem, tables: Sequence[tuple[Sequence[str], Sequence[int]]]) -> SchedulingProblem:
    """Scheduling problem in which some values of the system are doubled. Each pair in `tables` has names of array
    fields of `CoreSystem`, and indices. In each of these arrays, the values at the indices are doubled.
    """
    system = problem.system
    for names, where in tables:
        system = _times_two(system, names, where)
    return replace(problem, system=system)


def _core_groups(view: ScheduleView) -> dict[str, list[int]]:
    """Indices of the cores of each group, by name of the group. A group has the cores that run CNs and have the same
    core file.
    """
    groups: dict[str, list[int]] = {}
    for core in np.unique(view.schedule.allocation).tolist():
        groups.setdefault(view.names.core_files[core], []).append(core)
    ids = view.names.core_ids
    return {
        f"core{'s' * (len(cores) > 1)} {', '.join(str(ids[core]) for core in cores)}: {file}": cores
        for file, cores in groups.items()
    }


def _memory_groups(view: ScheduleView) -> dict[str, list[int]]:
    """Groups of on-chip memories, by group name.

    A group has all memories of the same name whose cores have the same core files. Memories that are always empty are
    left out.
    """
    system, names = view.system, view.names
    groups: dict[tuple[tuple[str, ...], str], list[int]] = {}
    for memory in np.unique(system.core_memory).tolist():
        if memory in (-1, system.off_chip_memory) or not view.schedule.peak_bits[memory]:
            continue
        users = np.flatnonzero((system.core_memory == memory).any(axis=1)).tolist()
        files = tuple(dict.fromkeys(names.core_files[core] for core in users))
        groups.setdefault((files, names.memory_names[memory].split(": ", 1)[-1]), []).append(memory)
    return {f"memory {name} of {' and '.join(files)}": memories for (files, name), memories in groups.items()}


_WORD_WIDTHS = ("memory_read_bits", "memory_write_bits")


def _times_two(system: CoreSystem, names: Sequence[str], places: Sequence[int]) -> CoreSystem:
    changed = {name: getattr(system, name).copy() for name in names}
    for values in changed.values():
        values[places] = np.minimum(2 * values[places], np.maximum(_LARGEST, values[places]))
    return replace(system, **changed)


@dataclass(frozen=True)
class CoresReport:
    """Report on a run on several cores: cycles of the cores, use of links, and limits of the schedule."""

    latency_cycles: int
    rows: tuple[CoreCycles, ...]
    """Cycles of each core by layer and cause. In a report on all layers, the rows of a core add up to the latency."""
    limits: ScheduleLimits
    links: tuple[LinkUse, ...]
    """Links that carry data, the most used first."""
    layer: str = ""
    """Layer to which the report is restricted; '' for all layers."""

    @property
    def cores(self) -> tuple[str, ...]:
        """Names of the cores, in the order of the accelerator."""
        return tuple(dict.fromkeys(row.core for row in self.rows))

    @property
    def table(self) -> "pandas.DataFrame":
        """Table with a row for each core, layer, cause and detail, in cycles, as in `core_cycles.csv`."""
        import pandas  # slow to load, and the text needs none

        return pandas.DataFrame(self.rows, columns=list(CoreCycles._fields))

    def of_layer(self, layer: str) -> "CoresReport":
        """Report restricted to one layer. The report has only the cycles in which a CN of the layer runs, or in which a
        core waits to start such a CN.
        """
        return replace(self, rows=tuple(row for row in self.rows if row.layer == layer), layer=layer)

    def added(self, key: Callable[[CoreCycles], Any], causes: Iterable[str] | None = None) -> dict[Any, int]:
        """Sums of cycles grouped by a key, the largest first. Only cycles with a cause in `causes` count; None counts
        all.
        """
        wanted = None if causes is None else set(causes)
        found: dict[Any, int] = {}
        for row in self.rows:
            if wanted is None or row.cause in wanted:
                found[key(row)] = found.get(key(row), 0) + row.cycles
        return dict(sorted(found.items(), key=lambda pair: -pair[1]))

    def as_object(self) -> dict[str, Any]:
        """Report as a JSON object."""
        return {
            "core_cycles": [row._asdict() for row in self.rows],
            "limits": self.limits.as_object(),
            "links": encode(self.links),
        }


def cores_report(
    view: ScheduleView,
    costs: "CoreCosts | None",
    summary: Mapping[str, Any],
    node_ids: Sequence[int] | None = None,
) -> CoresReport | None:
    """Report on a schedule; None if the schedule model is not causal.

    `costs` are the cost tables by core file, `summary` is the summary of the run, and `node_ids` are the ids of the
    layers.
    """
    rows = core_cycles(view, costs)
    if not rows:
        return None
    links = [link for link in decode(tuple[LinkUse, ...], summary["links"]) if link.bits]
    links.sort(key=lambda link: (-(link.utilisation or 0.0), -link.busy))
    return CoresReport(view.schedule.latency_cycles, rows, schedule_limits(view, node_ids), tuple(links))


MOST_WAITS, MOST_LAYERS, MOST_LINKS, MOST_PARTS = 12, 30, 16, 10


def cores_text(report: CoresReport) -> str:
    """Text on the cycles of each core, the causes of waiting, the cycles saved by doubling a part, and the links."""
    parts = [_cores(report), _waits(report)]
    if not report.layer:
        parts += [_limits(report.limits), _links(report), _layers(report)]
    return "\n".join(part for part in parts if part)


def limit_lines(limits: ScheduleLimits) -> list[str]:
    """Text lines that name the bottleneck and the runner-up: the parts of the system whose doubling saves most and
    second most cycles. If no single part saves cycles, or if the limits are not known, the lines say so.
    """
    if limits.unknown:
        return [f"the limit of the run is not known: {limits.unknown}"]
    if limits.together:
        gain = limits.gain_cycles(limits.together[0])
        return [
            "doubling a single part saves nothing",
            f"limited by: {limits.together_words} together saves {gain:,} cycles,"
            f" {share_text(gain, limits.latency_cycles)}",
        ]
    if not limits.helpful:
        return [
            "doubling a single part saves nothing: the nodes wait for one another, or several parts are equally slow"
        ]
    names = ("limited by", "runner-up")
    return [
        f"{name}: {_told(limits, part)} saves {limits.gain_cycles(part):,} cycles,"
        f" {share_text(limits.gain_cycles(part), limits.latency_cycles)}"
        for name, part in zip(names, limits.helpful, strict=False)
    ]


def wait_words(row: CoreCycles) -> str:
    """Text that names the cause of the cycles of a row, and its detail if there is one: `cause: detail`."""
    return f"{row.cause}: {row.what}" if row.what else row.cause


def _told(limits: ScheduleLimits, part: DoubledPart) -> str:
    equal = sum(limits.gain_cycles(one) == limits.gain_cycles(part) for one in limits.parts) - 1
    return part.words + (f" (or {equal} other{'s' * (equal > 1)})" if equal else "")


def _cores(report: CoresReport) -> str:
    by_core = report.added(lambda row: (row.core, row.cause))
    causes = [cause for cause in CAUSES_OF_CYCLES if any(key[1] == cause for key in by_core)]
    title = f"Cycles of each core by cause; the latency is {report.latency_cycles:,} cycles"
    if report.layer:
        title = "Cycles of the cores that run the layer or wait to run it"
    table = text_table(title, ("core",), (*causes, *(["cycles"] if report.layer else [])))
    for core in report.cores:
        values = [by_core.get((core, cause), 0) for cause in causes]
        whole = sum(values)
        shares = (share_text(value, whole) if value else "" for value in values)
        table.add_row(core, *shares, *([f"{whole:,}"] if report.layer else []))
    return render(table)


def _waits(report: CoresReport) -> str:
    waits = report.added(wait_words, WAITS)
    if not waits:
        return ""
    table = text_table("Causes of waiting, summed over all cores", ("cause", "mostly before"), ("cycles", "share"))
    total = sum(waits.values())
    of_layers = report.added(lambda row: (wait_words(row), row.layer), WAITS)
    for words, cycles in list(waits.items())[:MOST_WAITS]:
        layer = next(layer for name, layer in of_layers if name == words)
        most = f"{short_layer_name(layer, '', 30)} ({share_text(of_layers[words, layer], cycles)})"
        table.add_row(words, most, f"{cycles:,}", share_text(cycles, total))
    rest = len(waits) - MOST_WAITS
    return render(table) + (
        f"  not shown: {count_of(rest, 'shorter wait')} (`-o FOLDER` writes all)\n" if rest > 0 else ""
    )


def _limits(limits: ScheduleLimits) -> str:
    lines = ended_lines(limit_lines(limits))
    if limits.unknown or not limits.helpful:
        return lines
    title = "Savings if one part of the system is doubled, with the same allocation and cost tables"
    table = text_table(title, ("part",), ("cycles", "share"))
    for part in limits.helpful[:MOST_PARTS]:
        gain = limits.gain_cycles(part)
        table.add_row(part.words, f"{gain:,}", share_text(gain, limits.latency_cycles))
    worse = [part for part in limits.parts if limits.gain_cycles(part) < 0]
    text = lines + render(table)
    if worse:
        why = "because nodes would then run in a worse order"
        text += f"  {count_of(len(worse), 'further part')} would make the schedule longer if doubled, {why}\n"
    return text


def _links(report: CoresReport) -> str:
    table = text_table("Links", ("link",), ("width [bit/cycle]", "moved [KiB]", "busy", "of its width"))
    for link in report.links[:MOST_LINKS]:
        width = "unlimited" if link.width_bits_per_cycle is None else f"{link.width_bits_per_cycle:,}"
        used = NOTHING if link.utilisation is None else share_text(link.utilisation, 1.0)
        table.add_row(link.name, width, f"{link.bits / 8192:,.1f}", share_text(link.busy, 1.0), used)
    rest = len(report.links) - MOST_LINKS
    if not report.links:
        return ""
    more = f"  not shown: {count_of(rest, 'link')} with less data (`-o FOLDER` writes all)\n"
    return render(table) + (more if rest > 0 else "")


def _layers(report: CoresReport) -> str:
    """Text of a table of the layers with most cycles: cycles in which cores run CNs of the layer or wait to
    start them.
    """
    title = "Layers: cycles in which cores run nodes of the layer or wait to run them"
    table = text_table(title, ("layer", "waits most for"), ("computing", "waiting"))
    busy, waits = (report.added(lambda row: row.layer, causes) for causes in (BUSY_CAUSES, WAITS))
    of_waits = report.added(lambda row: (row.layer, wait_words(row)), WAITS)
    order = sorted(dict.fromkeys([*busy, *waits]), key=lambda layer: -(busy.get(layer, 0) + waits.get(layer, 0)))
    for layer in order[:MOST_LAYERS]:
        most = next((words for name, words in of_waits if name == layer), "")
        share = f" {share_text(of_waits[layer, most], waits[layer])}" if most else ""
        told = f"{busy.get(layer, 0):,}", f"{waits.get(layer, 0):,}"
        table.add_row(short_layer_name(layer, limit=30), f"{most}{share}" or NOTHING, *told)
    rest = len(order) - MOST_LAYERS
    more = f"  not shown: {count_of(rest, 'shorter layer')} (`-o FOLDER` writes all)\n"
    return render(table) + (more if rest > 0 else "")
