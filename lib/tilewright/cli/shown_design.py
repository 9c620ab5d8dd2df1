"""Full run of one design of a space.

The run writes the same files as the verbs, is checked, and gets a report."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.base.artifacts.files import make_folder, write_atomically
from tilewright.base.harmless import ended_lines
from tilewright.base.parameters import Parameters, parameters_of
from tilewright.base.steps import CHECKS, COSTS, HARDWARE_OF_DESIGN
from tilewright.base.yamlfile import yaml_text

if TYPE_CHECKING:
    from tilewright.designs.space import Network, Space, SystemOptions


def index_of_design(space: "Space", name: str) -> int | None:
    """Index of the design with this name; None if the space has no such design."""
    return next((index for index in range(len(space)) if space.design_name(index) == name), None)


def write_hardware(space: "Space", index: int, folder: Path) -> Path:
    """Write the hardware file of a design into a folder. Returns its path."""
    design, path = space.design(index), folder / HARDWARE_OF_DESIGN
    values = ", ".join(f"{key} {value}" for key, value in design.values.items())
    make_folder(folder)
    head = ended_lines([f"{space.design_name(index)}: {values}"], "# ")
    write_atomically(path, head + yaml_text(space.named_hardware(index), allow_unicode=True))
    return path


def run_design(space: "Space", index: int, network: "Network", hardware: Path, run: Path) -> None:
    """Run a network on a design, and write the run with its checks and its report into the folder `run`. The arguments
    are those of `run_network`.

    Raises InputError or MappingError if the network cannot run on the design.
    """
    from tilewright.cli.check import check
    from tilewright.cli.report import report

    run_network(space, index, network, hardware, run)
    check(run, output=run / CHECKS)
    report(run)


def run_network(space: "Space", index: int, network: "Network", hardware: Path, run: Path) -> None:
    """Run a network on a design, and write the run into the folder `run`, without checks and without a report.
    `hardware` is the hardware file of the design, and `index` is its index in the space.

    Raises InputError or MappingError if the network cannot run on the design.
    """
    from tilewright.designs.design_cost import NO_MAPPING
    from tilewright.designs.space import FusedSystemOptions, SystemOptions

    mapping = NO_MAPPING if space.mapping is None else space.mapping
    if isinstance(space.options, SystemOptions):
        _run_system(space.options, network, hardware, mapping, run)
    elif isinstance(space.options, FusedSystemOptions):
        _run_plan(space, index, network, hardware, mapping, run)
    else:
        from tilewright.cli.map import map_workload

        map_workload(network.file, hardware, mapping, space.options, output=run, network_options=network.options)


def _run_system(options: "SystemOptions", network: "Network", hardware: Path, mapping: Any, run: Path) -> None:
    """Run the verbs for several cores one after another: `cns`, `cost`, `allocate` and `schedule`."""
    from tilewright.base.objectives import Goal
    from tilewright.cli.allocate import allocate
    from tilewright.cli.cns import cns
    from tilewright.cli.cost import cost
    from tilewright.cli.schedule import schedule
    from tilewright.multicore.allocation.options import AllocationParameters
    from tilewright.multicore.nodes.tiling_options import TilingOptions
    from tilewright.multicore.scheduling.options import ScheduleSettings
    from tilewright.search.options import CnSearchOptions

    settings = _named(options, ScheduleSettings)
    tiling = _named(options, TilingOptions)
    nodes = cns(network.file, hardware, mapping, output=run, network_options=network.options, **tiling)
    costs = cost(nodes, output=run / COSTS, **_named(options, CnSearchOptions))
    search = _named(options, AllocationParameters)
    found = allocate(costs, output=run, **search, **settings)
    schedule(costs, found, output=run, **_named(options, Goal), **settings)


def _run_plan(space: "Space", index: int, network: "Network", hardware: Path, mapping: Any, run: Path) -> None:
    """Write the plan of a design with its schedule, in the files of `tilewright fuse`. Plans of the designs in one
    block of a space depend on each other, so all designs in the block are searched again.
    """
    from tilewright.cli.fuse import write_fusion
    from tilewright.designs.shard import ShardMaker
    from tilewright.pipeline.stages.descriptions import Descriptions

    found = ShardMaker(space).blocks.plan(index, network.name).details
    make_folder(run)
    write_fusion(run, Descriptions(hardware, network.file, mapping, network.options), found, True)


def _named(options: Parameters, kind: type[Parameters]) -> dict[str, Any]:
    """Values of the parameters of the class `kind`, by name, from the object `options`."""
    return {parameter.name: getattr(options, parameter.name) for parameter in parameters_of(kind)}
