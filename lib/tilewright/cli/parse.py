"""`tilewright parse`: descriptions to artifacts. Each kind has a module, so that each has its own code digest."""

import click

from tilewright.cli.parse_hardware import hardware
from tilewright.cli.parse_mapping import mapping
from tilewright.cli.parse_workload import workload


@click.group()
def command() -> None:
    """Read hardware, a workload or a mapping, say what is wrong with it, and write its artifact.

    Example: tilewright parse workload config/workload/resnet18.onnx
    """


command.add_command(hardware)
command.add_command(workload)
command.add_command(mapping)
