"""Pipelines of users in a configuration: what they are, all of it checked."""

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.configuration.run import Stages
from tilewright.errors import Problem
from tilewright.search.options import CoreSearchOptions
from tilewright.yamlfile import YamlDocument


def read_stages(
    pipeline: Any,
    path: tuple[str, ...],
    options: CoreSearchOptions,
    settings: Mapping[str, Any] | None,
    documents: Sequence[YamlDocument],
) -> tuple[Stages, list[Problem]]:
    """What the value of `pipeline` at a path means, and what is wrong with it.

    `settings` are those of a run of several cores, None for one of a single core.
    """
    if pipeline is None:
        return Stages(), []
    # Imported where somebody writes a pipeline: stages know the types of the cost model, which need numpy.
    from tilewright.artifacts.canonical import canonical_text
    from tilewright.artifacts.digests import content_digest
    from tilewright.stages.base import is_own
    from tilewright.stages.identity import code_digests
    from tilewright.stages.multi.pipeline import check_multi_pipeline
    from tilewright.stages.pipeline import check_pipeline
    from tilewright.stages.places import is_of_setting, placed

    if settings is None:
        built, problems = check_pipeline(pipeline, options)
    else:
        built, problems = check_multi_pipeline(pipeline, options, settings)
        # What is wrong with a setting is told at its own key.
        problems = [problem for problem in problems if not is_of_setting(problem, settings)]
    problems = [placed(problem, path, documents) for problem in problems]
    if built is None:
        return Stages(), problems
    if settings is None and not all(is_own(type(stage)) for stage in built.parsers().stages):
        message = "parsers of one's own run in `tilewright map` only: runs share what parsers have read"
        document = next((found for found in documents if found.line_of(path)), None)
        place = (document.file, document.line_of(path)) if document else ("config", 0)
        problems.append(Problem(message, *place, ".".join(path)))
    code = code_digests(built.stages)
    return Stages(canonical_text(pipeline), content_digest(code) if code else "", built.exports), problems
