"""Blocks of steps of a recurrent operator: their values, products and arithmetic of gates.

A block is one step, or several in a row; the tensors of several have an axis of steps in front.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.workload.access import AxisIndex, IndexMap, TensorAccess, affine, fixed
from tilewright.workload.onnx.lowering import MAC_ARRAY, LoweredNode, Lowering, access
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
    """Attribute `layout`: X is [batch, steps, features], a state is [batch, directions, hidden]."""
    channels_last: bool = False
    """W and R are [directions, features or hidden, gates * hidden], not with the last two axes exchanged."""

    def weights(self, tensor: str, direction: int, channel: AxisIndex) -> TensorAccess:
        """The element of W or R at an output channel and loop C."""
        axes: tuple[Axis, Axis] = ("C", channel) if self.channels_last else (channel, "C")
        return access(tensor, fixed(direction), *axes)


@dataclass(frozen=True)
class Value:
    """A tensor that has the batch as one axis and channels as the last, from channel `start` on."""

    tensor: str
    before: tuple[Axis, ...] = ()
    """Indices of the axes before the batch."""
    after: tuple[Axis, ...] = ()
    """Indices of the axes between the batch and the channels."""
    start: int = 0

    def at(self, channel: str) -> TensorAccess:
        """The element of loop B and of a loop over channels."""
        return access(self.tensor, *self.before, "B", *self.after, affine((channel, 1), offset=self.start))

    def channels(self, start: int) -> "Value":
        """The same tensor from channel `start` on."""
        return Value(self.tensor, self.before, self.after, self.start + start)


@dataclass(frozen=True)
class Block:
    """Some steps of one direction while they are lowered."""

    op: Lowering
    sizes: RecurrentSizes
    direction: int
    first: int
    """Time of the block's earliest step in the tensor's order."""
    length: int
    products: str
    """Tensor [steps, batch, gates * hidden]: the products of the inputs, biases included."""
    prefix: str

    @property
    def times(self) -> Loops:
        """The loop over steps, where there are several."""
        return (("D", self.length),) if self.length > 1 else ()

    @property
    def time(self) -> AxisIndex:
        """The time of a step."""
        return affine(("D", 1), offset=self.first) if self.length > 1 else fixed(self.first)

    def input_product(self, gate: int) -> Value:
        """The product of the inputs for one gate and for those after it."""
        return Value(self.products, (self.time,), (), gate * self.sizes.hidden)

    def last(self, value: Value, *, is_reverse: bool) -> Value:
        """The value after the step that runs last."""
        if self.length == 1:
            return value
        return Value(value.tensor, (fixed(0 if is_reverse else self.length - 1),), (), value.start)

    def state_product(self, part: str, state: Value, gate: int, gates: int) -> Value:
        """The product of a state and the recurrence weights of `gates` gates from `gate` on."""
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
        """Element by element from two values over `gates` gates: one operation for each element."""
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
        """The state before each step of the block, as depending on all inputs of the block and the states before it."""
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
    """The products of all inputs and the input weights, [steps, batch, gates * hidden]; biases cost nothing."""
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
    """Whether an initial state is left out: what only multiplies it has no effect on the first step."""
    states = (5, 6) if op.node.proto.op_type.endswith("LSTM") else (5,)
    return not all(op.has_input(index) for index in states)


def initial_state(op: Lowering, sizes: RecurrentSizes, index: int, direction: int, part: str) -> Value:
    """The initial state at input `index`; zeros that depend on nothing where it is not given."""
    if op.has_input(index):
        if sizes.batch_first:
            return Value(op.input(index), (), (fixed(direction),))
        return Value(op.input(index), (fixed(direction),))
    name = op.temporary(part, (sizes.batch, sizes.hidden), op.input())
    op.lowered.append(LoweredNode(f"{op.node.name}/{part}", "ConstantOfShape", None, "", (), (name,), ()))
    return Value(name)
