"""`tilewright parse`: descriptions to artifacts. Each kind has a module, so that each has its own code digest."""

import click

from tilewright.cli.parse_hardware import hardware
from tilewright.cli.parse_mapping import mapping
from tilewright.cli.parse_workload import workload


class _Kinds(click.Group):
    """`parse net.onnx` is short for `parse workload net.onnx`: no other kind of file is an ONNX model."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if any(arg.endswith(".onnx") for arg in args) and not any(arg in self.commands for arg in args[:1]):
            args = ["workload", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_Kinds)
def command() -> None:
    """Read hardware, a workload or a mapping, say what is wrong with it, and write its artifact.

    Example: tilewright parse config/workload/resnet18.onnx
    """


command.add_command(hardware)
command.add_command(workload)
command.add_command(mapping)
