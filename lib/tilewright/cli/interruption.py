"""Handling of Ctrl-C: a command ends within two seconds, from its first moment on, with one line.

Before a verb is found, the process ends at once. Later, the main thread is interrupted, so that verbs can report what
is kept. If the main thread does not end soon, because it runs compiled code or waits for processes, the process is
ended. Files are written completely or not at all.

Only the standard library is imported, because this module is imported before anything else.
"""

import os
import signal
import sys
import threading
from types import FrameType

INTERRUPTED = 130
KEPT = "interrupted: files written before are kept, nothing is half-written"
PATIENCE_S = 1.5
_is_told = threading.Event()
_is_asked = threading.Event()


def begin() -> None:
    """End the process at once on Ctrl-C, while the command is still being imported."""
    signal.signal(signal.SIGINT, lambda number, frame: _end())


def interrupt_verb() -> None:
    """Interrupt the verb on Ctrl-C, and end the process if the verb continues."""
    signal.signal(signal.SIGINT, _interrupt)


def tell(line: str) -> None:
    """Print that the command was interrupted, and what is kept."""
    _is_told.set()
    print(line, file=sys.stderr, flush=True)


def _interrupt(number: int, frame: FrameType | None) -> None:
    if _is_asked.is_set():  # asked a second time
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
