"""`tilewright parse mapping`: reader of mapping files."""

from pathlib import Path
from typing import Annotated

from tilewright.base.artifacts.codec import encode
from tilewright.base.artifacts.digests import input_digest
from tilewright.base.artifacts.envelope import provenance, write_document
from tilewright.base.artifacts.files import FilePath
from tilewright.base.harmless import terminal_lines
from tilewright.cli.options import echo_json
from tilewright.cli.terminal import echo_text
from tilewright.cli.verb import ARGUMENT, Help, Tell, silent, verb
from tilewright.mapping.constraints import Mapping, MappingConstraints
from tilewright.mapping.network_plans import NetworkPlan


def _parsed(file: FilePath, output: FilePath | None, tell: Tell = silent) -> Mapping:
    """Mapping in a file. If `output` is given, the mapping is also written to this artifact."""
    parsed, notices = _read(Path(file))
    tell(notices)
    _write(parsed, Path(file), output)
    return parsed


def _show(parsed: Mapping, output: Path | None, verbose: bool, as_json: bool) -> None:
    if as_json:
        echo_json(encode(parsed))
    elif verbose or not output:
        plan = [] if parsed.plan is None else _plan_lines(parsed.plan)
        echo_text(terminal_lines(plan or map(_text, parsed.entries)), nl=True)


@verb(
    """Read a mapping FILE.

    Example: tilewright parse mapping config/mapping/zigzag/tpu_like.yaml -o mapping.json
    """,
    run=_parsed,
    show=_show,
)
def read_mapping_file(
    file: Annotated[FilePath, ARGUMENT],
    output: Annotated[FilePath | None, Help("File for the artifact (mapping.json).")] = None,
) -> Mapping:
    """Mapping of a file. It is also written to the artifact `output`."""
    return _parsed(file, output)


def _read(file: Path) -> tuple[Mapping, list[str]]:
    """Pair (mapping in a file, notices on unusual content)."""
    from tilewright.pipeline.stages.base import run_stages
    from tilewright.pipeline.stages.descriptions import Descriptions, NetworkProblem
    from tilewright.pipeline.stages.mapping_parser import MappingParser

    read: NetworkProblem = next(run_stages((MappingParser(),), Descriptions(mapping=file)))
    return read.mapping, list(read.notices)


def _write(parsed: Mapping, file: Path, output: FilePath | None) -> None:
    if output:
        made_by = provenance("parse_mapping", {"mapping": input_digest(file)})
        write_document(Path(output), "tilewright/mapping", encode(parsed), made_by)


def _plan_lines(plan: NetworkPlan) -> list[str]:
    """Lines on the layers and the fused groups of a network plan."""
    lines = []
    for layer in plan.layers:
        parts = ", ".join(f"D{split.dimension} in {split.parts}" for split in layer.splits) or "not cut"
        lines.append(f"{layer.name}: {parts}; cores {', '.join(map(str, layer.cores))}")
    for group in plan.groups:
        tiles = ", ".join(f"{tile.layer}.D{tile.dimension} in tiles of {tile.size}" for tile in group.tiles)
        lines.append(f"group {group.name}: {', '.join(group.layers)}; {tiles or 'not cut'}")
    return lines


def _text(entry: MappingConstraints) -> str:
    unrollings = "; ".join(
        f"{array_dimension}: " + (", ".join(f"{dimension} {factor}" for dimension, factor in factors) or "-")
        for array_dimension, factors in entry.spatial_mapping
    )
    order = ", ".join(f"{loop.dimension} {loop.size or '*'}" for loop in entry.temporal_ordering)
    return f"{entry.name}: {unrollings or 'generated'}" + (f"; order {order}" if order else "")
