"""Numbers of parts and sizes of tiles that cut a loop into equal pieces, as text for messages.

stream-dse 2.1.1 refuses a number of parts or a tile size that does not divide its loop (`stream/workload/utils.py`,
`stream/parser/mapping_factory.py`). stream-dse rounds no size, and has no smaller last tile.
"""

from collections.abc import Sequence

_MOST_LISTED = 24


def allowed_numbers(given: int, allowed: Sequence[int]) -> str:
    """Text with the allowed numbers. The numbers that are nearest to `given` follow: the next smaller and the next
    larger number. A long list has only the nearest numbers. `allowed` is in ascending order. It is not empty and does
    not contain `given`.
    """
    near = [*[one for one in allowed if one < given][-1:], *[one for one in allowed if one > given][:1]]
    nearest = f"nearest {' and '.join(map(str, near))}"
    if len(allowed) > _MOST_LISTED:
        return f"{len(allowed)} numbers; {nearest}"
    listed = ", ".join(map(str, allowed))
    return listed if len(near) == len(allowed) else f"{listed}; {nearest}"
