"""LSTM, GRU and RNN: first the products of all inputs at once; then, in each step, the products with the state, and the
gates.

A step depends on the steps before it, and normally has nodes of its own. If there would be too many nodes, consecutive
steps form a block with common nodes. The state inside a block is then assumed to depend on all inputs of the block.

The three operators differ only in the arithmetic of a step.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tilewright.workload.access import AxisIndex, IndexMap, TensorAccess, affine, fixed
from tilewright.workload.onnx.lowering import MAC_ARRAY, LoweredNode, Lowering, access, lowers, whole_map
from tilewright.workload.onnx.operators.matrix import Axis, declare_superset

Loops = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class RecurrentSizes:
    """Sizes of a recurrent operator."""

    steps: int
    batch: int
    features: int
    hidden: int
    directions: int
    gates: int
    batch_first: bool
    """True if the attribute `layout` is set. X is then [batch, steps, features], and a state is [batch, directions,
    hidden]."""
    channels_last: bool = False
    """True if W and R are [directions, features or hidden, gates * hidden]. If false, their last two axes are
    exchanged."""

    def weights(self, tensor: str, direction: int, channel: AxisIndex) -> TensorAccess:
        """Access to W or R. The output channel is `channel`, and the loop over the input channels is C."""
        axes: tuple[Axis, Axis] = ("C", channel) if self.channels_last else (channel, "C")
        return access(tensor, fixed(direction), *axes)


@dataclass(frozen=True)
class Value:
    """Tensor with one batch axis, and with the channels as the last axis. The value has the channels from `start`
    on."""

    tensor: str
    before: tuple[Axis, ...] = ()
    """Indices along the axes that come before the batch axis."""
    after: tuple[Axis, ...] = ()
    """Indices along the axes between the batch and the channels."""
    start: int = 0

    def at(self, channel: str) -> TensorAccess:
        """Access to the value. Loop B goes over the batch, and the loop `channel` over the channels."""
        return access(self.tensor, *self.before, "B", *self.after, affine((channel, 1), offset=self.start))

    def channels(self, start: int) -> "Value":
        """Value in the same tensor. Its first channel is `start` channels after the first channel of this value."""
        return Value(self.tensor, self.before, self.after, self.start + start)


@dataclass(frozen=True)
class RecurrentSteps:
    """Block of consecutive time steps in one direction of a recurrent operator. Its methods add the nodes of these
    steps.
    """

    op: Lowering
    sizes: RecurrentSizes
    direction: int
    first: int
    """Index, along the time axis, of the earliest step of the block."""
    length: int
    products: str
    """Name of the tensor [steps, batch, gates * hidden] with the products of inputs and weights, biases included."""
    prefix: str

    @property
    def times(self) -> Loops:
        """Loop over the steps of the block; () for a single step."""
        return (("D", self.length),) if self.length > 1 else ()

    @property
    def time(self) -> AxisIndex:
        """Index along the time axis, for all steps of the block."""
        return affine(("D", 1), offset=self.first) if self.length > 1 else fixed(self.first)

    def input_product(self, gate: int) -> Value:
        """Products of the inputs with the weights of gate `gate` and of later gates, for the steps of the block."""
        return Value(self.products, (self.time,), (), gate * self.sizes.hidden)

    def last(self, value: Value, *, is_reverse: bool) -> Value:
        """Part of `value` for the step of the block that runs last. If `is_reverse` is true, this is the earliest step
        along the time axis."""
        if self.length == 1:
            return value
        return Value(value.tensor, (fixed(0 if is_reverse else self.length - 1),), (), value.start)

    def state_product(self, part: str, state: Value, gate: int, gates: int) -> Value:
        """Product of a state and the recurrence weights of `gates` consecutive gates, from gate `gate` on."""
        hidden = self.sizes.hidden
        result = self._new(part, gates * hidden)
        weights = self.sizes.weights(self.op.input(2), self.direction, affine(("K", 1), offset=gate * hidden))
        self.op.nest(
            (("C", hidden), *self.times, ("K", gates * hidden), ("B", self.sizes.batch)),
            result.at("K"),
            {"I": state.at("C"), "W": weights},
            unit=MAC_ARRAY,
            part=self.prefix + part,
            operator_type="MatMul",
        )
        if starts_at_zero(self.op):
            declare_superset(self.op, self.op.input(2))
        return result

    def arithmetic(
        self, part: str, operator_type: str, values: Sequence[Value | TensorAccess], gates: int = 1
    ) -> Value:
        """Add an elementwise operation on one or two values, and return its result. The result has the channels of
        `gates` gates.
        """
        result = self._new(part, gates * self.sizes.hidden)
        accesses = [value.at("K") if isinstance(value, Value) else value for value in values]
        self.op.nest(
            (*self.times, ("B", self.sizes.batch), ("K", gates * self.sizes.hidden)),
            result.at("K"),
            dict(zip(("I", "W"), accesses, strict=False)),
            part=self.prefix + part,
            operator_type=operator_type,
        )
        return result

    def inner_state(self, part: str, previous: Sequence[Value]) -> Value:
        """State before each step of the block. The state is assumed to depend on all inputs of the block and on the
        states before the block."""
        result = self._new(part, self.sizes.hidden)
        loops = (*self.times, ("B", self.sizes.batch), ("C", self.sizes.hidden))
        output = result.at("C")
        maps = [
            IndexMap((*loops, ("S", self.sizes.hidden)), output, value.at("S"), is_exact=False) for value in previous
        ]
        read = access(self.products, affine(("T", 1), offset=self.first), "B", "S")
        others = (("T", self.length), ("S", self.sizes.gates * self.sizes.hidden))
        maps.append(IndexMap((*loops, *others), output, read, is_exact=False))
        self.op.move(*maps, part=self.prefix + part, operator_type="Identity")
        return result

    def _new(self, part: str, channels: int) -> Value:
        steps = (self.length,) if self.length > 1 else ()
        shape = (*steps, self.sizes.batch, channels)
        name = self.op.temporary(self.prefix + part, shape, self.op.input())
        return Value(name, ("D",) if steps else ())


def input_products(op: Lowering, sizes: RecurrentSizes, direction: int, prefix: str) -> str:
    """Add the nest that multiplies the inputs of all steps by the input weights. Returns the name of the resulting
    tensor [steps, batch, gates * hidden]. Adding the biases costs nothing.
    """
    channels = sizes.gates * sizes.hidden
    result = op.temporary(f"{prefix}inputs", (sizes.steps, sizes.batch, channels), op.input())
    data = ("B", "D", "C") if sizes.batch_first else ("D", "B", "C")
    biases = []
    if op.has_input(3):
        biases = [access(op.input(3), fixed(direction), affine(("K", 1), offset=start)) for start in (0, channels)]
    op.nest(
        (("C", sizes.features), ("D", sizes.steps), ("K", channels), ("B", sizes.batch)),
        access(result, "D", "B", "K"),
        {"I": access(op.input(), *data), "W": sizes.weights(op.input(1), direction, affine(("K", 1)))},
        others=biases,
        unit=MAC_ARRAY,
        part=f"{prefix}inputs",
        operator_type="MatMul",
    )
    if starts_at_zero(op):
        declare_superset(op, *(op.input(index) for index in (1, 3) if op.has_input(index)))
    return result


def starts_at_zero(op: Lowering) -> bool:
    """True if an initial state is missing and therefore zero. Products with this state do not affect the first step."""
    states = (5, 6) if op.node.proto.op_type.endswith("LSTM") else (5,)
    return not all(op.has_input(index) for index in states)


def initial_state(op: Lowering, sizes: RecurrentSizes, index: int, direction: int, part: str) -> Value:
    """Initial state at input `index`. If the input is missing, the state is zeros that depend on nothing."""
    if op.has_input(index):
        if sizes.batch_first:
            return Value(op.input(index), (), (fixed(direction),))
        return Value(op.input(index), (fixed(direction),))
    name = op.temporary(part, (sizes.batch, sizes.hidden), op.input())
    op.lowered.append(LoweredNode(f"{op.node.name}/{part}", "ConstantOfShape", None, "", (), (name,), ()))
    return Value(name)


_MOST_NODES = 480
"""Approximate limit of the number of nodes of one operator. If single steps would give more nodes, steps are lowered in
blocks."""
_SEQUENCE_LENGTHS, _INITIAL_STATE, _INITIAL_CELL, _PEEPHOLES = 4, 5, 6, 7
"""Indices of the inputs that come after X, W, R and B."""

States = tuple[Value, ...]
"""States after a step: (hidden state,), or (hidden state, cell state) for an LSTM."""


@dataclass(frozen=True)
class _Kind:
    gates: int
    states: int
    nodes: Callable[[Lowering], int]
    """Function that gives the number of nodes of one step of an operator."""
    step: Callable[[RecurrentSteps, States], States]


@dataclass(frozen=True)
class _Ran:
    """Block that has been lowered, with the states after each step of the block."""

    block: RecurrentSteps
    states: States


@lowers("LSTM", "GRU", "RNN")
def lower_recurrent(op: Lowering) -> None:
    """Recurrent operator: products of the inputs of all steps, then a chain of steps for each direction.

    The number of multiply-accumulates is steps x batch x directions x gates x hidden x (features + hidden). Sequence
    lengths do not shorten the work. Raises InputError if shapes do not fit together.
    """
    kind = _KINDS[op.node.proto.op_type]
    sizes = _sizes(op, kind)
    length = _block_length(sizes, kind.nodes(op))
    if length > 1:
        op.approximated(f"dependencies over time hold for blocks of {length} steps, not for single steps")
    ran: list[_Ran] = []
    for direction, is_reverse in enumerate(_directions(op)):
        ran += _run(op, sizes, kind, direction, length, is_reverse=is_reverse)
    _outputs(op, sizes, ran)


@lowers("DynamicQuantizeLSTM", domain="com.microsoft")
def lower_quantised_lstm(op: Lowering) -> None:
    """LSTM with integer weights. The last axis of the weights is the axis of the output channels. The quantisation of
    activations costs nothing, and a remark says so.
    """
    lower_recurrent(op)
    op.approximated("DynamicQuantizeLSTM: the quantisation of activations has no cost")


def _run(
    op: Lowering, sizes: RecurrentSizes, kind: _Kind, direction: int, length: int, *, is_reverse: bool
) -> Iterator[_Ran]:
    """Lowered blocks of one direction, in the order in which they run."""
    prefix = f"{direction}." if sizes.directions > 1 else ""
    products = input_products(op, sizes, direction, prefix)
    inputs = (_INITIAL_STATE, _INITIAL_CELL)[: kind.states]
    states = tuple(
        initial_state(op, sizes, index, direction, f"{prefix}zeros{number}") for number, index in enumerate(inputs)
    )
    starts = list(range(0, sizes.steps, length))
    for first in reversed(starts) if is_reverse else starts:
        own = min(length, sizes.steps - first)
        block = RecurrentSteps(op, sizes, direction, first, own, products, f"{prefix}{first}.")
        if own > 1:
            states = tuple(block.inner_state(f"state{number}", states) for number in range(kind.states))
        after = kind.step(block, states)
        yield _Ran(block, after)
        states = tuple(block.last(state, is_reverse=is_reverse) for state in after)


def _lstm_step(block: RecurrentSteps, states: States) -> States:
    """States (h', c') after a step of an LSTM. The gates are in the order i, o, f, g: c' = f * c + i * g, h' = o *
    tanh(c').
    """
    hidden, (state, cell) = block.sizes.hidden, states
    product = block.state_product("recurrent", state, 0, 4)
    has_peepholes = block.op.has_input(_PEEPHOLES)
    if has_peepholes:
        first, third = (_peephole_gate(block, product, cell, gate) for gate in (0, 2))
        new = block.arithmetic("gate3", "Tanh", [block.input_product(3), product.channels(3 * hidden)])
    else:
        gates = block.arithmetic("gates", "Sigmoid", [block.input_product(0), product], 4)
        first, output, third, new = (gates.channels(gate * hidden) for gate in range(4))
    kept = block.arithmetic("forget", "Mul", [third, cell])
    added = block.arithmetic("add", "Mul", [first, new])
    cell = block.arithmetic("cell", "Add", [kept, added])
    if has_peepholes:
        output = _peephole_gate(block, product, cell, 1)
    return block.arithmetic("hidden", "Mul", [cell, output]), cell


def _peephole_gate(block: RecurrentSteps, product: Value, cell: Value, gate: int) -> Value:
    start = gate * block.sizes.hidden
    weights = access(block.op.input(_PEEPHOLES), fixed(block.direction), affine(("K", 1), offset=start))
    seen = block.arithmetic(f"peephole{gate}", "Mul", [cell, weights])
    total = block.arithmetic(f"sum{gate}", "Add", [product.channels(start), seen])
    return block.arithmetic(f"gate{gate}", "Sigmoid", [block.input_product(gate), total])


def _gru_step(block: RecurrentSteps, states: States) -> States:
    """State h' after a step: h' = (1 - z) * n + z * h, where h is the state before the step. The gates in the weights
    have the order z, r, n. The candidate n is computed from r * h, or from r * (R h) if the attribute
    linear_before_reset is set.
    """
    hidden, (state,) = block.sizes.hidden, states
    if block.op.node.integer("linear_before_reset", 0):
        product = block.state_product("recurrent", state, 0, 3)
        gates = block.arithmetic("gates", "Sigmoid", [block.input_product(0), product], 2)
        reset = block.arithmetic("reset", "Mul", [gates.channels(hidden), product.channels(2 * hidden)])
    else:
        product = block.state_product("recurrent", state, 0, 2)
        gates = block.arithmetic("gates", "Sigmoid", [block.input_product(0), product], 2)
        reset = block.state_product(
            "candidate_product", block.arithmetic("reset", "Mul", [gates.channels(hidden), state]), 2, 1
        )
    candidate = block.arithmetic("candidate", "Tanh", [block.input_product(2), reset])
    added = block.arithmetic("add", "Mul", [candidate, gates])
    kept = block.arithmetic("keep", "Mul", [state, gates])
    return (block.arithmetic("hidden", "Add", [kept, added]),)


def _rnn_step(block: RecurrentSteps, states: States) -> States:
    """State after a step: h' = activation(W x + R h)."""
    product = block.state_product("recurrent", states[0], 0, 1)
    return (block.arithmetic("hidden", "Tanh", [block.input_product(0), product]),)


_LSTM = _Kind(4, 2, lambda op: 15 if op.has_input(_PEEPHOLES) else 6, _lstm_step)
_KINDS = {
    "LSTM": _LSTM,
    "DynamicQuantizeLSTM": _LSTM,
    "GRU": _Kind(3, 1, lambda _: 8, _gru_step),
    "RNN": _Kind(1, 1, lambda _: 2, _rnn_step),
}


def _block_length(sizes: RecurrentSizes, nodes: int) -> int:
    """Number of steps of a block. The number is above 1 only if blocks of one step would give too many nodes."""
    if sizes.directions * sizes.steps * nodes <= _MOST_NODES:
        return 1
    blocks = max(1, _MOST_NODES // (sizes.directions * (nodes + 2)))
    return -(-sizes.steps // blocks)


def _directions(op: Lowering) -> tuple[bool, ...]:
    """Directions of a recurrent operator, as one truth value per direction: True if the direction runs backwards in
    time. Raises InputError if the attribute `direction` has an unknown value.
    """
    text = op.node.text("direction", "forward")
    known = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
    if text.lower() not in known:
        raise op.node.error("wrong attribute 'direction'", repr(text), ", ".join(known))
    return known[text.lower()]


def _sizes(op: Lowering, kind: _Kind) -> RecurrentSizes:
    data, weights, recurrence = (op.input_shape(index) for index in range(3))
    batch_first = op.node.integer("layout", 0) != 0
    directions = len(_directions(op))
    if len(data) != 3 or len(weights) != 3 or len(recurrence) != 3:
        raise op.node.error("wrong ranks of X, W and R", f"{len(data)}, {len(weights)}, {len(recurrence)}", "3, 3, 3")
    batch, steps = data[:2] if batch_first else (data[1], data[0])
    channels_last = op.node.proto.op_type == "DynamicQuantizeLSTM"
    if channels_last:
        weights, recurrence = ((shape[0], shape[2], shape[1]) for shape in (weights, recurrence))
    hidden = recurrence[2]
    expected = (directions, kind.gates * hidden, data[2]), (directions, kind.gates * hidden, hidden)
    if (weights, recurrence) != expected:
        raise op.node.error(
            "wrong shapes of W and R",
            f"{list(weights)}, {list(recurrence)}",
            ", ".join(str(list(each)) for each in expected),
        )
    state = (batch, directions, hidden) if batch_first else (directions, batch, hidden)
    optional = {3: (directions, 2 * kind.gates * hidden), _SEQUENCE_LENGTHS: (batch,), _INITIAL_STATE: state}
    if kind.states > 1:
        optional |= {_INITIAL_CELL: state, _PEEPHOLES: (directions, 3 * hidden)}
    for index, shape in optional.items():
        if op.has_input(index) and op.input_shape(index) != shape:
            raise op.node.error(f"wrong shape of input {index}", str(list(op.input_shape(index))), str(list(shape)))
    return RecurrentSizes(steps, batch, data[2], hidden, directions, kind.gates, batch_first, channels_last)


def _outputs(op: Lowering, sizes: RecurrentSizes, ran: list[_Ran]) -> None:
    """Add nodes that copy states to the outputs of the operator: hidden states of all steps to Y, the last hidden state
    to Y_h, and the last cell state to Y_c. Outputs that are not used get no node.
    """
    has_lengths = _has_lengths(op, sizes)
    if has_lengths:
        op.approximated(
            "the work ignores sequence lengths, and the last state of a sequence can be the state of any step"
        )
    loops = (("B", sizes.batch), ("K", sizes.hidden))
    if op.has_output(0):
        maps = []
        for each in ran:
            block = each.block
            leading = (
                ("B", block.time, fixed(block.direction))
                if sizes.batch_first
                else (block.time, fixed(block.direction), "B")
            )
            read = each.states[0].at("K")
            maps.append(IndexMap((*block.times, *loops), access(op.output(), *leading, "K"), read, is_exact=True))
        _move(op, op.output(), maps, "Y", with_lengths=has_lengths)
    for number in (1, 2):
        if op.has_output(number):
            maps = list(_last_states(op, sizes, ran, number, any_step=has_lengths))
            _move(op, op.output(number), maps, ("", "Y_h", "Y_c")[number], with_lengths=has_lengths)


def _last_states(
    op: Lowering, sizes: RecurrentSizes, ran: list[_Ran], number: int, *, any_step: bool
) -> Iterator[IndexMap]:
    reverse = _directions(op)
    last = {each.block.direction: each for each in ran}
    for each in ran:
        block = each.block
        if not any_step and each is not last[block.direction]:
            continue
        place = fixed(block.direction)
        leading = ("B", place) if sizes.batch_first else (place, "B")
        state = each.states[number - 1]
        read = state if any_step else block.last(state, is_reverse=reverse[block.direction])
        loops = (*(block.times if any_step else ()), ("B", sizes.batch), ("K", sizes.hidden))
        output: TensorAccess = access(op.output(number), *leading, "K")
        yield IndexMap(loops, output, read.at("K"), is_exact=not any_step)


def _move(op: Lowering, output: str, maps: list[IndexMap], part: str, *, with_lengths: bool) -> None:
    if with_lengths:
        lengths = op.input(_SEQUENCE_LENGTHS)
        maps.append(whole_map(output, op.shape(output), lengths, op.shape(lengths)))
    op.move(*maps, part=part, operator_type="Concat")


def _has_lengths(op: Lowering, sizes: RecurrentSizes) -> bool:
    """True if the input `sequence_lens` can give a sequence fewer steps than the time axis of the tensor."""
    if not op.has_input(_SEQUENCE_LENGTHS):
        return False
    values = op.values(_SEQUENCE_LENGTHS)
    return values is None or bool((values != sizes.steps).any())
