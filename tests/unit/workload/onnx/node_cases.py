"""Models with which onnx tests its own operators, without three that take seconds."""

import warnings
from typing import Any

import pytest
from onnx.backend.test.case import base
from onnx.backend.test.case.node import collect_testcases
from onnx.backend.test.case.test_case import TestCase

_LARGE = ("export_averagepool_3d_default", "export_lppool_3d_default", "export_maxpool_3d_default")
"""Pools of 3x32x32x32 elements. The other models have smaller pools over three dimensions."""


def node_cases() -> list[TestCase]:
    """Operator -> models of this operator with values. The first call imports them, and so computes their outputs."""
    made = base._Exporter.__init__

    def without_large(cls: Any, name: str, bases: tuple[type, ...], functions: dict[str, Any]) -> None:
        made(cls, name, bases, {key: one for key, one in functions.items() if key not in _LARGE})

    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        patch.setattr(base._Exporter, "__init__", without_large)
        return collect_testcases(None)
