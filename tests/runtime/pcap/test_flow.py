"""One direction put together: order, overlaps, wraps, gaps."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from specwire.runtime.pcap import flow as flow_module
from specwire.runtime.pcap.flow import WINDOW, Flow

STREAM = bytes(range(256)) * 4


def begun(seq: int = 100) -> Flow:
    flow = Flow()
    flow.begin(seq)
    return flow


def put(flow: Flow, seq: int, octets: bytes) -> bytes:
    flow.add(flow.place(seq), octets, 0)
    return taken(flow)


def taken(flow: Flow) -> bytes:
    return b"".join(octets for _, octets in flow.take())


@given(
    initial=st.one_of(st.integers(0, 2**32 - 1), st.integers(2**32 - len(STREAM), 2**32 - 1)),
    slices=st.lists(st.tuples(st.integers(0, len(STREAM)), st.integers(1, 300)), max_size=40),
    order=st.randoms(use_true_random=False),
)
def test_any_order_and_overlap_give_the_stream(
    initial: int, slices: list[tuple[int, int]], order: object
) -> None:
    """Whole stream in pieces of 100, and any other pieces of it, shuffled: each octet comes once, in its place."""
    pieces = [(at, 100) for at in range(0, len(STREAM), 100)] + slices
    order.shuffle(pieces)  # type: ignore[attr-defined]
    flow = begun(initial)
    found = b"".join(put(flow, (initial + at) % 2**32, STREAM[at : at + size]) for at, size in pieces)
    assert found == STREAM
    assert not flow.is_waiting


def test_numbers_wrap() -> None:
    flow = begun(2**32 - 3)
    assert put(flow, 2**32 - 3, b"abc") == b"abc"
    assert put(flow, 0, b"def") == b"def"
    assert put(flow, 2**32 - 1, b"cdefg") == b"g", "a retransmission from before the wrap"


def test_of_two_versions_the_first_is_kept() -> None:
    flow = begun()
    assert put(flow, 103, b"DEF") == b""
    assert put(flow, 100, b"abcdefghi") == b"abcDEFghi"
    assert put(flow, 100, b"ABCDEFGHI") == b""


def test_gap_is_skipped_and_counted() -> None:
    flow = begun()
    assert put(flow, 105, b"late") == b"" and flow.is_waiting
    assert flow.skip() == 5 and taken(flow) == b"late"
    assert flow.skip_to(flow.expected + 7) == 7 and flow.skip() == 0


def test_what_is_out_of_any_window_is_dropped() -> None:
    flow = begun()
    assert put(flow, 100 + WINDOW + 1, b"stray") == b"" and not flow.is_waiting


def test_what_waits_is_bounded() -> None:
    flow = begun()
    step = flow_module.MAX_WAITING_OCTETS // 16
    for at in range(17):
        assert not flow.is_full
        put(flow, 101 + at * (step + 1), bytes(step))
    assert flow.is_full
    flow = begun()
    for at in range(flow_module.MAX_WAITING_PIECES + 1):
        assert not flow.is_full
        put(flow, 101 + at * 2, b"x")
    assert flow.is_full
