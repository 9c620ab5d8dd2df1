"""Points: mappings that are given one by one, each a table that names its layer; in a file one JSON object a line."""

import json
from collections.abc import Mapping as Table
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from tilewright.artifacts.files import FilePath
from tilewright.errors import InputError, Problem, nearest_name
from tilewright.mapping.constraints import MappingConstraints, TemporalOrderingEntry, Unrolling
from tilewright.units import LARGEST_WHOLE_NUMBER
from tilewright.workload.layer import Layer

Loops = tuple[tuple[str, int], ...]
Links = tuple[tuple[str, str], ...]
Boundaries = tuple[tuple[str, tuple[int, ...]], ...]
Point = tuple[Layer, MappingConstraints]
"""A layer and the whole mapping that is given for it."""
REQUIRED_KEYS = ("layer", "spatial_mapping", "loop_order")
KEYS = (*REQUIRED_KEYS, "memory_operand_links", "level_boundaries")


def read_points(given: FilePath | Sequence[Table[str, Any]], layers: Sequence[Layer]) -> list[Point]:
    """The points of a file or of a list, in its order. Raises InputError with every problem of every one."""
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
        problems.append(Problem("holds no point: one JSON object a line is needed", file))
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
    """Reads one line, noting what is wrong with it."""

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
        path = ".".join(part for part in (self.place, place) if part)
        self.problems.append(Problem(message, self.file, self.line, path, value, allowed, nearest))


def _shown(value: object) -> str:
    """A value as it stands in the file, shortened."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else text[:37] + "..."
