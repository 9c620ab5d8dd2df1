"""Checks across the fields of a workload file, on raw data: they run also when other fields are broken."""

import math
from typing import Any

from tilewright.errors import KeyPath, Problems, nearest_name
from tilewright.validation import items, parsed, table, texts
from tilewright.workload.equation import OperandDimensions, check_loop_dimension, parse_equation, parse_relation
from tilewright.workload.layer import DimensionRelation
from tilewright.workload.relevancy import distinct_positions

MOST_OPERATIONS = 2**60
"""Counts of operations and cycles are 64 bit integers."""
_WINDOW_TABLES = ("pr_loop_sizes", "padding")


def check_workload(data: Any, problems: Problems) -> None:
    """Record every problem across fields and layers."""
    entries = [table(entry) for entry in items(data)]
    _check_identities(problems, entries)
    for index, entry in enumerate(entries):
        _check_loops(problems, (index,), entry)
        relations = _check_relations(problems, (index,), entry)
        if relations is not None:
            _check_equation(problems, (index,), entry, relations)
            _check_windows(problems, (index,), entry, relations)
    _note_wide_results(problems, entries)


def _note_wide_results(problems: Problems, entries: list[dict[Any, Any]]) -> None:
    """Note layers whose final outputs are wider than what they are summed up in, all of one pair of widths together."""
    found: dict[tuple[int, int], list[int]] = {}
    for index, entry in enumerate(entries):
        bits = table(entry.get("operand_precision"))
        partial, final = bits.get("O"), bits.get("O_final")
        if type(partial) is int and type(final) is int and 0 < partial < final:
            found.setdefault((partial, final), []).append(index)
    for (partial, final), indices in found.items():
        message = f"final outputs of {final} bits are wider than partial sums, O, of {partial}: they gain nothing by it"
        others = f" (in {len(indices)} layers of the file)" if len(indices) > 1 else ""
        problems.notice((indices[0], "operand_precision", "O_final"), message + others)


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _names(value: Any) -> list[str | None]:
    """The loop dimensions of a list in upper case, None for what is none."""
    return [parsed(check_loop_dimension, text) if text is not None else None for text in texts(value)]


def _check_identities(problems: Problems, entries: list[dict[Any, Any]]) -> None:
    ids = [entry.get("id") if _is_number(entry.get("id")) else None for entry in entries]
    names: list[str] = []
    for index, entry in enumerate(entries):
        if ids[index] is not None and ids[index] in ids[:index]:
            problems.at((index, "id"), "another layer has the same id", ids[index])
        name = entry.get("name") or f"Layer{ids[index]}"
        if isinstance(entry.get("name"), str) and name in names:
            message = "another layer has the same name; here and in mapping files this one gets a number, as in name__2"
            problems.notice((index, "name"), message)
        names.append(str(name))
        for operand, source in table(entry.get("operand_source")).items():
            place = (index, "operand_source", operand)
            if not _is_number(source) or source == ids[index] or source in ids[:index]:
                continue
            if source in ids:
                problems.at(place, "the layer that makes an input must come earlier in the file", source)
            else:
                known = ", ".join(str(number) for number in ids[: index + 1][-8:] if number is not None)
                problems.at(place, "no layer has this id", source, f"an earlier layer's id, or its own: {known}")


def _check_loops(problems: Problems, path: KeyPath, entry: dict[Any, Any]) -> None:
    dimensions, sizes = entry.get("loop_dims"), entry.get("loop_sizes")
    problems.repeated((*path, "loop_dims"), _names(dimensions), "the loop dimension is given twice")
    if not isinstance(dimensions, list) or not isinstance(sizes, list):
        return
    if len(dimensions) != len(sizes):
        message = "needs one size for each of `loop_dims`"
        problems.at((*path, "loop_sizes"), message, f"{len(sizes)} items", f"{len(dimensions)} items")
    elif all(_is_number(size) and size > 0 for size in sizes) and math.prod(sizes) > MOST_OPERATIONS:
        problems.at((*path, "loop_sizes"), "the layer has more than 2^60 operations")


def _check_relations(problems: Problems, path: KeyPath, entry: dict[Any, Any]) -> list[DimensionRelation] | None:
    """The layer's sliding windows, or None if some are broken (the model reports those)."""
    written = texts(entry.get("dimension_relations"))
    known = [name for name in _names(entry.get("loop_dims")) if name is not None]
    relations: list[DimensionRelation] = []
    for index, text in enumerate(written):
        relation = parsed(parse_relation, text) if text is not None else None
        if relation is None:
            continue
        place = (*path, "dimension_relations", index)
        if relation.data_dimension in (other.data_dimension for other in relations):
            problems.at(place, "another sliding window declares the same dimension", relation.data_dimension)
        if relation.data_dimension in known:
            message = "is a loop dimension too; a sliding window declares a dimension of its own"
            problems.at(place, message, relation.data_dimension)
        for dimension, _ in relation.terms:
            if known and dimension not in known:
                problems.unknown_name(place, "the dimension is not in loop_dims", dimension, known)
        relations.append(relation)
    return relations if len(relations) == len(written) else None


def _check_equation(
    problems: Problems, path: KeyPath, entry: dict[Any, Any], relations: list[DimensionRelation]
) -> None:
    text = entry.get("equation")
    operands: OperandDimensions | None = parsed(parse_equation, text) if isinstance(text, str) else None
    loops = [name for name in _names(entry.get("loop_dims")) if name is not None]
    if operands is None or not loops:
        return
    known = loops + [relation.data_dimension for relation in relations]
    for operand, dimensions in operands:
        for position, dimension in enumerate(dimensions):
            if dimension not in known:
                message = f"operand {operand} uses a dimension that is neither a loop nor a sliding window"
                problems.unknown_name((*path, "equation"), message, dimension, known)
            if dimension in dimensions[:position]:
                problems.at((*path, "equation"), f"operand {operand} uses a dimension twice", dimension)
    used = {dimension for _, dimensions in operands for dimension in dimensions}
    used |= {dimension for relation in relations for dimension, _ in relation.terms}
    for dimension, size in zip(loops, items(entry.get("loop_sizes")), strict=False):
        if dimension not in used and size != 1:
            problems.notice((*path, "loop_dims"), f"no operand uses {dimension}: the same work is done {size} times")


def _check_windows(
    problems: Problems, path: KeyPath, entry: dict[Any, Any], relations: list[DimensionRelation]
) -> None:
    names = _names(entry.get("pr_loop_dims"))
    known = [relation.data_dimension for relation in relations]
    problems.repeated((*path, "pr_loop_dims"), names, "the dimension is given twice")
    for index, name in enumerate(names):
        if name is not None and name not in known:
            problems.unknown_name((*path, "pr_loop_dims", index), "no sliding window declares this", name, known)
    for key in _WINDOW_TABLES:
        values = entry.get(key)
        if isinstance(values, list) and entry.get("pr_loop_dims") is None and values:
            problems.at((*path, key), "needs `pr_loop_dims`, which names the dimensions")
        elif isinstance(values, list) and isinstance(entry.get("pr_loop_dims"), list) and len(values) != len(names):
            message = "needs one item for each of `pr_loop_dims`"
            problems.at((*path, key), message, f"{len(values)} items", f"{len(names)} items")
    if entry.get("pr_loop_sizes") and None not in names:
        for name in known:
            if name not in names:
                nearest = nearest_name(name, [text for text in names if text is not None])
                message = f"has sizes, but none for {name}; give all or none"
                problems.at((*path, "pr_loop_sizes"), message, nearest=nearest)
    elif isinstance(entry.get("padding"), list):
        _check_padding(problems, path, entry, dict(zip(known, relations, strict=True)))


def _check_padding(
    problems: Problems, path: KeyPath, entry: dict[Any, Any], relations: dict[str, DimensionRelation]
) -> None:
    sizes = dict(zip(_names(entry.get("loop_dims")), items(entry.get("loop_sizes")), strict=False))
    for index, (name, padding) in enumerate(zip(_names(entry.get("pr_loop_dims")), entry["padding"], strict=False)):
        if name not in relations or not isinstance(padding, list) or len(padding) != 2:
            continue
        terms = relations[name].terms
        extents: list[Any] = [sizes.get(dimension) for dimension, _ in terms]
        if not all(_is_number(value) and value >= 0 for value in [*padding, *extents]):
            continue
        if 0 in extents or not all(c > 0 for _, c in terms):
            continue
        (_, first), (_, second) = terms
        count = distinct_positions((first, second), extents[0], extents[1], exact=False)
        if sum(padding) >= count:
            message = f"padding leaves nothing of {name}, which has {count} positions"
            problems.at((*path, "padding", index), message, padding)
