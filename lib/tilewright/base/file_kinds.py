"""Kinds of YAML documents, recognised by their keys, for messages about a file of the wrong kind."""

from collections.abc import Iterable, Sequence
from typing import Any

from tilewright.base.errors import InputError, Problem, nearest_name
from tilewright.base.yamlfile import YamlDocument

HARDWARE, WORKLOAD, MAPPING, CONFIG, PIPELINE = "hardware", "workload", "mapping", "config", "pipeline"
SPACE = "space"
_NAMES = {
    HARDWARE: "a hardware file",
    WORKLOAD: "a workload file",
    MAPPING: "a mapping file",
    CONFIG: "a configuration",
    PIPELINE: "a list of stages",
    SPACE: "a design space",
}
_FORMS = {
    HARDWARE: "a table with `memories` and `operational_array`, or with `cores`",
    WORKLOAD: "a list of layers, each with `equation`, `loop_dims` and `loop_sizes`, or a table with `language_model`",
    MAPPING: "a list of entries, each with a `name`; one entry has the name `default`",
    CONFIG: "a table with `runs`, `sweeps`, `spaces` or `fronts`",
    PIPELINE: "stages, or edits of the default pipeline",
    SPACE: "a table with `accelerator`, `networks`, and `axes` or `designs`",
}
_IS_LIST = {HARDWARE: False, WORKLOAD: True, MAPPING: True, CONFIG: False, SPACE: False}
TABLE_KEYS = {
    CONFIG: ("runs", "sweeps", "spaces", "fronts"),
    SPACE: ("accelerator", "axes", "designs", "objectives", "shard_designs"),
    HARDWARE: (
        "memories",
        "operational_array",
        "cores",
        "multipliers",
        "core_connectivity",
        "graph",
        "dataflows",
        "operator_types",
    ),
    PIPELINE: ("pipeline",),
    MAPPING: ("layers", "fused_groups", "kernel"),
    WORKLOAD: ("language_model",),
}
"""Kind of document whose root is a table -> keys that identify the kind. A table with keys of several kinds is of the
kind that comes first in this dict.
"""
ITEM_KEYS = {
    WORKLOAD: (
        *("id", "operator_type", "equation", "dimension_relations", "loop_dims", "loop_sizes", "operand_precision"),
        *("operand_source", "pr_loop_dims", "pr_loop_sizes", "padding", "zeros"),
    ),
    MAPPING: (
        *("name", "spatial_mapping", "spatial_mapping_hint", "memory_operand_links", "temporal_ordering"),
        *("level_boundaries", "memory_reach", "temporal_mapping_type", "access_same_data_considered_as_no_access"),
        *("core_allocation", "core_allocation_is_fixed", "intra_core_tiling", "inter_core_tiling"),
        *("tiles_if_alone", "layer_dimension_names", "reduction", "layers", "fused_groups", "kernel"),
    ),
    PIPELINE: ("stage", "replace", "insert", "drop", "set", "before", "after", "parameters"),
}
"""Keys that identify a document whose root is a list of tables: kind of document -> keys of the tables. Layers and
mapping entries both have the key `name`, so `name` is not among the keys of a workload."""


def kind_of(data: Any) -> str:
    """Kind of a file, recognised from its data; '' if it cannot be recognised. Misspelt keys are used only if no key is
    spelt correctly."""
    if isinstance(data, dict):
        return _kind_of_table(list(map(str, data)))
    tables = [item for item in data if isinstance(item, dict)] if isinstance(data, list) else []
    return _kind_by_count([str(key) for item in tables for key in item])


def refuse_other_kind(document: YamlDocument, expected: str) -> None:
    """Raise InputError, with one problem, if a document is not of the expected kind."""
    kind = kind_of(document.data)
    if kind not in ("", expected):
        _refuse(document, f"seems to be {_NAMES[kind]}, but {_NAMES[expected]} is needed", expected)
    if expected == PIPELINE:
        return  # a pipeline has many forms
    wanted = list if _IS_LIST[expected] else dict
    if not isinstance(document.data, wanted):
        _refuse(document, f"contains {_form_of(document.data)}, but {_NAMES[expected]} is needed", expected)
    if wanted is list and document.data and not any(isinstance(item, dict) for item in document.data):
        _refuse(document, f"contains a list without any table of keys, but {_NAMES[expected]} is needed", expected)


def _refuse(document: YamlDocument, message: str, expected: str) -> None:
    raise InputError([Problem(message, document.file, document.line_of(()), allowed=_FORMS[expected])])


def _kind_of_table(keys: Sequence[str]) -> str:
    for matches in (_is_one_of, _is_like_one_of):
        for kind, known in TABLE_KEYS.items():
            if any(matches(key, known) for key in keys):
                return kind
    return ""


def _kind_by_count(keys: Sequence[str]) -> str:
    """Kind in ITEM_KEYS that has the most of `keys` among its keys; in a tie, the first such kind. If no kind has any
    of `keys`, the function counts keys with a similar spelling. The result is '' if no kind has a similar key.
    """
    for matches in (_is_one_of, _is_like_one_of):
        counts = {kind: sum(matches(key, known) for key in keys) for kind, known in ITEM_KEYS.items()}
        if any(counts.values()):
            return max(counts, key=lambda kind: counts[kind])
    return ""


def _is_one_of(key: str, known: Iterable[str]) -> bool:
    return key in known


def _is_like_one_of(key: str, known: Sequence[str]) -> bool:
    return bool(nearest_name(key, known))


def _form_of(data: Any) -> str:
    """Form of a value in words, such as "a list"."""
    if isinstance(data, dict):
        return "a table of keys"
    if isinstance(data, list):
        return "a list"
    if data is None:
        return "nothing"
    return "text" if isinstance(data, str) else "a single value"
