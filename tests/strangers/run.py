"""Makes files with mistakes and reports ignored ones: `python -m tests.strangers.run --count 500`."""

import argparse
import collections
import shutil
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from tilewright.base.errors import InputError
from tilewright.workload.language_models.families import WITHOUT_COST

from tests.strangers.mistakes import mistake
from tests.strangers.outcomes import CHANGED, FREE, REFUSED, SILENT, TOLD, Outcome
from tests.strangers.readings import CONFIG, Shipped, shipped
from tests.strangers.verbs import outcomes_of_calls


@cache
def untouched(file: Shipped) -> tuple[Any, frozenset[str]]:
    """Meaning and notices of the unchanged file."""
    notices: list[str] = []
    return file.read(file.path, notices), frozenset(_without_place(notice, file.path) for notice in notices)


def _without_place(notice: str, file: Path) -> str:
    return notice.partition(" ")[2] if notice.startswith(str(file)) else notice


def outcome_of(file: Shipped, seed: int, folder: Path) -> Outcome:
    """The outcome of a file with the mistake of a seed, in a copy of config/."""
    made = mistake(file.data, seed)
    before, known = untouched(file)
    # Paths in a file go from its folder on.
    place = folder / file.path.relative_to(CONFIG)
    assert isinstance(made.text, str)
    place.write_text(made.text, "utf-8")
    notices: list[str] = []
    try:
        after = file.read(place, notices)
    except InputError as error:
        return Outcome(file.path.name, made, REFUSED, str(error))
    finally:
        shutil.copyfile(file.path, place)
    fresh = [notice for notice in notices if _without_place(notice, place) not in known]
    said = "\n".join(notice for notice in fresh if made.is_named_in(notice))
    if said:
        return Outcome(file.path.name, made, TOLD, said)
    if str(before).replace(str(CONFIG), "") != str(after).replace(str(folder), ""):
        return Outcome(file.path.name, made, CHANGED, "")
    # Of a language model docs/language-models.md says which fields cost nothing.
    is_free = file.path.suffix == ".json" and WITHOUT_COST & {*made.words}
    return Outcome(file.path.name, made, FREE if is_free else SILENT, "")


def outcomes(count: int, seed: int) -> Iterator[Outcome]:
    """Outcomes of this many files with a mistake each; the shipped files are taken in turn."""
    files = list(shipped())
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "config"
        shutil.copytree(CONFIG, folder)
        for number in range(count):
            yield outcome_of(files[number % len(files)], seed * 1_000_003 + number, folder)


def main() -> int:
    """Print counts, and each ignored mistake with its file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--calls", type=int, default=0, help="Calls of verbs with a mistake in a file, besides.")
    asked = parser.parse_args()
    counts: collections.Counter[tuple[str, str]] = collections.Counter()
    wrong = 0
    for found in chain(outcomes(asked.count, asked.seed), outcomes_of_calls(asked.calls, asked.seed)):
        counts[found.mistake.what, found.outcome] += 1
        if found.is_wrong:
            wrong += 1
            print(f"{found.outcome}: {found.file}: {found.mistake.what} {', '.join(found.mistake.words)}: {found.said}")
    for (what, outcome), number in sorted(counts.items()):
        print(f"{what:18} {outcome:8} {number:5}")
    count = asked.count + asked.calls
    print(f"{count} files of strangers, seed {asked.seed}: {wrong} dropped in silence or refused without a name")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
