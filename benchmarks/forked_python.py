"""Python programs that start without the time for their imports: a server imports packages, and forks a child for each
program.

Histories of small projects start hundreds of processes. Most of their time is spent on imports of packages that no
history changes. `ForkedPython` makes a folder with the programs `python` and `snakemake`. These programs send their
arguments, environment, files and limits to the server. A child of the server then does the work of the program. If a
program is killed, its connection to the child closes, and the child ends.

A child normally imports every module of tilewright anew. If the server was given the folder of a library, the server
imports this library, and a child can keep its modules. The child keeps them only if the program would import the same
files, and if no file of the library has changed since. Edited copies of the library, and plug-ins beside the library,
are imported anew.
"""

import json
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
    *("fontTools.subset", "fontTools.ttLib", "matplotlib.backends.backend_pdf", "pydantic", "networkx", "simpleeval"),
    *("docutils.readers.standalone", "docutils.languages.en", "docutils.utils.math.math2html", "smart_open", "runpy"),
    *("snakemake.assets", "snakemake.profiles", "platformdirs", "argparse_dataclass", "graphlib", "_strptime"),
)
"""Packages that the server imports if they are installed."""
PROGRAM = """\
#!/bin/sh
case "{words}$1" in -m*) ;; *) exec {python} "$@";; esac
exec {python} -I -S {file} {socket} {words}"$@"
"""


NAME = "tilewright"
"""Name of the package whose modules children keep or import anew."""
Signature = tuple[tuple[str, int, int], ...]
"""Path, time of the last change in ns, and size in bytes of each source file of a library, sorted by path."""


class ForkedPython:
    """Server with the folder of its programs. It runs while it is used as a context.

    `library` is the folder of a library whose modules the server imports; '' if children import them anew. If
    `is_painted` is False, PNG files of figures have the right size, but nothing is painted in them.
    """

    def __init__(
        self, folder: Path, environment: dict[str, str], library: Path | str = "", is_painted: bool = True
    ) -> None:
        self.programs, self.socket = folder / "programs", folder / "server"
        self.environment = environment
        self.asked = json.dumps({"library": str(library and Path(library).resolve()), "is_painted": is_painted})

    def __enter__(self) -> "ForkedPython":
        self.programs.mkdir(parents=True)
        for name, words in (("python", ""), ("snakemake", "-m snakemake ")):
            said = {"python": sys.executable, "file": __file__, "socket": self.socket, "words": words}
            (self.programs / name).write_text(PROGRAM.format(**said))
            (self.programs / name).chmod(0o755)
        command = [sys.executable, __file__, "serve", str(self.socket), str(self.programs / "python"), self.asked]
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


def leave_blank(canvas):  # type: ignore[no-untyped-def]
    """Draw method of Agg canvases that writes PNG files of the right size with no dots.

    The same figures are also drawn as SVG files. Without dots, a figure takes half of the time.
    """
    canvas.renderer = canvas.get_renderer()
    canvas.renderer.clear()
    if "draw" in vars(canvas.figure):  # Matplotlib asks for a renderer in this way, for the layout of an SVG file
        canvas.figure.draw(canvas.renderer)


def signature(library: str) -> Signature:
    """State of all source files of a library."""
    found = []
    for folder, _, files in os.walk(os.path.join(library, NAME)):
        for path in (os.path.join(folder, file) for file in files if file.endswith(".py")):
            known = os.stat(path)
            found.append((path, known.st_mtime_ns, known.st_size))
    return tuple(sorted(found))


def _import_library(library: str) -> Signature:
    """Import all modules of a library. Left out are the command line and the scripts for other tools, because they
    change modules of other packages. Returns the state of the library's files before the imports.
    """
    import importlib
    import pkgutil

    state = signature(library)
    sys.path.insert(0, library)
    package = importlib.import_module(NAME)
    for module in pkgutil.walk_packages(package.__path__, f"{NAME}."):
        if not module.name.endswith("__main__") and ".main_stage" not in module.name:
            importlib.import_module(module.name)
    sys.path.remove(library)
    return state


def serve(place: str, executable: str, text: str) -> None:
    """Import packages. Then run each requested program in a child, until the process that started the server ends."""
    import gc
    import importlib
    import socket

    for name in LOADED:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
    server_of = json.loads(text)
    library = server_of["library"]
    state = _import_library(library) if library else ()
    if not server_of["is_painted"]:
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        FigureCanvasAgg.draw = leave_blank
    gc.freeze()  # what lives as long as the process need not be visited by the garbage collector of each child
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
        request, handles, _, _ = socket.recv_fds(connection, 2**20, 64)
        if request and os.fork() == 0:
            server.close()
            _run(connection, json.loads(request), handles, library, state)
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


def _run(connection, asked, handles, library, state):  # type: ignore[no-untyped-def]
    """Run a program in the child: take over its arguments and files, run it, and send its exit code."""
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
        path = os.environ.get("PYTHONPATH", "")
        if library and not (_is_imported(library, path) and signature(library) == state):
            _forget_library()
        code = _run_module(asked["words"], path)
    finally:
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):  # closed, or nobody reads it any more
                stream.flush()
        os.write(kept, bytes([code & 255]))
        os._exit(code)


def _is_imported(library: str, path: str) -> bool:
    """True if a program in this folder, with `path` as its PYTHONPATH, imports the package from the library, and no
    other folder can have plug-ins.
    """
    return bool(path) and os.path.realpath(path) == library and not os.path.exists(NAME)


def _forget_library() -> None:
    """Undo the import of a library: its modules, and the path hooks that it installed."""
    for name in [name for name in sys.modules if name.partition(".")[0] == NAME]:
        del sys.modules[name]
    kept = [hook for hook in sys.path_hooks if getattr(hook, "__module__", "").partition(".")[0] != NAME]
    sys.path_hooks[:] = kept


def _end_with(connection: int) -> None:
    """End the child when the program ends."""
    import signal

    os.read(connection, 1)
    os.kill(os.getpid(), signal.SIGKILL)


def _run_module(words: list[str], path: str) -> int:
    """Run `python -m MODULE WORD ...`. Returns the exit code."""
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
    """Send all data of this program to the server, and wait. Returns the exit code of the child."""
    import _socket
    import array
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
        serve(*sys.argv[2:5])
    sys.exit(ask(sys.argv[1], sys.argv[2:]))
