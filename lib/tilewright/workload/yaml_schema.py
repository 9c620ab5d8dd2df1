"""The workload file: a list of layers, in the dialect of zigzag-dse 3.9.1."""

from typing import Annotated, Any, Literal

from pydantic import Field

from tilewright.validation import Count, Entry, PositiveCount, TextForm, json_schema
from tilewright.workload.equation import (
    EQUATION_PATTERN,
    LOOP_DIMENSION,
    RELATION_PATTERN,
    OperandDimensions,
    check_loop_dimension,
    parse_equation,
    parse_relation,
)
from tilewright.workload.layer import DimensionRelation

LoopDimension = Annotated[str, TextForm(check_loop_dimension, LOOP_DIMENSION.pattern)]
Equation = Annotated[OperandDimensions, TextForm(parse_equation, EQUATION_PATTERN)]
Relation = Annotated[DimensionRelation, TextForm(parse_relation, RELATION_PATTERN)]
Bits = Annotated[int, Field(ge=0, le=1024)]
PositiveBits = Annotated[int, Field(gt=0, le=1024)]
Padding = Annotated[list[Count], Field(min_length=2, max_length=2)]


class PrecisionEntry(Entry):
    """Bits of one element of each operand."""

    W: Bits
    """Bits of the weights; 0 for an operand that costs nothing, as in pooling."""
    I: Bits  # noqa: E741
    """Bits of the inputs."""
    O: PositiveBits  # noqa: E741
    """Bits of partial sums."""
    O_final: PositiveBits
    """Bits of final outputs."""


class SourcesEntry(Entry):
    """Where the inputs come from."""

    W: int | None = None
    """Id of the layer that makes the weights; the own id for constants."""
    I: int | None = None  # noqa: E741
    """Id of the layer that makes the input; the own id for constants."""


class LayerEntry(Entry):
    """One layer."""

    id: int
    """Number of the layer, unique in the file."""
    name: str | None = None
    """Name of the layer; by default `Layer<id>`."""
    operator_type: Literal[
        "Max",
        "Conv",
        "Pooling",
        "Add",
        "Conv_downsample",
        "Gemm",
        "MatMul",
        "Pool",
        "MaxPool",
        "AveragePool",
        "GlobalAveragePool",
    ]
    """What the layer does; selects entries of the mapping file."""
    equation: Equation
    """The layer as an equation over loop dimensions: O[b][k][oy][ox] += W[k][c][fy][fx] * I[b][c][iy][ix]."""
    dimension_relations: list[Relation] | None = None
    """Sliding windows: ix = 2*ox + 1*fx declares the dimension ix of the input."""
    loop_dims: Annotated[list[LoopDimension], Field(min_length=1)]
    """Names of the loop dimensions."""
    loop_sizes: list[PositiveCount]
    """Size of each loop dimension, in the order of `loop_dims`."""
    operand_precision: PrecisionEntry
    """Bits of each operand."""
    operand_source: SourcesEntry | None = None
    """For each input the id of the layer that makes it; the own id marks a constant."""
    pr_loop_dims: list[LoopDimension] | None = None
    """Dimensions declared by sliding windows, in the order of `pr_loop_sizes` and `padding`."""
    pr_loop_sizes: list[PositiveCount] | None = None
    """Their sizes; where given, padding is not used."""
    padding: list[Padding] | None = None
    """[before, after] for each of `pr_loop_dims`."""


WorkloadFile = Annotated[list[LayerEntry], Field(min_length=1)]


def workload_schema() -> dict[str, Any]:
    """The JSON Schema of a workload file."""
    return json_schema(WorkloadFile, "tilewright workload", "The layers of a network, as loop nests.")
