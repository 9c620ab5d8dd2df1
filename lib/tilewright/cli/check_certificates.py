"""`tilewright check` for certificates of optimal depth-first schedules and of fused attentions."""

from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.base.artifacts.digests import bytes_digest
from tilewright.base.errors import InputError, Problem
from tilewright.cli.described_run import INCOMPLETE
from tilewright.workload.network_options import NetworkOptions

if TYPE_CHECKING:
    from tilewright.results.checks import Check


def check_depth_first(
    file: Path, described: tuple[Path | None, Path | None, Path | None], network_options: NetworkOptions
) -> "tuple[list[Check], dict[str, str]]":
    """Pair (checks of the certificate in the file `file`, digest of this file). `described` has the paths of hardware,
    workload and mapping. Raises InputError if one of these paths is None, or if `file` is not a certificate.
    """
    from tilewright.cli.depth_first import described_problem
    from tilewright.tiles.depth_first.certificate_check import check_certificate, read_certified

    check_complete(described)
    told = read_certified(file)
    problem = described_problem(described, told.options, network_options)
    return check_certificate(told, problem), {"certificate": bytes_digest(file)}


def check_complete(described: tuple[Path | None, Path | None, Path | None]) -> None:
    """Raise InputError if hardware, workload or mapping is missing; the error names each missing file."""
    missing = [name for name, path in zip(("hardware", "workload", "mapping"), described, strict=True) if path is None]
    if missing:
        raise InputError([Problem(INCOMPLETE, path=name) for name in missing])


def check_attention(
    file: Path, described: tuple[Path | None, Path | None, Path | None]
) -> "tuple[list[Check], dict[str, str]]":
    """Pair (checks of the certificates in the file `file`, digest of this file). `described` has the paths of hardware,
    workload and mapping. Raises InputError if one of these paths is None, or if `file` has no certificates.
    """
    from tilewright.cli.attention import attention_problems
    from tilewright.tiles.attention.certificate_check import check_certificates, read_certified

    check_complete(described)
    told = read_certified(file)
    hardware, workload, mapping = described
    name, problems = attention_problems((workload, hardware, mapping), told.points, told.options, [])
    return check_certificates(told, name, problems), {"certificate": bytes_digest(file)}
