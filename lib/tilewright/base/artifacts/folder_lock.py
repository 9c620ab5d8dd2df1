"""The lock of a folder of results: one run at a time writes there, whichever checkout or machine it runs in.

It is a file in the folder itself, `.tilewright-lock`, that says who holds it: host, process, since when. It is made by
a hard link, which one of two machines alone can make, also over NFS. A lock whose process is seen to have ended, on the
same host, is taken over; whether a process of another host still runs cannot be seen, so its lock is never taken over,
however old, but by the command that the message names.

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
"""Name of the lock; others have `.lock` in folders around."""
VARIABLE = "TILEWRIGHT_LOCK"
"""Environment variable: the token of the lock under which a process works that was started by its holder."""


@dataclass(frozen=True)
class Holder:
    """Who holds a lock."""

    token: str
    host: str
    """Name of the machine with the id of its start and of the space of its process numbers: where these are equal, a
    process can be looked for."""
    process: int
    began: str
    """Time at which the process began, as its machine counts; process numbers are used again."""
    user: str
    command: str
    since_s: float

    @property
    def is_here(self) -> bool:
        """Whether the process would be seen here if it ran."""
        return self.host == _host()

    @property
    def has_ended(self) -> bool:
        """Whether the process is known not to run any more: its machine started anew, or it is gone."""
        name, start, space = self.host.split(" ")
        own_name, own_start, own_space = _host().split(" ")
        if (name, space) == (own_name, own_space) and start != own_start:
            return True
        return self.is_here and _beginning(self.process) != self.began

    def __str__(self) -> str:
        """Who it is, for people."""
        minutes = max(time.time() - self.since_s, 0) / 60
        age = f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.0f} h"
        machine = self.host.partition(" ")[0]
        return f"{self.command} of {self.user} on {machine} (process {self.process}, for {age})"


@contextmanager
def holding(folder: Path | str) -> Iterator[None]:
    """Hold the lock of a folder, which is made; nothing where the holder of a lock around it started this process.

    Raises InputError, with who it is, where another process holds it.
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
    """Whether the lock of the folder, or of one around it, is held by who started this process.

    Raises InputError where another process holds it.
    """
    for place in (folder.absolute(), *folder.absolute().parents):
        holder = read_holder(place)
        if holder is not None and _holds(place, holder):
            if holder.token == os.environ.get(VARIABLE):
                return True
            raise InputError([_refusal(place, holder)])
    return False


def take(folder: Path, process: int, command: str) -> str:
    """Take the lock of a folder for a process of this host; its token. Raises InputError where another one holds it."""
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
    """Give the lock back, unless somebody else has it by now."""
    holder = read_holder(folder)
    if holder is not None and holder.token == token:
        with suppress(OSError):
            (folder / LOCK).unlink()


def take_away(folder: Path) -> Holder | None:
    """Delete the lock of a folder, as a person asked for; who held it. Raises InputError while that is seen to run."""
    holder = read_holder(folder)
    if holder is not None and holder.is_here and _holds(folder, holder):
        stop = f"it still runs on this machine: wait, or stop it with `kill {holder.process}`"
        raise InputError([Problem(f"is held by {holder}; {stop}", str(folder / LOCK))])
    with writing(folder / LOCK):
        (folder / LOCK).unlink(missing_ok=True)
    return holder


def read_holder(folder: Path) -> Holder | None:
    """Who holds the lock of a folder; None where nobody does. One that says nothing is held by someone unknown."""
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
        return Problem(
            f"is held by someone whom it does not name; if nothing runs there: {command}", str(folder / LOCK)
        )
    if holder.is_here:
        what = f"which runs: wait, or stop it with `kill {holder.process}`; the next run takes the lock over"
    else:
        what = f"which cannot be seen from here; if it does not run any more, take over with `{command}`"
    return Problem(f"another run is at work in {folder}: {holder}, {what}", str(folder / LOCK))


def _holds(folder: Path, holder: Holder) -> bool:
    """Whether a lock is still held: by its process, or by one that this has started and that keeps it open."""
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
    """Let one process of this host at a time look at a lock and take it over."""
    guard = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # file systems without locks: the link still tells two apart
            fcntl.flock(guard, fcntl.LOCK_EX)
        yield
    finally:
        os.close(guard)


def _link(folder: Path, holder: Holder) -> bool:
    """Make the lock as a hard link to a file of another name; False where there is one."""
    own = folder / f"{LOCK}.{holder.token}.tmp"
    try:
        with own.open("w", encoding="utf-8") as stream:
            stream.write(json.dumps(asdict(holder)) + "\n")
        try:
            os.link(own, folder / LOCK)
        except FileExistsError:
            return own.stat().st_nlink == 2  # made, though the answer of a file server was lost
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
    """Time at which a process of this host began; '' where there is none, or one that has ended and is not yet gone."""
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
