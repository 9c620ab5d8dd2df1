"""`python -m tilewright`: the command line."""

from tilewright.cli.main import run

if __name__ == "__main__":
    run()
