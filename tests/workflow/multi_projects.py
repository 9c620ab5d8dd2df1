"""A tiny project of two cores: a network of three layers, fused line by line, and layer by layer for comparison."""

from pathlib import Path

from tests.three_layers import write_network
from tests.workflow.conftest import Project

TINY_MULTI = Path(__file__).resolve().parent / "tiny_multi"
RUN, COMPANION = "fused", "fused.layer_by_layer"


def create_multi(root: Path) -> Project:
    """The project before its first run."""
    project = Project.create(root, TINY_MULTI)
    (root / "config" / "workload").mkdir()
    write_network(root / "config" / "workload" / "net.onnx")
    return project


def jobs_of_runs(*rules: str, run: str = "") -> list[str]:
    """Jobs of multi-core rules for one run, or for both runs; a rule may name a core, as in cost_multi/left."""
    runs = [run] if run else [RUN, COMPANION]
    return [" ".join([rule.partition("/")[0], name, rule.partition("/")[2]]).strip() for rule in rules for name in runs]


def after_costs(run: str = "") -> list[str]:
    """The jobs that follow from a changed cost table of a run, with its figures and reports."""
    reported = [f"figures_multi {RUN}", f"report_multi {RUN}", "page", "pareto", "summary"]
    return [*jobs_of_runs("allocate_multi", "schedule_multi", "check_multi", run=run), *reported]
