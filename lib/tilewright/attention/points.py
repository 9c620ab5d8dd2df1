"""Where attention is looked at: contexts of its queries, and sizes of a memory, in place of those of the files."""

from dataclasses import dataclass, replace

from tilewright.errors import InputError, Problem, nearest_name
from tilewright.hardware.core import Core
from tilewright.units import FieldError, parse_size_bits
from tilewright.workload.language_models.request import Requests, Step


@dataclass(frozen=True)
class Points:
    """Every context with every size; () for what the files say."""

    contexts: tuple[int, ...] = ()
    """Tokens that the last query sees."""
    memory: str = ""
    """The memory of other sizes."""
    sizes_bits: tuple[int, ...] = ()

    def steps(self, step: Step) -> list[Step]:
        """The step at each context: a request of one new token has the others in its cache, of a prompt all are new."""

        def moved(group: Requests, context: int) -> Requests:
            one = group.tokens == 1
            return replace(group, context=context - 1) if one else Requests(group.count, context, 0)

        return [replace(step, groups=tuple([moved(group, one) for group in step.groups])) for one in self.contexts] or [
            step
        ]

    def cores(self, core: Core) -> list[Core]:
        """The core with each size of the memory; its costs stay. Raises InputError where it has no such memory."""
        names = [memory.name for memory in core.memories]
        if self.memory and self.memory not in names:
            text = "the core has no such memory"
            problem = Problem(text, path="--memory-sizes", value=self.memory, nearest=nearest_name(self.memory, names))
            raise InputError([problem])
        return [_resized(core, self.memory, bits) for bits in self.sizes_bits] or [core]

    def size_of(self, core: Core) -> int | None:
        """The size in bits that a core has at its point; None where sizes are those of the file."""
        return next((memory.size_bits for memory in core.memories if memory.name == self.memory), None)


def _resized(core: Core, name: str, bits: int) -> Core:
    memories = [replace(one, size_bits=bits) if one.name == name else one for one in core.memories]
    return replace(core, memories=tuple(memories))


def read_sizes(text: str) -> tuple[str, tuple[int, ...]]:
    """The memory and the sizes of `sram=64 KiB,1 MiB`, ascending; ("", ()) for ''. Raises InputError."""
    if not text:
        return "", ()
    name, equals, sizes = text.partition("=")
    allowed = "a memory and sizes, such as sram=64 KiB,1 MiB"
    if not equals or not name.strip():
        raise InputError([Problem("names no memory", path="--memory-sizes", value=text, allowed=allowed)])
    try:
        found = {parse_size_bits(int(size) if size.strip().isdigit() else size) for size in sizes.split(",")}
    except FieldError as error:
        raise InputError([Problem(str(error), path="--memory-sizes", value=sizes, allowed=allowed)]) from error
    return name.strip(), tuple(sorted(found))
