"""Settings of all tests: caches inside the project, no time limits for examples, little garbage collection."""

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

PROJECT = Path(__file__).resolve().parent.parent
WORKFLOWS = PROJECT / "tests" / "workflow"
os.environ.setdefault("XDG_CACHE_HOME", str(PROJECT / ".cache"))
os.environ.setdefault("MPLCONFIGDIR", str(PROJECT / ".cache" / "matplotlib"))

# The value of commands (`tilewright.__main__`). Collection and searches make many objects that live long.
gc.set_threshold(50_000)

# A busy machine is no fault of what is tested.
settings.register_profile("tilewright", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tilewright")


@pytest.fixture(scope="module")
def unpainted() -> Iterator[None]:
    """Write PNG files with their sizes but without dots, for tests of SVG or other files.

    The same figures are drawn as SVG files, and painting doubles the time.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    from benchmarks.forked_python import leave_blank

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FigureCanvasAgg, "draw", leave_blank)
        yield


def pytest_configure(config: pytest.Config) -> None:
    """Make and note the list of fonts once, before workers and commands begin.

    Commands delete a list without a note (`base.noted_files`), and a new list takes each process 5 CPU seconds.
    """
    from tilewright.base.noted_files import FONT_FILES, FONTS, NotedFolder

    fonts = NotedFolder(PROJECT / ".cache" / FONTS, FONT_FILES)
    if hasattr(config, "workerinput") or os.environ["MPLCONFIGDIR"] != str(fonts.folder):
        return
    fonts.delete_untrusted()
    if not any(fonts.folder.rglob(FONT_FILES)):
        subprocess.run([sys.executable, "-c", "import matplotlib.font_manager"], check=True)
        fonts.note()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort tests of whole workflows first: they take longest, and one worker makes the projects that they share."""
    items.sort(key=lambda item: not item.path.is_relative_to(WORKFLOWS))


def pytest_collection_finish() -> None:
    """Exclude modules and collected tests from garbage collection, because they live as long as the process."""
    gc.collect()
    gc.freeze()
