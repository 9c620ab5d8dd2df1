"""`python -m tilewright`: the command line."""

import gc
import os
import signal

from tilewright.cli import interruption

if __name__ == "__main__":
    interruption.begin()
else:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a worker process, whose parent says when it ends

# A command makes many small objects that live to its end: looking for cycles among them is a tenth of its start.
gc.set_threshold(200_000)
# pydantic would search all installed packages for plugins that watch validations, which no verb needs.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

from tilewright.cli.main import run  # noqa: E402  what is imported here makes most of them

if __name__ == "__main__":
    run()
