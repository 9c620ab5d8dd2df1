"""`tilewright parse`: reader of hardware, workload and mapping files, which writes them as artifacts.

Each kind of file has its own module. If the code for one kind changes, the artifacts of the other kinds therefore stay
up to date.
"""

import inspect
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tilewright.base.artifacts.files import YAML_SUFFIXES, FilePath
from tilewright.base.errors import InputError, Problem
from tilewright.base.parameters import unknown_names
from tilewright.cli.parse_hardware import read_hardware_file
from tilewright.cli.parse_mapping import read_mapping_file
from tilewright.cli.parse_workload import read_workload_file
from tilewright.cli.verb import command_of

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from tilewright.hardware.core import Accelerator, Core
    from tilewright.mapping.constraints import Mapping
    from tilewright.workload.graph import Workload


class _Kinds(click.Group):
    """Command group that inserts the kind of the file if the user does not give it.

    `parse net.onnx` means `parse workload net.onnx`. For `parse file.yaml`, the keys of the file determine the kind.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not any(arg in self.commands for arg in args[:1]):
            kinds = (_kind_of(Path(arg)) for arg in args)
            args = [*(kind for kind in islice(filter(None, kinds), 1)), *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Completions: kinds of files. If no kind matches, names of files."""
        from click.shell_completion import CompletionItem

        return super().shell_complete(ctx, incomplete) or [CompletionItem(incomplete, type="file")]


def _kind_of(path: Path) -> str:
    """Kind of a file, from its suffix or its keys. '' if the file is missing, or if `parse` does not read this kind."""
    if path.suffix == ".onnx":
        return "workload"
    if path.suffix not in YAML_SUFFIXES or not path.is_file():
        return ""
    from tilewright.base import file_kinds
    from tilewright.base.yamlfile import load_yaml

    kind = file_kinds.kind_of(load_yaml(path).data)
    return kind if kind in READERS else ""


@click.group(cls=_Kinds)
def command() -> None:
    """Read a hardware, workload or mapping file, report its errors, and write it as an artifact.

    Example: tilewright parse config/workload/resnet18.onnx
    """


READERS: dict[str, "Callable[..., Accelerator | Core | Workload | Mapping]"] = {
    "hardware": read_hardware_file,
    "workload": read_workload_file,
    "mapping": read_mapping_file,
}
for _kind, _read in READERS.items():
    command.add_command(command_of(_read.__module__), _kind)


def parse(
    kind: str, file: FilePath, output: FilePath | None = None, **options: Any
) -> "Accelerator | Core | Workload | Mapping":
    """Content of a hardware, workload or mapping file. If `output` is given, the content is also written to this
    artifact.

    `kind` is hardware, workload or mapping. `options` are options of the verb for this kind. For hardware, these are
    `core_folder` and `core`; for a workload, `coverage`, `table`, `graph`, `name`, `strict`, `network_options`,
    `model`, `paper`, `dims`, `input_shapes`, `branches`, `precision`, `bits` and `zeros`. Raises InputError with all
    errors of the file, and for an unknown kind or option.
    """
    if kind not in READERS:
        raise InputError([Problem("no such kind of file", path="kind", value=repr(kind), allowed=", ".join(READERS))])
    read = READERS[kind]
    unknown = unknown_names(options, [*inspect.signature(read).parameters][2:], "no such option", "none")
    if unknown:
        raise InputError(unknown)
    return read(file, output, **options)
