"""Hashes that objects compute once: equal to the hash of the fields, and never kept in another process."""

import copy
import os
import pickle
import subprocess
import sys
from dataclasses import dataclass, replace

import pytest
from tilewright.base.hashes import hash_once
from tilewright.hardware.core import Core
from tilewright.workload.layer import Layer

from tests.unit.cost.engine_cases import gemm, small_core

COUNTED: list[str] = []


class Counted(str):
    """A text that records when its hash is computed."""

    __slots__ = ()

    def __hash__(self) -> int:
        COUNTED.append(str(self))
        return super().__hash__()


@hash_once
@dataclass(frozen=True)
class Named:
    """A frozen object with a stored hash."""

    name: str
    size: int = 0


def test_the_hash_is_computed_once_and_is_that_of_the_fields() -> None:
    """The hash is computed once from the fields, and an object with another field has its own hash."""
    COUNTED.clear()
    named = Named(Counted("a"))
    assert hash(named) == hash(named) == hash(Named("a")) == hash(("a", 0))
    assert COUNTED == ["a"]
    assert hash(replace(named, size=1)) == hash(("a", 1))
    assert named == Named("a")
    assert repr(named) == "Named(name='a', size=0)"


@pytest.mark.parametrize("value", [gemm("a", C=4, D=2, K=3), small_core()], ids=["layer", "core"])
def test_copies_do_not_take_the_hash_with_them(value: Layer | Core) -> None:
    """Copies and pickled objects do not keep the stored hash, so another process finds them as keys."""
    hash(value)
    for again in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert again == value
        assert "_hash" not in vars(again)
    program = (
        "import pickle, sys\n"
        "value = pickle.load(sys.stdin.buffer)\n"
        "other = type(value)(**{name: getattr(value, name) for name in value.__dataclass_fields__})\n"
        "assert {other: 1}[value] == 1 and hash(value) == hash(other)\n"
        "print(hash('a text'))\n"
    )
    seeds = ("1", "2")
    said = [
        subprocess.run(
            [sys.executable, "-c", program],
            input=pickle.dumps(value),
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in seeds
    ]
    assert said[0] != said[1]
