"""What all integration tests share.

The commands they start leave nothing in the folders of whoever runs them. And nobody of ours breaks the dialog of
FILEMQ, in any test, whatever it is about.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from specwire.runtime.capture.recorder import Recorder
from specwire.runtime.filemq import FilemqClient, FilemqServer
from tests.integration.filemq_watch import DialogWatch, Role


@pytest.fixture(scope="session", autouse=True)
def own_caches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let every process that is started from here have caches of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", os.fspath(tmp_path_factory.mktemp("caches")))
        yield


@pytest.fixture(scope="session", autouse=True)
def own_sockets() -> Iterator[None]:
    """Let them answer for their status in a folder that goes; pytest's own have names too long for a socket."""
    with TemporaryDirectory(prefix="sw-") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", folder)
        yield


class Both:
    """A recorder for two."""

    def __init__(self, *taps: Recorder) -> None:
        self._taps = taps

    def record(self, *, sender: str, peer: str, conversation: str, frames: Sequence[bytes]) -> None:
        """Take one message."""
        for tap in self._taps:
            tap.record(sender=sender, peer=peer, conversation=conversation, frames=frames)


@pytest.fixture(autouse=True)
def filemq_dialogs(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[DialogWatch]]:
    """Watch every server and client that a test makes in this process, beside the tap that the test gave it.

    Each side answers for what it says itself; what the other side says may be a test's own hostile doing.
    """
    watches: list[DialogWatch] = []

    def tapped(make: Callable[..., None], role: Role) -> Callable[..., None]:
        def make_tapped(self: object, *given: Any, tap: Recorder | None = None, **settings: Any) -> None:
            watch = DialogWatch(role, settings.get("protocol", "filemq"))
            watches.append(watch)
            make(self, *given, tap=watch if tap is None else Both(watch, tap), **settings)

        return make_tapped

    monkeypatch.setattr(FilemqServer, "__init__", tapped(FilemqServer.__init__, "S"))
    monkeypatch.setattr(FilemqClient, "__init__", tapped(FilemqClient.__init__, "C"))
    yield watches
    assert [fault for watch in watches for fault in watch.own] == []
