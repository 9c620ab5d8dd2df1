"""Construction of stages from the parameters in a pipeline, and from the options and settings of the run."""

import sys
from collections.abc import Mapping
from dataclasses import MISSING, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tilewright.base.errors import InputError, KeyPath, Problem, dotted, shown
from tilewright.base.parameters import Parameters, parameters_of, unknown_names
from tilewright.pipeline.stages.base import Stage, is_own
from tilewright.pipeline.stages.places import keys_of, moved, problem_at


def make_stage(
    kind: type[Stage],
    given: Any,
    options: Parameters,
    place: KeyPath,
    settings: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[Stage | None, list[Problem]]:
    """Pair (stage, errors in the parameters). The stage is None if there are errors.

    `given` has the parameters that the pipeline sets. All other parameters take the values of the run, from `options`
    and `settings`. `place` is the path of the parameters in the value of `pipeline`.
    """
    if given is None:
        given = {}
    if not isinstance(given, Mapping):
        return None, [problem_at(place, "must be a table of parameters", shown(given))]
    known = {parameter.name: parameter for parameter in parameters_of(kind)}
    values = {name: value for name, value in options.as_dict().items() if name in known}
    unknown = unknown_names(given, list(known), f"{kind.name()} has no such parameter")
    problems = [_at(problem, (*place, problem.path)) for problem in unknown]
    of_run = {name: value for name, value in settings.items() if name in known and name not in given}
    for name, value in (*of_run.items(), *((name, value) for name, value in given.items() if name in known)):
        at = place if name in given else ()
        try:
            values[name] = known[name].converted(value)
        except InputError as error:
            problems += [_at(problem, (*at, *keys_of(problem.path))) for problem in error.problems]
    for name, parameter in known.items():
        if name not in values and parameter.default is MISSING and name not in given:
            problems.append(problem_at((*place, name), f"{kind.name()} needs this parameter"))
    if problems:
        return None, problems
    stage, problems = _construct(kind, values, place)
    return stage, [_at_setting(problem, place, of_run) for problem in problems]


def _at(problem: Problem, place: KeyPath) -> Problem:
    return problem_at(place, problem.message, problem.value, problem.allowed, problem.nearest)


def _at_setting(problem: Problem, place: KeyPath, of_run: Mapping[str, Any]) -> Problem:
    """Problem with a parameter of a stage. If the value of the parameter comes from a setting of the run (`of_run`),
    the problem gets the path of the setting. Otherwise, it is unchanged. `place` is the path of the parameters in the
    value of `pipeline`.
    """
    inside = keys_of(problem.path)[len(place) :]
    return replace(problem, path=dotted(inside)) if inside and inside[0] in of_run else problem


def _construct(kind: type[Stage], values: dict[str, Any], place: KeyPath) -> tuple[Stage | None, list[Problem]]:
    try:
        return kind(**values), []
    except InputError as error:
        return None, [_of_parameter(problem, place, values) for problem in error.problems]
    except Exception as error:
        if is_own(kind):
            raise
        from tilewright.pipeline.stages.base import problem_in_code

        file = getattr(sys.modules.get(kind.__module__), "__file__", None)
        return None, [moved(problem_in_code(error, None if file is None else Path(file)), place)]


def _of_parameter(problem: Problem, place: KeyPath, values: Mapping[str, Any]) -> Problem:
    """Problem that a stage reports, with its path in the value of `pipeline`. `place` is the path of the stage's
    parameters. If the problem is about a parameter in `values`, the new path is `place`, followed by the old path.
    Otherwise, the new path is `place`, and the message begins with the old path.
    """
    inside = keys_of(problem.path)
    if not inside or inside[0] not in values:
        return moved(problem, place)
    return moved(replace(problem, path=""), (*place, *inside))
