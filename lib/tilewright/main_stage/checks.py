"""Checks of the keywords of a script: unread, repeated and missing keywords."""

import inspect
from collections.abc import Iterable, Sequence
from typing import Any

from tilewright.base import steps
from tilewright.base.errors import InputError, Problem, nearest_name
from tilewright.main_stage import keywords as words
from tilewright.main_stage.own import file_of, line_of, name_of, shown_path
from tilewright.main_stage.plan import our_name
from tilewright.pipeline.stages.catalogue import CATALOGUES

PROVIDED = ("accelerator", "workload", "layer", "spatial_mapping", "spatial_mapping_int", "temporal_mapping")
"""Keywords that tilewright's stages pass to the stages below them."""


def check_keywords(stages: Sequence[Any], keywords: dict[str, Any]) -> None:
    """Raise InputError if the list of stages is empty, or if keywords have problems.

    The error lists keywords with one of three problems:

    * No stage reads the keyword.
    * The script gives the keyword in two spellings.
    * A stage needs the keyword, but the script does not give it.

    A keyword of `NO_COUNTERPART` is accepted if its value is false.
    """
    if not stages:
        raise InputError([Problem("the list has no stage", path="list_of_callables")])
    keywords = with_varied(keywords)
    names = [stage.ours for stage in stages if our_name(stage)]
    of_own = [name for stage in stages if not our_name(stage) for name in words_of(stage)]
    readable = [
        spelling
        for keyword in words.KEYWORDS
        if set(keyword.stages) & expanded(names)
        for spelling in keyword.spellings
    ]
    readable += [name for name in parameters_of(names) if name not in readable]
    problems = []
    for name, value in keywords.items():
        if name in readable or name in of_own:
            continue
        if name in words.NO_COUNTERPART:
            if value:
                message = f"has no counterpart in tilewright: {words.NO_COUNTERPART[name]}"
                problems.append(Problem(message, path=name, value=repr(value)[:60]))
            continue
        problems.append(unread(name, readable, of_own))
    problems += [problem for keyword in words.KEYWORDS for problem in spelt_twice(keyword, keywords)]
    problems += needed(stages, names, keywords)
    if problems:
        raise InputError(problems)


def with_varied(keywords: dict[str, Any]) -> dict[str, Any]:
    """Keywords of a script, together with the keywords that `general_parameter_iterations` varies. Each varied keyword
    has the placeholder "varied" as its value.
    """
    varied = keywords.get("general_parameter_iterations")
    if not isinstance(varied, dict):
        return keywords
    names = [name for key in varied for name in (key if isinstance(key, tuple | list) else (key,))]
    return dict.fromkeys(names, "varied") | keywords


def expanded(names: Iterable[str]) -> set[str]:
    """Names of the given stages. If the multi-core flow has another name for a given stage, the result also has this
    other name.
    """
    alike = {"ONNXModelParser": "StreamONNXModelParser", "WorkloadParser": "UserDefinedModelParser"}
    return {one for name in names for one in (name, alike.get(name, name))}


def unread(name: str, readable: Sequence[str], of_own: Sequence[str]) -> Problem:
    """Problem for the keyword `name`, which no stage in the script's list of stages reads.

    If another stage of tilewright reads the keyword, the problem names this stage. If no stage of tilewright reads the
    keyword, the problem suggests the most similar name from two lists. `readable` has the keywords that tilewright's
    stages in the script read. `of_own` has the names that occur in the code of the user's stages.
    """
    known = words.BY_SPELLING.get(name)
    if known is not None:
        others = " or ".join(f"{stage}Stage" for stage in known.stages)
        return Problem(f"no stage of the list reads this keyword; {others} reads it", path=name)
    near = nearest_name(name, [*readable, *of_own])
    return Problem(
        "no stage of the list reads this keyword", path=name, allowed="" if near else ", ".join(readable), nearest=near
    )


def spelt_twice(keyword: words.Keyword, keywords: dict[str, Any]) -> list[Problem]:
    """List with one problem if a keyword is given in two spellings; otherwise []."""
    found = [spelling for spelling in keyword.spellings if spelling in keywords]
    return (
        [Problem(f"is another spelling of {found[0]}; give only one of the two", path=found[1])]
        if len(found) > 1
        else []
    )


def needed(stages: Sequence[Any], names: Sequence[str], keywords: dict[str, Any]) -> list[Problem]:
    """Problems for keywords that stages need but that are missing."""
    problems = []
    for keyword in words.KEYWORDS:
        reader = next((name for name in names if name in keyword.stages), "")
        if keyword.required and reader and not any(spelling in keywords for spelling in keyword.spellings):
            allowed = ", ".join(keyword.spellings)
            problems.append(
                Problem(f"{reader}Stage needs this keyword, but it is not given", path=keyword.name, allowed=allowed)
            )
    places = {words.FOLDER, words.PATTERN, "filename_pattern"}
    for name in names:
        if name in ("SimpleSave", "CompleteSave") and not places & keywords.keys():
            allowed = ", ".join(sorted(places))
            problems.append(
                Problem(f"{name}Stage needs this keyword, but it is not given", path=words.FOLDER, allowed=allowed)
            )
        if name == "PickleSave" and words.PICKLE not in keywords:
            problems.append(Problem("PickleSaveStage needs this keyword, but it is not given", path=words.PICKLE))
    for stage in stages:
        if not our_name(stage):
            problems += needed_by_own(stage, keywords)
    return problems


def needed_by_own(stage: Any, keywords: dict[str, Any]) -> list[Problem]:
    """Problems for keywords that the user's stages need, but that neither the script nor the stages above provide."""
    known = {
        *keywords,
        *PROVIDED,
        *(
            spelling
            for keyword in words.KEYWORDS
            for spelling in keyword.spellings
            if any(one in keywords for one in keyword.spellings)
        ),
    }
    return [
        Problem(
            f"{name_of(stage)} needs this keyword, but it is not given",
            shown_path(file_of(stage)),
            line_of(stage),
            name,
        )
        for name, parameter in signature_of(stage).items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
        and parameter.default is inspect.Parameter.empty
        and name not in known
    ]


def signature_of(stage: Any) -> dict[str, inspect.Parameter]:
    """Parameters of a user's stage; {} if the parameters are not known."""
    try:
        return dict(inspect.signature(stage).parameters)
    except (TypeError, ValueError):
        return {}


def words_of(stage: Any) -> set[str]:
    """Names that occur as parameters or as text constants in the code of a user's stage. The stage may read keywords
    with these names.
    """
    found = set(signature_of(stage))
    kinds = [kind for kind in getattr(stage, "__mro__", (stage,)) if not str(kind.__module__).startswith("tilewright.")]
    for kind in kinds:
        members = list(vars(kind).values()) if isinstance(kind, type) else [kind]
        for member in members:
            code = getattr(inspect.unwrap(getattr(member, "__func__", member)), "__code__", None)
            found |= texts_of(code)
    return found


def texts_of(code: Any) -> set[str]:
    """Text constants and argument names in compiled code and in the functions inside it; an empty set if `code` is
    None.
    """
    if code is None:
        return set()
    found = {*code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]}
    for constant in code.co_consts:
        if isinstance(constant, str):
            found.add(constant)
        elif isinstance(constant, tuple):
            found |= {one for one in constant if isinstance(one, str)}
        elif hasattr(constant, "co_consts"):
            found |= texts_of(constant)
    return found


def parameters_of(names: Iterable[str]) -> list[str]:
    """Names of the parameters that a script can set by keywords, for the stages `names`. `names` has the names of the
    stages in tilewright.
    """
    found: list[str] = []
    for name in names:
        for flow in (steps.SINGLE, steps.MULTI):
            if (known := CATALOGUES[flow].canonical_name(name)) and known in CATALOGUES[flow].listed:
                found += list(getattr(CATALOGUES[flow].stage_class(known), "__dataclass_fields__", {}))
    return [name for name in dict.fromkeys(found) if name not in ("folder", "file_name", "pipeline")]
