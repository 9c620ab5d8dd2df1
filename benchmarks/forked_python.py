"""Programs in Python that start without their imports: a server has the packages of others loaded, and forks.

Histories of small projects start hundreds of processes, most of whose time are imports of packages that no history
changes. `ForkedPython` makes a folder with programs `python` and `snakemake`. These hand their arguments, environment,
files and limits to the server, whose child runs the program, with every module of the project imported anew. Whoever
kills such a program kills the child: it ends when the connection to its program does.
"""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

LOADED = (
    *("snakemake.cli", "snakemake.api", "snakemake_interface_executor_plugins", "snakemake_interface_logger_plugins"),
    *("snakemake.executors.local", "snakemake.scheduling.greedy", "snakemake.report", "numpy", "yaml", "click", "rich"),
    *("matplotlib.figure", "matplotlib.font_manager", "matplotlib.backends.backend_svg", "rich.console", "rich.table"),
    *("matplotlib.backends.backend_agg", "pyarrow.parquet", "llvmlite.binding", "pulp", "jinja2", "requests"),
    *(
        "pandas",
        "numpy.random",
        "docutils.core",
        "docutils.writers.html5_polyglot",
        "docutils.parsers.rst",
        "PIL.Image",
    ),
    *("docutils.readers.standalone", "docutils.languages.en", "docutils.utils.math.math2html", "smart_open", "runpy"),
    *("snakemake.assets", "snakemake.profiles", "platformdirs", "argparse_dataclass", "graphlib", "_strptime"),
)
"""Packages that the server loads, those that are installed."""
PROGRAM = """\
#!/bin/sh
case "{words}$1" in -m*) ;; *) exec {python} "$@";; esac
exec {python} -I -S {file} {socket} {words}"$@"
"""


class ForkedPython:
    """The server, and the folder of its programs, while it is used as a context."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.programs, self.socket = folder / "programs", folder / "server"
        self.environment = environment

    def __enter__(self) -> "ForkedPython":
        self.programs.mkdir(parents=True)
        for name, words in (("python", ""), ("snakemake", "-m snakemake ")):
            said = {"python": sys.executable, "file": __file__, "socket": self.socket, "words": words}
            (self.programs / name).write_text(PROGRAM.format(**said))
            (self.programs / name).chmod(0o755)
        command = [sys.executable, __file__, "serve", str(self.socket), str(self.programs / "python")]
        self.process = subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        self.process.stdout.readline()
        return self

    def cpu_seconds(self) -> float:
        """CPU seconds of the server and of all children that have ended."""
        ticks = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[11:15]
        return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()


def serve(place: str, executable: str) -> None:
    """Load packages, then run every program that is asked for in a child, until the process that started it ends."""
    import importlib
    import json
    import socket

    for name in LOADED:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
    sys.executable = executable
    server = socket.socket(socket.AF_UNIX)
    server.bind(place)
    server.listen(64)
    print("ready", flush=True)
    server.settimeout(5.0)
    parent = os.getppid()
    while os.getppid() == parent:
        try:
            connection, _ = server.accept()
        except TimeoutError:
            continue
        connection.settimeout(None)
        text, handles, _, _ = socket.recv_fds(connection, 2**20, 64)
        if text and os.fork() == 0:
            server.close()
            _run(connection, json.loads(text), handles)
        for handle in handles:
            os.close(handle)
        connection.close()
        _forget_ended()


def _forget_ended() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def _run(connection, asked, handles):  # type: ignore[no-untyped-def]
    """The child: take over what belongs to the program, run it, tell its exit code, end."""
    import atexit
    import resource
    import threading

    kept = os.dup2(connection.detach(), 900, inheritable=False)
    moved = [os.dup2(handle, 901 + place, inheritable=False) for place, handle in enumerate(handles)]
    for handle in handles:
        os.close(handle)
    for number, handle in zip(asked["numbers"], moved, strict=True):
        os.dup2(handle, number)
        os.close(handle)
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    resource.setrlimit(resource.RLIMIT_FSIZE, tuple(asked["limit"]))
    os.umask(asked["mask"])
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", buffering=1)  # noqa: SIM115
    sys.__stdout__, sys.__stderr__ = sys.stdout, sys.stderr
    threading.Thread(target=_end_with, args=(kept,), daemon=True).start()
    code = 1
    try:
        code = _run_module(asked["words"], os.environ.get("PYTHONPATH", ""))
    finally:
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):  # closed, or nobody reads it any more
                stream.flush()
        os.write(kept, bytes([code & 255]))
        os._exit(code)


def _end_with(connection: int) -> None:
    """End at once when the program does."""
    import signal

    os.read(connection, 1)
    os.kill(os.getpid(), signal.SIGKILL)


def _run_module(words: list[str], path: str) -> int:
    """`python -m MODULE WORD ...`; its exit code."""
    import runpy
    import traceback

    assert words[0] == "-m"
    sys.argv = words[1:]
    sys.path[:0] = [os.getcwd(), *filter(None, path.split(os.pathsep))]
    sys.path_importer_cache.clear()
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    try:
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    except SystemExit as error:
        if isinstance(error.code, str):
            sys.stderr.write(f"{error.code}\n")
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def ask(place: str, words: list[str]) -> int:
    """The program: hand everything to the server and wait; the exit code of its child."""
    import _socket
    import array
    import json
    import resource

    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    connection.connect(place)
    numbers = [int(name) for name in os.listdir("/proc/self/fd") if int(name) != connection.fileno()]
    numbers = sorted(number for number in numbers if os.path.exists(f"/proc/self/fd/{number}"))
    mask = os.umask(0)
    os.umask(mask)
    asked = {"words": words, "folder": os.getcwd(), "environment": dict(os.environ), "numbers": numbers, "mask": mask}
    text = json.dumps({**asked, "limit": resource.getrlimit(resource.RLIMIT_FSIZE)}).encode()
    rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array.array("i", numbers))]
    connection.sendmsg([text], rights)
    told = connection.recv(1)
    connection.recv(1)  # nothing, when the child has ended
    return told[0] if told else 137


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(*sys.argv[2:4])
    sys.exit(ask(sys.argv[1], sys.argv[2:]))
