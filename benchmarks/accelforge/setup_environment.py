"""Make the environment of the peer accelforge in `.cache/accelforge-venv`, once.

    python benchmarks/accelforge/setup_environment.py

The peer needs Python 3.12 or 3.13. One is looked for in this order: the path in ACCELFORGE_PYTHON, the Python that runs
this script, `python3.12` and `python3.13` on PATH, the versions that pyenv has. A second run does nothing unless
`requirements.txt` changed. Nothing of tilewright is installed there and nothing of the peer reaches `.venv`.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
RUNNER = Path(__file__).with_name("runner.py")
ARCHITECTURE = Path(__file__).with_name("tpu_like.yaml")
ENVIRONMENT = PROJECT / ".cache" / "accelforge-venv"
MARK = ENVIRONMENT / "requirements.sha256"
VERSIONS = ("3.12", "3.13")


class NoSuitablePythonError(Exception):
    """There is no Python here that the peer runs on."""


def accelforge_python() -> Path:
    """Path of the interpreter of the environment, whether or not it exists yet."""
    return ENVIRONMENT / "bin" / "python"


def requirements_digest() -> str:
    """SHA-256 of the pinned requirements; the mark of a finished installation."""
    return hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()


def is_ready() -> bool:
    """True when the environment exists and was installed from the present requirements."""
    return accelforge_python().exists() and MARK.exists() and MARK.read_text().strip() == requirements_digest()


def candidates() -> Iterator[str]:
    """Interpreters to try, best first; not all of them need exist."""
    if given := os.environ.get("ACCELFORGE_PYTHON"):
        yield given
    yield sys.executable
    for version in VERSIONS:
        if found := shutil.which(f"python{version}"):
            yield found
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for version in VERSIONS:
        yield from (str(path) for path in sorted(pyenv.glob(f"versions/{version}.*/bin/python")))


def suitable_python() -> str:
    """The first candidate that runs and has a version that the peer supports.

    Raises NoSuitablePythonError if there is none.
    """
    ask = "import sys; print('%d.%d' % sys.version_info[:2])"
    for python in candidates():
        try:
            answer = subprocess.run([python, "-c", ask], capture_output=True, text=True, timeout=60)
        except OSError:
            continue
        if answer.returncode == 0 and answer.stdout.strip() in VERSIONS:
            return python
    raise NoSuitablePythonError(
        f"accelforge needs Python {' or '.join(VERSIONS)}, and none is here; set ACCELFORGE_PYTHON to the path of one"
    )


def ensure_accelforge() -> Path:
    """Create or refresh the environment when needed and return its interpreter.

    Raises NoSuitablePythonError, or `subprocess.CalledProcessError` when pip fails, with pip's own message on standard
    error.
    """
    if is_ready():
        return accelforge_python()
    subprocess.run([suitable_python(), "-m", "venv", "--clear", str(ENVIRONMENT)], check=True)
    python = str(accelforge_python())
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(REQUIREMENTS)], check=True
    )
    # A first search compiles the peer's own compiled code, which it keeps beside its sources.
    subprocess.run([python, str(RUNNER), str(ARCHITECTURE)], check=True, stdout=subprocess.DEVNULL)
    MARK.write_text(requirements_digest() + "\n")
    return accelforge_python()


if __name__ == "__main__":
    try:
        print(ensure_accelforge())
    except NoSuitablePythonError as missing:
        sys.exit(str(missing))
