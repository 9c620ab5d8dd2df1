"""Stage IntraCoreMapping: costs of computation nodes on each core.

The stages that map a layer in the single-core flow compute these costs.

The module also makes notices about nodes that get fewer lanes on a core than the mapping file gives.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from tilewright.base.errors import InputError, Problem, Problems
from tilewright.base.objectives import OBJECTIVES, reduction_of
from tilewright.base.profile import profile_by_name
from tilewright.base.stage_table import CORE
from tilewright.mapping.file_checks import document_behind
from tilewright.mapping.runnable import core_choice
from tilewright.mapping.spatial_generation import cuts_by_array, cuts_to_layer, note_cut_lanes
from tilewright.multicore.nodes.graph import CnGraph
from tilewright.multicore.scheduling.core_costs import CoreCostRow
from tilewright.multicore.scheduling.cost_classes import cost_classes
from tilewright.pipeline.stages.base import Control, Rest, Stage, is_own
from tilewright.pipeline.stages.catalogue import CATALOGUES
from tilewright.pipeline.stages.entries import Entry, Flow
from tilewright.pipeline.stages.items import Evaluations, LayerProblem
from tilewright.pipeline.stages.layer_search import LayerTask
from tilewright.pipeline.stages.layers import model_of
from tilewright.pipeline.stages.multi.core_mapping import map_core
from tilewright.pipeline.stages.multi.items import CnProblem, CostedCnProblem, SystemProblem
from tilewright.pipeline.stages.multi.kept_operands import class_needs
from tilewright.pipeline.stages.multi.slices import Slice
from tilewright.pipeline.stages.pipeline import Pipeline, search_entries
from tilewright.pipeline.stages.reductions import Reduction
from tilewright.search.options import CnSearchOptions, CoreSearchOptions
from tilewright.workload.graph import WorkloadNode


def _search_of_a_layer(options: CoreSearchOptions, onnx: bool) -> list[Entry]:
    """Entries of the stages below Workload in the default pipeline. RemoveUnusedMemory is left out, because this stage
    needs a complete network.
    """
    entries = search_entries(options)
    first = next(place for place, entry in enumerate(entries) if entry.stage == "Workload") + 1
    return [entry for entry in entries[first:] if entry.stage != "RemoveUnusedMemory"]


CN_SEARCH = Flow(
    catalogue=CATALOGUES[CORE],
    default_entries=_search_of_a_layer,
    takes=LayerProblem,
    giver="IntraCoreMapping",
    collects=(Evaluations,),
)
"""Pipelines that search the mapping of one computation node on one core."""


@dataclass(frozen=True)
class IntraCoreMapping(CnSearchOptions, Stage):
    """Computes the costs of computation nodes (CNs) on each core that is allowed to run them.

    CNs with equal costs form a class, and the costs of a class are computed once. The mapping of a CN is searched like
    the mapping of a layer in the single-core flow, with the same options and the same store. The parameter `pipeline`
    changes the stages of this search.

    An operand that does not fit a core streams from the off-chip memory. If a core cannot run a class, the row of the
    cost table has the reason. docs/multi-core-model/node-costs.md explains the rules.

    Example: {set: IntraCoreMapping, parameters: {lpf_limit: 7, pipeline: [{replace: SpatialMappingGenerator, stage:
    CustomSpatialMappingGenerator}]}}
    """

    pipeline: list | tuple | None = None  # type: ignore[type-arg]
    """Stages that search the mapping of a CN: a list of stages, or a list of edits of the default list. The default
    list is MinimalLatency, SpatialMappingGenerator, SpatialMappingConversion, MinimalLatency, Loma, CostModel.
    """

    takes = CnProblem
    gives = CostedCnProblem
    stands_for = "IntraCoreMappingStage, later ZigZagCoreMappingEstimationStage"

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.pipeline, list):
            object.__setattr__(self, "pipeline", tuple(self.pipeline))
        self.inner()  # so that errors of these stages are raised now

    @property
    def options(self) -> CnSearchOptions:
        """Options with which the mapping of a CN is searched."""
        return self.part(CnSearchOptions)

    def inner(self) -> tuple[Stage, ...]:
        """Stages that search the mapping of a CN. Raises InputError with all errors of these stages."""
        if self.pipeline is None:
            return _default_search(self.options)
        stages = Pipeline.build(self.pipeline, self.options, flow=CN_SEARCH).stages
        message = "writes files, which a stage inside IntraCoreMapping cannot do"
        problems = [Problem(f"{stage.name()} {message}", path="pipeline") for stage in stages if stage.exports]
        if not any(isinstance(stage, Reduction) or not is_own(type(stage)) for stage in stages):
            allowed = ", ".join(map(reduction_of, OBJECTIVES))
            problems.append(Problem("no stage keeps the best mapping of a CN", path="pipeline", allowed=allowed))
        if problems:
            raise InputError(problems)
        return stages

    def run(self, item: CnProblem, rest: Rest) -> Iterator[Any]:
        """Compute the costs of the CNs on each requested core file, and yield the results of the later stages for these
        costs. Raises InputError for an unknown core file.
        """
        given = item.descriptions
        # The operands that a CN keeps are the same on all cores.
        needs = class_needs(item.graph, given.workload, cost_classes(item.graph, given.workload, given.mapping))
        costs = {name: self.rows(item, name, rest.control, needs) for name in item.wanted_core_files}
        yield from rest(CostedCnProblem(given, item.graph, costs))

    def rows(
        self,
        item: CnProblem,
        core_file_name: str,
        control: Control,
        needs: Sequence[Mapping[str, int]] | None = None,
        only: Collection[int] | None = None,
    ) -> tuple[CoreCostRow, ...]:
        """Rows of the cost table for a core file, one for each class of CNs. If `only` is given, it has the numbers of
        the classes that get rows.

        `needs` is the result of `class_needs`, if it was computed before. Raises InputError for an unknown core file.
        """
        given = item.descriptions
        return map_core(
            item.graph,
            given.workload,
            given.mapping,
            given.accelerator,
            core_file_name,
            self.options,
            threads=control.threads,
            store=control.store,
            show_progress=control.show_progress,
            on_found=_telling(control),
            stages=self.inner(),
            needs=needs,
            only=only,
        )


def _telling(control: Control) -> Callable[[LayerTask], None] | None:
    """Function that reports each mapping as soon as it is found; None if `control` has no function `on_record`."""
    on_record = control.on_record
    return None if on_record is None else lambda task: on_record({"key": task.key})


def costed(stages: Slice, problem: CnProblem, control: Control | None = None) -> CostedCnProblem:
    """Costs of the CNs on the core files in `problem.wanted_core_files`, computed by the stages of `tilewright cost`.
    Raises InputError for an unknown core file, and for a core file for which the stages give no costs.
    """
    found = stages.result(problem, CostedCnProblem, control)
    missing = [name for name in problem.wanted_core_files if name not in found.costs]
    if missing:
        given = ", ".join(found.costs) or "no core"
        raise InputError(f"{stages.stages[0].name()} gives costs for {given}, but not for {', '.join(missing)}")
    wanted = {name: found.costs[name] for name in problem.wanted_core_files}
    return replace(found, costs=wanted, cost_model=cost_model(stages))


def cost_model(stages: Slice) -> str:
    """Name of the model profile with which the stages compute the costs. If a stage of a user computes the costs
    without a model profile, the result is the name of this stage.
    """
    stage = stages.stages[0]
    return model_of(stage.inner()) or model_of((stage,)) or stage.name()


@lru_cache(maxsize=64)
def _default_search(options: CoreSearchOptions) -> tuple[Stage, ...]:
    return Pipeline.build(None, options, flow=CN_SEARCH).stages


def lanes_notices_of_cns(problem: SystemProblem, graph: CnGraph, core_file_name: str, stages: Slice) -> list[str]:
    """Notices about computation nodes that get fewer lanes on a core than the mapping file gives. There is one notice
    for each reason.

    `stages` are the stages that compute the costs. If their model profile keeps the unrollings of the mapping file
    unchanged, several array dimensions together can ask for more lanes of a loop than the loop has iterations. Each
    such loop then gets a notice, too.
    """
    model = model_of(stages.stages[0].inner()) or model_of((stages.stages[0],))
    cuts_loops = bool(model) and profile_by_name(model).keep_given_unrolling
    core = problem.accelerator.distinct_cores[core_file_name]
    problems = Problems(document_behind(problem.mapping, problem.mapping_file))
    node_of = {node.node_id: node for node in problem.workload.nodes}
    cuts = []
    for cost_class in cost_classes(graph, problem.workload, problem.mapping).classes:
        for number in cost_class.layers:
            node = node_of[graph.layers[number].node_id]
            if node.layer is None or not _may_run(node, problem, core_file_name):
                continue
            entry = problem.mapping.constraints_for(node.layer)
            if {name for name, _ in entry.spatial_mapping} <= set(core.operational_array.size_of):
                shape = graph.shapes[cost_class.shape]
                cuts.append((node.name, entry, cuts_by_array(shape, core, entry)))
                if cuts_loops:
                    cuts.append((node.name, entry, cuts_to_layer(shape, core, entry)))
    note_cut_lanes(problems, problem.mapping, cuts)
    return problems.notices


def _may_run(node: WorkloadNode, problem: SystemProblem, core_file_name: str) -> bool:
    assert node.layer is not None
    ids = core_choice(node, problem.mapping.constraints_for(node.layer), problem.accelerator).core_ids
    return any(problem.accelerator.place_of[core_id].file_name == core_file_name for core_id in ids)
