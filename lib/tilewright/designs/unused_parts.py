"""Unused parts of the networks and the mapping file of a space, and operands with unexpected widths.

An operand has an unexpected width if the energy of an operation is given for another width.
"""

from collections.abc import Sequence

from tilewright.base.errors import Problems, Unused
from tilewright.designs.design_cost import NO_MAPPING
from tilewright.designs.space import Space
from tilewright.hardware.core import Core
from tilewright.hardware.source import parse_accelerator
from tilewright.hardware.zero_checks import RUN_LENGTH, ZERO_GATING
from tilewright.mapping.file_checks import document_behind
from tilewright.mapping.notices import unit_energy_notices_of_cores
from tilewright.mapping.runnable import restrict_to_core
from tilewright.mapping.source import parse_mapping
from tilewright.mapping.unused_entries import note_unused_on
from tilewright.mapping.zero_keys import ZEROS, note_unused_zeros
from tilewright.pipeline.stages.multi.items import MODEL
from tilewright.workload.graph import Workload
from tilewright.workload.source import parse_workload


def unused_of_networks(space: Space) -> list[str]:
    """Notices on unused parts of the networks and the mapping file, and on operands with unexpected widths. A width is
    unexpected if the first allowed design gives the energy of an operation for another width.

    An entry of the mapping file is unused only if no network uses it. Raises InputError with all mistakes in the
    networks.
    """
    told = Problems()
    model = MODEL if space.is_of_systems else space.options.model
    read = [
        told.attempt(parse_workload, one.file, model=model, options=one.options, notices=told.notices)
        for one in space.networks
    ]
    told.finish()
    index = space.first_allowed()
    if index is None:
        return told.notices
    nodes = tuple(node for network in read if network is not None for node in network.nodes)
    hardware = space.design(index).hardware
    cores = parse_accelerator(hardware).cores
    told.notices += unit_energy_notices_of_cores(nodes, cores, hardware)
    if not space.is_of_systems and not _sets_zero_keys(space):
        told.notices += _zero_notices(space, [network for network in read if network is not None], cores[0])
    if space.mapping is None:
        return told.notices
    mapping = parse_mapping(space.mapping)
    names = ", ".join(network.name for network in space.networks)
    of_mapping = Problems(document_behind(mapping, str(space.mapping)))
    note_unused_on(of_mapping, mapping, Workload(names, nodes), cores)
    return [*told.notices, *of_mapping.notices]


def _sets_zero_keys(space: Space) -> bool:
    """True if designs can differ in their keys for zeros. The first design then does not show which keys are used."""
    settings = [setting for axis in space.axes for own in axis.settings for setting in own]
    written = [(path, value) for path, value in settings] + [(law.path, None) for law in space.laws]
    return any(key in str(setting) for setting in written for key in (RUN_LENGTH, ZERO_GATING))


def _zero_notices(space: Space, networks: Sequence[Workload], core: Core) -> list[Unused]:
    """Notices on shares of zeros that no key of the hardware file reads, and on keys for which no network gives a
    share. `core` is the core of the first allowed design.
    """
    mapping = parse_mapping(NO_MAPPING if space.mapping is None else space.mapping)
    found = [
        note_unused_zeros(
            [node.layer for node in restrict_to_core(network, core)[0].nodes if node.layer is not None],
            core,
            lambda layer: dict(mapping.constraints_for(layer).memory_operand_links),
            (space.file, space.file if one.options.zeros else str(one.file)),
        )
        for one, network in zip(space.networks, networks, strict=True)
    ]
    keys = [notice for notice in found[0] if all(notice in own for own in found)]
    shares = [notice for own in found for notice in own if notice.problem.path == ZEROS]
    return list(dict.fromkeys([*keys, *shares]))
