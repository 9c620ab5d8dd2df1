"""`tilewright evaluate`: the cost of given mappings, of options or of a points file with one mapping, a JSON object, a
line.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tilewright.cli.options import FILE, common_options, network_options
from tilewright.cli.parameter_options import Given, parameter_option
from tilewright.errors import InputError, MappingError, Problem, nearest_name
from tilewright.mapping.constraints import WILDCARD, Mapping, MappingConstraints, TemporalOrderingEntry, Unrolling
from tilewright.profile import REFERENCE, ModelChoice
from tilewright.search.options import BoundaryParameters, SearchOptions
from tilewright.units import LARGEST_WHOLE_NUMBER, energy_text
from tilewright.workload.graph import Workload
from tilewright.workload.layer import Layer
from tilewright.workload.network_options import NetworkOptions

if TYPE_CHECKING:
    from tilewright.cost.record import LayerRecord


Loops = tuple[tuple[str, int], ...]
Links = tuple[tuple[str, str], ...]
Boundaries = tuple[tuple[str, tuple[int, ...]], ...]
Point = tuple[Layer, MappingConstraints]
"""A layer and the whole mapping that is given for it."""
REQUIRED_KEYS = ("layer", "spatial_mapping", "loop_order")
KEYS = (*REQUIRED_KEYS, "memory_operand_links", "level_boundaries")


def read_points(path: Path, layers: Sequence[Layer]) -> list[Point]:
    """The points of a file, in its order. Raises InputError with every problem of every line."""
    by_name = {layer.name: layer for layer in layers}
    problems: list[Problem] = []
    points: list[Point] = []
    for number, line in enumerate(_text_of(path).split("\n"), 1):
        if not line.strip():
            continue
        reader = _PointReader(str(path), number, problems)
        point = reader.read(line, by_name)
        if point:
            points.append(point)
    if not points and not problems:
        problems.append(Problem("holds no point: one JSON object a line is needed", str(path)))
    if problems:
        raise InputError(problems)
    return points


def _text_of(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError([Problem("is not UTF-8 text", str(path))]) from None
    except OSError as error:
        raise InputError([Problem(f"cannot be read: {error.strerror}", str(path))]) from error


class _PointReader:
    """Reads one line, noting what is wrong with it."""

    def __init__(self, file: str, line: int, problems: list[Problem]) -> None:
        self.file = file
        self.line = line
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

    def _object(self, text: str) -> dict[str, Any] | None:
        try:
            point = json.loads(text, object_pairs_hook=self._table)
        except json.JSONDecodeError as error:
            self._note(f"is not JSON: {error.msg} at column {error.colno}")
        except (ValueError, OverflowError, RecursionError):
            self._note("is not JSON that can be read: a number is too long or the nesting too deep")
        else:
            if isinstance(point, dict):
                return point
            self._note("is not a JSON object", allowed=", ".join(KEYS))
        return None

    def _table(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
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
                self._note("must be a table of loop dimension to factor", place, _shown(factors))
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

    def _links(self, point: dict[str, Any], layer: Layer | None) -> Links:
        if "memory_operand_links" not in point:
            return MappingConstraints.memory_operand_links
        place, table = "memory_operand_links", point["memory_operand_links"]
        if not isinstance(table, dict):
            self._note("must be a table of layer operand to memory operand", place, _shown(table))
            return ()
        for operand, memory_operand in table.items():
            if layer and operand not in layer.operands:
                self._note("no such operand", f"{place}.{operand}", allowed=", ".join(layer.operands))
            if not isinstance(memory_operand, str):
                self._note("must be the name of a memory operand", f"{place}.{operand}", _shown(memory_operand))
        return tuple(table.items())

    def _boundaries(self, point: dict[str, Any], layer: Layer | None, loops: int) -> Boundaries:
        if "level_boundaries" not in point:
            return ()
        place, table = "level_boundaries", point["level_boundaries"]
        if not isinstance(table, dict):
            self._note("must be a table of layer operand to a list of numbers of loops", place, _shown(table))
            return ()
        for operand in layer.operands if layer else ():
            if operand not in table:
                self._note("needs the numbers of loops of each operand", f"{place}.{operand}")
        return tuple((operand, self._bounds(operand, bounds, layer, loops)) for operand, bounds in table.items())

    def _bounds(self, operand: str, bounds: object, layer: Layer | None, loops: int) -> tuple[int, ...]:
        """The loops up to and including each memory of an operand: they never fall, the last has all loops."""
        place = f"level_boundaries.{operand}"
        if layer and operand not in layer.operands:
            self._note("no such operand", place, allowed=", ".join(layer.operands))
        elif not isinstance(bounds, list) or not bounds or any(type(bound) is not int for bound in bounds):
            self._note("must be a list of whole numbers, one for each memory of the operand", place, _shown(bounds))
        elif bounds != sorted(bounds) or not 0 <= bounds[0] <= bounds[-1] <= loops:
            told = f"must not fall from memory to memory, nor be more than the {loops} loops of loop_order"
            self._note(told, place, _shown(bounds))
        else:
            return tuple(bounds)
        return ()

    def _check_size(self, value: object, place: str) -> None:
        # A bool is an int to Python, but not a size.
        if type(value) is not int or not 1 <= value <= LARGEST_WHOLE_NUMBER:
            self._note("must be a whole number from 1 to 2^53", place, _shown(value))

    def _note(self, message: str, place: str = "", value: str = "", allowed: str = "", nearest: str = "") -> None:
        self.problems.append(Problem(message, self.file, self.line, place, value, allowed, nearest))


def _shown(value: object) -> str:
    """A value as it stands in the file, shortened."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else text[:37] + "..."


OPEN_ORDER = "temporal_ordering leaves loops open; give every loop with its size, or use `tilewright map`"


@click.command()
@click.option("--hardware", required=True, type=FILE, help="Hardware file or artifact.")
@click.option("--workload", required=True, type=FILE, help="ONNX or YAML file, or artifact.")
@click.option("--mapping", type=FILE, help="Mapping file whose entries fix the whole mapping, as export writes.")
@click.option("--points", type=FILE, help="JSON lines: {layer, spatial_mapping, loop_order, ...}; see docs/guide.md.")
@click.option("--layer", "layer_name", default="", help="Only this layer; default: all.")
@parameter_option(BoundaryParameters, "temporal_mapping_type", default=None)
@network_options
@parameter_option(ModelChoice, "model", default=REFERENCE.name)
@common_options
def command(
    hardware: Path,
    workload: Path,
    mapping: Path | None,
    points: Path | None,
    layer_name: str,
    temporal_mapping_type: str | None,
    network_options: NetworkOptions,
    model: str,
    verbose: bool,
    as_json: bool,
) -> None:
    """Cost of given mappings: loop orders are innermost first. With --json, one record a line.

    Example: tilewright evaluate --hardware config/hardware/tpu_like.yaml --workload config/workload/resnet18.onnx
    --mapping found.yaml --layer conv1
    """
    from tilewright.cost.record import record_row
    from tilewright.search.evaluate import evaluate_given
    from tilewright.sources import existing_file, parse_accelerator, parse_workload, single_core
    from tilewright.stages.descriptions import Descriptions
    from tilewright.stages.run import read_problem

    asked = {"model": model} | ({"temporal_mapping_type": temporal_mapping_type} if temporal_mapping_type else {})
    options = Given(SearchOptions, asked)()
    if (mapping is None) == (points is None):
        raise InputError("give either --mapping or --points")
    if mapping is not None:
        problem = read_problem(Descriptions(hardware, workload, mapping, network_options), options)
        accelerator, network = problem.accelerator, problem.workload
        found = _points_of_mapping(network, problem.mapping, layer_name, temporal_mapping_type)
    else:
        accelerator, network = parse_accelerator(hardware), parse_workload(workload, model, options=network_options)
        layers = [node.layer for node in network.nodes if node.layer]
        found = read_points(existing_file(points or "", "points"), layers)
    core = single_core(accelerator)
    chosen = _chosen(found, layer_name, network)
    unit_of = {node.layer.name: node.unit for node in network.nodes if node.layer}
    refused = 0
    for layer, given in chosen:
        try:
            record = evaluate_given(layer, core, given, options)
        except MappingError as error:
            refused += 1
            reason = f"{error}: {OPEN_ORDER}" if mapping is not None and not given.temporal_ordering else str(error)
            click.echo(_refusal(layer, reason, as_json), err=not as_json)
            continue
        record = replace(record, layer=record.layer.on_unit(unit_of.get(layer.name, "")))
        click.echo(json.dumps(record_row(record)) if as_json else _text(record, verbose))
    if refused:
        raise MappingError(f"{refused} of {len(chosen)} mappings do not fit")


def _chosen(points: list[Point], layer_name: str, network: Workload) -> list[Point]:
    chosen = [point for point in points if layer_name in ("", point[0].name)]
    if not chosen:
        names = [node.layer.name for node in network.nodes if node.layer]
        raise InputError(
            [Problem("no such layer", path="layer", value=repr(layer_name), nearest=nearest_name(layer_name, names))]
        )
    return chosen


def _points_of_mapping(
    network: Workload, mapping: Mapping, layer_name: str, temporal_mapping_type: str | None
) -> list[Point]:
    """The layers with their entries. Raises InputError for entries that are no whole mapping, or another one than is
    asked for."""
    points = [
        (node.layer, mapping.constraints_for(node.layer))
        for node in network.layers_in_order
        if node.layer and layer_name in ("", node.layer.name)
    ]
    layers_of: dict[str, list[str]] = {}
    for layer, entry in points:
        layers_of.setdefault(entry.name, []).append(layer.name)
    entries = {entry.name: entry for _, entry in points}
    problems = [
        Problem(OPEN_ORDER + _for_layers(layers_of[name]), path=name)
        for name, entry in entries.items()
        if any(loop.dimension == WILDCARD or loop.size is None for loop in entry.temporal_ordering)
    ]
    problems += [
        Problem(f"the entry says otherwise than --temporal-mapping-type {temporal_mapping_type}", path=name, value=own)
        for name, entry in entries.items()
        if temporal_mapping_type and (own := entry.temporal_mapping_type or "") not in ("", temporal_mapping_type)
    ]
    if problems:
        raise InputError(problems)
    return points


def _for_layers(names: list[str]) -> str:
    """For which layers an entry counts."""
    return f" (for {len(names)} layers, such as {names[0]})" if len(names) > 1 else ""


def _refusal(layer: Layer, reason: str, as_json: bool) -> str:
    return json.dumps({"layer": {"name": layer.name}, "error": reason}) if as_json else f"{layer.name}: {reason}"


def _text(record: "LayerRecord", verbose: bool) -> str:
    from tilewright.cost.ledger import term_phrase
    from tilewright.report.loop_nest import loop_nest_text
    from tilewright.report.records import other_energies_pj

    parts = ", ".join(f"{name} {cycles:g}" for name, cycles in record.latency_breakdown_cycles.items())
    lines = [
        f"{record.layer.name}: {energy_text(record.energy_pj, 10)}, {record.latency_cycles:.10g} cycles"
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
    return "\n".join(lines) + ("\n" + loop_nest_text(record) if verbose else "")
