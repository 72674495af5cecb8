"""The faults that the C implementation of FILEMQ has and ours must not, one after the other, each with its tests.

`FAULTS` names them in the words of the measurements, with what shows that ours has none; most of these tests stand
with the part they are about, and those that are about no one part stand here. A fault without a test and a test that
is gone fail.

Windows builds, which its users asked for too, are not among ours: an inbox is locked and its names are walked with
calls that Windows has not.
"""

from __future__ import annotations

import asyncio
import os
import tracemalloc
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

import pytest

from specwire.generated.filemq import Cheezburger, Hugz, HugzOk, Icanhaz, IcanhazOk, Nom, Ohai, OhaiOk
from specwire.runtime.filemq.events import FileReceived, Subscribed
from specwire.runtime.filemq.policy import InboxRules
from tests.integration.filemq_raw import RawPeer, fake_server, raw_peers
from tests.integration.filemq_scene import event_of, in_step, run, serving, subscribing

HERE = "test_filemq_named_faults"

FAULTS: Mapping[str, tuple[str, ...]] = {
    "any malformed frame from anyone ends the server": (
        "integration.test_filemq_hostile.test_random_and_damaged_frames_do_not_stop_the_server",
        "integration.test_filemq_hostile.test_answers_to_what_is_wrong",
        "integration.test_filemq_c_client.test_bad_messages_end_one_client_and_no_server",
    ),
    "path traversal in the client (`/../escaped.txt` is written outside the inbox, and deletes work too)": (
        "integration.test_filemq_hostile.test_hostile_names_write_nothing_outside",
        "integration.test_filemq_c_server.test_paths_out_of_the_inbox_are_refused",
        "runtime.filemq.test_inbox.test_no_name_reaches_outside",
    ),
    "a shorter new version of a file leaves the old tail": (
        "runtime.filemq.test_inbox.test_shorter_version_leaves_no_tail",
        "integration.test_filemq_transfer.test_changes_while_running",
        "integration.test_filemq_c_client.test_new_versions_leave_no_tail",
    ),
    "a missing end-of-file chunk corrupts the next file": (
        f"integration.{HERE}.test_missing_end_of_file_chunk_corrupts_nothing",
        "integration.test_filemq_c_server.test_file_without_an_end_is_ended_by_the_next",
        "runtime.filemq.test_client_engine.test_next_file_discards_an_announced_one_that_is_short",
    ),
    "wrong deletes of files that still exist": (
        f"integration.{HERE}.test_file_that_still_exists_is_not_deleted",
        "integration.test_filemq_c_server.test_deletions_keep_a_copy",
        "integration.test_filemq_c_server.test_file_of_our_own_is_not_deleted",
    ),
    "prefix matching is raw (`/foo` also matches `/foobar`)": (
        "runtime.filemq.test_names.test_a_path_covers_whole_components",
        "integration.test_filemq_transfer.test_paths_and_publications",
        "integration.test_filemq_c_client.test_only_what_is_below_the_path_is_sent",
    ),
    "the credit sum wraps at 2^64": (
        "integration.test_filemq_hostile.test_credit_that_overflows_is_refused",
        "runtime.filemq.test_engine_properties.test_credit_never_wraps",
        "runtime.filemq.test_libfilemq_dialect.test_credit_that_overflows_is_refused",
    ),
    "2 KB leaked per chunk": (
        f"integration.{HERE}.test_chunks_leave_no_memory_behind",
        "integration.test_filemq_c_server.test_many_small_files_cost_no_memory_that_stays",
    ),
    "no reconnect": (
        "integration.test_filemq_transfer.test_server_restart_is_followed",
        "integration.test_filemq_faults_network.test_connection_cut_during_a_transfer",
        "integration.test_filemq_c_server.test_server_that_is_started_again_is_followed",
    ),
    "a second subscribe hangs": (
        f"integration.{HERE}.test_second_subscribe_is_answered",
        "integration.test_filemq_c_server.test_second_subscription_while_connected",
    ),
    # The protocol has no word for one; that ours does not carry them either is a decision and not a fault.
    "empty directories are not carried": (
        f"integration.{HERE}.test_empty_directories_are_not_carried_and_do_no_harm",
    ),
}

WISHES: Mapping[str, tuple[str, ...]] = {
    "RESYNC that honours the cache": (
        "integration.test_filemq_transfer.test_resync_sends_only_what_differs",
    ),
    "no crash on delete": (f"integration.{HERE}.test_files_deleted_while_they_are_sent_end_nothing",),
    "credit per client": (
        f"integration.{HERE}.test_credit_is_each_clients_own",
        "runtime.filemq.test_server_engine.test_each_client_has_its_own_credit",
    ),
}

NAMED = [(words, test) for words, tests in {**FAULTS, **WISHES}.items() for test in tests]


@pytest.mark.parametrize(("words", "test"), NAMED, ids=[test.rpartition(".")[2] for _, test in NAMED])
def test_each_fault_has_its_tests(words: str, test: str) -> None:
    module, _, name = test.rpartition(".")
    assert callable(getattr(import_module(f"tests.{module}"), name, None)), f"{words}: {test} is gone"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    return folder


def test_missing_end_of_file_chunk_corrupts_nothing(tmp_path: Path) -> None:
    """A file is cut off where the next one begins, and neither has octets of the other."""

    async def story() -> None:
        async with (
            fake_server() as server,
            subscribing(server.endpoint, tmp_path / "inbox") as (client, _),
        ):
            watch = client.events()
            await server.subscribed()
            server.send_file("/first", b"of the first")
            server.send_file("/second", b"of the ")
            server.send_file("/second", b"second", offset=7)
            server.send_file("/third", b"")
            got = [await event_of(watch, FileReceived) for _ in range(3)]
        assert [event.path for event in got] == ["/first", "/second", "/third"]
        assert not any(event.verified for event in got), "whoever says nothing of a file proves nothing"

    run(story)
    assert (tmp_path / "inbox/first").read_bytes() == b"of the first"
    assert (tmp_path / "inbox/second").read_bytes() == b"of the second"
    assert (tmp_path / "inbox/third").read_bytes() == b""


def test_file_that_still_exists_is_not_deleted(tmp_path: Path, source: Path) -> None:
    """Whatever is done to a file that stays, no deletion of it is ever said."""
    file, other = source / "file", source / "other"

    def replace() -> None:
        other.write_bytes(b"replaced")
        other.rename(file)

    steps: dict[str, Callable[[], object]] = {
        "touched": lambda: os.utime(file),
        "made older": lambda: os.utime(file, ns=(1, 1)),
        "its mode changed": lambda: file.chmod(0o640),
        "written over": lambda: file.write_bytes(b"written over"),
        "longer": lambda: file.write_bytes(b"long" * 100_000),
        "emptied": lambda: os.truncate(file, 0),
        "replaced by a rename": replace,
        "linked to": lambda: os.link(file, other),
        "the link removed": lambda: other.unlink(),
    }

    async def story() -> None:
        file.write_bytes(b"first")
        async with (
            serving(source) as (server, watch),
            subscribing(server.endpoint, tmp_path / "inbox") as (client, _),
        ):
            lines = watch.keep_transcript()
            for step in steps.values():
                step()
                await in_step(server, client)
            assert {line.name for line in lines if line.deletes} == {"/other"}, "which was there for a while"
            assert (tmp_path / "inbox/file").read_bytes() == b"replaced"

    run(story)


def test_chunks_leave_no_memory_behind(tmp_path: Path, source: Path) -> None:
    """The C side leaks 2 KB with each chunk, 8 MB here; server and client stay in one process, far below that."""
    chunks, octets = 4000, 500

    async def story() -> None:
        (source / "warm").write_bytes(os.urandom(100 * octets))
        async with (
            serving(source, chunk_octets=octets) as (server, watch),
            subscribing(server.endpoint, tmp_path / "inbox") as (client, _),
        ):
            await in_step(server, client)
            tracemalloc.start()
            before, _ = tracemalloc.get_traced_memory()
            (source / "file").write_bytes(os.urandom(chunks * octets))
            await in_step(server, client)
            after, _ = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert watch.seen["S:Cheezburger"] > chunks
            assert after - before < 100 * chunks

    run(story)


def test_second_subscribe_is_answered(tmp_path: Path, source: Path) -> None:
    """To another path, to the same one, below it and above it; and files go on arriving."""
    for name in ("a/file", "b/file"):
        (source / name).parent.mkdir()
        (source / name).write_bytes(name.encode())

    async def story() -> None:
        async with (
            serving(source) as (server, watch),
            subscribing(server.endpoint, tmp_path / "inbox", "/a") as (client, _),
        ):
            events = client.events()
            assert (await event_of(events, Subscribed)).path == "/a"
            for path in ("/b", "/b", "/a", "/b/file", "/"):
                client.subscribe(path)
                assert (await event_of(events, Subscribed)).path == path
            await in_step(server, client)
            assert watch.seen["C:Icanhaz"] == watch.seen["S:IcanhazOk"] == 6

    run(story)


def test_empty_directories_are_not_carried_and_do_no_harm(tmp_path: Path, source: Path) -> None:
    """No message, no refusal, no folder in the inbox; and a folder that becomes empty leaves with its last file."""

    async def story() -> None:
        (source / "empty/and/deep").mkdir(parents=True)
        (source / "full").mkdir()
        (source / "full/file").write_bytes(b"x")
        async with (
            serving(source) as (server, _),
            subscribing(server.endpoint, tmp_path / "inbox") as (client, _),
        ):
            await in_step(server, client)
            assert (tmp_path / "inbox/full").is_dir()
            (source / "later").mkdir()
            (source / "full/file").unlink()
            await in_step(server, client)
            assert server.counters.refusals == client.counters.refusals == 0
        assert [path.name for path in (tmp_path / "inbox").iterdir()] == [".specwire-inbox"]

    run(story)


def test_files_deleted_while_they_are_sent_end_nothing(tmp_path: Path, source: Path) -> None:
    """Each of 40 files goes once its first chunk is on its way; the same peering serves the rest."""

    async def story() -> None:
        for i in range(40):
            (source / f"{i:02}").write_bytes(os.urandom(60_000))
        (source / "stays").write_bytes(os.urandom(60_000))
        async with (
            serving(source, chunk_octets=1000) as (server, watch),
            subscribing(
                server.endpoint,
                tmp_path / "inbox",
                window_octets=4000,
                rules=InboxRules(accept_deletions=True),
            ) as (client, _),
        ):
            for i in range(40):
                while not watch.begun[f"/{i:02}"]:
                    await asyncio.sleep(0)
                (source / f"{i:02}").unlink()
            await in_step(server, client)
            assert list(server.digests()) == ["/stays"]
            assert server.clients == client.counters.peerings == 1

    run(story)


def test_credit_is_each_clients_own(source: Path) -> None:
    """Three clients with credit of their own each: none, a little, and more than there is; none uses another's."""
    (source / "file").write_bytes(os.urandom(5000))

    async def content(raw: RawPeer, chunks: int) -> int:
        commands = [await raw.hear() for _ in range(chunks)]
        return sum(len(command.chunk) for command in commands if isinstance(command, Cheezburger))

    async def story() -> None:
        async with serving(source, chunk_octets=1000) as (server, _), raw_peers(server.endpoint) as peer:
            clients = [peer() for _ in range(3)]
            for raw in clients:
                raw.send(Ohai())
                assert type(await raw.hear()) is OhaiOk
                raw.send(Icanhaz(path="/", options=(("RESYNC", "1"),), cache=()))
                assert type(await raw.hear()) is IcanhazOk
            none, little, plenty = clients
            little.send(Nom(credit=1500))
            plenty.send(Nom(credit=2**63))
            assert await content(plenty, chunks=6) == 5000
            assert await content(little, chunks=2) == 1500
            for raw in (none, little, plenty):
                raw.send(Hugz())
                assert type(await raw.hear()) is HugzOk, "nothing was waiting before it"

    run(story)
