"""Ctrl-C ends a command within two seconds with one line, at any moment."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SLOW = "import sys, time; sys.argv = ['tilewright']; from tilewright.cli import interruption; interruption.begin(); {}"
KEPT = "interrupted: files written before are kept; no file is incomplete\n"


def interrupted(code: str, times: int = 1) -> tuple[int, str, float]:
    """Return exit code, output and seconds after Ctrl-C of a process that runs `code` and has printed "ready"."""
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW.format(code)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    start = time.monotonic()
    for _ in range(times):
        process.send_signal(signal.SIGINT)
        time.sleep(0.1)
    said = process.communicate(timeout=20)[1]
    return process.returncode, said.removeprefix("\n"), time.monotonic() - start  # after ^C on a terminal


def test_while_a_command_is_imported() -> None:
    """Ctrl-C during the imports of a command ends it at once without a traceback."""
    assert interrupted("print('ready', flush=True); time.sleep(30)")[:2] == (130, KEPT)


VERB = """
from tilewright.cli import main as dispatch
import click
def wait():
    print('ready', flush=True)
    time.sleep(30)
@click.command()
def slow():
    {}
dispatch._LazyGroup.get_command = lambda self, context, name: slow
dispatch.run(['map'])
"""


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("wait()", KEPT),
        ("\n    try: wait()\n    finally: time.sleep(30)", KEPT),
        ("\n    while True:\n        try: wait()\n        except BaseException: pass", KEPT),
        (
            "\n    try: wait()\n    except KeyboardInterrupt as error:"
            " raise dispatch.InterruptedRunError('shards are kept') from error",
            "interrupted: shards are kept\n",
        ),
        (
            "\n    import atexit, threading\n    atexit.register(time.sleep, 30)\n"
            "    threading.Thread(target=time.sleep, args=(30,)).start()\n    wait()",
            KEPT,
        ),
    ],
)
def test_in_a_verb(body: str, said: str) -> None:
    """Ctrl-C ends a verb within two seconds, even if it catches the interruption or has running threads."""
    code, told, seconds = interrupted(f"exec({VERB.format(body)!r})")
    assert (code, told) == (130, said)
    assert seconds < 2 + 8 * os.getloadavg()[0] / (os.cpu_count() or 1)


def test_asked_twice_it_ends_at_once() -> None:
    """A second Ctrl-C ends a verb at once, without its clean-up."""
    body = "\n    try: wait()\n    finally: time.sleep(30)"
    assert interrupted(f"exec({VERB.format(body)!r})", times=2)[:2] == (130, KEPT)


def test_the_command_itself(tmp_path: Path) -> None:
    """`python -m tilewright` ends after Ctrl-C with one line and no traceback of its own, from its first import on."""
    command = [
        sys.executable,
        "-m",
        "tilewright",
        "map",
        "--hardware",
        "config/hardware/zigzag/tpu_like.yaml",
        "--workload",
    ]
    command += [
        "config/workload/resnet18.onnx",
        "--mapping",
        "config/mapping/zigzag/tpu_like.yaml",
        "-o",
        str(tmp_path),
    ]
    for delay_s in (0.25, 0.5):
        process = subprocess.Popen([*command, "--no-store"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(delay_s)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=30)[1]
        if process.returncode != -signal.SIGINT:  # Python itself had not begun
            last = said.splitlines()[-1:]
            words = ([KEPT.strip()], ["interrupted: nothing was written"])
            assert process.returncode == 0 or (process.returncode, last) in [(130, word) for word in words]
            assert "tilewright/cli" not in said
