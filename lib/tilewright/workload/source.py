"""Sources of a workload: files (YAML, ONNX, artifacts) and Python objects, with a function to read each kind of source.

Files are given by path. An object is a list of dicts, the dict of a language model, an ONNX model, or a parsed
workload.
"""

from collections.abc import Mapping as Table
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from tilewright.base.artifacts.envelope import is_artifact, read_object
from tilewright.base.artifacts.files import YAML_SUFFIXES, FilePath, existing_file, file_of
from tilewright.base.errors import InputError, OptionPath, Problem
from tilewright.base.profile import profile_by_name
from tilewright.base.unused import in_file, unused_in, unused_option
from tilewright.workload.graph import Workload
from tilewright.workload.network_options import ASSUMED, NetworkOptions

if TYPE_CHECKING:
    import onnx

    from tilewright.workload.onnx.coverage import Coverage

WorkloadSource = Union[FilePath, Sequence[dict[str, Any]], dict[str, Any], "onnx.ModelProto", Workload]
PARSED, LAYERS, NETWORK = "parsed", "layers", "network"
"""Source kinds. PARSED: a workload that is already parsed. LAYERS: a description of layers. NETWORK: an ONNX network.
"""


def kind_of_source(source: WorkloadSource) -> str:
    """Kind of a source: PARSED, LAYERS or NETWORK. A missing file also has a kind; the error is raised only when the
    file is read."""
    if isinstance(source, Workload):
        return PARSED
    if isinstance(source, list | tuple | dict):
        return LAYERS
    if isinstance(source, str | PathLike):
        path = Path(source)
        if is_artifact(path):
            return PARSED
        return LAYERS if path.suffix in YAML_SUFFIXES else NETWORK
    return NETWORK


def refuse_options(source: WorkloadSource, options: NetworkOptions) -> None:
    """Raise InputError for options that apply only to ONNX if the source is not ONNX."""
    if kind_of_source(source) == NETWORK:
        return
    default = NetworkOptions()
    message = "applies only to ONNX files, and this workload is not an ONNX file"
    problems = [
        Problem(message, file=file_of(source), path=OptionPath(name))
        for name in NetworkOptions._fields
        if getattr(options, name) != getattr(default, name)
    ]
    if problems:
        raise InputError(problems)


def read_parsed(source: Any) -> Workload:
    """Workload of an artifact file. A `Workload` object is returned unchanged. Raises InputError if the file does not
    exist or has no valid workload."""
    if isinstance(source, Workload):
        return source
    return read_object(Workload, existing_file(source, "workload"), "tilewright/workload")


def read_layers(source: Any, notices: list[str] | None = None, model: str = "zigzag-3.9.1") -> Workload:
    """Workload read from one of three sources: a YAML file, a list of layers as dicts, or a dict that describes one
    step of a language model.

    A workload from a list of layers gets tensors only if the model profile models every operator. A workload of a
    language model always has tensors. Raises InputError with all problems.
    """
    from tilewright.workload.yaml_reader import read_workload_yaml

    if isinstance(source, str | PathLike):
        source = existing_file(source, "workload")
    workload = read_workload_yaml(list(source) if isinstance(source, tuple) else source, notices)
    if not profile_by_name(model).model_every_operator:
        return workload
    from tilewright.workload.yaml_tensors import with_tensors

    return with_tensors(workload, notices)


def read_network(
    source: Any, model: str, options: NetworkOptions | None = None, name: str = "", notices: list[str] | None = None
) -> "tuple[Workload, Coverage]":
    """Workload and coverage of an ONNX network. Raises InputError with all problems.

    Notices on unused parts of the file are appended to `notices`. All other notices are in the returned coverage.
    """
    if isinstance(source, str | PathLike):
        source = existing_file(source, "workload")
    from tilewright.workload.onnx import read_onnx

    profile = profile_by_name(model)
    parsed = read_onnx(source, profile, name=name, options=options)
    precision = ASSUMED if options is None else options.precision
    if notices is not None and precision != ASSUMED and not profile.model_every_operator:
        why = (
            f"has no effect with model profile {model}, which ignores the element types of the file, as zigzag-dse"
            " does; use profile corrected"
        )
        notices.append(unused_option("precision", why, precision))
    if notices is not None:
        notices += in_file(unused_in(parsed.coverage.notices), file_of(source))
    return parsed.workload, parsed.coverage


def parse_workload(
    source: WorkloadSource,
    model: str = "zigzag-3.9.1",
    dims: Table[str, int] | None = None,
    options: NetworkOptions | None = None,
    notices: list[str] | None = None,
) -> Workload:
    """Workload of a source. The source is a file (YAML, ONNX, or the artifact of a workload), a list of dicts, the dict
    of a language model, or an ONNX model in memory. A parsed workload is returned unchanged.

    `model` is the name of the model profile. The profile decides how ONNX axes are read, and whether a list of layers
    gets tensors. `options` are the properties that an ONNX file does not fix. `dims` are the sizes of dynamic
    dimensions, by name. Notices on unusual or unused input are appended to `notices`. Raises InputError with all
    problems.
    """
    kind = kind_of_source(source)
    refuse_options(source, options or NetworkOptions())
    if kind == PARSED:
        return read_parsed(source)
    if kind == LAYERS:
        return read_layers(source, notices, model)
    return read_network(source, model, _with_dims(options, dims), notices=notices)[0]


def _with_dims(options: NetworkOptions | None, dims: Table[str, int] | None) -> NetworkOptions:
    options = options or NetworkOptions()
    return options._replace(dims=(*options.dims, *dims.items())) if dims else options
