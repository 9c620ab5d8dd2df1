"""The cores of a family from their figures: one hardware file is read, and of the others only what is different."""

from dataclasses import replace
from typing import Any

from tilewright.errors import InputError, KeyPath
from tilewright.exploration.families import Figure, figure_of
from tilewright.hardware.core import Accelerator, Core, Port
from tilewright.hardware.dotted_paths import with_values
from tilewright.hardware.source import parse_accelerator

Settings = tuple[tuple[KeyPath, Any], ...]


class FigureReader:
    """Reads the hardware of designs, each value of a path once."""

    def __init__(self, base: dict[str, Any]) -> None:
        self.base = base
        self._known: dict[tuple[KeyPath, str, float | None], float] = {}
        """(path, value, least that it may be) -> the number that it means."""

    def whole(self, settings: Settings) -> tuple[dict[str, Any], Accelerator]:
        """The hardware file that settings make, and the accelerator in it. Raises InputError where it is none."""
        hardware = with_values(self.base, settings)
        accelerator = parse_accelerator(hardware)
        if not isinstance(accelerator, Accelerator):
            raise InputError("the base is of one core, the design of several cores")
        return hardware, accelerator

    def core(self, settings: Settings, first: Settings, core: Core) -> Core:
        """The core that settings make, which differ in figures from `first`, which makes `core`.

        Raises InputError where it is no accelerator.
        """
        if len(settings) != len(first):
            return self.whole(settings)[1].cores[0]
        changed: dict[Figure, float] = {}
        for (path, value), (other, known) in zip(settings, first, strict=True):
            if path != other:
                return self.whole(settings)[1].cores[0]
            if value == known and type(value) is type(known):
                continue
            figure = figure_of(self.base, path)
            number = None if figure is None else self._number(path, value, figure, first, core)
            if figure is None or number is None:
                return self.whole(settings)[1].cores[0]
            changed[figure] = number
        return with_figures(core, changed)

    def _number(self, path: KeyPath, value: Any, figure: Figure, first: Settings, core: Core) -> float | None:
        """What a value means in the place of another; None where it changes more. Raises InputError."""
        key = path, repr(value), _least(core, figure)
        if key not in self._known:
            read = self.whole((*first, (path, value)))[1].cores[0]
            number = number_at(read, figure)
            if number is None or with_figures(core, {figure: number}) != read:
                return None
            self._known[key] = number
        return self._known[key]


def number_at(core: Core, figure: Figure) -> float | None:
    """A figure of a core; None where there is no such part."""
    if figure.memory is None:
        return float(getattr(core.operational_array, figure.field))
    memory = next((memory for memory in core.memories if memory.name == figure.memory), None)
    if memory is None or figure.port is None:
        return None if memory is None else float(getattr(memory, figure.field))
    port = next((port for port in memory.ports if port.name == figure.port), None)
    return None if port is None else getattr(port, figure.field)  # a whole number of bits


def _least(core: Core, figure: Figure) -> float | None:
    """What a figure may not fall below in a core: a word is no narrower than its smallest part. None: nothing."""
    return None if figure.port is None else number_at(core, replace(figure, field="bandwidth_min_bits"))


def with_figures(core: Core, figures: dict[Figure, float]) -> Core:
    """The core with other figures."""
    if not figures:
        return core
    array = {figure.field: number for figure, number in figures.items() if figure.memory is None}
    memories = []
    for memory in core.memories:
        own = {figure: number for figure, number in figures.items() if figure.memory == memory.name}
        if own:
            ports = memory.ports
            wide = {figure.port: number for figure, number in own.items() if figure.port is not None}
            if wide:
                ports = tuple(_widened(port, wide) for port in ports)
            fields: dict[str, Any] = {figure.field: number for figure, number in own.items() if figure.port is None}
            memory = replace(memory, ports=ports, **fields)
        memories.append(memory)
    unit = replace(core.operational_array, **array) if array else core.operational_array  # type: ignore[arg-type]
    return replace(core, operational_array=unit, memories=tuple(memories))


def _widened(port: Port, wide: dict[str, float]) -> Port:
    return replace(port, bandwidth_max_bits=int(wide[port.name])) if port.name in wide else port
