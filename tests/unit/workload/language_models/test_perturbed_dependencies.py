"""Dependencies of tiles of attention with cache, mask and window: every change of a number follows an edge or a read.

Each layer is computed in plain numpy, from its name and from the pairs of query and key of its piece. Every element
that it reads is changed alone. If an element of the result then changes, its tile must have an edge from the tile that
made the changed input, or must read this input from outside.
"""

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from tilewright.multicore.nodes.generation import build_cn_graph
from tilewright.multicore.nodes.graph import ORDERING, CnGraph
from tilewright.multicore.nodes.tiling import Tiling, counted_loops, layer_tiling
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.language_models.model import language_model_workload
from tilewright.workload.language_models.request import ModelStep, Requests
from tilewright.workload.language_models.visible_keys import Piece, Strip, first_position, strips, visible_pieces

from tests.unit.multicore.nodes.networks import content_box
from tests.unit.workload.language_models.models import model_of
from tests.unit.workload.language_models.piece_pairs import pair

Array = npt.NDArray[np.float64]
FIELDS: dict[str, Any] = {
    "model_type": "mistral",
    "hidden_size": 4,
    "intermediate_size": 2,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 3,
    "head_dim": 2,
}
HEADS, KEY_HEADS, SHARED, WIDTH = 4, 2, 2, 2
PLACE = "layers.0/attention/"


class Case(NamedTuple):
    """Equal requests, and what their tokens see."""

    count: int
    tokens: int
    context: int
    window: int | None
    block: int | None

    @property
    def cached(self) -> int:
        """Tokens of a request in its cache."""
        return self.context - first_position(self.context, self.window)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The rectangles of pairs, all written out."""
        return visible_pieces(self.tokens, self.context, self.window, self.block, is_written_out=True)

    @property
    def workload(self) -> Workload:
        """The step with every block written out."""
        model = model_of(FIELDS | ({"sliding_window": self.window} if self.window else {}))
        groups = (Requests(self.count, self.tokens, self.context),)
        return language_model_workload(model, ModelStep(groups, key_block=self.block, is_written_out=True))


CASES = [
    Case(2, 1, 4, None, None),
    Case(2, 5, 0, None, None),
    Case(1, 4, 3, None, 2),
    Case(2, 4, 2, 3, None),
    Case(1, 3, 6, 2, None),
    Case(1, 6, 0, 1, None),
    Case(2, 6, 5, 4, 1),
    Case(1, 7, 3, 4, None),
    Case(1, 5, 9, 5, None),
]
IDS = [
    "token",
    "prompt",
    "chunk in blocks",
    "window in a chunk",
    "window behind the cache",
    "window of one",
    "windows and a rest in blocks of keys",
    "windows behind a triangle",
    "an odd window",
]


def rows_of(piece: Piece, query: int) -> list[int]:
    """The rows of a piece that have pairs of a query."""
    return [
        row for row in range(piece.queries) if any(pair(piece, row, column)[0] == query for column in range(piece.keys))
    ]


def pairs_in(case: Case, piece: Piece) -> Iterator[tuple[int, ...]]:
    """(request, key head, head, row, column) of all pairs of a piece."""
    return itertools.product(*map(range, (case.count, KEY_HEADS, SHARED, piece.queries, piece.keys)))


class Inputs(NamedTuple):
    """Tensors that a layer reads, by name."""

    shapes: dict[str, tuple[int, ...]]
    values: dict[str, Array]

    def __getitem__(self, ending: str) -> Array:
        (name,) = [one for one in self.values if one == PLACE + ending]
        return self.values[name]


def seen(case: Case, tensors: Inputs, kind: str, request: int, head: int, key: int) -> Array:
    """Keys or values of a token, from the cache or from the new ones."""
    cache, new = ("key_cache.before", "k_rotary.out") if kind == "key" else ("value_cache.before", "v_proj.out")
    if key < case.cached:
        return tensors[cache][request, head, key]
    channels = slice(head * WIDTH, (head + 1) * WIDTH)
    return tensors[new][request * case.tokens + key - case.cached, channels]


def scores(case: Case, piece: Piece, tensors: Inputs, shape: tuple[int, ...]) -> Array:
    """Scores: queries times keys."""
    found = np.zeros(shape)
    for at in pairs_in(case, piece):
        request, head, shared, row, column = at
        query, key = pair(piece, row, column)
        first = (head * SHARED + shared) * WIDTH
        channels = tensors["q_rotary.out"][request * case.tokens + query, first : first + WIDTH]
        found[at] = channels @ seen(case, tensors, "key", request, head, key)
    return found


def values(case: Case, piece: Piece, tensors: Inputs, shape: tuple[int, ...]) -> Array:
    """Weighted values: shares times values; each row has the results of all its queries."""
    found = np.zeros(shape)
    shares = next(one for name, one in tensors.values.items() if "softmax.div" in name)
    for at in pairs_in(case, piece):
        request, head, shared, row, column = at
        first = (head * SHARED + shared) * WIDTH
        value = seen(case, tensors, "value", request, head, pair(piece, row, column)[1])
        found[request * piece.queries + row, first : first + WIDTH] += shares[at] * value
    return found


def of_rows(case: Case, piece: Piece, tensors: Inputs, shape: tuple[int, ...]) -> Array:
    """One number for each row; a change of any element of the row changes the number."""
    (source,) = tensors.values.values()
    weights = 1 + np.arange(piece.keys)
    return (source * weights).sum(axis=-1).reshape(shape)


def rows_in(case: Case, tensor: str) -> tuple[int, dict[int, list[int]]]:
    """(number of rows, query -> rows of the query) of a tensor made by one piece or by a merge of several pieces."""
    maker = tensor.removeprefix(PLACE).removesuffix(".out")
    for strip in strips(case.pieces):
        queries = range(strip.first_query, strip.first_query + strip.queries)
        for part in strip.parts:
            for piece in part:
                if maker.endswith(merge_ending(part)):
                    return strip.queries, {query: [query - strip.first_query] for query in queries}
                if maker.endswith(f".{piece.name}") or not piece.name:
                    found = {query: rows_of(piece, query) for query in queries}
                    return piece.queries, {query: rows for query, rows in found.items() if rows}
    raise AssertionError(tensor)


def merge_ending(part: tuple[Piece, ...]) -> str:
    """The ending of the names of layers that merge pieces with those before them."""
    return f".with_{part[0].name}" if len(part) == 1 else f".with_{part[0].name.rstrip('0123456789')}"


def with_row(case: Case, piece: Piece, tensors: Inputs, shape: tuple[int, ...]) -> Array:
    """Sum of the pair's value and the query's value, for each pair of query and key.

    The query's value depends on all keys that the query sees.
    """
    (source,) = (one for one in tensors.values.values() if len(one.shape) == 5)
    of_query = {}
    for name, one in tensors.values.items():
        if len(one.shape) == 4:
            of_query |= {query: one[..., row] for query, (row,) in rows_in(case, name)[1].items()}
    found = np.zeros(shape)
    for at in pairs_in(case, piece):
        found[at] = source[at] + of_query[pair(piece, at[3], at[4])[0]][at[:3]]
    return found


def merged(case: Case, strip: Strip, tensors: Inputs, shape: tuple[int, ...]) -> Array:
    """The merge of earlier parts of a strip with one more part, for each query."""
    found = np.zeros(shape)
    for name, part in tensors.values.items():
        height, rows_of_query = rows_in(case, name)
        for query, rows in rows_of_query.items():
            place = query - strip.first_query
            for request, row in itertools.product(range(case.count), rows):
                if len(shape) == 2:
                    found[request * strip.queries + place] += part[request * height + row]
                else:
                    found[request, :, :, place] += part[request, :, :, row]
    return found


def result_of(case: Case, node: WorkloadNode, tensors: Inputs, shape: tuple[int, ...]) -> Array | None:
    """The result of a layer of attention; None for another kind of layer."""
    name = node.name.removeprefix(PLACE)
    for strip in strips(case.pieces):
        if any(part[0].name and name.endswith(merge_ending(part)) for part in strip.parts):
            return merged(case, strip, tensors, shape)
    for piece in case.pieces:
        ending = f".{piece.name}" if piece.name else ""
        functions = {
            f"scores{ending}": scores,
            f"values{ending}": values,
            f"softmax.max{ending}": of_rows,
            f"softmax.sum{ending}": of_rows,
            f"softmax.exp{ending}": with_row,
            f"softmax.div{ending}": with_row,
        }
        if name in functions:
            return functions[name](case, piece, tensors, shape)
        if name == f"scale{ending}":
            return 3 * next(iter(tensors.values.values()))
    return None


def behind_moves(workload: Workload, node: WorkloadNode) -> Inputs:
    """The tensors that a layer reads, traced back through layers that only move data."""
    made = {name: one for one in workload.nodes for name in one.outputs}
    found: dict[str, Array] = {}
    waiting = list(node.inputs)
    shapes = {}
    while waiting:
        name = waiting.pop(0)
        if name in made and made[name].layer is None:
            waiting += made[name].inputs
        else:
            shape = workload.tensor_of[name].shape
            shapes[name] = shape
            found[name] = np.random.default_rng(len(found)).uniform(1, 2, shape)
    return Inputs(shapes, found)


def owners(graph: CnGraph, number: int, node: WorkloadNode) -> dict[tuple[int, ...], set[int]]:
    """Element of a layer's result -> CNs that add to it."""
    layer, axes = graph.layers[number], node.index_maps[0].output.axes
    loops = sorted({name for axis in axes for name, _ in axis.terms})
    ranges = {name: layer.grid.ranges(name) for name in loops}
    found: dict[tuple[int, ...], set[int]] = {}
    for cn in range(layer.cn_count):
        for values in itertools.product(*(range(int(ranges[one][0][cn]), int(ranges[one][1][cn])) for one in loops)):
            at = dict(zip(loops, values, strict=True))
            element = tuple(axis.offset + sum(c * at[name] for name, c in axis.terms) for axis in axes)
            found.setdefault(element, set()).add(layer.first_cn + cn)
    return found


def cut(workload: Workload, counts: dict[str, int]) -> Tiling:
    """A tiling that cuts every layer into the given numbers of tiles along its loops."""
    layers = []
    for node in workload.nodes:
        if node.layer is not None:
            sizes = node.layer.size_of
            loops, _ = counted_loops(node.layer, [(name, n) for name, n in counts.items() if sizes.get(name, 1) > 1])
            layers.append(layer_tiling(node.node_id, loops, [False] * len(loops)))
    return Tiling(tuple(layers), (tuple(layer.node_id for layer in layers),))


@pytest.mark.parametrize("counts", [{"D": 3}, {"K": 2, "D": 2}, {"H": 2, "B": 2, "C": 2}], ids=str)
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_what_an_element_changes_needs_it(case: Case, counts: dict[str, int]) -> None:
    """The tile of a result depends on each element whose change changes the result.

    This is checked for each layer between the projections and the result of attention.
    """
    workload = case.workload
    graph = build_cn_graph(workload, cut(workload, counts))
    nodes = [node for node in workload.nodes if node.layer is not None]
    number_of = {name: number for number, node in enumerate(nodes) for name in node.outputs}
    edges = {
        (int(source), int(target))
        for source, target, operand in zip(graph.edge_source, graph.edge_target, graph.edge_operand, strict=True)
        if operand != ORDERING
    }
    checked = 0
    for number, node in enumerate(nodes):
        tensors = behind_moves(workload, node)
        shape = workload.tensor_of[node.outputs[0]].shape
        if not node.name.startswith(PLACE) or (before := result_of(case, node, tensors, shape)) is None:
            continue
        checked += 1
        owner = owners(graph, number, node)
        for name, value in tensors.values.items():
            makers = owners(graph, number_of[name], nodes[number_of[name]]) if name in number_of else {}
            for element in itertools.product(*map(range, value.shape)):
                kept = value[element]
                value[element] = kept + 1
                after = result_of(case, node, tensors, shape)
                value[element] = kept
                assert after is not None
                for changed in map(tuple, np.argwhere(after != before).tolist()):
                    # Where a sum is cut, each of its tiles has its own terms.
                    needed = any(
                        any((source, target) in edges for source in makers[element])
                        if name in number_of
                        else is_read(graph, target, name, element)
                        for target in owner[changed]
                    )
                    assert needed, (node.name, changed, name, element)
    assert checked >= 7 * len(case.pieces) - 4


EXPERTS = {"hidden_size": 4, "intermediate_size": 4, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 4}
FAMILIES: dict[str, dict[str, Any]] = {
    "experts": EXPERTS | {"model_type": "mixtral", "num_local_experts": 3, "num_experts_per_tok": 2},
    "latent": EXPERTS
    | {"model_type": "deepseek_v3", "kv_lora_rank": 4, "qk_nope_head_dim": 2, "qk_rope_head_dim": 2, "v_head_dim": 2}
    | {"moe_intermediate_size": 4, "n_routed_experts": 3, "num_experts_per_tok": 2, "n_shared_experts": 1},
    "state space": {"model_type": "mamba", "hidden_size": 4, "num_hidden_layers": 1, "vocab_size": 4, "state_size": 2},
    "window": FIELDS | {"sliding_window": 2},
}


@pytest.mark.parametrize("name", FAMILIES)
def test_every_tile_makes_its_own_elements(name: str) -> None:
    """A tile of a layer without cut sums makes as many bits as it has elements, in each family."""
    groups = (Requests(2, 3, 2), Requests(1, 1, 1))
    workload = language_model_workload(model_of(FAMILIES[name]), ModelStep(groups, key_block=2, is_written_out=True))
    graph = build_cn_graph(workload, cut(workload, {"D": 3, "B": 2}))
    nodes = [node for node in workload.nodes if node.layer is not None]
    for number, node in enumerate(nodes):
        layer, made = graph.layers[number], [0] * graph.layers[number].cn_count
        for owner in owners(graph, number, node).values():
            made[max(owner) - layer.first_cn] += workload.tensor_of[node.outputs[0]].bits
        assert graph.output_bits[layer.first_cn : layer.first_cn + layer.cn_count].tolist() == made, node.name


def is_read(graph: CnGraph, cn: int, name: str, element: tuple[int, ...]) -> bool:
    """Whether a CN reads an element of a tensor from outside."""
    for place in np.flatnonzero(graph.read_cn == cn).tolist():
        content = int(graph.read_content[place])
        source = graph.sources[int(graph.content_source[content])]
        box = content_box(graph, content)
        if source.name == name and all(low <= at < high for at, (low, high) in zip(element, box, strict=True)):
            return True
    return False
