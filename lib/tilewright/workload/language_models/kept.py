"""What a model keeps of the tokens of a request from one step to the next."""

from tilewright.workload.language_models.architecture import Architecture, Attention, LatentAttention


def kept_numbers(model: Architecture, tokens: int) -> int:
    """Numbers that are kept of a request with so many tokens: keys and values, latent vectors, or states.

    Behind a window those of the tokens that the next one will see besides itself.
    """
    total = 0
    for block, count in model.kinds.items():
        mixer = block.mixer
        if isinstance(mixer, Attention):
            seen = tokens if mixer.window is None else min(tokens, max(1, mixer.window - 1))
            total += count * seen * 2 * mixer.key_heads * mixer.width
        elif isinstance(mixer, LatentAttention):
            total += count * tokens * (mixer.rank + mixer.rotary_width)
        else:
            total += count * mixer.width * (mixer.state + mixer.kernel - 1)
    return total
