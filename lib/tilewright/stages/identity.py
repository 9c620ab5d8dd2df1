"""What stages are, as JSON: two searches with equal identities give equal results, so one can stand for the other."""

from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from typing import Any

from tilewright.artifacts.codec import encode
from tilewright.artifacts.step_code import code_digest, code_digest_of_modules
from tilewright.search.store import problem_key
from tilewright.stages.base import Stage, is_own
from tilewright.stages.items import LayerProblem


class SearchIdentity:
    """What a search of layers is, by its stages."""

    def __init__(self, stages: tuple[Stage, ...]) -> None:
        self.stages = [identity_of(stage) for stage in stages]
        self.is_own = all(is_own(type(stage)) for stage in stages)
        self.code = search_code(stages)

    def key_of(self, problem: LayerProblem) -> str:
        """Digest of the search for a layer."""
        identity: list[Any] = [*self.stages, self.code]
        if not self.is_own:
            # Stages of users may look at what ours do not.
            reach = None if problem.memory_reach is None else replace(problem.memory_reach, layer="")
            identity += [encode(reach), encode(problem.layer.constant_operands), encode(problem.core.operator_types)]
        return problem_key(problem.layer, problem.core, problem.constraints, identity)


def search_modules(stages: Iterable[Stage]) -> set[str]:
    """The modules that a search of layers begins with: what calls its stages, and these, each run its own."""
    own = {type(stage).__module__ for stage in _all_of(stages) if is_own(type(stage))}
    return {"tilewright.stages.layer_search", *own}


def search_code(stages: tuple[Stage, ...]) -> str:
    """Digest of the code of tilewright that decides what a search of layers finds.

    Stages of users may call anything of it: with one of them it is all the code that maps.
    """
    code = code_digest_of_modules(search_modules(stages))
    return code if all(is_own(type(stage)) for stage in _all_of(stages)) else code + code_digest("map")


def _all_of(stages: Iterable[Stage]) -> Iterator[Stage]:
    """Stages and those inside of them."""
    for stage in stages:
        yield stage
        yield from _all_of(stage.inner())


def identity_of(stage: Stage) -> dict[str, Any]:
    """Name and parameters of a stage, and the digest of its code if a user wrote it (None: it is not in a file)."""
    own: dict[str, Any] = {"stage": stage.name(), "parameters": parameters_of(stage)}
    if stage.inner():
        own["inner"] = [identity_of(inside) for inside in stage.inner()]
    if is_own(type(stage)):
        return own
    from tilewright.stages.user_stages import digest_of_class

    return own | {"code": digest_of_class(type(stage))}


def code_digests(stages: Iterable[Stage]) -> list[str | None]:
    """Digest of the code of each stage that a user wrote, those inside of stages included."""
    return [identity_of(stage)["code"] for stage in _all_of(stages) if not is_own(type(stage))]


def is_identified(stage: Stage) -> bool:
    """True if the identity of a stage changes with its code and with its parameters."""
    if is_own(type(stage)):
        return True
    values = (getattr(stage, field.name) for field in fields(stage))
    return identity_of(stage)["code"] is not None and all(_as_json(value) is not None for value in values)


def parameters_of(stage: Stage) -> dict[str, Any]:
    """Parameter -> value, as JSON, in the order of definition; from Python, a parameter may be what has no JSON."""
    values = ((field.name, getattr(stage, field.name)) for field in fields(stage))
    return {name: repr(value) if (plain := _as_json(value)) is None else plain[0] for name, value in values}


def _as_json(value: Any) -> tuple[Any] | None:
    """A value as JSON, in a tuple; None if it has no such form."""
    try:
        return (encode(value),)
    except TypeError:
        return None
