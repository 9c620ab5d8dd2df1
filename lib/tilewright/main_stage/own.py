"""Stages of a user's in a pipeline of ours: each gets keywords and makes the stages after it; what it yields goes up.

Errors in them are told with their file and line.
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
"""CMEs of one batch of orders that go up together."""


class _Any(type):
    """Every item is of this type: a stage of a user's may stand anywhere, also among parsers, where it stays."""

    def __instancecheck__(cls, instance: object) -> bool:
        return True

    def __subclasscheck__(cls, subclass: type) -> bool:
        return True


class Anything(metaclass=_Any):
    """Whatever comes down."""


@dataclass
class Session:
    """What one run of a script keeps beside the pipeline."""

    node: WorkloadNode | None = None
    """The layer that is mapped, where layers are mapped one by one."""
    layer: LayerNode | None = None
    """Layer as scripts see it."""
    said: dict[Any, Pair] = field(default_factory=dict)
    """What stages of a user's have said of a mapping, by the mapping: the CME that they yielded, and what beside it."""
    beside: dict[Any, Any] = field(default_factory=dict)
    """What reductions say beside the mapping that they keep, by the mapping: all others, where a script wants them."""
    saved: dict[str, list[Any]] = field(default_factory=dict)
    """File -> what was saved in it."""
    silent: list[Problem] = field(default_factory=list)
    """Stages of a user's that have passed on nothing, since the list was emptied last."""


_SESSION: ContextVar[Session | None] = ContextVar("session", default=None)


def session() -> Session:
    """What the run of the script keeps; of a stage that a script runs by itself, something new."""
    found = _SESSION.get()
    if found is None:
        found = Session()
        _SESSION.set(found)
    return found


def new_session() -> Session:
    """Begin the run of a script."""
    found = Session()
    _SESSION.set(found)
    return found


Attached = dict[int, tuple[Any, list[Pair]]]
"""id of a result that goes up -> the result, and the pairs that it stands for."""


def attach(attached: Attached, result: Any, pairs: list[Pair]) -> Any:
    """The result, from now on known to stand for these pairs."""
    attached[id(result)] = result, pairs
    return result


def mapping_key(batch: OrderBatch, row: int) -> Any:
    """What tells a mapping of a layer from its others."""
    return id(batch.problem), batch.loop_order(row), batch.level_boundaries(row)


@dataclass(frozen=True, eq=False)
class OwnStage(Stage):
    """A stage of a user's, in the form of zigzag-dse."""

    maker: Callable[..., Any] = None  # type: ignore[assignment]
    below: Sequence[Any] = ()
    """The stages after it, as they were given."""
    keywords: Keywords = field(default_factory=dict)
    session: Session = field(default_factory=Session)
    is_below_others: bool = False
    """Whether a stage of tilewright stands above it, which takes CMEs alone."""
    attached: Attached = field(default_factory=dict)
    """What the results that it yields stand for."""
    model: str = ""
    """The model profile of the stages after it."""
    minimises: str = ""
    """What the stages after it minimise."""
    after: tuple[Stage, ...] = ()
    """The stages after it, as ours."""

    takes: ClassVar[type] = Anything
    collects = object

    @classmethod
    def name(cls) -> str:
        """The name of the class of the user."""
        return cls.__name__

    def run(self, item: Any, rest: Rest) -> Iterator[Any]:
        """What the stage yields, as results of ours."""
        pairs = (pair for keywords in self._each(item) for pair in self.generate(keywords))
        yield from self._results(pairs, item)

    def _each(self, item: Any) -> Iterator[Keywords]:
        """Keywords for the item; for a batch of loop orders those of each order that fits."""
        if not isinstance(item, OrderBatch):
            yield self._keywords(item)
            return
        rows = np.flatnonzero(costed(item).fits)
        own = self._keywords(item.problem)
        for row in rows.tolist():
            yield own | {TEMPORAL: TemporalMapping._of(item, row, own.get("layer"))}

    def _keywords(self, item: Any) -> Keywords:
        """All keywords with those that say what an item is."""
        layer = {} if self.session.layer is None else {LAYER: self.session.layer}
        return {**layer, **self.keywords, **keywords_of(item, self.session.node)}

    def generate(self, keywords: Keywords) -> Iterator[Pair]:
        """The pairs that it yields. Raises InputError with file and line for what goes wrong in it."""
        count = 0
        try:
            stage = self.maker(list(self.below), **keywords)
            results = stage.run()
            if not hasattr(results, "__iter__"):
                raise self.fault(f"run returned {results!r}; it has to yield pairs of a CME and further information")
            for pair in results:
                if not isinstance(pair, tuple) or len(pair) != 2:
                    raise self.fault(f"run yielded {pair!r}; it has to yield pairs of a CME and further information")
                count += 1
                yield pair
        except NotHandedOnError as error:
            (problem,) = error.problems
            message = f"{problem.path} is {problem.message}"
            raise InputError([replace(self.problem(message), allowed=problem.allowed)]) from error
        except TilewrightError:
            raise
        except Exception as error:
            problem = problem_in_code(error, file_of(self.maker), path=name_of(self.maker))
            raise InputError([problem]) from error
        if not count:
            self.session.silent.append(self.problem("passed on nothing"))

    def problem(self, message: str) -> Problem:
        """Something that is wrong with the stage, told where it is written."""
        file = file_of(self.maker)
        return Problem(message, shown_path(file), line_of(self.maker), name_of(self.maker))

    def fault(self, message: str) -> InputError:
        """Fault as an error."""
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
                raise self.fault(f"run yielded {type(cme).__name__} where the CME of a mapping of a layer belongs")
            self._remember(cme, extra)
            if waiting and (waiting[0]._costs is not cme._costs or len(waiting) == AT_ONCE):
                yield together(waiting)
                waiting = []
            waiting.append(cme)
        if waiting:
            yield together(waiting)

    def _remember(self, cme: CostModelEvaluation, extra: Any) -> None:
        """Note what was said of a mapping, if it is more than what came up."""
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
            figures = {"energy_pj": cme.energy_total, "latency_cycles": cme.latency_total2}
            return attach(self.attached, MappedWorkload(found.records, found.summary | figures), [pair])
        return self._raw(pair)

    def _raw(self, pair: Pair) -> Any:
        """Anything else, which only a stage of a user's or the script itself can take."""
        if self.is_below_others and not isinstance(pair[0], list):
            raise self.fault(f"run yielded {type(pair[0]).__name__} where a CME belongs")
        return attach(self.attached, _Raw(), [pair])


def as_said(record: LayerRecord, cme: CostModelEvaluation) -> LayerRecord:
    """The record with the energy and the latency that a stage of a user's has set; itself where none has."""
    if not cme.is_changed():
        return record
    energy, latency = cme.energy_total, cme.latency_total2
    return replace(
        record, energy_pj=energy, latency_cycles=latency, edp_pj_cycles=energy_delay_product(energy, latency)
    )


class _Raw:
    """A result that only stages of a user's understand."""


@lru_cache(maxsize=256)
def own_class(name: str, is_leaf: bool) -> type[OwnStage]:
    """A class of stages of ours that is called as that of the user."""
    others = {"__module__": __name__, "gives": None if is_leaf else Same, "returns": Same}
    return type(name, (OwnStage,), others)


def together(cmes: Sequence[CostModelEvaluation]) -> Evaluations:
    """CMEs of rows of one batch as evaluations, with the figures that stages have set."""
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
    """Adds up the layers that stages of a user's pass on, which may be fewer than there are."""

    def run(self, item: NetworkProblem, rest: Rest) -> Iterator[MappedWorkload]:
        """One result: the records with their totals."""
        records = [record for record in rest(item) if isinstance(record, LayerRecord)]
        yield total_of(item, records, rest.stages)


def total_of(item: NetworkProblem, records: Sequence[LayerRecord], stages: tuple[Stage, ...]) -> MappedWorkload:
    """The totals of the layers of a network that have a record."""
    names = {name for record in records for name in record.names}
    nodes = tuple(node for node in item.workload.nodes if node.layer is not None and node.layer.name in names)
    kept = {node.node_id for node in nodes}
    nodes = tuple(
        replace(node, sources=tuple(source for source in node.sources if source[1] in kept)) for node in nodes
    )
    part = replace(item, workload=replace(item.workload, nodes=nodes), memory_reach=())
    return summed(part, records, stages)


def name_of(maker: Any) -> str:
    """What a stage of a user's is called."""
    return str(getattr(maker, "__name__", "") or type(maker).__name__)


def file_of(maker: Any) -> Path | None:
    """The file that it is written in."""
    code = _code_of(maker)
    return None if code is None or code.co_filename.startswith("<") else Path(code.co_filename)


def _code_of(maker: Any) -> CodeType | None:
    """The compiled code of its `run`, or of itself."""
    for one in (vars(maker).get("run") if isinstance(maker, type) else None, getattr(maker, "run", None), maker):
        if (code := getattr(one, "__code__", None)) is not None:
            return cast(CodeType, code)
    return None


def shown_path(file: Path | None) -> str:
    """A file as messages name it: from the working folder, where it is below that."""
    if file is None:
        return ""
    return str(file.relative_to(Path.cwd())) if file.is_relative_to(Path.cwd()) else str(file)


def line_of(maker: Any) -> int:
    """The line of its `run`, or of itself; 0 where that is not known."""
    code = _code_of(maker)
    return 0 if code is None else code.co_firstlineno
