"""Cache files with digests: a file that does not match its digest is deleted before use.

The digest is in the first line of the file. If another program writes the file, the digest is in a separate file in the
same folder.
"""

import atexit
import contextlib
import fcntl
import hashlib
import os
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

NOTE = "digests.txt"
KERNELS, NUMBA_FOLDER, NUMBA_FILES = "kernels", "numba", "*.nb[ci]"
"""Names in the folder of caches. KERNELS is a folder that has one subfolder for each digest of the kernel sources. Each
subfolder contains machine code, and a folder NUMBA_FOLDER with files that Numba writes. NUMBA_FILES is the pattern of
these files, which are checked by this module, not by Numba.
"""
FONTS, FONT_FILES = "matplotlib", "*.json"
"""FONTS: folder, below the folder of caches, in which matplotlib keeps its list of fonts. FONT_FILES: pattern of the
files with this list.
"""
_DIGEST_BYTES = 16
_IN_USE = "in_use"
"""Name of a file in a noted folder. A process that can write into the folder holds a shared lock on this file until the
process ends."""


@dataclass(frozen=True)
class NotedFolder:
    """Folder with files that have digests. The files are in the folder or below it, and their names match a pattern.
    The note is one further file in the folder, with the digests of these files.
    """

    folder: Path
    pattern: str

    def damaged(self) -> list[Path]:
        """Damaged files, sorted. A file is damaged if its content differs from its digest in the note. If the note
        itself is damaged, the result is only the note.

        A file that is not in the note, or that no longer exists, does not count as damaged. While another process can
        write into the folder, only a damaged note is reported, because that process may have changed files after they
        were noted.
        """
        note = self.folder / NOTE
        if note.is_file() and after_digest_line(note) is None:
            return [note]
        noted = self._noted()
        named = {_name(line) for line in noted}
        changed = [path for path in self._files() if (line := self._line(path)) not in noted and _name(line) in named]
        return [] if changed and self._is_in_use() else changed

    def delete_untrusted(self) -> None:
        """Delete the files that do not match the note. Such a file has changed, or its writer ended before the digest
        was in the note."""
        noted = self._noted()
        for path in [path for path in self._files() if self._line(path) not in noted]:
            with contextlib.suppress(OSError):  # another process has deleted it, or the folder is read-only
                path.unlink()

    def note(self) -> None:
        """Write the digests of all present files into the note, which is the file of digests in the folder. If two
        processes write at the same time, the digests of one process can be lost. This does no harm: a file without a
        digest is deleted later, and made again.
        """
        lines = [self._line(path) for path in self._files()]
        if lines and frozenset(lines) != self._noted():
            text = "".join(f"{line}\n" for line in lines)
            with contextlib.suppress(OSError):
                write_whole(self.folder / NOTE, with_digest_line(text.encode()))

    def take_into_use(self) -> None:
        """Announce to other processes that this process can write into the folder. The announcement is a lock, which
        lasts until this process ends."""
        with contextlib.suppress(OSError):  # a folder that is read-only, or a file system without locks
            self.folder.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.folder / _IN_USE, os.O_RDWR | os.O_CREAT, 0o666)
            fcntl.flock(handle, fcntl.LOCK_SH)  # the handle stays open, so that the lock ends with the process

    def _is_in_use(self) -> bool:
        try:
            handle = os.open(self.folder / _IN_USE, os.O_RDWR)
        except OSError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(handle)
        return False

    def _files(self) -> list[Path]:
        return sorted(path for path in self.folder.rglob(self.pattern) if path.is_file())

    def _noted(self) -> frozenset[str]:
        content = after_digest_line(self.folder / NOTE) or b""
        return frozenset(content.decode("utf-8", "replace").splitlines())

    def _line(self, path: Path) -> str:
        try:
            content = path.read_bytes()
        except OSError:
            content = b""
        return f"{_digest(content)} {path.relative_to(self.folder).as_posix()}"


def _name(line: str) -> str:
    """Name of the file to which a line of a note belongs."""
    return line[2 * _DIGEST_BYTES + 1 :]


def damaged_caches(caches: Path) -> list[Path]:
    """Damaged cache files of a checkout, sorted. If such a file is deleted, tilewright makes it again when it is
    needed.
    """
    found = [path for path in (caches / KERNELS).glob("*/*.o") if after_digest_line(path) is None]
    for folder in (caches / KERNELS).glob(f"*/{NUMBA_FOLDER}"):
        found += NotedFolder(folder, NUMBA_FILES).damaged()
    return sorted(found + NotedFolder(caches / FONTS, FONT_FILES).damaged())


def cache_files(caches: Path) -> list[Path]:
    """All files that `damaged_caches` checks, sorted by path."""
    kernels = [
        path for pattern in ("*/*.o", f"*/{NUMBA_FOLDER}/**/{NUMBA_FILES}") for path in (caches / KERNELS).glob(pattern)
    ]
    notes = [*(caches / KERNELS).glob(f"*/{NUMBA_FOLDER}/{NOTE}"), *(caches / FONTS).glob(NOTE)]
    return sorted({*kernels, *notes, *(caches / FONTS).rglob(FONT_FILES)})


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).hexdigest()


def with_digest_line(content: bytes) -> bytes:
    """Content of a file, with a line in front that has the digest of the content."""
    return _digest(content).encode() + b"\n" + content


def after_digest_line(path: Path) -> bytes | None:
    """Content of a file after its first line, which has the digest of this content; None if the file is missing or
    damaged.
    """
    try:
        content = path.read_bytes()
    except OSError:
        return None
    rest = content[2 * _DIGEST_BYTES + 1 :]
    return rest if content == with_digest_line(rest) else None


@cache
def trust_as_noted(folder: Path, pattern: str) -> None:
    """Delete the untrusted files in or below a folder. A file is untrusted if its name matches `pattern` and the note
    does not have its present digest. The note is the file of digests in the folder. When the process ends, the digests
    of the remaining files are written into the note.
    """
    noted = NotedFolder(folder, pattern)
    noted.take_into_use()
    noted.delete_untrusted()
    atexit.register(noted.note)


def write_whole(path: Path, content: bytes) -> None:
    """Write a cache file under another name, then rename it. Raises OSError if the file cannot be written."""
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            os.fchmod(handle, 0o644)  # other users of a shared checkout load the file too
            stream.write(content)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
