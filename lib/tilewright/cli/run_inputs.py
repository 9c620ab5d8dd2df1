"""Inputs of the verbs for several cores: input files, CN graph, cost tables, and the stages that a verb runs."""

import os
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from tilewright.base.artifacts.files import FilePath
from tilewright.base.errors import InputError, Problem, Unused
from tilewright.base.steps import cost_table
from tilewright.cli.options import PipelineSource, is_given, read_pipeline
from tilewright.cli.planned import plan_option
from tilewright.cli.verb import Help
from tilewright.workload.network_options import NetworkOptions

if TYPE_CHECKING:
    from tilewright.cli.parameter_options import Given
    from tilewright.multicore.scheduling.options import ScheduleSettings
    from tilewright.pipeline.sources import AcceleratorSource, MappingSource, WorkloadSource
    from tilewright.pipeline.stages.base import Stage
    from tilewright.pipeline.stages.descriptions import Descriptions
    from tilewright.pipeline.stages.multi.items import CnProblem, CostedCnProblem
    from tilewright.pipeline.stages.multi.slices import Slice
    from tilewright.search.options import CoreSearchOptions


CNS_FOLDER = Help("Folder with the CN graph.", metavar="FOLDER", is_required=True)
COSTS_FOLDER = Help("Folder with a cost table for each core.", metavar="FOLDER", is_required=True)
"""Help texts of the options for the folders with the CN graph and the cost tables, in the verbs that find a schedule.
"""


def given_descriptions(
    made: object,
    hardware: "AcceleratorSource | None",
    workload: "WorkloadSource | None",
    mapping: "MappingSource | None",
    network_options: NetworkOptions | None,
) -> "Descriptions | None":
    """Input files from which the folder `made` was made. None if `made` is an object in memory, because such an object
    contains its inputs.

    If `made` is a folder, raises InputError for each missing input file. If `made` is an object, raises InputError for
    each given input file.
    """
    from tilewright.pipeline.stages.descriptions import Descriptions

    given: dict[str, object] = {"hardware": hardware, "workload": workload, "mapping": mapping}
    if isinstance(made, str | PathLike):
        message = f"is needed in addition to {os.fspath(made)}"
        problems = [Problem(message, path=name) for name, one in given.items() if one is None]
    else:
        given["network_options"] = network_options
        message = f"cannot be given in addition to a {type(made).__name__} object, which contains it"
        problems = [Problem(message, path=name) for name, one in given.items() if one is not None]
    if problems:
        raise InputError(problems)
    if not isinstance(made, str | PathLike):
        return None
    return Descriptions(hardware, workload, mapping, network_options or NetworkOptions())


def descriptions_of_run(
    cns: "FilePath | CnProblem | None", costs: "FilePath | CostedCnProblem", *given: Any
) -> "Descriptions | None":
    """Input files from which the CN graph and the cost tables of a run were made. None if the CN graph or the costs are
    an object in memory, because this object contains its inputs.

    Raises InputError if an input is missing, or if an input is given in addition to an object that contains it.
    """
    if isinstance(costs, str | PathLike):
        if cns is None:
            raise InputError([Problem(f"is needed in addition to {os.fspath(costs)}", path="cns")])
        return given_descriptions(cns, *given)
    if cns is not None:
        raise InputError(
            [Problem(f"cannot be given in addition to a {type(costs).__name__} object, which contains it", path="cns")]
        )
    return given_descriptions(costs, *given)


def input_digests(
    inputs: "CostedCnProblem", cns: "FilePath | CnProblem | None", costs: "FilePath | CostedCnProblem"
) -> dict[str, str]:
    """Digests of the inputs of a schedule, for provenance. An object in memory has the same digest as its artifact."""
    from tilewright.base.artifacts.codec import encode
    from tilewright.base.artifacts.digests import content_digest
    from tilewright.base.artifacts.envelope import read_artifact
    from tilewright.multicore.scheduling.core_costs import core_costs_digest
    from tilewright.pipeline.stages.multi.inputs import graph_digest
    from tilewright.workload.network_identity import identity_of_network

    given = inputs.descriptions
    folder = Path(costs) if isinstance(costs, str | PathLike) else None
    return {
        "hardware": content_digest(encode(given.accelerator)),
        "workload": identity_of_network(given.workload_as_read),
        "mapping": content_digest(encode(given.mapping_as_written)),
        "cn_graph": graph_digest(cns, inputs.graph),
        **{
            f"cost/{name}": read_artifact(cost_table(folder, name)).digest if folder else core_costs_digest(rows)
            for name, rows in inputs.costs.items()
        },
    }


def slice_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option --pipeline to a verb. The value of the option is the complete pipeline of a run. The verb runs
    only its slice: the stages of the pipeline that belong to this verb.
    """
    text = (
        "Stages of the pipeline for several cores: a YAML or JSON file, or JSON text. It has a list of stages or a list"
        " of edits of the default pipeline, at the top or under the key `pipeline`; see docs/stages.md. This verb runs"
        " only its own stages."
    )
    return click.option("--pipeline", "pipeline", metavar="FILE|JSON", default="", help=text)(function)


def planned_slice(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --plan and --pipeline."""
    return plan_option(slice_option(function))


def prefetched(settings: "ScheduleSettings | None", pipeline: PipelineSource) -> tuple[str, ...]:
    """Operands to prefetch, as the settings give them. () if a pipeline is given, because the stages of the pipeline
    then determine these operands.
    """
    return settings.operands_to_prefetch if settings and not is_given(pipeline) else ()


def unused_options(stages: "Slice", *given: "Given[Any]") -> list[Unused]:
    """Notices of options without effect: other options overrule them, or the user's stages do not use them."""
    if stages.identity is None:
        return [notice for one in given for notice in one.unused()]
    names = [[name for name in one.values if name != "jobs"] for one in given]  # jobs: not of a stage
    found = [notice for one, known in zip(given, names, strict=True) for notice in stages.unused(one(), known)]
    return [*(notice for one in given for notice in one.repeated), *found]


def read_slice(
    step: str,
    default: "type[Stage]",
    given: PipelineSource,
    options: "CoreSearchOptions | None" = None,
    settings: Mapping[str, Any] = MappingProxyType({}),
) -> "Slice":
    """Stages that a step runs.

    If a pipeline is given, the result has the stages of the pipeline that belong to this step. Otherwise, the result is
    the `default` stage. `options` and `settings` are those of the verb. Raises InputError with all errors of the
    pipeline.
    """
    from tilewright.pipeline.stages.multi.slices import Slice

    text = read_pipeline(given)
    if text is None:
        return Slice.default(default, options, settings)
    from tilewright.pipeline.stages.multi.pipeline import multi_pipeline, slice_of

    pipeline = multi_pipeline(text.value, options, settings, documents=text.documents, prefix=text.prefix)
    return slice_of(pipeline, step)
