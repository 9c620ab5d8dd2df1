"""Files of `config/` by name, in any of its subfolders."""

from pathlib import Path

CONFIG = Path(__file__).resolve().parents[1] / "config"


def shipped(kind: str, name: str) -> Path:
    """Path of the hardware or mapping file of a shipped core. A name can begin with its subfolder, such as
    `systolic/systolic`.
    """
    own = CONFIG / kind / f"{name}.yaml"
    if own.is_file() or "/" in name:
        return own
    (found,) = (CONFIG / kind).rglob(f"{name}.yaml")
    return found
