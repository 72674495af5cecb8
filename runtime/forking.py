"""Isolation of forked children from their server.

A task, or a library that it uses, may fork: `os.fork`, `multiprocessing`, or `subprocess` with
`preexec_fn`. The child is a copy of the server. Without this module it would share

- the descriptor to which Python writes signal numbers: SIGTERM for the child would stop the server;
- the signal handlers of the server: SIGTERM would not end the child;
- descriptors that the kernel releases when their last copy is closed: file locks, connections and
  listening sockets. A child that hangs would keep them after the server was killed.

So a child gives them up before any other code runs in it. The sockets of a server are those that
an epoll instance watches: each asyncio loop and each I/O thread of libzmq has one. A socket that a
task opened for its children stays open. A child that calls exec needs none of this: exec restores
the default signal handlers and closes the descriptors.
"""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol
from weakref import WeakSet


class Inherited(Protocol):
    """Object with descriptors that a forked child must not keep."""

    def close_in_child(self) -> None:
        """Close the child's copies of descriptors, without unlocking what the server holds."""


_inherited: WeakSet[Inherited] = WeakSet()
_signals: set[int] = set()
_saved = threading.local()


def withhold(inherited: Inherited) -> None:
    """Register an object: each child calls its `close_in_child`, as long as the object exists."""
    _inherited.add(inherited)


def handle_signal(number: int, callback: Callable[[], None]) -> None:
    """Call `callback` on the running event loop at each signal; children get the default handler.

    Servers use this instead of `add_signal_handler`. If a process never calls it, its children keep
    its sockets.
    """
    _signals.add(number)
    asyncio.get_running_loop().add_signal_handler(number, callback)


def _block_signals() -> None:
    """Block the signals: the child would report an early one to the server."""
    _saved.mask = signal.pthread_sigmask(signal.SIG_BLOCK, _signals)


def _restore_signals() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _saved.mask)


def _isolate_child() -> None:
    if _signals:
        signal.set_wakeup_fd(-1)
        _detach_sockets()
    for number in _signals:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    for inherited in [*_inherited]:
        with suppress(OSError):  # it is closed already
            inherited.close_in_child()
    _restore_signals()


def _detach_sockets() -> None:
    """Replace the epoll instances, and the sockets that they watch, with ``/dev/null``.

    The numbers stay in use, because the child's copies of server objects may close them later.
    """
    watchers = list(_epoll_instances())
    sockets = {number for watcher in watchers for number in _watched_sockets(watcher)}
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for number in (*watchers, *sockets):
        os.dup2(null, number, inheritable=False)
    os.close(null)


def _epoll_instances() -> Iterator[int]:
    for name in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # the descriptor that `listdir` used
            if os.readlink(f"/proc/self/fd/{name}") == "anon_inode:[eventpoll]":
                yield int(name)


def _watched_sockets(watcher: int) -> Iterator[int]:
    """Yield the sockets that an epoll instance watches: ``tfd: NUMBER`` in proc(5)."""
    for line in Path(f"/proc/self/fdinfo/{watcher}").read_text().splitlines():
        if line.startswith("tfd:"):
            number = int(line.split()[1])
            with suppress(OSError):  # it is closed
                if stat.S_ISSOCK(os.fstat(number).st_mode):
                    yield number


os.register_at_fork(before=_block_signals, after_in_parent=_restore_signals, after_in_child=_isolate_child)
