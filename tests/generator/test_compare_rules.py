"""The rules of a comparison, one at a time, on small protocols."""

from __future__ import annotations

import msgspec
import pytest

from specwire.generator import ir
from specwire.generator.compare import compare
from specwire.generator.compare.comparison import Change, Effect, Verdict
from tests.generator.editions import ENUM, field, message, protocol, text

YES, DEPENDS, NO = Verdict.YES, Verdict.DEPENDS, Verdict.NO
U8, U32 = ir.IntegerType(1), ir.IntegerType(4)
REST = ir.OctetsType(ir.Length("rest"))
FLAGS = field("flags", ir.IntegerType(1, bitmask=True))


def only(old: ir.Protocol, new: ir.Protocol) -> Change:
    """The one change between two editions."""
    (change,) = compare(old, new).changes
    return change


def verdicts(change: Change) -> tuple[Verdict, Verdict]:
    return change.old_reads_new.verdict, change.new_reads_old.verdict


def one(*fields: ir.Field, **settings: object) -> ir.Protocol:
    """A protocol of one message."""
    return protocol(message("demo", 1, *fields), **settings)


def flagged(presence: ir.Presence | None, *bits: ir.FlagBit) -> ir.Protocol:
    """A protocol of one message, with a second frame of that presence; None is no such frame."""
    made = message("demo", 1, FLAGS)
    body = () if presence is None else (ir.Frame("body", (field("body", REST),), presence),)
    return protocol(msgspec.structs.replace(made, parts=(*made.parts, *body)), flags=bits)


def bit(name: str, value: int, doc: str = "", announces: str | None = None) -> ir.FlagBit:
    return ir.FlagBit(name, value, doc, announces)


# Messages


def test_an_added_message_is_refused_and_a_removed_one_goes_on_coming() -> None:
    small, large = one(), protocol(message("demo", 1), message("more", 2, field("size", U8)))
    added = only(small, large)
    assert (added.kind, added.group, verdicts(added)) == ("added", "more", (DEPENDS, YES))
    assert added.tables.effect is Effect.COLUMN
    removed = only(large, small)
    assert (removed.kind, verdicts(removed)) == ("removed", (YES, NO))
    assert removed.tables.effect is Effect.APPEND


def test_the_same_tag_is_the_same_message_renamed() -> None:
    change = only(one(field("size", U8)), protocol(message("other", 1, field("size", U8))))
    assert (change.group, change.kind, verdicts(change)) == ("demo -> other", "renamed", (YES, YES))


def test_like_layouts_are_one_message_under_another_tag() -> None:
    fields = field("size", U8), field("rank", U32), field("reason", text(1))
    changes = compare(one(*fields), protocol(message("other", 9, *fields))).changes
    assert [change.kind for change in changes] == ["renamed", "tag", "value"]
    assert verdicts(changes[1]) == (NO, NO)
    unlike = compare(one(*fields), protocol(message("other", 9, field("name", text(4))))).changes
    assert [change.kind for change in unlike] == ["removed", "added"]


def test_messages_that_changed_tags_are_taken_for_one_another() -> None:
    old = protocol(message("demo", 1, field("size", U8)), message("more", 2, field("rank", U8)))
    new = protocol(message("demo", 2, field("size", U8)), message("more", 1, field("rank", U8)))
    comparison = compare(old, new)
    assert {change.kind for change in comparison.changes} == {"tag", "value"}
    assert comparison.verdict == "breaking"


def test_a_tag_more() -> None:
    made = message("demo", 1)
    both = msgspec.structs.replace(made, tags=(*made.tags, "aaa309"))
    assert verdicts(only(protocol(made), protocol(both))) == (DEPENDS, YES)


# Fields


@pytest.mark.parametrize(
    ("old", "new", "kind", "expected", "effect"),
    [
        (U8, U32, "resized", (NO, NO), Effect.REWRITE),
        (ir.IntegerType(3), ir.IntegerType(2), "resized", (NO, NO), Effect.APPEND),
        (text(1), text(4), "resized", (NO, NO), Effect.APPEND),
        (text(1), ir.OctetsType(ir.Length("prefix", 1)), "retyped", (DEPENDS, YES), Effect.REWRITE),
        (ir.ListType(1, text(1)), ir.ListType(1, ir.OctetsType(ir.Length("prefix", 1))), "resized", (DEPENDS, YES), Effect.REWRITE),
        (ir.ListType(1, U8), ir.ListType(2, U8), "resized", (NO, NO), Effect.APPEND),
        (U32, ir.OctetsType(ir.Length("fixed", 4)), "retyped", (YES, YES), Effect.REWRITE),
        (ir.ConstantType("07"), U8, "retyped", (DEPENDS, YES), Effect.COLUMN),
        (ir.ConstantType("07"), ir.ConstantType("08"), "value", (NO, NO), Effect.APPEND),
        (ir.IntegerType(1, enum="kind"), U8, "retyped", (DEPENDS, YES), Effect.APPEND),
        (ir.JsonType(), ir.TextType(ir.Length("rest")), "retyped", (YES, YES), Effect.APPEND),
        (REST, ir.OctetsType(ir.Length("rest"), 1), "resized", (YES, DEPENDS), Effect.APPEND),
        (text(1), ir.TextType(ir.Length("prefix", 1), pattern="[a-z]*"), "characters", (YES, YES), Effect.APPEND),
        (text(1), ir.TextType(ir.Length("prefix", 1), terminated=True), "retyped", (DEPENDS, DEPENDS), Effect.APPEND),
        (ir.KeywordType(("A",)), ir.KeywordType(("A", "B")), "value", (DEPENDS, YES), Effect.APPEND),
        (ir.PairsType(1, text(1), None, "first"), ir.PairsType(1, text(1), text(1)), "resized", (NO, NO), Effect.APPEND),
        (ir.PairsType(1, text(1), None, "first"), ir.PairsType(1, text(1), None, "last"), "resized", (DEPENDS,) * 2, Effect.APPEND),
    ],
)  # fmt: skip
def test_types(
    old: ir.Type, new: ir.Type, kind: str, expected: tuple[Verdict, Verdict], effect: Effect
) -> None:
    change = only(one(field("size", old)), one(field("size", new)))
    assert (change.kind, verdicts(change), change.tables.effect) == (kind, expected, effect)


def test_fields_in_another_order() -> None:
    a, b, c = field("a", U8), field("b", U8), field("c", U32)
    change = only(one(a, b, c), one(c, a, b))
    assert (change.name, change.kind, verdicts(change)) == ("c", "moved", (NO, NO))
    assert change.tables.effect is Effect.APPEND


def test_a_renamed_field_is_the_same_where_the_comment_is() -> None:
    old = field("errnum", U32)
    same = msgspec.structs.replace(old, name="error")
    other = msgspec.structs.replace(same, doc="Another thing.")
    assert verdicts(only(one(old), one(same))) == (YES, YES)
    change = only(one(old), one(other))
    assert (change.kind, verdicts(change), change.tables.effect) == (
        "renamed",
        (DEPENDS, DEPENDS),
        Effect.COLUMN,
    )


def test_an_optional_end_of_a_frame() -> None:
    change = only(one(field("size", U8)), one(field("size", U8), field("more", REST)))
    assert (change.kind, verdicts(change)) == ("added", (DEPENDS, YES))


def test_what_the_profile_says() -> None:
    base = field("wait", U32, unit="ms", default=0, required=False)
    other_unit = only(one(base), one(msgspec.structs.replace(base, unit="s")))
    assert (other_unit.kind, verdicts(other_unit), other_unit.tables.effect) == (
        "unit",
        (NO, NO),
        Effect.REWRITE,
    )
    assert verdicts(only(one(base), one(msgspec.structs.replace(base, unit=None)))) == (YES, YES)
    default = only(one(base), one(msgspec.structs.replace(base, default=7)))
    assert (default.kind, default.new, verdicts(default)) == ("default", "default 7", (YES, YES))
    sentinel = only(one(base), one(msgspec.structs.replace(base, sentinels=("FOREVER",))))
    assert (sentinel.kind, sentinel.new, verdicts(sentinel)) == ("sentinels", "FOREVER", (DEPENDS, DEPENDS))


# Parts


BIT = bit("BODY", 1, announces="body")
OTHER_BIT = bit("BODY", 2, announces="body")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (flagged(None), flagged(ir.Always()), (NO, NO)),
        (flagged(None), flagged(ir.Counted()), (DEPENDS, YES)),
        (flagged(ir.Counted()), flagged(ir.Always()), (YES, DEPENDS)),
        (flagged(ir.Always(1, 1), BIT), flagged(ir.Announced(1, 1), BIT), (DEPENDS, YES)),
        (flagged(None, BIT), flagged(ir.Announced(1, 1), BIT), (DEPENDS, YES)),
    ],
)
def test_presence(old: ir.Protocol, new: ir.Protocol, expected: tuple[Verdict, Verdict]) -> None:
    assert verdicts(only(old, new)) == expected


def test_announced_by_another_bit() -> None:
    part, flag = compare(flagged(ir.Announced(1, 1), BIT), flagged(ir.Announced(2, 2), OTHER_BIT)).changes
    assert (part.kind, verdicts(part)) == ("presence", (DEPENDS, DEPENDS))
    assert (flag.kind, verdicts(flag)) == ("value", (NO, NO))


def test_a_frame_that_was_always_there_is_not_announced_by_old_data() -> None:
    part, flag = compare(flagged(ir.Always()), flagged(ir.Announced(1, 1), BIT)).changes
    assert (part.kind, verdicts(part)) == ("presence", (DEPENDS, NO))
    assert (flag.kind, verdicts(flag)) == ("added", (DEPENDS, YES))


def test_frames_that_are_told_apart_by_their_number_alone() -> None:
    made = message("demo", 1)
    first, second = (ir.Frame(name, (field(name, text(1)),), ir.Counted()) for name in ("first", "second"))
    old, new = (
        protocol(msgspec.structs.replace(made, parts=(*made.parts, *parts)))
        for parts in ((second,), (first, second))
    )
    change = only(old, new)
    assert (change.name, change.kind, verdicts(change)) == ("first", "added", (NO, DEPENDS))


def test_frames_in_another_order() -> None:
    made = message("demo", 1)
    a, b = (ir.Frame(name, (field(name, REST),)) for name in "ab")
    old, new = (msgspec.structs.replace(made, parts=(*made.parts, *parts)) for parts in ((a, b), (b, a)))
    change = only(protocol(old), protocol(new))
    assert (change.subject, change.kind, verdicts(change)) == ("part", "moved", (NO, NO))


def test_one_frame_or_all_that_are_left() -> None:
    made = message("demo", 1)
    frame, rest = ir.Frame("body", (field("body", REST),)), ir.Rest("body", field("body", REST))
    old, new = (msgspec.structs.replace(made, parts=(*made.parts, part)) for part in (frame, rest))
    change = only(protocol(old), protocol(new))
    assert (change.kind, verdicts(change), change.tables.effect) == (
        "retyped",
        (DEPENDS, YES),
        Effect.REWRITE,
    )


# Numbers with names


@pytest.mark.parametrize(
    ("old", "new", "kind", "expected"),
    [
        (bit("A", 1), bit("A", 2), "value", (NO, NO)),
        (bit("A", 1, "One."), bit("B", 1, "Two."), "meaning", (NO, NO)),
        (bit("A", 1), bit("B", 1), "meaning", (NO, NO)),
        (bit("A", 1, "One."), bit("B", 1, "One."), "renamed", (YES, YES)),
        (bit("A", 1, "One."), bit("A", 1, "One.", "body"), "meaning", (NO, NO)),
    ],
)
def test_bits(old: ir.FlagBit, new: ir.FlagBit, kind: str, expected: tuple[Verdict, Verdict]) -> None:
    change = only(one(FLAGS, flags=(old,)), one(FLAGS, flags=(new,)))
    assert (change.kind, verdicts(change)) == (kind, expected)


@pytest.mark.parametrize(
    ("members", "kind", "expected"),
    [
        ((*ENUM.members, ("MORE", 99)), "added", (DEPENDS, YES)),
        ((*ENUM.members, ("ALIAS", 1)), "added", (YES, YES)),
        (ENUM.members[1:], "removed", (YES, DEPENDS)),
        ((("KIND_1", 77), *ENUM.members[1:]), "value", (NO, NO)),
        ((("FIRST", 1), *ENUM.members[1:]), "renamed", (DEPENDS, DEPENDS)),
    ],
)
def test_members(members: tuple[tuple[str, int], ...], kind: str, expected: tuple[Verdict, Verdict]) -> None:
    used = field("kind", ir.IntegerType(1, enum="kind"))
    change = only(one(used), one(used, enums=(msgspec.structs.replace(ENUM, members=members),)))
    assert (change.group, change.kind, verdicts(change)) == ("enumeration kind", kind, expected)


def test_an_enumeration_of_another_name_is_the_same_by_its_members() -> None:
    renamed = msgspec.structs.replace(ENUM, name="sort")
    old, new = (field("kind", ir.IntegerType(1, enum=name)) for name in ("kind", "sort"))
    change = only(one(old), one(new, enums=(renamed,)))
    assert (change.kind, verdicts(change)) == ("renamed", (YES, YES))


def test_constants() -> None:
    old, new = (one(constants=(ir.Constant("ENOSYS", value, ""),)) for value in (38, 39))
    change = only(old, new)
    assert (change.kind, verdicts(change), change.tables.effect) == ("value", (NO, NO), Effect.REWRITE)


# Agreements


def test_roles() -> None:
    role = ir.Role("C", "client", "DEALER")
    socket = only(one(roles=(role,)), one(roles=(msgspec.structs.replace(role, socket="REQ"),)))
    assert (socket.kind, socket.new, verdicts(socket)) == ("socket", "REQ", (DEPENDS, DEPENDS))
    name = only(one(roles=(role,)), one(roles=(msgspec.structs.replace(role, name="peer"),)))
    assert verdicts(name) == (YES, YES)
    assert only(one(), one(roles=(role,))).kind == "added"


def test_answers_apply_in_their_order() -> None:
    rows = ir.Answer("S", "Wat", field="size"), ir.Answer("S", "Rtfm", kind="tag")
    change = only(one(answers=rows), one(answers=rows[::-1]))
    assert (change.kind, verdicts(change)) == ("order", (YES, YES))
    silent = only(one(answers=rows), one(answers=(rows[0], ir.Answer("S", None, kind="tag"))))
    assert (silent.old, silent.new) == ("Rtfm", "silence")


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        ({"magics": ("ffee0012", "1200eeff")}, (DEPENDS, YES)),
        ({"magics": ("00",)}, (NO, NO)),
        ({"escape": 254}, (NO, NO)),
    ],
)
def test_streams(edit: dict[str, object], expected: tuple[Verdict, Verdict]) -> None:
    stream = ir.Stream(("ffee0012",), 4, 255, 4)
    change = only(one(stream=stream), one(stream=msgspec.structs.replace(stream, **edit)))
    assert (change.subject, verdicts(change)) == ("stream", expected)


def test_what_is_no_change() -> None:
    old = one(field("size", U8))
    said = one(msgspec.structs.replace(field("size", U8), doc="More words.", line=7, rule="octet"))
    new = msgspec.structs.replace(said, title="Another", edition="Demo v2", source="x", digest="y")
    comparison = compare(old, new)
    assert (comparison.verdict, comparison.new.edition) == ("same", "Demo v2")
