"""Messages written out octet by octet from the rules, for what nobody was recorded sending.

Each literal stands beside the rule it follows; numbers are written with the digits that the rule gives them.
"""

from __future__ import annotations

from typing import Any

from tests.generated.vectors import Vector

JOB = b"0123456789abcdef0123456789abcdef"


def _vector(package: str, name: str, class_name: str, frames: tuple[bytes, ...], **fields: Any) -> Vector:
    return Vector(package, f"hand {name}", frames, class_name, fields)


NORFAB = [
    # OPEN = empty header-open command-open body; the header is that of whoever opens.
    _vector("norfab", "open client", "Open", (b"", b"NFPC01", b"\x00", b""), header="NFPC01", body=b""),
    _vector("norfab", "open worker", "Open", (b"", b"NFPW01", b"\x00", b"{}"), header="NFPW01", body=b"{}"),
    _vector("norfab", "open broker", "Open", (b"", b"NFPB01", b"\x00", b"{}"), header="NFPB01", body=b"{}"),
    # READY = empty header-ready command-ready service
    _vector("norfab", "ready", "Ready", (b"", b"NFPW01", b"\x01", b"echo"), service="echo"),
    # KEEPALIVE = empty header-keepalive command-keepalive service
    _vector("norfab", "keepalive", "Keepalive", (b"", b"NFPB01", b"\x02", b"echo"), header="NFPB01", service="echo"),
    # DISCONNECT = empty header-disconnect command-disconnect [ service [ body ] ]: three to five frames.
    _vector("norfab", "disconnect 3", "Disconnect", (b"", b"NFPW01", b"\x03"), header="NFPW01"),
    _vector("norfab", "disconnect 4", "Disconnect", (b"", b"NFPB01", b"\x03", b"echo"), header="NFPB01", service="echo"),
    _vector(
        "norfab", "disconnect 5", "Disconnect", (b"", b"NFPB01", b"\x03", b"echo", b"gone"),
        header="NFPB01", service="echo", body=b"gone",
    ),
    # POST-client = empty header-client command-post service target uuid body *more
    _vector(
        "norfab", "post", "PostClient", (b"", b"NFPC01", b"\x04", b"echo", b"all", JOB, b'{"task":"add"}'),
        service="echo", target="all", uuid=JOB.decode(), body=b'{"task":"add"}',
    ),
    # *more: every frame after the body, kept in order.
    _vector(
        "norfab", "post with more", "PostClient", (b"", b"NFPC01", b"\x04", b"echo", b"w1,w2", JOB, b"", b"", b"\xff"),
        service="echo", target="w1,w2", uuid=JOB.decode(), body=b"", more=(b"", b"\xff"),
    ),
    # POST-worker = empty header-worker command-post client-address delimiter uuid body *more
    _vector(
        "norfab", "post to a worker", "PostWorker", (b"", b"NFPB01", b"\x04", b"\x00\x6b\x8b\x45\x67", b"", JOB, b"{}"),
        client_address=b"\x00\x6b\x8b\x45\x67", uuid=JOB.decode(), body=b"{}",
    ),
    # RESPONSE-client = empty header-client-answer command-response service uuid status body *more
    _vector(
        "norfab", "response", "ResponseClient", (b"", b"NFPB01", b"\x05", b"echo", JOB, b"200 OK", b"{}"),
        service="echo", uuid=JOB.decode(), status="200 OK", body=b"{}",
    ),
    # RESPONSE-worker = empty header-worker-answer command-response client-address delimiter uuid status body *more
    _vector(
        "norfab", "response of a worker", "ResponseWorker", (b"", b"NFPW01", b"\x05", b"cli", b"", JOB, b"404", b""),
        client_address=b"cli", uuid=JOB.decode(), status="404", body=b"",
    ),
    # GET-client and GET-worker are POST's frames with the number 6.
    _vector(
        "norfab", "get", "GetClient", (b"", b"NFPC01", b"\x06", b"echo", b"any", JOB, b"{}"),
        service="echo", target="any", uuid=JOB.decode(), body=b"{}",
    ),
    _vector(
        "norfab", "get to a worker", "GetWorker", (b"", b"NFPB01", b"\x06", b"cli", b"", JOB, b"{}"),
        client_address=b"cli", uuid=JOB.decode(), body=b"{}",
    ),
    # DELETE, number 7.
    _vector(
        "norfab", "delete", "DeleteClient", (b"", b"NFPC01", b"\x07", b"echo", b"w1", JOB, b"{}"),
        service="echo", target="w1", uuid=JOB.decode(), body=b"{}",
    ),
    _vector(
        "norfab", "delete to a worker", "DeleteWorker", (b"", b"NFPB01", b"\x07", b"cli", b"", JOB, b""),
        client_address=b"cli", uuid=JOB.decode(), body=b"",
    ),
    # EVENT, number 8, with the frames of a response.
    _vector(
        "norfab", "event", "EventClient", (b"", b"NFPB01", b"\x08", b"echo", JOB, b"200", b"{}"),
        service="echo", uuid=JOB.decode(), status="200", body=b"{}",
    ),
    _vector(
        "norfab", "event of a worker", "EventWorker", (b"", b"NFPW01", b"\x08", b"cli", b"", JOB, b"200", b"{}"),
        client_address=b"cli", uuid=JOB.decode(), status="200", body=b"{}",
    ),
    # MMI, number 0x11 (17), for the broker itself.
    _vector(
        "norfab", "mmi", "MmiClient", (b"", b"NFPC01", b"\x11", b"mmi.service.broker", b"", JOB, b"{}"),
        service="mmi.service.broker", target="", uuid=JOB.decode(), body=b"{}",
    ),
    _vector(
        "norfab", "mmi answer", "MmiBroker", (b"", b"NFPB01", b"\x11", b"mmi.service.broker", JOB, b"200", b"{}"),
        service="mmi.service.broker", uuid=JOB.decode(), status="200", body=b"{}",
    ),
    # For a worker it stands under the header of NFP/Worker, with the client's address as in POST.
    _vector(
        "norfab", "mmi to a worker", "MmiWorker", (b"", b"NFPW01", b"\x11", b"cli", b"", JOB, b"{}"),
        client_address=b"cli", uuid=JOB.decode(), body=b"{}",
    ),
]  # fmt: skip

NORFAB_ASCII = [
    # The same frames as in norfab, the number as text of four octets.
    _vector(
        "norfab_ascii", "delete to a worker", "DeleteWorker", (b"", b"NFPB01", b"0x07", b"cli", b"", JOB, b"{}"),
        header="NFPB01", client_address=b"cli", uuid=JOB.decode(), body=b"{}",
    ),
    _vector(
        "norfab_ascii", "mmi to a worker", "MmiWorker", (b"", b"NFPW01", b"0x11", b"cli", b"", JOB, b"{}"),
        client_address=b"cli", uuid=JOB.decode(), body=b"{}",
    ),
]  # fmt: skip

# The header of all: %x8E %x01, the type, flags; then four integers of four octets, the most significant first.
CMB1 = [
    # C:request = [routing] topic [payload] PROTO; topic is flag 01, payload 02, the delimiter 08.
    _vector(
        "cmb1", "request", "Request",
        (b"\x07\xff", b"", b"kvs.get", (b"\x8e\x01\x01\x09" b"\x00\x00\x03\xe8" b"\x00\x00\x00\x01" b"\xff\xff\xff\xff" b"\x00\x00\x00\x2a")),
        routes=(b"\x07\xff",), topic="kvs.get", flags=0x09, userid=1000, rolemask=1, nodeid=0xFFFFFFFF, matchtag=42,
    ),
    # S:event, type 4: sequence, then four octets of zero.
    _vector(
        "cmb1", "event", "Event",
        (b"hb", b"\x01\x02", (b"\x8e\x01\x04\x23" b"\xff\xff\xff\xff" b"\x00\x00\x00\x00" b"\x00\x01\x00\x00" b"\x00\x00\x00\x00")),
        topic="hb", payload=b"\x01\x02", flags=0x23, userid=0xFFFFFFFF, rolemask=0, sequence=65536,
    ),
    # C:keepalive = PROTO, type 8: errnum and status.
    _vector(
        "cmb1", "keepalive", "Keepalive",
        ((b"\x8e\x01\x08\x00" b"\xff\xff\xff\xff" b"\x00\x00\x00\x00" b"\x00\x00\x00\x71" b"\x00\x00\x00\x03"),),
        flags=0, userid=0xFFFFFFFF, rolemask=0, errnum=113, status=3,
    ),
]  # fmt: skip

CMB1_JSON = [
    # The payload is JSON where flag 04 stands beside 02.
    _vector(
        "cmb1_json", "request with JSON", "Request",
        (b"", b"cmb.info", b'{"rank":0}', (b"\x8e\x01\x01\x0f" b"\xff\xff\xff\xff" b"\x00\x00\x00\x00" b"\x00\x00\x00\x02" b"\x00\x00\x00\x07")),
        routes=(), topic="cmb.info", json='{"rank":0}', flags=0x0F, userid=0xFFFFFFFF, rolemask=0, nodeid=2, matchtag=7,
    ),
    # Flag 02 alone: octets of any kind.
    _vector(
        "cmb1_json", "response with octets", "Response",
        (b"id1", b"id0", b"", b"a", b"\x00\xff", (b"\x8e\x01\x02\x0b" b"\x00\x00\x00\x00" b"\x00\x00\x00\x05" b"\x00\x00\x00\x26" b"\x00\x00\x00\x07")),
        routes=(b"id1", b"id0"), topic="a", payload=b"\x00\xff", flags=0x0B, userid=0, rolemask=5, errnum=38, matchtag=7,
    ),
    _vector(
        "cmb1_json", "event without payload", "Event",
        (b"hb", (b"\x8e\x01\x04\x11" b"\xff\xff\xff\xff" b"\x00\x00\x00\x00" b"\x00\x00\x00\x01" b"\x00\x00\x00\x00")),
        topic="hb", flags=0x11, userid=0xFFFFFFFF, rolemask=0, sequence=1,
    ),
    _vector(
        "cmb1_json", "keepalive", "Keepalive",
        ((b"\x8e\x01\x08\x00" b"\xff\xff\xff\xff" b"\x00\x00\x00\x00" b"\x00\x00\x00\x00" b"\x00\x00\x00\x01"),),
        flags=0, userid=0xFFFFFFFF, rolemask=0, errnum=0, status=1,
    ),
]  # fmt: skip

FILEMQ = [
    # dictionary = size *key-value: 3 entries, of 3, 4 and 2 octets; a repeated name, an "=" in a value.
    _vector(
        "filemq", "icanhaz, odd options", "Icanhaz",
        ((b"\xaa\xa3\x05" b"\x03/\xc3\xa9" b"\x03" b"\x03a=1" b"\x04a=b=" b"\x02c=" b"\x00"),),
        path="/\u00e9", options=(("a", "1"), ("a", "b="), ("c", "")), cache=(),
    ),
    # A cache entry is divided at its last "=": a file name may hold one, a digest does not.
    _vector(
        "filemq", "icanhaz, odd cache", "Icanhaz", ((b"\xaa\xa3\x05" b"\x00" b"\x00" b"\x01" b"\x08a=b=DA39"),),
        path="", options=(), cache=(("a=b", "DA39"),),
    ),
    # 8OCTET: the largest credit.
    _vector("filemq", "nom, all ones", "Nom", (b"\xaa\xa3\x07" + 8 * b"\xff",), credit=18446744073709551615),
]  # fmt: skip

ZRE = [
    # leave = signature %d5 version sequence group status; version and status in one octet, sequence in two.
    _vector(
        "zre", "leave", "Leave", ((b"\xaa\xa1\x05" b"\x02" b"\x01\x00" b"\x04chat" b"\x07"),),
        version=2, sequence=256, group="chat", status=7,
    ),
    # content = msg, msg = *frame: no frame, and three of which one is empty.
    _vector("zre", "whisper nothing", "Whisper", ((b"\xaa\xa1\x02" b"\x02" b"\x00\x09"),), version=2, sequence=9, content=()),
    _vector(
        "zre", "shout three frames", "Shout",
        ((b"\xaa\xa1\x03" b"\x02" b"\xff\xff" b"\x01g"), b"a", b"", b"\x00"),
        version=2, sequence=65535, group="g", content=(b"a", b"", b"\x00"),
    ),
]  # fmt: skip

ZMTP = [
    # error = command-size %d5 "ERROR" error-reason: 04, the 6 + 4 octets that follow, the reason with its length.
    _vector("zmtp", "error", "Error", ((b"\x04\x0a" b"\x05ERROR" b"\x03bad"),), error_reason="bad"),
    # cancel = command-size %d6 "CANCEL" subscription: all that is left is the subscription.
    _vector("zmtp", "cancel", "Cancel", ((b"\x04\x09" b"\x06CANCEL" b"\x00\xff"),), subscription=b"\x00\xff"),
    _vector("zmtp", "join", "Join", ((b"\x04\x09" b"\x04JOIN" b"news"),), group="news"),
    _vector("zmtp", "leave no group", "Leave", ((b"\x04\x06" b"\x05LEAVE"),), group=""),
    # A body of 256 octets is a long command: 5 for the name and its length, 251 of data.
    _vector(
        "zmtp", "long command", "Command", ((b"\x06" + bytes(6) + b"\x01\x00" + b"\x04BULK" + 251 * b"d"),),
        command_name="BULK", command_data=251 * b"d",
    ),
]  # fmt: skip

HAND = [*NORFAB, *NORFAB_ASCII, *CMB1, *CMB1_JSON, *FILEMQ, *ZRE, *ZMTP]
