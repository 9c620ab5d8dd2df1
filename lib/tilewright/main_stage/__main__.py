"""`python -m tilewright.main_stage SCRIPT ARGUMENTS`: runs a script for zigzag-dse or Stream with our stages."""

import sys
from pathlib import Path

from tilewright.errors import TilewrightError


def main(arguments: list[str]) -> int:
    """Run a script; returns the exit code."""
    from tilewright.main_stage.theirs import run_script

    if not arguments:
        print("usage: python -m tilewright.main_stage SCRIPT [ARGUMENT ...]", file=sys.stderr)
        return 2
    try:
        run_script(Path(arguments[0]), arguments[1:])
    except TilewrightError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
