"""`python -m tilewright.main_stage SCRIPT ARGUMENTS` runs a script for zigzag-dse or Stream on tilewright."""

import sys
from pathlib import Path

from tilewright.base.errors import TilewrightError
from tilewright.base.harmless import terminal

USAGE = "usage: python -m tilewright.main_stage SCRIPT [ARGUMENT ...]"
INTERRUPTED = 130


def main(arguments: list[str]) -> int:
    """Run a script. Returns the exit code."""
    from tilewright.main_stage.theirs import run_script

    if not arguments:
        print(terminal(USAGE), file=sys.stderr)
        return 2
    try:
        run_script(Path(arguments[0]), arguments[1:])
    except TilewrightError as error:
        for line in f"error: {error}".splitlines():
            print(terminal(line), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(terminal("interrupted"), file=sys.stderr)
        return INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
