"""Where an artifact comes from: the version and the code of tilewright, and digests of what went in."""

from typing import Any

from tilewright import __version__


def provenance(step: str, inputs: dict[str, str], options: dict[str, Any] | None = None) -> dict[str, Any]:
    """Provenance of an artifact that a step of the pipeline made; never times, paths or names of machines."""
    from tilewright.artifacts.step_code import code_digest  # here, because commands that make nothing start without

    return {"tilewright": __version__, "code": code_digest(step), "inputs": inputs, "options": options or {}}
