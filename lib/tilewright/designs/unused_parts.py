"""Search for two things in a space: parts of the networks and of the mapping file that the designs do not use, and
operands whose widths are not those for which the energy of an operation is given.
"""

from tilewright.base.errors import Problems
from tilewright.designs.space import Space
from tilewright.hardware.source import parse_accelerator
from tilewright.mapping.file_checks import document_behind
from tilewright.mapping.notices import unit_energy_notices_of_cores
from tilewright.mapping.source import parse_mapping
from tilewright.mapping.unused_entries import note_unused_on
from tilewright.pipeline.stages.multi.items import MODEL
from tilewright.workload.graph import Workload
from tilewright.workload.source import parse_workload


def unused_of_networks(space: Space) -> list[str]:
    """Notices on unused parts of the networks and the mapping file, and on operands whose widths are not those for
    which the first allowed design gives the energy of an operation.

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
    if space.mapping is None:
        return told.notices
    mapping = parse_mapping(space.mapping)
    names = ", ".join(network.name for network in space.networks)
    of_mapping = Problems(document_behind(mapping, str(space.mapping)))
    note_unused_on(of_mapping, mapping, Workload(names, nodes), cores)
    return [*told.notices, *of_mapping.notices]
