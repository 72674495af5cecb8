"""Separation of forked children from the server that they come from.

A task, or a library that it uses, may fork: `os.fork`, `multiprocessing`, `subprocess` with `preexec_fn`. The
child is a copy of the server. It would share

- the descriptor to which Python writes the number of a signal, so that SIGTERM for the child stops the server;
- the signal handlers of the server, so that SIGTERM does not end the child;
- descriptors that the kernel acts on when their last copy is closed: locks of files, connections, and
  listening sockets. After the server was killed, a child that hangs would keep them.

So a child gives them up before any other code runs in it. The sockets of a server are those that an epoll
instance watches: asyncio's loops and the I/O threads of libzmq have one each. A socket that a task has opened
for its children stays open. Programs that replace the child (exec) are not concerned: they get default
handlers, and descriptors are closed at exec.
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
    """Something that a forked child must not have."""

    def close_in_child(self) -> None:
        """Close the child's copies of descriptors, and nothing that the server shares with it."""


_inherited: WeakSet[Inherited] = WeakSet()
_signals: set[int] = set()
_forking = threading.local()


def withhold(inherited: Inherited) -> None:
    """Have `close_in_child` called in each child, as long as the object exists."""
    _inherited.add(inherited)


def handle_signal(number: int, callback: Callable[[], None]) -> None:
    """Call `callback` on the running event loop when the signal comes; children get the default handler.

    Servers call this. Children of a process that has not called it keep its sockets.
    """
    _signals.add(number)
    asyncio.get_running_loop().add_signal_handler(number, callback)


def _block() -> None:
    """Block the signals: one that came early in the child would be reported to the server."""
    _forking.mask = signal.pthread_sigmask(signal.SIG_BLOCK, _signals)


def _unblock() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _forking.mask)


def _begin_child() -> None:
    if _signals:
        signal.set_wakeup_fd(-1)
        _leave_sockets()
    for number in _signals:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    for inherited in [*_inherited]:
        with suppress(OSError):  # the number is free already
            inherited.close_in_child()
    _unblock()


def _leave_sockets() -> None:
    """Replace the epoll instances, and the sockets that they watch, by ``/dev/null``.

    The numbers stay in use, because objects of the server may close them later in the child.
    """
    watchers = list(_epolls())
    sockets = {number for watcher in watchers for number in _watched_by(watcher)}
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for number in (*watchers, *sockets):
        os.dup2(null, number, inheritable=False)
    os.close(null)


def _epolls() -> Iterator[int]:
    for name in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # the descriptor of the listing
            if os.readlink(f"/proc/self/fd/{name}") == "anon_inode:[eventpoll]":
                yield int(name)


def _watched_by(watcher: int) -> Iterator[int]:
    """Yield the sockets that an epoll instance watches: ``tfd: NUMBER`` in proc(5)."""
    for line in Path(f"/proc/self/fdinfo/{watcher}").read_text().splitlines():
        if line.startswith("tfd:"):
            number = int(line.split()[1])
            with suppress(OSError):  # it is closed
                if stat.S_ISSOCK(os.fstat(number).st_mode):
                    yield number


os.register_at_fork(before=_block, after_in_parent=_unblock, after_in_child=_begin_child)
