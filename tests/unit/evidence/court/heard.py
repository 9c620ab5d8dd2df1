"""Comparisons with the samples and with the full sets, made once for the tests of all files."""

from functools import cache
from pathlib import Path

from tilewright import accuracy
from tilewright_evidence.court.verb import Heard


@cache
def heard_of(data: Path | None) -> list[Heard]:
    """Comparisons with the full sets in a folder; None means the samples."""
    return accuracy(package_samples=True) if data is None else accuracy(data=data)


def told(data: Path | None = None, package_samples: bool = False) -> list[Heard]:
    """Results that `accuracy` returns for these arguments."""
    assert package_samples == (data is None)
    return heard_of(data)
