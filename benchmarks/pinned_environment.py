"""Environments of pinned peers: made once from `requirements.txt`, and again when that changes."""

from __future__ import annotations

import hashlib
import subprocess
from dataclasses import dataclass
from pathlib import Path

CACHE = Path(__file__).resolve().parents[1] / ".cache"


@dataclass(frozen=True)
class PinnedEnvironment:
    """A virtual environment in `.cache`, of which a mark tells the requirements that it was installed from."""

    name: str
    requirements: Path

    @property
    def folder(self) -> Path:
        """Where it is, or will be."""
        return CACHE / self.name

    @property
    def python(self) -> Path:
        """Path of its interpreter, whether or not it exists yet."""
        return self.folder / "bin" / "python"

    @property
    def is_ready(self) -> bool:
        """True when it exists and was installed from the present requirements."""
        return self.python.exists() and self._mark.exists() and self._mark.read_text().strip() == self._digest()

    def ensure(self, base: str, first_use: tuple[str, ...]) -> Path:
        """Create or refresh it with the interpreter `base` when needed and return its own interpreter.

        `first_use` are arguments of that interpreter that must work for the installation to count as finished. Raises
        `subprocess.CalledProcessError` when that or pip fails, with pip's own message on standard error.
        """
        if self.is_ready:
            return self.python
        subprocess.run([base, "-m", "venv", "--clear", str(self.folder)], check=True)
        pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(self.requirements))
        for arguments in (pip, first_use):
            subprocess.run([str(self.python), *arguments], check=True, stdout=subprocess.DEVNULL)
        self._mark.write_text(self._digest() + "\n")
        return self.python

    @property
    def _mark(self) -> Path:
        return self.folder / "requirements.sha256"

    def _digest(self) -> str:
        return hashlib.sha256(self.requirements.read_bytes()).hexdigest()
