"""Names of layers as parts of file names, and a check that no two layers have the same files."""

from collections import Counter

from tilewright.base.errors import InputError, Label, Problem
from tilewright.results.records import OVERALL
from tilewright.workload.graph import Workload


def file_name_of(layer: str) -> str:
    """Name of a layer in the form that is used in file names."""
    return layer.replace("/", "_")


def check_file_names(workload: Workload, numbered: bool) -> None:
    """Raise InputError if files of two layers would have the same name. If `numbered` is true, a layer can have several
    files, whose names end with a number.
    """
    names = [node.layer.name for node in workload.layers_in_order if node.layer is not None]
    counts = Counter(map(file_name_of, names))
    problems = []
    for name in names:
        stem, _, number = file_name_of(name).rpartition("-")
        if counts[file_name_of(name)] > 1 or name == OVERALL:
            what = "the whole network" if name == OVERALL else "another layer"
            problems.append(
                Problem(f"the files of {what} would have the same names", path=Label(workload.name), value=name)
            )
        elif numbered and stem in counts and number.replace(".", "").isdigit():
            message = f"the files of mapping {number} of layer '{stem}' could have the same names"
            problems.append(Problem(message, path=Label(workload.name), value=name))
    if problems:
        raise InputError(problems)
