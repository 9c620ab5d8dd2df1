"""`tilewright vary`: hardware files that differ from one in named ways, for sweeps over architectures."""

from pathlib import Path

import click

from tilewright.artifacts.canonical import write_atomically
from tilewright.cli.options import FILE, common_options, echo_json


@click.command()
@click.argument("variants", type=FILE)
@click.option("-o", "--output", type=FILE, required=True, help="Folder to write the hardware files into.")
@common_options
def command(variants: Path, output: Path, verbose: bool, as_json: bool) -> None:
    """Write a hardware file for every combination of choices that the YAML file VARIANTS describes.

    `base` is the path of a hardware file, from the folder of VARIANTS; `vary` names what is varied, the choices of
    each, and the values that a choice sets in the base, by their dotted paths. All files are checked before one is
    written.

    Example: tilewright vary config/hardware/systolic/variants.yml -o results/guide/variants
    """
    from tilewright.hardware.variants import read_variants, variant_yaml

    base, found = read_variants(variants)
    paths = []
    for variant in found:
        path = output / f"{variant.name}.yaml"
        write_atomically(path, variant_yaml(variant, base))
        paths.append(str(path))
    if as_json:
        echo_json(paths)
    else:
        click.echo("\n".join(paths))
