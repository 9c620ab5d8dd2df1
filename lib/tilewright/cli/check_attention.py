"""`tilewright check` for the certificates of attentions."""

from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.artifacts.digests import bytes_digest
from tilewright.errors import InputError, Problem

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

    missing = [name for name, path in zip(("hardware", "workload", "mapping"), described, strict=True) if path is None]
    if missing:
        raise InputError(
            [Problem("is needed: a certificate is checked against all three", path=name) for name in missing]
        )
    told = read_certified(file)
    hardware, workload, mapping = described
    name, problems = attention_problems((workload, hardware, mapping), told.points, told.options, [])
    return check_certificates(told, name, problems), {"certificate": bytes_digest(file)}
