"""`tilewright new`: hardware, mapping and configuration files of a new accelerator."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Annotated

from tilewright.base.artifacts.files import FilePath, write_atomically
from tilewright.base.errors import InputError, Problem
from tilewright.base.parameters import Limits, OneOf
from tilewright.cli.config_files import ambiguity, find_file, known_files, nearest_known
from tilewright.cli.new_files import (
    KINDS,
    SUM_BITS,
    NewAccelerator,
    configuration_text,
    hardware_text,
    mapping_text,
)
from tilewright.cli.options import echo_paths
from tilewright.cli.terminal import echo
from tilewright.cli.verb import ARGUMENT, Help, Tell, silent, verb
from tilewright.hardware.silicon.library import dram_types
from tilewright.hardware.silicon.memory_cost import CELLS

if TYPE_CHECKING:
    from tilewright.hardware.core import Core

HARDWARE, MAPPING, CONFIGURATION = "hardware.yaml", "mapping.yaml", "config.yaml"
WORKLOAD, PROJECT = "workload", Path("config")
"""WORKLOAD: kind of the files that describe networks. PROJECT: folder of input files, inside the folder in which
`make run` works."""


def _show(paths: Sequence[Path], networks: Sequence[str], as_json: bool) -> None:
    """Print the paths, and for each network the command that maps it on the accelerator."""
    echo_paths(paths, as_json)
    files = [find_file(WORKLOAD, name) for name in networks] or [Path("NETWORK")]
    for file in [] if as_json else files:
        folder = "run" if len(files) == 1 else f"run-{file.stem}"
        given = ["--hardware", str(paths[0]), "--mapping", str(paths[1]), "--workload", str(file)]
        given += [f"--bits=partial={SUM_BITS}"] if file.suffix == ".onnx" or not networks else []
        given += ["-o", str(paths[0].parent / folder)]
        echo(f"to map {'a network' if len(files) == 1 else file.stem}: {join(['tilewright', 'map', *given])}")


def _written(
    folder: FilePath,
    like: str,
    array: str,
    sram: str,
    node_nm: float,
    cells: str,
    dram: str,
    dram_bandwidth: str,
    clock: str,
    networks: Sequence[str],
    tell: Tell = silent,
) -> list[Path]:
    """Paths of the files that were written. `tell` gets a line on the accelerator, and the notices on the hardware
    file."""
    place = Path(folder)
    chosen = NewAccelerator(place.resolve().name, like, array, sram, node_nm, cells, dram, dram_bandwidth, clock)
    problems = chosen.problems()
    problems += _unknown_networks(networks)
    names = (HARDWARE, MAPPING, *([CONFIGURATION] if networks else []))
    problems += [Problem("exists already", str(place / name)) for name in names if (place / name).exists()]
    if problems:
        raise InputError(problems)
    files = place / HARDWARE, place / MAPPING
    texts = dict(zip(files, (hardware_text(chosen), mapping_text(chosen)), strict=True))
    try:
        core, notices = _checked(texts)
    except InputError as error:
        raise InputError(dict.fromkeys(map(chosen.in_options, error.problems))) from None
    if networks:
        named = networks
        if not PROJECT.is_dir():  # `make run` works in another folder, in which paths relative to this one are wrong
            files = (files[0].resolve(), files[1].resolve())
            named = [str(find_file(WORKLOAD, name).resolve()) for name in networks]
        have_bits = [find_file(WORKLOAD, name).suffix == ".onnx" for name in networks]
        texts[place / CONFIGURATION] = configuration_text(chosen.name, *files, named, have_bits)
    for path, text in texts.items():
        write_atomically(path, text)
    tell([_summary(chosen, core), *notices])
    return list(texts)


def _summary(chosen: NewAccelerator, core: "Core") -> str:
    from tilewright.cli.new_summary import summary_line

    return summary_line(chosen, core)


@verb(
    """Write hardware.yaml, mapping.yaml and config.yaml of a new accelerator into FOLDER.

    All costs come from the library of costs, with their sources in comments. The files are checked before they are
    written, and no existing file is overwritten. You can then change the files by hand.

    Example: tilewright new mine --like eyeriss --array 12x14 --sram "108 KiB" --node-nm 65 --network resnet18
    """,
    run=_written,
    show=_show,
)
def new(
    folder: Annotated[FilePath, ARGUMENT],
    like: Annotated[
        str,
        OneOf(KINDS),
        Help("Kind of the array: tpu is weight-stationary, eyeriss is row-stationary."),
    ] = "tpu",
    array: Annotated[str, Help("Numbers of rows and columns of the array.")] = "16x16",
    sram: Annotated[str, Help("Size of the SRAM.")] = "256 KiB",
    node_nm: Annotated[float, Limits(above=0), Help("Technology node in nm.")] = 28.0,
    cells: Annotated[str, OneOf(tuple(sorted(CELLS))), Help("Type of the cells of the SRAM.")] = "hp",
    dram: Annotated[str, OneOf(dram_types), Help("Type of the DRAM.")] = "lpddr4",
    dram_bandwidth: Annotated[str, Help("Bandwidth of the DRAM, such as 12.8 GB/s or 128 bit/cycle.")] = "12.8 GB/s",
    clock: Annotated[str, Help("Frequency of the clock.")] = "800 MHz",
    networks: Annotated[
        Sequence[str],
        Help(
            "Network of the configuration: an ONNX or YAML file, or the name of a file in config/workload. Without this"
            " option, no configuration is written. The option can be given several times.",
            flag="--network",
        ),
    ] = (),
) -> list[Path]:
    """Write the files of a new accelerator; returns their paths.

    The name of the accelerator is the name of the folder. `array` has the count of rows and the count of columns, such
    as `16x16`. `sram`, `dram_bandwidth` and `clock` are quantities as in hardware files. `networks` are the workloads
    of the configuration: paths, or names of files in `config/workload`. If the working folder contains a folder
    `config`, like the working folder of `make run`, the configuration has relative paths. Otherwise, its paths are
    absolute. Raises InputError if a choice is not possible, or if one of the files exists. In both cases, no file is
    written.
    """
    return _written(folder, like, array, sram, node_nm, cells, dram, dram_bandwidth, clock, networks)


def _unknown_networks(networks: Sequence[str]) -> list[Problem]:
    """Problems of networks that are neither names of files in config/workload nor paths of files."""
    found = []
    for name in networks:
        if message := ambiguity(WORKLOAD, name):
            found.append(Problem(message, path="networks", value=repr(name)))
        elif not find_file(WORKLOAD, name).is_file():
            place, known = known_files(WORKLOAD, name)
            message = f"no such workload file in {place}"
            allowed = "the path of an ONNX or YAML file" + (", or a name of a file there" if known else "")
            near = nearest_known(WORKLOAD, name, known)
            found.append(Problem(message, path="networks", value=repr(name), allowed=allowed, nearest=near))
    return found


def _checked(texts: Mapping[Path, str]) -> "tuple[Core, list[str]]":
    """Pair (core, notices on the hardware file). `texts` has the texts of the hardware file and the mapping file, in
    this order. Raises InputError with all problems of the two files.
    """
    from tilewright.base.yamlfile import parse_yaml
    from tilewright.hardware.yaml_reader import accelerator_of
    from tilewright.mapping.file_checks import check_mapping_against_core
    from tilewright.mapping.source import parse_mapping

    hardware, mapping = (parse_yaml(text, str(path)) for path, text in texts.items())
    notices: list[str] = []
    core = accelerator_of(hardware, notices).cores[0]
    problems = check_mapping_against_core(parse_mapping(mapping.data), core, mapping.file)
    if problems:
        raise InputError(problems)
    return core, notices
