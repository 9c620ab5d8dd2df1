"""`tilewright split`: smaller layers in place of each layer whose weights are too large for a core."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tilewright.base.artifacts.files import FilePath, make_folder, write_atomically
from tilewright.base.errors import Problem, Problems
from tilewright.base.json_values import JsonObject
from tilewright.cli.options import echo_json, network_keywords
from tilewright.cli.parameter_options import Given, Named, parameter_keywords
from tilewright.cli.terminal import echo, echo_text
from tilewright.cli.verb import SYSTEM_FILE, Help, Tell, silent, verb
from tilewright.multicore.nodes.tiling_options import SplitOptions
from tilewright.workload.network_options import NetworkOptions

if TYPE_CHECKING:
    from tilewright.multicore.nodes.layer_splitting import LayerSplit, SplitNetwork
    from tilewright.pipeline.sources import AcceleratorSource, MappingSource
    from tilewright.pipeline.stages.multi.items import SystemProblem


def _split(
    workload: FilePath,
    hardware: "AcceleratorSource",
    mapping: "MappingSource",
    output: FilePath | None,
    share: Given[SplitOptions],
    keep_weights: bool,
    network_options: NetworkOptions | None,
    tell: Tell = silent,
) -> "tuple[SplitNetwork, SystemProblem]":
    """Pair (network with split layers, input files that were read). If `output` is given, the network is also written
    to this file.

    Raises InputError with all errors of the input.
    """
    from tilewright.multicore.nodes.layer_splitting import open_model, split_layers
    from tilewright.pipeline.stages.descriptions import Descriptions
    from tilewright.pipeline.stages.preflight.network import preflight, read_checked
    from tilewright.workload.source import NETWORK, kind_of_source

    file = Path(workload)
    given = Descriptions(hardware, file, mapping, network_options or NetworkOptions())
    told = Problems()
    options = told.attempt(share)
    if kind_of_source(file) != NETWORK:
        allowed = "a file that ends in .onnx"
        told.found.append(Problem("only layers of ONNX files can be split", str(file), allowed=allowed))
    problem = told.attempt(read_checked, given, None)
    if problem is not None:
        # The cutting options do not matter here; `cns` reports their errors.
        told.found += preflight(problem, None).problems
    told.finish()
    assert options is not None
    assert problem is not None
    model = open_model(file, keep_weights)
    described = (problem.workload, problem.accelerator, problem.mapping)
    found = split_layers(model, *described, options, given.network_options)
    tell([*problem.notices, *found.notices])
    if output is not None:
        make_folder(Path(output).parent)
        write_atomically(Path(output), found.model.SerializeToString(deterministic=True))
    return found, problem


def _show(made: "tuple[SplitNetwork, SystemProblem]", output: Path | None, as_json: bool) -> None:
    found, problem = made
    if as_json:
        echo_json({"network": problem.workload.name, "splits": [_told(one) for one in found.splits]})
    else:
        _echo(problem.workload.name, found, output)


@verb(
    """Split layers over output channels, so that the weights of each part fit the memory of every core that is allowed
    to run the layer.

    Example: tilewright split --hardware config/hardware/multi/quad_core.yaml --workload config/workload/resnet18.onnx
    --mapping config/mapping/multi/quad_core.yaml -o split.onnx
    """,
    run=_split,
    show=_show,
    order="hardware",
)
@network_keywords
@parameter_keywords(share=SplitOptions)
def split(
    workload: Annotated[FilePath, Help("ONNX file.")],
    hardware: Annotated["AcceleratorSource", SYSTEM_FILE],
    mapping: Annotated[
        "MappingSource", Help("Mapping file or artifact; it lists the cores that are allowed to run each layer.")
    ],
    output: Annotated[FilePath | None, Help("ONNX file to write.")] = None,
    *,
    share: Named[SplitOptions],
    keep_weights: Annotated[
        bool, Help("Keep weights that are in a separate large file. The output is then as large as this file.")
    ] = False,
    network_options: NetworkOptions | None = None,
) -> "SplitNetwork":
    """ONNX model with split layers. A layer is split if its weights are too large for a core that is allowed to run it.

    The keywords are settings of `SplitOptions`. `output` is the file to write. With `keep_weights`, weights in a
    separate large file are kept too. Raises InputError with all errors of the input files and settings.
    """
    return _split(workload, hardware, mapping, output, share, keep_weights, network_options)[0]


def _told(split: "LayerSplit") -> JsonObject:
    return {
        "layer": split.layer,
        "operator_type": split.operator_type,
        "weight_bits": split.weight_bits,
        "core": split.core_id,
        "memory": split.memory,
        "memory_bits": split.memory_bits,
        "capacity_bits": split.capacity_bits,
        "largest_part_bits": split.largest_part_bits,
        "parts": [
            {"name": name, "first_channel": part.start, "channels": part.end - part.start}
            for name, part in zip(split.part_names, split.parts, strict=True)
        ],
    }


def _echo(network: str, split: "SplitNetwork", output: Path | None) -> None:
    if not split.splits:
        echo(f"{network}: no layer is split" + (f"; {output} is the same network" if output else ""))
        return
    from tilewright.results.terminal_tables import render, text_table

    parts = sum(len(one.parts) for one in split.splits)
    numbers = ("weights\n[bits]", "room\n[bits]", "output\nchannels", "parts", "largest part\n[bits]")
    title = f"{network}: {len(split.splits)} layers become {parts}"
    table = text_table(title, ("layer", "operator", "smallest memory"), numbers)
    for one in split.splits:
        counts = (one.weight_bits, one.capacity_bits, one.channels, len(one.parts), one.largest_part_bits)
        place = f"{one.memory} of core {one.core_id}"
        table.add_row(one.layer, one.operator_type, place, *(f"{count:,}" for count in counts))
    echo_text(render(table, 150), nl=True)
