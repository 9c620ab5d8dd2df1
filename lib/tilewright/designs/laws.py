"""Expressions of laws and constraints: arithmetic over the names of a space, parsed once and computed for each design.

The language is small on purpose: numbers, text, names, + - * / // % **, comparisons, `and`, `or`, `not`, `a if b else
c`, and the functions in FUNCTIONS. The package simpleeval computes the expressions, without `eval`.
"""

import ast
import keyword
import math
import operator
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from simpleeval import NameNotDefined, SimpleEval

from tilewright.base.errors import nearest_name

Value = int | float | str
"""Value of an axis or of a law; true and false are counted as integers."""

LARGEST_WHOLE = 2**63 - 1
"""Largest integer that tables hold exactly."""


def value_word(value: Value) -> str:
    """Text of a value as a file would contain it, with all digits: true, 16 (also for 16.0), 0.1."""
    if isinstance(value, str):
        return value
    if value is True or value is False:
        return str(value).lower()
    return str(int(value)) if value == int(value) else repr(float(value))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "ceil": math.ceil,
    "floor": math.floor,
    "log2": math.log2,
    "max": max,
    "min": min,
    "sqrt": math.sqrt,
}
LONGEST_EXPRESSION = 1000
_DEEPEST = 50
_MOST_POWER_BITS = 1024
"""Largest size of an integer power, in bits. No law or constraint needs more."""
_OF_MANY = ("max", "min")
_WORDS: dict[type[ast.AST], str] = {
    ast.Attribute: "a dot after a name",
    ast.Subscript: "an index",
    ast.BitXor: "^ (a power is **)",
    ast.BitAnd: "& (write `and`)",
    ast.BitOr: "| (write `or`)",
    ast.Lambda: "lambda",
    ast.List: "a list",
    ast.Tuple: "a list",
    ast.Set: "a set",
    ast.Dict: "a table",
    ast.ListComp: "a list with `for`",
    ast.SetComp: "a set with `for`",
    ast.DictComp: "a table with `for`",
    ast.GeneratorExp: "`for`",
    ast.NamedExpr: "`:=`",
    ast.Starred: "* before a name",
    ast.JoinedStr: "a text with f before it",
    ast.Await: "`await`",
    ast.Yield: "`yield`",
    ast.YieldFrom: "`yield`",
    ast.Is: "`is` (write ==)",
    ast.IsNot: "`is not` (write !=)",
    ast.In: "`in`",
    ast.NotIn: "`not in`",
    ast.Invert: "~ (write `not`)",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.MatMult: "@",
}
ALLOWED = (
    f"numbers, text, names, + - * / // % **, comparisons, `and`, `or`, `not`, `a if b else c`, {', '.join(FUNCTIONS)}"
)


class ExpressionError(ValueError):
    """Error in an expression that cannot be parsed or computed."""

    def __init__(self, message: str, allowed: str = "", nearest: str = "") -> None:
        super().__init__(message)
        self.allowed, self.nearest = allowed, nearest


def _of_numbers(compute: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Function that computes the same as the operator `compute` on numbers, and raises ExpressionError if an operand is
    text. Without this check, Python would repeat or format the text.
    """

    def checked(left: Any, right: Any) -> Any:
        if isinstance(left, str) or isinstance(right, str):
            raise ExpressionError("arithmetic with text")
        return compute(left, right)

    return checked


def _power(base: Any, exponent: Any) -> Any:
    if isinstance(base, int) and isinstance(exponent, int) and base.bit_length() * abs(exponent) > _MOST_POWER_BITS:
        return float(base) ** exponent
    return base**exponent


_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: _of_numbers(operator.add),
    ast.Sub: _of_numbers(operator.sub),
    ast.Mult: _of_numbers(operator.mul),
    ast.Div: _of_numbers(operator.truediv),
    ast.FloorDiv: _of_numbers(operator.floordiv),
    ast.Mod: _of_numbers(operator.mod),
    ast.Pow: _of_numbers(_power),
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_BELOW_OR_ABOVE = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_NODES: tuple[type[ast.AST], ...] = (
    *(ast.Constant, ast.Name, ast.UnaryOp, ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Call),
    *(ast.And, ast.Or, ast.Load),
    *_OPERATORS,
)


class Limit(NamedTuple):
    """Limit that a constraint sets for one name, such as `area_mm2 <= 4`."""

    name: str
    number: float
    is_upper: bool
    """True if the values of the name must be below the number, or equal to it."""


@dataclass(frozen=True)
class Expression:
    """Parsed expression."""

    text: str
    """Text of the expression, as written in the file, or made from a plain value (a number, true or false)."""
    names: tuple[str, ...]
    """Names in the expression, each once, without the names of functions."""
    tree: ast.expr
    is_condition: bool
    """True if the expression can be a constraint.

    A constraint consists of comparisons, or is a single name, because a law can define this name by comparisons.
    """

    def value(self, names: Mapping[str, Value]) -> Value:
        """Value of the expression, in which each name has its value in `names`. Raises ExpressionError if there is no
        finite value.
        """
        _EVALUATOR.names = names
        try:
            value = _EVALUATOR.eval(self.text, self.tree)
            if isinstance(value, str) or (not isinstance(value, complex) and math.isfinite(value)):
                return value
        except ExpressionError:
            raise
        except ZeroDivisionError:
            raise ExpressionError("division by zero") from None
        except OverflowError:
            pass
        except TypeError:
            raise ExpressionError("a text is used where a number is needed") from None
        except ValueError:
            raise ExpressionError("log2 of a number that is not above 0, or sqrt of a negative number") from None
        raise ExpressionError("not a finite number")

    @property
    def limit(self) -> Limit | None:
        """Limit, if the expression compares one name with a number by <, <=, > or >=. None for any other expression.

        Either side can have the name. The other side can be computed from numbers, as in `4 * 0.5 >= area_mm2`.
        """
        tree = self.tree
        if not isinstance(tree, ast.Compare) or len(tree.ops) != 1 or type(tree.ops[0]) not in _BELOW_OR_ABOVE:
            return None
        is_below, side, other = isinstance(tree.ops[0], ast.Lt | ast.LtE), tree.left, tree.comparators[0]
        if not isinstance(side, ast.Name):
            is_below, side, other = not is_below, other, side
        if not isinstance(side, ast.Name):
            return None
        try:
            number = Expression(self.text, (), other, is_condition=False).value({})
        except (ExpressionError, NameNotDefined):
            return None
        return None if isinstance(number, str) else Limit(side.id, float(number), is_below)


def read_expression(written: Value) -> Expression:
    """Expression from text, a number, true or false. Raises ExpressionError if it cannot be parsed."""
    text = written.strip() if isinstance(written, str) else str(written)
    if len(text) > LONGEST_EXPRESSION:
        raise ExpressionError("too long", f"{LONGEST_EXPRESSION} characters")
    if not isinstance(written, str):
        return Expression(text, (), ast.Constant(written), isinstance(written, bool))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # 1if a else b
            tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        place = f" at '{text[error.offset - 1 :][:20]}'" if isinstance(error, SyntaxError) and error.offset else ""
        raise ExpressionError(f"is no expression{place}", ALLOWED) from None
    _check(tree, 0)
    functions = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    names = dict.fromkeys(n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and id(n) not in functions)
    return Expression(text, tuple(names), tree, _is_condition(tree))


def name_problem(name: str) -> str:
    """Reason why expressions cannot use a name; '' if they can."""
    if not (name.isascii() and name.isidentifier()) or name.startswith("_"):
        return "is not a name for expressions: use letters, digits and _, with a letter first"
    if keyword.iskeyword(name):
        return "is a reserved word of expressions, so it cannot be a name"
    return "is a function of expressions, so it cannot be a name" if name in FUNCTIONS else ""


def _check(node: ast.AST, depth: int) -> None:
    if depth > _DEEPEST:
        raise ExpressionError("nested too deeply", f"{_DEEPEST} levels")
    if not isinstance(node, _NODES):
        word = _WORDS.get(type(node), "this form of Python")
        raise ExpressionError(f"{word} is not possible in an expression", ALLOWED)
    if isinstance(node, ast.Constant) and not isinstance(node.value, int | float | str):
        raise ExpressionError(f"{node.value!r} is not possible in an expression", ALLOWED)
    if isinstance(node, ast.Call):
        _check_call(node)
    children = node.args if isinstance(node, ast.Call) else ast.iter_child_nodes(node)
    for child in children:
        _check(child, depth + 1)


def _check_call(call: ast.Call) -> None:
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    if name not in FUNCTIONS:
        told = f"no function '{name}'" if name else "only functions can be called"
        raise ExpressionError(told, ", ".join(FUNCTIONS), nearest_name(name, list(FUNCTIONS)))
    if call.keywords or (len(call.args) < 2 if name in _OF_MANY else len(call.args) != 1):
        raise ExpressionError(f"{name} takes {'two numbers or more' if name in _OF_MANY else 'one number'}")


def _is_condition(tree: ast.expr) -> bool:
    if isinstance(tree, ast.BoolOp):
        return all(map(_is_condition, tree.values))
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not):
        return _is_condition(tree.operand)
    return isinstance(tree, ast.Compare | ast.Name) or (isinstance(tree, ast.Constant) and tree.value in (True, False))


_EVALUATOR = SimpleEval(operators=_OPERATORS, functions=dict(FUNCTIONS), names={})
