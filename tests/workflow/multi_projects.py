"""A tiny project of two cores: a network of three layers, fused line by line, and layer by layer to compare."""

from pathlib import Path

from onnx import TensorProto, helper

from tests.workflow.conftest import Project

TINY_MULTI = Path(__file__).resolve().parent / "tiny_multi"
RUN, COMPANION = "fused", "fused.layer_by_layer"


def create_multi(root: Path) -> Project:
    """The project, not run yet."""
    project = Project.create(root, TINY_MULTI)
    (root / "config" / "workload").mkdir()
    write_network(root / "config" / "workload" / "net.onnx")
    return project


def write_network(path: Path) -> None:
    """Conv -> Relu -> Conv."""
    info = helper.make_tensor_value_info
    nodes = [
        helper.make_node("Conv", ["x", "v"], ["c"], name="first", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node("Conv", ["r", "w"], ["y"], name="second"),
    ]
    weights = [
        helper.make_tensor("v", TensorProto.FLOAT, [8, 4, 3, 3], [0.0] * 288),
        helper.make_tensor("w", TensorProto.FLOAT, [4, 8, 1, 1], [0.0] * 32),
    ]
    ends = [info("x", TensorProto.FLOAT, [1, 4, 6, 6])], [info("y", TensorProto.FLOAT, [1, 4, 6, 6])]
    graph = helper.make_graph(nodes, "net", *ends, weights)
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())


def jobs_of_runs(*rules: str, run: str = "") -> list[str]:
    """Jobs of rules of the multi-core flow for a run, or for both; a rule may name a core: cost_multi/left."""
    runs = [run] if run else [RUN, COMPANION]
    return [" ".join([rule.partition("/")[0], name, rule.partition("/")[2]]).strip() for rule in rules for name in runs]


def after_costs(run: str = "") -> list[str]:
    """The jobs that follow from another cost table; what is drawn and summarised is the run itself."""
    reported = [f"report_multi {RUN}", "pareto", "summary"]
    return [*jobs_of_runs("allocate_multi", "schedule_multi", "check_multi", run=run), *reported]
