"""Conversion of loop nests to layers, the form that the cost model takes.

In the cost model, a loop dimension is relevant or irrelevant to an operand, and a sliding window has two loops. Loops
that index one axis without overlap (such as `g * channels + c`) become separate dimensions of the layer. Two loops that
overlap on an axis become a sliding window.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tilewright.workload.access import AxisIndex, TensorAccess, index_range
from tilewright.workload.layer import OUTPUT, DimensionRelation, Layer


@dataclass(frozen=True)
class NestOperand:
    """Operand of a loop nest: access, shape of the tensor, bits per element, and whether the tensor is constant."""

    access: TensorAccess
    shape: tuple[int, ...]
    bits: int
    is_constant: bool = False


def nest_layer(
    name: str,
    operator_type: str,
    loop_sizes: tuple[tuple[str, int], ...],
    operands: Mapping[str, NestOperand],
    partial_sum_bits: int,
) -> Layer:
    """Layer of a loop nest. `operands` are in equation order, with the output `O` first.

    Raises ValueError if three loops overlap on an axis, or if the output has a sliding window. Such a nest must be
    written in another form.
    """
    sizes = dict(loop_sizes)
    dimensions = []
    relations: list[DimensionRelation] = []
    paddings: list[tuple[str, tuple[int, int]]] = []
    window_sizes: list[tuple[str, int]] = []
    for operand, given in operands.items():
        own: list[str] = []
        for axis, size in zip(given.access.axes, given.shape, strict=True):
            terms = overlapping_terms(axis, sizes)
            if not terms:
                own += [loop for loop, _ in axis.terms if loop not in own]
                continue
            if len(terms) > 2 or operand == OUTPUT:
                raise ValueError(f"{name}: operand {operand} of a layer cannot have the window {terms}")
            data = _window_name(operand, terms, sizes, relations)
            relations.append(DimensionRelation(data, (terms[0], terms[1])))
            low, high = index_range(axis, sizes)
            paddings.append((data, (-low, high + 1 - size)))
            window_sizes.append((data, size))
            own.append(data)
        dimensions.append((operand, tuple(own)))
    bits = {operand: given.bits for operand, given in operands.items()}
    final = bits.pop(OUTPUT)
    return Layer(
        name=name,
        operator_type=operator_type,
        operand_dimensions=tuple(dimensions),
        loop_sizes=loop_sizes,
        relations=tuple(relations),
        precision_bits=(*bits.items(), ("O_final", final), (OUTPUT, partial_sum_bits)),
        padding=tuple(paddings),
        data_dimension_sizes=tuple(window_sizes),
        constant_operands=tuple(operand for operand, given in operands.items() if given.is_constant),
    )


def overlapping_terms(axis: AxisIndex, sizes: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """Terms (loop, coefficient) of the sliding window of an axis, with the largest coefficient first. Loops of size 1
    are left out. Signs of coefficients are dropped, because they do not change which elements are accessed.

    The result is () if no loops overlap: every combination of loop values then gives a different index. This is the
    case if each coefficient is larger than the largest sum of all later terms, as in 8 * a + b with b below 8.
    """
    moving = [(loop, abs(c)) for loop, c in axis.terms if sizes[loop] > 1 and c]
    widest_first = sorted(moving, key=lambda term: -term[1])
    reach = 0
    for moved, coefficient in reversed(widest_first):
        if coefficient <= reach:
            return tuple(widest_first)
        reach += coefficient * (sizes[moved] - 1)
    return ()


def accumulates(loop_sizes: tuple[tuple[str, int], ...], output: TensorAccess) -> bool:
    """True if an output element is the sum over several combinations of loop values."""
    written = {loop for axis in output.axes for loop, _ in axis.terms}
    return any(size > 1 and loop not in written for loop, size in loop_sizes)


def _window_name(
    operand: str, terms: tuple[tuple[str, int], ...], sizes: Mapping[str, int], relations: list[DimensionRelation]
) -> str:
    """Name of a sliding window, such as IY for a window over OY. If another dimension has this name, a number is
    appended."""
    outer = terms[0][0]
    base = name = operand + (outer[1:] if outer.startswith("O") else outer)
    taken = {relation.data_dimension for relation in relations} | set(sizes)
    number = 2
    while name in taken:
        name, number = f"{base}{number}", number + 1
    return name


_STANDARD_NAMES: Mapping[int, tuple[str, ...]] = {
    1: ("K",),
    2: ("B", "K"),
    3: ("B", "D", "K"),
    4: ("B", "K", "OY", "OX"),
    5: ("B", "K", "OZ", "OY", "OX"),
}


def dimension_names(rank: int) -> tuple[str, ...]:
    """Names of the loop dimensions of an elementwise nest with `rank` axes, in order. Ranks 1 to 5 have standard names,
    such as B, K, OY, OX for rank 4. For any other rank, the names are D0, D1, ...
    """
    return _STANDARD_NAMES.get(rank) or tuple(f"D{axis}" for axis in range(rank))
