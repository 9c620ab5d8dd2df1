"""Finds the descriptions that a run was made of: given ones, those beside the run, and those of `config` folders
nearby.

A description is that of the run if its digest stands in the provenance of the run.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tilewright.base.artifacts.codec import encode
from tilewright.base.artifacts.digests import content_digest
from tilewright.base.artifacts.envelope import read_artifact
from tilewright.base.artifacts.files import YAML_SUFFIXES
from tilewright.base.errors import InputError, Problem, TilewrightError
from tilewright.hardware.core import Core
from tilewright.workload.graph import Workload
from tilewright.workload.network_options import NetworkOptions

HARDWARE, WORKLOAD, MAPPING = "hardware", "workload", "mapping"
_BESIDE = {
    HARDWARE: "hardware/*/accelerator.json",
    WORKLOAD: "workload/*/*/workload.json",
    MAPPING: "mapping/*/mapping.json",
}
"""Where the pipeline leaves descriptions, below its folder of results."""
WRITTEN = Path("config")
"""Where the descriptions of a project lie, below the working folder."""
OF_DESIGN = "hardware.yaml"
"""The hardware file of a design of a space, beside its runs."""


@dataclass(frozen=True)
class DescribedRun:
    """The folder of a run on one core, and the digests of its descriptions."""

    folder: Path
    digests: Mapping[str, str]
    """HARDWARE, WORKLOAD, MAPPING -> digest."""
    core: str
    """Name of the core, which often is that of its file and of the mapping file."""
    workload: str
    """Name of the network: that of its file."""
    model: str

    @classmethod
    def of(cls, folder: Path, made_by: Mapping[str, Any], summary: Mapping[str, Any] | None = None) -> "DescribedRun":
        """The run in a folder by the provenance of its records and by its summary, if it is on one core."""
        names = ("hardware", "workload", "model")
        return cls(folder, made_by.get("inputs", {}), *((summary or {}).get(name, "") for name in names))

    def artifact(self, kind: str) -> Path | None:
        """The description of a kind that the pipeline left beside the run; None where there is none."""
        return self._beside(kind, lambda path: read_artifact(path).digest)

    def hardware(self) -> Path | None:
        """The hardware that the pipeline left beside the run, or that a person wrote; None where there is none."""
        return self.artifact(HARDWARE) or self.hardware_file()

    def mapping(self) -> Path | None:
        """The mapping that the pipeline left beside the run, or that a person wrote; None where there is none."""
        return self.artifact(MAPPING) or self.mapping_file()

    def mapping_file(self) -> Path | None:
        """The mapping file of the run as a person wrote it; None where it is not found."""
        return self._first(MAPPING, self._written(MAPPING), mapping_digest)

    def network(self, core: Core, options: NetworkOptions) -> Path | None:
        """The workload that the pipeline left beside the run, which ran on `core`, or the one of its name that a person
        wrote; None where there is none."""
        from tilewright.workload.source import parse_workload, read_parsed

        def digest_of(path: Path) -> str:
            return network_digest(parse_workload(path, self.model, options=options), core)

        beside = self._beside(WORKLOAD, lambda path: network_digest(read_parsed(path), core))
        return beside or self._first(WORKLOAD, self._named_networks(), digest_of)

    def system_network(self, options: NetworkOptions) -> Path | None:
        """Network of a run on several cores, which has all layers of its network."""
        digest_of = partial(system_network_digest, options=options)
        return self.artifact(WORKLOAD) or self._first(WORKLOAD, self._named_networks(), digest_of)

    def not_found(self, found: Mapping[str, object]) -> list[Problem]:
        """What to name of the descriptions that were not found: kind -> what was found of it.

        Which network it is can be verified with the hardware alone: without it, one of the right name will do.
        """
        lacking = [kind for kind, path in found.items() if path is None]
        if HARDWARE in lacking and (self._named_networks() or self._paths_beside(WORKLOAD)):
            lacking = [kind for kind in lacking if kind != WORKLOAD]
        places = f"{WRITTEN}, in {self.folder.parent} and in the working folder"
        message = f"the {{}} of this run is not among the files in {places}: name it"
        return [Problem(message.format(kind), path=f"--{kind}") for kind in lacking]

    def hardware_file(self) -> Path | None:
        """The hardware file of the run as a person wrote it, or that of a design that `tilewright explore --show` ran;
        None where it is not found."""
        return self._first(HARDWARE, (self.folder.parent / OF_DESIGN, *self._written(HARDWARE)), hardware_digest)

    def _written(self, kind: str, suffixes: tuple[str, ...] = YAML_SUFFIXES) -> list[Path]:
        """Files that people wrote, which may be of a kind: those in the folder for it, in that of the run's folder, and
        in the working folder. Of equal files those are meant that are called as the core, and then the first."""
        places = (WRITTEN / kind).rglob("*"), self.folder.parent.glob("*"), Path().glob("*")
        files = [
            sorted((path for path in found if path.suffix in suffixes and path.is_file()), key=self._preference)
            for found in places
        ]
        return sorted(dict.fromkeys(path for each in files for path in each), key=lambda path: path.stem != self.core)

    def _preference(self, path: Path) -> tuple[bool, Path]:
        return path.stem != self.core, path

    def _named_networks(self) -> list[Path]:
        return [path for path in self._written(WORKLOAD, (".onnx", *YAML_SUFFIXES)) if path.stem == self.workload]

    def check(self, kind: str, digest: str, path: str) -> None:
        """Raises InputError where a description is not that of the run."""
        if self.digests.get(kind) not in (None, digest):
            message = f"is not the {kind} of the run in {self.folder}: it is another one, or was changed since"
            raise InputError([Problem(message, path)])

    def _beside(self, kind: str, digest_of: Callable[[Path], str]) -> Path | None:
        return self._first(kind, self._paths_beside(kind), digest_of)

    def _paths_beside(self, kind: str) -> list[Path]:
        above = self.folder.resolve().parents
        return sorted(above[1].glob(_BESIDE[kind])) if len(above) > 1 else []

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
    from tilewright.mapping.runnable import restrict_to_core, without_layers_left_out

    return content_digest(encode(without_layers_left_out(restrict_to_core(network, core)[0])))


def system_network_digest(path: Path, options: NetworkOptions) -> str:
    """The digest of the network in a file as a run on several cores has it. Raises InputError."""
    from tilewright.pipeline.stages.multi.items import MODEL
    from tilewright.workload.source import parse_workload

    return content_digest(encode(parse_workload(path, MODEL, options=options)))


def hardware_digest(path: Path) -> str:
    """The digest of the accelerator that a file describes. Raises InputError."""
    from tilewright.pipeline.sources import parse_accelerator

    return content_digest(encode(parse_accelerator(path)))


def mapping_digest(path: Path) -> str:
    """The digest of the mapping that a file describes. Raises InputError."""
    from tilewright.pipeline.sources import parse_mapping

    return content_digest(encode(parse_mapping(path)))
