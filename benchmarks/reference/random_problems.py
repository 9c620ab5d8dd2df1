"""Random layers, spatial mappings and loop orders for the committed conformance set. The caller gives the seeded
generator.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

LINKS = (
    {"O": "O", "W": "I2", "I": "I1"},
    {"O": "O", "W": "I2", "I": "I1"},
    {"O": "O", "I": "I1", "W": "I2"},
    {"O": "O", "W": "I1", "I": "I2"},
)
PRECISIONS = ((8, 8, 16, 8), (8, 8, 16, 8), (8, 8, 24, 8), (4, 8, 16, 8), (8, 4, 16, 16))


def random_layer(kind: str, rng: random.Random) -> dict[str, Any]:
    """Random layer of the kind `kind`, as the `layer` object of a record. Its sizes are small enough for every
    accelerator.
    """
    weight, activation, partial, final = rng.choice(PRECISIONS)
    layer: dict[str, Any] = {
        "name": kind,
        "type": {"gemm": "Gemm", "batched_gemm": "Gemm", "add": "Add", "pooling": "Pooling"}.get(kind, "Conv"),
        "dimension_relations": [],
        "operand_precision": {"W": weight, "I": activation, "O": partial, "O_final": final},
        "constant_operands": ["W"],
        "memory_operand_links": rng.choice(LINKS),
    }
    dims, layer["equation"] = KINDS[kind](rng)
    layer["loop_dims"], layer["loop_sizes"] = list(dims), list(dims.values())
    if kind == "pooling":
        layer["operand_precision"]["W"] = 0
    if kind in ("add", "batched_gemm"):
        layer["constant_operands"] = []
    if "ix" in layer["equation"]:
        _add_window(layer, rng)
    return layer


def _add_window(layer: dict[str, Any], rng: random.Random) -> None:
    """Add a window to a layer: strides, dilations, padding, and sometimes explicit input sizes. The two axes may
    differ.
    """
    sizes = dict(zip(layer["loop_dims"], layer["loop_sizes"], strict=True))
    clip: dict[str, int] = {}
    padding: dict[str, list[int]] = {}
    for axis in "XY":
        stride, dilation = rng.choice(((1, 1), (1, 1), (2, 1), (1, 2), (3, 1), (2, 2)))
        before = rng.randint(0, (sizes[f"F{axis}"] - 1) // 2)
        after = rng.randint(0, before)
        layer["dimension_relations"].append(f"i{axis}={stride}*o{axis}+{dilation}*f{axis}".lower())
        padding[f"I{axis}"] = [before, after]
        extent = stride * (sizes[f"O{axis}"] - 1) + dilation * (sizes[f"F{axis}"] - 1) + 1
        clip[f"I{axis}"] = extent - before - after
    layer["padding"] = padding
    if rng.random() < 0.4:
        layer["pr_layer_dim_sizes"] = clip


def _conv(rng: random.Random) -> tuple[dict[str, int], str]:
    sizes = {
        "B": rng.choice((1, 1, 1, 2, 3)),
        "K": rng.choice((5, 16, 24, 32, 37, 48)),
        "C": rng.choice((3, 8, 13, 20, 32)),
        "OY": rng.choice((6, 7, 14, 15, 28)),
        "OX": rng.choice((7, 11, 14, 16, 28)),
        "FY": rng.choice((1, 2, 3, 3, 5)),
        "FX": rng.choice((1, 3, 3, 4, 7)),
    }
    return sizes, "O[b][k][oy][ox]=W[k][c][fy][fx]*I[b][c][iy][ix]"


def _grouped_conv(rng: random.Random) -> tuple[dict[str, int], str]:
    sizes = {
        "B": 1,
        "K": rng.choice((4, 9, 16)),
        "G": rng.choice((2, 3, 4)),
        "OX": rng.choice((9, 14, 20)),
        "OY": rng.choice((9, 12, 14)),
        "C": rng.choice((4, 6, 10)),
        "FX": 3,
        "FY": rng.choice((1, 3)),
    }
    return sizes, "O[b][g][k][oy][ox]=W[g][k][c][fy][fx]*I[b][g][c][iy][ix]"


def _depthwise(rng: random.Random) -> tuple[dict[str, int], str]:
    sizes = {
        "B": 1,
        "K": 1,
        "G": rng.choice((12, 24, 30, 64)),
        "OX": rng.choice((7, 14, 25, 28)),
        "OY": rng.choice((7, 14, 18, 28)),
        "C": 1,
        "FX": rng.choice((3, 5)),
        "FY": rng.choice((3, 5)),
    }
    return sizes, "O[b][g][k][oy][ox]=W[g][k][c][fy][fx]*I[b][g][c][iy][ix]"


def _pooling(rng: random.Random) -> tuple[dict[str, int], str]:
    sizes = {"B": 1, "G": rng.choice((10, 16, 36)), "OY": rng.choice((7, 14, 28)), "OX": rng.choice((7, 12, 28))}
    return sizes | {"FY": rng.choice((2, 3)), "FX": rng.choice((2, 3))}, "O[b][g][oy][ox]=W[fy][fx]*I[b][g][iy][ix]"


def _gemm(rng: random.Random) -> tuple[dict[str, int], str]:
    sizes = {"C": rng.choice((24, 50, 64, 96)), "D": rng.choice((1, 16, 25, 49)), "K": rng.choice((10, 30, 64, 75))}
    return sizes, "O[d][k]=I[d][c]*W[c][k]"


def _batched_gemm(rng: random.Random) -> tuple[dict[str, int], str]:
    sizes = {"C": rng.choice((12, 24, 40)), "D": rng.choice((15, 24, 49)), "K": rng.choice((10, 33, 49))}
    return sizes | {"B": rng.choice((1, 2)), "H": rng.choice((3, 4))}, "O[b][h][d][k]=I[b][h][d][c]*W[b][h][c][k]"


def _add(rng: random.Random) -> tuple[dict[str, int], str]:
    sizes = {"B": 1, "G": rng.choice((16, 24, 45)), "OY": rng.choice((7, 14, 28)), "OX": rng.choice((7, 14, 24))}
    return sizes, "O[b][g][oy][ox]=W[b][g][oy][ox]+I[b][g][oy][ox]"


KINDS = {
    "conv": _conv,
    "grouped_conv": _grouped_conv,
    "depthwise": _depthwise,
    "pooling": _pooling,
    "gemm": _gemm,
    "batched_gemm": _batched_gemm,
    "add": _add,
}


def random_unrolling(sizes: dict[str, int], array: dict[str, int], rng: random.Random) -> dict[str, dict[str, int]]:
    """Random user-level spatial mapping: each array dimension has no, one or two layer dimensions. A factor need not
    divide the size.
    """
    left = {dim: size for dim, size in sizes.items() if size > 1}
    unrolling: dict[str, dict[str, int]] = {}
    for array_dim, lanes in array.items():
        unrolling[array_dim] = {}
        free = lanes
        for dim in rng.sample(sorted(left), k=min(rng.choice((0, 1, 1, 1, 2)), len(left))):
            most = min(free, left[dim])
            if most < 2:
                continue
            factor = most if rng.random() < 0.5 else rng.randint(2, most)
            unrolling[array_dim][dim] = factor
            left[dim] //= factor
            free //= factor
        left = {dim: size for dim, size in left.items() if size > 1}
    return unrolling


def random_order(loop_sizes: dict[str, int], rng: random.Random) -> list[tuple[str, int]]:
    """Random order of the temporal loops, innermost first. Loops are prime factors of the sizes; some factors are
    merged.
    """
    loops: list[tuple[str, int]] = []
    for dim, size in loop_sizes.items():
        factors = list(_prime_factors(size))
        rng.shuffle(factors)
        while len(factors) > 1 and rng.random() < 0.35:
            factors.append(factors.pop() * factors.pop())
        loops += [(dim, factor) for factor in factors]
    rng.shuffle(loops)
    return loops


def _prime_factors(number: int) -> Iterator[int]:
    divisor = 2
    while number > 1:
        while number % divisor == 0:
            yield divisor
            number //= divisor
        divisor += 1
