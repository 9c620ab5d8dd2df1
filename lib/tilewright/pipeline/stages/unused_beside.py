"""Check for options that have no effect, because the pipeline does not use their values."""

from collections.abc import Iterable, Sequence

from tilewright.base.errors import Unused
from tilewright.base.parameters import Parameters
from tilewright.base.unused import unused_option
from tilewright.pipeline.stages.base import Stage


def unused_beside(stages: Sequence[Stage], options: Parameters, given: Iterable[str]) -> list[Unused]:
    """Notices of options that the user gives but that have no effect: no stage has the option as a parameter, or the
    pipeline sets the parameter to another value. Options with their default values are not reported.
    """
    every = [each for stage in stages for each in (stage, *stage.inner())]
    defaults, made = type(options)().as_dict(), options.as_dict()
    found = []
    for name in given:
        having = [getattr(stage, name) for stage in every if hasattr(stage, name)]
        if made[name] == defaults[name] or made[name] in having:
            continue
        why = "the pipeline sets another value" if having else "no stage of the pipeline has this option"
        found.append(unused_option(name, f"has no effect: {why}", made[name]))
    return found
