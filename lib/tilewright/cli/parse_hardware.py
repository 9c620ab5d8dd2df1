"""`tilewright parse hardware`: reader of hardware files with one or several cores."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from tilewright.base.artifacts.codec import encode
from tilewright.base.artifacts.digests import input_digest
from tilewright.base.artifacts.envelope import is_artifact, provenance, write_document
from tilewright.base.artifacts.files import FilePath
from tilewright.base.errors import InputError, Problem, nearest_name
from tilewright.base.harmless import terminal_lines
from tilewright.cli.options import echo_json
from tilewright.cli.terminal import echo_text
from tilewright.cli.verb import ARGUMENT, Help, Tell, silent, verb
from tilewright.hardware.core import Accelerator, Core
from tilewright.hardware.system import COMPUTE, OFFCHIP, CorePlace, Link, MultiCoreAccelerator, all_pairs, memory_text

MOST_CORES_WITH_PATHS = 12
"""Limit on the number of cores: with more cores, the paths between all cores are printed only with -v."""


def _parsed(
    file: FilePath, output: FilePath | None, core_folder: FilePath | None, core: str | None, tell: Tell = silent
) -> Accelerator | Core:
    """Accelerator in the file, or only its core with the name `core`, if a name is given. Requested artifacts are
    written."""
    accelerator, notices = _read(Path(file))
    tell(notices)
    return _write(accelerator, Path(file), output, core_folder, core)


def _show(
    found: Accelerator | Core, output: Path | None, core_folder: Path | None, verbose: bool, as_json: bool
) -> None:
    if as_json:
        echo_json(encode(found))
    elif verbose or not (output or core_folder):
        echo_text(terminal_lines(_core_lines(found) if isinstance(found, Core) else _lines(found, verbose)), nl=True)


@verb(
    """Read a hardware FILE, with one or several cores.

    Example: tilewright parse hardware config/hardware/zigzag/tpu_like.yaml -o accelerator.json
    """,
    run=_parsed,
    show=_show,
)
def read_hardware_file(
    file: Annotated[FilePath, ARGUMENT],
    output: Annotated[FilePath | None, Help("File for the artifact (accelerator.json).")] = None,
    *,
    core_folder: Annotated[
        FilePath | None, Help("Folder for artifacts of the core files, one for each core file.", metavar="FOLDER")
    ] = None,
    core: Annotated[
        str | None, Help("Name of a core file: only this core is written to --output.", metavar="NAME")
    ] = None,
) -> Accelerator | Core:
    """Accelerator in a file, or only its core with the name `core`, if a name is given.

    The result is also written to the artifact `output`. `core_folder` is a folder for artifacts of all core files.
    """
    return _parsed(file, output, core_folder, core)


def _read(file: Path) -> tuple[Accelerator, list[str]]:
    """Pair (accelerator in a file, notices on unusual content)."""
    from tilewright.pipeline.stages.base import run_stages
    from tilewright.pipeline.stages.descriptions import Descriptions
    from tilewright.pipeline.stages.hardware_parser import AcceleratorParser

    read: Descriptions = next(run_stages((AcceleratorParser(),), Descriptions(hardware=file)))
    accelerator = read.checked().accelerator
    assert accelerator is not None
    return accelerator, list(read.notices)


def _write(
    accelerator: Accelerator, file: Path, output: FilePath | None, core_folder: FilePath | None, core: str | None
) -> Accelerator | Core:
    """Write the requested artifacts. Returns the core with the name `core`, or the accelerator if `core` is None."""
    chosen = _core_called(core, accelerator, file) if core is not None else None
    paths = _core_paths(file)
    if output and chosen is not None:
        _write_core(Path(output), core or "", chosen, paths)
    elif output:
        _write_accelerator(Path(output), accelerator, file, paths)
    if core_folder:
        for name, found in _distinct_cores(accelerator).items():
            _write_core(Path(core_folder) / f"{name}.json", name, found, paths)
    return accelerator if chosen is None else chosen


def _core_paths(file: Path) -> dict[str, Path]:
    """Path of each core file, by name. {} for an artifact and for a file with one core."""
    from tilewright.hardware.core_paths import core_paths

    return {} if is_artifact(file) else core_paths(file)


def _distinct_cores(accelerator: Accelerator) -> dict[str, Core]:
    if isinstance(accelerator, MultiCoreAccelerator):
        return accelerator.distinct_cores
    return {core.name: core for core in accelerator.cores}


def _core_called(name: str, accelerator: Accelerator, file: Path) -> Core:
    cores = _distinct_cores(accelerator)
    if name not in cores:
        near = nearest_name(name, list(cores))
        raise InputError([Problem("has no such core", str(file), value=name, allowed=", ".join(cores), nearest=near)])
    return cores[name]


def _write_accelerator(output: Path, accelerator: Accelerator, file: Path, paths: dict[str, Path]) -> None:
    from tilewright.hardware.source import schema_of
    from tilewright.hardware.whole_text import FILE_TEXT, whole_text

    digests = {"hardware": input_digest(file)} | {f"core {name}": input_digest(path) for name, path in paths.items()}
    text = whole_text(file, accelerator)
    made_by = provenance("parse_hardware", digests) | ({FILE_TEXT: text} if text else {})
    write_document(output, schema_of(accelerator), encode(accelerator), made_by)


def _write_core(output: Path, name: str, core: Core, paths: dict[str, Path]) -> None:
    # The artifact of a core depends only on the core file, not on the accelerator that uses it.
    digests = {"core": input_digest(paths[name])} if name in paths else {}
    write_document(output, "tilewright/core", encode(core), provenance("parse_hardware", digests))


def _lines(accelerator: Accelerator, verbose: bool) -> Iterator[str]:
    if not isinstance(accelerator, MultiCoreAccelerator):
        for core in accelerator.cores:
            yield from _core_lines(core)
        return
    yield f"{accelerator.name}: {len(accelerator.cores)} cores, links: {len(accelerator.links)}"
    yield ""
    rows = [_place_row(accelerator, place) for place in accelerator.places]
    yield from _table(("core", "role", "file", "array", "memories", "shares with", "runs"), rows)
    yield ""
    links = [_link_row(link) for link in accelerator.links]
    yield from _table(("link", "kind", "b/cycle", "pJ/bit", "pairs"), links)
    if verbose or len(accelerator.cores) <= MOST_CORES_WITH_PATHS:
        yield ""
        yield from _table(("path", "links", "b/cycle", "pJ/bit"), _path_rows(accelerator))
    if verbose:
        for name, core in accelerator.distinct_cores.items():
            yield from ("", f"core file {name}", *_core_lines(core))


def _core_lines(core: Core) -> Iterator[str]:
    array = core.operational_array
    yield f"{core.name}: array {_array(core)}, {array.unit_count} units of {array.unit_energy_pj:g} pJ"
    for memory in core.memories:
        yield (
            f"  {memory.name}: {memory.size_bits:,} bits for {', '.join(memory.operands)}, one per"
            f" {_instances(memory.served_dimensions, array.size_of)},"
            f" read {memory.read_energy_pj:g} pJ, write {memory.write_energy_pj:g} pJ a word"
        )


def _array(core: Core) -> str:
    return " x ".join(f"{dimension} {size}" for dimension, size in core.operational_array.dimensions)


def _instances(served: tuple[str, ...], sizes: dict[str, int]) -> str:
    if not served:
        return "unit"
    return "array" if set(served) == set(sizes) else "group over " + ", ".join(served)


def _place_row(accelerator: MultiCoreAccelerator, place: CorePlace) -> tuple[str, ...]:
    from tilewright.hardware.hierarchy import top_memories

    offchip = place.role == OFFCHIP
    core = accelerator.core_of[place.core_id]
    memories = [f"{memory.name} {memory.size_bits:,} b ({' '.join(held)})" for memory, held in top_memories(core)]
    runs = "" if offchip else ", ".join(place.operator_types) if place.operator_types else "as mapped"
    # By default compute cores are routers and other cores are not; only exceptions are printed.
    routing = "" if place.is_router == (place.role == COMPUTE) else ", router" if place.is_router else ", no router"
    sharers = [str(other) for other in accelerator.sharers_of(place.core_id) if other != place.core_id]
    for group in accelerator.shared_memories:
        if any(core_id == place.core_id for core_id, _ in group):
            sharers += [memory_text(one) for one in group if one[0] != place.core_id]
    what = (str(place.core_id), place.role + routing, place.file_name, "" if offchip else _array(core))
    return (*what, ", ".join(memories), ", ".join(sharers), runs)


def _link_row(link: Link) -> tuple[str, ...]:
    return (link.name, link.kind, _width(link.bandwidth_bits_per_cycle), f"{link.energy_pj_per_bit:g}", _pairs(link))


def _pairs(link: Link) -> str:
    """Text with the pairs of cores that a link connects. For a bus, the text lists only the cores."""
    if len(link.edges) > 2 and set(link.edges) == set(all_pairs(link.core_ids)):
        return f"all of {', '.join(map(str, link.core_ids))}"
    by_sender: dict[int, list[int]] = {}
    for sender, receiver in link.edges:
        by_sender.setdefault(sender, []).append(receiver)
    return "; ".join(f"{sender} to {', '.join(map(str, found))}" for sender, found in by_sender.items())


def _path_rows(accelerator: MultiCoreAccelerator) -> list[tuple[str, ...]]:
    from tilewright.hardware.system_paths import path_table

    rows: list[tuple[str, ...]] = []
    for (sender, receiver), path in path_table(accelerator).items():
        if sender == receiver:
            continue
        names = ", ".join(accelerator.links[index].name for index in path.links) or "shared memory"
        width = _width(path.bandwidth_bits_per_cycle(accelerator.links)) if path.links else ""
        energy = f"{path.energy_pj_per_bit(accelerator.links):g}"
        rows.append((f"{sender} to {receiver}", names, width, energy))
    return rows


def _width(bits: int | None) -> str:
    return "infinite" if bits is None else f"{bits:,}"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[str]:
    """Lines of a text table. Empty columns are left out."""
    columns = [column for column in zip(head, *rows, strict=True) if any(column[1:])]
    widths = [max(map(len, column)) for column in columns]
    for line in zip(*columns, strict=True):
        yield "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
