"""Reading an ONNX model into a workload and a statement of what of it is costed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import onnx

from tilewright.errors import InputError
from tilewright.profile import REFERENCE, ModelProfile
from tilewright.registry import Registry
from tilewright.workload.graph import Workload
from tilewright.workload.network_options import NetworkOptions
from tilewright.workload.onnx.coverage import Coverage
from tilewright.workload.onnx.loading import load_model

Reading = Callable[[onnx.ModelProto, ModelProfile, NetworkOptions], tuple[Workload, Coverage]]
"""The (nameless) workload of a model and what of it is costed; raises InputError with all problems."""
OTHER_READINGS: Registry[Reading] = Registry(__name__)
"""Model profile -> its reading, where that is not the one of `network_reader`."""


@dataclass(frozen=True)
class ParsedNetwork:
    """A network as read from an ONNX model, and what of it is costed."""

    workload: Workload
    coverage: Coverage


def read_onnx(
    source: str | Path | onnx.ModelProto,
    profile: ModelProfile,
    name: str = "",
    notices: list[str] | None = None,
    dims: Mapping[str, int] | None = None,
    options: NetworkOptions | None = None,
) -> ParsedNetwork:
    """The workload of an ONNX model.

    With the profile's switch `model_every_operator` all operators that compute become layers, and those that only move
    data carry dependencies through (see `network_reader`); without it the reading is that of zigzag-dse 3.9.1
    (of OTHER_READINGS).

    `source` is a path or a model in memory; weights are never loaded and may be absent. `name` defaults to the file's
    stem or the graph's name. `dims` is short for options with these dims. `notices`, if given, receives the notices of
    the coverage.

    Raises InputError with all problems found: an unreadable file, an inconsistent graph, sizes that are not known.
    """
    options = options or NetworkOptions()
    if dims:
        options = replace(options, dims=tuple(dims.items()))
    options.check()
    model, file, default_name = load_model(source)
    try:
        if profile.model_every_operator:
            # Here, because the other reading starts faster without the operators.
            from tilewright.workload.onnx.network_reader import read_every_operator

            workload, coverage = read_every_operator(model, profile, options)
        else:
            workload, coverage = OTHER_READINGS[REFERENCE.name](model, profile, options)
    except InputError as error:
        raise InputError(replace(problem, file=problem.file or file) for problem in error.problems) from None
    if notices is not None:
        notices.extend(coverage.notices)
    return ParsedNetwork(replace(workload, name=name or default_name), coverage)
