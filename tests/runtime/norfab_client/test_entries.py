"""Entries of workers: those that are as they should be are read by a shorter way, and say the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specwire.runtime.norfab.client import results
from specwire.runtime.norfab.client.results import WorkerResult, read_entry

FIELDS = {
    "result": None,
    "failed": False,
    "errors": ["no route"],
    "task": "w1:show",
    "messages": ["half", "done"],
    "juuid": "j1",
    "resources": ["leaf-1"],
    "status": "completed",
    "task_started": "Mon Nov 23 01:00:00 2026",
    "task_completed": None,
    "service": "svc",
    "diff": {"a": 1},
    "dry_run": True,
    "worker": "w2",
    "attempt": 2,
}


def test_an_entry_as_workers_write_it() -> None:
    assert read_entry("w1", 200, json.dumps(FIELDS).encode()) == WorkerResult(
        "w1",
        errors=("no route",),
        messages=("half", "done"),
        task="w1:show",
        status="completed",
        resources=("leaf-1",),
        diff={"a": 1},
        dry_run=True,
        started="Mon Nov 23 01:00:00 2026",
        attempt=2,
        done_by="w2",
    )


@pytest.mark.parametrize("code", [200, 500])
@given(
    changed=st.dictionaries(
        st.sampled_from([*FIELDS, "other"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
            lambda inner: (
                st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2)
            ),
            max_leaves=4,
        ),
    ),
    missing=st.sets(st.sampled_from([*FIELDS])),
)
def test_both_ways_of_reading_say_the_same(code: int, changed: dict[str, Any], missing: set[str]) -> None:
    fields = {name: value for name, value in (FIELDS | changed).items() if name not in missing}
    entry = json.dumps(fields).encode()
    assert read_entry("w1", code, entry) == results._read_unusual("w1", code, entry)
