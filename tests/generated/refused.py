"""Which recorded messages do not decode, and where: derived from the grammars by hand.

`REFUSED` has what the error must say, `NEITHER` the entries that are no message of the package at all, with
the reason. Everything else in the vector files decodes and encodes back to the same octets.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """What a DecodeError must say, and why the message is refused."""

    message: str | None
    field: str | None
    frame: int
    offset: int | None
    kind: str
    why: str


# 3 octets of signature and id, 7 of "FILEMQ" with its size, then the version.
_ONE_OCTET_VERSION = Fault("OHAI", "version", 0, 10, "constant", "the specification's OHAI: 02, not 00 02")
_LIBFILEMQ = {
    "neg-ohai-1byte-version": _ONE_OCTET_VERSION,
    "neg-ohai-badproto": Fault("OHAI", "protocol", 0, 3, "constant", "FILEMX"),
    "neg-empty-frame": Fault(None, "signature", 0, 0, "constant", "no octets at all"),
    "neg-unknown-id-03": Fault(None, "id", 0, 2, "tag", "no command has the number 3"),
    "neg-two-frames": Fault("OHAI", None, 1, None, "frames", "a second frame"),
    "neg-icanhaz-spec-abnf": Fault("ICANHAZ", "path", 0, 7, "length", "one octet of length read as four"),
    "neg-icanhaz-count-ffffffff": Fault(
        "ICANHAZ", "options", 0, 8, "count", "2**32 - 1 entries in no octets"
    ),
}

_HEADER_FLAGS = "keepalive has neither routes nor delimiter in CMB1, and the flag says that it has"
_CMB1 = {
    "request.no_topic": Fault("request", "flags", 1, 3, "range", "CMB1 has no request without a topic"),
    **{
        f"control.{name}": Fault("keepalive", "flags", frame, 3, "range", _HEADER_FLAGS)
        for name, frame in {
            "STATUS.tx": 1,
            "STATUS.rx": 2,
            "HEARTBEAT.tx": 1,
            "HEARTBEAT.rx": 2,
            "DISCONNECT.tx": 2,
            "DISCONNECT.rx": 1,
            "STATUS.lost_child(3=degraded).tx": 1,
        }.items()
    },
}

_SWAPPED = Fault(None, "command", 2, 0, "tag", "the peer's fault: service and command are swapped")
_NORFAB_BOTH = {
    "v0.25.0/raw_open/439/OPEN": Fault("OPEN", None, 4, None, "frames", "OPEN with the frames of a POST"),
    "v0.25.0/raw_onebyte_command_per_spec/442/RESPONSE": Fault(
        "RESPONSE-client", "status", 5, None, "frames", "the peer's fault: a refusal in five frames"
    ),
    "v0.25.0/raw_disconnect_client/475/DISCONNECT": Fault(
        None, "command", 2, 0, "tag", "DISCONNECT with a client's header is not in the specification"
    ),
    "v0.25.0/startup_or_idle/478/DISCONNECT": _SWAPPED,
    "v0.25.0/startup_or_idle/479/DISCONNECT": _SWAPPED,
}
_NORFAB_ASCII = {
    **_NORFAB_BOTH,
    "v0.25.0/raw_onebyte_command_per_spec/441/?": Fault(
        None, "command", 2, 0, "tag", "one octet, as specified; that is the package norfab"
    ),
}
_NO_COMMAND = Fault(None, "command", 2, 0, "tag", "the specification has no such command")
_OTHER_HEADER = Fault(None, "command", 2, 0, "tag", "version 0.6 writes a header that is not the broker's")
_NORFAB = {
    **_NORFAB_BOTH,
    **dict.fromkeys(
        (
            "v0.25.0/input_request_put/234/PUT",
            "v0.25.0/input_request_put/235/PUT",
            "v0.25.0/nf_fetch_small/344/STREAM",
            "v0.25.0/nf_fetch_small/345/STREAM",
            "v0.25.0/nf_fetch_big/374/STREAM",
            "v0.25.0/nf_fetch_big/375/STREAM",
            "v0.25.0/nf_fetch_big/376/PUT",
            "v0.25.0/nf_fetch_big/378/PUT",
        ),
        _NO_COMMAND,
    ),
    **dict.fromkeys(
        (
            "v0.6.0/002/RESPONSE",
            "v0.6.0/005/RESPONSE",
            "v0.6.0/008/RESPONSE",
            "v0.6.0/009/POST",
            "v0.6.0/010/POST",
            "v0.6.0/012/RESPONSE",
            "v0.6.0/014/EVENT",
            "v0.6.0/018/EVENT",
            "v0.6.0/021/GET",
            "v0.6.0/022/GET",
            "v0.6.0/069/RESPONSE",
        ),
        _OTHER_HEADER,
    ),
}

REFUSED: dict[str, dict[str, Fault]] = {
    "cmb1": _CMB1,
    "cmb1_json": _CMB1,
    "filemq": {},
    "flux": {},
    "libfilemq": _LIBFILEMQ,
    "norfab": _NORFAB,
    "norfab_ascii": _NORFAB_ASCII,
    "zmtp": {},
    "zre": {},
}
"""Package -> vector -> the error."""

_NO_MESSAGE = "one octet that the broker sends before the first message: it has no frames"
_OTHER_NAMES = "decodes as a POST of one octet; the recorder, which knows four octets only, named no command"
NEITHER: dict[str, dict[str, str]] = {
    "cmb1": {"auth.accept": _NO_MESSAGE},
    "cmb1_json": {"auth.accept": _NO_MESSAGE},
    "filemq": {},
    "flux": {"auth.accept": _NO_MESSAGE},
    "libfilemq": {},
    "norfab": {"v0.25.0/raw_onebyte_command_per_spec/441/?": _OTHER_NAMES},
    "norfab_ascii": {},
    "zmtp": {},
    "zre": {},
}
"""Package -> vector -> why it neither decodes to stated fields nor is a faulty message."""

CUT = ("v0.25.0/nf_fetch_big/374/STREAM", "v0.25.0/nf_fetch_big/375/STREAM")
"""Bodies that the recorder cut: they decode to what is left of them."""

REWRITTEN = ("zmtp:greeting",)
"""Vectors that have other octets when they are encoded again: libzmq writes the length of a message of version 1
into octets that mean nothing to version 3, and we write zeros."""
