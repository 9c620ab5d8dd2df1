"""Make the environment of the pinned peer in `.cache/reference-venv`, once.

Run with any Python 3.11 or newer: `python benchmarks/reference/setup_environment.py`. A second run does nothing unless
`requirements.txt` has changed. The environments of the peer and of tilewright (`.venv`) share no packages.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from pinned_environment import PinnedEnvironment  # noqa: E402

ENVIRONMENT = PinnedEnvironment("reference-venv", HERE / "requirements.txt")


def ensure_reference() -> Path:
    """Create or refresh the environment if needed. Returns the path of its interpreter.

    Raises `subprocess.CalledProcessError` if pip fails. The message of pip is then on standard error.
    """
    return ENVIRONMENT.ensure(sys.executable, ("-c", "import zigzag.api"))


if __name__ == "__main__":
    print(ensure_reference())
    sys.exit(0)
