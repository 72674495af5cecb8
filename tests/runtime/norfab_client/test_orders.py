"""What a caller says is checked before anything is made of it; what a network says is made to fit."""

from __future__ import annotations

import json
from uuid import RFC_4122, UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specwire.runtime.norfab.client.limits import ClientSettings
from specwire.runtime.norfab.client.orders import (
    check_body,
    client_name,
    make_job,
    make_request,
    make_uuid,
    target_of,
)
from specwire.runtime.norfab.client.reading import read_progress, read_response, says_failed
from specwire.runtime.norfab.client.records import JobRecord
from specwire.runtime.norfab.client.results import Answer, read_entry
from specwire.runtime.norfab.client.states import State
from tests.house.repository import ROOT


@pytest.mark.parametrize(
    ("targets", "written"),
    [
        ("all", "all"),
        ("", "all"),
        ("any", "any"),
        ("w1", "w1"),
        ("w1,w2", '["w1","w2"]'),
        (["w1"], "w1"),
        (["w1", "w2", "w1"], '["w1","w2"]'),
        (["all"], "all"),
        ('["w1"]', "w1"),
    ],
)
def test_targets(targets: str | list[str], written: str) -> None:
    """Names go as a JSON list: deployed brokers refuse commas."""
    assert target_of(targets) == written


def test_the_uuids_of_jobs_are_in_the_order_of_their_times() -> None:
    """Version 7: milliseconds in front, then the version, the variant 0b10, and chance."""
    uuids = [make_uuid(now) for now in (0.0, 0.001, 1_700_000_000.5, 4_000_000_000.0)]
    assert uuids == sorted(uuids)
    assert uuids[2][:12] == f"{1_700_000_000_500:012x}"
    for written in uuids:
        read = UUID(written)
        assert (read.hex, read.version, read.variant) == (written, 7, RFC_4122)
    assert len({make_uuid(1.0) for _ in range(1000)}) == 1000


@pytest.mark.parametrize("targets", [[], ["a b"], "[1]", ["x", "all"], "a,,b"])
def test_targets_that_are_none(targets: str | list[str]) -> None:
    """They are refused here."""
    with pytest.raises(ValueError, match=r"."):
        target_of(targets)


def test_the_body_of_a_job() -> None:
    """As deployed workers read it; resources where there are some."""
    record = make_job(
        "svc",
        "add",
        (1, "x"),
        {"a": None},
        targets="all",
        resources=["r1"],
        timeout_s=5,
        uuid=None,
        now=10.0,
    )
    assert json.loads(record.body) == {
        "task": "add",
        "args": [1, "x"],
        "kwargs": {"a": None},
        "timeout": 5,
        "resources": ["r1"],
    }
    assert len(record.uuid) == 32 and int(record.uuid, 16)
    assert (record.created_at, record.deadline) == (10.0, 15.0)


def small_job(task: str, args: tuple[object, ...]) -> JobRecord:
    """Return a job for all workers."""
    return make_job(
        "svc",
        task,
        args,
        {},
        targets="all",
        resources=(),
        timeout_s=5,
        uuid=None,
        now=0.0,
    )


def test_a_job_that_is_too_large() -> None:
    """The error names the bound."""
    body = small_job("add", ("x" * 100,)).body
    check_body(body, len(body))
    with pytest.raises(ValueError, match=f"a job has up to 100 octets, and this has {len(body)}"):
        check_body(body, 100)


@pytest.mark.parametrize(("task", "args"), [("na\udcffme", ()), ("name", ({"a": ["na\udcffme"]},))])
def test_a_text_that_is_none_is_named(task: str, args: tuple[object, ...]) -> None:
    """Octets that are no UTF-8, as a shell hands them over, in the name of a task or anywhere in its arguments."""
    said = r"'na\\udcffme' cannot be sent: it is no text in UTF-8"
    with pytest.raises(ValueError, match=said):
        small_job(task, args)
    with pytest.raises(ValueError, match=said):
        make_request("svc", task, args, {}, "all")


def test_names_of_clients() -> None:
    """One that is made is one that is taken."""
    made = client_name(None)
    assert client_name(made) == made
    for name in ("", "a b", "x" * 65, "a,b", "é"):
        with pytest.raises(ValueError, match="a client has a name of"):
            client_name(name)


@pytest.mark.parametrize(
    ("body", "entries"),
    [
        (b'{"w1":{"failed":false}}', {"w1"}),
        (b'{"worker":"w1","status":"STARTED"}', set()),
        (b'{"worker":{"result":1}}', {"worker"}),
        (b'{"error":{"a":1},"w1":{}}', {"w1"}),
        (b'{"w1":[1],"w2":null,"w3":{}}', {"w3"}),
    ],
)
def test_entries_of_workers(body: bytes, entries: set[str]) -> None:
    """A worker may have the name of one of the broker's words."""
    assert set(read_response(body).entries) == entries


ODD = st.none() | st.integers() | st.text(max_size=3) | st.lists(st.text(max_size=3) | st.none(), max_size=2)


@given(
    st.dictionaries(
        st.sampled_from(
            ["workers", "worker", "uuid", "target", "status", "service", "error", "missing", "w1"]
        ),
        ODD | st.just({"result": 1}),
    )
    | st.fixed_dictionaries({"workers": st.lists(st.text(max_size=3)), "status": st.text(max_size=3)})
)
def test_the_usual_words_of_202_are_read_like_all_others(said: dict[str, object]) -> None:
    """The quick way and the slow one say the same, whatever is in it."""
    body = json.dumps(said).encode()
    assert read_response(body, 202) == read_response(body)


def test_odd_bodies() -> None:
    """Nothing raises."""
    for body in (b"", b"\xff", b"[]", b"7", b"{", b'{"workers":{}}', b"[" * 200_000):
        assert read_response(body, 202) == read_response(body)
        read_progress("u", "s", body, 0.0)
        read_entry("w", 200, body)
        says_failed(body)
    said = read_response(b'{"workers":["a",7,null],"errors":["x",null,3],"status":5,"worker":[1]}')
    assert (said.workers, said.error, said.status, said.worker) == (("a",), "x; 3", "5", "")


def test_progress_of_deployed_workers() -> None:
    """EVENT as norfab 0.25 writes it."""
    body = {
        "worker": "w1",
        "service": "svc",
        "uuid": "u1",
        "event_type": "progress",
        "message": "half",
        "task": "add",
        "status": "running",
        "resource": ["r1"],
        "severity": "WARNING",
        "timestamp": "22-Nov-2026 12:00:00",
    }
    progress = read_progress("u1", "svc", json.dumps(body).encode(), 7.0)
    assert progress is not None
    assert (progress.worker, progress.message, progress.severity) == ("w1", "half", "WARNING")
    assert (progress.resources, progress.at, progress.said["timestamp"]) == (("r1",), 7.0, body["timestamp"])


def test_answers() -> None:
    """JSON, or a sentence that says that it is none."""
    assert Answer(200, b'{"a":1}').read() == {"a": 1}
    with pytest.raises(ValueError, match="the answer is no JSON"):
        Answer(200, b"raw octets").read()


def test_settings_of_a_client_are_named_in_the_guide() -> None:
    """The figures in the guide are those of the program."""
    guide = (ROOT / "docs/reference/norfab.md").read_text(encoding="utf-8")
    settings = ClientSettings()
    assert "a week, up to 100,000 jobs and 512 MiB" in " ".join(guide.split())
    assert (settings.kept_s, settings.kept_jobs, settings.kept_octets) == (7 * 86400, 100_000, 512 << 20)
    assert all(f"| {state} |" in guide for state in State)
