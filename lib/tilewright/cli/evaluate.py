"""`tilewright evaluate`: costs of given mappings, from a mapping file or a file of points.

A file of points has one mapping per line, as a JSON object.
"""

import json
from collections.abc import Callable, Sequence
from collections.abc import Mapping as Table
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tilewright.base.artifacts.files import FilePath, make_folder, write_atomically
from tilewright.base.errors import BrokenRuleError, InputError, Label, MappingError, Problem, count_of, nearest_name
from tilewright.base.harmless import terminal, terminal_lines
from tilewright.base.json_values import JsonObject
from tilewright.base.units import LARGEST_WHOLE_NUMBER, energy_text
from tilewright.base.unused import refuse_unused, unused_in, with_unused
from tilewright.cli.options import (
    FILE,
    common_options,
    echo_notices,
    network_keywords,
    network_options,
    repeated_options,
    strict_option,
)
from tilewright.cli.parameter_options import Given, Named, parameter_keywords, parameter_option
from tilewright.cli.terminal import echo_json_text, echo_text
from tilewright.mapping.constraints import (
    WILDCARD,
    Mapping,
    MappingConstraints,
    TemporalOrderingEntry,
    Unrolling,
    as_unrolling,
)
from tilewright.search.options import EvaluateOptions, SearchOptions
from tilewright.workload.graph import Workload
from tilewright.workload.layer import Layer
from tilewright.workload.network_options import NetworkOptions

if TYPE_CHECKING:
    from tilewright.cost.record import LayerRecord
    from tilewright.hardware.core import Core
    from tilewright.pipeline.sources import AcceleratorSource, MappingSource, WorkloadSource
    from tilewright.pipeline.stages.descriptions import Descriptions


Loops = tuple[tuple[str, int], ...]
Links = tuple[tuple[str, str], ...]
Boundaries = tuple[tuple[str, tuple[int, ...]], ...]
Point = tuple[Layer, MappingConstraints]
"""Pair (layer, complete mapping of the layer)."""
GIVEN = SearchOptions(model=EvaluateOptions.model)
"""Options for the evaluation of given mappings, if the caller gives no options."""
REQUIRED_KEYS = ("layer", "spatial_mapping", "loop_order")
KEYS = (*REQUIRED_KEYS, "memory_operand_links", "level_boundaries")


def read_points(given: FilePath | Sequence[Table[str, Any]], layers: Sequence[Layer]) -> list[Point]:
    """Points of a file or of a list, in the same order. Raises InputError with the problems of all points."""
    by_name = {layer.name: layer for layer in layers}
    problems: list[Problem] = []
    if isinstance(given, str | PathLike):
        file = str(given)
        lines = [line for line in enumerate(_text_of(Path(given)).split("\n"), 1) if line[1].strip()]
        read = [_PointReader(file, number, "", problems).read(line, by_name) for number, line in lines]
    else:
        file = "points"
        texts = [json.dumps(point, default=repr) for point in given]
        read = [
            _PointReader("", 0, f"points[{place}]", problems).read(text, by_name) for place, text in enumerate(texts)
        ]
    if not read:
        problems.append(Problem("has no points: it must have one JSON object per line", file))
    if problems:
        raise InputError(problems)
    return [point for point in read if point]


def _text_of(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError([Problem("is not UTF-8 text", str(path))]) from None
    except OSError as error:
        raise InputError([Problem(f"cannot be read: {error.strerror}", str(path))]) from error


class _PointReader:
    """Reader of one point. It adds the problems of the point to `problems`."""

    def __init__(self, file: str, line: int, place: str, problems: list[Problem]) -> None:
        self.file = file
        self.line = line
        self.place = place
        self.problems = problems

    def read(self, text: str, layers: dict[str, Layer]) -> Point | None:
        before = len(self.problems)
        point = self._object(text)
        if point is None:
            return None
        for key in point:
            if key not in KEYS:
                self._note("unknown key", key, allowed=", ".join(KEYS), nearest=nearest_name(key, KEYS))
        for key in REQUIRED_KEYS:
            if key not in point:
                self._note("required key is missing", key)
        layer = self._layer(point["layer"], layers) if "layer" in point else None
        spatial = self._unrolling(point.get("spatial_mapping", {}))
        order = self._order(point.get("loop_order", []))
        links = self._links(point, layer)
        boundaries = self._boundaries(point, layer, len(order))
        if layer is None or len(self.problems) > before:
            return None
        loops = tuple(TemporalOrderingEntry(dimension, size) for dimension, size in order)
        return layer, MappingConstraints(layer.name, spatial, (), links, loops, boundaries)

    def _object(self, text: str) -> JsonObject | None:
        try:
            point = json.loads(text, object_pairs_hook=self._table)
        except json.JSONDecodeError as error:
            self._note(f"is not JSON: {error.msg} at column {error.colno}")
        except (ValueError, OverflowError, RecursionError):
            self._note("is JSON that cannot be read: a number is too long, or the nesting is too deep")
        else:
            if isinstance(point, dict):
                return point
            self._note("is not a JSON object", allowed=", ".join(KEYS))
        return None

    def _table(self, pairs: list[tuple[str, Any]]) -> JsonObject:
        table = dict(pairs)
        if len(table) < len(pairs):
            self._note("a key is given twice", value=", ".join(repr(key) for key, _ in pairs)[:80])
        return table

    def _layer(self, name: object, layers: dict[str, Layer]) -> Layer | None:
        if isinstance(name, str) and name in layers:
            return layers[name]
        near = nearest_name(name, list(layers)) if isinstance(name, str) else ""
        self._note("no such layer", "layer", _shown(name), nearest=near)
        return None

    def _unrolling(self, table: object) -> Unrolling:
        if not isinstance(table, dict):
            self._note("must be a table of array dimensions", "spatial_mapping", _shown(table))
            return ()
        found = []
        for array_dimension, factors in table.items():
            place = f"spatial_mapping.{array_dimension}"
            if not isinstance(factors, dict):
                self._note("must be a table from loop dimensions to factors", place, _shown(factors))
                continue
            for dimension, factor in factors.items():
                self._check_size(factor, f"{place}.{dimension}")
            found.append((array_dimension, tuple(factors.items())))
        return tuple(found)

    def _order(self, loops: object) -> Loops:
        if not isinstance(loops, list):
            self._note("must be a list of [dimension, size]", "loop_order", _shown(loops))
            return ()
        found = []
        for index, loop in enumerate(loops):
            place = f"loop_order[{index}]"
            if not isinstance(loop, list) or len(loop) != 2 or not isinstance(loop[0], str):
                self._note("must be [dimension, size]", place, _shown(loop))
                continue
            self._check_size(loop[1], place)
            found.append((loop[0], loop[1]))
        return tuple(found)

    def _links(self, point: JsonObject, layer: Layer | None) -> Links:
        if "memory_operand_links" not in point:
            return MappingConstraints.memory_operand_links
        place, table = "memory_operand_links", point["memory_operand_links"]
        if not isinstance(table, dict):
            self._note("must be a table from layer operands to memory operands", place, _shown(table))
            return ()
        for operand, memory_operand in table.items():
            if layer and operand not in layer.operands:
                self._note("no such operand", f"{place}.{operand}", allowed=", ".join(layer.operands))
            if not isinstance(memory_operand, str):
                self._note("must be the name of a memory operand", f"{place}.{operand}", _shown(memory_operand))
        return tuple(table.items())

    def _boundaries(self, point: JsonObject, layer: Layer | None, loops: int) -> Boundaries:
        if "level_boundaries" not in point:
            return ()
        place, table = "level_boundaries", point["level_boundaries"]
        if not isinstance(table, dict):
            self._note("must be a table with a list of loop counts for each layer operand", place, _shown(table))
            return ()
        for operand in layer.operands if layer else ():
            if operand not in table:
                self._note("is missing: each operand needs a list of loop counts", f"{place}.{operand}")
        return tuple((operand, self._bounds(operand, bounds, layer, loops)) for operand, bounds in table.items())

    def _bounds(self, operand: str, bounds: object, layer: Layer | None, loops: int) -> tuple[int, ...]:
        """Level boundaries of an operand, from the value `bounds`: one number for each memory, innermost memory first.
        The number says how many loops are in this memory and in all memories further inside.

        The numbers must not decrease, and the last one must be at most `loops`, the number of all loops. A wrong value
        is reported, and the result is then ().
        """
        place = f"level_boundaries.{operand}"
        if layer and operand not in layer.operands:
            self._note("no such operand", place, allowed=", ".join(layer.operands))
        elif not isinstance(bounds, list) or not bounds or any(type(bound) is not int for bound in bounds):
            self._note(
                "must be a list of whole numbers, one loop count for each memory of the operand", place, _shown(bounds)
            )
        elif bounds != sorted(bounds) or not 0 <= bounds[0] <= bounds[-1] <= loops:
            told = f"loop counts must not decrease, and must be from 0 to {loops}, the number of loops in loop_order"
            self._note(told, place, _shown(bounds))
        else:
            return tuple(bounds)
        return ()

    def _check_size(self, value: object, place: str) -> None:
        # In Python a bool is an int, but it is not a size.
        if type(value) is not int or not 1 <= value <= LARGEST_WHOLE_NUMBER:
            self._note("must be a whole number from 1 to 2^53", place, _shown(value))

    def _note(self, message: str, place: str = "", value: str = "", allowed: str = "", nearest: str = "") -> None:
        path = ".".join(part for part in (self.place, place) if part)
        self.problems.append(Problem(message, self.file, self.line, path, value, allowed, nearest))


def _shown(value: object) -> str:
    """Text of a value as in the file, cut to 40 characters."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else text[:37] + "..."


OPEN_ORDER = "temporal_ordering does not fix every loop; give every loop with its size, or use `tilewright map`"


@click.command()
@click.option("--hardware", required=True, type=FILE, help="Hardware file or artifact.")
@click.option("--workload", required=True, type=FILE, help="ONNX or YAML file, or artifact.")
@click.option(
    "--mapping", type=FILE, help="Mapping file whose entries fix complete mappings, as `tilewright export` writes it."
)
@click.option(
    "--points",
    type=FILE,
    help="File of points, JSON lines: {layer, spatial_mapping, loop_order, ...}; see"
    " docs/mappings/mapping-file.md#keep-a-mapping.",
)
@click.option("--layer", default="", help="Name of the only layer to evaluate; default: all layers.")
@parameter_option(EvaluateOptions, "temporal_mapping_type", default=None)
@click.option("-o", "--output", type=FILE, help="File for the JSON lines that --json prints.")
@network_options
@parameter_option(EvaluateOptions, "model", default=EvaluateOptions.model)
@strict_option()
@common_options
def command(
    hardware: Path,
    workload: Path,
    mapping: Path | None,
    points: Path | None,
    layer: str,
    temporal_mapping_type: str | None,
    output: Path | None,
    network_options: NetworkOptions,
    model: str,
    strict: bool,
    verbose: bool,
    as_json: bool,
) -> None:
    """Compute the costs of given mappings; loop orders are innermost first. With --json, the command prints one record
    per line.

    Example: tilewright evaluate --hardware config/hardware/zigzag/tpu_like.yaml --workload
    config/workload/resnet18.onnx --mapping found.yaml --layer conv1
    """
    from tilewright.pipeline.stages.descriptions import Descriptions

    def tell(one: "_Evaluated") -> None:
        if as_json:
            echo_json_text(one.line)
        else:
            text = f"{terminal(one.layer.name)}: {one.reason}" if one.record is None else _text(one.record, verbose)
            echo_text(text, err=one.record is None, nl=True)

    asked = {"model": model} | ({"temporal_mapping_type": temporal_mapping_type} if temporal_mapping_type else {})
    given = Descriptions(hardware, workload, mapping, network_options)
    which = (points, layer, Given(EvaluateOptions, asked), GIVEN, output)
    found = _evaluated(given, *which, strict, tell, echo_notices)
    refused = sum(one.record is None for one in found)
    if refused:
        raise MappingError(_refused(refused, len(found)))


@network_keywords
@parameter_keywords(asked=EvaluateOptions)
def evaluate(
    layer: Layer | str = "",
    core: "Core | None" = None,
    spatial_mapping: Table[str, Table[str, int]] | Unrolling | None = None,
    loop_order: Sequence[tuple[str, int]] | None = None,
    *,
    asked: Named[EvaluateOptions],
    memory_operand_links: Sequence[tuple[str, str]] = MappingConstraints.memory_operand_links,
    level_boundaries: Table[str, Sequence[int]] | None = None,
    options: SearchOptions | None = None,
    hardware: "AcceleratorSource | None" = None,
    workload: "WorkloadSource | None" = None,
    mapping: "MappingSource | None" = None,
    points: FilePath | Sequence[Table[str, Any]] | None = None,
    output: FilePath | None = None,
    network_options: NetworkOptions | None = None,
    strict: bool = False,
) -> "LayerRecord | tuple[LayerRecord, ...]":
    """Costs of given mappings: a record for one mapping of a layer on a core, or a tuple of records for many mappings.

    For one mapping, give the objects `layer`, `core`, `spatial_mapping` and `loop_order` (innermost loop first). For
    many mappings, give `hardware`, `workload`, and `mapping` or `points` (a file of JSON lines, or a list of tables);
    `layer` is then the name of the only layer to evaluate. `level_boundaries` has, for each operand, one number for
    each memory: how many loops are in this memory and in all memories below it. Without it, the allocator places the
    loops. `output` is the file for the results, with one JSON line for each mapping.

    Raises InputError for wrong input files, and with `strict` for input without effect. Raises MappingError if a
    mapping does not fit. If many mappings are given, all are evaluated before this error, and `output` also has a line
    for each mapping that does not fit.
    """
    from tilewright.pipeline.stages.descriptions import Descriptions

    file = None if output is None else Path(output)
    if isinstance(layer, Layer):
        _refuse(f"cannot be given with layer {layer.name}", hardware=hardware, workload=workload, mapping=mapping)
        if core is None or spatial_mapping is None or loop_order is None:
            raise InputError("a layer needs a core, a spatial_mapping and a loop_order")
        from tilewright.search import evaluate as engine

        links = tuple((operand, memory) for operand, memory in memory_operand_links)
        mapped = (links, as_unrolling(spatial_mapping), tuple((dimension, size) for dimension, size in loop_order))
        chosen = _options(options or GIVEN, asked)
        record = engine.evaluate(layer, core, *mapped, chosen, level_boundaries)
        _write(file, [_Evaluated(layer, record)])
        return record
    if not isinstance(layer, str):
        raise InputError(
            [Problem("is neither a layer nor the name of a layer", path="layer", value=type(layer).__name__)]
        )
    _refuse("needs a layer object", core=core, spatial_mapping=spatial_mapping, loop_order=loop_order)
    missing = [name for name, one in (("hardware", hardware), ("workload", workload)) if one is None]
    if missing:
        raise InputError([Problem("is required if no layer object is given", path=name) for name in missing])
    given = Descriptions(hardware, workload, mapping, network_options or NetworkOptions())
    which = (points, layer, asked, options or GIVEN, file)
    found = _evaluated(given, *which, strict, lambda one: None, lambda notices: None)
    refused = [f"{one.layer.name}: {one.reason}" for one in found if one.record is None]
    if refused:
        raise MappingError(_refused(len(refused), len(found)), *refused)
    return tuple(one.record for one in found if one.record is not None)


def _refused(refused: int, all_of_them: int) -> str:
    """Message with the number of mappings that do not fit."""
    return f"{refused:,} of {count_of(all_of_them, 'mapping')} {'does' if refused == 1 else 'do'} not fit"


@dataclass(frozen=True)
class _Evaluated:
    """Result of the evaluation of one mapping."""

    layer: Layer
    record: "LayerRecord | None"
    """Record with the costs of the mapping; None if the mapping does not fit into the memories."""
    reason: str = ""
    notices: tuple[str, ...] = ()
    """Notices of the input files."""

    @property
    def line(self) -> str:
        """Result as one line of JSON text."""
        from tilewright.cost.record import record_row

        refusal = {"layer": {"name": self.layer.name}, "error": self.reason}
        return json.dumps(with_unused(refusal if self.record is None else record_row(self.record), self.notices))


def _evaluated(
    given: "Descriptions",
    points: FilePath | Sequence[Table[str, Any]] | None,
    layer_name: str,
    asked: Given[EvaluateOptions],
    base: SearchOptions,
    output: Path | None,
    strict: bool,
    tell: Callable[[_Evaluated], None],
    tell_notices: Callable[[Sequence[str]], None],
) -> list[_Evaluated]:
    """Results of all mappings. The function `tell` gets each result as soon as it exists. If `output` is given, the
    results are also written there.
    """
    from tilewright.pipeline.sources import existing_file, parse_accelerator, parse_workload, single_core
    from tilewright.pipeline.stages.run import read_problem
    from tilewright.search.evaluate import evaluate_given

    options = _options(base, asked)
    notices: list[str] = [*repeated_options()]
    if (given.mapping is None) == (points is None):
        raise InputError("give either the option mapping or the option points")
    if points is None:
        problem = read_problem(given, options)
        accelerator, network = problem.accelerator, problem.workload
        notices += problem.notices
        chosen_type = str(asked.values.get("temporal_mapping_type") or "")
        found = _points_of_mapping(network, problem.mapping, layer_name, chosen_type)
        places = _places_in_mapping(problem.mapping, given.mapping_file)
    else:
        assert given.hardware is not None
        assert given.workload is not None
        accelerator = parse_accelerator(given.hardware, notices)
        network = parse_workload(given.workload, options.model, options=given.network_options, notices=notices)
        layers = [node.layer for node in network.nodes if node.layer]
        file = isinstance(points, str | PathLike)
        found = read_points(existing_file(points, "points") if file else points, layers)  # type: ignore[arg-type]
        places = _places_in_points(points, found) if isinstance(points, str | PathLike) else {}
    core = single_core(accelerator)
    chosen = _chosen(found, layer_name, network)
    unit_of = {node.layer.name: node.unit for node in network.nodes if node.layer}
    unused = tuple(unused_in(notices))
    refuse_unused(unused, strict)
    tell_notices(unused)
    if output:
        make_folder(output.parent)
    done = []
    for layer, entry in chosen:
        try:
            record = evaluate_given(layer, core, entry, options)
            record = replace(record, layer=record.layer.on_unit(unit_of.get(layer.name, "")))
            one = _Evaluated(layer, record, notices=unused)
        except MappingError as error:
            is_open = points is None and not entry.temporal_ordering
            place = places.get(id(entry), "") if isinstance(error, BrokenRuleError) else ""
            one = _Evaluated(layer, None, f"{place}{error}: {OPEN_ORDER}" if is_open else f"{place}{error}", unused)
        tell(one)
        done.append(one)
    _write(output, done)
    return done


def _options(base: SearchOptions, asked: Given[EvaluateOptions]) -> SearchOptions:
    """Options with the values that `asked` sets. All other values come from `base`."""
    made = asked()
    return replace(base, **{name: getattr(made, name) for name in asked.values})


def _write(output: Path | None, found: list[_Evaluated]) -> None:
    if output:
        write_atomically(output, "".join(f"{one.line}\n" for one in found))


def _refuse(message: str, **given: object) -> None:
    """Raise InputError if an argument in `given` is not None. There is one problem for each such argument, with its
    name and the text `message`.
    """
    problems = [Problem(message, path=name) for name, one in given.items() if one is not None]
    if problems:
        raise InputError(problems)


def _chosen(points: list[Point], layer_name: str, network: Workload) -> list[Point]:
    chosen = [point for point in points if layer_name in ("", point[0].name)]
    if not chosen:
        names = [node.layer.name for node in network.nodes if node.layer]
        raise InputError(
            [
                Problem(
                    "no such layer",
                    path="layer",
                    value=repr(layer_name),
                    nearest=nearest_name(layer_name, names),
                )
            ]
        )
    return chosen


def _points_of_mapping(network: Workload, mapping: Mapping, layer_name: str, temporal_mapping_type: str) -> list[Point]:
    """Pairs (layer, entry of the mapping file for this layer). If `layer_name` is not '', only the layer with this name
    is included.

    Raises InputError for an entry that does not fix every loop. If `temporal_mapping_type` is not '', also raises
    InputError for an entry that states another type.
    """
    points = [
        (node.layer, mapping.constraints_for(node.layer))
        for node in network.layers_in_order
        if node.layer and layer_name in ("", node.layer.name)
    ]
    entries = {entry.name: entry for _, entry in points}
    layers_of = {name: [layer.name for layer, entry in points if entry.name == name] for name in entries}
    problems = [
        Problem(OPEN_ORDER + _for_layers(layers_of[name]), path=Label(name))
        for name, entry in entries.items()
        if any(loop.dimension == WILDCARD or loop.size is None for loop in entry.temporal_ordering)
    ]
    contradicts = f"the entry contradicts the option temporal_mapping_type {temporal_mapping_type}"
    problems += [
        Problem(contradicts, path=Label(name), value=own)
        for name, entry in entries.items()
        if temporal_mapping_type and (own := entry.temporal_mapping_type or "") not in ("", temporal_mapping_type)
    ]
    if problems:
        raise InputError(problems)
    return points


def _places_in_mapping(mapping: Mapping, file: str) -> dict[int, str]:
    """Beginning of a message, such as `mapping.yaml:4 `, for each entry of a mapping file. The keys are the ids of the
    entry objects. The result is {} if there is no file.
    """
    from tilewright.base.artifacts.envelope import is_artifact
    from tilewright.mapping.file_checks import document_behind

    if not file or is_artifact(Path(file)):
        return {}
    document = document_behind(mapping, file)
    keys = ((index, "temporal_ordering") for index in range(len(mapping.entries)))
    return {id(mapping.entries[key[0]]): f"{file}:{document.line_of(key)} " for key in keys}


def _places_in_points(file: FilePath, points: list[Point]) -> dict[int, str]:
    """Beginning of a message, such as `points.jsonl:4 `, for each point of a file with one point per line. The key of a
    point is the `id` of its constraints.
    """
    lines = [number for number, text in enumerate(_text_of(Path(file)).split("\n"), 1) if text.strip()]
    return {id(entry): f"{file}:{number} " for (_, entry), number in zip(points, lines, strict=True)}


def _for_layers(names: list[str]) -> str:
    """Text with the number of layers in `names` and the name of the first one; '' for one layer. `names` has the layers
    to which an entry of a mapping file applies.
    """
    return f" (for {len(names)} layers, such as {names[0]})" if len(names) > 1 else ""


def _text(record: "LayerRecord", verbose: bool) -> str:
    from tilewright.cost.ledger import term_phrase
    from tilewright.results.loop_nest import loop_nest_text
    from tilewright.results.records import other_energies_pj

    parts = ", ".join(f"{name} {cycles:,.0f}" for name, cycles in record.latency_breakdown_cycles.items())
    lines = [
        f"{record.layer.name}: {energy_text(record.energy_pj)}, {record.latency_cycles:,.0f} cycles"
        f" (model {record.model})",
        f"  cycles: {parts}",
        *(
            f"  energy of {term_phrase(term)} {energy_text(energy)}"
            for term, energy in other_energies_pj(record).items()
        ),
    ]
    for operand, levels in record.energy_breakdown_pj.items():
        for level, directions in enumerate(levels):
            total = sum(directions.values())
            split = ", ".join(f"{direction} {energy_text(value)}" for direction, value in directions.items())
            lines.append(f"  {operand} at {record.memory_levels[operand][level]}: {energy_text(total)} ({split})")
    return terminal_lines(lines) + ("\n" + loop_nest_text(record) if verbose else "")
