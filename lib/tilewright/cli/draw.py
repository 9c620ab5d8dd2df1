"""`tilewright draw`: the memory hierarchy of a core as a figure."""

from pathlib import Path

import click

from tilewright.artifacts.canonical import writing
from tilewright.artifacts.envelope import is_artifact
from tilewright.artifacts.objects import read_object
from tilewright.cli.options import FILE, common_options, echo_json
from tilewright.cli.report import keep_font_cache_here
from tilewright.hardware.core import Accelerator
from tilewright.hardware.yaml_reader import read_accelerator


@click.command()
@click.argument("hardware", type=FILE)
@click.option("-o", "--output", type=FILE, required=True, help="File to write, .svg; a .png stands beside it.")
@common_options
def command(hardware: Path, output: Path, verbose: bool, as_json: bool) -> None:
    """Draw the memories of a hardware file or artifact above the array: operands, sizes, instances, ports, costs.

    An accelerator of several cores gives a figure for each, named after the core.

    Example: tilewright draw config/hardware/tpu_like.yaml -o tpu_like.svg
    """
    keep_font_cache_here()
    from tilewright.report.hierarchy_figure import write_hierarchy_figure

    stem = output.with_suffix("") if output.suffix in (".svg", ".png") else output
    if is_artifact(hardware):
        accelerator = read_object(Accelerator, hardware, "tilewright/accelerator")
    else:
        accelerator = read_accelerator(hardware)
    several = len(accelerator.cores) > 1
    paths: list[Path] = []
    with writing(stem):
        for core in accelerator.cores:
            paths += write_hierarchy_figure(core, stem.with_name(f"{stem.name}-{core.name}") if several else stem)
    if as_json:
        echo_json([str(path) for path in paths])
    else:
        click.echo("\n".join(str(path) for path in paths))
