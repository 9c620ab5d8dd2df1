"""Lines of code of a definition or a module: all lines except those of docstrings."""

import ast


def docstring_lines(node: ast.AST) -> int:
    """Number of lines of the docstrings in a node, also of those below attributes and constants."""
    found = 0
    for one in ast.walk(node):
        body = getattr(one, "body", None)
        for statement in body if isinstance(body, list) else ():
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                is_text = isinstance(statement.value.value, str)
                found += (statement.end_lineno or statement.lineno) - statement.lineno + 1 if is_text else 0
    return found


def code_lines(node: ast.FunctionDef | ast.ClassDef) -> int:
    """Number of lines of a definition without its docstrings."""
    return (node.end_lineno or node.lineno) - node.lineno + 1 - docstring_lines(node)
