"""What all tests share: caches stay inside the project."""

import os
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
os.environ.setdefault("XDG_CACHE_HOME", str(PROJECT / ".cache"))
os.environ.setdefault("MPLCONFIGDIR", str(PROJECT / ".cache" / "matplotlib"))
