"""What a run was made of, found again: descriptions that are given, or lie beside the run as the pipeline leaves them.

A description is that of the run if its digest stands in the provenance of the run.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.artifacts.codec import encode
from tilewright.artifacts.digests import content_digest
from tilewright.artifacts.envelope import read_artifact
from tilewright.artifacts.files import YAML_SUFFIXES
from tilewright.errors import InputError, Problem, TilewrightError
from tilewright.hardware.core import Core
from tilewright.workload.graph import Workload

HARDWARE, WORKLOAD, MAPPING = "hardware", "workload", "mapping"
_BESIDE = {
    HARDWARE: "hardware/*/accelerator.json",
    WORKLOAD: "workload/*/*/workload.json",
    MAPPING: "mapping/*/mapping.json",
}
"""Where the pipeline leaves descriptions, below its folder of results."""
WRITTEN = Path("config")
"""Where hardware files of a project lie, below the working folder."""


@dataclass(frozen=True)
class DescribedRun:
    """The folder of a run on one core, and the digests of its descriptions."""

    folder: Path
    digests: Mapping[str, str]
    """HARDWARE, WORKLOAD, MAPPING -> digest."""

    @classmethod
    def of(cls, folder: Path, made_by: Mapping[str, Any]) -> "DescribedRun":
        """The run in a folder by the provenance of its records."""
        return cls(folder, made_by.get("inputs", {}))

    def artifact(self, kind: str) -> Path | None:
        """The description of a kind that the pipeline left beside the run; None where there is none."""
        return self._beside(kind, lambda path: read_artifact(path).digest)

    def network(self, core: Core) -> Path | None:
        """The workload that the pipeline left beside the run, which ran on `core`; None where there is none."""
        from tilewright.workload.source import read_parsed

        return self._beside(WORKLOAD, lambda path: network_digest(read_parsed(path), core))

    def hardware_file(self) -> Path | None:
        """The hardware file of the run as a person wrote it, of those in `config/hardware`; None where it is none."""
        files = sorted(path for path in (WRITTEN / HARDWARE).rglob("*") if path.suffix in YAML_SUFFIXES)
        return self._first(HARDWARE, files, hardware_digest)

    def check(self, kind: str, digest: str, path: str) -> None:
        """Raises InputError where a description is not that of the run."""
        if self.digests.get(kind) not in (None, digest):
            message = f"is not the {kind} of the run in {self.folder}: it is another one, or was changed since"
            raise InputError([Problem(message, path)])

    def _beside(self, kind: str, digest_of: Callable[[Path], str]) -> Path | None:
        above = self.folder.resolve().parents
        return self._first(kind, sorted(above[1].glob(_BESIDE[kind])), digest_of) if len(above) > 1 else None

    def _first(self, kind: str, paths: Iterable[Path], digest_of: Callable[[Path], str]) -> Path | None:
        wanted = self.digests.get(kind)
        for path in paths:
            try:
                if wanted and digest_of(path) == wanted:
                    return path
            except TilewrightError:
                continue
        return None


def network_digest(network: Workload, core: Core) -> str:
    """The digest of what of a network a run on a core has: without the layers that the core cannot run."""
    from tilewright.mapping.runnable import restrict_to_core

    return content_digest(encode(restrict_to_core(network, core)[0]))


def hardware_digest(path: Path) -> str:
    """The digest of the accelerator that a file describes. Raises InputError."""
    from tilewright.sources import parse_accelerator

    return content_digest(encode(parse_accelerator(path)))
