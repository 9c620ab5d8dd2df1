"""Dependencies by index maps, compared with experiments that change one input element and see which outputs change."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from tilewright.base.profile import CORRECTED
from tilewright.workload.access import IndexMap
from tilewright.workload.graph import UNSUPPORTED
from tilewright.workload.onnx.lowering import LoweredNode, Lowering, lower
from tilewright.workload.onnx.operators import register_operators
from tilewright.workload.onnx.resolution.network import ResolvedGraph, resolve_graph

from tests.unit.workload.dependency_tables import influences
from tests.unit.workload.onnx.reference_model import evaluable

Arrays = dict[str, npt.NDArray[np.generic]]
Table = npt.NDArray[np.bool_]
Tables = dict[tuple[str, str], Table]
"""(network output, network input) -> table [output element, input element] of flat row-major positions."""

_STEPS = (7.3, -7.3, 0.6, -0.6, 61.0, -61.0)
_MOST_ROUNDS = 60
_SUPERSET_ROUNDS = 3
_WIDEST = 3.0


def build_model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, tuple[int, ...]],
    constants: Mapping[str, npt.ArrayLike] | None = None,
    *,
    kinds: Mapping[str, int] | None = None,
    opset: int = 20,
) -> onnx.ModelProto:
    """A model whose outputs are all tensors that no node reads.

    `kinds` are element types of inputs that are not FLOAT. Constants of Python integers are INT64, of Python floats
    FLOAT.
    """
    read = {name for node in nodes for name in node.input}
    made = [name for node in nodes for name in node.output if name]
    typed = {name: (kinds or {}).get(name, onnx.TensorProto.FLOAT) for name in inputs}
    values = {name: np.asarray(value) for name, value in (constants or {}).items()}
    narrow = {name: value.astype(np.float32) if value.dtype == np.float64 else value for name, value in values.items()}
    graph = helper.make_graph(
        list(nodes),
        "test",
        [helper.make_tensor_value_info(name, typed[name], shape) for name, shape in inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in made if name not in read],
        [numpy_helper.from_array(value, name) for name, value in narrow.items()],
    )
    versions = {"com.microsoft": 1} | {node.domain: _newest(node.domain) for node in nodes} | {"": opset}
    opsets = [helper.make_opsetid(domain, version) for domain, version in versions.items()]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    return onnx.shape_inference.infer_shapes(model, data_prop=True)


@cache
def _newest(domain: str) -> int:
    """The newest version of a domain that onnx knows; 1 for an unknown domain."""
    return max((schema.since_version for schema in onnx.defs.get_all_schemas() if schema.domain == domain), default=1)


@dataclass
class LoweredModel:
    """The lowered parts of a model's nodes, in order of execution, without constant nodes."""

    graph: ResolvedGraph
    nodes: list[LoweredNode] = field(default_factory=list)
    shape_of: dict[str, tuple[int, ...]] = field(default_factory=dict)
    statuses: dict[str, str] = field(default_factory=dict)
    """Node -> status of coverage."""
    remarks: list[str] = field(default_factory=list)

    @property
    def index_maps(self) -> list[IndexMap]:
        """The index maps of all parts."""
        return [index_map for node in self.nodes for index_map in node.index_maps]


@dataclass
class PredictedDependencies:
    """The dependencies that follow from the index maps of a model."""

    lowered: LoweredModel
    tables: Tables
    is_exact: bool


def lower_model(model: onnx.ModelProto, dims: Mapping[str, int] | None = None) -> LoweredModel:
    """Resolve a model and lower all its nodes. Raises InputError."""
    register_operators()
    graph = resolve_graph(model, dims) if dims else resolve_graph(model)
    lowered = LoweredModel(graph, shape_of={name: facts.shape for name, facts in graph.tensors.items()})
    for node in graph.nodes:
        if node.node_id in graph.constant_nodes:
            continue
        op = Lowering(node, graph, CORRECTED)
        lower(op)
        lowered.shape_of.update({name: tensor.shape for name, tensor in op.temporaries.items()})
        lowered.statuses[node.name] = op.status
        lowered.remarks += op.remarks
        lowered.nodes += op.lowered
    return lowered


def predicted_dependencies(model: onnx.ModelProto, dims: Mapping[str, int] | None = None) -> PredictedDependencies:
    """The index maps of all nodes, composed from every network input to every network output."""
    lowered = lower_model(model, dims)
    found = PredictedDependencies(lowered, {}, is_exact=True)
    own = {}
    for source in lowered.graph.inputs:
        reached = {source: np.eye(_count(lowered.shape_of[source]), dtype=bool)}
        for number, index_map in enumerate(lowered.index_maps):
            output, read = index_map.output.tensor, index_map.input.tensor
            if read not in reached:
                continue
            if number not in own:
                own[number] = influences([index_map], lowered.shape_of[output], lowered.shape_of[read])
            found.is_exact &= index_map.is_exact
            composed = (own[number].astype(np.float32) @ reached[read].astype(np.float32)) > 0
            reached[output] = reached[output] | composed if output in reached else composed
        for output in lowered.graph.outputs:
            nothing = np.zeros((_count(lowered.shape_of[output]), _count(lowered.shape_of[source])), dtype=bool)
            found.tables[output, source] = reached.get(output, nothing)
    return found


def assert_dependencies(
    model: onnx.ModelProto,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    *,
    must_be_exact: bool = False,
    only_contains: bool = False,
    rounds: int = _MOST_ROUNDS,
    evaluated: onnx.ModelProto | None = None,
) -> PredictedDependencies:
    """Check that index maps equal experiments where they are declared exact, and else contain them.

    `ranges` bounds the values of an input (both ends possible); other integers are 0 to 2. `rounds` is the greatest
    number of experiments with new random values; they end when every predicted dependency has been seen.
    `only_contains` is for graphs in which dependencies cancel. `evaluated` is the model of the experiment, if it is
    another one. Raises AssertionError that names the elements.
    """
    predicted = predicted_dependencies(model)
    assert UNSUPPORTED not in predicted.lowered.statuses.values(), predicted.lowered.statuses
    assert predicted.is_exact or not must_be_exact, "index maps are declared to be supersets"
    must_be_equal = predicted.is_exact and not only_contains
    seen: Tables = {key: np.zeros_like(table) for key, table in predicted.tables.items()}
    experiment = _Experiment(evaluated or model, dict(ranges or {}))
    for number in range(rounds if must_be_equal else min(rounds, _SUPERSET_ROUNDS)):
        experiment.run(number, predicted.tables, seen)
        for key, table in seen.items():
            _assert_none(table & ~predicted.tables[key], key, "depends on, but its index maps do not say so,")
        if number > 0 and all((predicted.tables[key] == seen[key]).all() for key in seen):
            break
    if must_be_equal:
        for key, table in predicted.tables.items():
            _assert_none(table & ~seen[key], key, "should depend by its index maps, but does not, on")
    return predicted


class _Experiment:
    def __init__(self, model: onnx.ModelProto, ranges: dict[str, tuple[float, float]]) -> None:
        self.evaluator = ReferenceEvaluator(evaluable(model))
        constants = {tensor.name for tensor in model.graph.initializer}
        self.inputs = [given for given in model.graph.input if given.name not in constants]
        self.outputs = [given.name for given in model.graph.output]
        self.ranges = ranges

    def run(self, number: int, predicted: Tables, seen: Tables) -> None:
        """Run one round: random values, and every element of every input changed once."""
        generator = np.random.default_rng(number)
        values: Arrays = {given.name: self._random(given, generator) for given in self.inputs}
        before = self._evaluate(values)
        for given in self.inputs:
            keys = [(output, given.name) for output in self.outputs]
            for place, changed in self._changes(given.name, values[given.name], number):
                if number > 1 and all((seen[key][:, place] == predicted[key][:, place]).all() for key in keys):
                    continue
                after = self._evaluate({**values, given.name: changed})
                for output in self.outputs:
                    assert before[output].size == len(seen[output, given.name]), f"the evaluator has another {output}"
                    seen[output, given.name][:, place] |= _differs(before[output], after[output])

    def _evaluate(self, values: Arrays) -> Arrays:
        with np.errstate(all="ignore"):
            results = self.evaluator.run(self.outputs, values)
        return {name: np.array(result) for name, result in zip(self.outputs, results, strict=True)}

    def _random(self, given: onnx.ValueInfoProto, generator: np.random.Generator) -> npt.NDArray[np.generic]:
        shape = tuple(dimension.dim_value for dimension in given.type.tensor_type.shape.dim)
        kind = helper.tensor_dtype_to_np_dtype(given.type.tensor_type.elem_type)
        if kind == np.bool_:
            return generator.integers(0, 2, shape).astype(np.bool_)
        if np.issubdtype(kind, np.integer):
            low, high = self.ranges.get(given.name, (0, 2))
            return generator.integers(int(low), int(high) + 1, shape).astype(kind)
        low, high = self.ranges.get(given.name, (-_WIDEST, _WIDEST))
        return generator.uniform(low, high, shape).astype(kind)

    def _changes(
        self, name: str, values: npt.NDArray[np.generic], number: int
    ) -> Iterator[tuple[int, npt.NDArray[np.generic]]]:
        generator = np.random.default_rng(1000 + number)
        for place in range(values.size):
            changed = values.copy().reshape(-1)
            old = changed[place]
            if values.dtype == np.bool_:
                changed[place] = not old
            elif np.issubdtype(values.dtype, np.integer):
                low, high = (int(end) for end in self.ranges.get(name, (0, 2)))
                if low == high:
                    continue
                changed[place] = low + (int(old) - low + generator.integers(1, high - low + 1)) % (high - low + 1)
            elif name in self.ranges:
                changed[place] = generator.uniform(*self.ranges[name])
            else:
                changed[place] = old + _STEPS[number % len(_STEPS)] * generator.uniform(0.5, 1.0)
            yield place, changed.reshape(values.shape)


def _differs(before: npt.NDArray[np.generic], after: npt.NDArray[np.generic]) -> Table:
    assert before.shape == after.shape, "the experiment changed a shape"
    same = before == after
    if np.issubdtype(before.dtype, np.floating):
        same |= np.isnan(before) & np.isnan(after)
    return np.asarray(~same).reshape(-1)


def _assert_none(wrong: Table, key: tuple[str, str], relation: str) -> None:
    if wrong.any():
        places = [f"{output}[{int(row)}] {key[1]}[{int(column)}]" for output, row, column in _first(wrong, key[0])]
        raise AssertionError(f"{key[0]} {relation} {key[1]}: {wrong.sum()} pairs of elements, first {places}")


def _first(wrong: Table, output: str) -> list[tuple[str, int, int]]:
    return [(output, row, column) for row, column in np.argwhere(wrong)[:8]]


def _count(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape, dtype=np.int64))
