"""`tilewright vary`: hardware files that differ from one in named ways, for sweeps over architectures."""

from pathlib import Path
from typing import Annotated

from tilewright.base.artifacts.files import FilePath, write_atomically
from tilewright.cli.options import echo_paths
from tilewright.cli.verb import ARGUMENT, Help, verb


@verb(
    """Write a hardware file for every combination of choices that the YAML file VARIANTS describes.

    `base` is the path of a hardware file, relative to the folder of VARIANTS. `vary` has the names of what varies, the
    choices for each, and the values that a choice sets in the base, by their dotted paths. All files are checked before
    one is written.

    Example: tilewright vary config/hardware/systolic/variants.yml -o results/guide/variants
    """,
    show=echo_paths,
)
def vary(
    variants: Annotated[FilePath, ARGUMENT],
    output: Annotated[FilePath, Help("Folder to write the hardware files into.")],
) -> list[Path]:
    """Write a hardware file for every combination of choices that a YAML file describes into a folder; returns the
    files.

    Raises InputError with everything that is wrong, before anything is written.
    """
    from tilewright.hardware.variants import read_variants, variant_yaml

    base, found = read_variants(Path(variants))
    texts = {Path(output) / f"{variant.name}.yaml": variant_yaml(variant, base) for variant in found}
    for path, text in texts.items():
        write_atomically(path, text)
    return list(texts)
