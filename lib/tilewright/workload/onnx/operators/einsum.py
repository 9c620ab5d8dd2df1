"""Einsum: sums, diagonals, transpositions, and products of any number of tensors, two at a time from left to right."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tilewright.workload.access import AxisIndex, IndexMap, TensorAccess, fixed, loop
from tilewright.workload.onnx.lowering import MAC_ARRAY, VECTOR_UNIT, Lowering, lowers
from tilewright.workload.onnx.node import Shape

_ELLIPSIS = "..."
_MOST_LOOPS = 16


@dataclass(frozen=True)
class _Term:
    """Tensor with a label for each of its axes."""

    tensor: str
    labels: tuple[str, ...]


@lowers("Einsum")
def lower_einsum(op: Lowering) -> None:
    """Lower Einsum, with one loop nest for each product of two tensors. A nest has one loop for each label. If there is
    only one tensor, the tensor is summed or moved.

    A label is summed as early as possible: as soon as neither a later tensor nor the output has it. The number of
    multiply-accumulates of a nest that sums products is the product of its loop sizes. Raises InputError for an
    equation that does not fit the inputs.
    """
    terms, output = _parsed(op)
    sizes = _sizes(op, terms)
    missing = [label for label in output if label not in sizes]
    if missing or len(set(output)) != len(output):
        raise op.node.error(
            "wrong attribute 'equation'",
            repr(_equation(op)),
            "an output with different labels, which all occur in the inputs",
        )
    if tuple(sizes[label] for label in output) != op.output_shape():
        wanted = [sizes[label] for label in output]
        raise op.node.error("wrong shape of the output", str(list(op.output_shape())), str(wanted))
    result = _Term(op.output(), output)
    if len(terms) == 1:
        _lower_one(op, terms[0], result, sizes)
        return
    left = terms[0]
    for number, right in enumerate(terms[1:], start=1):
        last = number == len(terms) - 1
        kept = output if last else _needed(left, right, terms[number + 1 :], output)
        shape = tuple(sizes[label] for label in kept)
        target = result if last else _Term(op.temporary(f"product{number}", shape, op.output()), kept)
        if not _lower_two(op, (left, right), target, sizes, "" if last else f"product{number}"):
            return
        left = target


def _lower_one(op: Lowering, term: _Term, result: _Term, sizes: dict[str, int]) -> None:
    summed = [label for label in dict.fromkeys(term.labels) if label not in result.labels]
    loops = _loops((*result.labels, *summed), sizes)
    written, read = _access(op, result), _access(op, term)
    if all(sizes[label] == 1 for label in summed):
        op.move(IndexMap(loops, written, read))
    elif len(loops) > _MOST_LOOPS:
        op.unsupported(f"an Einsum with more than {_MOST_LOOPS} labels in one product is not modelled")
    else:
        op.nest(loops, written, {"I": read}, unit=VECTOR_UNIT)


def _lower_two(op: Lowering, pair: tuple[_Term, _Term], target: _Term, sizes: dict[str, int], part: str) -> bool:
    """Add the nest of one product. Returns False if the nest has too many loops; the operator is then unsupported."""
    labels = tuple(dict.fromkeys((*target.labels, *pair[0].labels, *pair[1].labels)))
    if len(labels) > _MOST_LOOPS:
        op.unsupported(f"an Einsum with more than {_MOST_LOOPS} labels in one product is not modelled")
        return False
    sums = any(sizes[label] > 1 for label in labels if label not in target.labels)
    op.nest(
        _loops(labels, sizes),
        _access(op, target),
        {"I": _access(op, pair[0]), "W": _access(op, pair[1])},
        unit=MAC_ARRAY if sums else VECTOR_UNIT,
        part=part,
    )
    return True


def _needed(left: _Term, right: _Term, later: Iterable[_Term], output: Sequence[str]) -> tuple[str, ...]:
    wanted = {*output, *(label for term in later for label in term.labels)}
    return tuple(label for label in dict.fromkeys((*left.labels, *right.labels)) if label in wanted)


def _loops(labels: Iterable[str], sizes: dict[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple((_loop_name(label), sizes[label]) for label in labels)


def _loop_name(label: str) -> str:
    """Name of the loop of a label: II for label I, I for label i, and E0 for label 0 of the ellipsis."""
    if label.isalpha():
        return 2 * label if label.isupper() else label.upper()
    return f"E{label}"


def _access(op: Lowering, term: _Term) -> TensorAccess:
    """Access to the tensor of a term. An axis of size 1 always has the index 0, so the axis is broadcast if its label
    has a larger size.
    """
    axes: list[AxisIndex] = [
        fixed() if size == 1 else loop(_loop_name(label))
        for label, size in zip(term.labels, op.shape(term.tensor), strict=True)
    ]
    return TensorAccess(term.tensor, tuple(axes))


def _equation(op: Lowering) -> str:
    return op.node.text("equation", "").replace(" ", "")


def _parsed(op: Lowering) -> tuple[list[_Term], tuple[str, ...]]:
    """Pair (inputs with their labels, labels of the output). The dimensions of an ellipsis are numbered from the end.

    Raises InputError for an equation that is malformed or that does not fit the ranks of the inputs.
    """
    equation = _equation(op)
    left, arrow, right = equation.partition("->")
    texts = left.split(",")
    names = [op.input(index) for index in range(len(op.node.inputs))]
    if not names or len(texts) != len(names):
        raise op.node.error("wrong attribute 'equation'", repr(equation), f"{len(names)} terms, one for each input")
    hidden = [_hidden_rank(op, text, op.shape(name)) for text, name in zip(texts, names, strict=True)]
    terms = [_Term(name, _labels(text, rank)) for text, name, rank in zip(texts, names, hidden, strict=True)]
    widest = max(hidden)
    if arrow:
        if _ELLIPSIS not in right and _without_ellipsis(op, right) != right:
            raise op.node.error("wrong attribute 'equation'", repr(equation))
        return terms, _labels(right, widest)
    letters = [label for term in terms for label in term.labels if label.isalpha()]
    once = sorted(label for label in set(letters) if letters.count(label) == 1)
    return terms, (*_labels(_ELLIPSIS if widest else "", widest), *once)


def _hidden_rank(op: Lowering, text: str, shape: Shape) -> int:
    """Number of axes that the ellipsis of a term represents."""
    letters = _without_ellipsis(op, text)
    hidden = len(shape) - len(letters)
    if hidden < 0 or (hidden and letters == text):
        raise op.node.error(
            "wrong term of attribute 'equation'", repr(text), f"one label for each of the {len(shape)} axes"
        )
    return hidden


def _without_ellipsis(op: Lowering, text: str) -> str:
    letters = text.replace(_ELLIPSIS, "", 1)
    if not all(letter.isascii() and letter.isalpha() for letter in letters):
        raise op.node.error("wrong term of attribute 'equation'", repr(text), "letters, and at most one ellipsis '...'")
    return letters


def _labels(text: str, hidden: int) -> tuple[str, ...]:
    before, dots, after = text.partition(_ELLIPSIS)
    numbers = [str(place) for place in range(hidden - 1, -1, -1)] if dots else []
    return (*before, *numbers, *after)


def _sizes(op: Lowering, terms: Sequence[_Term]) -> dict[str, int]:
    """Size of each label of the equation. A label can have size 1 in one term and a larger size in another term; the
    axis of size 1 is then broadcast. Raises InputError if a label has two different sizes and neither is 1."""
    sizes: dict[str, int] = {}
    for term in terms:
        for label, size in zip(term.labels, op.shape(term.tensor), strict=True):
            known = sizes.setdefault(label, size)
            if known != size and 1 not in (known, size):
                raise op.node.error(
                    f"different sizes of label '{label}' in attribute 'equation'", f"{known} and {size}"
                )
            sizes[label] = max(known, size)
    return sizes
