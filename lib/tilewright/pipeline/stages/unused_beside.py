"""Options beside stages that have no effect."""

from collections.abc import Iterable, Sequence

from tilewright.base.errors import Unused
from tilewright.base.parameters import Parameters
from tilewright.base.unused import unused_option
from tilewright.pipeline.stages.base import Stage


def unused_beside(stages: Sequence[Stage], options: Parameters, given: Iterable[str]) -> list[Unused]:
    """What has no effect of the options of these names beside stages, which do not have them, or say them themselves.
    Those at their defaults ask for nothing."""
    every = [each for stage in stages for each in (stage, *stage.inner())]
    defaults, made = type(options)().as_dict(), options.as_dict()
    found = []
    for name in given:
        having = [getattr(stage, name) for stage in every if hasattr(stage, name)]
        if made[name] == defaults[name] or made[name] in having:
            continue
        why = "the pipeline says it itself" if having else "no stage of the pipeline has it"
        found.append(unused_option(name, f"has no effect: {why}", made[name]))
    return found
