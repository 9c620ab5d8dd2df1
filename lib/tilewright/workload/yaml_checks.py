"""Checks across the fields of a workload file; fields that are broken, which is told, are holes in it."""

import math

from tilewright.errors import WRITTEN, Problems, nearest_name
from tilewright.validation import each, names_of, whole
from tilewright.workload.layer import DimensionRelation
from tilewright.workload.relevancy import distinct_positions
from tilewright.workload.yaml_schema import LayerEntry

MOST_OPERATIONS = 2**60
"""Counts of operations and cycles are 64 bit integers."""


def check_workload(problems: Problems, entries: list[LayerEntry]) -> None:
    """Record every problem across fields and layers."""
    _check_identities(problems, entries)
    for index, entry in each(entries):
        layer = problems.within(index)
        _check_loops(layer, entry)
        relations = _check_relations(layer, entry)
        if relations is not None:
            _check_equation(layer, entry, relations)
            _check_windows(layer, entry, relations)
    _note_wide_results(problems, entries)


def _note_wide_results(problems: Problems, entries: list[LayerEntry]) -> None:
    """Note layers whose final outputs are wider than what they are summed up in, all of one pair of widths together."""
    found: dict[tuple[int, int], list[int]] = {}
    for index, entry in each(entries):
        bits = entry.operand_precision
        if bits is not None and bits.O is not None and bits.O_final is not None and bits.O_final > bits.O:
            found.setdefault((bits.O, bits.O_final), []).append(index)
    for (partial, final), indices in found.items():
        message = f"final outputs of {final} bits are wider than partial sums, O, of {partial}: they gain nothing by it"
        others = f" (in {len(indices)} layers of the file)" if len(indices) > 1 else ""
        problems.notice((indices[0], "operand_precision", "O_final"), message + others)


def _check_identities(problems: Problems, entries: list[LayerEntry]) -> None:
    ids = [None if entry is None else entry.id for entry in entries]
    names: list[str] = []
    for index, entry in each(entries):
        if entry.id is not None and entry.id in ids[:index]:
            problems.at((index, "id"), "another layer has the same id", entry.id)
        name = entry.name or f"Layer{entry.id}"
        if entry.name is not None and name in names:
            message = "another layer has the same name; here and in mapping files this one gets a number, as in name__2"
            problems.notice((index, "name"), message)
        names.append(name)
        for operand in ("W", "I"):
            source = getattr(entry.operand_source, operand, None)
            place = (index, "operand_source", operand)
            if source is None or source == entry.id or source in ids[:index]:
                continue
            if source in ids:
                problems.at(place, "the layer that makes an input must come earlier in the file", source)
            else:
                known = ", ".join(map(str, whole(ids[: index + 1][-8:])))
                problems.at(place, "no layer has this id", source, f"an earlier layer's id, or its own: {known}")


def _check_loops(problems: Problems, entry: LayerEntry) -> None:
    dimensions, sizes = entry.loop_dims, entry.loop_sizes
    problems.repeated(("loop_dims",), dimensions or (), "the loop dimension is given twice")
    if dimensions is None or sizes is None:
        return
    if len(dimensions) != len(sizes):
        message = "needs one size for each of `loop_dims`"
        problems.at(("loop_sizes",), message, f"{len(sizes)} items", f"{len(dimensions)} items")
    elif math.prod(whole(sizes)) > MOST_OPERATIONS:
        problems.at(("loop_sizes",), "the layer has more than 2^60 operations")


def _check_relations(problems: Problems, entry: LayerEntry) -> list[DimensionRelation] | None:
    """The layer's sliding windows, or None if some are holes."""
    relations, is_broken = whole(entry.dimension_relations), problems.has("dimension_relations")
    known = names_of(entry.loop_dims)
    earlier: set[str] = set()
    for index, relation in each(entry.dimension_relations):
        place = ("dimension_relations", index)
        if relation.data_dimension in earlier:
            problems.at(place, "another sliding window declares the same dimension", relation.data_dimension)
        if relation.data_dimension in known:
            message = "is a loop dimension too; a sliding window declares a dimension of its own"
            problems.at(place, message, relation.data_dimension)
        for dimension, _ in relation.terms:
            if known and dimension not in known:
                problems.unknown_name(place, "the dimension is not in loop_dims", dimension, known)
        earlier.add(relation.data_dimension)
    return None if is_broken else relations


def _check_equation(problems: Problems, entry: LayerEntry, relations: list[DimensionRelation]) -> None:
    operands, loops = entry.equation, names_of(entry.loop_dims)
    if operands is None or not loops:
        return
    known = loops + [relation.data_dimension for relation in relations]
    for operand, dimensions in operands:
        for position, dimension in enumerate(dimensions):
            if dimension not in known:
                message = f"operand {operand} uses a dimension that is neither a loop nor a sliding window"
                problems.unknown_name(("equation",), message, dimension, known)
            if dimension in dimensions[:position]:
                problems.at(("equation",), f"operand {operand} uses a dimension twice", dimension)
    used = {dimension for _, dimensions in operands for dimension in dimensions}
    used |= {dimension for relation in relations for dimension, _ in relation.terms}
    for dimension, size in zip(loops, entry.loop_sizes or (), strict=False):
        if dimension not in used and size != 1:
            problems.notice(("loop_dims",), f"no operand uses {dimension}: the same work is done {size} times")


def _check_windows(problems: Problems, entry: LayerEntry, relations: list[DimensionRelation]) -> None:
    names = entry.pr_loop_dims
    known = [relation.data_dimension for relation in relations]
    problems.repeated(("pr_loop_dims",), names or (), "the dimension is given twice")
    for index, name in each(names):
        if name not in known:
            problems.unknown_name(("pr_loop_dims", index), "no sliding window declares this", name, known)
    for key, values in (("pr_loop_sizes", entry.pr_loop_sizes), ("padding", entry.padding)):
        if values and names is None and not problems.has("pr_loop_dims"):
            problems.at((key,), "needs `pr_loop_dims`, which names the dimensions")
        elif values is not None and names is not None and len(values) != len(names):
            message = "needs one item for each of `pr_loop_dims`"
            problems.at((key,), message, f"{len(values)} items", f"{len(names)} items")
    if entry.pr_loop_sizes and None not in (names or ()):
        for name in known:
            if name not in (names or ()):
                message = f"has sizes, but none for {name}; give all or none"
                problems.at(("pr_loop_sizes",), message, nearest=nearest_name(name, names or ()))
    elif entry.padding is not None:
        _check_padding(problems, entry, dict(zip(known, relations, strict=True)))


def _check_padding(problems: Problems, entry: LayerEntry, relations: dict[str, DimensionRelation]) -> None:
    sizes = dict(zip(entry.loop_dims or (), entry.loop_sizes or (), strict=False))
    for index, padding in each(entry.padding):
        name = (entry.pr_loop_dims or [])[index : index + 1]
        if not name or name[0] not in relations or None in padding or len(padding) != 2:
            continue
        terms = relations[name[0]].terms
        extents = [sizes.get(dimension) or 0 for dimension, _ in terms]
        if 0 in extents or not all(factor > 0 for _, factor in terms):
            continue
        (_, first), (_, second) = terms
        count = distinct_positions((first, second), extents[0], extents[1], exact=False)
        if sum(padding) >= count:
            message = f"padding leaves nothing of {name[0]}, which has {count} positions"
            problems.at(("padding", index), message, WRITTEN)
