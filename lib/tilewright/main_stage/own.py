"""Support for stages that users write for the class `MainStage` of ZigZag.

Each user's stage becomes one stage of a pipeline of tilewright.

A user's stage is constructed with keyword arguments. The user's stage constructs the stages below it, and yields their
results.

Errors in user's stages are reported with their file and line.
"""

from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from types import CodeType
from typing import Any, ClassVar, cast

import numpy as np

from tilewright.base.errors import InputError, Problem, TilewrightError
from tilewright.base.measures import ENERGY_PJ, LATENCY_CYCLES
from tilewright.base.objectives import energy_delay_product
from tilewright.cost.record import LayerRecord
from tilewright.main_stage.costing import costed
from tilewright.main_stage.evaluation import CostModelEvaluation, CumulativeCME
from tilewright.main_stage.layer import LayerNode, TemporalMapping
from tilewright.main_stage.protocol import Pair
from tilewright.main_stage.views import LAYER, TEMPORAL, Keywords, NotHandedOnError, keywords_of
from tilewright.pipeline.stages.base import Rest, Same, Stage, problem_in_code
from tilewright.pipeline.stages.descriptions import Descriptions, NetworkProblem
from tilewright.pipeline.stages.items import CandidateTally, Evaluations, MappedWorkload
from tilewright.pipeline.stages.layers import tally_key
from tilewright.pipeline.stages.reductions import Sum, summed
from tilewright.search.batch import CostedBatch, OrderBatch
from tilewright.workload.graph import WorkloadNode

AT_ONCE = 1024
"""Largest number of CMEs that a user's stage passes to the stage above in one result. All CMEs of a result belong to
one batch of loop orders.
"""


class _Any(type):
    """Metaclass of `Anything`. Every object counts as an instance of `Anything`. A user's stage accepts items of the
    type `Anything`, so it can be in any position of a pipeline, also between parsers.
    """

    def __instancecheck__(cls, instance: object) -> bool:
        return True

    def __subclasscheck__(cls, subclass: type) -> bool:
        return True


class Anything(metaclass=_Any):
    """Item of any type."""


@dataclass
class Session:
    """State of one run of a script. The pipeline itself keeps no state."""

    node: WorkloadNode | None = None
    """Layer that is being mapped. The value is None if no user's stage is below Workload, because layers are not mapped
    one after another in this case.
    """
    layer: LayerNode | None = None
    """View of the layer that is being mapped, for the user's stages."""
    said: dict[Any, Pair] = field(default_factory=dict)
    """(CME, further information) pairs that user's stages yielded, by mapping."""
    beside: dict[Any, Any] = field(default_factory=dict)
    """Pairs (CME, further information) of all mappings that a stage of the class Reduction compared, by the mapping
    that the Reduction kept. The table is empty if the script does not ask for these pairs (keyword
    `reduce_minimal_keep_others`).
    """
    saved: dict[str, list[Any]] = field(default_factory=dict)
    """Objects that have been written to files so far, by file."""
    silent: list[Problem] = field(default_factory=list)
    """Problems of user's stages that yielded nothing for the present layer. The list is cleared before each layer."""


_SESSION: ContextVar[Session | None] = ContextVar("session", default=None)


def session() -> Session:
    """Session of the running script. A script that runs a stage without MainStage has no session; a new session is then
    made.
    """
    found = _SESSION.get()
    if found is None:
        found = Session()
        _SESSION.set(found)
    return found


def new_session() -> Session:
    """New session, which becomes the session of the running script."""
    found = Session()
    _SESSION.set(found)
    return found


Attached = dict[int, tuple[Any, list[Pair]]]
"""Results with their pairs (CME, further information). The key is the `id` of a result; the value is the pair (result,
list of its pairs).
"""


def attach(attached: Attached, result: Any, pairs: list[Pair]) -> Any:
    """Keep the (CME, further information) pairs of a result in `attached`. Returns the unchanged result."""
    attached[id(result)] = result, pairs
    return result


def mapping_key(batch: OrderBatch, row: int) -> Any:
    """Key that identifies a mapping among all mappings of a layer."""
    return id(batch.problem), batch.loop_order(row), batch.level_boundaries(row)


@dataclass(frozen=True, eq=False)
class OwnStage(Stage):
    """Stage of tilewright that runs one user's stage written for zigzag-dse."""

    maker: Callable[..., Any] = None  # type: ignore[assignment]
    below: Sequence[Any] = ()
    """Stages below the user's stage, as listed in the script."""
    keywords: Keywords = field(default_factory=dict)
    session: Session = field(default_factory=Session)
    is_below_others: bool = False
    """True if a stage of tilewright, other than a parser, is above the user's stage. The user's stage must then yield
    CMEs (cost model evaluations), because the stage above accepts nothing else.
    """
    attached: Attached = field(default_factory=dict)
    """(CME, further information) pairs of the results that this stage yields."""
    model: str = ""
    """Name of the model profile of the stages below the user's stage; '' if these stages have no model."""
    minimises: str = ""
    """Objective of the stages below the user's stage; '' if these stages have no objective."""
    after: tuple[Stage, ...] = ()
    """Stages below the user's stage, as stages of tilewright."""

    takes: ClassVar[type] = Anything
    collects = object

    @classmethod
    def name(cls) -> str:
        """Name of the user's class."""
        return cls.__name__

    def run(self, item: Any, rest: Rest) -> Iterator[Any]:
        """Yield the results of the user's stage as results of tilewright."""
        pairs = (pair for keywords in self._each(item) for pair in self.generate(keywords))
        yield from self._results(pairs, item)

    def _each(self, item: Any) -> Iterator[Keywords]:
        """Keywords for an item of the pipeline. For a batch of loop orders, keywords are yielded once for each order
        that fits.
        """
        if not isinstance(item, OrderBatch):
            yield self._keywords(item)
            return
        rows = np.flatnonzero(costed(item).fits)
        own = self._keywords(item.problem)
        for row in rows.tolist():
            yield own | {TEMPORAL: TemporalMapping._of(item, row, own.get("layer"))}

    def _keywords(self, item: Any) -> Keywords:
        """Keywords of the script, together with the keywords that describe an item."""
        layer = {} if self.session.layer is None else {LAYER: self.session.layer}
        return {**layer, **self.keywords, **keywords_of(item, self.session.node)}

    def generate(self, keywords: Keywords) -> Iterator[Pair]:
        """Yield the (CME, further information) pairs of the user's stage. Raises InputError with file and line for
        errors in its code."""
        count = 0
        try:
            stage = self.maker(list(self.below), **keywords)
            results = stage.run()
            if not hasattr(results, "__iter__"):
                raise self.fault(
                    f"run returned {results!r}; it must yield pairs (CostModelEvaluation, further information)"
                )
            for pair in results:
                if not isinstance(pair, tuple) or len(pair) != 2:
                    raise self.fault(
                        f"run yielded {pair!r}; it must yield pairs (CostModelEvaluation, further information)"
                    )
                count += 1
                yield pair
        except NotHandedOnError as error:
            (problem,) = error.problems
            message = f"{problem.path} {problem.message}"
            raise InputError([replace(self.problem(message), allowed=problem.allowed)]) from error
        except TilewrightError:
            raise
        except Exception as error:
            problem = problem_in_code(error, file_of(self.maker), path=name_of(self.maker))
            raise InputError([problem]) from error
        if not count:
            self.session.silent.append(self.problem("yielded nothing"))

    def problem(self, message: str) -> Problem:
        """Problem in a user's stage, with the file and the line of the stage's code."""
        file = file_of(self.maker)
        return Problem(message, shown_path(file), line_of(self.maker), name_of(self.maker))

    def fault(self, message: str) -> InputError:
        """Error with a single problem in a user's stage."""
        return InputError([self.problem(message)])

    def _results(self, pairs: Iterator[Pair], item: Any) -> Iterator[Any]:
        if isinstance(item, NetworkProblem):
            yield from (self._of_network(pair, item) for pair in pairs)
            return
        if isinstance(item, Descriptions) or type(item).__module__.startswith("tilewright.pipeline.stages.multi"):
            yield from (attach(self.attached, _Raw(), [pair]) for pair in pairs)
            return
        waiting: list[CostModelEvaluation] = []
        for cme, extra in pairs:
            if not isinstance(cme, CostModelEvaluation):
                if isinstance(cme, list) and not self.is_below_others:
                    yield self._raw((cme, extra))
                    continue
                raise self.fault(f"run yielded {type(cme).__name__} in place of the CME of a mapping of a layer")
            self._remember(cme, extra)
            if waiting and (waiting[0]._costs is not cme._costs or len(waiting) == AT_ONCE):
                yield together(waiting)
                waiting = []
            waiting.append(cme)
        if waiting:
            yield together(waiting)

    def _remember(self, cme: CostModelEvaluation, extra: Any) -> None:
        """Keep the pair (CME, further information) that the user's stage yielded for a mapping. The pair is kept only
        in two cases: the pair differs from the pair of the stages below, or another pair is already kept for this
        mapping.
        """
        said = self.session.said
        key = mapping_key(cme._costs.batch, cme._row) if said else None
        if key in said or cme.has_more() or extra is not cme._told:
            said[key or mapping_key(cme._costs.batch, cme._row)] = cme, extra

    def _of_network(self, pair: Pair, item: NetworkProblem) -> Any:
        cme = pair[0]
        if isinstance(cme, CostModelEvaluation):
            return attach(self.attached, replace(as_said(cme.record, cme)), [pair])
        if isinstance(cme, CumulativeCME):
            records = [part.record for part in cme.parts]
            found = total_of(item, records, (self,))
            figures = {ENERGY_PJ: cme.energy_total, LATENCY_CYCLES: cme.latency_total2}
            return attach(self.attached, MappedWorkload(found.records, found.summary | figures), [pair])
        return self._raw(pair)

    def _raw(self, pair: Pair) -> Any:
        """Result (`_Raw`) that holds a pair whose first element is not a CME. Only the user's own stages and script
        can read the pair.

        If the first element is a list, every stage accepts the pair. Otherwise, InputError is raised if the pair would
        reach a stage of tilewright that needs a CME (`is_below_others`).
        """
        if self.is_below_others and not isinstance(pair[0], list):
            raise self.fault(f"run yielded {type(pair[0]).__name__} in place of a CME")
        return attach(self.attached, _Raw(), [pair])


def as_said(record: LayerRecord, cme: CostModelEvaluation) -> LayerRecord:
    """Record with the energy and the latency that a user's stage set in `cme`. Without such changes, the record is
    returned unchanged.
    """
    if not cme.is_changed():
        return record
    energy, latency = cme.energy_total, cme.latency_total2
    return replace(
        record, energy_pj=energy, latency_cycles=latency, edp_pj_cycles=energy_delay_product(energy, latency)
    )


class _Raw:
    """Result that only a user's stage or the script can read, such as a list in place of a CME."""


@lru_cache(maxsize=256)
def own_class(name: str, is_leaf: bool) -> type[OwnStage]:
    """Subclass of OwnStage with the name of the user's class. `is_leaf` is true if no stage is below the user's
    stage.
    """
    others = {"__module__": __name__, "gives": None if is_leaf else Same, "returns": Same}
    return type(name, (OwnStage,), others)


def together(cmes: Sequence[CostModelEvaluation]) -> Evaluations:
    """Result with the mappings of `cmes`, which all belong to one batch. The result has the energies and latencies of
    the CMEs, including the values that user's stages set.
    """
    costs, rows = cmes[0]._costs, np.array([cme._row for cme in cmes])
    batch = costs.batch
    boundaries = None if batch.boundaries is None else batch.boundaries[rows]
    orders = OrderBatch(batch.problem, batch.loops, batch.orders[rows], boundaries, len(rows), batch.search)
    energies = np.array([cme.energy_total for cme in cmes], np.float64)
    latencies = np.array([cme.latency_total2 for cme in cmes], np.float64)
    made = CostedBatch(orders, energies, latencies, np.ones(len(rows), np.bool_), "")
    tally = CandidateTally(*tally_key(batch), orders=len(rows), feasible=len(rows))
    return Evaluations(made, (tally,))


class SumOfWhatPasses(Sum):
    """Sum over the layers that user's stages pass on. User's stages can leave out layers."""

    def run(self, item: NetworkProblem, rest: Rest) -> Iterator[MappedWorkload]:
        """Yield one result: the layer records with their totals."""
        records = [record for record in rest(item) if isinstance(record, LayerRecord)]
        yield total_of(item, records, rest.stages)


def total_of(item: NetworkProblem, records: Sequence[LayerRecord], stages: tuple[Stage, ...]) -> MappedWorkload:
    """Result with `records`, and with totals over the layers that have a record. Layers of the network without a record
    are left out of the totals.
    """
    names = {name for record in records for name in record.names}
    nodes = tuple(node for node in item.workload.nodes if node.layer is not None and node.layer.name in names)
    kept = {node.node_id for node in nodes}
    nodes = tuple(
        replace(node, sources=tuple(source for source in node.sources if source[1] in kept)) for node in nodes
    )
    part = replace(item, workload=replace(item.workload, nodes=nodes), memory_reach=())
    return summed(part, records, stages)


def name_of(maker: Any) -> str:
    """Name of a user's stage."""
    return str(getattr(maker, "__name__", "") or type(maker).__name__)


def file_of(maker: Any) -> Path | None:
    """File with the code of a user's stage; None if the file is not known."""
    code = _code_of(maker)
    return None if code is None or code.co_filename.startswith("<") else Path(code.co_filename)


def _code_of(maker: Any) -> CodeType | None:
    """Compiled code of a user's stage: the method `run` of a class, or the function if the stage is a function."""
    for one in (vars(maker).get("run") if isinstance(maker, type) else None, getattr(maker, "run", None), maker):
        if (code := getattr(one, "__code__", None)) is not None:
            return cast(CodeType, code)
    return None


def shown_path(file: Path | None) -> str:
    """Path of a file for messages. If the file is below the working folder, the path is relative to this folder. The
    result for None is ''.
    """
    if file is None:
        return ""
    return str(file.relative_to(Path.cwd())) if file.is_relative_to(Path.cwd()) else str(file)


def line_of(maker: Any) -> int:
    """Line at which the code of a user's stage begins; 0 if the line is not known."""
    code = _code_of(maker)
    return 0 if code is None else code.co_firstlineno
