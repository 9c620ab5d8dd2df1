"""Environments of pinned peers. An environment is made from `requirements.txt`, and made again if this file changes."""

from __future__ import annotations

import hashlib
import subprocess
from dataclasses import dataclass
from pathlib import Path

CACHE = Path(__file__).resolve().parents[1] / ".cache"


@dataclass(frozen=True)
class PinnedEnvironment:
    """Virtual environment in `.cache`. A file in it records the requirements that were installed."""

    name: str
    requirements: Path

    @property
    def folder(self) -> Path:
        """Folder of the environment, which may not exist yet."""
        return CACHE / self.name

    @property
    def python(self) -> Path:
        """Path of the environment's interpreter, which may not exist yet."""
        return self.folder / "bin" / "python"

    @property
    def is_ready(self) -> bool:
        """True if the environment exists and has the present requirements."""
        return self.python.exists() and self._mark.exists() and self._mark.read_text().strip() == self._digest()

    def ensure(self, base: str, first_use: tuple[str, ...]) -> Path:
        """Make the environment with the interpreter `base`, if needed. Returns the environment's own interpreter.

        The installation is complete only if this interpreter works with the arguments `first_use`. Raises
        `subprocess.CalledProcessError` if it does not work or if pip fails. The message of pip is then on standard
        error.
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
