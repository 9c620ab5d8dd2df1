"""Make the environment of the peer accelforge in `.cache/accelforge-venv`, once.

    python benchmarks/accelforge/setup_environment.py

The peer needs Python 3.12 or 3.13. One is looked for in this order: the path in ACCELFORGE_PYTHON, the Python that runs
this script, `python3.12` and `python3.13` on PATH, the versions that pyenv has. A second run does nothing unless
`requirements.txt` changed. Nothing of tilewright is installed there and nothing of the peer reaches `.venv`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from pinned_environment import PinnedEnvironment  # noqa: E402

RUNNER = HERE / "runner.py"
ARCHITECTURE = HERE / "tpu_like.yaml"
ENVIRONMENT = PinnedEnvironment("accelforge-venv", HERE / "requirements.txt")
VERSIONS = ("3.12", "3.13")


class NoSuitablePythonError(Exception):
    """There is no Python here that the peer runs on."""


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
    if ENVIRONMENT.is_ready:
        return ENVIRONMENT.python
    # A first search compiles the peer's own compiled code, which it keeps beside its sources.
    return ENVIRONMENT.ensure(suitable_python(), (str(RUNNER), str(ARCHITECTURE)))


if __name__ == "__main__":
    try:
        print(ensure_accelforge())
    except NoSuitablePythonError as missing:
        sys.exit(str(missing))
