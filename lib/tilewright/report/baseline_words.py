"""What a run loses to what it is compared with, in words: a ratio below one is easily read the other way."""

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
