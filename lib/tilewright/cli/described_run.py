"""Lookup of the input files of a run: hardware, workload and mapping.

If the user gives a file, this file is used. Otherwise, files are searched for in the folder of the run, beside this
folder, and in `config`. A file belongs to the run if its digest is in the provenance of the run.
"""

import re
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
from tilewright.base.steps import ACCELERATOR, FIXED_MAPPING, HARDWARE_OF_DESIGN, PLAN
from tilewright.base.steps import MAPPING as MAPPING_FILE
from tilewright.base.steps import WORKLOAD as WORKLOAD_FILE
from tilewright.hardware.core import Core
from tilewright.workload.graph import Workload
from tilewright.workload.network_identity import identity_of_network
from tilewright.workload.network_options import NetworkOptions

HARDWARE, WORKLOAD, MAPPING = "hardware", "workload", "mapping"
KEPT = {HARDWARE: ACCELERATOR, WORKLOAD: WORKLOAD_FILE, MAPPING: MAPPING_FILE}
"""Names of the artifacts in the folder of a run, by kind of input."""
_OWN_MAPPINGS = (FIXED_MAPPING, f"{PLAN}/{FIXED_MAPPING}")
"""Mapping files that `tilewright fuse` writes into the folder of a run."""
_BESIDE = {
    HARDWARE: "hardware/*/accelerator.json",
    WORKLOAD: "workload/*/*/workload.json",
    MAPPING: "mapping/*/mapping.json",
}
"""Globs of the artifacts that the pipeline writes, by kind of input, relative to its folder of results."""
INCOMPLETE = "is missing: this check needs hardware, workload and mapping"
"""Message for a missing input, if the user names only some of the inputs that a check needs."""
WRITTEN = Path("config")
"""Folder with the input files of a project, relative to the working folder."""
_PLAIN_WORDS = re.compile(r"\b[A-Za-z_][A-Za-z0-9_]*\b", re.ASCII)
"""Regular expression for the ASCII words (letters, digits, underscores) in a name. A YAML file without escapes has each
of these words unchanged and on one line.
"""


@dataclass(frozen=True)
class DescribedRun:
    """Run with the digests of its input files. The methods find these files."""

    folder: Path
    digests: Mapping[str, str]
    """Digests of the inputs of the run, by kind: HARDWARE, WORKLOAD and MAPPING."""
    core: str
    """Name of the core. It is often also the name of the user's hardware file and of the mapping file."""
    workload: str
    """Name of the network, which is also the name of its file without suffix."""
    model: str

    @classmethod
    def of(cls, folder: Path, made_by: Mapping[str, Any], summary: Mapping[str, Any] | None = None) -> "DescribedRun":
        """Run in a folder. `made_by` is the provenance of the run. `summary` is the summary of the run if it used one
        core.
        """
        names = ("hardware", "workload", "model")
        return cls(folder, made_by.get("inputs", {}), *((summary or {}).get(name, "") for name in names))

    def artifact(self, kind: str) -> Path | None:
        """Artifact of an input in the folder of the run, or an artifact that the pipeline wrote beside this folder;
        None if neither is found.
        """
        return self._beside(kind, _ARTIFACT_DIGESTS[kind])

    def hardware(self) -> Path | None:
        """Hardware of the run: an artifact or, if there is none, the file of the user; None if neither is found."""
        return self.artifact(HARDWARE) or self.hardware_file()

    def changeable_hardware(self) -> Path | None:
        """Hardware of the run in an editable form: the hardware file of the user, otherwise an artifact with the text
        of the file. None if neither is found.
        """
        from tilewright.hardware.whole_text import text_in

        def digest_of(path: Path) -> str:
            return read_artifact(path).digest if text_in(path) else ""

        return self.hardware_file() or self._beside(HARDWARE, digest_of)

    def mapping(self) -> Path | None:
        """Mapping of the run: an artifact or, if there is none, the file of the user; None if neither is found."""
        return self.artifact(MAPPING) or self.mapping_file()

    def mapping_file(self) -> Path | None:
        """Mapping file of the user with the mapping of the run; None if it is not found."""
        return self._first(MAPPING, self._written(MAPPING), mapping_digest)

    def network(self, core: Core, options: NetworkOptions) -> Path | None:
        """Workload of the run, which ran on `core`; None if none is found. The workload is an artifact that the
        pipeline wrote beside the run, or a file of the user with the name of the network.

        If both exist, the result is the artifact for default `options`, and the file of the user for other options.
        """
        from tilewright.workload.source import read_parsed

        beside = partial(self._beside, WORKLOAD, lambda path: network_digest(read_parsed(path), core))
        return self._network(beside, self._digest_on(core, options), options)

    def network_file(self, core: Core, options: NetworkOptions) -> Path | None:
        """YAML or ONNX file of the user with the workload of the run, which ran on `core`; None if it is not found."""
        return self._first(WORKLOAD, self._named_networks(), self._digest_on(core, options))

    def _digest_on(self, core: Core, options: NetworkOptions) -> Callable[[Path], str]:
        """Function that returns the digest of the network in a file, as a run on `core` records it."""
        from tilewright.workload.source import parse_workload

        return lambda path: network_digest(parse_workload(path, self.model, options=options), core)

    def system_network(self, options: NetworkOptions) -> Path | None:
        """Workload file of a run on several cores; None if it is not found."""
        digest_of = partial(system_network_digest, options=options)
        return self._network(partial(self.artifact, WORKLOAD), digest_of, options)

    def _network(
        self, beside: Callable[[], Path | None], digest_of: Callable[[Path], str], options: NetworkOptions
    ) -> Path | None:
        """Network artifact beside the run, or file of the user with the name of the network; None if neither is found.

        If both exist, the result is the artifact for default `options`. For other options, the result is the file of
        the user, because options have no effect on an artifact.
        """
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
        """Path of each input, by kind. A path in `given` is used unchanged. Other inputs are searched for; the path is
        None if an input is not found.

        `is_system` is true for a run on several cores. With `is_changed`, the caller will change numbers in the text of
        the hardware, so only hardware with a known text is accepted. Raises InputError if the hardware is needed to
        find the network, but cannot be read.
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
        """Message that a file is not the input of the run. `digest` is the digest of the file. The result is '' if the
        file is the input, or if the run has no digest of an input of this kind.
        """
        if self.digests.get(kind) in (None, digest):
            return ""
        said = f"is not the {kind} of the run in {self.folder}: it is another file, or it was changed after the run"
        return f"{said}, or it was read with other options, such as the option bits" if kind == WORKLOAD else said

    def not_found(self, found: Mapping[str, object]) -> list[Problem]:
        """Problems, one for each input that was not found. `found` has the path of each kind of input, or None.

        Without the hardware, the digest of a network cannot be verified. In this case, a missing network is not
        reported if there is an artifact of a network, or a user file with the network's name.
        """
        lacking = [kind for kind, path in found.items() if path is None]
        if HARDWARE in lacking and (self._named_networks() or paths_of(self.folder, WORKLOAD)):
            lacking = [kind for kind in lacking if kind != WORKLOAD]
        message = f"the {{}} of this run was not found in {self.places}, and {{}} {{}}: name it with the option {{}}"
        return [Problem(message.format(kind, *self._lacking_file(kind), kind), path=kind) for kind in lacking]

    @property
    def places(self) -> str:
        """Text with the folders that are searched for the user's files."""
        return f"{WRITTEN}, in {self.folder.parent} or in the working folder"

    def _lacking_file(self, kind: str) -> tuple[Path, str]:
        """Pair (path of the artifact of this input in the folder of the run, reason why the artifact cannot be
        used).
        """
        file = self.folder / KEPT[kind]
        if not file.is_file():
            return file, "is not there"
        try:
            is_other = _ARTIFACT_DIGESTS[kind](file) != self.digests.get(kind)
        except TilewrightError:
            return file, "is damaged"
        return file, "is of another run" if is_other else "does not contain the text of the file"

    def hardware_file(self) -> Path | None:
        """Hardware file of the user, or of a design that `tilewright explore --show` ran. None if neither is found."""
        written = (path for path in self._written(HARDWARE) if _may_name(path, self.core))
        return self._first(HARDWARE, (self.folder.parent / HARDWARE_OF_DESIGN, *written), hardware_digest)

    def _written(self, kind: str, suffixes: tuple[str, ...] = YAML_SUFFIXES) -> list[Path]:
        """Files of the user that can be inputs of a kind. Files with the name of the core come first.

        The files are in the folder of `config` for this kind, in the folder above the run, or in the working folder.
        Each of the last two folders can also have a subfolder with the name of the core (`tilewright new` makes such a
        folder); its files are included.
        """
        places = [(WRITTEN / kind).rglob("*"), self.folder.parent.glob("*"), Path().glob("*")]
        if self.core and Path(self.core).name == self.core:
            places += [(self.folder.parent / self.core).glob("*"), Path(self.core).glob("*")]
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
        """Raise InputError if a file is not an input of this run. `kind` is the kind of the input, `digest` is the
        digest of the content of the file, and `path` names the file in the message. If the provenance of the run has no
        digest of this input, every file is accepted.
        """
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


def _may_name(path: Path, name: str) -> bool:
    """False if a hardware file certainly does not describe an accelerator called `name`; True if it may describe one. A
    file that cannot be read gives True.

    This check saves time: it takes microseconds, while parsing a hardware file to compute its digest takes 20 ms or
    more. The check searches the file for the words of `name` (`_PLAIN_WORDS`). A file that contains the name and has no
    YAML escapes has each of these words unchanged. The characters between the words are not searched, because YAML can
    write them differently: it doubles quotes, and folds spaces into line breaks.
    """
    words = _PLAIN_WORDS.findall(name)
    if not words:
        return True
    try:
        text = path.read_bytes()
    except OSError:
        return True
    return b"\\" in text or all(word.encode() in text for word in words)


def paths_of(folder: Path, kind: str) -> list[Path]:
    """Paths of the artifacts of an input. Artifacts in the folder of the run come before those that the pipeline wrote
    beside this folder.
    """
    names = (*(_OWN_MAPPINGS if kind == MAPPING else ()), KEPT[kind])
    own = [folder / name for name in names if (folder / name).is_file()]
    above = folder.resolve().parents
    return own + (sorted(above[1].glob(_BESIDE[kind])) if len(above) > 1 else [])


def core_in(hardware: Path) -> Core:
    """Core that a hardware file or artifact describes. Raises InputError if the file cannot be read."""
    from tilewright.pipeline.sources import parse_accelerator, single_core

    return single_core(parse_accelerator(hardware))


def network_digest(network: Workload, core: Core) -> str:
    """Digest of a network on a core, as runs record it: layers that the core cannot run are left out."""
    from tilewright.mapping.runnable import restrict_to_core, without_layers_left_out

    return identity_of_network(without_layers_left_out(restrict_to_core(network, core)[0]))


def system_network_digest(path: Path, options: NetworkOptions) -> str:
    """Digest of the network in a file, as runs on several cores store it in their provenance. Raises InputError if the
    file cannot be parsed.
    """
    from tilewright.pipeline.stages.multi.items import MODEL
    from tilewright.workload.source import parse_workload

    return identity_of_network(parse_workload(path, MODEL, options=options))


def hardware_digest(path: Path) -> str:
    """Digest of the accelerator that a file describes. Raises InputError if the file cannot be parsed."""
    from tilewright.pipeline.sources import parse_accelerator

    return content_digest(encode(parse_accelerator(path)))


def mapping_digest(path: Path) -> str:
    """Digest of the mapping that a file describes. Raises InputError if the file cannot be parsed."""
    from tilewright.pipeline.sources import parse_mapping

    return content_digest(encode(parse_mapping(path, plans=True)))


def _artifact_digest(path: Path) -> str:
    return read_artifact(path).digest


def _network_artifact_digest(path: Path) -> str:
    from tilewright.workload.source import read_parsed

    return identity_of_network(read_parsed(path))


_ARTIFACT_DIGESTS = {HARDWARE: _artifact_digest, WORKLOAD: _network_artifact_digest, MAPPING: mapping_digest}
"""Functions that read an artifact, by kind of input. A function returns the digest that provenance records for this
input.
"""
