"""`tilewright parse workload`: reader of networks in ONNX and YAML files."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tilewright.base.artifacts.codec import encode
from tilewright.base.artifacts.digests import input_digest
from tilewright.base.artifacts.envelope import provenance, write_document
from tilewright.base.artifacts.files import YAML_SUFFIXES, FilePath
from tilewright.base.errors import Problem, Problems, count_of
from tilewright.base.json_values import JsonObject
from tilewright.base.profile import CORRECTED, ModelChoice
from tilewright.base.unused import refuse_unused, to_tell
from tilewright.cli.options import echo_json, network_keywords, repeated_options
from tilewright.cli.terminal import echo_text
from tilewright.cli.verb import ARGUMENT, Help, OptionOf, Paper, Tell, silent, verb
from tilewright.results.sheet import PaperWidth
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.network_options import NetworkOptions

if TYPE_CHECKING:
    from tilewright.workload.onnx.coverage import Coverage, OperatorCoverage


def _parsed(
    file: FilePath,
    output: FilePath | None,
    coverage: FilePath | None,
    table: FilePath | None,
    graph: FilePath | None,
    name: str,
    strict: bool,
    network_options: NetworkOptions | None,
    model: str,
    tell: Tell = silent,
) -> "tuple[Workload, Coverage]":
    """Pair (workload in a file, its coverage: operators with and without a cost model). Requested files are written."""
    file, options = Path(file), network_options or NetworkOptions()
    parsed, found, notices = _read(file, model, name, options)
    notices += repeated_options()
    tell(to_tell(notices, strict))
    if strict:
        _refuse(found, notices, file)
    _write(parsed, found, _made_by(file, model, options), output, coverage, table, graph)
    return parsed, found


def _show(read: "tuple[Workload, Coverage]", output: Path | None, verbose: bool, as_json: bool) -> None:
    from tilewright.results.workload_tables import coverage_text, workload_text

    parsed, coverage = read
    if as_json:
        echo_json({"workload": encode(parsed), "coverage": coverage.to_dict()})
    elif verbose or not output:
        echo_text(workload_text(parsed), nl=True)
        echo_text(coverage_text(coverage))


@verb(
    """Read a workload FILE (ONNX or YAML). Print its layers, and which of its operators have a cost model (coverage).

    Example: tilewright parse workload config/workload/resnet18.onnx -o workload.json --graph resnet18.svg
    """,
    run=_parsed,
    show=_show,
    order="file output coverage table graph name strict",
    strict="an operator of the network computes but has no cost model",
)
@network_keywords
def read_workload_file(
    file: Annotated[FilePath, ARGUMENT],
    output: Annotated[FilePath | None, Help("File for the artifact (workload.json).")] = None,
    *,
    coverage: Annotated[
        FilePath | None, Help("File for the coverage, which lists the operators without a cost model.")
    ] = None,
    table: Annotated[FilePath | None, Help("CSV file for a table of the layers.")] = None,
    graph: Annotated[FilePath | None, Help("SVG file for a drawing of the network.")] = None,
    name: Annotated[str, Help("Name of the workload; default: file name without suffix.")] = "",
    strict: bool = False,
    network_options: NetworkOptions | None = None,
    model: Annotated[str, OptionOf(ModelChoice)] = CORRECTED.name,
    paper: Annotated[PaperWidth | None, Paper(("table",))] = None,
) -> Workload:
    """Workload in a file.

    Artifact, coverage, table of layers and drawing are written if their paths are given. With `paper` (`column` or
    `page`), the drawing and the table are made for a paper.
    """
    return _parsed(file, output, coverage, table, graph, name, strict, network_options, model)[0]


def _made_by(file: Path, model: str, options: NetworkOptions) -> JsonObject:
    return provenance("parse_workload", {"workload": input_digest(file)}, {"model": model, **options.stated()})


def _write(
    parsed: Workload,
    coverage: "Coverage",
    made_by: JsonObject,
    output: FilePath | None,
    coverage_output: FilePath | None,
    table_output: FilePath | None,
    graph_output: FilePath | None,
) -> None:
    if output:
        write_document(Path(output), "tilewright/workload", encode(parsed), made_by)
    if coverage_output:
        write_document(Path(coverage_output), "tilewright/coverage", coverage.to_dict(), made_by)
    if table_output:
        from tilewright.results.paper_tables import write_table
        from tilewright.results.workload_tables import IN_PAPER, workload_table

        write_table(workload_table(parsed), Path(table_output), IN_PAPER)
    if graph_output:
        from tilewright.results.network_figure import write_network_figure

        write_network_figure(parsed, Path(graph_output))


def _read(file: Path, model: str, name: str, options: NetworkOptions) -> "tuple[Workload, Coverage, list[str]]":
    """Triple (workload in a file, coverage of its operators, notices on unusual content)."""
    from tilewright.base.profile import profile_by_name
    from tilewright.pipeline.stages.base import run_stages
    from tilewright.pipeline.stages.descriptions import Descriptions
    from tilewright.pipeline.stages.workload_parsers import ONNXModelParser, WorkloadParser
    from tilewright.workload.onnx.coverage import build_coverage

    profile_by_name(model)
    parser = WorkloadParser(model) if file.suffix in YAML_SUFFIXES else ONNXModelParser(model, name)
    read: Descriptions = next(run_stages((parser,), Descriptions(workload=file, network_options=options)))
    parsed = read.checked().network
    assert parsed is not None
    coverage = read.coverage
    if coverage is None:
        coverage = build_coverage(map(_covered, (node for node in parsed.nodes if node.layer)), read.notices)
    return parsed, coverage, list(read.notices)


def _covered(node: WorkloadNode) -> "OperatorCoverage":
    """Coverage of a layer of a YAML file. Such a layer always has a cost model."""
    from tilewright.base.operator_groups import work_counts
    from tilewright.workload.graph import MODELLED
    from tilewright.workload.onnx.coverage import OperatorCoverage

    assert node.layer is not None
    counts = work_counts(node.unit, node.layer.mac_count * node.repeats)
    macs, operations = counts["mac_count"], counts["operation_count"]
    return OperatorCoverage(node.operator_type, MODELLED, node.repeats, macs, operations, None)


def _refuse(coverage: "Coverage", notices: list[str], file: Path) -> None:
    """Raise InputError for operator types that compute but have no cost model, and for unused input."""
    told = Problems()
    told.found += [
        Problem(
            f"no cost model for {count_of(row.node_count, 'operator')} of this type",
            str(file),
            path=row.operator_type,
        )
        for row in coverage.unsupported
    ]
    told.attempt(refuse_unused, notices)
    told.finish()
