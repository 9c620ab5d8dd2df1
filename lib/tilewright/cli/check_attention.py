"""`tilewright check` for the certificates of attentions."""

from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.artifacts.digests import bytes_digest
from tilewright.cli.check_depth_first import check_complete

if TYPE_CHECKING:
    from tilewright.report.checks import Check


def check_file(
    file: Path, described: tuple[Path | None, Path | None, Path | None]
) -> "tuple[list[Check], dict[str, str]]":
    """The checks of the certificates in a file for hardware, workload and mapping, and its digest.

    Raises InputError where one of them is missing, or the file has no certificates.
    """
    from tilewright.attention.certificate_check import check_certificates, read_certified
    from tilewright.cli.attention import attention_problems

    check_complete(described)
    told = read_certified(file)
    hardware, workload, mapping = described
    name, problems = attention_problems((workload, hardware, mapping), told.points, told.options, [])
    return check_certificates(told, name, problems), {"certificate": bytes_digest(file)}
