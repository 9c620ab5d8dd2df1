"""Finds the descriptions that a run was made of: given ones, those in its folder or beside it, and those of `config`
folders nearby.

A description belongs to the run if its digest is in the provenance of the run.
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
from tilewright.base.steps import ACCELERATOR, FIXED_MAPPING, PLAN
from tilewright.base.steps import MAPPING as MAPPING_FILE
from tilewright.base.steps import WORKLOAD as WORKLOAD_FILE
from tilewright.hardware.core import Core
from tilewright.workload.graph import Workload
from tilewright.workload.network_options import NetworkOptions

HARDWARE, WORKLOAD, MAPPING = "hardware", "workload", "mapping"
KEPT = {HARDWARE: ACCELERATOR, WORKLOAD: WORKLOAD_FILE, MAPPING: MAPPING_FILE}
"""The artifacts of descriptions that a run keeps in its folder."""
_OWN_MAPPINGS = (FIXED_MAPPING, f"{PLAN}/{FIXED_MAPPING}")
"""Mapping files that `tilewright fuse` wrote for a run."""
_BESIDE = {
    HARDWARE: "hardware/*/accelerator.json",
    WORKLOAD: "workload/*/*/workload.json",
    MAPPING: "mapping/*/mapping.json",
}
"""Paths of the descriptions that the pipeline writes, below its folder of results."""
WRITTEN = Path("config")
"""Folder with the descriptions of a project, below the working folder."""
OF_DESIGN = "hardware.yaml"
"""Hardware file of a design of a space, next to its runs."""


@dataclass(frozen=True)
class DescribedRun:
    """Folder of a run, and the digests of its descriptions."""

    folder: Path
    digests: Mapping[str, str]
    """Digests of HARDWARE, WORKLOAD and MAPPING."""
    core: str
    """Name of the core, often also that of its file and of the mapping file."""
    workload: str
    """Name of the network, which is that of its file."""
    model: str

    @classmethod
    def of(cls, folder: Path, made_by: Mapping[str, Any], summary: Mapping[str, Any] | None = None) -> "DescribedRun":
        """Run in a folder, from the provenance of its records and from its summary, if it is on one core."""
        names = ("hardware", "workload", "model")
        return cls(folder, made_by.get("inputs", {}), *((summary or {}).get(name, "") for name in names))

    def artifact(self, kind: str) -> Path | None:
        """The description of a kind in the folder of the run, or that the pipeline left beside it; None where there is
        none."""
        return self._beside(kind, mapping_digest if kind == MAPPING else lambda path: read_artifact(path).digest)

    def hardware(self) -> Path | None:
        """The hardware that the run kept, that the pipeline left, or that a person wrote; None where there is none."""
        return self.artifact(HARDWARE) or self.hardware_file()

    def changeable_hardware(self) -> Path | None:
        """The hardware file as a person wrote it, or else the artifact with its text; None where there is none."""
        from tilewright.hardware.whole_text import text_in

        def digest_of(path: Path) -> str:
            return read_artifact(path).digest if text_in(path) else ""

        return self.hardware_file() or self._beside(HARDWARE, digest_of)

    def mapping(self) -> Path | None:
        """The mapping that the run kept, that the pipeline left, or that a person wrote; None where there is none."""
        return self.artifact(MAPPING) or self.mapping_file()

    def mapping_file(self) -> Path | None:
        """Mapping file of the run that a user wrote; None if it is not found."""
        return self._first(MAPPING, self._written(MAPPING), mapping_digest)

    def network(self, core: Core, options: NetworkOptions) -> Path | None:
        """Workload that the pipeline wrote next to the run, which ran on `core`, or the user's workload of the same
        name; None if there is none.
        """
        from tilewright.workload.source import parse_workload, read_parsed

        def digest_of(path: Path) -> str:
            return network_digest(parse_workload(path, self.model, options=options), core)

        beside = partial(self._beside, WORKLOAD, lambda path: network_digest(read_parsed(path), core))
        return self._network(beside, digest_of, options)

    def system_network(self, options: NetworkOptions) -> Path | None:
        """Network of a run on several cores, with all its layers."""
        digest_of = partial(system_network_digest, options=options)
        return self._network(partial(self.artifact, WORKLOAD), digest_of, options)

    def _network(
        self, beside: Callable[[], Path | None], digest_of: Callable[[Path], str], options: NetworkOptions
    ) -> Path | None:
        """The network beside the run, or one of its name; options, where they are given, are for the latter."""
        named = partial(self._first, WORKLOAD, self._named_networks(), digest_of)
        first, then = (beside, named) if options == NetworkOptions() else (named, beside)
        return first() or then()

    def descriptions(
        self,
        given: Mapping[str, Path | None],
        options: NetworkOptions,
        is_system: bool = False,
        is_changed: bool = False,
    ) -> dict[str, Path | None]:
        """Kind -> the description that is given, or else the one that is found; None where there is none.

        With `is_changed` the hardware has a text, of which numbers can be changed. Raises InputError for hardware that
        is given and cannot be read.
        """
        hardware = given[HARDWARE] or (self.changeable_hardware() if is_changed else self.hardware())
        if given[WORKLOAD] is not None:
            workload = given[WORKLOAD]
        elif is_system:
            workload = self.system_network(options)
        else:
            workload = None if hardware is None else self.network(core_in(hardware), options)
        mapping = given[MAPPING] or self.mapping_file() or self.mapping()
        return {HARDWARE: hardware, WORKLOAD: workload, MAPPING: mapping}

    def contradiction(self, kind: str, digest: str) -> str:
        """What is told of a description that is not that of the run; '' for that of the run."""
        if self.digests.get(kind) in (None, digest):
            return ""
        return f"is not the {kind} of the run in {self.folder}: it is another one, or was changed since"

    def not_found(self, found: Mapping[str, object]) -> list[Problem]:
        """Problems of descriptions that were not found; `found` has the result of the search by kind.

        The network can only be verified if the hardware is found: without the hardware, a network of the right name is
        accepted.
        """
        lacking = [kind for kind, path in found.items() if path is None]
        if HARDWARE in lacking and (self._named_networks() or paths_of(self.folder, WORKLOAD)):
            lacking = [kind for kind in lacking if kind != WORKLOAD]
        places = f"{WRITTEN}, in {self.folder.parent} and in the working folder"
        message = f"the {{}} of this run is not among the files in {places}, and {{}} {{}}: name it"
        return [Problem(message.format(kind, *self._lacking_file(kind)), path=f"--{kind}") for kind in lacking]

    def _lacking_file(self, kind: str) -> tuple[Path, str]:
        """The file of the run that would be a description, and what is wrong with it."""
        file = self.folder / KEPT[kind]
        if not file.is_file():
            return file, "is not there"
        try:
            is_other = read_artifact(file).digest != self.digests.get(kind)
        except TilewrightError:
            return file, "is damaged"
        return file, "is of another run" if is_other else "does not have its text"

    def hardware_file(self) -> Path | None:
        """Hardware file of the run that a user wrote, or that of a design that `tilewright explore --show` ran; None if
        it is not found.
        """
        return self._first(HARDWARE, (self.folder.parent / OF_DESIGN, *self._written(HARDWARE)), hardware_digest)

    def _written(self, kind: str, suffixes: tuple[str, ...] = YAML_SUFFIXES) -> list[Path]:
        """User's files that may be of a kind: in the folder for that kind, in the folder of the run, and in the working
        folder. Files with the name of the core come first.
        """
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
        """Raise InputError if a description is not that of the run."""
        if message := self.contradiction(kind, digest):
            raise InputError([Problem(message, path)])

    def _beside(self, kind: str, digest_of: Callable[[Path], str]) -> Path | None:
        return self._first(kind, paths_of(self.folder, kind), digest_of)

    def _first(self, kind: str, paths: Iterable[Path], digest_of: Callable[[Path], str]) -> Path | None:
        wanted = self.digests.get(kind)
        for path in paths:
            try:
                if wanted and digest_of(path) == wanted:
                    return path
            except TilewrightError:
                continue
        return None


def paths_of(folder: Path, kind: str) -> list[Path]:
    """Files of a kind of description in the folder of a run, then those that the pipeline left beside it."""
    names = (*(_OWN_MAPPINGS if kind == MAPPING else ()), KEPT[kind])
    own = [folder / name for name in names if (folder / name).is_file()]
    above = folder.resolve().parents
    return own + (sorted(above[1].glob(_BESIDE[kind])) if len(above) > 1 else [])


def core_in(hardware: Path) -> Core:
    """The core of a hardware file or artifact. Raises InputError."""
    from tilewright.pipeline.sources import parse_accelerator, single_core

    return single_core(parse_accelerator(hardware))


def network_digest(network: Workload, core: Core) -> str:
    """Digest of the part of a network that a run on a core has: without the layers that the core cannot run."""
    from tilewright.mapping.runnable import restrict_to_core, without_layers_left_out

    return content_digest(encode(without_layers_left_out(restrict_to_core(network, core)[0])))


def system_network_digest(path: Path, options: NetworkOptions) -> str:
    """Digest of the network in a file as used in a run on several cores. Raises InputError."""
    from tilewright.pipeline.stages.multi.items import MODEL
    from tilewright.workload.source import parse_workload

    return content_digest(encode(parse_workload(path, MODEL, options=options)))


def hardware_digest(path: Path) -> str:
    """Digest of the accelerator that a file describes. Raises InputError."""
    from tilewright.pipeline.sources import parse_accelerator

    return content_digest(encode(parse_accelerator(path)))


def mapping_digest(path: Path) -> str:
    """Digest of the mapping that a file describes. Raises InputError."""
    from tilewright.pipeline.sources import parse_mapping

    return content_digest(encode(parse_mapping(path)))
