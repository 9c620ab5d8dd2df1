"""A selective state space (Mamba): projections, a short causal convolution, and the recurrence of its state.

The recurrence h = decay * h + input, y = C * h is computed token by token: each of its steps reads the state and writes
it, and stands as often as a request has tokens. What does not depend on the state is computed for all tokens at once.
"""

from tilewright.operator_groups import MAC_ARRAY
from tilewright.workload.access import AxisIndex, IndexMap, affine
from tilewright.workload.language_models.architecture import StateSpace
from tilewright.workload.language_models.attention import join_rows
from tilewright.workload.language_models.builder import Builder, at
from tilewright.workload.language_models.request import Requests


def state_space(
    builder: Builder, source: str, mixer: StateSpace, groups: tuple[Requests, ...], *, is_written_out: bool
) -> str:
    """The output of the mixer, [rows, hidden], from the normalised hidden states."""
    rows, hidden = builder.shape(source)
    both = builder.linear("in_proj", source, 2 * mixer.width, has_bias=mixer.has_bias)
    parts, first = [], 0
    for place, group in enumerate(groups):
        with builder.scope(f"requests{place}" if len(groups) > 1 else ""):
            parts.append(_convolution(builder, both, first, group, mixer))
        first += group.rows
    inner = builder.elementwise(
        "conv1d_activation", "Silu", join_rows(builder, parts, (rows, mixer.width), "convolved")
    )
    chosen = builder.linear("x_proj", inner, mixer.rank + 2 * mixer.state)
    steps = builder.product("dt_proj", chosen, (rows, mixer.rank, mixer.width), has_bias=True)
    steps = builder.elementwise("step", "Softplus", steps)
    decays, updates = _discrete(builder, inner, chosen, steps, mixer)
    outputs, first = [], 0
    for place, group in enumerate(groups):
        with builder.scope(f"requests{place}" if len(groups) > 1 else ""):
            outputs.append(_recurrence(builder, (decays, updates, chosen), first, group, mixer, is_written_out))
        first += group.rows
    found = join_rows(builder, outputs, (rows, mixer.width), "scanned")
    found = _with_skip(builder, found, inner, mixer)
    gate = builder.tensor("gate.out", (rows, mixer.width))
    loops = (("D", rows), ("K", mixer.width))
    read = at(both, "D", affine(("K", 1), offset=mixer.width))
    builder.nest("gate", "Silu", loops, at(gate, "D", "K"), {"I": read})
    return builder.linear("out_proj", builder.elementwise("gated", "Mul", found, gate), hidden, has_bias=mixer.has_bias)


def _convolution(builder: Builder, both: str, first: int, group: Requests, mixer: StateSpace) -> str:
    """Each channel by itself, along the tokens of a request; the last tokens before them are kept: [rows, width]."""
    before, tokens, bits = mixer.kernel - 1, group.tokens, builder.precision.cache
    padded = builder.tensor("conv_window", (group.count, before + tokens, mixer.width))
    loops = (("B", group.count), ("D", tokens), ("K", mixer.width))
    row = AxisIndex((("B", tokens), ("D", 1)), first)
    maps = [IndexMap(loops, at(padded, "B", affine(("D", 1), offset=before), "K"), at(both, row, "K"))]
    if before:
        state = builder.network_input("conv_state.before", (group.count, before, mixer.width), bits)
        old = (("B", group.count), ("D", before), ("K", mixer.width))
        maps.append(IndexMap(old, at(padded, "B", "D", "K"), at(state, "B", "D", "K")))
    builder.move("conv_window", "Concat", *maps)
    if before:
        after = builder.tensor("conv_state", (group.count, before, mixer.width), bits)
        old = (("B", group.count), ("D", before), ("K", mixer.width))
        read = at(padded, "B", affine(("D", 1), offset=tokens), "K")
        builder.move("conv_state", "Slice", IndexMap(old, at(after, "B", "D", "K"), read))
        builder.outputs.append(after)
    weight = builder.weight("conv1d.weight", mixer.width, mixer.kernel)
    others = [at(builder.weight("conv1d.bias", mixer.width), "G")] if mixer.has_kernel_bias else []
    target = builder.tensor("conv1d.out", (group.rows, mixer.width))
    # A group for each channel, as in convolutions of one channel a group.
    return builder.nest(
        "conv1d",
        "Conv",
        (("B", group.count), ("G", mixer.width), ("OX", tokens), ("FX", mixer.kernel)),
        at(target, AxisIndex((("B", tokens), ("OX", 1))), "G"),
        {"I": at(padded, "B", affine(("OX", 1), ("FX", 1)), "G"), "W": at(weight, "G", "FX")},
        others=others,
        unit=MAC_ARRAY,
    )


def _discrete(builder: Builder, inner: str, chosen: str, steps: str, mixer: StateSpace) -> tuple[str, str]:
    """(decay of each number of the state, what is added to it) for each token: [rows, width, state]."""
    rows = builder.shape(inner)[0]
    shape = (rows, mixer.width, mixer.state)
    loops = (("D", rows), ("K", mixer.width), ("C", mixer.state))
    rates = builder.weight("A_log", mixer.width, mixer.state)
    scaled = builder.tensor("decay_rate.out", shape)
    inputs = {"I": at(steps, "D", "K"), "W": at(rates, "K", "C")}
    builder.nest("decay_rate", "Mul", loops, at(scaled, "D", "K", "C"), inputs)
    decays = builder.tensor("decay.out", shape)
    builder.nest("decay", "Exp", loops, at(decays, "D", "K", "C"), {"I": at(scaled, "D", "K", "C")})
    weighted = builder.elementwise("step_input", "Mul", inner, steps)
    updates = builder.tensor("update.out", shape)
    column = affine(("C", 1), offset=mixer.rank)
    inputs = {"I": at(weighted, "D", "K"), "W": at(chosen, "D", column)}
    builder.nest("update", "Mul", loops, at(updates, "D", "K", "C"), inputs)
    return decays, updates


def _recurrence(
    builder: Builder,
    sources: tuple[str, str, str],
    first: int,
    group: Requests,
    mixer: StateSpace,
    is_written_out: bool,
) -> str:
    """The outputs of the recurrence, [rows of the group, width]; the state is read before and kept after it."""
    shape = (group.count, mixer.width, mixer.state)
    state = builder.network_input("state.before", shape, builder.precision.cache)
    outputs = builder.tensor("scan", (group.rows, mixer.width))
    maps = []
    for token in range(group.tokens if is_written_out else 1):
        name = f"scan.{token}" if is_written_out else "scan"
        with builder.scope(name, 1 if is_written_out else group.tokens):
            state, found = _step(builder, sources, state, (first + token, group.tokens), shape, mixer)
        loops = (("B", group.count), ("K", mixer.width))
        row = AxisIndex((("B", group.tokens),), token)
        if is_written_out:
            maps.append(IndexMap(loops, at(outputs, row, "K"), at(found, "B", "K")))
        else:
            maps.append(builder.any_of(outputs, found))
    builder.outputs.append(state)
    return builder.move("scan", "Concat", *maps)


def _step(
    builder: Builder,
    sources: tuple[str, str, str],
    state: str,
    row: tuple[int, int],
    shape: tuple[int, int, int],
    mixer: StateSpace,
) -> tuple[str, str]:
    """(new state, output [requests, width]) of one token of each request; `row` is (the first, pitch of requests)."""
    decays, updates, chosen = sources
    index = AxisIndex((("B", row[1]),), row[0])
    loops = (("B", shape[0]), ("K", shape[1]), ("C", shape[2]))
    decayed = builder.tensor("decayed.out", shape)
    inputs = {"I": at(decays, index, "K", "C"), "W": at(state, "B", "K", "C")}
    builder.nest("decayed", "Mul", loops, at(decayed, "B", "K", "C"), inputs)
    after = builder.tensor("state", shape, builder.precision.cache)
    inputs = {"I": at(decayed, "B", "K", "C"), "W": at(updates, index, "K", "C")}
    builder.nest("state", "Add", loops, at(after, "B", "K", "C"), inputs)
    found = builder.tensor("output.out", shape[:2])
    column = affine(("C", 1), offset=mixer.rank + mixer.state)
    inputs = {"I": at(after, "B", "K", "C"), "W": at(chosen, index, column)}
    inner = (("C", shape[2]), ("K", shape[1]), ("B", shape[0]))
    builder.nest("output", "MatMul", inner, at(found, "B", "K"), inputs, unit=MAC_ARRAY)
    return after, found


def _with_skip(builder: Builder, found: str, inner: str, mixer: StateSpace) -> str:
    """y + D * x."""
    rows = builder.shape(inner)[0]
    loops = (("D", rows), ("K", mixer.width))
    skip = builder.tensor("skip.out", (rows, mixer.width))
    inputs = {"I": at(inner, "D", "K"), "W": at(builder.weight("D", mixer.width), "K")}
    builder.nest("skip", "Mul", loops, at(skip, "D", "K"), inputs)
    return builder.elementwise("with_skip", "Add", found, skip)
