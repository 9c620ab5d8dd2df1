"""Make the environment of the pinned peer stream-dse in `.cache/stream-venv`, once.

Run with any Python 3.11 or newer: `python benchmarks/stream_dse/setup_environment.py`. A second run does nothing unless
`requirements.txt` changed. Nothing of tilewright is installed there and nothing of the peer reaches `.venv`.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import venv
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
ENVIRONMENT = PROJECT / ".cache" / "stream-venv"
MARK = ENVIRONMENT / "requirements.sha256"


def stream_python() -> Path:
    """Path of the interpreter of the environment, whether or not it exists yet."""
    return ENVIRONMENT / "bin" / "python"


def requirements_digest() -> str:
    """SHA-256 of the pinned requirements; the mark of a finished installation."""
    return hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()


def is_ready() -> bool:
    """True when the environment exists and was installed from the present requirements."""
    return stream_python().exists() and MARK.exists() and MARK.read_text().strip() == requirements_digest()


def ensure_stream() -> Path:
    """Create or refresh the environment when needed and return its interpreter.

    Raises `subprocess.CalledProcessError` when pip fails, with pip's own message on standard error.
    """
    if is_ready():
        return stream_python()
    venv.create(ENVIRONMENT, with_pip=True, clear=True)
    python = str(stream_python())
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(REQUIREMENTS)], check=True
    )
    subprocess.run([python, "-c", "import stream.api"], check=True)
    MARK.write_text(requirements_digest() + "\n")
    return stream_python()


if __name__ == "__main__":
    print(ensure_stream())
    sys.exit(0)
