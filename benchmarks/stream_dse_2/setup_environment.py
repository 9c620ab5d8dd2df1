"""Make the environment of the pinned peer stream-dse 2.1.1 in `.cache/stream-2-venv`, once.

Run with any Python: `python benchmarks/stream_dse_2/setup_environment.py [--python python3.12]`. stream-dse 2.1.1 needs
Python 3.12 or newer; `--python` is the name or path of such an interpreter. A second run does nothing unless
`requirements.txt` has changed. The environments of the peer and of tilewright (`.venv`) share no packages.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from pinned_environment import PinnedEnvironment  # noqa: E402

ENVIRONMENT = PinnedEnvironment("stream-2-venv", HERE / "requirements.txt")
INTERPRETER = "python3.12"
OLDEST = (3, 12)


def interpreter(name: str) -> str:
    """Path of the interpreter with this name or path. Raises RuntimeError if it is missing, does not start or is older
    than Python 3.12.
    """
    found = shutil.which(name)
    needed = "stream-dse 2.1.1 needs Python 3.12 or newer; --python names such an interpreter"
    if found is None:
        raise RuntimeError(f"there is no program {name}: {needed}")
    asked = [found, "-c", "import sys; print(*sys.version_info[:2])"]
    answer = subprocess.run(asked, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise RuntimeError(f"{found} does not start as a Python interpreter: {needed}")
    version = tuple(int(number) for number in answer.stdout.split())
    if version < OLDEST:
        raise RuntimeError(f"{found} is Python {'.'.join(map(str, version))}: {needed}")
    return found


def ensure_stream_2(python: str = INTERPRETER) -> Path:
    """Create or refresh the environment if needed. Returns the path of its interpreter.

    Raises RuntimeError without a suitable Python, and `subprocess.CalledProcessError` if pip fails. The message of pip
    is then on standard error.
    """
    if ENVIRONMENT.is_ready:
        return ENVIRONMENT.python
    return ENVIRONMENT.ensure(interpreter(python), ("-c", "import stream.api"))


def main() -> None:
    """Make the environment and print its interpreter."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=INTERPRETER, help="name or path of Python 3.12 or newer")
    try:
        print(ensure_stream_2(parser.parse_args().python))
    except RuntimeError as missing:
        sys.exit(str(missing))


if __name__ == "__main__":
    main()
