"""The code behind each step of the pipeline, and its digest. Standard library only: the Snakefile imports this.

A code digest as a parameter of a rule makes Snakemake rerun the rule when that code changes. It covers the raw bytes
of every file of the package that the step runs: those of the modules that it begins with, and all that these import.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tilewright.artifacts.digests import DIGEST_BYTES
from tilewright.artifacts.imports import SourceTree
from tilewright.stage_table import CORE, modules_of
from tilewright.steps import MULTI, SINGLE

PACKAGE = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class StepCode:
    """Where the code of a step of the pipeline begins; the rest follows from what that imports."""

    roots: tuple[str, ...]
    """Modules: the verb that the rule calls, and the stages that it may be asked for by name."""
    without: tuple[str, ...] = ()
    """Modules (or patterns of them) that are imported, but decide nothing that the step writes: what only prints on the
    terminal, and other ways to call the verb than the rule's."""


DISPATCH = (
    *("tilewright", "tilewright.stages", "tilewright.cli.main", "tilewright.cli.options"),
    *("tilewright.cli.parameter_options", "tilewright.configuration", "tilewright.configuration.arguments"),
    *("tilewright.artifacts.step_code", "tilewright.artifacts.imports"),
    *(
        "tilewright.steps",
        "tilewright.stage_table",
        "tilewright.registry",
        "tilewright.peers",
        "tilewright.peers.entries",
    ),
)
"""Modules that name others and say what can be asked for; they decide no result of any step."""
_PRINTED = ("tilewright.report.*", "tilewright.peers.zigzag.exports.*")
_OWN_PIPELINE = "tilewright.cli.multi_slices"
_MULTI_REPORT = "tilewright.cli.report_multi"

_RECORDS = "tilewright.cost*"
"""What printed tables know of records, where a step makes none."""
CODE_OF: dict[str, StepCode] = {
    "parse_hardware": StepCode(("tilewright.cli.parse_hardware",)),
    "parse_workload": StepCode(("tilewright.cli.parse_workload",)),
    "parse_mapping": StepCode(("tilewright.cli.parse_mapping",)),
    "map": StepCode(("tilewright.cli.map", *modules_of(SINGLE)), without=_PRINTED),
    "export": StepCode(("tilewright.stages.saving", "tilewright.stages.plotting")),
    "split": StepCode(("tilewright.cli.split",), without=_PRINTED),
    "cns": StepCode(("tilewright.cli.cns",), without=(*_PRINTED, _OWN_PIPELINE, _RECORDS)),
    "cost": StepCode(("tilewright.cli.cost", *modules_of(CORE)), without=(*_PRINTED, _OWN_PIPELINE)),
    "multi_pipeline": StepCode((_OWN_PIPELINE, *modules_of(MULTI, CORE)), without=_PRINTED),
    "allocate": StepCode(("tilewright.cli.allocate",), without=(*_PRINTED, _OWN_PIPELINE)),
    "schedule": StepCode(
        ("tilewright.cli.schedule",),
        without=("tilewright.report.multi.summary_text", "tilewright.report.multi.gantt", _OWN_PIPELINE),
    ),
    "report": StepCode(("tilewright.cli.report",), without=(_MULTI_REPORT,)),
    "check": StepCode(("tilewright.cli.check",), without=("tilewright.cli.check_multi",)),
    "check_multi": StepCode(("tilewright.cli.check",)),
    "draw": StepCode(("tilewright.cli.draw",), without=(_MULTI_REPORT,)),
    "report_multi": StepCode(("tilewright.cli.report",)),
    "pareto": StepCode(("tilewright.cli.pareto",), without=(_MULTI_REPORT,)),
    "summarize": StepCode(("tilewright.cli.summarize",), without=("tilewright.cli.config",)),
}
"""What each step of the pipeline runs.

`export` is what mapping runs besides, where a stage of its pipeline writes files.
"""


def code_digest(step: str) -> str:
    """Digest of the code that a step of the pipeline runs, as it is now; `step` is a key of `CODE_OF`."""
    return _running_code_digest(CODE_OF[step])


def code_digest_of_modules(modules: Iterable[str]) -> str:
    """Digest of the code that runs when modules of the package do, as it is now."""
    return _running_code_digest(StepCode(tuple(sorted(set(modules)))))


def code_digests(package: Path) -> dict[str, str]:
    """Digest of the code of every step, of the package in this folder."""
    tree = SourceTree(package)
    return {step: digest_of(tree, code) for step, code in CODE_OF.items()}


def code_files(step: str, tree: SourceTree) -> list[str]:
    """The source files that a step runs, sorted, relative to the package."""
    return _files_of(tree, CODE_OF[step])


_running_tree = cache(lambda: SourceTree(PACKAGE))


@cache
def _running_code_digest(code: StepCode) -> str:
    """Computed once, since searches ask for every layer."""
    return digest_of(_running_tree(), code)


def digest_of(tree: SourceTree, code: StepCode) -> str:
    """Digest of the files that a step runs: their names and bytes."""
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for file in _files_of(tree, code):
        digest.update(file.encode() + b"\0")
        digest.update(tree.source(file) + b"\0")
    return digest.hexdigest()


def _files_of(tree: SourceTree, code: StepCode) -> list[str]:
    return tree.closure(code.roots, without=(*DISPATCH, *code.without))
