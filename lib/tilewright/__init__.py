"""tilewright: search for mappings of neural networks on accelerators, with energy, latency and area of each mapping.

Each verb of the command line is also a Python function. Its inputs are paths, dicts or models in memory:

>>> import tilewright
>>> tilewright.__version__
'0.1.0'

Names are imported when first used, so that `import tilewright` stays cheap.
"""

import sys
from functools import cache
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any

from tilewright.base import bytecode

bytecode.install()

from tilewright.base.entries import ENTRIES  # noqa: E402  what is imported from here on is never older than its source
from tilewright.base.registry import enter  # noqa: E402
from tilewright.cli.old_names import OLD_VERBS, with_old_keywords  # noqa: E402

__version__ = "0.1.0"

enter(ENTRIES)

_HOMES = {
    "tilewright.pipeline.sources": ("parse_workload", "parse_accelerator", "parse_mapping"),
    "tilewright.api": (
        "map_layer",
        "export_mapping",
        "export_loop_nests",
        "run_multi_core",
        "cost_table",
    ),
    "tilewright.loading": ("load",),
    "tilewright.cli.parse": ("parse",),
    "tilewright.cli.validate": ("validate",),
    "tilewright.cli.map": ("map_workload",),
    "tilewright.cli.split": ("split",),
    "tilewright.cli.cns": ("cns",),
    "tilewright.cli.cost": ("cost",),
    "tilewright.cli.allocate": ("allocate",),
    "tilewright.cli.schedule": ("schedule",),
    "tilewright.cli.fuse": ("fuse",),
    "tilewright.cli.evaluate": ("evaluate",),
    "tilewright.cli.tokens": ("tokens",),
    "tilewright.cli.serving": ("serving",),
    "tilewright.cli.report": ("report",),
    "tilewright.cli.check": ("check",),
    "tilewright.cli.summarize": ("summarize",),
    "tilewright.cli.compare": ("compare",),
    "tilewright.cli.explain": ("explain",),
    "tilewright.cli.advise": ("advise",),
    "tilewright.cli.page": ("page",),
    "tilewright.cli.pareto": ("pareto",),
    "tilewright.cli.draw": ("draw",),
    "tilewright.cli.new": ("new",),
    "tilewright.cli.depth_first": ("depth_first",),
    "tilewright.cli.attention": ("attention",),
    "tilewright.cli.explore": ("explore",),
    "tilewright.cli.decide": ("decide",),
    "tilewright.cli.front": ("front",),
    "tilewright.cli.certify": ("check_front",),
    "tilewright.cli.audit": ("audit",),
    "tilewright.cli.vary": ("vary",),
    "tilewright.cli.export": ("export",),
    "tilewright.cli.costs": ("cost_library",),
    "tilewright.cli.translate": ("translate",),
    "tilewright.cli.list_options": ("options",),
    "tilewright.cli.results": ("results",),
    "tilewright.cli.store": ("store",),
    "tilewright.cli.completion": ("completion",),
    "tilewright.cli.warm_up": ("warm_up",),
    "tilewright_evidence.conformance": ("conformance",),
    "tilewright_evidence.validation": ("compare_chips",),
    "tilewright_evidence.court.verb": ("accuracy",),
    "tilewright.search.options": ("MapOptions", "SearchOptions"),
    "tilewright.base.errors": ("ArtifactError", "InputError", "MappingError", "Problem", "TilewrightError"),
}
_OTHER_NAMES = {"map": "map_workload", "build_cns": "cns", "map_cores": "cost"} | {
    old: verb.replace("-", "_") for old, verb in OLD_VERBS.items()
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["__version__", *_HOME_OF]


class _Verbs(ModuleType):
    """Module type that protects functions with the name of a subpackage, such as `tilewright.cost`. The function stays
    available when the subpackage is imported.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if not (isinstance(value, ModuleType) and name in _HOME_OF):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Verbs


def __getattr__(name: str) -> Any:
    name = _OTHER_NAMES.get(name, name)
    if name not in _HOME_OF:
        raise AttributeError(f"module 'tilewright' has no attribute {name!r}")
    return _public(name)


@cache
def _public(name: str) -> Any:
    """Public object that is called `name`. If the object is a function, it is wrapped: an argument of a wrong kind
    raises an error before the function runs.
    """
    found = getattr(import_module(_HOME_OF[name]), name)
    if not isinstance(found, FunctionType):
        return found
    from tilewright.pipeline.argument_kinds import told

    return with_old_keywords(told(found, name), name)


def __dir__() -> list[str]:
    return sorted(__all__)


bytecode.run_as_written(__name__)
