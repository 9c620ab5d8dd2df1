"""Reader of the mapping YAML (zigzag-dse 3.9.1: mapping file)."""

from pathlib import Path
from typing import Any

from tilewright.base.errors import InputError, Problem, Problems
from tilewright.base.file_kinds import MAPPING, refuse_other_kind
from tilewright.base.json_values import JsonObject
from tilewright.base.validation import each, validate, whole
from tilewright.base.yamlfile import YamlDocument, document_of, load_yaml
from tilewright.mapping.constraints import (
    DEFAULT,
    LAYER_KINDS,
    WILDCARD,
    GivenReach,
    Mapping,
    MappingConstraints,
    PartAdditions,
    TemporalOrderingEntry,
    TilingEntry,
)
from tilewright.mapping.plan_forms import FORMS, form_of
from tilewright.mapping.words import ONE_CORE, RING, TREE
from tilewright.mapping.yaml_schema import LinksEntry, MappingEntry, MappingFile


def check_mapping(problems: Problems, entries: list[MappingEntry]) -> None:
    """Report every problem that involves several fields of an entry or several entries. Also add notices of unusual
    entries.
    """
    names = [None if entry is None else entry.name for entry in entries]
    if entries and DEFAULT not in names:
        problems.at((), "an entry with `name: default` is required, for layers that no other entry selects")
    for index, entry in each(entries):
        one = problems.within(index)
        if entry.name is not None and entry.name in names[:index]:
            one.at(("name",), "another entry has the same name", entry.name)
        if entry.name is not None and entry.name.startswith("@") and entry.name[1:] not in LAYER_KINDS:
            one.unknown_name(("name",), "no such kind of layer", entry.name, [f"@{kind}" for kind in LAYER_KINDS])
        _check_links(one.within("memory_operand_links"), entry.memory_operand_links)
        for dimension, loops in (entry.spatial_mapping or {}).items():
            _note_repeated_dimensions(one.within("spatial_mapping", dimension), loops)
        _check_boundaries(one, entry)
        _check_cores(one, entry)


def _check_boundaries(problems: Problems, entry: MappingEntry) -> None:
    """Report problems of level boundaries. A boundary is the number of innermost loops that a memory level and all
    levels below it keep.

    Every loop of the ordering must have a size, and the boundary of a level must not be smaller than the boundary of
    the level below.
    """
    if entry.level_boundaries is None:
        return
    loops = entry.temporal_ordering
    if not problems.has("temporal_ordering") and (loops is None or any(loop.size is None for loop in whole(loops))):
        problems.at(("level_boundaries",), "needs a temporal_ordering that gives every loop with its size")
    for operand in ("O", "W", "I"):
        counts = whole(getattr(entry.level_boundaries, operand))
        if counts != sorted(counts):
            path = ("level_boundaries", operand)
            problems.at(path, "a level cannot have fewer loops than the level below", str(counts))


def _check_cores(problems: Problems, entry: MappingEntry) -> None:
    """Report problems of the lists of cores and of dimension names.

    An entry with `core_allocation_is_fixed` assigns groups to cores, and must list the cores. In any other entry, a
    core must not occur twice. A dimension name must never occur twice. If partial sums are added in a ring, the entry
    must not name a single core for the additions.
    """
    if not entry.core_allocation_is_fixed:
        problems.repeated(("core_allocation",), entry.core_allocation or (), "this core is named twice")
    elif not entry.core_allocation and not problems.has("core_allocation"):
        problems.at(("core_allocation_is_fixed",), "needs a core_allocation")
    if entry.reduction is not None and entry.reduction.shape == RING and entry.reduction.core is not None:
        told = "cannot be given for a ring, because each core of a ring adds one share of the outputs"
        problems.at(("reduction", "core"), told, entry.reduction.core, f"no value, or shape: {ONE_CORE} or {TREE}")
    problems.repeated(("layer_dimension_names",), entry.layer_dimension_names or (), "this name is given twice")


def _check_links(problems: Problems, links: LinksEntry | None) -> None:
    used: dict[str, str] = {}
    for operand, memory_operand in {} if links is None else links:
        if memory_operand in used:
            message = f"is also linked to operand {used[memory_operand]}; links must be one to one"
            problems.at((operand,), message, memory_operand)
        if memory_operand is not None:
            used.setdefault(memory_operand, operand)


def _note_repeated_dimensions(problems: Problems, loops: list[tuple[str, int]]) -> None:
    seen: set[str] = set()
    for index, (dimension, _) in each(loops):
        if dimension in seen:
            problems.unused((index,), f"{dimension} is given twice here; the last one counts")
        seen.add(dimension)


def refuse_plan(mapping: Mapping, file: str = "", line: int = 0) -> None:
    """Raise InputError if a mapping has a network plan. Callers that have no network, or only one core, need this
    check.
    """
    if mapping.plan is not None:
        message = (
            f"is {FORMS[mapping.plan.form].what}, which distributes the layers of one network over several cores; it"
            " cannot be used here"
        )
        raise InputError([Problem(message, file, line, allowed=_ENTRIES)])


_ENTRIES = "a list of entries, each with a `name`; one entry has the name `default`"
NO_CORE = -1
"""Placeholder for an invalid core id."""
NO_LOOP = TilingEntry("", 1)
"""Placeholder for an invalid tiling loop."""


def read_mapping(
    source: str | Path | list[dict[str, Any]] | dict[str, Any], notices: list[str] | None = None, plans: bool = False
) -> Mapping:
    """Mapping from a mapping file, or from the same data as a list of dicts. With `plans`, the file can also have a
    network plan; the data can then be a dict.

    Raises InputError with every problem of the file. Notices of legal but unusual entries are appended to `notices`.
    """
    document = document_of(source) if isinstance(source, (list, tuple, dict)) else load_yaml(source, notices)
    return mapping_of(document, notices, plans)


def mapping_of(document: YamlDocument, notices: list[str] | None = None, plans: bool = False) -> Mapping:
    """Mapping in a document that was loaded from a file. With `plans`, the document can have a network plan. Raises
    InputError with all problems. Notices are appended to `notices`.
    """
    problems = Problems(document)
    form = form_of(document.data)
    if form:
        plan = FORMS[form].read(document, problems)
        problems.finish(notices)
        mapping = Mapping((MappingConstraints(DEFAULT),), plan=plan)
        if not plans:
            refuse_plan(mapping, document.file, document.line_of(()))
        return mapping
    refuse_other_kind(document, MAPPING)
    entries = validate(MappingFile, document.data, problems)
    check_mapping(problems, entries or [])
    problems.finish(notices)
    return _mapping(entries, document)


def readable_mapping(document: YamlDocument) -> Mapping:
    """Mapping with the valid content of a document. Invalid content raises no error.

    In lists of cores and loops, a placeholder replaces each invalid item, so that all other items keep their positions.
    An entry with an invalid core or tiling loop is read without `core_allocation_is_fixed`, so that no later check
    reports different numbers of groups and cores as a second problem. A missing entry `default` is appended.
    """
    if not isinstance(document.data, list) or form_of(document.data):  # a network plan, or another kind of file
        return Mapping((MappingConstraints(DEFAULT),))
    mapping = _mapping(validate(MappingFile, document.data, Problems()) or [], document)
    if any(entry.name == DEFAULT for entry in mapping.entries):
        return mapping
    return Mapping((*mapping.entries, MappingConstraints(DEFAULT)))


def _mapping(entries: list[MappingEntry], document: YamlDocument) -> Mapping:
    return Mapping(
        tuple(
            MappingConstraints("") if entry is None else _constraints(entry, written)
            for entry, written in zip(entries, document.data, strict=True)
        )
    )


def _constraints(entry: MappingEntry, written: dict[str, Any]) -> MappingConstraints:
    """Constraints of an entry. Invalid items in lists of cores and loops become placeholders."""
    cores = tuple(NO_CORE if core is None else core for core in entry.core_allocation or ())
    within = tuple(loop or NO_LOOP for loop in entry.intra_core_tiling or ())
    between = tuple(loop or NO_LOOP for loop in entry.inter_core_tiling or ())
    has_holes = NO_CORE in cores or NO_LOOP in (*within, *between)
    return MappingConstraints(
        name=entry.name or "",
        spatial_mapping=tuple(
            # dict() keeps the last factor of a repeated dimension, at the place of the first, as the reference does.
            (dimension, tuple(dict(whole(loops)).items()))
            for dimension, loops in (entry.spatial_mapping or {}).items()
        ),
        spatial_mapping_hint=tuple(
            (dimension, tuple(whole(names))) for dimension, names in (entry.spatial_mapping_hint or {}).items()
        ),
        memory_operand_links=_links(entry.memory_operand_links, written),
        temporal_ordering=tuple(loop or TemporalOrderingEntry(WILDCARD) for loop in entry.temporal_ordering or ()),
        level_boundaries=tuple(
            (operand, tuple(bounds))
            for operand in (() if entry.level_boundaries is None else written["level_boundaries"])
            if (bounds := getattr(entry.level_boundaries, operand, None)) is not None
        ),
        core_allocation=cores,
        core_allocation_is_fixed=bool(entry.core_allocation_is_fixed and not has_holes),
        intra_core_tiling=within,
        inter_core_tiling=between,
        tiles_if_alone=bool(entry.tiles_if_alone),
        layer_dimension_names=tuple(whole(entry.layer_dimension_names)),
        reduction=_reduction(entry, written),
        memory_reach=_reach(entry),
        temporal_mapping_type=entry.temporal_mapping_type,
        access_same_data_considered_as_no_access=entry.access_same_data_considered_as_no_access,
    )


def _links(links: LinksEntry | None, written: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Pairs (layer operand, memory operand), in the order of the file. Later steps process the operands in this
    order."""
    if links is None or any(memory_operand is None for _, memory_operand in links):
        return MappingConstraints.memory_operand_links
    return tuple(written["memory_operand_links"].items())


def _reduction(entry: MappingEntry, written: JsonObject) -> PartAdditions | None:
    """Addition of partial sums that an entry asks for; None if the entry has no key `reduction`. Defaults replace an
    invalid value, so that no later check reports the cut of the reduction as a second problem.
    """
    given = entry.reduction
    if given is None:
        return None if written.get("reduction") is None else PartAdditions()
    return PartAdditions(given.shape or TREE, given.core)


def _reach(entry: MappingEntry) -> GivenReach | None:
    given = entry.memory_reach
    if given is None or given.topmost is None:
        return None
    topmost = tuple((operand, name) for operand in ("O", "W", "I") if (name := getattr(given.topmost, operand)))
    return GivenReach(topmost, tuple((given.occupied_bits or {}).items()))
