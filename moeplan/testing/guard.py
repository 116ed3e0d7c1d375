"""Notices what a plugin's hook may not do: look at a clock, draw random numbers, open sockets, files, processes.

An audit hook sees every route to files, sockets and processes; it cannot be taken off again, so that a guard belongs
into a process of its own. Clocks and random numbers have no audit event: their functions are replaced.

Source: Python documentation, "Audit events table".
"""

from __future__ import annotations

import datetime
import os
import random
import secrets
import site
import sys
import sysconfig
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

__all__ = ["Guard", "ImpureError"]

_CODE = (".py", ".pyc", ".so", ".pth", ".pyi")
_PROCESSES = ("subprocess.", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "pty.spawn")
_CHANGES = ("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod",
            "os.chown", "os.utime", "shutil.", "tempfile.", "os.putenv", "os.unsetenv", "os.kill")  # fmt: skip
_CLOCKS = ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time",
           "localtime", "gmtime", "ctime", "strftime", "sleep")  # fmt: skip
_DRAWN = (
    (random, ("random", "randint", "randrange", "choice", "choices", "shuffle", "sample", "uniform", "getrandbits",
              "gauss", "betavariate", "randbytes")),
    (secrets, ("token_bytes", "token_hex", "token_urlsafe", "randbelow", "randbits", "choice")),
    (uuid, ("uuid1", "uuid4", "getnode")),
    (os, ("urandom", "getrandom")),
)  # fmt: skip


class ImpureError(Exception):
    """What a hook did that it may not do."""


class Guard:
    """Armed while a hook runs; ``seen`` is what it did, once each, whether or not it caught the exception."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self._armed = False
        self._standard = tuple(os.path.realpath(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib"))
        self._sites = tuple(os.path.realpath(one) for one in _site_directories())

    def install(self) -> None:
        """Put the guard in place, before anything of a plugin is imported."""
        sys.addaudithook(self._audit)
        for name in _CLOCKS:
            self._replace(time, name, "looks at a clock")
        for module, names in _DRAWN:
            for name in names:
                self._replace(module, name, "draws random numbers")
        datetime.datetime = _guarded(datetime.datetime, self, ("now", "utcnow", "today"))  # type: ignore[misc]
        datetime.date = _guarded(datetime.date, self, ("today",))  # type: ignore[misc]

    @contextmanager
    def armed(self) -> Iterator[None]:
        """Notice what happens within."""
        self._armed = True
        try:
            yield
        finally:
            self._armed = False

    def refuse(self, what: str) -> NoReturn:
        """Note what was done and stop it."""
        if what not in self.seen and len(self.seen) < 20:
            self.seen.append(what)
        raise ImpureError(what)

    def _replace(self, module: Any, name: str, what: str) -> None:
        real: Callable[..., Any] | None = getattr(module, name, None)
        if real is None:
            return

        def guarded(*args: Any, **kwargs: Any) -> Any:
            if self._armed and not self._is_standard(sys._getframe(1).f_code.co_filename):
                self.refuse(f"{what}: {module.__name__}.{name}")
            return real(*args, **kwargs)

        setattr(module, name, guarded)

    def called_from_outside(self, depth: int) -> bool:
        """Return whether the guard is armed and the frame at ``depth`` is none of the standard library's."""
        return self._armed and not self._is_standard(sys._getframe(depth + 1).f_code.co_filename)

    def _is_standard(self, file: str) -> bool:
        """Return whether code is the standard library's: logging may look at a clock of its own accord."""
        if file.startswith("<frozen"):
            return True
        path = os.path.realpath(file)
        return _below(path, self._standard) and not _below(path, self._sites)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._armed:
            return
        if event == "open":
            self._armed = False  # what is asked here opens nothing, but may be asked about
            try:
                allowed = self._may_open(*arguments[:3])
            finally:
                self._armed = True
            if not allowed:
                self.refuse(f"opens {_shown(arguments[0])}")
        elif event in ("os.listdir", "os.scandir"):
            if not self._may_list(arguments[0] if arguments else None):
                self.refuse(f"lists {_shown(arguments[0] if arguments else '.')}")
        elif event.startswith("socket."):
            self.refuse(f"uses the network: {event}")
        elif event.startswith(_PROCESSES):
            self.refuse(f"starts a process: {event}")
        elif event.startswith(_CHANGES):
            self.refuse(f"changes something outside: {event}")

    def _may_open(self, path: Any, mode: Any, flags: Any) -> bool:
        if isinstance(path, int):
            return True
        if (isinstance(mode, str) and set(mode) & set("wax+")) or (isinstance(flags, int) and flags & _WRITING):
            return False
        real = os.path.realpath(os.fsdecode(path))
        return (
            real.endswith(_CODE)
            or real in _import_roots()  # looked at by an import that goes along the path
            or ".dist-info" in real
            or _below(real, self._standard)
            or _below(real, _package_directories())
        )

    def _may_list(self, path: Any) -> bool:
        if path is None or isinstance(path, int):
            return isinstance(path, int)
        real = os.path.realpath(os.fsdecode(path))
        return (
            real in _import_roots()
            or _below(real, (*self._standard, *self._sites))
            or _below(real, _package_directories())
        )


_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def _site_directories() -> list[str]:
    found = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    return [*found, *site.getsitepackages(), site.getusersitepackages()]


def _package_directories() -> tuple[str, ...]:
    """Return the directories of all packages that are imported: what lies in them is a distribution's own data."""
    found: set[str] = set()
    for name, module in list(sys.modules.items()):
        if "." not in name:
            found.update(os.path.realpath(path) for path in getattr(module, "__path__", ()) or ())
    return tuple(found)


def _import_roots() -> set[str]:
    return {os.path.realpath(entry) for entry in sys.path if entry}


def _below(path: str, directories: tuple[str, ...]) -> bool:
    return any(path == one or path.startswith(one.rstrip(os.sep) + os.sep) for one in directories)


def _shown(path: Any) -> str:
    return ascii(os.fsdecode(path) if isinstance(path, str | bytes) else path)[:200]


def _guarded(real: Any, guard: Guard, names: tuple[str, ...]) -> Any:
    """Return a date class whose ways to today are guarded; instances of the real one are instances of it."""

    class Meta(type):
        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, real)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, real)

    def method(name: str) -> Any:
        def ask(cls: type, *args: Any, **kwargs: Any) -> Any:
            if guard.called_from_outside(1):
                guard.refuse(f"looks at a clock: {real.__name__}.{name}")
            return getattr(real, name)(*args, **kwargs)

        return classmethod(ask)

    return Meta(real.__name__, (real,), {name: method(name) for name in names})
