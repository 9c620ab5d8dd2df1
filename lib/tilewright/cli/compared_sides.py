"""Sides of a comparison: two runs, or designs of a space with their full runs.

The tables of a space have no layers and no hardware. A design is therefore compared as its full run, which has both.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.base.artifacts.envelope import read_artifact
from tilewright.base.errors import InputError, Problem, TilewrightError
from tilewright.base.steps import SHOWN_DESIGNS, SUMMARY
from tilewright.cli.run_ledgers import design_at, ledger_at, ledgers_at
from tilewright.cli.space_path import missing_space_text, space_path_in
from tilewright.cli.verb import Tell

if TYPE_CHECKING:
    from tilewright.designs.core_trials import ExplainedRun
    from tilewright.designs.space import Space
    from tilewright.results.run_ledger import RunLedger
    from tilewright.results.run_point import RunPoint


@dataclass(frozen=True, eq=False)
class Side:
    """Side of a comparison: a run, or a design of a space."""

    given: str
    """Text that the user gave: the path of a run, or `FOLDER:DESIGN`."""
    ledger: "RunLedger"
    place: str
    """Path of the run. For a design, it is the folder of its full run, or `given` if there is no full run."""
    network: Path | None = None
    """Network file of a design with a full run; None for a run, whose network file is searched for."""
    lacks_run: str = ""
    """Reason why a design has no full run; '' if it has one, and for a run."""

    @property
    def notices(self) -> tuple[str, ...]:
        """Notice that only the results in the tables of the space are compared; () if the full run is compared."""
        if not self.lacks_run:
            return ()
        name = self.ledger.run.run
        return (f"{name}: only its sums in the tables of the space are compared, without layers: {self.lacks_run}",)

    def with_inputs(self, option: str) -> "ExplainedRun":
        """Run with its inputs, for new searches on one core. `option` is the command-line option that needs the
        searches. Raises InputError if the run is not a search on one core, or if its inputs are not found.
        """
        from tilewright.cli.explained_run import run_with_inputs

        if self.lacks_run:
            message = f"cannot be searched again, which the option {option} needs: {self.lacks_run}"
            raise InputError([Problem(message, self.given)])
        return run_with_inputs(self.place, self.ledger.run, option, self.given)


@contextmanager
def compared_sides(places: tuple[str, str], network: str, tell: Tell) -> Iterator[tuple[Side, Side]]:
    """Sides of a comparison. The full run of a design is the run that `explore --show` wrote, if this run has the
    results in the tables of the space. Otherwise, the full run is made in a temporary folder, which is removed at the
    end of the context. `tell` gets a notice before a run is made.

    Raises InputError or ArtifactError if there is no such run or design.
    """
    from tempfile import TemporaryDirectory  # imported here: --help starts faster

    first, second = ledgers_at(places, network)
    with TemporaryDirectory(prefix="tilewright-") as made:
        yield (
            _side(places[0], first, Path(made) / "a", tell),
            _side(places[1], second, Path(made) / "b", tell),
        )


def _side(given: str, ledger: "RunLedger", made: Path, tell: Tell) -> Side:
    """Side of a comparison. `ledger` is the ledger of a run, or the ledger of a design from the tables of its space.
    `made` is the folder in which a full run can be made.
    """
    from tilewright.results.run_ledger import renamed

    design = design_at(given)
    if design is None:
        return Side(given, ledger, given)
    try:
        run, network = _full_run(*design, ledger.run, made, tell)
        return Side(given, renamed(ledger_at(str(run)), design[1]), str(run), network)
    except TilewrightError as error:
        return Side(given, ledger, given, lacks_run="; ".join(str(error).splitlines()))


def _full_run(folder: Path, name: str, row: "RunPoint", made: Path, tell: Tell) -> tuple[Path, Path]:
    """Pair (folder of the full run of a design, file of its network). `row` has the results in the tables of the space.

    Raises InputError if the file of the space is not found, or if the full run has other results than `row`: the file
    was then changed after `explore`. Raises other errors of tilewright if the space cannot be read or run.
    """
    from tilewright.cli.shown_design import index_of_design, run_network, write_hardware
    from tilewright.designs.decision_text import command_line
    from tilewright.designs.space_reader import read_space

    path = space_path_in(folder)
    message = missing_space_text(path)
    if path is None or message:
        raise InputError(message)
    space = read_space(path, [])
    index = index_of_design(space, name)
    network = next((one for one in space.networks if one.name == row.workload), None)
    again = command_line("explore", path, "-o", folder)
    changed = InputError(f"{path} does not give the results in these tables any more: run `{again}` again")
    if index is None or network is None:
        raise changed
    shown = folder / SHOWN_DESIGNS / name / network.name
    if _has_results(space, index, shown, row):
        return shown, network.file
    kept = command_line("explore", path, "-o", folder, "--show", name)
    tell([f"{name}: {network.name} is run again, for its layers and hardware (`{kept}` keeps this run)"])
    run = made / name / network.name
    run_network(space, index, network, write_hardware(space, index, run.parent), run)
    if not _is_equal(ledger_at(str(run)).run, row):
        raise changed
    return run, network.file


def _has_results(space: "Space", index: int, shown: Path, row: "RunPoint") -> bool:
    """True if the folder `shown` has a run of the design `index` with the results of `row`, on the hardware that the
    space gives now.
    """
    from tilewright.base.artifacts.codec import encode
    from tilewright.base.artifacts.digests import content_digest
    from tilewright.hardware.source import parse_accelerator

    try:
        inputs = read_artifact(shown / SUMMARY).provenance["inputs"]
        hardware = content_digest(encode(parse_accelerator(space.named_hardware(index))))
        return bool(inputs.get("hardware") == hardware) and _is_equal(ledger_at(str(shown)).run, row)
    except (TilewrightError, KeyError):
        return False


def _is_equal(run: "RunPoint", row: "RunPoint") -> bool:
    """True if the full run of a design has the energy, the cycles and the seconds in the tables of the space."""
    from tilewright.results.certain_order import EQUAL

    pairs = (
        (run.energy_pj, row.energy_pj),
        (run.latency_cycles, row.latency_cycles),
        (run.latency_s or 0.0, row.latency_s or 0.0),
    )
    return all(abs(one - other) <= EQUAL * max(abs(one), abs(other)) for one, other in pairs)
