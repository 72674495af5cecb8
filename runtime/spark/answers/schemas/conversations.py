"""Conversations, the violations in them, and the ones that two taps saw."""

from __future__ import annotations

from pyspark.sql.types import ArrayType, BooleanType, StructType

from specwire.runtime.spark.answers.schemas.shared import (
    LONG,
    PLACE,
    STORED,
    TAP,
    TEXT,
    TIMESTAMP,
    column,
    micros,
)

FIRST_SEQ = column("first_seq", LONG, "seq of its first message; with tap and conversation, the row's key")

WATCHED = StructType(
    [
        column("dialog", TEXT, "dialog of the machine; null while the messages fit several"),
        column("from_middle", BooleanType(), "the first message is none that the dialog begins with"),
        column("state", TEXT, "state after the last message; several, by '|', where it is not known"),
        column("ended", BooleanType(), "the dialog is complete: nothing may follow"),
        column("restarts", LONG, "times that the dialog began anew after it had ended"),
        column("violations", LONG, "messages out of turn, of senders that are no role, or undecodable"),
        column("waiting", LONG, "requests that a reply may still come to; always 0 in the strict reading"),
    ]
)
"""What one reading of the dialog says about a conversation."""

CONVERSATIONS = StructType(
    [
        *PLACE,
        FIRST_SEQ,
        column("last_seq", LONG, "seq of its last message"),
        column("first_ts", TIMESTAMP, "when the tap saw the first message, UTC"),
        column("last_ts", TIMESTAMP, "when the tap saw the last message, UTC"),
        micros("duration_us", "from the first to the last message"),
        column("messages", LONG, "messages, undecodable ones included"),
        column("errors", LONG, "messages that did not decode"),
        column("strict", WATCHED, "the dialog as written: one message after another"),
        column("concurrent", WATCHED, "the dialog of peers that do not wait for each other"),
    ]
)
"""One row a conversation; `date` is that of `first_ts`. One that was idle for long goes on as another."""

VIOLATIONS = StructType(
    [
        *PLACE,
        column("first_seq", LONG, "seq of the conversation's first message"),
        column("reading", TEXT, "strict or concurrent"),
        column("number", LONG, "which violation of the conversation in this reading; 1 is the first"),
        column("ts", TIMESTAMP, "when the tap saw the message, UTC"),
        column("seq", LONG, "seq of the message; with the tap, its key in the typed tables"),
        column("kind", TEXT, "unexpected, sender (no role of the dialog) or undecodable"),
        column("dialog", TEXT, "dialog of the machine; null while the messages fit several"),
        column("sender", TEXT, "role letter of the side that sent the message, as captured"),
        column("message", TEXT, "class of the message; null where it did not decode"),
        column("state", TEXT, "state that the message found, and left as it was"),
        column("expected", ArrayType(TEXT), "what would have been valid, each as ROLE:Message"),
        column("text", TEXT, "the finding as one sentence"),
    ]
)
"""Messages that broke the dialog: the first few of each conversation and reading."""

TWINS = StructType(
    [
        *STORED,
        TAP,
        column("conversation", TEXT, "a connection that another tap saw too, and that is not to be counted"),
        column("kept_tap", TEXT, "the tap whose view of the connection counts"),
        column("kept_conversation", TEXT, "what that tap names it"),
    ]
)
"""The second views of connections: sums over taps leave these conversations out."""

OPEN_CONVERSATIONS = StructType(
    [
        TAP,
        column("conversation", TEXT, "one connection, as the tap names it"),
        column("peer", TEXT, "the identity by which the tap knows the connection"),
        column("carried", TEXT, "its row and the states of the machines, JSON"),
    ]
)
"""State: the conversations that may go on."""
