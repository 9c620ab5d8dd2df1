"""Remarks on numbers of input files: `tilewright validate` prints each remark; other verbs only count them."""

from collections import Counter
from collections.abc import Iterable, Mapping

from tilewright.base.errors import Remark, count_of


def folded(notices: Iterable[str]) -> list[str]:
    """Notices in which several remarks on the same file are replaced by one line, at the position of the first remark.
    The line counts the remarks, and names the command that prints them.
    """
    told = list(notices)
    remarks = dict.fromkeys(one for one in told if isinstance(one, Remark))
    counts = Counter(one.file for one in remarks)
    return list(dict.fromkeys(_line(one, counts) for one in told))


def _line(notice: str, counts: Mapping[str, int]) -> str:
    """Notice itself, or the line that replaces it. `counts` has the number of remarks on each file."""
    if not isinstance(notice, Remark) or counts[notice.file] < 2:
        return notice
    file, count = notice.file, counts[notice.file]
    return f"{file}: {count_of(count, 'remark')} on costs from the library; `tilewright validate {file}` prints them"
