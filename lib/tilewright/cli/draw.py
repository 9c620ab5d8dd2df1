"""`tilewright draw`: the memory hierarchy of a core as a figure."""

from pathlib import Path

import click

from tilewright.artifacts.canonical import writing
from tilewright.cli.options import FILE, common_options, echo_json
from tilewright.cli.report import keep_font_cache_here
from tilewright.hardware.source import parse_accelerator
from tilewright.hardware.system import MultiCoreAccelerator


@click.command()
@click.argument("hardware", type=FILE)
@click.option("-o", "--output", type=FILE, required=True, help="File to write, .svg; a .png stands beside it.")
@common_options
def command(hardware: Path, output: Path, verbose: bool, as_json: bool) -> None:
    """Draw the memories of a hardware file or artifact above the array: operands, sizes, instances, ports, costs.

    An accelerator of several cores gives a figure of its cores, links and buses, and one for each core file, named
    after it.

    Example: tilewright draw config/hardware/tpu_like.yaml -o tpu_like.svg
    """
    keep_font_cache_here()
    from tilewright.report.hierarchy_figure import write_hierarchy_figure

    stem = output.with_suffix("") if output.suffix in (".svg", ".png") else output
    accelerator = parse_accelerator(hardware)
    paths: list[Path] = []
    with writing(stem):
        if isinstance(accelerator, MultiCoreAccelerator):
            from tilewright.report.multi.system_figure import write_system_figure

            paths += write_system_figure(accelerator, stem)
            for name, core in accelerator.distinct_cores.items():
                paths += write_hierarchy_figure(core, stem.with_name(f"{stem.name}-{name}"))
        else:
            paths += write_hierarchy_figure(accelerator.cores[0], stem)
    if as_json:
        echo_json([str(path) for path in paths])
    else:
        click.echo("\n".join(str(path) for path in paths))
