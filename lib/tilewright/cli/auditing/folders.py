"""Search for folders of results that can be recomputed.

For other results, the search finds the reason why they cannot be recomputed.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from tilewright.base.errors import InputError
from tilewright.base.steps import ATTENTION, COSTS, COURT, DEPTH_FIRST, EXPORTS, FUSION, LAYERS, REPORT, SUMMARY
from tilewright.cli.auditing.inputs import GivenDescriptions
from tilewright.cli.auditing.items import Audited, NotAudited
from tilewright.cli.folder_kinds import kind_of_folder
from tilewright.cli.runs import is_multi_run

_PARTS = (REPORT, EXPORTS, COSTS, "costs", "shards")
"""Names of subfolders of a run or a space. Files in these subfolders are parts of the run or space, or are derived from
it.
"""
_SAYS_NOTHING = "the file does not record its inputs"
_REASONS = {
    FUSION: "only `tilewright fuse` can repeat the search that found the plan",
    DEPTH_FIRST: f"{_SAYS_NOTHING}; `tilewright check` checks its certificate with hardware, workload and mapping",
    ATTENTION: f"{_SAYS_NOTHING}; `tilewright check` checks its certificates with hardware, workload and mapping",
    "tokens.json": f"{_SAYS_NOTHING}; `tilewright tokens` makes it again",
    COURT: f"{_SAYS_NOTHING}; `tilewright accuracy` makes it again",
}
"""Reasons why the content of a file cannot be recomputed, by name of the file."""
_OF_OTHERS = ((f"*/{SUMMARY}",), ("*.yaml", "*.yml"))
"""File patterns of folders without results of their own: folders with runs in subfolders, and folders with YAML files.
The audit leaves these folders out of its list of folders that cannot be recomputed.
"""


def audited_folders(root: Path, given: GivenDescriptions) -> tuple[list[Audited], list[NotAudited]]:
    """Pair (folders whose results can be recomputed, folders and files that cannot be recomputed). The folder `root`
    and all folders in it are searched.
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
    """Folder `root` and all folders in it, except hidden folders and folders that are parts of a run or a space."""
    yield root
    is_whole = _maker(root) is not None
    for folder in sorted(path for path in root.iterdir() if path.is_dir() and not path.name.startswith(".")):
        if not (is_whole and folder.name in _PARTS):
            yield from _folders(folder)


def _maker(folder: Path) -> Callable[[Path, GivenDescriptions], Audited] | None:
    """Class that audits the results in a folder; None if the folder has no results of a kind that can be audited."""
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
