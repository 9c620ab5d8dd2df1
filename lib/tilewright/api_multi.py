"""The Python interface of the multi-core flow: its verbs as functions on descriptions and on what they make of them.

Settings are given by name, as in a configuration (`cn_define_mode=1`, `nb_ga_individuals=32`): each is a parameter of
one of the stages in docs/stages.md. A name that no stage of the function has is an error.
"""

from collections.abc import Mapping as Table
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.errors import InputError, Problem, nearest_name
from tilewright.parameters import unknown_names
from tilewright.sources import AcceleratorSource, FilePath, MappingSource, WorkloadSource

if TYPE_CHECKING:
    import pandas

    from tilewright.allocation.space import Genome
    from tilewright.search.options import CoreSearchOptions
    from tilewright.search.store import Store
    from tilewright.stages.base import Stage
    from tilewright.stages.multi.items import CnProblem, CostedCnProblem
    from tilewright.stages.multi.result import MultiCoreResult
    from tilewright.stages.multi.run import MultiCoreProblem
    from tilewright.stages.pipeline import Pipeline
    from tilewright.workload.network_options import NetworkOptions

Cores = Table[str, int | Sequence[int]]
"""Layer -> id of the core that runs it, or of one core for each of its groups."""
_PARSERS = ("StreamONNXModelParser", "UserDefinedModelParser")


def cns(
    workload: WorkloadSource,
    hardware: AcceleratorSource,
    mapping: MappingSource,
    *,
    network_options: "NetworkOptions | None" = None,
    strict: bool = False,
    **settings: Any,
) -> "CnProblem":
    """A network cut into computation nodes (CNs), by the parameters of GenerateCNWorkloadHybrid.

    Raises InputError with everything that is wrong with the descriptions and with how the network is to be cut, and
    with `strict` for work that is not costed.
    """
    from tilewright.stages.base import run_stages
    from tilewright.stages.multi.tiling import GenerateCNWorkloadHybrid

    stage = _made(GenerateCNWorkloadHybrid, None, settings)
    problem = _read(workload, hardware, mapping, network_options)
    if strict:
        problem.check_complete()
    return next(run_stages((stage,), problem))  # type: ignore[no-any-return]


def cost(
    cns: "CnProblem",
    options: "CoreSearchOptions | None" = None,
    *,
    core: str = "",
    threads: int = 1,
    store: "Store | None" = None,
    **settings: Any,
) -> "CostedCnProblem":
    """What the CNs cost on a core file, by the parameters of IntraCoreMapping; `options` are those of `map_layer`.

    `core` is the name of the file without folder and suffix, '' for all of the accelerator, which `allocate` needs.
    Raises InputError for wrong options and stages, and for a core that is not there.
    """
    from tilewright.stages.base import Control, run_stages
    from tilewright.stages.multi.costs import IntraCoreMapping

    stage = _made(IntraCoreMapping, options, settings)
    wanted = replace(cns, core_files=(core,)) if core else cns
    return next(run_stages((stage,), wanted, Control(threads, store)))  # type: ignore[no-any-return]


def allocate(
    costed: "CostedCnProblem", *, threads: int = 1, exports: FilePath = "exports", **settings: Any
) -> "MultiCoreResult":
    """The best allocation of cores that is found, with its schedule, by the parameters of InterCoreMapping.

    Raises InputError for wrong settings, MappingError where no allocation has a schedule.
    """
    from tilewright.stages.base import Control, run_stages
    from tilewright.stages.multi.allocation import InterCoreMapping

    stage = _made(InterCoreMapping, None, settings)
    return next(run_stages((stage,), costed, Control(threads, exports=Path(exports))))  # type: ignore[no-any-return]


def schedule(
    costed: "CostedCnProblem", cores: "Cores | MultiCoreResult | None" = None, **settings: Any
) -> "MultiCoreResult":
    """The schedule of one allocation, verified: the cores of layers, those of an earlier result, or those that the
    mapping file fixes.

    Layers that may run on one core only need not be named. Settings are those of schedules, as `operands_to_prefetch`.
    Raises InputError for cores that do not fit, MappingError where the allocation has no schedule.
    """
    from tilewright.stages.base import run_stages
    from tilewright.stages.multi.allocation import FixedAllocation

    stage = _made(FixedAllocation, None, {**settings, "genome_of": partial(_genome_of, cores)})
    return next(run_stages((stage,), costed))  # type: ignore[no-any-return]


def run_multi_core(
    workload: WorkloadSource,
    hardware: AcceleratorSource,
    mapping: MappingSource,
    options: "CoreSearchOptions | None" = None,
    *,
    pipeline: "Sequence[Any] | Pipeline | None" = None,
    network_options: "NetworkOptions | None" = None,
    threads: int = 1,
    store: "Store | None" = None,
    exports: FilePath = "exports",
    strict: bool = False,
    **settings: Any,
) -> "MultiCoreResult":
    """A network cut into CNs, costed on each core, allocated and scheduled.

    `pipeline` is a list of stages or of edits of the default pipeline of the multi-core flow; stages may also be given
    as classes or objects; what it says goes before `settings`. `options` are those of the search on each core, of which
    `objective` and `seed` hold for the search for an allocation too; without them the model is `corrected`.
    `split_layers=True` splits layers with large weights. Raises InputError with everything that is wrong, MappingError
    where no allocation has a schedule.
    """
    from tilewright.stages.base import Control
    from tilewright.stages.descriptions import Descriptions
    from tilewright.stages.multi.pipeline import multi_pipeline, run_whole
    from tilewright.stages.pipeline import Pipeline
    from tilewright.workload.network_options import NetworkOptions
    from tilewright.workload.source import LAYERS, kind_of_source

    if isinstance(pipeline, Pipeline):
        stages = pipeline
        problems = _unknown(settings, ())
    else:
        chosen, others = _options(options, settings)
        value, is_onnx = pipeline if pipeline is None else list(pipeline), kind_of_source(workload) != LAYERS
        stages, problems = None, []
        try:
            stages = multi_pipeline(value, chosen, others, onnx=is_onnx, sliced=False)
        except InputError as error:
            problems += error.problems
        if stages is not None or value is None:
            known = stages or multi_pipeline(sliced=False)
            problems += _unknown(others, ("split_layers", *_parameters(known.stages)))
    if problems or stages is None:
        raise InputError(problems)
    descriptions = Descriptions(hardware, workload, mapping, network_options or NetworkOptions())
    return run_whole(stages, descriptions, Control(threads, store, Path(exports)), strict)


def cost_table(costed: "CostedCnProblem") -> "pandas.DataFrame":
    """The costs of CNs as a table: a row for each core and each class of CNs that cost the same."""
    from tilewright.report.multi import cost_table as tables

    return tables.cost_table(costed.costs, [layer.name for layer in costed.graph.layers])


def _read(
    workload: WorkloadSource,
    hardware: AcceleratorSource,
    mapping: MappingSource,
    network_options: "NetworkOptions | None",
) -> Any:
    from tilewright.stages.multi.inputs import read_descriptions

    return read_descriptions(hardware, workload, mapping, network_options)


def _options(
    options: "CoreSearchOptions | None", settings: Table[str, Any]
) -> "tuple[CoreSearchOptions, dict[str, Any]]":
    """The options of a run, with those settings that are options too, and the other settings."""
    from tilewright.search.options import CnSearchOptions

    options = options or CnSearchOptions()
    of_options = {name: value for name, value in settings.items() if name in options.as_dict()}
    others = {name: value for name, value in settings.items() if name not in of_options}
    return replace(options, **of_options), others


def _made(kind: "type[Stage]", options: "CoreSearchOptions | None", settings: Table[str, Any]) -> "Stage":
    """A stage with settings as its parameters. Raises InputError with all that are wrong."""
    from tilewright.search.options import CnSearchOptions
    from tilewright.stages.parameters import make_stage

    stage, problems = make_stage(kind, settings, options or CnSearchOptions(), ())
    if stage is None:
        raise InputError(problems)
    return stage


def _parameters(stages: "Sequence[Stage]") -> list[str]:
    """Names of the parameters of stages."""
    return list(dict.fromkeys(field.name for stage in stages for field in fields(stage)))


def _unknown(settings: Table[str, Any], known: Sequence[str]) -> list[Problem]:
    """A problem for every setting that nothing takes."""
    return unknown_names(settings, known, "no such setting", "none beside a pipeline that is built")


def _genome_of(cores: "Cores | MultiCoreResult | None", problem: "MultiCoreProblem") -> "Genome":
    """The cores of parts with a choice. Raises InputError with every layer or core that is wrong or missing."""
    from tilewright.stages.multi.result import MultiCoreResult
    from tilewright.stages.multi.run import only_genome

    space, names = problem.space, problem.assembled.names
    if cores is None:
        return only_genome(space)
    if isinstance(cores, MultiCoreResult):
        return space.genome(cores.problem.space.part_cores(cores.allocation.chosen.genome))
    column = {core_id: place for place, core_id in enumerate(names.core_ids)}
    problems = [
        Problem("no such layer", path=name, nearest=nearest_name(name, names.layer_names))
        for name in cores
        if name not in names.layer_names
    ]
    found = []
    for (layer, group), choices in zip(space.parts, space.choices, strict=True):
        name = names.layer_names[layer]
        given = cores.get(name)
        of_groups = [given] if isinstance(given, int) else list(given or ())
        core = of_groups[0] if len(of_groups) == 1 else of_groups[group] if group < len(of_groups) else None
        if core is None and len(choices) == 1:
            core = names.core_ids[choices[0]]
        if core is None or column.get(core) not in choices:
            allowed = ", ".join(str(names.core_ids[choice]) for choice in choices)
            message = "needs a core" if core is None else "cannot run there"
            problems.append(
                Problem(
                    message, path=f"{name}, group {group}", value="" if core is None else str(core), allowed=allowed
                )
            )
        else:
            found.append(column[core])
    if problems:
        raise InputError(problems)
    return space.genome(found)
