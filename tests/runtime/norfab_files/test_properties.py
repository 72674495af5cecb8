"""Whatever a peer asks: an answer in JSON or a piece of a shared file, and never what is outside."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specwire.runtime.norfab.files import FileHandler, UrlError, read_url
from specwire.runtime.norfab.files.handling import TASKS
from tests.examples import examples

SECRET = b"this is outside"
PATHS = st.lists(
    st.sampled_from(
        ["..", ".", "", "a.txt", "sub", "link", "up", "outside", "\0", "\ud800", "ü", "%2e%2e", "\\..\\", "~"]
    ),
    max_size=6,
).map("/".join)
URLS = st.builds("{}{}".format, st.sampled_from(["nf://", "nf:///", "nf:/", "NF://", "file://", ""]), PATHS)
NUMBERS = (
    st.integers()
    | st.sampled_from([0, 1, 5, 2**20, 2**20 + 1, 2**63, -1])
    | st.floats()
    | st.text(max_size=3)
)
KWARGS = st.fixed_dictionaries(
    {"url": URLS}, optional={"offset": NUMBERS, "chunk_size": NUMBERS, "version": st.text(max_size=3)}
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "outside").write_bytes(SECRET)
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "a.txt").write_bytes(b"inside")
    (root / "link").symlink_to(tmp_path / "outside")
    (root / "sub/up").symlink_to(tmp_path)
    return root


@given(
    questions=st.lists(
        st.tuples(
            st.sampled_from(TASKS),
            KWARGS.map(lambda kwargs: json.dumps(kwargs).encode()) | st.binary(max_size=30),
        ),
        min_size=1,
        max_size=20,
    )
)
@settings(
    max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_every_question_is_answered_and_nothing_leaks(root: Path, questions: list[tuple[str, bytes]]) -> None:
    """Neither what is outside nor where the folder is."""

    async def run() -> None:
        handler = FileHandler(root)
        try:
            answers = await asyncio.gather(
                *(handler.perform(task, b"[]", kwargs, "") for task, kwargs in questions)
            )
        finally:
            await handler.close()
        for (task, _), (status, body) in zip(questions, answers, strict=True):
            assert status in (200, 400, 404, 417, 500)
            assert SECRET not in body and str(root).encode() not in body
            if task != "fetch_file" or status != 200:
                msgspec.json.decode(body)
            else:
                assert body in b"inside"

    asyncio.run(run())


@given(URLS | st.text(max_size=30))
@settings(max_examples=examples(120), deadline=None)
def test_a_url_has_plain_components_or_is_refused(url: str) -> None:
    """What is read leads down, and nowhere else."""
    try:
        components = read_url(url)
    except UrlError:
        return
    assert url == "nf://" + "/".join(components)
    assert components and not {"", ".", ".."} & set(components)
    assert not any("/" in component or "\0" in component for component in components)
