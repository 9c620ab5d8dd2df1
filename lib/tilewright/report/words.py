"""Words of tables and figures: layer names short enough for an axis, what a run loses to what it is compared with."""

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


_WORTH_TELLING = 0.995
"""Ratio to a baseline below which a run is told to be worse."""


def worse_words(baseline: str, speedup: float, energy_ratio: float | None) -> list[str]:
    """Of a baseline with that name and what it needs over what the run needs, in latency and in energy (None: unknown).

    One sentence without a subject for each figure in which the run is worse.
    """
    ratios = ((speedup, "takes {:.2f} times as long as"), (energy_ratio, "needs {:.2f} times the energy of"))
    return [
        f"{words.format(1 / ratio)} {baseline}"
        for ratio, words in ratios
        if ratio is not None and 0 < ratio < _WORTH_TELLING
    ]
