"""Reads the workload YAML, or the same data as a list of dicts (zigzag-dse 3.9.1: workload file)."""

import itertools
from pathlib import Path
from typing import Any

from tilewright.errors import Problems
from tilewright.file_kinds import WORKLOAD, refuse_other_kind
from tilewright.validation import validate
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.layer import FINAL_OUTPUT, OUTPUT, Layer
from tilewright.workload.yaml_checks import check_workload
from tilewright.workload.yaml_schema import LayerEntry, WorkloadFile
from tilewright.yamlfile import YamlDocument, document_of, load_yaml


def read_workload_yaml(source: str | Path | list[dict[str, Any]], notices: list[str] | None = None) -> Workload:
    """The workload of a workload file, named after it, or of the same data as a list of dicts, named `workload`.

    Raises InputError with every problem of the file. Remarks on what is legal but unusual are appended to `notices`.
    """
    if isinstance(source, (list, tuple)):
        return workload_of(document_of(source), "workload", notices)
    return workload_of(load_yaml(source, notices), Path(source).stem, notices)


def workload_of(document: YamlDocument, name: str, notices: list[str] | None = None) -> Workload:
    """The workload of a loaded document. Raises InputError."""
    refuse_other_kind(document, WORKLOAD)
    problems = Problems(document)
    entries: list[LayerEntry] = validate(WorkloadFile, document.data, problems)
    check_workload(problems, entries or [])
    problems.finish(notices)
    names = _unique_names([entry.name or f"Layer{entry.id}" for entry in entries])
    nodes = (_node(*triple) for triple in zip(entries, document.data, names, strict=True))
    return Workload(name, tuple(nodes))


def _unique_names(names: list[str]) -> list[str]:
    """The names, with `__2`, `__3`, .. after those that stood earlier."""
    unique: list[str] = []
    for name in names:
        candidates = itertools.chain((name,), (f"{name}__{number}" for number in itertools.count(2)))
        unique.append(next(candidate for candidate in candidates if candidate not in unique))
    return unique


def _node(entry: LayerEntry, written: dict[str, Any], name: str) -> WorkloadNode:
    # The written order of sources is the order of graph edges, hence of execution.
    sources: dict[str, int | None] = written.get("operand_source") or {}
    constants = tuple(operand for operand, source in sources.items() if source == entry.id)
    return WorkloadNode(
        node_id=entry.id,
        name=name,
        operator_type=entry.operator_type,
        layer=_layer(entry, name, constants),
        sources=tuple((operand, source) for operand, source in sources.items() if source not in (None, entry.id)),
    )


def _layer(entry: LayerEntry, name: str, constants: tuple[str, ...]) -> Layer:
    operands = entry.equation
    precisions = entry.operand_precision.model_dump()
    order = (OUTPUT, FINAL_OUTPUT, *(operand for operand, _ in operands[1:]))
    windows = entry.pr_loop_dims or ()
    return Layer(
        name=name,
        operator_type=entry.operator_type,
        operand_dimensions=operands,
        loop_sizes=tuple(zip(entry.loop_dims, entry.loop_sizes, strict=True)),
        relations=tuple(entry.dimension_relations or ()),
        precision_bits=tuple((operand, precisions[operand]) for operand in order),
        padding=tuple(
            (name, (before, after)) for name, (before, after) in zip(windows, entry.padding or (), strict=False)
        ),
        data_dimension_sizes=tuple(zip(windows, entry.pr_loop_sizes or (), strict=False)),
        constant_operands=constants,
    )
