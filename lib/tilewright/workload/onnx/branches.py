"""Control flow: the branch of an `If` that runs, and the operators that are refused."""

from collections.abc import Mapping

import numpy as np
import onnx

from tilewright.errors import Problem, nearest_name

THEN, ELSE = "then", "else"
EVERY_BRANCH = "*"
"""The key of `branches` that stands for every `If` that has no key of its own."""

LOOPS = frozenset({"SequenceMap"})
"""Refused: how often their body runs, or what it runs on, is a matter of run time."""


def loop_problem(node: onnx.NodeProto, name: str) -> Problem:
    """Why a loop is refused."""
    return Problem(
        f"{node.op_type} is not supported: a network has to be a graph without loops; export it with a fixed number of "
        "iterations, unrolled, or with the operator (LSTM, GRU) that does the same",
        path=name,
    )


def choose_branch(name: str, condition: np.ndarray | None, branches: Mapping[str, str]) -> str | Problem:
    """`then` or `else` of the If called `name`: what the constant `condition` says, else what `branches` says."""
    if condition is not None and condition.size == 1:
        return THEN if bool(condition.reshape(())) else ELSE
    chosen = branches.get(name, branches.get(EVERY_BRANCH))
    if chosen in (THEN, ELSE):
        return chosen
    return Problem(
        "the condition of this If is only known at run time; choose a branch",
        path=name,
        allowed=f"branches: {name}: then | else",
    )


def check_branches(branches: Mapping[str, str], if_names: list[str]) -> list[Problem]:
    """Choices that name no `If` of the network, or neither branch."""
    problems = []
    for key, chosen in branches.items():
        path = f"branches.{key}"
        if chosen not in (THEN, ELSE):
            problems.append(Problem("unknown branch", path=path, value=repr(chosen), allowed=f"{THEN}, {ELSE}"))
        if key != EVERY_BRANCH and key not in if_names:
            names = sorted(if_names)
            allowed = ", ".join(names) or "none: the network has no If"
            problems.append(
                Problem("no such If in the network", path=path, allowed=allowed, nearest=nearest_name(key, names))
            )
    return problems


def branch_graph(node: onnx.NodeProto, branch: str) -> onnx.GraphProto | None:
    """The graph of the branch, None if the file has none."""
    for attribute in node.attribute:
        if attribute.name == f"{branch}_branch" and attribute.type == onnx.AttributeProto.GRAPH:
            graph: onnx.GraphProto = attribute.g
            return graph
    return None
