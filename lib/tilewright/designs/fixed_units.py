"""Assumption of a space whose mapping file fixes loops along the array: all designs use the same number of units."""

import math

from tilewright.base.errors import count_of
from tilewright.designs.space import Space
from tilewright.mapping.yaml_reader import read_mapping
from tilewright.search.options import SearchOptions

ARRAY = "operational_array"


def fixed_unit_lines(space: Space) -> tuple[str, ...]:
    """Tuple of one sentence on units of an array that stay idle; () if the space needs no sentence.

    The sentence is needed if designs have one core, the array size varies, and the mapping file fixes loops along the
    array. It says how many units these loops use at most, and that a larger array does not help the layers with these
    loops. Raises InputError if the mapping file has mistakes.
    """
    if space.mapping is None or space.is_of_systems or not _array_varies(space):
        return ()
    most: dict[str, int] = {}
    for entry in read_mapping(space.mapping).entries:
        for side, loops in entry.spatial_mapping:
            most[side] = max(most.get(side, 1), math.prod(factor for _, factor in loops))
    if not most:
        return ()
    used = ", ".join(f"{count_of(units, 'unit')} along {side}" for side, units in sorted(most.items()))
    registers = (
        ", but their registers count when the memory for data between layers is chosen" if _keeps_data(space) else ""
    )
    return (
        f"The size of the array varies, but the mapping file fixes the loops along the sides of the array. Layers with"
        f" these loops use at most {used} in every design. The other units of a larger array never compute for these"
        f" layers{registers}.",
    )


def _keeps_data(space: Space) -> bool:
    return isinstance(space.options, SearchOptions) and space.options.exploit_data_locality


def _array_varies(space: Space) -> bool:
    of_axes = (path for axis in space.axes for settings in axis.settings for path, _ in settings)
    of_laws = (law.path for law in space.laws if law.path is not None)
    return any(path[:2] == (ARRAY, "sizes") or path == (ARRAY,) for path in (*of_axes, *of_laws))
