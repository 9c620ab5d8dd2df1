"""Problems of further values of axes, for a space file that also has other mistakes."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tilewright.base.errors import KeyPath, Problem, Problems
from tilewright.base.yamlfile import YamlDocument
from tilewright.designs.axes_reader import Setter
from tilewright.designs.laws import Value, value_word
from tilewright.designs.space import Axis
from tilewright.designs.tried_values import MOST_BUILT
from tilewright.hardware.text_edits import with_values
from tilewright.hardware.yaml_reader import accelerator_of


def further_value_problems(
    base: YamlDocument, axes: Sequence[Axis], setters: Sequence[Setter]
) -> Iterator[tuple[KeyPath, Problem, str]]:
    """First problem of each further value of an axis at the paths that the axis sets, as a triple (place of the value
    in the space file, problem in the hardware file, message).

    Each value is set in the base alone, for at most MOST_BUILT values. Problems that the base also has with the first
    value of an axis are left out. With these problems, a space with other mistakes has all its problems in one message.
    """
    known = {(problem.path, problem.message) for axis in axes for problem in _problems_with(base, axis.settings[0])}
    further = [(axis, position) for axis in axes for position in range(1, len(axis.settings))]
    for axis, position in further[:MOST_BUILT]:
        places = {
            base.dotted(setter.path): setter.place
            for setter in setters
            if setter.axis == axis.name and setter.choice in ("", axis.values[position])
        }
        for problem in _problems_with(base, axis.settings[position]):
            place = next((where for path, where in places.items() if is_within(problem.path, path)), None)
            if place is not None and (problem.path, problem.message) not in known:
                yield place, problem, f"{problem.path} with {value_word(axis.values[position])}: {problem.message}"
                break


def _problems_with(base: YamlDocument, settings: Sequence[tuple[KeyPath, Value]]) -> Sequence[Problem]:
    """Problems of the base with changed values; () if a value is set below another value, which is reported."""
    try:
        data = with_values(base.data, settings)
    except (TypeError, KeyError, IndexError):
        return ()
    found = Problems(base)
    found.attempt(accelerator_of, replace(base, data=data))
    return found.found


def is_within(path: str, above: str) -> bool:
    """True if `path` is equal to the path `above`, or lies below it. Both paths are texts."""
    return re.match(rf"{re.escape(above)}($|[.\[])", path) is not None
