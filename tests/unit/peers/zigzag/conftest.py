"""Fixtures: the worked example of the report tests, and its core."""

from typing import Any

import pytest
from tilewright.hardware.core import Core

from tests.unit.results.conftest import small_core, worked_example


@pytest.fixture
def record() -> dict[str, Any]:
    """The record of the worked example."""
    return worked_example()


@pytest.fixture
def core() -> Core:
    """The core of the worked example."""
    return small_core()
