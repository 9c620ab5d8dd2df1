"""Layer names short enough for the axis of a figure."""

import itertools

MAX_CHARACTERS = 24
ELLIPSIS = "…"


def short_layer_name(name: str, operator_type: str = "", limit: int = MAX_CHARACTERS) -> str:
    """`name` without the slashes around it and a trailing operator type, its middle cut out beyond `limit` characters.

    /layer1/layer1.0/conv1/Conv of a Conv becomes layer1.0/conv1: a parent that its child repeats is left out.
    """
    parts = [part for part in name.split("/") if part]
    if len(parts) > 1 and parts[-1].split("_")[0] == operator_type:
        parts = parts[:-1]
    kept = [part for part, child in itertools.pairwise(parts) if not child.startswith(part)] + parts[-1:]
    short = "/".join(kept) or name
    if len(short) <= limit:
        return short
    # The end tells layers of one network apart better than the beginning does.
    head = (limit - len(ELLIPSIS)) // 3
    return short[:head] + ELLIPSIS + short[len(short) - (limit - len(ELLIPSIS) - head) :]
