"""Points at which an attention is studied: numbers of tokens in the context, and sizes of one memory."""

from dataclasses import dataclass, replace

from tilewright.base.errors import InputError, Problem, nearest_name
from tilewright.base.units import FieldError, parse_size_bits
from tilewright.hardware.core import Core
from tilewright.workload.language_models.request import ModelStep, Requests


@dataclass(frozen=True)
class AttentionPoints:
    """Points at which an attention is studied: all combinations of a context length and a size of one memory. If the
    contexts or the sizes are (), the value in the input files is used.
    """

    contexts: tuple[int, ...] = ()
    """Context lengths: numbers of tokens that the last query sees."""
    memory: str = ""
    """Name of the memory with varied size."""
    sizes_bits: tuple[int, ...] = ()

    def steps(self, step: ModelStep) -> list[ModelStep]:
        """Steps of the language model, one for each context length. In a decode step, all tokens of the context except
        the new token are in the cache. In a prompt, all tokens of the context are new.
        """

        def moved(group: Requests, context: int) -> Requests:
            one = group.tokens == 1
            return replace(group, context=context - 1) if one else Requests(group.count, context, 0)

        return [replace(step, groups=tuple([moved(group, one) for group in step.groups])) for one in self.contexts] or [
            step
        ]

    def cores(self, core: Core) -> list[Core]:
        """Copies of the core, one for each size of the memory. Energies and areas stay the same. Raises InputError if
        the core has no such memory.
        """
        names = [memory.name for memory in core.memories]
        if self.memory and self.memory not in names:
            text = "the core has no such memory"
            problem = Problem(text, path="memory_sizes", value=self.memory, nearest=nearest_name(self.memory, names))
            raise InputError([problem])
        return [_resized(core, self.memory, bits) for bits in self.sizes_bits] or [core]

    def size_of(self, core: Core) -> int | None:
        """Size in bits of the varied memory in a core; None if no size is varied."""
        return next((memory.size_bits for memory in core.memories if memory.name == self.memory), None)


def _resized(core: Core, name: str, bits: int) -> Core:
    memories = [replace(one, size_bits=bits) if one.name == name else one for one in core.memories]
    return replace(core, memories=tuple(memories))


def read_sizes(text: str) -> tuple[str, tuple[int, ...]]:
    """Pair (name of a memory, ascending sizes in bits) from a text such as `sram=64 KiB,1 MiB`.

    An empty text gives ("", ()). Raises InputError if the text has another form.
    """
    if not text:
        return "", ()
    name, equals, sizes = text.partition("=")
    allowed = "a memory and sizes, such as sram=64 KiB,1 MiB"
    if not equals or not name.strip():
        raise InputError([Problem("does not name a memory", path="memory_sizes", value=text, allowed=allowed)])
    try:
        found = {parse_size_bits(int(size) if size.strip().isdigit() else size) for size in sizes.split(",")}
    except FieldError as error:
        raise InputError([Problem(str(error), path="memory_sizes", value=sizes, allowed=allowed)]) from error
    return name.strip(), tuple(sorted(found))
