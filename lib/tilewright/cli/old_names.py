"""Former names of verbs, options and keywords, which work until the release GONE_WITH.

Only the standard library is imported, because `import tilewright` imports this module for functions with former names.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any, NamedTuple

GONE_WITH = "0.2.0"
"""First release in which the former names no longer work."""
OLD_VERBS = {"certify": "check-front", "costs": "cost-library", "court": "accuracy", "validation": "compare-chips"}
"""Current names of renamed verbs, by former name. `--help` and completion list only current names."""


class OldOption(NamedTuple):
    """Former and new name of an option of a verb, and of the keyword with the same meaning in the Python function."""

    verb: str
    """Name of the verb, or of a Python function that is not a verb."""
    old: str
    """Former name on the command line; '' if only the keyword was renamed."""
    new: str
    old_keyword: str
    """Former name of the keyword; '' if only the option was renamed."""
    new_keyword: str

    @property
    def function(self) -> str:
        """Name of the Python function in the package `tilewright`."""
        return "map_workload" if self.verb == "map" else self.verb.replace("-", "_")

    @property
    def is_keyword(self) -> bool:
        """True if the keyword was renamed."""
        return bool(self.old_keyword)


_WITH_THREADS = ("map", "cost", "allocate", "tokens", "serving", "compare-chips")
OLD_OPTIONS = (
    *(OldOption(verb, "--threads", "--jobs", "threads", "jobs") for verb in _WITH_THREADS),
    OldOption("run_multi_core", "", "", "threads", "jobs"),
    OldOption("schedule", "--allocation", "--core-allocation", "allocation", "core_allocation"),
    OldOption("parse", "--cores", "--core-folder", "cores", "core_folder"),
    OldOption("depth-first", "--mode", "--overlap-mode", "mode", "overlap_mode"),
    OldOption("serving", "--model-name", "--served-model-name", "model_name", "served_model_name"),
    OldOption("report", "--layer", "--loop-nest", "layers", "loop_nests"),
    OldOption("export", "--as", "--format", "", ""),
    OldOption("accuracy", "--sample", "--package-samples", "sample", "package_samples"),
)
"""All former names of options. `--help` and completion list only current names."""


def with_current_options(verb: str, words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Pair (`words` with current names of options, one remark for each former name in `words`). `words` are the words
    of the command line after the verb.
    """
    current = {one.old: one.new for one in OLD_OPTIONS if one.verb == verb and one.old}
    found = [word.partition("=")[0] for word in words]
    end = found.index("--") if "--" in found else len(found)  # words after `--` are not options
    renamed = [
        current[name] + word[len(name) :] if place < end and name in current else word
        for place, (name, word) in enumerate(zip(found, words, strict=True))
    ]
    used = [name for name in dict.fromkeys(found[:end]) if name in current]
    return renamed, [now_called(name, current[name]) for name in used]


def now_called(old: str, new: str) -> str:
    """Remark that `old` is a former name of `new`."""
    return f"`{old}` is now called `{new}`; the old name works until {GONE_WITH}"


def with_old_keywords(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Function `tilewright.<name>` that also accepts former keywords. Each use of a former keyword causes a
    DeprecationWarning.
    """
    current = {one.old_keyword: one.new_keyword for one in OLD_OPTIONS if one.function == name and one.is_keyword}
    if not current:
        return function

    @wraps(function)
    def with_former(*args: Any, **keywords: Any) -> Any:
        return function(*args, **dict(_current(keywords, current)))

    return with_former


def _current(keywords: Mapping[str, Any], current: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    """Keyword arguments with current names.

    Raises TypeError if one keyword is given under both names, as Python does for repeated keywords.
    """
    for old, value in keywords.items():
        new = current.get(old, old)
        if new != old:
            if new in keywords:
                raise TypeError(f"got multiple values for argument '{new}', which was called '{old}'")
            warnings.warn(now_called(old, new), DeprecationWarning, stacklevel=3)
        yield new, value
