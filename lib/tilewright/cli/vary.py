"""`tilewright vary`: variants of a hardware file with named changes, for sweeps over architectures."""

from pathlib import Path
from typing import Annotated

from tilewright.base.artifacts.files import FilePath, write_atomically
from tilewright.cli.options import echo_paths
from tilewright.cli.verb import ARGUMENT, Help, verb


@verb(
    """Write a hardware file for each combination of choices that the YAML file VARIANTS describes.

    The key `base` has the path of a hardware file, relative to the folder of VARIANTS. The key `vary` has a table with
    the name of each variation and its choices. A choice sets values in the base file; dotted paths name these values.
    All files are checked before the first file is written.

    Example: tilewright vary config/hardware/systolic/variants.yml -o results/guide/variants
    """,
    show=echo_paths,
)
def vary(
    variants: Annotated[FilePath, ARGUMENT],
    output: Annotated[FilePath, Help("Folder for the hardware files.")],
) -> list[Path]:
    """Write a hardware file for each combination of choices in a YAML file. Returns the paths of the files. Raises
    InputError with all errors of the YAML file. In this case, no file is written.
    """
    from tilewright.hardware.variants import read_variants, variant_yaml

    base, found = read_variants(Path(variants))
    texts = {Path(output) / f"{variant.name}.yaml": variant_yaml(variant, base) for variant in found}
    for path, text in texts.items():
        write_atomically(path, text)
    return list(texts)
