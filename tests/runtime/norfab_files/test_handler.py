"""``fss.service.broker`` as peers see it: statuses, bodies, and the order of pieces."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import msgspec
import pytest

from specwire.runtime.norfab.files import FileHandler


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "a.bin").write_bytes(bytes(range(256)) * 1000)
    (root / "sub/b.txt").write_text("b")
    return root


def ask(root: Path, *questions: tuple[str, dict[str, Any]], user: str = "") -> list[tuple[int, bytes]]:
    """Ask all questions at once; return the answers in the order in which they come."""

    async def run() -> list[tuple[int, bytes]]:
        handler, answers = FileHandler(root), []

        async def one(task: str, kwargs: dict[str, Any]) -> None:
            answers.append(await handler.perform(task, b"[]", json.dumps(kwargs).encode(), user))

        await asyncio.gather(*(one(*question) for question in questions))
        await handler.close()
        return answers

    return asyncio.run(run())


def test_a_file_is_fetched_as_version_06_does(root: Path) -> None:
    """Details, then pieces asked for together and written down as they come; the short one is the last."""
    ((status, body),) = ask(root, ("file_details", {"url": "nf://a.bin"}))
    details = json.loads(body)
    assert status == 200
    assert (details["exists"], details["size_bytes"]) == (True, 256_000)
    assert details["md5hash"] == hashlib.md5((root / "a.bin").read_bytes()).hexdigest()
    pieces = ask(
        root,
        *(
            ("fetch_file", {"url": "nf://a.bin", "offset": offset, "chunk_size": 25_000})
            for offset in range(0, 275_000, 25_000)
        ),
    )
    assert [status for status, _ in pieces] == [200] * 11
    assert b"".join(piece for _, piece in pieces) == (root / "a.bin").read_bytes()
    assert len(pieces[-1][1]) == 6_000


def test_what_is_not_there_is_told(root: Path) -> None:
    """The details of nothing are an answer; a piece of nothing is none."""
    details, piece, listed = ask(
        root,
        ("file_details", {"url": "nf://none"}),
        ("fetch_file", {"url": "nf://none", "offset": 0, "chunk_size": 10}),
        ("list_files", {"url": "nf://none"}),
    )
    answers = sorted([details, piece, listed])
    assert [status for status, _ in answers] == [200, 404, 404]
    assert json.loads(answers[0][1]) == {"md5hash": None, "size_bytes": None, "exists": False}
    assert all(json.loads(body)["errors"] for _, body in answers[1:])


def test_folders_are_listed_and_walked(root: Path) -> None:
    """As lists in JSON."""
    assert sorted(ask(root, ("list_files", {"url": "nf://"}), ("walk", {"url": "nf://"}))) == [
        (200, b'["a.bin","sub"]'),
        (200, b'["nf://a.bin","nf://sub/b.txt"]'),
    ]


@pytest.mark.parametrize(
    ("task", "kwargs"),
    [
        ("fetch_file", b"{}"),
        ("fetch_file", b"null"),
        ("fetch_file", b"[" * 100_000),
        ("fetch_file", b'{"url":"nf://\xff"}'),
        ("fetch_file", b'{"url":"nf://a.bin","offset":-1}'),
        ("fetch_file", b'{"url":"nf://a.bin","offset":"0"}'),
        ("fetch_file", b'{"url":"nf://a.bin","offset":1e30}'),
        ("fetch_file", b'{"url":"nf://a.bin","offset":99999999999999999999999}'),
        ("fetch_file", b'{"url":"nf://a.bin","chunk_size":0}'),
        ("fetch_file", b'{"url":"nf://a.bin","chunk_size":99999999999}'),
        ("fetch_file", b'{"url":"nf://../outside.txt"}'),
        ("fetch_file", b'{"url":"nf://\\u0000"}'),
        ("file_details", b'{"url":["nf://a.bin"]}'),
        ("delete_file", b'{"url":"nf://a.bin"}'),
    ],
)
def test_a_bad_question_is_answered_with_400(root: Path, task: str, kwargs: bytes) -> None:
    """In JSON, with words."""

    async def run() -> tuple[int, bytes]:
        handler = FileHandler(root)
        try:
            return await handler.perform(task, b"[]", kwargs, "")
        finally:
            await handler.close()

    status, body = asyncio.run(run())
    assert status == 400 and msgspec.json.decode(body)["errors"]


def test_long_questions_leave_room_for_short_ones(root: Path) -> None:
    """Whoever asks for a hundred walks is told to come again; pieces are given meanwhile."""
    walks = [("walk", {"url": "nf://"})] * 100
    answers = ask(root, *walks, ("fetch_file", {"url": "nf://sub/b.txt"}))
    assert (200, b"b") in answers
    statuses = [status for status, _ in answers]
    assert statuses.count(200) == 9 and statuses.count(500) == 92
    assert ask(root, walks[0])[0][0] == 200


def test_a_handler_that_ends_answers_what_waits(root: Path) -> None:
    """Nobody waits for ever."""

    async def run() -> tuple[int, bytes]:
        handler = FileHandler(root)
        await handler.close()
        asking: Coroutine[Any, Any, tuple[int, bytes]] = handler.perform(
            "list_files", b"[]", b'{"url":"nf://"}', ""
        )
        return await asking

    assert asyncio.run(run())[0] == 500
