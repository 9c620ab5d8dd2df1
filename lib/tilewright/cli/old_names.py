"""Former names of verbs, which work until the next release that may drop them, and the note that says so."""

from tilewright.cli.terminal import echo

GONE_WITH = "0.2.0"
"""The version without the former names."""
OLD_VERBS = {"certify": "check-front", "costs": "cost-library", "court": "accuracy", "validation": "compare-chips"}
"""Former name of a verb -> its name. `--help` and completion list names alone."""


def current_verb(word: str) -> str:
    """Name of the verb that a word names; the word itself where it is no former name."""
    return OLD_VERBS.get(word, word)


def note_old_verb(word: str) -> None:
    """Write the name of a verb on stderr, where its former name was given."""
    if word in OLD_VERBS:
        echo(f"`{word}` is now called `{OLD_VERBS[word]}`; the old name goes with {GONE_WITH}", err=True)
