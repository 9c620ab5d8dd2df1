"""--pipeline of the verbs of the multi-core flow: each runs its slice of a pipeline of the user's, on a network whose
file may leave sizes open."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from tilewright.cli.options import PipelineSource, is_given, network_options, read_pipeline

if TYPE_CHECKING:
    from tilewright.scheduling.options import ScheduleSettings
    from tilewright.search.options import CoreSearchOptions
    from tilewright.stages.base import Stage
    from tilewright.stages.multi.slices import Slice


def slice_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """--pipeline, the whole pipeline of a run, of which a verb runs its slice; and --dim and others of the network."""
    text = (
        "Stages of the multi-core flow: YAML or JSON file with a list of them or of edits of the default pipeline (or"
        " with a key `pipeline`), or the list itself as JSON; see docs/stages.md. This verb runs its part of them."
    )
    pipeline = click.option("--pipeline", "pipeline", metavar="FILE|JSON", default="", help=text)
    return pipeline(network_options(function))


def prefetched(settings: "ScheduleSettings | None", pipeline: PipelineSource) -> tuple[str, ...]:
    """The operands to prefetch of settings of the default pipeline; one that is given names its own."""
    return settings.operands_to_prefetch if settings and not is_given(pipeline) else ()


def read_slice(
    step: str,
    default: "type[Stage]",
    given: PipelineSource,
    options: "CoreSearchOptions | None" = None,
    settings: Mapping[str, Any] = MappingProxyType({}),
) -> "Slice":
    """The slice that a step runs: the `default` stage, or its part of the pipeline that is given.

    `options` and `settings` are those of the verb. Raises InputError with everything that is wrong with the pipeline.
    """
    from tilewright.stages.multi.slices import Slice

    text = read_pipeline(given)
    if text is None:
        return Slice.default(default, options, settings)
    from tilewright.stages.multi.pipeline import multi_pipeline, slice_of

    pipeline = multi_pipeline(text.value, options, settings, documents=text.documents, prefix=text.prefix)
    return slice_of(pipeline, step)
