"""Search of many distinct layer problems, with a store of results, several threads and a progress bar."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace

from tilewright.base.artifacts.digests import content_digest
from tilewright.base.errors import MappingError
from tilewright.cost.record import LayerRecord
from tilewright.pipeline.stages.base import Control, Rest
from tilewright.pipeline.stages.items import LayerProblem
from tilewright.pipeline.stages.layers import order_total, search_alternatives, sum_if_known
from tilewright.pipeline.stages.user_stages import is_identified
from tilewright.search.progress import QUIET_S, Advance, search_progress
from tilewright.search.store import Store


@dataclass(frozen=True)
class LayerTask:
    """Layer problem, with a key that is made from the content of the problem (`SearchIdentity.key_of`)."""

    key: str
    problem: LayerProblem


@dataclass
class LayerSearch:
    """Search of all layer problems that are not in the store, with the results found so far.

    `search` has the stages that map a layer. The results do not depend on the number of threads or on the store.
    """

    title: str
    """Name of the search in the progress bar."""
    search: Rest
    on_found: Callable[[LayerTask, list[LayerRecord]], None] | None = None
    """Function that is called for each problem when the search of the problem is finished."""
    found: dict[str, list[LayerRecord]] = field(default_factory=dict)
    """Records of the mappings, by key of the layer problem."""
    failures: dict[str, MappingError] = field(default_factory=dict)
    """Error of each layer problem without a mapping that fits, by key of the problem. The error has the reason."""
    objective: str = "latency"
    """Objective by which the best of several mappings of a problem is chosen, if no stage chooses the best mapping."""
    all_of_them: bool = True
    """True if all mappings of a problem are kept. If False, only the best mapping is kept, together with the number of
    other mappings.
    """
    stop: threading.Event = field(default_factory=threading.Event)

    @property
    def control(self) -> Control:
        """Settings for the execution of the stages of the search."""
        return self.search.control

    @property
    def store(self) -> Store | None:
        """Store of results. None if no store can be used: a stage writes files, or a change of the code of a stage
        cannot be detected.
        """
        stages = self.search.stages
        usable = all(is_identified(stage) for stage in stages) and not any(stage.exports for stage in stages)
        return self.control.store if usable else None

    def run(self, tasks: Sequence[LayerTask]) -> None:
        """Search all tasks, and write the results to `found` and `failures`. The keys of the tasks must differ.

        If the search is interrupted, finished results stay in the store.
        """
        missing = [task for task in tasks if not self._take_from_store(task)]
        shown = self.control.show_progress and bool(missing)
        orders = sum_if_known(order_total(self.search, task.problem) for task in missing) if shown else 0
        # A search with bounds does not know in advance how many orders it will visit, so the bar counts layers.
        if orders is None and len(missing) > 1:
            bar = search_progress(len(missing), self.title, shown, unit="layers", least=1, after_s=QUIET_S)
        else:
            bar = search_progress(orders, self.title, shown)
        with bar as advance:
            by_layers = shown and orders is None and len(missing) > 1
            told = self.control.advance if not shown else (lambda orders: advance(0)) if by_layers else advance
            search = replace(self.search, control=replace(self.control, advance=told, stop=self.stop))
            self._search_all(missing, search, advance if by_layers else _nothing)

    def _search_all(self, missing: list[LayerTask], search: Rest, layers_done: Advance) -> None:
        if self.control.threads <= 1 or len(missing) <= 1:
            for task in missing:
                self._finish(task, self._attempt(search, task))
                layers_done(1)
        else:
            self._search_in_threads(missing, search, layers_done)

    def _search_in_threads(self, missing: list[LayerTask], search: Rest, layers_done: Advance) -> None:
        """Search the mappings of the tasks `missing` in several threads. Threads are enough, because kernels release
        the interpreter lock.
        """
        with ThreadPoolExecutor(self.control.threads) as pool:
            pending: dict[Future[list[LayerRecord] | MappingError], LayerTask] = {
                pool.submit(self._attempt, search, task): task for task in missing
            }
            try:
                while pending:
                    done, _ = wait(pending, return_when=FIRST_COMPLETED)
                    for future in done:
                        self._finish(pending.pop(future), future.result())
                        layers_done(1)
            except BaseException:
                self.stop.set()
                for future in pending:
                    future.cancel()
                raise

    def _attempt(self, search: Rest, task: LayerTask) -> list[LayerRecord] | MappingError:
        """Records of the mappings of a layer, or the error if no mapping fits."""
        try:
            return search_alternatives(search, task.problem, self.objective, all_of_them=self.all_of_them)
        except MappingError as error:
            return error

    def _take_from_store(self, task: LayerTask) -> bool:
        """Use the stored result of a problem. Returns False if the store has no result."""
        if self.store is None:
            return False
        stored = self.store.get(task.key)
        if stored is not None and self.all_of_them and stored[0].alternatives:
            stored = self.store.get(_key_of_all(task.key))
        if stored is not None:
            self.found[task.key] = stored
        return stored is not None

    def _finish(self, task: LayerTask, result: list[LayerRecord] | MappingError) -> None:
        if isinstance(result, MappingError):
            self.failures[task.key] = result
            return
        self.found[task.key] = result
        if self.store is not None:
            kept = [_nameless(record) for record in result]
            self.store.put(task.key, kept[:1])
            if len(kept) > 1:
                self.store.put(_key_of_all(task.key), kept)
        if self.on_found is not None:
            self.on_found(task, result)


def _nothing(count: int) -> None:
    """Function that does nothing. It is used as `advance` if no progress bar is shown."""


def _key_of_all(key: str) -> str:
    """Key under which all mappings of a problem are stored. Under the key `key` itself, only the best mapping is
    stored.
    """
    return content_digest([key, "all"])


def _nameless(record: LayerRecord) -> LayerRecord:
    return replace(record, layer=record.layer._replace(name=""), core="")
