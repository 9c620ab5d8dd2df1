"""The cost of steps of a language model over contexts and batches: sums of layers that are searched once.

Attention takes keys in blocks, and a prompt comes in chunks. So the layers of all contexts are the same, but for how
often they repeat: the cost of one more token is linear in the blocks of its context, and the cost of a chunk is affine
in the chunks before it, from the chunk on that no window shortens any more (`affine_from`): a prompt is a polynomial of
degree two. Points that are no whole blocks or chunks have layers of their own for what is left.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from tilewright.errors import InputError, Problem, Problems
from tilewright.workload.graph import Workload
from tilewright.workload.language_models.architecture import Attention
from tilewright.workload.language_models.model import language_model_workload
from tilewright.workload.language_models.reader import DescribedModel, beyond_positions
from tilewright.workload.language_models.request import ABSORBED, DEFAULT_BLOCK, EXPANDED, Requests, Step

Sums = npt.NDArray[np.float64]
"""Figures of layers, added up; what they are says who makes them."""


class StepFigures(Protocol):
    """What makes the figures of steps: on one core, or on several."""

    @property
    def zero(self) -> Sums:
        """Figures of nothing."""
        ...

    def search(self, workloads: Iterable[Workload]) -> None:
        """Search what is not known yet of all layers of these."""
        ...

    def of(self, workload: Workload) -> Sums:
        """The figures of all layers of a workload, which run one after another."""
        ...


Made = TypeVar("Made", bound=StepFigures)


@dataclass
class TokenCurves(Generic[Made]):
    """Costs of a model on a core or several, for any context and batch."""

    described: DescribedModel
    figures: Made
    key_block: int = DEFAULT_BLOCK
    """Keys that attention takes at a time."""
    chunk: int = DEFAULT_BLOCK
    """Tokens of a prompt in one step."""
    _chunks: dict[int, Sums] = field(default_factory=dict)
    _steps: dict[tuple[int, int], Workload] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raises InputError for a step that gives the load of experts: it holds for one number of tokens alone."""
        problems = Problems()
        if not isinstance(self.described.step.experts, str):
            problems.at(("experts",), "the tokens of each expert hold for one step, not for a curve")
        if self.chunk % self.key_block:
            problems.at(
                ("chunk",), "must be a whole number of key blocks", self.chunk, f"a multiple of {self.key_block}"
            )
        problems.finish()

    def search(self, contexts: Sequence[int], batches: Sequence[int], prompts: Sequence[int]) -> None:
        """Search all layers of these points at once. Raises MappingError naming each that nothing fits.

        Raises InputError for contexts beyond the positions that a model learned.
        """
        self._check_positions(max((*contexts, *prompts), default=0))
        steps = [self.decode_step(batch, context) for batch in batches for context in contexts]
        chunks = {place for prompt in prompts for place in self._chunks_built(prompt)}
        steps += [self._prompt_step(self.chunk, place * self.chunk) for place in sorted(chunks)]
        steps += [self._prompt_step(rest, prompt - rest) for prompt in prompts if (rest := prompt % self.chunk)]
        self.figures.search(steps)

    def _check_positions(self, last: int) -> None:
        model = self.described.model
        beyond = beyond_positions(model, last)
        if beyond and model.positions:
            raise InputError(
                [Problem(beyond, path="contexts", value=str(last), allowed=f"at most {model.most_tokens}")]
            )

    def next_token(self, batch: int, context: int) -> Sums:
        """One more token for each request of a batch; it is the last of the `context` tokens that it sees."""
        return self.figures.of(self.decode_step(batch, context))

    def prompt(self, tokens: int) -> Sums:
        """All tokens of one request's prompt, in chunks, up to the first token of the answer."""
        whole, rest = divmod(tokens, self.chunk)
        start = self.affine_from
        total = sum((self._chunk(place) for place in range(min(whole, start))), self.figures.zero)
        if (more := whole - start) > 0:
            first, step = self._chunk(start), self._chunk(start + 1) - self._chunk(start)
            total = total + more * first + (more * (more - 1) // 2) * step
        return total + self.figures.of(self._prompt_step(rest, whole * self.chunk)) if rest else total

    @property
    def affine_from(self) -> int:
        """The number of the chunk from which on each further chunk costs as much more as the one before."""
        windows = [
            block.mixer.window
            for block in self.described.model.blocks
            if isinstance(block.mixer, Attention) and block.mixer.window is not None
        ]
        return math.ceil(max(windows) / self.chunk) + 1 if windows else 1

    def decode_step(self, batch: int, context: int) -> Workload:
        """The layers of one more token for each request of a batch."""
        key = (batch, context)
        if key not in self._steps:
            self._steps[key] = self._workload(Requests(batch, 1, context - 1), ABSORBED)
        return self._steps[key]

    def _chunks_built(self, tokens: int) -> list[int]:
        """The chunks of a prompt whose layers are looked at; the others follow from them."""
        whole = tokens // self.chunk
        return list(range(min(whole, self.affine_from + 2)))

    def _chunk(self, place: int) -> Sums:
        if place not in self._chunks:
            self._chunks[place] = self.figures.of(self._prompt_step(self.chunk, place * self.chunk))
        return self._chunks[place]

    def _prompt_step(self, tokens: int, context: int) -> Workload:
        return self._workload(Requests(1, tokens, context), EXPANDED if tokens > 1 else ABSORBED)

    def _workload(self, requests: Requests, latent: str) -> Workload:
        step: Step = replace(
            self.described.step, groups=(requests,), latent=latent, key_block=self.key_block, is_written_out=False
        )
        return language_model_workload(self.described.model, step, self.described.name)


def spread(first: int, last: int, count: int, block: int) -> list[int]:
    """So many contexts from `first` to `last`, evenly on a logarithmic scale, rounded to whole blocks, each once.

    Raises InputError for ends that are no range.
    """
    if not 1 <= first <= last or count < 1:
        raise InputError(f"no range of contexts: {first} to {last} in {count}")
    if count == 1:
        return [last]
    ratio = math.log(last / first) / (count - 1)
    points = (first * math.exp(place * ratio) for place in range(count))
    return sorted(
        {max(1, round(point / block)) * block if point >= block else max(1, round(point)) for point in points}
    )
