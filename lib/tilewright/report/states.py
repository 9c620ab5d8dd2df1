"""Whether a run has a result: the column `state` of tables across runs, and what is said of runs without one."""

from collections.abc import Iterator, Mapping, Sequence

DONE, FAILED, STALE = "done", "failed", "stale"
"""Its result is up to date; it has none, because a step of it failed or was not reached; it has one of before a change,
which was not made again."""
_MEANING = {
    FAILED: "failed",
    STALE: "stale: not made again, what lies in its folder is of before a change",
}


def unfinished_lines(rows: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """Lines for the terminal that name the runs of which a table has no figures."""
    if rows:
        yield "Not in the table:"
    width = max((len(row["run"]) for row in rows), default=0)
    for row in rows:
        yield f"  {row['run']:<{width}}  {_MEANING[row['state']]}"
