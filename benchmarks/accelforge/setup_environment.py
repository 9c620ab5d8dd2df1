"""Make the environment of the peer accelforge in `.cache/accelforge-venv`, once.

    python benchmarks/accelforge/setup_environment.py

The peer needs Python 3.12 or 3.13. The script tries these interpreters in turn: the path in ACCELFORGE_PYTHON, the
Python that runs the script, `python3.12` and `python3.13` on PATH, and the versions of pyenv. A second run does nothing
unless `requirements.txt` has changed. The environments of the peer and of tilewright (`.venv`) share no packages.
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
    """Error: this machine has no Python version that the peer supports."""


def candidates() -> Iterator[str]:
    """Names or paths of interpreters to try, best first. Some of them may not exist."""
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
    """First candidate that runs and has a version that the peer supports.

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
        f"accelforge needs Python {' or '.join(VERSIONS)}, which was not found; set ACCELFORGE_PYTHON to its path"
    )


def ensure_accelforge() -> Path:
    """Create or refresh the environment if needed. Returns the path of its interpreter.

    Raises NoSuitablePythonError without a suitable Python, and `subprocess.CalledProcessError` if pip fails. The
    message of pip is then on standard error.
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
