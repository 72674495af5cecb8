"""What a protocol's machine does not say, and whoever speaks it knows all the same.

The sender's own header where a message has room for any side's; which fields of an answer name the conversation it
belongs to, and so repeat the request's; which messages are only a pulse, and so come as time goes by.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Habits(msgspec.Struct, frozen=True):
    """Of one protocol.

    Attributes:
        own_fields: for a role, what it always writes into the fields of these names.
        repeated: fields that an answer repeats from its request, where it has them.
        refusals: error messages that refuse what was asked, and so say nothing of a broken message before it.
        beats: messages that come with time and not with what was said, by class name.
        beat_topics: topics of events that do.
        beat_answers: what is said at once to a pulse, by its class name.
        partings: messages by which a peer leaves, by class name: when it does is for itself to decide, and no answer.
        numbered: fields that count what has happened in a peer before, and so differ from run to run.
        fleeting: values that are other ones each time though they do not look it, as ``Message.field.name``.
        pieces: messages that are one content in pieces, by class name: the fields of place and content. How large the
            pieces are is a matter of time.
        sibling: the protocol of peers that write otherwise and speak to the same: in what it writes nobody is answered
            who was understood, but who was not may be.
        named: whether a peer goes by its routing id, and so is to be played under the recorded one.
    """

    own_fields: Mapping[str, Mapping[str, object]] = {}
    repeated: tuple[str, ...] = ()
    refusals: frozenset[str] = frozenset()
    beats: frozenset[str] = frozenset()
    beat_topics: frozenset[str] = frozenset()
    beat_answers: Mapping[str, str] = {}
    partings: frozenset[str] = frozenset()
    numbered: frozenset[str] = frozenset()
    fleeting: frozenset[str] = frozenset()
    pieces: Mapping[str, tuple[str, str]] = {}
    sibling: str = ""
    named: bool = False

    def is_beat(self, message: object) -> bool:
        """Whether a message is only a pulse."""
        return type(message).__name__ in self.beats or getattr(message, "topic", None) in self.beat_topics

    def is_parting(self, message: object) -> bool:
        """Whether a message only says that its sender leaves."""
        return type(message).__name__ in self.partings


_FILEMQ = Habits(
    refusals=frozenset({"Srsly"}),
    beats=frozenset({"Hugz", "HugzOk"}),
    beat_answers={"Hugz": "HugzOk"},
    partings=frozenset({"Kthxbai"}),
    numbered=frozenset({"sequence"}),
    pieces={"Cheezburger": ("offset", "chunk")},
)

_FLUX = Habits(
    repeated=("routes", "topic"),
    beats=frozenset({"Control"}),
    beat_topics=frozenset({"heartbeat.pulse"}),
    numbered=frozenset({"sequence"}),
    fleeting=frozenset({"Response.payload.route"}),  # of a ping: the beginnings of the uuids on its way
)

_NORFAB = Habits(
    own_fields={
        "C": {"header": "NFPC01"},
        "B": {"header": "NFPB01"},
        "W": {"header": "NFPW01"},
    },
    repeated=("client_address", "service"),
    named=True,
    beats=frozenset({"Keepalive"}),
    partings=frozenset({"Disconnect"}),
)

_HABITS: Mapping[str, Habits] = {
    "filemq": _FILEMQ,
    "libfilemq": _FILEMQ,
    "flux": _FLUX,
    "cmb1": _FLUX,
    "cmb1_json": _FLUX,
    "norfab": msgspec.structs.replace(_NORFAB, sibling="norfab_ascii"),
    "norfab_ascii": msgspec.structs.replace(_NORFAB, sibling="norfab"),
    "zre": Habits(beats=frozenset({"Ping", "PingOk"}), numbered=frozenset({"sequence"})),
}


def habits_of(protocol: str) -> Habits:
    """Return those of a protocol; none for one that nobody has told of."""
    return _HABITS.get(protocol, Habits())
