"""The certificate of complete fronts: for every design its costs, and who dominates it."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas

from tilewright.artifacts.digests import DIGEST_BYTES
from tilewright.exploration.family_costs import FamilyCosts, energy_column, latency_column
from tilewright.exploration.front_points import Points, dominated_by, front_count
from tilewright.exploration.results import ALL_NETWORKS
from tilewright.exploration.space import Space
from tilewright.exploration.stamped_tables import read_stamped, write_stamped

SCHEMA = "tilewright/front-certificate"


@dataclass(frozen=True, eq=False)
class Certificate:
    """What is claimed of a space."""

    table: pandas.DataFrame
    """A row for each design that no constraint excludes, by index: `index`, `area_mm2`, for each network
    `status_<n>`, `energy_<n>_pj`, `latency_<n>_cycles`, and for each front `dominated_by_<n>`: the index of a design on
    it, -1 on the front itself, -2 for what is not compared."""
    excluded: Mapping[str, int]
    """Constraint -> designs that it excludes."""
    said: Mapping[str, Any]
    """What it was made of: `space` (digest), `objectives`, `networks`, `designs`, `provenance`."""


def front_names(space: Space) -> tuple[str, ...]:
    """The fronts of a space: of each network, then of all."""
    names = tuple(network.name for network in space.networks)
    return names if len(names) == 1 else (*names, ALL_NETWORKS)


def dominator_column(front: int) -> str:
    """Of a front by its place."""
    return f"dominated_by_{front}"


def columns_of(space: Space) -> list[str]:
    """The columns of a certificate."""
    networks, fronts = range(len(space.networks)), range(front_count(space))
    own = [c for n in networks for c in (f"status_{n}", energy_column(n), latency_column(n))]
    return ["index", "area_mm2", *own, *(dominator_column(front) for front in fronts)]


def certificate_of(points: Points, costs: FamilyCosts, said: Mapping[str, Any]) -> Certificate:
    """The certificate of the fronts of all designs."""
    fronts = {dominator_column(front): dominated_by(points, front) for front in range(front_count(points.space))}
    return Certificate(costs.table.assign(**fronts)[columns_of(points.space)], costs.excluded, said)


def write_certificate(path: Path, certificate: Certificate) -> None:
    """Write it; equal content gives equal bytes."""
    said = {"schema": SCHEMA, "digest": content_digest(certificate), "excluded": dict(certificate.excluded)}
    write_stamped(path, certificate.table, {**said, "made_of": dict(certificate.said)})


def read_certificate(path: Path) -> tuple[Certificate, str]:
    """A certificate, and the digest of its content that the file says. Raises InputError for what is none."""
    table, said = read_stamped(path, SCHEMA)
    return Certificate(table, said["excluded"], said["made_of"]), str(said["digest"])


def content_digest(certificate: Certificate) -> str:
    """The digest of its columns."""
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for name, column in certificate.table.items():
        values = column.to_numpy()
        data = (
            "\0".join(map(str, values)).encode() if values.dtype == object else np.ascontiguousarray(values).tobytes()
        )
        digest.update(f"{name}\0{len(values)}\0".encode() + data)
    digest.update(repr((sorted(certificate.excluded.items()), sorted(map(str, certificate.said.items())))).encode())
    return digest.hexdigest()
