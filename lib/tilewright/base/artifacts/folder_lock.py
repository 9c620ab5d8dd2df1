"""Lock of a folder of results: only one run at a time writes there, from any checkout and any machine.

The lock is the file `.tilewright-lock` in the folder. The file names the host and the process that hold the lock, and
the time at which the lock was taken. The lock is made as a hard link. If two machines make the link at the same time,
only one machine succeeds, also over NFS. If the holder is a process of this host that has ended, the next run takes the
lock. A host cannot see whether a process of another host still runs. A lock of another host is therefore never taken
over, no matter how old it is. Only the command that the error message names removes such a lock.

Standard library only.
"""

import fcntl
import json
import os
import socket
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from tilewright.base.artifacts.files import writing
from tilewright.base.errors import InputError, Problem

LOCK = ".tilewright-lock"
"""Name of the lock file, different from the names of the lock files of other tools, such as Snakemake."""
VARIABLE = "TILEWRIGHT_LOCK"
"""Environment variable with the token of the lock. `workflow/run.sh` takes the lock and sets this variable, so that the
processes that it starts can write into the folder.
"""


@dataclass(frozen=True)
class Holder:
    """Holder of a lock."""

    token: str
    host: str
    """Name of the machine, id of its boot, and id of its namespace of process numbers. A process can look up the
    process of the holder only if all three are the same for both processes."""
    process: int
    began: str
    """Start time of the process, in clock ticks since its machine was booted; 'running' if the system does not give it.
    The process number alone does not identify a process, because numbers are reused.
    """
    user: str
    command: str
    since_s: float

    @property
    def is_here(self) -> bool:
        """True if the holder belongs to this machine. Only then can this process see whether the process of the holder
        runs.
        """
        return self.host == _host()

    @property
    def has_ended(self) -> bool:
        """True if the process of the holder is known to have ended: its machine was rebooted, or the process no longer
        exists."""
        name, start, space = self.host.split(" ")
        own_name, own_start, own_space = _host().split(" ")
        if (name, space) == (own_name, own_space) and start != own_start:
            return True
        return self.is_here and _beginning(self.process) != self.began

    def __str__(self) -> str:
        """Text for people: command, user, machine, process number and age of the lock."""
        minutes = max(time.time() - self.since_s, 0) / 60
        age = f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.0f} h"
        machine = self.host.partition(" ")[0]
        return f"{self.command} of {self.user} on {machine} (process {self.process}, for {age})"


@contextmanager
def holding(folder: Path | str) -> Iterator[None]:
    """Context in which this process holds the lock of a folder. The folder is made if it is missing.

    The context does nothing if an ancestor process already holds the lock of this folder, or of a folder above it. An
    ancestor is a process that started this process, directly or through other processes. If any other process holds the
    lock, InputError names the holder.
    """
    place = Path(folder)
    if is_held_around(place):
        yield
        return
    token = take(place, os.getpid(), " ".join(("tilewright", *sys.argv[1:2])))
    try:
        yield
    finally:
        release(place, token)


def is_held_around(folder: Path) -> bool:
    """True if an ancestor process (explained at `holding`) holds the lock of the folder, or of a folder above it.
    Raises InputError if any other process holds the lock."""
    for place in (folder.absolute(), *folder.absolute().parents):
        holder = read_holder(place)
        if holder is not None and _holds(place, holder):
            if holder.token == os.environ.get(VARIABLE):
                return True
            raise InputError([_refusal(place, holder)])
    return False


def take(folder: Path, process: int, command: str) -> str:
    """Take the lock of a folder for a process of this host, and return its token. Raises InputError if the lock is held
    already."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with _guarded(folder):
            holder = read_holder(folder)
            if holder is not None and _holds(folder, holder):
                raise InputError([_refusal(folder, holder)])
            if holder is not None:
                (folder / LOCK).unlink(missing_ok=True)
            own = Holder(uuid.uuid4().hex, _host(), process, _beginning(process), _user(), command, time.time())
            if not _link(folder, own):
                holder = read_holder(folder)
                raise InputError([_refusal(folder, holder)])
    return own.token


def release(folder: Path, token: str) -> None:
    """Release the lock of a folder, unless another holder has taken this lock in the meantime."""
    holder = read_holder(folder)
    if holder is not None and holder.token == token:
        with suppress(OSError):
            (folder / LOCK).unlink()


def take_away(folder: Path) -> Holder | None:
    """Delete the lock of a folder, because a person asked for this, and return its former holder.

    Raises InputError if the process of the holder runs on this host.
    """
    holder = read_holder(folder)
    if holder is not None and holder.is_here and _holds(folder, holder):
        stop = f"this command still runs on this machine: wait, or stop it with `kill {holder.process}`"
        raise InputError([Problem(f"the lock belongs to {holder}; {stop}", str(folder / LOCK))])
    with writing(folder / LOCK):
        (folder / LOCK).unlink(missing_ok=True)
    return holder


def read_holder(folder: Path) -> Holder | None:
    """Holder that the lock file of a folder names, even if the process of the holder has ended; None if there is no
    lock file that this process can read. A lock file without valid content has an unknown holder.
    """
    try:
        content = (folder / LOCK).read_bytes()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    except OSError as error:
        raise InputError([Problem(f"cannot be read: {error.strerror}", str(folder / LOCK))]) from error
    try:
        holder = Holder(**json.loads(content))
        fits = all(isinstance(value, kind) for value, kind in zip(asdict(holder).values(), _KINDS, strict=True))
        return holder if fits and holder.host.count(" ") == 2 else _UNKNOWN
    except (ValueError, TypeError):
        return _UNKNOWN


_KINDS = (str, str, int, str, str, str, int | float)
_UNKNOWN = Holder("", "unknown unknown unknown", 0, "", "somebody", "a run", 0.0)


def _refusal(folder: Path, holder: Holder | None) -> Problem:
    command = f"tilewright store unlock {folder}"
    if holder is None or holder == _UNKNOWN:
        told = f"the file does not say which run has the lock; if no run uses this folder, use `{command}`"
        return Problem(told, str(folder / LOCK))
    if holder.is_here:
        what = f"which runs on this machine: wait, or stop it with `kill {holder.process}` and repeat your command"
    else:
        what = f"which runs on another machine; if it has ended, delete the lock with `{command}`"
    return Problem(f"another run is at work in {folder}: {holder}, {what}", str(folder / LOCK))


def _holds(folder: Path, holder: Holder) -> bool:
    """True if a lock is still held: the process of the holder runs, or one of its child processes keeps the lock file
    open."""
    if not holder.has_ended:
        return True
    try:
        handle = os.open(folder / LOCK, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks
        return False
    finally:
        os.close(handle)


@contextmanager
def _guarded(folder: Path) -> Iterator[None]:
    """Context that only one process of this host can enter at a time. Without it, two processes could both take over
    the lock of a holder that has ended. On a file system without locks, the context has no effect.
    """
    guard = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks: the hard link still decides who is first
            fcntl.flock(guard, fcntl.LOCK_EX)
        yield
    finally:
        os.close(guard)


def _link(folder: Path, holder: Holder) -> bool:
    """Make the lock as a hard link to a temporary file. Return False if the lock exists already."""
    own = folder / f"{LOCK}.{holder.token}.tmp"
    try:
        with own.open("w", encoding="utf-8") as stream:
            stream.write(json.dumps(asdict(holder)) + "\n")
        try:
            os.link(own, folder / LOCK)
        except FileExistsError:
            return own.stat().st_nlink == 2  # the link was made, but the reply of the file server was lost
        except OSError:  # a file system without hard links
            return _create(folder, own)
        return True
    finally:
        own.unlink(missing_ok=True)


def _create(folder: Path, own: Path) -> bool:
    try:
        handle = os.open(folder / LOCK, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        return False
    with os.fdopen(handle, "wb") as stream:
        stream.write(own.read_bytes())
    return True


def _host() -> str:
    try:
        start = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        space = os.readlink("/proc/self/ns/pid")
    except OSError:  # not Linux
        start = space = "-"
    return f"{socket.gethostname().replace(' ', '-')} {start} {space.replace(' ', '-')}"


def _beginning(process: int) -> str:
    """Start time of a process of this host; '' if no such process runs, or if it is a zombie."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        return "" if fields[0] in "ZX" else fields[19]
    except FileNotFoundError:
        if Path("/proc/self/stat").exists():
            return ""
    except (OSError, IndexError):
        pass
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return ""
    except OSError:
        pass
    return "running"


def _user() -> str:
    try:
        import getpass

        return getpass.getuser()
    except (OSError, KeyError):
        return str(os.getuid())
