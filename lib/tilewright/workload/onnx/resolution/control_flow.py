"""Control flow: branches and loops that can be resolved before run time are replaced by plain operators.

Loop and Scan are unrolled if their number of iterations is known: the operators of the body are repeated for each
iteration.

The condition of a Loop is known before run time in one case: the first value of the condition is known, and the body
passes the condition on or computes it from known values. Known values are constants, the iteration number, and states
that are known before run time. If the number of iterations is decided at run time, the operator is kept and not
modelled.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from tilewright.base.errors import InputError, OptionPath, Problem, nearest_name
from tilewright.workload.onnx.node import OnnxNode
from tilewright.workload.onnx.resolution.functions import (
    RANDOM_OPERATORS,
    Expander,
    PendingNode,
    captured_names,
    graph_constants,
    tensors_read,
)
from tilewright.workload.onnx.resolution.tensors import KnownTensors

THEN, ELSE = "then", "else"
EVERY_BRANCH = "*"
"""Key of `branches` that applies to every `If` without a key of its own."""

LOOPS = frozenset({"SequenceMap"})
"""Loops that are always refused, because the number of their iterations, or the data of an iteration, is known only at
run time."""


def loop_problem(node: onnx.NodeProto, name: str) -> Problem:
    """Problem that says why a loop is refused."""
    return Problem(
        f"{node.op_type} is not supported, because a network must be a graph without loops; export the network with"
        " the loop unrolled (a fixed number of iterations), or with an operator such as LSTM or GRU instead of the"
        " loop",
        path=name,
    )


def choose_branch(name: str, condition: np.ndarray | None, branches: Mapping[str, str]) -> str | Problem:
    """Branch of the operator If with the name `name`: THEN or ELSE.

    A known value of `condition` decides. Otherwise, the choice of the user in `branches` (operator name -> branch)
    decides. Returns a Problem if the value is unknown and the user has chosen no branch.
    """
    if condition is not None and condition.size == 1:
        return THEN if bool(condition.reshape(())) else ELSE
    chosen = branches.get(name, branches.get(EVERY_BRANCH))
    if chosen in (THEN, ELSE):
        return chosen
    return Problem(
        "the condition of this If is only known at run time; choose a branch",
        path=name,
        allowed=f"branches: {name}: then | else",
    )


def check_branches(branches: Mapping[str, str], if_names: list[str]) -> list[Problem]:
    """Problems of the chosen branches: the `If` is not in the network, or the branch is neither `then` nor `else`."""
    problems = []
    for key, chosen in branches.items():
        path = OptionPath(f"branches.{key}")
        if chosen not in (THEN, ELSE):
            problems.append(Problem("unknown branch", path=path, value=repr(chosen), allowed=f"{THEN}, {ELSE}"))
        if key != EVERY_BRANCH and key not in if_names:
            names = sorted(if_names)
            allowed = ", ".join(names) or "none: the network has no If"
            problems.append(
                Problem("no such If in the network", path=path, allowed=allowed, nearest=nearest_name(key, names))
            )
    return problems


def branch_graph(node: onnx.NodeProto, branch: str) -> onnx.GraphProto | None:
    """Graph of the branch; None if the node has no such branch."""
    for attribute in node.attribute:
        if attribute.name == f"{branch}_branch" and attribute.type == onnx.AttributeProto.GRAPH:
            graph: onnx.GraphProto = attribute.g
            return graph
    return None


UNROLLED = frozenset({"Loop", "Scan"})
LARGEST_UNROLLED = 20_000
"""Largest number of operators after all loops of a network are unrolled. Reading this many operators takes about ten
seconds.
"""
_FIRST_SCAN_WITHOUT_BATCHES = 9
AXES_ARE_AN_INPUT_SINCE = 13


class TooLongDefinitionError(Exception):
    """Error that is raised if onnx's definition of `operator` has a loop with too many iterations. The definition then
    does not replace the operator.
    """

    def __init__(self, operator: str) -> None:
        super().__init__(operator)
        self.operator = operator


@dataclass(frozen=True)
class LoopStep(PendingNode):
    """State of a loop before iteration `number`. The fields of the loop's node are fields of this object, too."""

    body: onnx.GraphProto = None  # type: ignore[assignment]
    count: int | None = None
    """Largest number of iterations; None if only the condition ends the loop."""
    number: int = 0
    condition: str = ""
    """Name of the tensor that decides whether this iteration runs; '' if it always runs."""
    state: tuple[str, ...] = ()
    collected: tuple[tuple[str, ...], ...] = ()
    """Names of the tensors that earlier iterations have computed for the scan outputs: one tuple per scan output, with
    one name per iteration.
    """


class LoopUnroller:
    """Unroller of loops. It counts the operators that result from all loops of the network."""

    def __init__(self, expander: Expander, known: KnownTensors) -> None:
        self.expander, self.known = expander, known
        self.written = 0

    def first_step(self, item: PendingNode) -> LoopStep | None:
        """State of a loop before its first iteration; None if the number of iterations is decided at run time, or if
        the loop is a Scan before operator set 9.

        Raises InputError for a body that does not fit the operator, and if the unrolled loops of the network would have
        too many operators. If the loop belongs to onnx's definition of an operator, too many operators raise
        TooLongDefinitionError instead.
        """
        body = next((a.g for a in item.proto.attribute if a.name == "body"), None)
        if body is None:
            raise InputError([Problem(f"this {item.proto.op_type} has no body", path=item.name)])
        step = self._loop(item, body) if item.proto.op_type == "Loop" else self._scan(item, body)
        outputs = len(step.state) + len(step.collected) if step else 0
        if step and len(item.proto.output) > outputs:
            message = f"this {item.proto.op_type} has more outputs than its body makes"
            raise InputError(
                [Problem(message, path=item.name, value=str(len(item.proto.output)), allowed=str(outputs))]
            )
        if step is None:
            return None
        scope = dict(item.scope)
        for name, tensor in graph_constants(body):
            scope[name] = self.expander.tensor_name(item, name)
            self.known.add_constant(scope[name], tensor)
        self._check_size(step, step.count or 1)
        return replace(step, scope=scope)

    def next_nodes(self, step: LoopStep) -> tuple[list[PendingNode], list[str]]:
        """Pair (nodes that replace the loop step, names of scan outputs that are empty because no iteration has run).

        Before each iteration, the replacing nodes are the nodes of this iteration, and a loop step for the later
        iterations. After the last iteration, the replacing nodes join the results of all iterations. Raises InputError
        if the condition is not known, or if the unrolled loops of the network have too many operators.
        """
        if self._is_over(step):
            return self._results(step)
        self._check_size(step, 1)
        self.written += max(len(step.body.node), 1)
        label = f"{step.name}/{step.number}"
        results = [self.expander.tensor_name(step, f"{step.number}/{value.name}") for value in step.body.output]
        before, scope = self._inputs_of_body(step, label)
        nodes = self.expander.iteration(step, step.body, {**step.scope, **scope}, results, label)
        states = len(step.state)
        leading = 1 if step.proto.op_type == "Loop" else 0
        after = replace(
            step,
            number=step.number + 1,
            condition=results[0] if leading else "",
            state=tuple(results[leading : leading + states]),
            collected=tuple(
                (*parts, new) for parts, new in zip(step.collected, results[leading + states :], strict=True)
            ),
        )
        return [*before, *nodes, after], []

    def _check_size(self, step: LoopStep, iterations: int) -> None:
        count = self.written + iterations * max(len(step.body.node), 1)
        if count > LARGEST_UNROLLED:
            if step.definition_of:
                raise TooLongDefinitionError(step.definition_of)
            message = (
                f"{step.proto.op_type} has too many iterations: after unrolling, the network has too many operators"
            )
            allowed = f"at most {LARGEST_UNROLLED}"
            raise InputError([Problem(message, path=step.name, value=f"{count} or more", allowed=allowed)])

    # --- number of iterations -------------------------------------------------------------------------------------

    def _loop(self, item: PendingNode, body: onnx.GraphProto) -> LoopStep | None:
        count, condition, *state = [*item.proto.input, "", ""][: max(len(item.proto.input), 2)]
        most = self._integer(count) if count else None
        if (count and most is None) or (condition and not self._values_known(condition)):
            return None
        if len(body.output) < 1 + len(state) or len(body.input) != 2 + len(state):
            message = "the body of this Loop has the wrong number of inputs or outputs"
            raise InputError([Problem(message, path=item.name)])
        if not self._condition_is_known(item, body, state):
            return None
        collected = ((),) * (len(body.output) - 1 - len(state))
        return LoopStep(
            **_fields(item), body=body, count=most, condition=condition, state=tuple(state), collected=collected
        )

    def _scan(self, item: PendingNode, body: onnx.GraphProto) -> LoopStep | None:
        node = OnnxNode(0, item.name, item.proto)
        scanned = node.integer("num_scan_inputs", 0)
        if item.opsets.get("", _FIRST_SCAN_WITHOUT_BATCHES) < _FIRST_SCAN_WITHOUT_BATCHES:
            return None
        states = len(item.proto.input) - scanned
        if scanned < 1 or states < 0 or len(body.input) != len(item.proto.input) or len(body.output) < states:
            message = "the body of this Scan has the wrong number of inputs or outputs"
            raise InputError([Problem(message, path=item.name)])
        lengths = set()
        axes = node.integers("scan_input_axes", (0,) * scanned)
        for name, axis in zip(item.proto.input[states:], axes, strict=False):
            facts = self.known.facts.get(name)
            if facts is None:
                return None
            if not -len(facts.shape) <= axis < len(facts.shape):
                message = "attribute 'scan_input_axes' of Scan names an axis that the input does not have"
                raise InputError([Problem(message, path=item.name, value=str(axis))])
            lengths.add(facts.shape[axis])
        if len(lengths) != 1 or len(axes) != scanned:
            message = "the inputs of this Scan have different lengths"
            raise InputError([Problem(message, path=item.name, value=", ".join(map(str, sorted(lengths))))])
        collected = ((),) * (len(body.output) - states)
        state = tuple(item.proto.input[:states])
        return LoopStep(**_fields(item), body=body, count=lengths.pop(), state=state, collected=collected)

    def _integer(self, tensor: str) -> int | None:
        facts = self.known.facts.get(tensor)
        if facts is None or facts.values is None or facts.values.size != 1 or facts.values.dtype.kind not in "iu":
            return None
        return max(int(facts.values.reshape(())), 0)

    def _values_known(self, tensor: str) -> bool:
        facts = self.known.facts.get(tensor)
        return facts is not None and facts.values is not None and facts.values.size == 1

    def _condition_is_known(self, item: PendingNode, body: onnx.GraphProto, state: list[str]) -> bool:
        """True if the condition that the body computes is known before run time in every iteration."""
        own = [value.name for value in body.input]
        outer = {name: item.scope.get(name, name) for name in captured_names(body)}
        constants = {name for name, tensor in outer.items() if tensor in self.known.constants}
        constants.update(name for name, _ in graph_constants(body))
        kept = {place for place, tensor in enumerate(state) if tensor in self.known.constants}
        while True:
            derived = constants | set(own[:2]) | {own[2 + place] for place in kept}
            for node in body.node:
                reads = [name for name in tensors_read(node) if name]
                if node.op_type not in RANDOM_OPERATORS and all(name in derived for name in reads):
                    derived.update(node.output)
            left = {place for place in kept if body.output[1 + place].name in derived}
            if left == kept:
                return body.output[0].name in derived
            kept = left

    def _is_over(self, step: LoopStep) -> bool:
        if step.count is not None and step.number >= step.count:
            return True
        if not step.condition:
            return False
        if not self._values_known(step.condition):
            message = f"the number of iterations of this {step.proto.op_type} is decided at run time"
            raise InputError([Problem(message, path=step.name)])
        values = self.known.facts[step.condition].values
        assert values is not None
        return not bool(values.reshape(()))

    # --- inputs and results of an iteration ---------------------------------------------------------------------------

    def _inputs_of_body(self, step: LoopStep, label: str) -> tuple[list[PendingNode], dict[str, str]]:
        """Pair for one iteration: (operators that compute inputs of the loop body, inputs of the loop body). The second
        item is a table: name of the input in the body -> name of its tensor. A Loop needs no such operators; a Scan
        needs one operator for each scanned input.
        """
        names = [value.name for value in step.body.input]
        if step.proto.op_type == "Loop":
            counter = self._constant(step, "iteration", np.asarray(step.number, np.int64))
            condition = step.condition or self._constant(step, "condition", np.asarray(True))
            return [], dict(zip(names, (counter, condition, *step.state), strict=True))
        node = OnnxNode(0, step.name, step.proto)
        scanned = step.proto.input[len(step.state) :]
        axes = node.integers("scan_input_axes", (0,) * len(scanned))
        backward = node.integers("scan_input_directions", (0,) * len(scanned))
        nodes, elements = [], []
        for name, axis, is_backward in zip(scanned, axes, backward, strict=True):
            assert step.count is not None
            place = step.count - 1 - step.number if is_backward else step.number
            index = self._constant(step, "place", np.asarray(place, np.int64))
            element = self.expander.tensor_name(step, f"{step.number}/{name}")
            gather = onnx.helper.make_node("Gather", [name, index], [element], axis=axis)
            nodes.append(self.expander.pending(step, gather, f"{label}/{name}"))
            elements.append(element)
        return nodes, dict(zip(names, (*step.state, *elements), strict=True))

    def _constant(self, step: LoopStep, part: str, value: np.ndarray) -> str:
        name = self.expander.tensor_name(step, f"{step.number}/{part}")
        self.known.add_constant(name, numpy_helper.from_array(value))
        return name

    def _results(self, step: LoopStep) -> tuple[list[PendingNode], list[str]]:
        nodes: list[PendingNode] = []
        without_parts = []
        states = len(step.state)
        for name, source in zip(step.proto.output[:states], step.state, strict=False):
            if name:
                identity = onnx.helper.make_node("Identity", [source], [name])
                nodes.append(self.expander.pending(step, identity, f"{step.name}/output {name}"))
        for number, (name, parts) in enumerate(zip(step.proto.output[states:], step.collected, strict=False)):
            if name and parts:
                nodes += self._stacked(step, name, parts, number)
            elif name:
                without_parts.append(name)
        return nodes, without_parts

    def _stacked(self, step: LoopStep, name: str, parts: tuple[str, ...], number: int) -> Iterator[PendingNode]:
        node = OnnxNode(0, step.name, step.proto)
        count = len(step.collected)
        axis = node.integers("scan_output_axes", (0,) * count)[number]
        if node.integers("scan_output_directions", (0,) * count)[number]:
            parts = parts[::-1]
        rows = []
        as_input = step.opsets.get("", AXES_ARE_AN_INPUT_SINCE) >= AXES_ARE_AN_INPUT_SINCE
        axes = self._constant(step, "axes", np.asarray([axis], np.int64)) if as_input else ""
        for place, part in enumerate(parts):
            row = self.expander.tensor_name(step, f"row {place} of {name}")
            if as_input:
                unsqueeze = onnx.helper.make_node("Unsqueeze", [part, axes], [row])
            else:
                unsqueeze = onnx.helper.make_node("Unsqueeze", [part], [row], axes=[axis])
            yield self.expander.pending(step, unsqueeze, f"{step.name}/row {place} of {name}")
            rows.append(row)
        concat = onnx.helper.make_node("Concat", rows, [name], axis=axis)
        yield self.expander.pending(step, concat, f"{step.name}/output {name}")


def with_captured_inputs(item: PendingNode) -> PendingNode:
    """Loop `item`, which is not unrolled, with further inputs: the tensors outside the loop that its body reads."""
    proto = onnx.NodeProto()
    proto.CopyFrom(item.proto)
    outer = [item.scope.get(name, name) for name in tensors_read(item.proto)[len(item.proto.input) :]]
    proto.input.extend(name for name in dict.fromkeys(outer) if name not in item.proto.input)
    return replace(item, proto=proto)


def _fields(item: PendingNode) -> dict[str, Any]:
    """Fields that a loop step takes over from the node of the loop."""
    return {name: getattr(item, name) for name in PendingNode.__dataclass_fields__}
