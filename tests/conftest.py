"""What all tests share: caches stay inside the project, and examples of property tests may take as long as they do."""

import os
from pathlib import Path

from hypothesis import HealthCheck, settings

PROJECT = Path(__file__).resolve().parent.parent
os.environ.setdefault("XDG_CACHE_HOME", str(PROJECT / ".cache"))
os.environ.setdefault("MPLCONFIGDIR", str(PROJECT / ".cache" / "matplotlib"))

# A busy machine is no fault of what is tested.
settings.register_profile("tilewright", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tilewright")
