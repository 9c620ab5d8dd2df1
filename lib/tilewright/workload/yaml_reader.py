"""Reader of the workload YAML, a list of layers, with checks across its fields (zigzag-dse 3.9.1: workload file).

Invalid fields are reported as problems, and have no value in the typed tree of the file.
"""

import itertools
import math
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from tilewright.base.artifacts.digests import LANGUAGE_MODEL
from tilewright.base.errors import WRITTEN, Problems, count_of, nearest_name
from tilewright.base.file_kinds import WORKLOAD, refuse_other_kind
from tilewright.base.json_values import JsonObject
from tilewright.base.validation import (
    Count,
    PositiveCount,
    TableModel,
    TextForm,
    each,
    json_schema,
    names_of,
    validate,
    whole,
)
from tilewright.base.yamlfile import YamlDocument, document_of, load_yaml
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.layer import (
    EQUATION_PATTERN,
    FINAL_OUTPUT,
    LOOP_DIMENSION,
    OUTPUT,
    RELATION_PATTERN,
    DimensionRelation,
    Layer,
    OperandDimensions,
    check_loop_dimension,
    parse_equation,
    parse_relation,
)
from tilewright.workload.relevancy import distinct_positions

LoopDimension = Annotated[str, TextForm(check_loop_dimension, LOOP_DIMENSION.pattern)]
Equation = Annotated[OperandDimensions, TextForm(parse_equation, EQUATION_PATTERN)]
Relation = Annotated[DimensionRelation, TextForm(parse_relation, RELATION_PATTERN)]
Bits = Annotated[int, Field(ge=0, le=1024)]
PositiveBits = Annotated[int, Field(gt=0, le=1024)]
Padding = Annotated[list[Count], Field(min_length=2, max_length=2)]


class PrecisionEntry(TableModel):
    """Bits of one element of each operand."""

    W: Bits
    """Bits of the weights. The number is 0 for an operand without costs, such as the weights of pooling."""
    I: Bits  # noqa: E741
    """Bits of the inputs."""
    O: PositiveBits  # noqa: E741
    """Bits of partial sums."""
    O_final: PositiveBits
    """Bits of final outputs."""


Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class ZerosEntry(TableModel):
    """Share of zeros of each operand, from 0 to 1. Only hardware files with `zero_gating` or `run_length` use these
    shares.
    """

    W: Share | None = None
    """Share of the weights that are zero."""
    I: Share | None = None  # noqa: E741
    """Share of the inputs that are zero."""
    O_final: Share | None = None
    """Share of the final outputs that are zero. Partial sums count as never zero."""


class SourcesEntry(TableModel):
    """Layers that produce the inputs of a layer."""

    W: int | None = None
    """Id of the layer that produces the weights. The layer's own id means that the weights are constant."""
    I: int | None = None  # noqa: E741
    """Id of the layer that produces the input. The layer's own id means that the input is constant."""


class LayerEntry(TableModel):
    """One layer of the network."""

    id: int
    """Number of the layer, unique in the file."""
    name: str | None = None
    """Name of the layer; by default `Layer<id>`."""
    operator_type: Literal[
        "Max",
        "Conv",
        "Pooling",
        "Add",
        "Conv_downsample",
        "Gemm",
        "MatMul",
        "Pool",
        "MaxPool",
        "AveragePool",
        "GlobalAveragePool",
    ]
    """Type of the layer's operator. Entries of the mapping file can select layers by this type."""
    equation: Equation
    """Equation of the layer over its dimensions, for example O[b][k][oy][ox] += W[k][c][fy][fx] * I[b][c][iy][ix]."""
    dimension_relations: list[Relation] | None = None
    """Sliding windows. For example, ix = 2*ox + 1*fx declares the dimension ix of the input."""
    loop_dims: Annotated[list[LoopDimension], Field(min_length=1)]
    """Names of the loop dimensions."""
    loop_sizes: list[PositiveCount]
    """Size of each loop dimension, in the order of `loop_dims`."""
    operand_precision: PrecisionEntry
    """Bits of each operand."""
    zeros: ZerosEntry | None = None
    """Share of zeros of each operand (docs/model/zeros.md). Default: not known, so zeros save nothing."""
    operand_source: SourcesEntry | None = None
    """Id of the layer that produces each input. The layer's own id means that the input is constant."""
    pr_loop_dims: list[LoopDimension] | None = None
    """Dimensions that sliding windows declare, in the order of `pr_loop_sizes` and `padding`."""
    pr_loop_sizes: list[PositiveCount] | None = None
    """Sizes of the dimensions in `pr_loop_dims`, without padding. With this key, `padding` does not change the
    sizes."""
    padding: list[Padding] | None = None
    """Padding `[before, after]` for each dimension of `pr_loop_dims`."""


WorkloadFile = Annotated[list[LayerEntry], Field(min_length=1)]


def workload_schema() -> JsonObject:
    """JSON Schema of a workload file."""
    from tilewright.workload.language_models.reader import LanguageModelFile

    told = "Layers of a network as loop nests, or a step of a language model."
    return json_schema(WorkloadFile | LanguageModelFile, "tilewright workload", told)


MOST_OPERATIONS = 2**60
"""Largest number of operations of a layer. The limit exists because counts of operations and cycles are 64-bit
integers.
"""


def check_workload(problems: Problems, entries: list[LayerEntry]) -> None:
    """Report every problem, and give every notice, that concerns several fields of a layer or several layers."""
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
    """Give a notice for layers whose final outputs have more bits than their partial sums. Layers with the same two bit
    widths share one notice.
    """
    found: dict[tuple[int, int], list[int]] = {}
    for index, entry in each(entries):
        bits = entry.operand_precision
        if bits is not None and bits.O is not None and bits.O_final is not None and bits.O_final > bits.O:
            found.setdefault((bits.O, bits.O_final), []).append(index)
    for (partial, final), indices in found.items():
        message = (
            f"final outputs have {final} bits, but partial sums (O) have only {partial} bits; the additional bits add"
            f" no accuracy"
        )
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
            message = (
                "another layer has this name; this layer is renamed, as in name__2, "
                "and mapping files must use its new name"
            )
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
                problems.at(place, "no layer has this id", source, f"id of an earlier layer or of this layer: {known}")


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
    """Report problems of the sliding windows of a layer entry. Returns the windows; None if a window cannot be read."""
    relations, is_broken = whole(entry.dimension_relations), problems.has("dimension_relations")
    known = names_of(entry.loop_dims)
    earlier: set[str] = set()
    for index, relation in each(entry.dimension_relations):
        place = ("dimension_relations", index)
        if relation.data_dimension in earlier:
            problems.at(place, "another sliding window declares the same dimension", relation.data_dimension)
        if relation.data_dimension in known:
            message = "is a loop dimension; a sliding window must declare a new dimension"
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
            problems.notice(("loop_dims",), f"no operand uses {dimension}, so the same work is done {size} times")


def _check_windows(problems: Problems, entry: LayerEntry, relations: list[DimensionRelation]) -> None:
    names = entry.pr_loop_dims
    known = [relation.data_dimension for relation in relations]
    problems.repeated(("pr_loop_dims",), names or (), "the dimension is given twice")
    for index, name in each(names):
        if name not in known:
            problems.unknown_name(("pr_loop_dims", index), "no sliding window declares this dimension", name, known)
    for key, values in (("pr_loop_sizes", entry.pr_loop_sizes), ("padding", entry.padding)):
        if values and names is None and not problems.has("pr_loop_dims"):
            problems.at((key,), "needs `pr_loop_dims`, which names the dimensions")
        elif values is not None and names is not None and len(values) != len(names):
            message = "needs one item for each of `pr_loop_dims`"
            problems.at((key,), message, f"{len(values)} items", f"{len(names)} items")
    others = ("pr_loop_sizes", "padding")
    if names and not any(getattr(entry, key) is not None or problems.has(key) for key in others):
        problems.unused(("pr_loop_dims",), "has no effect without pr_loop_sizes or padding")
    if entry.pr_loop_sizes and None not in (names or ()):
        for name in known:
            if name not in (names or ()):
                message = f"has no size for {name}; give the sizes of all sliding windows or of none"
                problems.at(("pr_loop_sizes",), message, nearest=nearest_name(name, names or ()))
        _note_contradictions(problems, entry, dict(zip(known, relations, strict=True)))
    elif entry.padding is not None:
        _check_padding(problems, entry, dict(zip(known, relations, strict=True)))


def _note_contradictions(problems: Problems, entry: LayerEntry, relations: dict[str, DimensionRelation]) -> None:
    """Give a notice for each dimension with a `padding` that contradicts its size in `pr_loop_sizes`. The size takes
    precedence."""
    extents = dict(zip(entry.loop_dims or (), entry.loop_sizes or (), strict=False))
    given = zip(entry.pr_loop_dims or (), entry.pr_loop_sizes or (), entry.padding or (), strict=False)
    for index, (name, size, padding) in enumerate(given):
        if name not in relations or size is None or padding is None or None in padding or len(padding) != 2:
            continue
        terms = relations[name].terms
        if any(extents.get(dimension) is None for dimension, _ in terms):
            continue
        reach = sum(factor * (extents[dimension] - 1) for dimension, factor in terms) + 1
        # If an input is a little longer than needed, its last positions are in no window.
        if not reach <= size + sum(padding) < reach + max(factor for _, factor in terms):
            why = "does not set the size, because pr_loop_sizes gives it; the two keys contradict each other"
            told = f"{name} has {size} + {sum(padding)} positions, but the loops span {reach} positions"
            problems.unused(("padding", index), f"{why}: {told}")


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
            message = f"padding covers all of {name[0]}, which has {count_of(count, 'position')}, so no data are left"
            problems.at(("padding", index), message, WRITTEN)


def read_workload_yaml(
    source: str | Path | list[dict[str, Any]] | dict[str, Any], notices: list[str] | None = None
) -> Workload:
    """Workload of a workload file, or of the same data as a list of dicts. The workload of a file has the name of the
    file; the workload of a list or dict has the name `workload`.

    A table with the key `language_model` is a step of a language model. All other data must be a list of layers.

    Raises InputError with every problem of the file. Notices on unusual input are appended to `notices`.
    """
    if isinstance(source, (list, tuple, dict)):
        return workload_of(document_of(source), "workload", notices)
    return workload_of(load_yaml(source, notices), Path(source).stem, notices)


def workload_of(document: YamlDocument, name: str, notices: list[str] | None = None) -> Workload:
    """Workload of a workload document that is already in memory. `name` is the name of the workload. Notices on unusual
    input are appended to `notices`. Raises InputError with every problem of the document.
    """
    if isinstance(document.data, dict) and LANGUAGE_MODEL in document.data:
        from tilewright.workload.language_models.reader import read_language_model

        return read_language_model(document, name, notices)
    refuse_other_kind(document, WORKLOAD)
    problems = Problems(document)
    entries: list[LayerEntry] = validate(WorkloadFile, document.data, problems)
    check_workload(problems, entries or [])
    problems.finish(notices)
    names = _unique_names([entry.name or f"Layer{entry.id}" for entry in entries])
    nodes = (_node(*triple) for triple in zip(entries, document.data, names, strict=True))
    return Workload(name, tuple(nodes))


def _unique_names(names: list[str]) -> list[str]:
    """Names without repetitions. Repetitions of a name get `__2`, `__3`, ..."""
    unique: list[str] = []
    for name in names:
        candidates = itertools.chain((name,), (f"{name}__{number}" for number in itertools.count(2)))
        unique.append(next(candidate for candidate in candidates if candidate not in unique))
    return unique


def _node(entry: LayerEntry, written: dict[str, Any], name: str) -> WorkloadNode:
    # The order of the sources in the file is the order of graph edges. It therefore decides the order of execution.
    sources: dict[str, int | None] = written.get("operand_source") or {}
    constants = tuple(operand for operand, source in sources.items() if source == entry.id)
    return WorkloadNode(
        node_id=entry.id,
        name=name,
        operator_type=entry.operator_type,
        layer=_layer(entry, name, constants),
        sources=tuple((operand, source) for operand, source in sources.items() if source not in (None, entry.id)),
    )


def _layer(entry: LayerEntry, name: str, constants: tuple[str, ...]) -> Layer:
    operands = entry.equation
    precisions = entry.operand_precision.model_dump()
    order = (OUTPUT, FINAL_OUTPUT, *(operand for operand, _ in operands[1:]))
    windows = entry.pr_loop_dims or ()
    return Layer(
        name=name,
        operator_type=entry.operator_type,
        operand_dimensions=operands,
        loop_sizes=tuple(zip(entry.loop_dims, entry.loop_sizes, strict=True)),
        relations=tuple(entry.dimension_relations or ()),
        precision_bits=tuple((operand, precisions[operand]) for operand in order),
        padding=tuple(
            (name, (before, after)) for name, (before, after) in zip(windows, entry.padding or (), strict=False)
        ),
        data_dimension_sizes=tuple(zip(windows, entry.pr_loop_sizes or (), strict=False)),
        constant_operands=constants,
        zeros=() if entry.zeros is None else _given_zeros(entry.zeros),
    )


def _given_zeros(entry: ZerosEntry) -> tuple[tuple[str, float], ...]:
    """Pairs (operand, share of zeros) that a layer gives."""
    return tuple((name, float(share)) for name, share in entry.model_dump().items() if share is not None)
