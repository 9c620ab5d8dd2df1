"""Expressions: Python's arithmetic on allowed names and functions, and nothing else."""

import contextlib
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilewright.designs.laws import FUNCTIONS, ExpressionError, name_problem, read_expression

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
        ("[x for x in a]", "ListComp"),
        ("lambda: 3", "lambda"),
        ("f'{a}'", "JoinedStr"),
        ("(b := 3)", "NamedExpr"),
        ("2 ^ 3", "a power is **"),
        ("a & b", "write `and`"),
        ("a << 3", "LShift"),
        ("a is b", "Is is not possible"),
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
        ("max(*a, 3)", "Starred"),
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
