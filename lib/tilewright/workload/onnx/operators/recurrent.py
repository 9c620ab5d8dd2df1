"""LSTM, GRU and RNN: products of all inputs at once, then step by step products of the state and arithmetic of gates.

A step depends on the steps before it. Where an operator has so many steps that its parts would be too many, some steps
in a row are one block: the state inside a block then counts as depending on all inputs of the block.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tilewright.workload.access import IndexMap, TensorAccess, affine, fixed
from tilewright.workload.onnx.lowering import Lowering, access, lowers, whole_map
from tilewright.workload.onnx.operators.recurrent_block import (
    Block,
    RecurrentSizes,
    Value,
    initial_state,
    input_products,
)

_MOST_NODES = 480
"""Nodes that one operator becomes, about."""
_SEQUENCE_LENGTHS, _INITIAL_STATE, _INITIAL_CELL, _PEEPHOLES = 4, 5, 6, 7
"""Inputs beside X, W, R and B."""

States = tuple[Value, ...]
"""The hidden state; for LSTM the cell too."""


@dataclass(frozen=True)
class _Kind:
    gates: int
    states: int
    nodes: Callable[[Lowering], int]
    """Nodes of one step."""
    step: Callable[[Block, States], States]


@dataclass(frozen=True)
class _Ran:
    """A block that has been lowered, with the states after each of its steps."""

    block: Block
    states: States


@lowers("LSTM", "GRU", "RNN")
def lower_recurrent(op: Lowering) -> None:
    """Products of the inputs of all steps, then a chain of steps for each direction.

    Multiply-accumulates: steps x batch x directions x gates x hidden x (features + hidden). Sequence lengths do not
    shorten the work. Raises InputError for shapes that do not fit.
    """
    kind = _KINDS[op.node.proto.op_type]
    sizes = _sizes(op, kind)
    length = _block_length(sizes, kind.nodes(op))
    if length > 1:
        op.approximated(f"dependencies over time are followed for {length} steps at once, not step by step")
    ran: list[_Ran] = []
    for direction, is_reverse in enumerate(_directions(op)):
        ran += _run(op, sizes, kind, direction, length, is_reverse=is_reverse)
    _outputs(op, sizes, ran)


@lowers("DynamicQuantizeLSTM", domain="com.microsoft")
def lower_quantised_lstm(op: Lowering) -> None:
    """An LSTM with integer weights, channels last. What it does to quantise its activations is left out, and told."""
    lower_recurrent(op)
    op.approximated("DynamicQuantizeLSTM without the cost of quantising activations")


def _run(
    op: Lowering, sizes: RecurrentSizes, kind: _Kind, direction: int, length: int, *, is_reverse: bool
) -> Iterator[_Ran]:
    """The blocks of one direction in the order in which they run."""
    prefix = f"{direction}." if sizes.directions > 1 else ""
    products = input_products(op, sizes, direction, prefix)
    inputs = (_INITIAL_STATE, _INITIAL_CELL)[: kind.states]
    states = tuple(
        initial_state(op, sizes, index, direction, f"{prefix}zeros{number}") for number, index in enumerate(inputs)
    )
    starts = list(range(0, sizes.steps, length))
    for first in reversed(starts) if is_reverse else starts:
        own = min(length, sizes.steps - first)
        block = Block(op, sizes, direction, first, own, products, f"{prefix}{first}.")
        if own > 1:
            states = tuple(block.inner_state(f"state{number}", states) for number in range(kind.states))
        after = kind.step(block, states)
        yield _Ran(block, after)
        states = tuple(block.last(state, is_reverse=is_reverse) for state in after)


def _lstm_step(block: Block, states: States) -> States:
    """Gates in the order i, o, f, c: c' = f * c + i * g, h' = o * tanh(c')."""
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


def _peephole_gate(block: Block, product: Value, cell: Value, gate: int) -> Value:
    start = gate * block.sizes.hidden
    weights = access(block.op.input(_PEEPHOLES), fixed(block.direction), affine(("K", 1), offset=start))
    seen = block.arithmetic(f"peephole{gate}", "Mul", [cell, weights])
    total = block.arithmetic(f"sum{gate}", "Add", [product.channels(start), seen])
    return block.arithmetic(f"gate{gate}", "Sigmoid", [block.input_product(gate), total])


def _gru_step(block: Block, states: States) -> States:
    """Gates in the order z, r, h: h' = (1 - z) * n + z * h, n from r * h, or from r * (R h) if linear_before_reset."""
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


def _rnn_step(block: Block, states: States) -> States:
    """h' = activation(W x + R h)."""
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
    """Steps of a block: 1 unless that makes too many nodes."""
    if sizes.directions * sizes.steps * nodes <= _MOST_NODES:
        return 1
    blocks = max(1, _MOST_NODES // (sizes.directions * (nodes + 2)))
    return -(-sizes.steps // blocks)


def _directions(op: Lowering) -> tuple[bool, ...]:
    """Whether each direction runs backwards. Raises InputError."""
    text = op.node.text("direction", "forward")
    known = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
    if text.lower() not in known:
        raise op.node.error("attribute 'direction'", repr(text), ", ".join(known))
    return known[text.lower()]


def _sizes(op: Lowering, kind: _Kind) -> RecurrentSizes:
    data, weights, recurrence = (op.input_shape(index) for index in range(3))
    batch_first = op.node.integer("layout", 0) != 0
    directions = len(_directions(op))
    if len(data) != 3 or len(weights) != 3 or len(recurrence) != 3:
        raise op.node.error("ranks of X, W and R", f"{len(data)}, {len(weights)}, {len(recurrence)}", "3, 3, 3")
    batch, steps = data[:2] if batch_first else (data[1], data[0])
    channels_last = op.node.proto.op_type == "DynamicQuantizeLSTM"
    if channels_last:
        weights, recurrence = ((shape[0], shape[2], shape[1]) for shape in (weights, recurrence))
    hidden = recurrence[2]
    expected = (directions, kind.gates * hidden, data[2]), (directions, kind.gates * hidden, hidden)
    if (weights, recurrence) != expected:
        raise op.node.error(
            "shapes of W and R", f"{list(weights)}, {list(recurrence)}", ", ".join(str(list(each)) for each in expected)
        )
    state = (batch, directions, hidden) if batch_first else (directions, batch, hidden)
    optional = {3: (directions, 2 * kind.gates * hidden), _SEQUENCE_LENGTHS: (batch,), _INITIAL_STATE: state}
    if kind.states > 1:
        optional |= {_INITIAL_CELL: state, _PEEPHOLES: (directions, 3 * hidden)}
    for index, shape in optional.items():
        if op.has_input(index) and op.input_shape(index) != shape:
            raise op.node.error(f"shape of input {index}", str(list(op.input_shape(index))), str(list(shape)))
    return RecurrentSizes(steps, batch, data[2], hidden, directions, kind.gates, batch_first, channels_last)


def _outputs(op: Lowering, sizes: RecurrentSizes, ran: list[_Ran]) -> None:
    """Moves of the states to the outputs Y (all steps), Y_h and Y_c (the last step), as far as they are asked for."""
    has_lengths = _has_lengths(op, sizes)
    if has_lengths:
        op.approximated("sequence lengths do not shorten the work, and every last state may be that of any step")
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
    """Whether some sequence of the batch may be shorter than the tensor."""
    if not op.has_input(_SEQUENCE_LENGTHS):
        return False
    values = op.values(_SEQUENCE_LENGTHS)
    return values is None or bool((values != sizes.steps).any())
