"""Artifact of a schedule, `schedule.npz`: the schedule, its energy by cause, and the problem that was scheduled.

An array in the file is called a column. Columns are named after the fields of `NodeGraph` (such as `graph.layer`),
`CostTable` (`costs.`), `CoreSystem` (`system.`) and `Schedule` (`schedule.`). A log has one column for each field of
its records, such as `schedule.transfers.piece`. The column `description` is JSON text in UTF-8 with all data that are
not arrays: schema, version, provenance, names, options, and single numbers.
"""

import json
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tilewright.base.artifacts.codec import LEFT_OUT, decode, encode
from tilewright.base.artifacts.columns import packed, read_columns
from tilewright.base.artifacts.digests import canonical_text
from tilewright.base.artifacts.envelope import SCHEMA_VERSIONS
from tilewright.base.artifacts.files import write_atomically
from tilewright.base.artifacts.seals import REMEDY
from tilewright.base.errors import ArtifactError, InputError, Problem, count_of
from tilewright.base.harmless import terminal
from tilewright.multicore.scheduling.assembled import AssembledProblem, SystemNames
from tilewright.multicore.scheduling.energy_ledger import ON_CORE, CauseEnergy, EnergyTerms, further_terms, term_pj
from tilewright.multicore.scheduling.energy_terms import energy_terms_of
from tilewright.multicore.scheduling.problem import (
    CoreSystem,
    CostTable,
    Floats,
    Integers,
    NodeGraph,
    SchedulingProblem,
)
from tilewright.multicore.scheduling.schedule import Schedule
from tilewright.multicore.scheduling.state_record import CHANGE_LOG, STREAM_LOG, TRANSFER_LOG


def with_energy(problem: SchedulingProblem, schedule: Schedule) -> Schedule:
    """Copy of the schedule with computed energy terms, which replace earlier terms."""
    return replace(schedule, energy_terms_pj=energy_terms_of(problem, schedule))


SCHEMA = "tilewright/schedule"
_DESCRIPTION = "description"
_RECORDS = {"transfers": TRANSFER_LOG, "streams": STREAM_LOG, "memory_changes": CHANGE_LOG}
_Arrays = dict[str, npt.NDArray[Any]]
_Part = TypeVar("_Part", NodeGraph, CostTable, CoreSystem)


@dataclass(frozen=True)
class _Description:
    """Content of the column `description` of a schedule file: all data of the artifact that are not arrays."""

    schema: str
    version: int
    provenance: Any
    names: SystemNames
    schedule_model: str
    off_chip_core: int
    latency_cycles: int
    on_core_energy_pj: float
    causes: tuple[tuple[str, CauseEnergy], ...]
    terms_pj: dict[str, float] = field(default_factory=dict, metadata=LEFT_OUT)
    rates_pj_a_cycle: tuple[tuple[str, float], ...] = field(default=(), metadata=LEFT_OUT)
    leakage_pj_a_cycle: float = field(default=0.0, metadata=LEFT_OUT)
    """Leakage of all cores in pJ per cycle. Only older files have this field; they have no other energy term per cycle.
    """
    operands_to_prefetch: tuple[int, ...] = field(default=(), metadata=LEFT_OUT)
    forwards_constants: bool = field(default=False, metadata=LEFT_OUT)


@dataclass(frozen=True, eq=False, repr=False)
class ScheduleArtifact:
    """Content of a schedule file, `schedule.npz`."""

    problem: SchedulingProblem
    schedule: Schedule
    names: SystemNames
    piece_tensor: Integers
    """Position, in `names.tensor_names`, of the tensor to which the piece belongs (one entry for each piece)"""
    schedule_model: str = "causal"
    provenance: Any = None
    operands_to_prefetch: tuple[int, ...] = ()
    """Memory operands (columns of `CoreSystem.core_memory`) whose constants were prefetched. For older files without
    this field, the value is ().
    """

    def __repr__(self) -> str:
        names, found = self.names, self.schedule
        counts = f"{count_of(self.graph.node_count, 'node')}, {count_of(len(found.transfers), 'transfer')}"
        return terminal(
            f"<schedule of {names.network} on {names.accelerator}: {counts}, {found.latency_cycles:,} cycles>"
        )

    @property
    def system(self) -> CoreSystem:
        """Cores, memories, links and paths of the scheduled problem."""
        return self.problem.system

    @property
    def graph(self) -> NodeGraph:
        """CNs and pieces of the scheduled problem."""
        return self.problem.graph

    @cached_property
    def cn_energy_pj(self) -> Floats:
        """Energy in pJ of the CN on its core (one entry for each CN)"""
        energy: Floats = self.problem.costs.on_core_energy_pj[self.graph.cost_row, self.schedule.allocation]
        return energy

    @cached_property
    def piece_layer(self) -> Integers:
        """Layer of the producer (one entry for each piece). For a constant or a network input, the value is the layer
        of the first CN that needs the piece
        """
        reader = np.full(len(self.graph.piece_bits), self.graph.node_count, np.int64)
        np.minimum.at(reader, self.problem.fetch_order[0], self.problem.need_cn)
        producer = self.graph.piece_producer
        layer = np.append(self.graph.layer, -1)
        found: Integers = layer[np.where(producer >= 0, producer, reader)]
        return found

    @cached_property
    def edges(self) -> tuple[Integers, Integers, Integers]:
        """Data flow between CNs, as three arrays (source CN, target CN, bits). There is one entry for each pair of CNs
        between which data flow. Source CNs are in rising order.
        """
        piece = self.problem.fetch_order[0]
        flows = np.flatnonzero(self.graph.piece_producer[piece] >= 0)
        count = max(self.graph.node_count, 1)
        # A piece that a CN reads by two operands flows once.
        key = np.unique(np.stack((self.problem.need_cn[flows], piece[flows])), axis=1) if len(flows) else None
        if key is None:
            nothing = np.zeros(0, np.int64)
            return nothing, nothing, nothing
        pair = self.graph.piece_producer[key[1]] * count + key[0]
        distinct, place = np.unique(pair, return_inverse=True)
        bits = np.zeros(len(distinct), np.int64)
        np.add.at(bits, place.reshape(-1), self.graph.piece_bits[key[1]])
        return distinct // count, distinct % count, bits


def schedule_artifact(
    assembled: AssembledProblem,
    schedule: Schedule,
    schedule_model: str = "causal",
    provenance: Any = None,
    operands_to_prefetch: tuple[int, ...] = (),
) -> ScheduleArtifact:
    """Content of a schedule file for an assembled problem and its schedule."""
    tensor = assembled.pieces.tensor.astype(np.int64)
    stated = (schedule_model, provenance, operands_to_prefetch)
    return ScheduleArtifact(assembled.problem, schedule, assembled.names, tensor, *stated)


def write_schedule(path: Path | str, artifact: ScheduleArtifact) -> None:
    """Write a schedule file atomically. Equal schedules give the same bytes."""
    schedule, problem = artifact.schedule, artifact.problem
    terms = schedule.energy_terms_pj
    description = _Description(
        schema=SCHEMA,
        version=SCHEMA_VERSIONS[SCHEMA],
        provenance=artifact.provenance,
        names=artifact.names,
        schedule_model=artifact.schedule_model,
        off_chip_core=problem.system.off_chip_core,
        latency_cycles=schedule.latency_cycles,
        on_core_energy_pj=term_pj(terms[ON_CORE]),
        causes=tuple((name, energy) for name, energy in terms.items() if isinstance(energy, CauseEnergy)),
        terms_pj=further_terms(terms),
        rates_pj_a_cycle=problem.system.rates_pj_a_cycle,
        operands_to_prefetch=artifact.operands_to_prefetch,
        forwards_constants=problem.system.forwards_constants,
    )
    text = canonical_text(encode(description)).encode()
    columns: _Arrays = {_DESCRIPTION: np.frombuffer(text, np.uint8)}
    columns |= _columns_of(problem.graph, "graph") | {"graph.piece_tensor": artifact.piece_tensor}
    columns |= _columns_of(problem.costs, "costs") | _columns_of(problem.system, "system")
    columns |= _columns_of(schedule, "schedule")
    write_atomically(path, packed(columns))


def read_schedule(path: Path | str) -> ScheduleArtifact:
    """Schedule file as an object. Raises ArtifactError if the file is missing, damaged, or of another version."""
    arrays = read_columns(path)
    try:
        data = json.loads(arrays[_DESCRIPTION].tobytes())
        if data["schema"] != SCHEMA:
            raise ArtifactError([Problem("wrong kind of artifact", str(path), value=data["schema"], allowed=SCHEMA)])
        if data["version"] != SCHEMA_VERSIONS[SCHEMA]:
            message = f"{SCHEMA} version {data['version']} was written by another version of tilewright; {REMEDY}"
            raise ArtifactError([Problem(message, str(path))])
        description = decode(_Description, data)
        before = (("leakage", description.leakage_pj_a_cycle),) if description.leakage_pj_a_cycle else ()
        rates = description.rates_pj_a_cycle or before
        numbers = {"off_chip_core": description.off_chip_core, "rates_pj_a_cycle": rates}
        numbers["forwards_constants"] = description.forwards_constants
        system = _part(CoreSystem, arrays, "system", **numbers)
        if "costs.reads_gaps" not in arrays:  # files of older versions do not say it
            rows, _, operands = arrays["costs.stream_bits"].shape
            arrays["costs.reads_gaps"] = np.ones((rows, operands), np.bool_)
        graph, costs = _part(NodeGraph, arrays, "graph"), _part(CostTable, arrays, "costs")
        return ScheduleArtifact(
            problem=SchedulingProblem(graph, costs, system),
            schedule=_schedule(arrays, description),
            names=description.names,
            piece_tensor=arrays["graph.piece_tensor"],
            schedule_model=description.schedule_model,
            provenance=description.provenance,
            operands_to_prefetch=description.operands_to_prefetch,
        )
    except ArtifactError:
        raise
    except (KeyError, ValueError, TypeError, InputError) as error:
        raise ArtifactError([Problem(f"artifact is damaged: {error}; {REMEDY}", str(path))]) from error


def _columns_of(part: NodeGraph | CostTable | CoreSystem | Schedule, prefix: str) -> _Arrays:
    columns: _Arrays = {}
    for one in fields(part):
        value, column = getattr(part, one.name), f"{prefix}.{one.name}"
        if one.name in _RECORDS:
            columns |= {f"{column}.{name}": value[name] for name in value.dtype.names}
        elif isinstance(value, np.ndarray):
            columns[column] = value
    return columns


def _part(kind: type[_Part], arrays: _Arrays, prefix: str, **numbers: Any) -> _Part:
    found: dict[str, Any] = {
        one.name: arrays[f"{prefix}.{one.name}"]
        for one in fields(kind)
        if one.name not in numbers and (one.default is MISSING or f"{prefix}.{one.name}" in arrays)
    }
    return kind(**found, **numbers)


def _schedule(arrays: _Arrays, description: _Description) -> Schedule:
    values: dict[str, Any] = {}
    for name, dtype in _RECORDS.items():
        columns = {part: arrays[f"schedule.{name}.{part}"] for part in dtype.names or ()}
        values[name] = np.zeros(len(next(iter(columns.values()))), dtype)
        for part, column in columns.items():
            values[name][part] = column
    for one in fields(Schedule):
        if f"schedule.{one.name}" in arrays:
            values[one.name] = arrays[f"schedule.{one.name}"]
    terms: EnergyTerms = {ON_CORE: description.on_core_energy_pj, **dict(description.causes), **description.terms_pj}
    return Schedule(**values, latency_cycles=description.latency_cycles, energy_terms_pj=terms)
