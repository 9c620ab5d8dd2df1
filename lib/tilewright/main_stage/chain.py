"""Chains of consecutive stages of tilewright in a script.

The stages of a chain run as one pipeline, which exchanges data with the user's stages.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tilewright.main_stage import keywords as words
from tilewright.main_stage.costing import conversion_parameters, costed, costs_of
from tilewright.main_stage.evaluation import Context, CostModelEvaluation
from tilewright.main_stage.layer import LayerNode
from tilewright.main_stage.networks import Network, keeping_others, layer_of, network_pairs, pairs_of
from tilewright.main_stage.plan import is_of_several_cores, our_name, planned
from tilewright.main_stage.protocol import Pair
from tilewright.main_stage.views import (
    LAYER,
    Keywords,
    descriptions_of,
    layer_problem_of,
    network_problem_of,
    order_batch_of,
    temporal_problem_of,
)
from tilewright.pipeline.stages.base import Control, Rest, Stage
from tilewright.pipeline.stages.descriptions import Descriptions, NetworkProblem
from tilewright.pipeline.stages.items import LayerProblem, TemporalProblem
from tilewright.pipeline.stages.layers import single_row
from tilewright.search.store import Store


def run_chain(stages: Sequence[Any], keywords: Keywords) -> Iterator[Pair]:
    """Pairs (CME, further information) that a list of stages yields. The first stage of the list must be a stage of
    tilewright.
    """
    if len(stages) == 1 and our_name(stages[0]) == "CostModel":
        yield from cost_model(keywords)
        return
    plan = planned(stages, keywords)
    place = plan.own
    runnable = plan.stages if place is None else plan.stages[: place + 1]
    if words.given(keywords, words.KEEP_OTHERS):
        runnable = keeping_others(runnable)
    control = control_of(keywords)
    if plan.item_type is Descriptions or plan.item_type is NetworkProblem or is_of_several_cores(stages):
        item = descriptions_of(keywords) if plan.item_type is Descriptions else network_problem_of(keywords)
        yield from network_pairs(Network(runnable, control, keywords, plan.attached), item)
        return
    item = item_of(plan.item_type, runnable, keywords)
    if item is None:
        return
    for found in Rest(runnable, control)(item):
        yield from pairs_of(found, runnable, layer_of(item, keywords), plan.attached)


def item_of(kind: type, stages: tuple[Stage, ...], keywords: Keywords) -> Any:
    """Input of the first stage of a list, made from the keywords. The input has the type `kind`: a problem of mapping a
    layer, a problem of ordering temporal loops, or a batch of loop orders.
    """
    if kind is LayerProblem:
        return layer_problem_of(keywords)
    if kind is TemporalProblem:
        return temporal_problem_of(keywords, conversion_parameters(keywords))
    batch, row = order_batch_of(keywords, conversion_parameters(keywords))
    return batch if row is None else single_row(costed(batch), row).batch


def cost_model(keywords: Keywords) -> Iterator[Pair]:
    """Yield one pair (CME, None). The cost model evaluation (CME) belongs to the temporal mapping that the keywords
    describe.

    If a mapper made the mapping, all mappings in the batch of the mapper are evaluated at once, and their costs are
    kept for later calls.
    """
    costs, row = costs_of(keywords)
    node = keywords.get(LAYER)
    layer = node if isinstance(node, LayerNode) else layer_of(costs.batch.problem, keywords)
    yield CostModelEvaluation.of(costs, row, Context(layer)), None


def control_of(keywords: Mapping[str, Any]) -> Control:
    """Settings for a chain of stages: folder for exports, store of earlier results, and display of progress.

    Progress is shown if the script asks for it. There is a store only if the script names a folder for cost tables.
    """
    tables = words.given(keywords, words.COST_TABLES)
    plots = words.given(keywords, words.PLOT_NAME)
    beside = Path(plots).parent if isinstance(plots, str | Path) and "/" in str(plots) else Path("outputs")
    exports = Path(str(words.given(keywords, words.FOLDER) or beside)).absolute()
    store = Store(Path(str(tables))) if tables else None
    return Control(store=store, exports=exports, show_progress=bool(words.given(keywords, words.SHOW_PROGRESS)))
