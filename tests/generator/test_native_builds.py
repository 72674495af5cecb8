"""The compiled codec of the packages: that it does the work itself, and lets nothing be read or made amiss.

That it agrees with the pure one is shown by ``tests/generated``, which runs with both.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import ModuleType
from typing import Any, NoReturn
from unittest import mock

import pytest

from specwire.generated.errors import DecodeError
from tests.generated.builds import package
from tests.generated.hand_vectors import HAND
from tests.generated.vectors import PACKAGES, Vector, recorded

every_package = pytest.mark.parametrize("name", PACKAGES)
ROLES = (None, "C", "B", "W")


def vectors(name: str) -> list[Vector]:
    return [*recorded(name), *(vector for vector in HAND if vector.package == name)]


def by_sender(module: ModuleType) -> list[dict[str, Any]]:
    """The ways to call `decode`: with each sender, where it takes one."""
    takes = "sender" in module.codec.decode.__kwdefaults__
    return [{"sender": role} for role in ROLES] if takes else [{}]


def accepted(name: str) -> list[tuple[tuple[bytes, ...], dict[str, Any], Any]]:
    """What the pure codec reads: frames, arguments, message."""
    codec = package(name, "native").codec
    found = []
    for vector in vectors(name):
        for arguments in by_sender(package(name, "native")):
            try:
                found.append((vector.frames, arguments, codec.decode(vector.frames, **arguments)))
            except DecodeError:
                continue
    return found


@contextmanager
def without_the_pure_codec(module: ModuleType) -> Iterator[None]:
    """Whatever is handed to the pure codec is a fault."""

    def refuse(*_: object, **__: object) -> NoReturn:
        raise AssertionError("handed to the pure codec")

    with mock.patch.object(module.codec, "decode", refuse):
        patches = [mock.patch.object(twin, "encode", refuse) for twin in module.codec.MESSAGES.values()]
        for patch in patches:
            patch.start()
        try:
            yield
        finally:
            for patch in patches:
                patch.stop()


@every_package
def test_every_recorded_message_is_read_and_written_in_c(name: str) -> None:
    module = package(name, "native")
    messages = accepted(name)
    assert messages
    written = [message.encode() for _, _, message in messages]
    with without_the_pure_codec(module):
        for (frames, arguments, message), octets in zip(messages, written, strict=True):
            decoded = module.decode(frames, **arguments)
            assert type(decoded) is module.MESSAGES[type(message).__name__]
            # First as it was read, then of the values that were asked for.
            assert decoded.encode() == octets
            assert decoded.replace().encode() == octets
            assert decoded == message


@every_package
def test_views_byte_arrays_and_strict_give_messages_of_the_same_class(name: str) -> None:
    module = package(name, "native")
    for frames, arguments, message in accepted(name):
        views: list[list[Any]] = [list(map(memoryview, frames)), list(map(bytearray, frames))]  # type: ignore[arg-type]
        for given in (*views, list(frames), tuple(frames)):
            decoded = module.decode(given, **arguments, copy=False)
            assert decoded == message and type(decoded) is module.MESSAGES[type(message).__name__]
        try:
            module.codec.decode(frames, **arguments, strict=True)
        except DecodeError:
            continue
        assert module.decode(frames, **arguments, strict=True) == message


@every_package
def test_every_way_to_call_a_class_makes_the_whole_message(name: str) -> None:
    """``type.__call__`` is what C libraries use, which know nothing of how classes are called fast."""
    module = package(name, "native")
    for _, _, message in accepted(name)[:20]:
        class_ = module.MESSAGES[type(message).__name__]
        fields = {field: getattr(message, field) for field in class_.__match_args__}
        ways: list[Callable[..., Any]] = [
            class_,
            partial(type.__call__, class_),
            partial(class_.__new__, class_),
        ]
        assert [way(**fields) == message for way in ways] == [True] * 3
        if any(field.default is field.empty for field in signature_of(class_)):
            for way in ways:
                with pytest.raises(TypeError):
                    way()


def signature_of(class_: Any) -> list[Any]:
    return list(class_.__signature__.parameters.values())


def test_no_class_can_be_made_of_a_message_class() -> None:
    with pytest.raises(TypeError):
        type("Mine", (package("filemq", "native").Nom,), {})


def test_octets_given_for_pairs_are_not_taken_for_what_was_read() -> None:
    """Undecoded pairs are kept as octets; a program that gives octets for pairs is told that it is wrong."""
    filemq = package("filemq", "native")
    wrong = filemq.Icanhaz("/a", options=b"\x01\x03a=b")
    assert wrong.options == b"\x01\x03a=b"
    with pytest.raises(ValueError, match=r"ICANHAZ.options: expected a tuple"):
        wrong.encode()


def test_pairs_are_made_once() -> None:
    filemq = package("filemq", "native")
    message = filemq.decode(filemq.Icanhaz("/a", options=(("a", "b"),)).encode())
    assert message.options is message.options
    assert message.options == (("a", "b"),)


def test_threads_ask_for_pairs_at_once() -> None:
    filemq = package("filemq", "native")
    pairs = tuple((f"name-{number}", "x" * 20) for number in range(200))
    messages = [filemq.decode(filemq.Icanhaz("/a", cache=pairs).encode()) for _ in range(50)]
    start, found = threading.Barrier(4), []

    def work() -> None:
        start.wait(timeout=120)
        found.append(all(message.cache == pairs for message in messages))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert found == [True] * 4


def test_a_list_that_changes_while_it_is_read_is_no_danger() -> None:
    """Making objects can run the garbage collector, and that any code: here one that empties the list of frames."""
    cmb1 = package("cmb1", "native")
    frames = list(cmb1.Request(topic="a", routes=tuple(b"id-%d" % n for n in range(50))).encode())

    class Emptied:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            frames.clear()

    threshold, emptied = gc.get_threshold(), 0
    gc.collect()
    gc.freeze()  # what is there already need not be looked at sixty times
    try:
        for first in range(1, 30):
            original = list(frames)
            Emptied()
            gc.set_threshold(first)
            try:
                cmb1.decode(frames)
            except DecodeError:
                pass
            finally:
                gc.set_threshold(*threshold)
            emptied += not frames
            gc.collect()
            frames[:] = original
    finally:
        gc.set_threshold(*threshold)
    assert emptied
    assert cmb1.decode(frames).topic == "a"


@pytest.mark.skipif(
    not os.path.exists("/proc/self/statm"), reason="the system does not say how much memory is used"
)
@every_package
def test_memory_comes_back(name: str) -> None:
    """Read, write, ask, refuse: after the first rounds nothing more is needed."""
    module = package(name, "native")
    messages = accepted(name)[:6]

    def work(rounds: int) -> None:
        for _ in range(rounds):
            for frames, arguments, _ in messages:
                decoded = module.decode(frames, **arguments)
                decoded.encode()
                decoded.replace().encode()
                hash(decoded)

    work(300)
    before = resident()
    work(1500)
    assert resident() - before < 2_000_000


def resident() -> int:
    """The octets of memory that the process holds."""
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
