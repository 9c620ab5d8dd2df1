"""Completion in a shell: bash completes partial lines, and completion imports few modules."""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tilewright
from tilewright.cli.main import VERBS, main

BASH = shutil.which("bash")
PROMPT = "ready>"


class Bash:
    """An interactive bash on its own terminal, in a folder with some files, with completion loaded."""

    def __init__(self, folder: Path) -> None:
        program = folder / "bin" / "tilewright"
        program.parent.mkdir()
        library = Path(tilewright.__file__).parents[1]
        program.write_text(f'#!/bin/sh\nPYTHONPATH="{library}" exec "{sys.executable}" -m tilewright "$@"\n')
        program.chmod(0o755)
        (folder / "net_one.onnx").touch()
        environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "PS1": PROMPT, "TERM": "dumb"}
        environment.pop("INPUTRC", None)
        self.terminal, theirs = pty.openpty()
        command = [BASH or "bash", "--noprofile", "--norc", "-i"]
        self.process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
        )
        os.close(theirs)
        self.unread = ""
        self.wait_for(PROMPT)
        self.type('eval "$(tilewright completion bash)"; echo lo""aded\n')
        self.wait_for("loaded")
        self.wait_for(PROMPT)

    def type(self, keys: str) -> None:
        """Type these keys."""
        os.write(self.terminal, keys.encode())

    def wait_for(self, text: str) -> str:
        """Return the output up to this text and keep the rest for the next call."""
        end = time.monotonic() + 60
        while text not in self.unread:
            left = end - time.monotonic()
            assert left > 0, f"no {text!r} in {self.unread!r}"
            if select.select([self.terminal], [], [], left)[0]:
                self.unread += os.read(self.terminal, 4096).decode()
        seen, _, self.unread = self.unread.partition(text)
        return seen + text

    def completed(self, line: str, text: str) -> str:
        """Return the line after a tab has completed it with this text."""
        self.type(line + "\t")
        seen = self.wait_for(text)
        self.type("\x15")  # clears the line
        return seen

    def close(self) -> None:
        """End the shell."""
        self.process.kill()
        self.process.wait()
        os.close(self.terminal)


@pytest.mark.skipif(BASH is None, reason="there is no bash")
def test_bash_completes_partial_lines(tmp_path: Path) -> None:
    """Bash completes verbs, options, their values, and files."""
    bash = Bash(tmp_path)
    try:
        assert "tilewright summarize" in bash.completed("tilewright summ", "summarize")
        bash.completed("tilewright map --obj", "--objective")
        bash.completed("tilewright map --objective la", "latency")
        bash.completed("tilewright map --precision as", "assumed")
        bash.completed("tilewright cns --workload net_", "net_one.onnx")
        bash.completed("tilewright parse net_", "net_one.onnx")
        bash.completed("tilewright parse hard", "hardware")
        bash.completed("tilewright completion zs", "zsh")
    finally:
        bash.close()


def test_scripts_are_for_the_shell_that_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    """The command prints the script that the function returns, and refuses an unknown shell."""
    for shell, word in (("bash", "compopt"), ("zsh", "#compdef tilewright"), ("fish", "commandline")):
        assert main(["completion", shell]) == 0
        text = capsys.readouterr().out
        assert word in text
        assert text == tilewright.completion(shell)
    with pytest.raises(tilewright.InputError, match=r"shell: no such shell.*bash, zsh, fish"):
        tilewright.completion("fishy")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_are_read_by_their_shell(shell: str) -> None:
    """Each shell reads its script without a complaint."""
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    done = subprocess.run([shell, "-n"], input=tilewright.completion(shell), text=True, capture_output=True, check=True)
    assert done.stderr == ""


def test_verbs_are_listed_without_importing_them() -> None:
    """Verbs are completed without importing their modules."""
    asked = {"COMP_WORDS": "tilewright ", "COMP_CWORD": "1", "_TILEWRIGHT_COMPLETE": "bash_complete"}
    code = (
        "import atexit, sys; atexit.register(lambda: print('modules', *sys.modules));"
        "from tilewright.cli.main import main; main([])"
    )
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, **asked}, capture_output=True, text=True)
    listed, _, modules = done.stdout.partition("modules ")
    assert re.findall(r"plain,(\S+)", listed) == list(VERBS)
    assert {name for name in modules.split() if name.startswith("tilewright.cli.")} == {
        "tilewright.cli.main",
        "tilewright.cli.interruption",
        "tilewright.cli.old_names",
        "tilewright.cli.terminal",
    }
