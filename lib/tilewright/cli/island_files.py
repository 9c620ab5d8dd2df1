"""Parts of a search of `tilewright fuse` with islands (option `--part`), and the files of these parts.

The parts are the opening, each round of each island, and the answer. All parts except the answer write a state to a
file. Later parts read the states of earlier parts.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tilewright.base.artifacts.codec import encode
from tilewright.base.artifacts.envelope import provenance, read_artifact, read_object, write_document
from tilewright.base.artifacts.files import make_folder
from tilewright.base.errors import InputError, Problem, Problems, nearest_name
from tilewright.base.json_values import JsonObject
from tilewright.base.steps import ISLANDS
from tilewright.pipeline.configuration.fusion_options import FusionOptions
from tilewright.pipeline.configuration.island_parts import ANSWER, OPENING, parts_before, state_parts
from tilewright.pipeline.stages.multi.items import input_digests
from tilewright.plans.answer import Fusion
from tilewright.plans.call import FusionCall
from tilewright.plans.islands import IslandRound, IslandState

SCHEMA = "tilewright/fusion-island"
_STATE = rf"{OPENING}|\d+\.\d+"
"""Regular expression for the names of the search parts that write a state: the opening, and each round of each island.
A state is a file that later search parts read.
"""


def part_problems(part: str | None, options: FusionOptions, has_output: bool) -> list[Problem]:
    """Problems of the option --part: an unknown part, or options that cannot be combined with --part."""
    if part is None:
        return []
    if options.islands == 1:
        return [
            Problem(
                "a search with one island cannot be made in parts", path="part", value=part, allowed="`islands` above 1"
            )
        ]
    problems = []
    names = [*state_parts(options.islands, options.island_rounds), ANSWER]
    if part not in names:
        allowed = f"{OPENING}, {ANSWER}, or ROUND.ISLAND from 1.1 to {options.island_rounds}.{options.islands}"
        problems.append(
            Problem("no such part", path="part", value=part, allowed=allowed, nearest=nearest_name(part, names))
        )
    if not has_output:
        problems.append(
            Problem("is needed with `part`, because its folder keeps the states of the parts", path="output")
        )
    for name in ("fusion_time_budget_s", "fusion_cpu_budget_s"):
        if getattr(options, name) is not None:
            message = (
                "cannot limit a search with `part`, because such a search takes several calls; use nb_plans or"
                " nb_schedules"
            )
            problems.append(Problem(message, path=name, value=f"{getattr(options, name):g}", allowed="none"))
    return problems


def search_provenance(step: str, made: Fusion | FusionCall) -> JsonObject:
    """Provenance of a file that a step of a search writes: the digests of the inputs, and the options."""
    digests = input_digests(made.problem) | ({"start": made.start_digest} if made.start_digest else {})
    return provenance(step, digests, {n: encode(value) for n, value in made.options.as_dict().items() if n != "jobs"})


@dataclass(frozen=True)
class IslandFiles:
    """Files of one search with islands. Each part of the search except the answer writes its state into one file. Later
    parts read these states.
    """

    folder: Path
    """Folder of the plan."""
    call: FusionCall

    def path(self, part: str) -> Path:
        """Path of the file into which the part `part` writes its state."""
        return self.folder / ISLANDS / f"{part}.json"

    @cached_property
    def _provenance(self) -> JsonObject:
        return search_provenance("fuse_island", self.call)

    def make(self, part: str) -> Fusion:
        """Make one part of the search. For the part ANSWER, the best plan of the whole search is returned; for other
        parts, the best plan in the state that the part writes. Raises ArtifactError if a state is missing or damaged,
        and InputError if a state is of another search.
        """
        islands, rounds = self.call.options.islands, self.call.options.island_rounds
        told = Problems()
        read = [told.attempt(self._read, before) for before in parts_before(part, islands, rounds)]
        told.finish()
        states = [state for state in read if state is not None]
        if part == ANSWER:
            return self.call.from_islands(states[0], states[1:])
        made = state_parts(islands, rounds)[part]
        if made is None:
            state = self.call.opening()
        else:
            number, island = made
            own, sender = (states[1], states[2]) if number else (None, None)
            state = self.call.island_round(IslandRound(states[0], own, sender, island, number))
        make_folder(self.folder / ISLANDS)
        write_document(self.path(part), SCHEMA, encode(state), self._provenance)
        return self.call.so_far(state)

    def remove_others(self, part: str | None) -> None:
        """Delete the state files that do not belong to this search, such as those of an earlier search with more
        islands or rounds. If one process made the whole search (`part` is None), all state files are deleted.
        """
        options = self.call.options
        kept = state_parts(options.islands, options.island_rounds) if part == ANSWER else {}
        for path in sorted((self.folder / ISLANDS).glob("*.json")):
            if path.stem not in kept and re.fullmatch(_STATE, path.stem):
                path.unlink()

    def _read(self, part: str) -> IslandState:
        path, mine = self.path(part), self._provenance
        its = read_artifact(path, SCHEMA).provenance
        others = [name for name in ("tilewright", "code", "inputs", "options") if its.get(name) != mine[name]]
        if others:
            message = f"is the state of another search, with different {' and '.join(others)}"
            raise InputError([Problem(message, str(path), allowed=f"make all parts again, beginning with {OPENING}")])
        return read_object(IslandState, path, SCHEMA)
