"""A SQLite VFS that has Python see what is written to files, in the library that ``sqlite3`` uses.

It is a copy of the system's own VFS in which a few functions are replaced: those that open, write,
cut, sync and delete. All else stays native. No other library is needed, and none would do: a VFS is
known only to the copy of SQLite in which it was registered.
"""

from __future__ import annotations

import _sqlite3
import ctypes
import gc
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, Final, Protocol, final

__all__ = ("IOERR", "OK", "Medium", "UnsupportedSqlite", "intercepted")

OK: Final = 0
IOERR: Final = 10

_POINTER = ctypes.c_void_p
# Names are pointers: SQLite keeps them, with the parameters of the URI behind them.
_XOPEN = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, _POINTER, _POINTER, ctypes.c_int, _POINTER)
_XDELETE = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, _POINTER, ctypes.c_int)
_XCLOSE = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER)
_XIO = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, _POINTER, ctypes.c_int, ctypes.c_int64)
_XTRUNCATE = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, ctypes.c_int64)
_XSYNC = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, ctypes.c_int)


class _Vfs(ctypes.Structure):
    _fields_ = [
        ("iVersion", ctypes.c_int),
        ("szOsFile", ctypes.c_int),
        ("mxPathname", ctypes.c_int),
        ("pNext", _POINTER),
        ("zName", ctypes.c_char_p),
        ("pAppData", _POINTER),
        ("xOpen", _POINTER),
        ("xDelete", _POINTER),
        ("rest", _POINTER * 14),
    ]


class _Methods(ctypes.Structure):
    _fields_ = [
        ("iVersion", ctypes.c_int),
        ("xClose", _POINTER),
        ("xRead", _POINTER),
        ("xWrite", _POINTER),
        ("xTruncate", _POINTER),
        ("xSync", _POINTER),
        ("rest", _POINTER * 13),
    ]


class _File(ctypes.Structure):
    _fields_ = [("methods", ctypes.POINTER(_Methods))]


class UnsupportedSqlite(RuntimeError):
    """This Python's SQLite cannot be reached: it is linked into the interpreter, say."""


class Medium(Protocol):
    """What decides about input and output; each method gives a result code of SQLite.

    ``go`` does what was asked for, on the real file.
    """

    def opens(self, path: str) -> bool:
        """Whether a file is on this medium."""
        ...

    def write(self, path: str, offset: int, data: bytes, go: Callable[[], int]) -> int:
        """Bytes are written."""
        ...

    def truncate(self, path: str, size: int, go: Callable[[], int]) -> int:
        """A file is cut, or made longer."""
        ...

    def sync(self, path: str) -> int:
        """Makes writes durable. The real file is never synced, because that takes long."""
        ...

    def read(self, path: str, go: Callable[[], int]) -> int:
        """Bytes are read."""
        ...

    def delete(self, path: str, go: Callable[[], int]) -> int:
        """A file is deleted."""
        ...


@contextmanager
def intercepted(medium: Callable[[], Medium | None]) -> Iterator[None]:
    """Has files that SQLite opens meanwhile pass through the medium of the moment, if they are on it.

    Raises:
        UnsupportedSqlite: the library that ``sqlite3`` uses cannot be reached.
    """
    library = ctypes.CDLL(_sqlite3.__file__)
    try:
        find, register, unregister, source = (
            library.sqlite3_vfs_find,
            library.sqlite3_vfs_register,
            library.sqlite3_vfs_unregister,
            library.sqlite3_sourceid,
        )
    except AttributeError:
        raise UnsupportedSqlite("the SQLite of this Python exports no functions") from None
    source.restype = ctypes.c_char_p
    with closing(sqlite3.connect(":memory:")) as connection:
        [(own,)] = connection.execute("SELECT sqlite_source_id()")
    if source().decode() != own:
        raise UnsupportedSqlite("the SQLite found is not the one that this Python uses")
    find.restype = _POINTER
    find.argtypes = [ctypes.c_char_p]
    register.argtypes = [_POINTER, ctypes.c_int]
    unregister.argtypes = [_POINTER]
    shim = _Shim(find(None), medium)
    register(shim.address, 1)
    try:
        yield
    finally:
        gc.collect()  # closes what is still open
        unregister(shim.address)
        # Files may be open still whose functions are those of the shim.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(shim))


@final
class _Shim:
    def __init__(self, system: int, medium: Callable[[], Medium | None]) -> None:
        self._medium = medium
        self._system = _Vfs.from_address(system)
        self._vfs = _Vfs()
        ctypes.memmove(ctypes.byref(self._vfs), system, ctypes.sizeof(_Vfs))
        self._vfs.zName = b"duolog-simulated"
        self._open = _XOPEN(self._system.xOpen)
        self._delete = _XDELETE(self._system.xDelete)
        self._files: dict[int, tuple[str, Medium, _Native]] = {}
        self._natives: dict[int, _Native] = {}
        self._callbacks: list[Any] = [_XOPEN(self._on_open), _XDELETE(self._on_delete)]
        self._vfs.xOpen, self._vfs.xDelete = (_address(each) for each in self._callbacks)
        self._replaced = {
            "xClose": _XCLOSE(self._on_close),
            "xRead": _XIO(self._on_read),
            "xWrite": _XIO(self._on_write),
            "xTruncate": _XTRUNCATE(self._on_truncate),
            "xSync": _XSYNC(self._on_sync),
        }
        self.address = ctypes.addressof(self._vfs)

    def _on_open(self, vfs: int, name: int, file: int, flags: int, out: int) -> int:
        code = self._open(vfs, name, file, flags, out)
        medium = self._medium()
        if code or not name or medium is None:
            return int(code)
        path = ctypes.string_at(name).decode()
        if medium.opens(path):
            opened = _File.from_address(file)
            native = self._native(opened.methods)
            self._files[file] = (path, medium, native)
            opened.methods = ctypes.pointer(native.methods)
        return OK

    def _native(self, methods: Any) -> _Native:  # noqa: ANN401 (a pointer of ctypes)
        at = ctypes.addressof(methods.contents)
        native = self._natives.get(at)
        if native is None:
            native = self._natives[at] = _Native(methods.contents, self._replaced)
        return native

    def _on_delete(self, vfs: int, name: int, sync: int) -> int:
        path, medium = ctypes.string_at(name).decode(), self._medium()
        if medium is None or not medium.opens(path):
            return int(self._delete(vfs, name, sync))
        return medium.delete(path, lambda: self._delete(vfs, name, sync))

    def _on_close(self, file: int) -> int:
        _, _, native = self._files.pop(file)
        return int(native.close(file))

    def _on_read(self, file: int, data: int, size: int, offset: int) -> int:
        path, medium, native = self._files[file]
        return medium.read(path, lambda: native.read(file, data, size, offset))

    def _on_write(self, file: int, data: int, size: int, offset: int) -> int:
        path, medium, native = self._files[file]
        content = ctypes.string_at(data, size)
        return medium.write(path, offset, content, lambda: native.write(file, data, size, offset))

    def _on_truncate(self, file: int, size: int) -> int:
        path, medium, native = self._files[file]
        return medium.truncate(path, size, lambda: native.truncate(file, size))

    def _on_sync(self, file: int, _flags: int) -> int:
        path, medium, _ = self._files[file]
        return medium.sync(path)


@final
class _Native:
    """The system's functions for a kind of file, and the table that is put in their place."""

    def __init__(self, methods: _Methods, replaced: dict[str, Any]) -> None:
        self.close = _XCLOSE(methods.xClose)
        self.read = _XIO(methods.xRead)
        self.write = _XIO(methods.xWrite)
        self.truncate = _XTRUNCATE(methods.xTruncate)
        self.methods = _Methods()
        ctypes.memmove(
            ctypes.byref(self.methods), ctypes.addressof(methods), ctypes.sizeof(_Methods)
        )
        for name, callback in replaced.items():
            setattr(self.methods, name, _address(callback))


def _address(callback: Any) -> int:  # noqa: ANN401 (a function of ctypes)
    return ctypes.cast(callback, _POINTER).value or 0
