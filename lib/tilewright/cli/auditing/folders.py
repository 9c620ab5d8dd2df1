"""Folders of results at and below a folder, with the results that can be recomputed, and reasons why others cannot."""

from collections.abc import Callable, Iterator
from pathlib import Path

from tilewright.base.errors import InputError
from tilewright.base.steps import ATTENTION, COSTS, COURT, DEPTH_FIRST, EXPORTS, FUSION, LAYERS, REPORT, SUMMARY
from tilewright.cli.auditing.inputs import GivenDescriptions
from tilewright.cli.auditing.items import Audited, NotAudited
from tilewright.cli.folder_kinds import kind_of_folder
from tilewright.cli.runs import is_multi_run

_PARTS = (REPORT, EXPORTS, COSTS, "costs", "shards")
"""Subfolders of a run or of a space with files that belong to it or were derived from it."""
_SAYS_NOTHING = "its file does not say which files it was made of"
_REASONS = {
    FUSION: "the plan is the best of a search over whole plans, which `tilewright fuse` alone makes again",
    DEPTH_FIRST: f"{_SAYS_NOTHING}; `tilewright check` verifies a certificate against hardware, workload and mapping",
    ATTENTION: f"{_SAYS_NOTHING}; `tilewright check` verifies its certificates against hardware, workload and mapping",
    "tokens.json": f"{_SAYS_NOTHING}; `tilewright tokens` makes it again",
    COURT: f"{_SAYS_NOTHING}; `tilewright accuracy` makes it again",
}
"""Reasons why the content of a file cannot be recomputed, by file name."""
_OF_OTHERS = ((f"*/{SUMMARY}",), ("*.yaml", "*.yml"))
"""File patterns of folders that contain results further below, or files of users."""


def audited_folders(root: Path, given: GivenDescriptions) -> tuple[list[Audited], list[NotAudited]]:
    """(folders whose results can be recomputed, folders and files for which that is impossible) at and below a
    folder.
    """
    found: list[Audited] = []
    refused: list[NotAudited] = []
    for folder in _folders(root):
        refused += [NotAudited(str(folder / name), why) for name, why in _REASONS.items() if (folder / name).is_file()]
        maker = _maker(folder)
        if maker is not None:
            try:
                found.append(maker(folder, given))
                refused += found[-1].not_audited
            except InputError as error:
                refused.append(NotAudited(str(folder), "; ".join(str(error).splitlines())))
        elif not any((folder / name).is_file() for name in _REASONS):
            kind = kind_of_folder(folder)
            if kind is not None and kind.files not in _OF_OTHERS:
                refused.append(NotAudited(str(folder), f"{kind.what}: {kind.remedy}"))
    return found, refused


def _folders(root: Path) -> Iterator[Path]:
    """The folder and all folders below it, except hidden ones and parts of others."""
    yield root
    is_whole = _maker(root) is not None
    for folder in sorted(path for path in root.iterdir() if path.is_dir() and not path.name.startswith(".")):
        if not (is_whole and folder.name in _PARTS):
            yield from _folders(folder)


def _maker(folder: Path) -> Callable[[Path, GivenDescriptions], Audited] | None:
    """Class that audits a folder, by the verb that wrote it; None if no verb did."""
    if (folder / LAYERS).is_file():
        from tilewright.cli.auditing.one_core import OneCoreRun

        return OneCoreRun
    if is_multi_run(folder):
        from tilewright.cli.auditing.several_cores import SeveralCoresRun

        return SeveralCoresRun
    if next((folder / "shards").glob("*.parquet"), None):
        from tilewright.cli.auditing.spaces import ExploredFolder

        return ExploredFolder
    if next((folder / "costs").glob("*.parquet"), None):
        from tilewright.cli.auditing.spaces import FrontOfSpace

        return FrontOfSpace
    return None
