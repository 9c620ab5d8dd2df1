"""Certificates of fronts: damaged or false ones are rejected."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from tilewright.base.errors import InputError
from tilewright.designs.certificate import SCHEMA, read_certificate, write_certificate
from tilewright.designs.certify import CertificateVerdict, certify
from tilewright.designs.space_reader import read_space
from tilewright.designs.stamped_tables import read_stamped, write_stamped

from tests.unit.designs.front_cases import NETWORKS, write_space
from tests.unit.designs.test_front_search import found, nothing

Change = Callable[[pandas.DataFrame], pandas.DataFrame]
CONSTRAINTS = ["latency_cycles <= 980000", "rows * word_bits <= 2048"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a space and the certificate of its front."""
    folder = tmp_path_factory.mktemp("front")
    path = write_space(folder, networks={"two": NETWORKS["bert"]}, constraints=CONSTRAINTS)
    complete = found(path, folder)
    table = complete.certificate.table
    assert (table["dominated_by_0"] == -1).sum() > 2
    assert (table["dominated_by_0"] == -2).any()
    return folder


def verdict(made: Path, path: Path, everything: bool = False, sample: int = 5) -> CertificateVerdict:
    """Return the result of a check."""
    source = made / "words.yaml"
    return certify(source, read_space(source), path, sample, 0, everything, 1, nothing)


def changed(made: Path, folder: Path, change: Change, **others: Any) -> Path:
    """Write a certificate with a changed table and a digest of its own."""
    certificate, _ = read_certificate(made / "certificate.parquet")
    table = change(certificate.table.copy()).reset_index(drop=True)
    path = folder / "certificate.parquet"
    write_certificate(path, replace(certificate, table=table, **others))
    return path


def put(column: str, row: int, value: Any) -> Change:
    """Return a change that writes a value into a row."""

    def change(table: pandas.DataFrame) -> pandas.DataFrame:
        table.loc[table.index[row], column] = value
        return table

    return change


def first(table: pandas.DataFrame, where: np.ndarray | pandas.Series) -> int:
    """Return the first row that meets a condition."""
    return int(np.flatnonzero(np.asarray(where))[0])


def on_member(column: str, value: Any) -> Change:
    """Return a change that writes a value into the first row of the front."""
    return lambda table: put(column, first(table, table["dominated_by_0"] == -1), value)(table)


def times(column: str, factor: float) -> Change:
    """Return a change that multiplies a number of a design on no front."""

    def change(table: pandas.DataFrame) -> pandas.DataFrame:
        row = first(table, table["dominated_by_0"] >= 0)
        return put(column, row, table[column].iloc[row] * factor)(table)

    return change


def on_dominated(column: str, value: Any) -> Change:
    """Return a change that writes a value into the first dominated row."""
    return lambda table: put(column, first(table, table["dominated_by_0"] >= 0), value)(table)


def names_itself(table: pandas.DataFrame) -> pandas.DataFrame:
    """Let a design name itself as its dominator."""
    row = first(table, table["dominated_by_0"] >= 0)
    return put("dominated_by_0", row, table["index"].iloc[row])(table)


def names_another(table: pandas.DataFrame) -> pandas.DataFrame:
    """Let a design name a member of the front that does not dominate it."""
    members = table[table["dominated_by_0"] == -1]
    for row in np.flatnonzero(table["dominated_by_0"] >= 0):
        own = table.iloc[row]
        worse = members[(members["energy_0_pj"] > own["energy_0_pj"])]
        if len(worse):
            return put("dominated_by_0", int(row), worse["index"].iloc[0])(table)
    raise AssertionError("a member with more energy than a design that is dominated")


DAMAGES: dict[str, Change] = {
    "a row is missing": lambda table: table.drop(table.index[3]),
    "a row is there twice": lambda table: pandas.concat([table, table.tail(1)]),
    "rows in another order": lambda table: table.iloc[::-1],
    "a column is missing": lambda table: table.drop(columns=["area_mm2"]),
    "a column more": lambda table: table.assign(more=1),
    "no row at all": lambda table: table.iloc[:0],
    "the index of another space": put("index", -1, 10**6),
    "a smaller area": put("area_mm2", 2, 1e-3),
    "no area": put("area_mm2", 2, np.nan),
    "a clock that the design does not have": put("clock_period_ns", 2, 1.0),
    "energy of a member is less": on_member("energy_0_pj", 1.0),
    "latency of a member is less": on_member("latency_0_cycles", 1.0),
    "energy is negative": on_dominated("energy_0_pj", -1.0),
    "energy is no number": on_dominated("energy_0_pj", np.nan),
    "latency is infinite": on_dominated("latency_0_cycles", np.inf),
    "a member is said to be dominated by nobody that there is": on_member("dominated_by_0", 10**7),
    "a member is not compared": on_member("dominated_by_0", -2),
    "a dominated design is on the front": on_dominated("dominated_by_0", -1),
    "a dominated design is not compared": on_dominated("dominated_by_0", -2),
    "a design dominates itself": names_itself,
    "the design that is named as dominator is not better than these designs": names_another,
    "another kind of dominator": on_dominated("dominated_by_0", -3),
    "a status that there is not": on_dominated("status_0", "fine"),
    "a design is said to be infeasible": on_dominated("status_0", "infeasible"),
    "what meets no constraint is on the front": lambda table: put(
        "dominated_by_0", first(table, table["dominated_by_0"] == -2), -1
    )(table),
}
NUMBERS: dict[str, Change] = {
    "more energy than there is": times("energy_0_pj", 1.0 + 1e-15),
    "more latency than there is": times("latency_0_cycles", 3.0),
    "less energy than there is, dominated all the same": times("energy_0_pj", 1.0 - 1e-9),
}
"""Changes that only a check of every number finds for certain."""


def test_a_true_certificate_is_accepted(made: Path) -> None:
    """A true certificate is accepted, with a sample and with all numbers computed again."""
    path = made / "certificate.parquet"
    for everything in (False, True):
        result = verdict(made, path, everything)
        assert not result.problems
        assert result.designs == 48
        assert result.members > 2
        assert (result.families > 0) == everything
    assert verdict(made, path, sample=0).costed == 0


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_certificates_are_rejected(made: Path, tmp_path: Path, damage: str) -> None:
    """A damaged certificate is rejected although its digest is correct."""
    assert verdict(made, changed(made, tmp_path, DAMAGES[damage]), sample=0).problems


@pytest.mark.parametrize("damage", NUMBERS)
def test_every_number_is_made_again(made: Path, tmp_path: Path, damage: str) -> None:
    """A check that computes all numbers again finds every wrong one."""
    assert verdict(made, changed(made, tmp_path, NUMBERS[damage]), everything=True, sample=0).problems


def test_what_is_said_of_the_whole_is_checked(made: Path, tmp_path: Path) -> None:
    """Wrong statements of a certificate are rejected: space, objectives, excluded designs, format and digest."""
    certificate, _ = read_certificate(made / "certificate.parquet")
    said = dict(certificate.said)
    for others in (
        {"said": said | {"space": "0" * 32}},
        {"said": said | {"objectives": ["energy_pj"]}},
        {"said": said | {"designs": 7}},
        {"said": said | {"networks": ["other"]}},
        {"excluded": {}},
        {"excluded": {"rows * word_bits <= 2048": 1}},
    ):
        assert verdict(made, changed(made, tmp_path, lambda table: table, **others), sample=0).problems
    path = tmp_path / "other.parquet"
    path.write_bytes((made / "certificate.parquet").read_bytes()[:-9])
    with pytest.raises(InputError, match="damaged"):
        verdict(made, path)
    table, written = read_stamped(made / "certificate.parquet", SCHEMA)
    write_stamped(path, table, written | {"digest": "0" * 32})
    assert any("digest" in problem.message for problem in verdict(made, path).problems)
