"""Effects of the axes of a space on its best designs."""

import math
from dataclasses import dataclass
from typing import Any

import pandas

from tilewright.base.errors import count_of
from tilewright.designs.front import Front
from tilewright.designs.results import order_of_ties


@dataclass(frozen=True, eq=False)
class Effect:
    """Effect of the values of one axis on the compared designs."""

    axis: str
    table: pandas.DataFrame
    """Table with a row for each value that the axis has in the compared designs. Numbers are in ascending order, and
    texts in the order of the space.

    The columns are `value`, `designs` (number of compared designs with this value) and, for each known measure,
    `best_<measure>` and `median_<measure>` over these designs.
    """


def known_measures(front: Front) -> tuple[str, ...]:
    """Measures that are known for all compared designs."""
    compared = front.compared
    return tuple(key for key in front.measures if not compared[key].isna().any())


def best_first(front: Front, measure: str) -> pandas.DataFrame:
    """Rows of the compared designs, with the least value of a measure first. The rule for ties is `order_of_ties`."""
    return front.compared.sort_values(order_of_ties(measure, known_measures(front)), kind="stable")


def _measures_of_best(front: Front) -> tuple[str, ...]:
    """Measures for which the table is sure to contain the best of all compared designs.

    If the table has only the designs on a front, these are the objectives of the front. The product of energy and
    latency is added if both are objectives.
    """
    known = known_measures(front)
    if front.is_whole:
        return known
    energy, latency, product, _ = front.measures
    over = {*front.objectives, *((product,) if {energy, latency} <= {*front.objectives} else ())}
    return tuple(key for key in known if key in over)


def best_designs(front: Front) -> tuple[tuple[str, dict[str, Any]], ...]:
    """Pairs (measure, row of the design that is best in this measure).

    Only the measures of `_measures_of_best` are included, because the best design in other measures is not known. Of
    equally good designs, the first by the rule of `best_first` is taken. () if there are no designs.
    """
    if front.compared.empty:
        return ()
    return tuple(
        (key, {str(name): value for name, value in best_first(front, key).iloc[0].items()})
        for key in _measures_of_best(front)
    )


def memories_and_best(front: Front, rows: pandas.DataFrame, column: str) -> tuple[str, str]:
    """Pair of texts on the designs in `rows`, which are some of the compared designs of a front. The first text has the
    memories that `column` names, with the number of designs. The second text names the designs that are best in some
    measure; '' if there are none.
    """
    counts = sorted(rows[column].value_counts().items(), key=lambda one: (-one[1], one[0]))
    memories = ", ".join(f"{names} in {count_of(number, 'design')}" for names, number in counts)
    indexes = set(rows["index"])
    best = [
        f"{row['design']} (least {front.measures[key].words})"
        for key, row in best_designs(front)
        if row["index"] in indexes
    ]
    return memories, f" Among them: {', '.join(best)}." if best else ""


def excess_over(value: float, least: float) -> float:
    """Relative excess of a value over the least value; infinite if only the least value is 0."""
    if value == least:
        return 0.0
    return value / least - 1 if least else math.inf


def marked_designs(front: Front) -> dict[str, str]:
    """Roles of the designs that a figure for a paper marks, by name of the design. If a marked design is on the front,
    samples of the front contain it.

    The marked designs are those with the least value of an objective, and those with the least and the second-least
    EDP: the choice and the runner-up of `decide`. Ties are broken by the other measures, then by the index.
    """
    known = known_measures(front)
    product = [*front.measures][2]
    keys = [key for key in known if key in (*front.objectives, product)]
    found: dict[str, list[str]] = {}
    for key in keys:
        by = [key, *(one for one in known if one != key), "index"]
        names = front.compared.sort_values(by, kind="stable")["design"].tolist()
        for name, role in zip(names, ("least", "second-least") if key == product else ("least",), strict=False):
            found.setdefault(str(name), []).append(f"{role} {front.measures[key].words}")
    return {name: " and ".join(roles) for name, roles in found.items()}


def effects(front: Front, axis_names: tuple[str, ...]) -> tuple[Effect, ...]:
    """Effects of the axes that have more than one value among the compared designs.

    () if only the designs on a front have rows, because effects can be computed only from all compared designs.
    """
    if not front.is_whole:
        return ()
    return tuple(Effect(axis, _effect(front, axis)) for axis in axis_names if front.compared[axis].nunique() > 1)


def _effect(front: Front, axis: str) -> pandas.DataFrame:
    compared = front.compared
    is_number = pandas.api.types.is_numeric_dtype(compared[axis])
    groups = compared.groupby(axis, sort=is_number)
    measures = list(known_measures(front))
    parts = [groups.size().rename("designs")]
    parts.append(groups[measures].min().add_prefix("best_"))
    parts.append(groups[measures].median().add_prefix("median_"))
    return pandas.concat(parts, axis=1).rename_axis("value").reset_index()
