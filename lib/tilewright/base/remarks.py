"""Remarks on numbers of input files: `tilewright validate` prints each of them, other verbs a line that counts them."""

from collections.abc import Iterable

from tilewright.base.errors import Remark, count_of


def folded(notices: Iterable[str]) -> list[str]:
    """Notices in which one line replaces the remarks on a file, if there are several. The line counts the remarks and
    names the command that prints them. It takes the place of the first remark.
    """
    remarks: dict[str, dict[str, None]] = {}
    told = list(notices)
    for one in told:
        if isinstance(one, Remark):
            remarks.setdefault(one.file, {})[one] = None
    found: dict[str, None] = {}
    for one in told:
        is_folded = isinstance(one, Remark) and len(remarks[one.file]) > 1
        found[_line(one.file, len(remarks[one.file])) if is_folded and isinstance(one, Remark) else one] = None
    return list(found)


def _line(file: str, count: int) -> str:
    return f"{file}: {count_of(count, 'remark')} on costs from the library; `tilewright validate {file}` prints them"
