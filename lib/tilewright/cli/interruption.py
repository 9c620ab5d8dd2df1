"""Handling of Ctrl-C: at any time, a command ends within two seconds and prints one line.

Before the verb is known, Ctrl-C ends the process at once. Later, it interrupts the main thread, so that the verb can
report which results are kept. A main thread that runs compiled code or waits for processes can be slow to end; then the
whole process is ended. Every file is complete or absent. Only the standard library is imported, because this module is
imported before all other modules.
"""

import os
import signal
import sys
import threading
from types import FrameType

INTERRUPTED = 130
KEPT = "interrupted: files written before are kept; no file is incomplete"
PATIENCE_S = 1.5
_is_told = threading.Event()
_is_asked = threading.Event()


def begin() -> None:
    """Install a handler of Ctrl-C that ends the process at once. It is used while the modules of the command are
    imported.
    """
    signal.signal(signal.SIGINT, lambda number, frame: _end())


def interrupt_verb() -> None:
    """Install a handler of Ctrl-C that raises KeyboardInterrupt. It is used while a verb runs. If the process still
    runs PATIENCE_S seconds later, or if the user presses Ctrl-C again, the process is ended.
    """
    signal.signal(signal.SIGINT, _interrupt)


def tell(line: str) -> None:
    """Print a line on the interruption and on the results that are kept."""
    _is_told.set()
    print(line, file=sys.stderr, flush=True)


def _interrupt(number: int, frame: FrameType | None) -> None:
    if _is_asked.is_set():  # Ctrl-C was pressed a second time
        _end()
    _is_asked.set()
    watch = threading.Timer(PATIENCE_S, _end)
    watch.daemon = True
    watch.start()
    raise KeyboardInterrupt


def _end() -> None:
    if not _is_told.is_set():
        _is_told.set()
        os.write(2, f"{KEPT}\n".encode())
    os._exit(INTERRUPTED)
