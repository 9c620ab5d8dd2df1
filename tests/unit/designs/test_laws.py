"""Expressions: Python's arithmetic on allowed names and functions, and nothing else."""

import ast
import contextlib
import math
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilewright.designs.laws import FUNCTIONS, ExpressionError, Limit, name_problem, read_expression

NAMES = ("rows", "sram_kib", "x")
NUMBERS = st.one_of(st.integers(-1000, 1000), st.floats(-1e3, 1e3, allow_nan=False))


def texts() -> st.SearchStrategy[str]:
    """Generate expressions over the names, with every operator and function."""
    leaves = st.one_of(st.sampled_from(NAMES), st.integers(0, 99).map(str), st.sampled_from(["0.5", "2e-3", "1.75"]))

    def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        binary = st.sampled_from([*("+", "-", "*", "/", "//", "%"), *("<", "<=", "==", "!=", ">", ">=", "and", "or")])
        return st.one_of(
            st.builds("({} {} {})".format, inner, binary, inner),
            st.builds("({}{})".format, st.sampled_from(["-", "+", "not "]), inner),
            st.builds("({} ** {})".format, inner, st.sampled_from(["2", "3", "0.5", "(-1)"])),
            st.builds("{}({})".format, st.sampled_from(["abs", "ceil", "floor", "log2", "sqrt"]), inner),
            st.builds("{}({}, {})".format, st.sampled_from(["max", "min"]), inner, inner),
            st.builds("({} if {} else {})".format, inner, inner, inner),
        )

    return st.recursive(leaves, larger, max_leaves=8)


def by_python(text: str, names: dict[str, Any]) -> Any:
    """Return the value that Python gives, or None if it is no finite number."""
    try:
        value = eval(text, {"__builtins__": {}}, FUNCTIONS | names)
    except (ZeroDivisionError, OverflowError, ValueError, TypeError):
        return None
    return value if not isinstance(value, complex) and math.isfinite(value) else None


@given(texts(), st.tuples(*(NUMBERS for _ in NAMES)))
def test_values_are_those_of_python(text: str, numbers: tuple[float, ...]) -> None:
    """An expression has the value and type of Python, or is an error."""
    names = dict(zip(NAMES, numbers, strict=True))
    expression = read_expression(text)
    assert set(expression.names) == {name for name in NAMES if name in text.replace("max", "")}
    wanted = by_python(text, names)
    if wanted is None:
        with pytest.raises(ExpressionError):
            expression.value(names)
    else:
        found = expression.value(names)
        assert (found, type(found)) == (wanted, type(wanted))


@given(st.one_of(st.text(max_size=30), st.text(alphabet="ax019.+-*/%()<>=!,'\" andorifelsemin[]{}:_", max_size=40)))
def test_any_text_is_computed_or_refused(text: str) -> None:
    """Any text gives a number or text, or is an error."""
    with contextlib.suppress(ExpressionError):
        expression = read_expression(text)
        assert isinstance(expression.value(dict.fromkeys(expression.names, 3)), int | float | str)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("3 +", "is no expression"),
        ("", "is no expression"),
        ("a = 3", "is no expression"),
        ("a; b", "is no expression"),
        ("import os", "is no expression"),
        ("a.b", "a dot after a name"),
        ("a[0]", "an index"),
        ("[a, b]", "a list"),
        ("[x for x in a]", "a list with `for` is not"),
        ("lambda: 3", "lambda"),
        ("f'{a}'", "a text with f before it is not"),
        ("(b := 3)", "`:=` is not"),
        ("2 ^ 3", "a power is **"),
        ("a & b", "write `and`"),
        ("a << 3", "<< is not possible"),
        ("a is b", "`is` (write ==) is not"),
        ("None", "None is not possible"),
        ("3j", "3j is not possible"),
        ("b'x'", "b'x' is not possible"),
        ("open('x')", "no function 'open'"),
        ("__import__('os')", "no function '__import__'"),
        ("(3).real", "a dot after a name"),
        ("max(a)(b)", "only functions can be called"),
        ("max(a)", "max takes two numbers or more"),
        ("sqrt(a, b)", "sqrt takes one number"),
        ("max(a, b, key=abs)", "max takes two numbers or more"),
        ("max(*a, 3)", "* before a name is not"),
        ("-" * 200 + "a", "nested too deeply"),
        ("(" * 300 + "a" + ")" * 300, "is no expression"),
        ("a" * 2000, "too long"),
    ],
)
def test_what_cannot_be_read(text: str, said: str) -> None:
    """Text that is no arithmetic is refused: attributes, other calls, statements."""
    with pytest.raises(ExpressionError) as raised:
        read_expression(text)
    assert said in str(raised.value)


def test_no_message_names_a_class_of_the_parser() -> None:
    """Each part of Python that an expression can have, but that is refused, is named in words, not by its class."""
    kinds = [one for base in (ast.expr, ast.operator, ast.unaryop, ast.cmpop) for one in base.__subclasses__()]
    texts = ("[x for x in a]", "{a}", "{a for a in b}", "{a: 1 for a in b}", "(a for a in b)", "await a", "(yield)")
    texts += ("(yield from a)", "a in b", "a not in b", "a is not b", "~a", "a >> 1", "a @ b", "{a: 1}", "(*a, 1)")
    for text in texts:
        with pytest.raises(ExpressionError) as raised:
            read_expression(text)
        assert not any(re.search(rf"\b{kind.__name__}\b", str(raised.value)) for kind in kinds), text
        assert "this form of Python" not in str(raised.value), text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1 / a", "division by zero"),
        ("1 % a", "division by zero"),
        ("log2(a)", "log2 of a number that is not above 0"),
        ("sqrt(a - 1)", "sqrt of a negative number"),
        ("(a - 1) ** 0.5", "not a finite number"),
        ("1e308 * 10", "not a finite number"),
        ("9 ** 9 ** 9", "not a finite number"),
        ("(-9) ** 99999999", "not a finite number"),
        ("ceil(1e308 * 10)", "not a finite number"),
        ("'x' + 'y'", "arithmetic with text"),
        ("'%999999999d' % 3", "arithmetic with text"),
        ("'x' * 99999999", "arithmetic with text"),
        ("t < 3", "a text is used where a number is needed"),
        ("-t", "a text is used where a number is needed"),
        ("abs(t)", "a text is used where a number is needed"),
    ],
)
def test_what_cannot_be_computed(text: str, said: str) -> None:
    """An expression without a finite value is refused with its reason."""
    with pytest.raises(ExpressionError) as raised:
        read_expression(text).value({"a": 0, "t": "small"})
    assert said in str(raised.value)


def test_text_is_compared() -> None:
    """Expressions can compare text, since choices are text."""
    expression = read_expression("2 if memory == 'large' else 1")
    assert [expression.value({"memory": size}) for size in ("small", "large")] == [1, 2]
    assert read_expression("'64 KiB'").value({}) == "64 KiB"


@pytest.mark.parametrize("written", [3, 0.25, True])
def test_a_number_is_an_expression(written: float) -> None:
    """A number is an expression, because YAML has numbers."""
    found = read_expression(written).value({})
    assert (found, type(found)) == (written, type(written))


@pytest.mark.parametrize(
    ("text", "is_condition"),
    [
        ("a < b", True),
        ("a < b < 3 and not b == 2", True),
        ("is_small", True),
        ("a + b", False),
        ("a < b or b + 1", False),
        ("min(a, b)", False),
        ("not (a + b)", False),
    ],
)
def test_conditions(text: str, is_condition: bool) -> None:
    """A constraint consists of comparisons and their combinations."""
    assert read_expression(text).is_condition == is_condition


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("rows_2", ""),
        ("min", "is a function"),
        ("if", "is a reserved word"),
        ("_x", "is not a name"),
        ("a-b", "is not a name"),
    ],
)
def test_names(name: str, said: str) -> None:
    """Names of axes and laws must be names in expressions."""
    assert name_problem(name).startswith(said)
    assert bool(name_problem(name)) == bool(said)


def test_a_function_is_no_name() -> None:
    """The name of a function, here `min`, may also be the name of an axis or a law; a call is still the function."""
    assert read_expression("min + min(a, 3)").names == ("min", "a")


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("x <= 4", Limit("x", 4, is_upper=True)),
        ("x<4_000.5", Limit("x", 4000.5, is_upper=True)),
        ("x > 2e-3", Limit("x", 0.002, is_upper=False)),
        ("(x >= -1)", Limit("x", -1, is_upper=False)),
        (" 4 >= x", Limit("x", 4, is_upper=True)),
        ("x <= 2 * sqrt(16)", Limit("x", 8, is_upper=True)),
        *((other, None) for other in ("x == 4", "x * rows <= 4", "x <= rows", "1 < x < 3", "x <= 4 and x > 2", "x")),
        *((other, None) for other in ("x <= 'a'", "x <= 1 / 0", "3 <= 4", "not x <= 4")),
    ],
)
def test_limits(text: str, limit: Limit | None) -> None:
    """A comparison of one name with a number is a limit, on either side of the name; no other expression is one."""
    assert read_expression(text).limit == limit
