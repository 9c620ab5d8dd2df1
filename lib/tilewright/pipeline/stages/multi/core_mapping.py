"""Intra-core mapping: the cost of each class of computation nodes (CNs) on one core, as in IntraCoreMappingStage of
Stream.

The mapping file or the dataflows of the core file give the spatial mappings; otherwise, spatial mappings are searched.
"""

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace

from tilewright.base.errors import InputError, MappingError, NothingFitsError, Problem, TimeBudgetError, nearest_name
from tilewright.base.objectives import OBJECTIVES, ranking
from tilewright.hardware.core import Core
from tilewright.hardware.static_power import without_static_power
from tilewright.hardware.system import OFFCHIP, MultiCoreAccelerator
from tilewright.mapping.constraints import Mapping as LayerMapping
from tilewright.mapping.control_rules import refuse_control
from tilewright.mapping.dataflows import constraints_on_core, refusal
from tilewright.mapping.runnable import core_choice
from tilewright.mapping.zero_keys import refuse_zeros
from tilewright.multicore.nodes.graph import CnGraph
from tilewright.multicore.scheduling.core_costs import CoreCostRow
from tilewright.multicore.scheduling.cost_classes import CostClass, CostClasses, cost_classes
from tilewright.pipeline.stages.base import Control, Rest, Stage
from tilewright.pipeline.stages.items import LayerProblem
from tilewright.pipeline.stages.layer_search import LayerSearch, LayerTask
from tilewright.pipeline.stages.layers import what_is_minimised
from tilewright.pipeline.stages.multi.cost_rows import (
    MappedCn,
    cost_row,
    described,
    partial_sum_bits,
    why_not_going_on,
    with_off_chip_memory,
)
from tilewright.pipeline.stages.multi.kept_operands import OTHER, Needs, class_needs, stream_buffers, stream_choices
from tilewright.pipeline.stages.multi.node_waiting import (
    NO_WAITING,
    NodeWaiting,
    node_waiting,
    without_calls_and_commands,
)
from tilewright.pipeline.stages.run import below_workload, default_pipeline
from tilewright.pipeline.stages.user_stages import SearchIdentity
from tilewright.search.options import CoreSearchOptions
from tilewright.search.store import Store
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.layer import FINAL_OUTPUT, OUTPUT, Layer


@dataclass(frozen=True)
class _System:
    """Core file of an accelerator, with all properties of the accelerator that affect the costs of CNs on the cores
    with this file.
    """

    accelerator: MultiCoreAccelerator
    core: Core
    core_ids: frozenset[int]
    """Ids of the cores that use this core file."""
    off_chip: Core | None
    waiting: NodeWaiting
    """Calls and commands of the CNs on the core. `core` itself does not have the keys of calls and commands."""


@dataclass(frozen=True)
class _Attempt:
    """One attempt to map a class of CNs on the core: a set of operands that stream, sizes of memories, and a
    dataflow.
    """

    task: LayerTask
    streams: tuple[str, ...]
    """Memory operands that stream from or to the off-chip memory in this attempt."""
    is_whole: bool = True
    """True if all memories have their full size. False if memories through which operands stream are made smaller,
    because these memories only serve as buffers.
    """


@dataclass(frozen=True)
class _Plan:
    """Attempts to map a class of CNs, or the reason why no attempt is possible."""

    cost_class: CostClass
    attempts: tuple[_Attempt, ...] = ()
    reason: str = ""
    waiting: NodeWaiting = NO_WAITING


KnownRows = MutableMapping[Hashable, CoreCostRow]
"""Rows of the cost tables of earlier searches, by key of the row. The earlier searches had the same options and
accelerator, but the tiling of the network can differ.
"""


def map_core(
    graph: CnGraph,
    workload: Workload,
    mapping: LayerMapping,
    accelerator: MultiCoreAccelerator,
    core_file_name: str,
    options: CoreSearchOptions,
    *,
    threads: int = 1,
    store: Store | None = None,
    show_progress: bool = False,
    on_found: Callable[[LayerTask], None] | None = None,
    stages: Sequence[Stage] | None = None,
    needs: Sequence[Mapping[str, int]] | None = None,
    known: KnownRows | None = None,
    only: Collection[int] | None = None,
) -> tuple[CoreCostRow, ...]:
    """Rows of the cost table for one core file: one row for each cost class of the graph, in the order of the classes.
    If the core cannot run a class, the row of the class has the reason.

    `core_file_name` is a key of `accelerator.distinct_cores`. `on_found` is called after each search of a mapping. If
    the search is interrupted, finished mappings stay in `store`. `stages` search the mapping of a CN; they replace the
    stages below Workload in the default pipeline. `needs` is the result of `class_needs`, which is the same for all
    cores. A class whose row is in `known` is not mapped again; new rows are added to `known`. `only` has the numbers of
    the classes that get rows; None means all classes. Raises InputError for an unknown core file.
    """
    system = _system(accelerator, core_file_name)
    refuse_zeros([system.core], "a run on several cores")
    refuse_control([system.core], "a run on several cores")
    classes = cost_classes(graph, workload, mapping)
    chosen = below_workload(default_pipeline(options).stages) if stages is None else tuple(stages)
    search = Rest(chosen, Control(threads, store, show_progress=show_progress))
    needs = class_needs(graph, workload, classes) if needs is None else needs
    known = {} if known is None else known
    kinds = _kinds_of_layers(graph, workload, mapping)
    keys = [_row_key(core_file_name, graph, *one, kinds) for one in zip(classes.classes, needs, strict=True)]
    wanted_places = range(len(keys)) if only is None else sorted(only)
    places = [place for place in wanted_places if keys[place] not in known]
    if places:
        identity = SearchIdentity(search.stages)
        missing = CostClasses(tuple(classes.classes[at] for at in places), classes.of_cn)
        reasons = _class_reasons(graph, workload, mapping, system, missing)
        wanted = [(classes.classes[at], needs[at], reason) for at, reason in zip(places, reasons, strict=True)]
        plans = _plans(graph, system, wanted, identity)
        told = None if on_found is None else lambda task, records: on_found(task)
        goal = kept if (kept := what_is_minimised(chosen)) in OBJECTIVES else options.objective
        title = f"{graph.network} on {system.core.name}"
        layers = LayerSearch(title, search, told, objective=goal, all_of_them=False)
        layers.run(_tasks(plans, layers))
        plans = [
            _with_more_streams(plan, graph.shapes[plan.cost_class.shape], needs[at], system, identity)
            if plan.attempts and not _found(plan, layers)
            else plan
            for plan, at in zip(plans, places, strict=True)
        ]
        layers.run(_tasks(plans, layers))
        known.update({keys[at]: _row(at, plan, layers, goal) for plan, at in zip(plans, places, strict=True)})
    return tuple(
        described(known[keys[place]], place, classes.classes[place], graph.shapes[classes.classes[place].shape])
        for place in wanted_places
    )


def _kinds_of_layers(graph: CnGraph, workload: Workload, mapping: LayerMapping) -> list[Hashable]:
    """Properties that decide which cores are allowed to run a layer: one tuple for each layer of the graph."""
    node_of = {node.node_id: node for node in workload.nodes}
    kinds: list[Hashable] = []
    for cn_layer in graph.layers:
        node = node_of[cn_layer.node_id]
        assert node.layer is not None
        entry = mapping.constraints_for(node.layer)
        operator = node.operator_type, node.origin_type, node.unit, node.layer.operands
        kinds.append((*operator, entry.core_allocation, entry.memory_operand_links))
    return kinds


def _row_key(
    core_file_name: str, graph: CnGraph, cost_class: CostClass, needs: Mapping[str, int], kinds: Sequence[Hashable]
) -> Hashable:
    """Key of the row of a class on a core. The key covers all data that determine the content of the row. It does not
    cover the number of the row in the table, or the names of layers. `kinds` has the properties of all layers of the
    graph (`_kinds_of_layers`).
    """
    steps = cost_class.takes_partial_sums, cost_class.leaves_partial_sums
    shape = graph.shapes[cost_class.shape]
    operators = frozenset(kinds[number] for number in cost_class.layers)
    return core_file_name, shape, cost_class.constraints, steps, tuple(sorted(needs.items())), operators


def class_reasons(
    graph: CnGraph, workload: Workload, mapping: LayerMapping, accelerator: MultiCoreAccelerator, core_file_name: str
) -> tuple[str, ...]:
    """Reason for each class of CNs why no core with the core file `core_file_name` is allowed to run the class. The
    reason is '' if a core with this file is allowed to run the class. The reasons follow from the input files, without
    a search of mappings.

    Three properties of the accelerator determine the rows of the cost table for a core file: these reasons, the core in
    the file, and the off-chip core.
    """
    classes = cost_classes(graph, workload, mapping)
    return _class_reasons(graph, workload, mapping, _system(accelerator, core_file_name), classes)


def unknown_core_file(accelerator: MultiCoreAccelerator, name: str) -> Problem:
    """Problem that reports the name of a core file that an accelerator does not have."""
    known = list(accelerator.distinct_cores)
    nearest = nearest_name(name, known)
    message = "has no such core file"
    return Problem(message, accelerator.name, value=name, allowed=", ".join(known), nearest=nearest)


def _system(accelerator: MultiCoreAccelerator, core_file_name: str) -> _System:
    cores = accelerator.distinct_cores
    if core_file_name not in cores:
        raise InputError([unknown_core_file(accelerator, core_file_name)])
    off_chip_id = accelerator.offchip_core_id
    core = cores[core_file_name]
    return _System(
        accelerator,
        without_calls_and_commands(without_static_power(core)),  # added by schedules and by the rows of CNs
        frozenset(
            place.core_id for place in accelerator.places if place.file_name == core_file_name and place.role != OFFCHIP
        ),
        None if off_chip_id is None else without_static_power(accelerator.core_of[off_chip_id]),
        node_waiting(core),
    )


def _plans(
    graph: CnGraph,
    system: _System,
    wanted: Sequence[tuple[CostClass, Mapping[str, int], str]],
    identity: SearchIdentity,
) -> list[_Plan]:
    """List with one `_Plan` for each class of CNs: an attempt to map the class. `wanted` has a tuple (class, needs,
    reason) for each class. The reason says why no core may run the class; '' if a core may run it.
    """
    plans = []
    for cost_class, its_needs, reason in wanted:
        layer = graph.shapes[cost_class.shape]
        plans.append(
            _Plan(cost_class, reason=reason) if reason else _plan(cost_class, layer, its_needs, system, identity)
        )
    return plans


def _class_reasons(
    graph: CnGraph, workload: Workload, mapping: LayerMapping, system: _System, classes: CostClasses
) -> tuple[str, ...]:
    node_of = {node.node_id: node for node in workload.nodes}
    nodes = [node_of[layer.node_id] for layer in graph.layers]
    return tuple(_why_not_here([nodes[number] for number in one.layers], mapping, system) for one in classes.classes)


def _why_not_here(nodes: Sequence[WorkloadNode], mapping: LayerMapping, system: _System) -> str:
    """Reason why no core with this core file is allowed to run a class; '' if a core is allowed to run a layer of the
    class. The reason follows from the input files, without a search of mappings.
    """
    reasons: dict[int, str] = {}
    for node in nodes:
        assert node.layer is not None
        choice = core_choice(node, mapping.constraints_for(node.layer), system.accelerator)
        if not system.core_ids.isdisjoint(choice.core_ids):
            return ""
        reasons = dict(choice.reasons) | reasons
    told = dict.fromkeys(reason for core_id, reason in sorted(reasons.items()) if core_id in system.core_ids)
    return "; ".join(told) or "the mapping file allows only other cores"


def _tasks(plans: Sequence[_Plan], layers: LayerSearch) -> list[LayerTask]:
    """Distinct layer problems of the plans, without those that have a result already."""
    tasks = {attempt.task.key: attempt.task for plan in plans for attempt in plan.attempts}
    return [task for key, task in tasks.items() if key not in layers.found and key not in layers.failures]


def _with_more_streams(
    plan: _Plan, layer: Layer, needs: Mapping[str, int], system: _System, identity: SearchIdentity
) -> _Plan:
    """Copy of `plan` with further attempts, for a class without a mapping. In these attempts, operands stream although
    they would fit into the memories.
    """
    tried = {attempt.streams for attempt in plan.attempts}
    more = _plan(plan.cost_class, layer, needs, system, identity, also_what_fits=True).attempts
    return replace(plan, attempts=(*plan.attempts, *(attempt for attempt in more if attempt.streams not in tried)))


def _plan(
    cost_class: CostClass,
    layer: Layer,
    needs: Mapping[str, int],
    system: _System,
    identity: SearchIdentity,
    also_what_fits: bool = False,
) -> _Plan:
    """Attempts to map a class of CNs on the core. An attempt combines three choices: the operands that stream, the
    sizes of the memories through which they stream, and a dataflow. If no attempt is possible, the result has the
    reason.
    """
    link = dict(cost_class.constraints.memory_operand_links)
    unlinked = [operand for operand in layer.operands if operand not in link]
    if unlinked:
        return _Plan(cost_class, reason=f"memory_operand_links has no entry for operand {', '.join(unlinked)}")
    if cost_class.leaves_partial_sums:
        layer = _with_partial_results(layer)
    choices = constraints_on_core(cost_class.constraints, layer, system.core)
    if not choices:
        return _Plan(cost_class, reason=refusal(cost_class.constraints, layer, system.core))
    bits = {link[operand]: needs[operand] for operand in layer.operands}
    output = link[OUTPUT]
    kept = Needs(bits, bits | {output: max(bits[output], partial_sum_bits(layer))}, needs[OTHER])
    attempts = []
    reason = "operands that cannot stream, such as a bias, do not fit"
    for streams, core in _ways_to_stream(system.core, kept, also_what_fits):
        try:
            extended = with_off_chip_memory(core, system.off_chip, streams)
        except MappingError as error:
            reason = str(error)
            continue
        if cost_class.takes_partial_sums and (
            no := why_not_going_on(extended, layer, cost_class.constraints.memory_operand_links)
        ):
            reason = no
            continue
        problems = [LayerProblem(layer, extended, constraints) for constraints in choices]
        is_whole = core is system.core
        attempts += [_Attempt(LayerTask(identity.key_of(problem), problem), streams, is_whole) for problem in problems]
    return _Plan(cost_class, tuple(attempts), "" if attempts else reason, system.waiting)


def _ways_to_stream(core: Core, kept: Needs, also_what_fits: bool) -> Iterator[tuple[tuple[str, ...], Core]]:
    """Pairs (operands that stream, core), one for each set of streaming operands and each choice of sizes for their
    memories. In this core, the memory through which an operand streams can be smaller, because it only buffers the
    stream.
    """
    for streams in stream_choices(core, kept, also_what_fits):
        for sized in stream_buffers(core, kept, streams):
            yield streams, sized


def _with_partial_results(layer: Layer) -> Layer:
    """Layer for a CN whose outputs are reduced further by another CN: final outputs get the width of partial sums."""
    bits = tuple((name, layer.bits_of[OUTPUT] if name == FINAL_OUTPUT else of) for name, of in layer.precision_bits)
    return replace(layer, precision_bits=bits)


def _row(number: int, plan: _Plan, layers: LayerSearch, objective: str) -> CoreCostRow:
    """Row with the best mapping of a class, or with the reason why no mapping was found."""
    if plan.reason:
        return CoreCostRow(number, plan.reason)
    found = _found(plan, layers)
    failures = [layers.failures.get(attempt.task.key) for attempt in plan.attempts]
    ended_by_time = any(isinstance(failure, TimeBudgetError) for failure in failures)
    ended_by_time |= any(mapped.record.search.get("ended_by_time", False) for mapped in found)
    if not found:
        streams = plan.attempts[0].streams
        first = [attempt for attempt in plan.attempts if attempt.streams == streams and attempt.is_whole]
        told = [_told(layers.failures[attempt.task.key]) for attempt in first]
        return CoreCostRow(number, "; ".join(dict.fromkeys(told)), ended_by_time=ended_by_time)
    best = cost_row(number, min(found, key=lambda mapped: _rank(mapped, objective)))
    return replace(best, ended_by_time=ended_by_time)


def _found(plan: _Plan, layers: LayerSearch) -> list[MappedCn]:
    """Mappings that were found for a plan, in the order of its attempts; [] if no attempt has a mapping."""
    return [
        MappedCn(
            attempt.task.problem.layer,
            attempt.task.problem.core,
            attempt.streams,
            record,
            plan.cost_class.takes_partial_sums,
            plan.waiting,
        )
        for attempt in plan.attempts
        for record in layers.found.get(attempt.task.key, ())
    ]


def _rank(mapped: MappedCn, objective: str) -> tuple[float, ...]:
    """Sort key of a mapping; the mapping with the smallest key is chosen. Of mappings with equal keys, the one found by
    the first attempt is chosen.

    The key has the result of `ranking` for the objective, then the complete latency, then the number of streams. The
    arguments of `ranking` are the energy with the off-chip memory, and the latency without off-loading and drain,
    because schedules do not count these cycles by default.
    """
    record = mapped.record
    # By default, off-loading overlaps with the next CN, so a schedule counts only the cycles before it (total1).
    parts = record.latency_breakdown_cycles
    until_off_loading = record.latency_cycles - parts["offloading"] - parts["drain"]
    best = ranking(objective, record.energy_pj, until_off_loading)
    return (*(float(value) for value in best), record.latency_cycles, len(mapped.streams))


def _told(failure: MappingError) -> str:
    """Reasons, on one line, why a search found no mapping."""
    lines = failure.reasons if isinstance(failure, NothingFitsError) else str(failure).splitlines()
    return "; ".join(line.strip() for line in lines)
