"""Networks with another batch size: the file of a network is read again with another number of samples per pass.

Layers of a YAML file have the loop B. A step of a language model has the key `batch`. In an ONNX file, the batch is the
first axis of every network input. A YAML file of layers or an ONNX file is refused if the work of some layer does not
grow in proportion to the batch.

An ONNX file is read with the options of its run: sizes, shapes, branches and bits. The batch replaces only the sizes
that these options give to the first axes of inputs.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.base.artifacts.digests import LANGUAGE_MODEL
from tilewright.base.artifacts.files import YAML_SUFFIXES, existing_file
from tilewright.base.errors import InputError, Problem, some_of
from tilewright.base.operator_groups import bare_type
from tilewright.base.profile import profile_by_name
from tilewright.base.yamlfile import YamlDocument, load_yaml
from tilewright.workload.graph import Workload
from tilewright.workload.layer import OUTPUT
from tilewright.workload.network_options import NetworkOptions
from tilewright.workload.source import parse_workload

if TYPE_CHECKING:
    import onnx

BATCH_LOOP = "B"
"""Name of the loop over the samples of a batch in the layers of a YAML file."""
_RECURRENT = ("GRU", "LSTM", "RNN")
"""Recurrent operators. The first axis of their tensors can be the time, so it is not known which axis is the batch."""
_REFUSED = "the batch of this network cannot be changed"


@dataclass(frozen=True)
class BatchedNetwork:
    """File of a network that can be read again with another batch size."""

    path: Path
    model: str
    """Name of the model profile. The profile decides how the network file is read."""
    options: NetworkOptions = NetworkOptions()  # noqa: RUF009  frozen
    """Options with which the run has read an ONNX file."""

    @cached_property
    def now(self) -> Workload:
        """Network with the batch size of the run. Raises InputError for a file that cannot be read."""
        return parse_workload(self.path, self.model, options=self.options)

    @cached_property
    def batch(self) -> int:
        """Batch size with which the run has read the network. Raises InputError if the batch size of the network cannot
        be changed.
        """
        if self.path.suffix not in YAML_SUFFIXES:
            return _batch_of_inputs(self._model, self.options, str(self.path))
        document = self._document
        if _is_language_model(document):
            if "requests" in document.data:
                why = f"{_REFUSED}, because the file lists its requests one by one"
                raise InputError([Problem(why, *document.place_of(("requests",)))])
            return int(document.data.get("batch") or 1)
        return _batch_of_loops(self.now, document)

    def at(self, batch: int) -> Workload:
        """Network with another batch. Raises InputError if the batch cannot be changed."""
        if batch == self.batch:
            return self.now
        if self.path.suffix not in YAML_SUFFIXES:
            found = self._of_model(batch)
        elif _is_language_model(self._document):
            # The number of experts in use, and thus the number of layers, does not grow in proportion to the batch.
            return self._of_data({**self._document.data, "batch": batch})
        else:
            found = self._of_data([_with_loop(entry, batch) for entry in self._document.data])
        self._check_work(found, batch)
        return found

    @cached_property
    def _document(self) -> YamlDocument:
        return load_yaml(existing_file(self.path, "workload"))

    @cached_property
    def _model(self) -> "onnx.ModelProto":
        from tilewright.workload.onnx.loading import load_model

        return load_model(self.path)[0]

    def _of_data(self, data: Any) -> Workload:
        """Network that is read from `data`, the changed content of the YAML file."""
        from tilewright.workload.yaml_reader import workload_of

        found = workload_of(replace(self._document, data=data), self.path.stem)
        if not profile_by_name(self.model).model_every_operator:
            return found
        from tilewright.workload.yaml_tensors import with_tensors

        return with_tensors(found)

    def _of_model(self, batch: int) -> Workload:
        """Network of the ONNX model in which the first axis of every input has the size `batch`. The other shapes are
        inferred again."""
        import onnx

        from tilewright.workload.onnx.resolution.inputs import network_inputs

        changed = onnx.ModelProto()
        changed.CopyFrom(self._model)
        for value in network_inputs(changed.graph):
            for dimension in value.type.tensor_type.shape.dim[:1]:
                dimension.dim_value = batch
        del changed.graph.value_info[:]
        for value in changed.graph.output:
            value.type.tensor_type.ClearField("shape")
        failures: list[InputError] = []
        for options in _options_at(self._model, self.options, batch):
            try:
                return self._read(changed, options)
            except InputError as error:
                failures.append(error)
        first = failures[0].problems[0]
        count = len(failures[0].problems)
        others = f" (and {count - 1} more)" if count > 1 else ""
        why = f"{_REFUSED}, because shapes in the file are valid only for the batch {self.batch}{self._given_inside}"
        told = f"{why}: {first.path}: {first.message}{others}"
        raise InputError([Problem(told, str(self.path), value=f"batch {batch}")])

    def _read(self, model: "onnx.ModelProto", options: NetworkOptions) -> Workload:
        from tilewright.workload.onnx import read_onnx

        return read_onnx(model, profile_by_name(self.model), name=self.now.name, options=options).workload

    @property
    def _given_inside(self) -> str:
        """Text that names the options for sizes of tensors inside the network; '' if the user gives no such option.
        These sizes stay the same if the batch changes.
        """
        if self.path.suffix in YAML_SUFFIXES:
            return ""
        found = _options_inside(self._model, self.options)
        return f", or because {some_of(found)} gives a size inside the network for this batch" if found else ""

    def _check_work(self, found: Workload, batch: int) -> None:
        """Raise InputError if the work of some layer does not grow in proportion to the batch. `found` is the network
        with the batch `batch`, and is compared with the network of the run.
        """
        works = [{node.name: node.layer.mac_count for node in one.nodes if node.layer} for one in (self.now, found)]
        before, after = works
        wrong = [name for name, count in before.items() if after.get(name, 0) * self.batch != count * batch]
        wrong += [name for name in after if name not in before]
        if wrong:
            why = f"{_REFUSED}, because the work of some layers is not in proportion to the batch{self._given_inside}"
            raise InputError([Problem(f"{why}: {some_of(wrong)}", str(self.path), value=f"batch {batch}")])


def _is_language_model(document: YamlDocument) -> bool:
    return isinstance(document.data, dict) and LANGUAGE_MODEL in document.data


def _with_loop(entry: Mapping[str, Any], batch: int) -> Mapping[str, Any]:
    """Entry of a layer in a YAML file, with the size of the loop over the batch set to `batch`."""
    loops = [str(name).upper() for name in entry["loop_dims"]]
    sizes = [batch if loop == BATCH_LOOP else size for loop, size in zip(loops, entry["loop_sizes"], strict=True)]
    return {**entry, "loop_sizes": sizes}


def _batch_of_loops(workload: Workload, document: YamlDocument) -> int:
    """Size of the loop over the batch, which must be the same in all layers of a YAML file. Raises InputError if the
    sizes differ. Also raises InputError if the loop is missing in a layer, does not index the output, or is part of a
    sliding window.
    """
    problems, sizes = [], dict[int, str]()
    for index, node in enumerate(workload.nodes):
        layer = node.layer
        assert layer is not None
        in_window = any(name == BATCH_LOOP for window in layer.relations for name, _ in window.terms)
        if BATCH_LOOP not in layer.size_of or BATCH_LOOP not in dict(layer.operand_dimensions)[OUTPUT] or in_window:
            why = f"{_REFUSED}, because this layer has no loop {BATCH_LOOP} over samples in its output"
            problems.append(Problem(why, *document.place_of((index, "loop_dims"))))
        else:
            sizes.setdefault(layer.size_of[BATCH_LOOP], layer.name)
    if not problems and len(sizes) > 1:
        why = f"{_REFUSED}, because its layers have different sizes of the loop {BATCH_LOOP}"
        value = ", ".join(f"{size} in {name}" for size, name in sizes.items())
        problems.append(Problem(why, document.file, value=value))
    if problems:
        raise InputError(problems)
    return next(iter(sizes))


def _batch_of_inputs(model: "onnx.ModelProto", options: NetworkOptions, file: str) -> int:
    """Batch of an ONNX model: the size of the first axis of all inputs. The batch is 1 if neither the file nor the
    options give this size. Raises InputError if the batch cannot be changed.
    """
    from tilewright.workload.onnx.resolution.inputs import GivenSizes, network_inputs, resolve_inputs

    recurrent = [node.name for node in model.graph.node if bare_type(node.op_type) in _RECURRENT]
    if recurrent:
        why = f"{_REFUSED}, because the axis of the batch is not known in a recurrent network"
        raise InputError([Problem(f"{why}: {some_of(recurrent)}", file)])
    names = [value.name for value in network_inputs(model.graph)]
    shapes_given = {name: shape for name, shape in options.input_shapes if name in names}
    shapes = resolve_inputs(model.graph, GivenSizes(dict(options.dims)), shapes_given).shapes
    sizes = dict[int, str]()
    for name in names:
        for size in shapes.get(name, ())[:1]:
            sizes.setdefault(size, name)
    batch = _one_size(sizes, file)
    _refuse_shared_symbols(model, file)
    return batch


def _refuse_shared_symbols(model: "onnx.ModelProto", file: str) -> None:
    """Raise InputError if the first axis of an input and another axis have a size of the same name."""
    first, others = dict[str, str](), dict[str, str]()
    for name, axis, symbol in _open_axes(model):
        (others if axis else first).setdefault(symbol, f"{name}[{axis}]")
    shared = [f"{symbol} of {place} and {others[symbol]}" for symbol, place in first.items() if symbol in others]
    if shared:
        why = f"{_REFUSED}, because the first axis of an input and another axis have a size of the same name"
        raise InputError([Problem(f"{why}: {some_of(shared)}", file)])


def _open_axes(model: "onnx.ModelProto") -> Iterator[tuple[str, int, str]]:
    """Axes of network inputs whose size the file does not fix, as triples (input, axis, name of the size). A size
    without a symbol in the file has the name `INPUT[AXIS]`.
    """
    from tilewright.workload.onnx.resolution.inputs import ANONYMOUS_SYMBOLS, network_inputs

    for value in network_inputs(model.graph):
        for axis, dimension in enumerate(value.type.tensor_type.shape.dim):
            if not dimension.HasField("dim_value") or dimension.dim_value == -1:
                is_named = dimension.dim_param not in ANONYMOUS_SYMBOLS
                yield value.name, axis, dimension.dim_param if is_named else f"{value.name}[{axis}]"


def _options_at(model: "onnx.ModelProto", options: NetworkOptions, batch: int) -> list[NetworkOptions]:
    """Options for reading the model with another batch, in the order in which they are tried.

    In the shapes that the user gives for inputs, the first size is replaced by `batch`. Sizes that the user gives for
    first axes are left out, because the changed model already has the size `batch` there. A pattern that matches a
    first axis can also match other axes. If `options` has patterns that match a first axis, the result has two items:
    first the options with these patterns, then the options without these patterns.
    """
    from tilewright.workload.onnx.resolution.inputs import network_inputs

    inputs = {value.name for value in network_inputs(model.graph)}
    shapes = tuple(
        (name, (batch, *shape[1:]) if name in inputs and shape else shape) for name, shape in options.input_shapes
    )
    exact, patterns = _keys_of_first_axes(model, options)
    kept = tuple((key, size) for key, size in options.dims if key not in exact)
    fewer = tuple((key, size) for key, size in kept if key not in patterns)
    found = [options._replace(dims=dims, input_shapes=shapes) for dims in (kept, fewer)]
    return found if patterns else found[:1]


def _keys_of_first_axes(model: "onnx.ModelProto", options: NetworkOptions) -> tuple[set[str], set[str]]:
    """Keys of the option `dims` that apply to first axes of network inputs, as a pair (names, patterns). Each name
    belongs to a first axis, and each pattern matches the name of a first axis.
    """
    from tilewright.workload.onnx.resolution.inputs import WILDCARD, GivenSizes

    names = {text for name, axis, symbol in _open_axes(model) if axis == 0 for text in (symbol, f"{name}[{axis}]")}
    keys = [key for key, _ in options.dims]
    exact = {key for key in keys if key in names}
    patterns = {
        key for key in keys if WILDCARD in key and any(GivenSizes({key: 1}).size_of(name) is not None for name in names)
    }
    return exact, patterns - exact


def _options_inside(model: "onnx.ModelProto", options: NetworkOptions) -> list[str]:
    """Names of options that give sizes of tensors inside the network. The name is `input_shapes.TENSOR` for a tensor
    that is no network input. For a key (a name or a pattern) that fits no axis of an input, the name is `dims.KEY`.
    """
    from tilewright.workload.onnx.resolution.inputs import GivenSizes, network_inputs, tensor_of

    inputs = {value.name for value in network_inputs(model.graph)}
    shapes = [f"input_shapes.{name}" for name, _ in options.input_shapes if name not in inputs]
    named = {text for name, axis, symbol in _open_axes(model) for text in (symbol, f"{name}[{axis}]")}
    keys = [key for key, _ in options.dims if tensor_of(key) not in inputs]
    sizes = [f"dims.{key}" for key in keys if all(GivenSizes({key: 1}).size_of(name) is None for name in named)]
    return [*shapes, *sizes]


def _one_size(sizes: dict[int, str], file: str) -> int:
    if len(sizes) == 1 and min(sizes) >= 1:
        return next(iter(sizes))
    if not sizes:
        raise InputError([Problem(f"{_REFUSED}, because no input of the network has an axis", file)])
    why = f"{_REFUSED}, because the first axes of its inputs do not have one common size above 0"
    raise InputError([Problem(why, file, value=", ".join(f"{size} of {name}" for size, name in sizes.items()))])
