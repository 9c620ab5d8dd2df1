"""`tilewright draw`: the memory hierarchy of a core as a figure."""

from pathlib import Path
from typing import Annotated

from tilewright.base.artifacts.files import FilePath, writing
from tilewright.cli.options import echo_paths, keep_font_cache_here
from tilewright.cli.verb import ARGUMENT, Help, Paper, verb
from tilewright.hardware.source import AcceleratorSource, parse_accelerator
from tilewright.hardware.system import MultiCoreAccelerator
from tilewright.results.sheet import PaperWidth

OF_OUTPUT = (
    "SVG file to write; a PNG file with the same name is written beside it. With --paper column, the path core.svg"
    " gives core-column.pdf, .svg, .txt, .csv and core-column-caption.tex instead."
)


@verb(
    """Draw the memories of a hardware file or artifact above the array: operands, sizes, instances, ports, costs.

    For an accelerator with several cores, one figure shows its cores, links and buses. Each core file has a figure
    of its own; the name of this figure contains the name of the core file.

    Example: tilewright draw config/hardware/zigzag/tpu_like.yaml -o tpu_like.svg
    """,
    show=echo_paths,
)
def draw(
    hardware: Annotated[AcceleratorSource, ARGUMENT],
    output: Annotated[FilePath, Help(OF_OUTPUT)],
    paper: Annotated[PaperWidth | None, Paper()] = None,
) -> list[Path]:
    """Draw the memories of a core above its array, as SVG and PNG. Returns the paths of the files.

    For an accelerator with several cores, a second figure shows its cores, links and buses. `paper` is the width of
    figures for a paper, `column` or `page`; None draws figures for a report. Raises InputError for a wrong hardware
    file, and for a figure that is wider than `paper` allows.
    """
    keep_font_cache_here()
    from tilewright.results.hierarchy_figure import write_hierarchy_figure

    place = Path(output)
    stem = place.with_suffix("") if place.suffix in (".svg", ".png") else place
    accelerator = parse_accelerator(hardware)
    with writing(stem):
        if not isinstance(accelerator, MultiCoreAccelerator):
            return [*write_hierarchy_figure(accelerator.cores[0], stem)]
        from tilewright.results.multi.system_figure import write_system_figure

        paths = [*write_system_figure(accelerator, stem)]
        for name, core in accelerator.distinct_cores.items():
            paths += write_hierarchy_figure(core, stem.with_name(f"{stem.name}-{name}"))
        return paths
