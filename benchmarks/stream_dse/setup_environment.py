"""Make the environment of the pinned peer stream-dse in `.cache/stream-venv`, once.

Run with any Python 3.11 or newer: `python benchmarks/stream_dse/setup_environment.py`. A second run does nothing unless
`requirements.txt` has changed. The environments of the peer and of tilewright (`.venv`) share no packages.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from pinned_environment import PinnedEnvironment  # noqa: E402

ENVIRONMENT = PinnedEnvironment("stream-venv", HERE / "requirements.txt")


def ensure_stream() -> Path:
    """Create or refresh the environment if needed. Returns the path of its interpreter.

    Raises `subprocess.CalledProcessError` if pip fails. The message of pip is then on standard error.
    """
    return ENVIRONMENT.ensure(sys.executable, ("-c", "import stream.api"))


if __name__ == "__main__":
    print(ensure_stream())
    sys.exit(0)
