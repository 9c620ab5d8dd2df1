"""Shape of an attention: queries, keys, heads, channels, the mask, and the layers of a tile."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.language_models.architecture import Architecture
from tilewright.workload.language_models.attended import attend
from tilewright.workload.language_models.builder import Builder
from tilewright.workload.language_models.heads import AttentionSite, Heads, Kept
from tilewright.workload.language_models.model import attentions_of
from tilewright.workload.language_models.request import ModelStep, Precision, Requests
from tilewright.workload.language_models.visible_keys import RECTANGLE, Piece
from tilewright.workload.layer import Layer

SCORES, MOST, POWERS, SUM, VALUES = "scores", "softmax.max", "softmax.exp", "softmax.sum", "values"
"""Names of layers that both the network and a tile have. The network and a tile also have layers that scale and cap the
scores; the names of these layers are not listed here."""
MERGE_MOST, FACTOR, RESCALE_SUM, MERGE_SUM = "online.max", "online.factor", "online.sum_rescale", "online.sum"
RESCALE_OUTPUT, MERGE_OUTPUT, DIVIDE = "online.output_rescale", "online.output", "online.div"
"""Names of layers that only the online softmax has. DIVIDE runs last."""


@dataclass(frozen=True)
class Bits:
    """Number of bits of an element, by kind of tensor."""

    queries: int
    keys: int
    values: int
    activations: int
    """Number of bits of an element of scores, maxima, sums and outputs."""
    partial_sums: int | None = None


@dataclass(frozen=True)
class AttentionShape:
    """Shape of an attention. All requests have equal sizes, and all key heads have equal sizes."""

    units: int
    """Number of units: requests times key heads. A unit is one key head of one request; units share no data."""
    heads: int
    """Number of query heads per key head."""
    queries: int
    keys: int
    key_width: int
    value_width: int
    bits: Bits
    stages: tuple[str, ...] = ("scale",)
    """Names of the layers between the scores and the softmax, each with one operation per score."""
    is_causal: bool = True
    """True if a query sees no tokens after its own token. The last query and the last key then belong to the same
    token.
    """
    window: int | None = None
    """Largest number of keys that a query sees, including the key of its own token. None if there is no limit."""

    def seen(self, first: int, last: int) -> tuple[int, int]:
        """Pair (first, last) of the keys that the queries from `first` to `last` see."""
        if not self.is_causal:
            return 0, self.keys - 1
        own = self.keys - self.queries
        lowest = 0 if self.window is None else max(0, own + first - self.window + 1)
        return lowest, own + last

    @property
    def pairs(self) -> int:
        """Number of pairs (query, key that this query sees), for one query head."""
        return sum(last - first + 1 for first, last in (self.seen(q, q) for q in range(self.queries)))


@dataclass(frozen=True)
class NetworkAttention:
    """Attention of a network, with its layers."""

    name: str
    """Prefix of the names of this attention's layers."""
    repeats: int
    """Number of blocks that have this attention."""
    shape: AttentionShape
    unfused: Workload
    """Layers of this attention in one block of the network, not cut into tiles."""

    def templates(self) -> dict[str, Layer]:
        """Templates of the layers of a tile, by name. Their loops run over all queries and keys; `tile_layer` reduces
        these loops to one tile.
        """
        return _templates(self.name, self.shape)


def language_model_attentions(model: Architecture, step: ModelStep) -> tuple[NetworkAttention, ...]:
    """Attentions of one step of a language model."""
    builder, sites = attentions_of(model, step)
    return tuple([_attention(builder, site) for site in sites])


def _attention(builder: Builder, site: AttentionSite) -> NetworkAttention:
    heads, group = site.heads, site.heads.group
    bits = Bits(
        builder.tensors[heads.queries].bits,
        builder.tensors[heads.keys.tensor].bits,
        builder.tensors[heads.values.tensor].bits,
        builder.precision.activations,
        builder.precision.partial_sums,
    )
    shape = AttentionShape(
        group.count * heads.key_heads,
        heads.shared,
        group.tokens,
        builder.shape(heads.keys.tensor)[2],
        heads.keys.width,
        heads.values.width,
        bits,
        ("scale", "cap") if heads.has_softcap else ("scale",),
        window=heads.window,
    )
    numbered = tuple(
        [
            replace(node, node_id=place, index_maps=(), sources=(), repeats=node.repeats // site.repeats)
            for place, node in enumerate(builder.nodes[slice(*site.nodes)])
        ]
    )
    name = site.prefix.rstrip("/") or "attention"
    return NetworkAttention(name, site.repeats, shape, Workload(name, numbered))


@lru_cache(maxsize=256)
def _templates(name: str, shape: AttentionShape) -> dict[str, Layer]:
    """Templates of the layers of a tile, by name, with loops over all queries and keys.

    Some layers of a tile are also layers of the network. Their templates are made by the same code as the network's
    layers. The templates of all other layers of a tile are variants of layers of the network.
    """
    nodes = {node.name: node.layer for node in _rectangle(shape).nodes}
    found = {one: nodes[one] for one in (SCORES, *shape.stages, MOST, POWERS, SUM, VALUES)}
    merged, scaled = nodes[f"{SUM}.with_"], nodes[POWERS]
    for one, operator_type in ((MERGE_MOST, "Max"), (FACTOR, "Exp"), (RESCALE_SUM, "Mul"), (MERGE_SUM, "Add")):
        found[one] = merged and replace(merged, operator_type=operator_type)
    for one, operator_type in ((RESCALE_OUTPUT, "Mul"), (DIVIDE, "Div")):
        found[one] = scaled and replace(scaled, operator_type=operator_type)
    found[MERGE_OUTPUT] = nodes[f"{VALUES}.with_"]
    return {one: replace(layer, name=f"{name}/{one}") for one, layer in found.items() if layer is not None}


def _rectangle(shape: AttentionShape) -> Builder:
    bits, group = shape.bits, Requests(1, shape.queries, shape.keys - shape.queries)
    builder = Builder(Precision(bits.activations, bits.activations, bits.activations, bits.partial_sums))
    width = shape.units * shape.heads * shape.key_width
    queries = builder.tensor("queries", (shape.queries, width), bits.queries)
    size = (1, shape.units, shape.keys)
    keys = Kept(builder.tensor("keys", (*size, shape.key_width), bits.keys), shape.key_width)
    values = Kept(builder.tensor("values_kept", (*size, shape.value_width), bits.values), shape.value_width)
    capped = "cap" in shape.stages
    heads = Heads(queries, 0, group, keys, values, shape.units, shape.heads, capped)
    attend(builder, heads, (Piece(RECTANGLE, "", 0, shape.queries, 0, shape.keys, repeats=2),))
    return builder


def tile_layer(template: Layer, name: str, shape: AttentionShape, tile: tuple[int, int, int, int]) -> Layer:
    """Layer `name` of one tile. `tile` has the numbers of units, query heads per key head, queries and keys. A unit is
    one key head of one request.
    """
    units, heads, queries, keys = tile
    sizes = {"B": 1, "G": units, "H": heads, "D": queries, "K": keys}
    if name == SCORES:
        sizes["C"] = shape.key_width
    elif name == VALUES:
        sizes |= {"C": keys, "K": shape.value_width}
    elif name in (RESCALE_OUTPUT, DIVIDE):
        sizes["K"] = shape.value_width
    elif name == MERGE_OUTPUT:
        sizes["K"] = units * heads * shape.value_width
    return replace(template, loop_sizes=tuple([(loop, sizes[loop]) for loop, _ in template.loop_sizes]))


def layer_nodes(workload: Workload) -> Iterator[WorkloadNode]:
    """Nodes of a workload that contain a layer."""
    return (node for node in workload.nodes if node.layer is not None)
