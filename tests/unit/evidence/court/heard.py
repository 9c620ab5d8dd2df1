"""Comparisons with the samples and the full sets, made once for all tests."""

from functools import cache
from pathlib import Path

from tilewright import accuracy
from tilewright_evidence.court.verb import Heard


@cache
def heard_of(data: Path | None) -> list[Heard]:
    """Return comparisons with the full sets in a folder, or with the samples for None."""
    return accuracy(package_samples=True) if data is None else accuracy(data=data)


def told(data: Path | None = None, package_samples: bool = False) -> list[Heard]:
    """Return the results of `accuracy` for these arguments."""
    assert package_samples == (data is None)
    return heard_of(data)
