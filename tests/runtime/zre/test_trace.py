"""`make trace PEER=zre`: the functions that handle one message."""

from __future__ import annotations

import asyncio

import pytest

from tests.benchmarks.trace.__main__ import count
from tests.benchmarks.trace.cases import CASES, run_case
from tests.benchmarks.trace.exchange import PEER

RULES = "runtime/zre/rules.py"
HOST = "runtime/kernel/host.py"


@pytest.mark.peers
def test_whisper() -> None:
    """The host and the rules of WHISPER count; the transport is counted apart, and other rules did not run."""
    received, sent = (set(asyncio.run(run_case(case))) for case in CASES["zre"].values())
    assert {(HOST, "Host.on_message"), (RULES, "receive"), (RULES, "react")} <= received
    assert {(HOST, "Host.call"), (RULES, "answer"), (RULES, "react")} <= sent
    assert (RULES, "answer") not in received
    assert (RULES, "receive") not in sent
    assert ("runtime/transport/dealer.py", "Dealer.send") in sent
    for functions in (received, sent):
        assert not functions & {(RULES, name) for name in ("on_hello", "greet", "watch", "reload")}
        peer = {one for one in functions if one.part == PEER}
        assert not [one for one in peer if one.file.startswith(("runtime/transport", "generated"))]
        modules, classes = {one.file for one in peer}, {one.owner for one in peer if one.owner}
        rows = {part: numbers for part, *numbers in count(sorted(functions))}
        assert rows[PEER] == [len(peer), len(modules), len(classes)]
        assert rows["store"] == [0, 0, 0]  # a ZRE peer stores nothing
