"""Identity of a network: its digest for provenance, and the properties in which two networks of equal name differ."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

from tilewright.base.artifacts.codec import encode
from tilewright.base.artifacts.digests import content_digest
from tilewright.base.errors import count_of, some_of
from tilewright.base.json_values import JsonObject
from tilewright.workload.graph import Workload
from tilewright.workload.layer import Layer

SHOWN = 3
"""Largest number of layers that are named in a text about the difference of two networks."""


def identity_of_network(network: Workload) -> str:
    """Digest of a network for provenance. The source of the bits of a tensor is left out: the same bits give the same
    digest, whether they are assumed or given by the user.
    """
    return content_digest(_without_sources(network))


def _without_sources(network: Workload) -> JsonObject:
    data: Any = encode(network)
    for tensor in data["tensors"]:
        del tensor["precision_source"]
    found: JsonObject = data
    return found


def structure_of_network(network: Workload) -> str:
    """Digest of the layers, shapes and edges of a network, without the bits and the shares of zeros of operands."""
    nodes = tuple(
        replace(
            node,
            layer=None if node.layer is None else _plain(node.layer),
            layer_left_out=None if node.layer_left_out is None else _plain(node.layer_left_out),
        )
        for node in network.nodes
    )
    tensors = tuple(replace(tensor, bits=0, precision_source="", element_type="") for tensor in network.tensors)
    return content_digest(encode(replace(network, name="", nodes=nodes, tensors=tensors)))


def _plain(layer: Layer) -> Layer:
    return replace(layer, precision_bits=(), zeros=())


@dataclass(frozen=True)
class NetworkDifference:
    """Difference between two networks, A and B, that have the same name."""

    bits: str = ""
    """Text about the layers whose operands differ in bits between A and B; '' if there are no such layers, or if the
    networks differ in more than bits and zeros."""
    zeros: str = ""
    """Text about the layers whose operands differ in their shares of zeros between A and B; '' if there are no such
    layers, or if the networks differ in more than bits and zeros."""
    structure: str = ""
    """Text about layers, shapes or edges that differ; '' if the networks differ at most in bits and zeros."""


def difference_of(a: Workload, b: Workload, run_layers: Collection[str] | None = None) -> NetworkDifference:
    """Difference of two networks: in bits and zeros only, or in their structure. `run_layers` has the names of the
    layers that the cores run: bits and zeros of all other layers are not compared. None compares all layers.
    """
    if structure_of_network(a) != structure_of_network(b):
        return NetworkDifference(structure=_structure_text(a, b))
    pairs = [
        (one, other)
        for one, other in zip(_layers(a), _layers(b), strict=True)
        if run_layers is None or one.name in run_layers
    ]
    bits = [one.name for one, other in pairs if one.precision_bits != other.precision_bits]
    zeros = [one.name for one, other in pairs if one.zeros != other.zeros]
    return NetworkDifference(
        _few(bits, len(pairs)) if bits else "",
        _few(zeros, len(pairs)) if zeros else "",
    )


def _layers(network: Workload) -> list[Layer]:
    return [node.layer for node in network.nodes if node.layer is not None]


def _few(names: list[str], count: int) -> str:
    """Text that says how many of `count` layers are in `names`, and gives some of the names. If all layers are in
    `names`, the text gives no names.
    """
    number = f"{len(names):,} of {count_of(count, 'layer')}"
    return number if len(names) == count else f"{number} ({some_of(names, SHOWN)})"


def _structure_text(a: Workload, b: Workload) -> str:
    return "; ".join(_structure_parts(a, b)) or "the edges between layers, or operators without layers, differ"


def _structure_parts(a: Workload, b: Workload) -> Iterator[str]:
    of_a, of_b = ({layer.name: layer for layer in _layers(network)} for network in (a, b))
    for name, own, other in (("A", of_a, of_b), ("B", of_b, of_a)):
        if only := [layer for layer in own if layer not in other]:
            yield f"only {name} has {count_of(len(only), 'layer')} {some_of(only, SHOWN)}"
    changed = [
        f"{layer} ({told})" for layer in of_a if layer in of_b and (told := _layer_text(of_a[layer], of_b[layer]))
    ]
    if changed:
        yield f"{count_of(len(changed), 'layer')} differ{'s' * (len(changed) == 1)}: {some_of(changed, SHOWN)}"


def _layer_text(a: Layer, b: Layer) -> str:
    """Text about what differs between two layers besides bits and zeros; '' if nothing differs."""
    if _plain(a) == _plain(b):
        return ""
    sizes = [
        f"{dimension} {a.size_of.get(dimension, 1):,} in A, {b.size_of.get(dimension, 1):,} in B"
        for dimension in dict.fromkeys((*a.size_of, *b.size_of))
        if a.size_of.get(dimension, 1) != b.size_of.get(dimension, 1)
    ]
    if a.operator_type != b.operator_type:
        return f"{a.operator_type} in A, {b.operator_type} in B"
    return some_of(sizes, SHOWN) if sizes else "padding, strides or operands"
