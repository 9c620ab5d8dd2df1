"""tilewright: finds how to run neural networks on accelerators, and says what it costs.

The Python interface is the verbs of the command line as functions on paths, dicts or models in memory:

>>> import tilewright
>>> tilewright.__version__
'0.1.0'

Names are imported when first used, so that `import tilewright` stays cheap.
"""

from importlib import import_module
from typing import Any

from tilewright.peers.entries import ENTRIES
from tilewright.registry import enter

__version__ = "0.1.0"

enter(ENTRIES)

_HOMES = {
    "tilewright.sources": ("parse_workload", "parse_accelerator", "parse_mapping"),
    "tilewright.api": (
        "validate",
        "map_layer",
        "map_workload",
        "evaluate",
        "export_mapping",
        "export_loop_nests",
    ),
    "tilewright.api_multi": (
        "build_cns",
        "map_cores",
        "allocate",
        "schedule",
        "run_multi_core",
        "cost_table",
    ),
    "tilewright.search.options": ("SearchOptions",),
    "tilewright.errors": ("ArtifactError", "InputError", "MappingError", "Problem", "TilewrightError"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["__version__", *_HOME_OF]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'tilewright' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
