"""Layers of vector units: one or two inputs, windows, reductions, loops of size 1."""

from hypothesis import strategies as st
from tilewright.workload.layer import DimensionRelation, Layer

Bits = tuple[tuple[str, int], ...]
IMAGE = ("B", "K", "OY", "OX")


def one_input_layer(
    operator_type: str,
    output: tuple[str, ...],
    loops: dict[str, int],
    bits: int = 8,
    sums_bits: int | None = None,
    inputs: tuple[str, ...] = (),
) -> Layer:
    """Return O[output] += I[inputs]; `inputs` is all loops by default."""
    return Layer(
        operator_type.lower(),
        operator_type,
        (("O", output), ("I", inputs or tuple(loops))),
        tuple(loops.items()),
        (),
        (("I", bits), ("O_final", bits), ("O", bits if sums_bits is None else sums_bits)),
    )


def relu(bits: int = 8, **sizes: int) -> Layer:
    """Return O[b][k][oy][ox] += I[b][k][oy][ox]."""
    return one_input_layer("Relu", IMAGE, {d: sizes.get(d, 1) for d in IMAGE}, bits)


def reduce_sum(bits: int = 8, sums_bits: int = 16, output: tuple[str, ...] = ("B", "K"), **sizes: int) -> Layer:
    """Return O[output] += I[b][k][oy][ox]; an empty output sums over all dimensions."""
    return one_input_layer("ReduceSum", output, {d: sizes.get(d, 1) for d in IMAGE}, bits, sums_bits)


def max_pool(
    bits: int = 8, sums_bits: int = 8, stride: int = 2, dilation: int = 1, padding: int = 0, **sizes: int
) -> Layer:
    """Return O[b][k][oy][ox] += I[b][k][iy][ix], with loops for the window even if it has one position."""
    loops = {d: sizes.get(d, 1) for d in (*IMAGE, "FY", "FX")}
    relations, own, paddings, extents = [], ["B", "K"], [], []
    for outer, inner, data in (("OY", "FY", "IY"), ("OX", "FX", "IX")):
        if loops[outer] == 1 or loops[inner] == 1:
            own += [outer, inner]
            continue
        relations.append(DimensionRelation(data, ((outer, stride), (inner, dilation))))
        extent = stride * (loops[outer] - 1) + dilation * (loops[inner] - 1) + 1
        paddings.append((data, (padding, padding)))
        extents.append((data, max(1, extent - 2 * padding)))
        own.append(data)
    return Layer(
        "maxpool",
        "MaxPool",
        (("O", IMAGE), ("I", tuple(own))),
        tuple(loops.items()),
        tuple(relations),
        (("I", bits), ("O_final", bits), ("O", sums_bits)),
        tuple(paddings),
        tuple(extents),
    )


def binary(
    operator_type: str = "Add",
    second: tuple[str, ...] = IMAGE,
    bits: int = 8,
    second_bits: int = 8,
    is_constant: bool = False,
    **sizes: int,
) -> Layer:
    """Return O[b][k][oy][ox] += I[b][k][oy][ox] * W[second]; a broadcast W lacks some dimensions."""
    return Layer(
        operator_type.lower(),
        operator_type,
        (("O", IMAGE), ("I", IMAGE), ("W", second)),
        tuple((d, sizes.get(d, 1)) for d in IMAGE),
        (),
        (("I", bits), ("W", second_bits), ("O_final", bits), ("O", bits)),
        constant_operands=("W",) if is_constant else (),
    )


@st.composite
def vector_layers(draw: st.DrawFn) -> Layer:
    """Generate small vector layers of all kinds, some with many dimensions."""
    bits = draw(st.sampled_from([1, 4, 8, 16]))
    sums = draw(st.sampled_from([bits, 2 * bits, 24]))
    sizes = {d: draw(st.sampled_from([1, 2, 3, 4, 5, 6, 7, 8, 9, 12])) for d in IMAGE}
    sizes["B"] = draw(st.integers(1, 3))
    kind = draw(st.sampled_from(["relu", "max_pool", "reduce_sum", "binary", "many"]))
    if kind == "relu":
        return relu(bits, **sizes)
    if kind == "max_pool":
        windows = {d: draw(st.integers(1, 3)) for d in ("FY", "FX")}
        stride, dilation = draw(st.integers(1, 3)), draw(st.integers(1, 2))
        return max_pool(bits, sums, stride, dilation, draw(st.integers(0, 1)), **sizes, **windows)
    if kind == "reduce_sum":
        return reduce_sum(bits, sums, draw(st.sampled_from([("B", "K"), ("B",), (), ("B", "K", "OY")])), **sizes)
    if kind == "binary":
        second = draw(st.sampled_from([IMAGE, ("K",), ("OY", "OX"), ()]))
        return binary("Mul", second, bits, draw(st.sampled_from([1, 8])), **sizes)
    loops = {f"D{axis}": draw(st.integers(1, 3)) for axis in range(draw(st.integers(5, 9)))}
    return one_input_layer("Exp", tuple(loops), loops, bits)
