"""Handling of Ctrl-C: at any time, a command ends within two seconds and prints one line.

Before a verb is found, the process ends at once. Later, the main thread is interrupted, so that verbs can report which
results are kept. The main thread can be slow to end if it runs compiled code or waits for processes. In this case, the
whole process is ended. Files are written completely or not at all. Only the standard library is imported, because this
module is imported before all other modules.
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
    """Set the handler of Ctrl-C for the import of the command: the handler ends the process at once."""
    signal.signal(signal.SIGINT, lambda number, frame: _end())


def interrupt_verb() -> None:
    """Set the handler of Ctrl-C for the run of a verb: the handler interrupts the verb, and ends the process if the
    verb continues.
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
