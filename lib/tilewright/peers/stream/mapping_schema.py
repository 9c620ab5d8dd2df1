"""Schema of the mapping files of stream-dse 2.x: layers with cores and parts, and fused groups with tiles."""

import re
from typing import Annotated, Any

from pydantic import Field

from tilewright.base.json_values import JsonObject
from tilewright.base.units import LARGEST_WHOLE_NUMBER, FieldError
from tilewright.base.validation import Count, Name, PositiveCount, TableModel, TextForm, json_schema

_LARGEST_PLACE = 64
_LOOP = re.compile(r"D([0-9]{1,2})")
_LOOP_OF_LAYER = re.compile(r"(.+)\.D([0-9]{1,2})")


def parse_loop(text: str) -> int:
    """Position of a loop of a layer, parsed from text such as `D2`. Raises FieldError for any other text."""
    match = _LOOP.fullmatch(text)
    if match is None or int(match.group(1)) > _LARGEST_PLACE:
        raise FieldError("must be D and the position of a loop of the layer", f"D0, D1, ..., D{_LARGEST_PLACE}")
    return int(match.group(1))


def parse_loop_of_layer(text: str) -> tuple[str, int]:
    """Pair (layer, position of a loop), parsed from text such as `conv1.D2`. Raises FieldError for any other text."""
    match = _LOOP_OF_LAYER.fullmatch(text)
    if match is None or int(match.group(2)) > _LARGEST_PLACE:
        raise FieldError(
            "must be the name of a layer, followed by `.D` and the position of a loop",
            f"LAYER.D0, LAYER.D1, ..., LAYER.D{_LARGEST_PLACE}",
        )
    return match.group(1), int(match.group(2))


class SplitEntry(TableModel):
    """Cut of a layer into parts for different cores."""

    dim: Annotated[int, TextForm(parse_loop, _LOOP.pattern)]
    """Loop that is cut, such as `D2`."""
    split: PositiveCount
    """Number of parts."""


class TileEntry(TableModel):
    """Tile of a fused group."""

    dim: Annotated[tuple[str, int], TextForm(parse_loop_of_layer, _LOOP_OF_LAYER.pattern)]
    """Loop of one layer of the group, such as `conv1.D2`."""
    tile: PositiveCount
    """Number of indices of the loop that one core computes before the next tile begins."""


class KernelEntry(TableModel):
    """Kernel of a core with an instruction set, for which Stream writes code."""

    name: str | None = None
    """Name of the kernel. It has no effect here."""
    kwargs: dict[str, Any] | None = None
    """Arguments of the kernel. They have no effect here."""


class PlacedLayerEntry(TableModel):
    """Cores and parts of the layers that the name selects."""

    name: Name
    """Name of a layer, or type of operators."""
    core_allocation: Annotated[list[Annotated[list[Count], Field(min_length=1)]], Field(min_length=1, max_length=1)]
    """List with one element, which is the list of the core ids."""
    inter_core_tiling: Annotated[list[list[SplitEntry]], Field(max_length=1)] | None = None
    """List with one element, which is the list of the cuts into parts for the cores."""
    kernel: KernelEntry | None = None
    """Kernel for the generation of code. It has no effect here."""


class GroupEntry(TableModel):
    """Group of fused layers."""

    name: Name
    """Name of the group."""
    layers: Annotated[list[Name], Field(min_length=1)]
    """Names of the layers."""
    intra_core_tiling: list[TileEntry] | None = None
    """Tiles, innermost loop first."""


class StreamMappingFile(TableModel):
    """Mapping file of stream-dse 2.x."""

    layers: Annotated[list[PlacedLayerEntry], Field(min_length=1, max_length=LARGEST_WHOLE_NUMBER)]
    """Layers with their cores and parts. If several entries select a layer, the first of them counts."""
    fused_groups: list[GroupEntry] | None = None
    """Groups of fused layers, with their tiles. Each group is a stack."""
    runtime_args: dict[str, Any] | None = None
    """Arguments for the generation of code. They have no effect here."""


def stream_mapping_schema() -> JsonObject:
    """JSON Schema of a mapping file of stream-dse 2.x, in both forms: a table, and only the list of its layers."""
    form = StreamMappingFile | Annotated[list[PlacedLayerEntry], Field(min_length=1)]
    return json_schema(form, "mapping of stream-dse 2.x", "Cores and parts of layers, and fused groups with tiles.")
