"""Types for the rows of tables on a schedule: cores and times of a layer, and use of a core, a memory and a link."""

from dataclasses import dataclass, field

from tilewright.base.artifacts.codec import LEFT_OUT


@dataclass(frozen=True)
class CoreUse:
    """Use of a core."""

    core: int
    """Id of the core in the accelerator file."""
    name: str
    """Name of the core file."""
    role: str
    cn_count: int
    busy_cycles: int
    utilisation: float
    """Share of the latency in which the core runs a CN."""
    array_utilisation: float
    """Share of the latency that the CNs of the core would take if all units of its array worked in every cycle."""
    energy_pj: float
    operational_energy_pj: float
    memory_energy_pj: dict[str, float]
    """Energy in pJ of each memory, by name of the memory."""
    term_energy_pj: dict[str, float] = field(default_factory=dict, metadata=LEFT_OUT)
    """Energy in pJ of each term of the on-core energy that belongs neither to the array nor to a memory, by name of the
    term.
    """


@dataclass(frozen=True)
class ScheduledLayer:
    """Cores and times of a layer in a schedule."""

    layer: int
    """Number of the layer in the CN graph."""
    name: str
    operator_type: str
    stack: int | None
    """Number of the layer stack; None for a layer without CNs."""
    cn_count: int
    groups: int
    cores: str
    """Ids of the cores that run the layer, separated by blanks."""
    first_start_cycles: int | None
    last_end_cycles: int | None
    busy_cycles: int
    """Sum of the runtimes of the CNs of the layer."""
    on_core_energy_pj: float


@dataclass(frozen=True)
class MemoryUse:
    """Use of a memory that holds data of CNs."""

    name: str
    cores: tuple[int, ...]
    """Ids of the cores that use the memory."""
    capacity_bits: int
    peak_bits: int
    peak_share: float


@dataclass(frozen=True)
class LinkUse:
    """Use of a link."""

    name: str
    kind: str
    width_bits_per_cycle: int | None
    """Width in bits per cycle; None for a link without a limit."""
    bits: int
    busy: float
    """Share of the latency in which data move over the link."""
    utilisation: float | None
    """Use of the link's width, from 0 to 1: moved bits / (width x latency). None for a link without a limit."""
