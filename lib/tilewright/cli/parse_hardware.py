"""`tilewright parse hardware`."""

from pathlib import Path

import click

from tilewright.artifacts.codec import encode
from tilewright.artifacts.digests import input_digest
from tilewright.artifacts.envelope import write_document
from tilewright.artifacts.provenance import provenance
from tilewright.cli.options import FILE, common_options, echo_json, echo_notices
from tilewright.hardware.core import Accelerator


@click.command()
@click.argument("file", type=FILE)
@click.option("-o", "--output", type=FILE, help="Artifact to write (accelerator.json).")
@common_options
def hardware(file: Path, output: Path | None, verbose: bool, as_json: bool) -> None:
    """Read a hardware FILE.

    Example: tilewright parse hardware config/hardware/tpu_like.yaml -o accelerator.json
    """
    from tilewright.stages.base import run_stages
    from tilewright.stages.descriptions import Descriptions
    from tilewright.stages.hardware_parser import AcceleratorParser

    read: Descriptions = next(run_stages((AcceleratorParser(),), Descriptions(hardware=file)))
    accelerator = read.checked().accelerator
    assert accelerator is not None
    echo_notices(list(read.notices))
    if output:
        made_by = provenance("parse_hardware", {"hardware": input_digest(file)})
        write_document(output, "tilewright/accelerator", encode(accelerator), made_by)
    if as_json:
        echo_json(encode(accelerator))
    elif verbose or not output:
        click.echo(_text(accelerator))


def _text(accelerator: Accelerator) -> str:
    lines = []
    for core in accelerator.cores:
        array = core.operational_array
        sizes = " x ".join(f"{dimension} {size}" for dimension, size in array.dimensions)
        lines.append(f"{core.name}: array {sizes}, {array.unit_count} units of {array.unit_energy_pj:g} pJ")
        lines += [
            f"  {memory.name}: {memory.size_bits:,} bits for {', '.join(memory.operands)}, one per"
            f" {_instances(memory.served_dimensions, array.size_of)},"
            f" read {memory.read_energy_pj:g} pJ, write {memory.write_energy_pj:g} pJ a word"
            for memory in core.memories
        ]
    return "\n".join(lines)


def _instances(served: tuple[str, ...], sizes: dict[str, int]) -> str:
    if not served:
        return "unit"
    return "array" if set(served) == set(sizes) else "group over " + ", ".join(served)
