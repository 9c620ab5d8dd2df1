"""Texts for tables and figures: layer names that are short enough for an axis, and comparisons of a run with its
baselines.
"""

import itertools
from collections.abc import Mapping, Sequence

MAX_CHARACTERS = 24
ELLIPSIS = "…"


def short_layer_name(name: str, operator_type: str = "", limit: int = MAX_CHARACTERS) -> str:
    """Layer name without surrounding slashes and trailing operator type. If the name is longer than `limit` characters,
    its middle is cut out.

    For example, the name /layer1/layer1.0/conv1/Conv of a Conv becomes layer1.0/conv1. The parent `layer1` is left out,
    because the child `layer1.0` repeats its name.
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
"""Threshold for the ratio (value of a baseline / value of the run) in latency or energy. Below this threshold, texts
say that the run is worse than the baseline.
"""


def worse_words(baseline: str, speedup: float, energy_ratio: float | None) -> list[str]:
    """Predicates such as "takes 1.20 times as long as one core", one for each quantity in which the run is worse than a
    baseline.

    `speedup` is (latency of the baseline / latency of the run), and `energy_ratio` is the same ratio of the energies,
    or None if it is not known.
    """
    ratios = ((speedup, "takes {:.2f} times as long as"), (energy_ratio, "needs {:.2f} times the energy of"))
    return [
        f"{words.format(1 / ratio)} {baseline}"
        for ratio, words in ratios
        if ratio is not None and 0 < ratio < _WORTH_TELLING
    ]


def short_names(names: Sequence[str], types: Sequence[str] = (), limit: int = MAX_CHARACTERS) -> list[str]:
    """Short names of layers (`short_layer_name`), distinct for different names.

    If several names have the same short name, each of them is shortened to the part in which these names differ. If
    these parts are also equal, numbers are appended to the short name.
    """
    kinds = types or [""] * len(names)
    short = {name: short_layer_name(name, kind, limit) for name, kind in zip(names, kinds, strict=True)}
    for text, group in _alike(short).items():
        middles = _middles(group, limit)
        if len(set(middles)) < len(group) or set(middles) & (set(short.values()) - {text}):
            ends = [f"{ELLIPSIS}{number}" for number in range(1, len(group) + 1)]
            middles = [text[: max(0, limit - len(end))] + end for end in ends]
        short |= dict(zip(group, middles, strict=True))
    taken: set[str] = set()
    for name, text in short.items():
        number = 1
        while short[name] in taken:
            number += 1
            short[name] = f"{text[: max(0, limit - len(str(number)) - 1)]}{ELLIPSIS}{number}"
        taken.add(short[name])
    return [short[name] for name in names]


def _alike(short: Mapping[str, str]) -> dict[str, list[str]]:
    """Names that share a short name, by short name. Short names with only one name are left out."""
    found: dict[str, list[str]] = {}
    for name, text in short.items():
        found.setdefault(text, []).append(name)
    return {text: names for text, names in found.items() if len(names) > 1}


def _middles(names: Sequence[str], limit: int) -> list[str]:
    """Part of each name that shows where the names differ, at most as long as the limit. The part begins a few
    characters before the first difference.
    """
    first, last = min(names), max(names)
    pairs = enumerate(zip(first, last, strict=False))
    before = next((place for place, (one, other) in pairs if one != other), len(first))
    start = max(0, before - limit // 3)
    texts = [(ELLIPSIS if start else "") + name[start:] for name in names]
    return [text if len(text) <= limit else text[: limit - 1] + ELLIPSIS for text in texts]
