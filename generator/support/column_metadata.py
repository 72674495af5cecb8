"""Metadata of the columns of messages: what a column means, and which rule defines it."""

from __future__ import annotations


def rule_metadata(
    edition: str, comment: str, rule: str, line: int = 0, *, named: bool = True, **more: str
) -> dict[str, str]:
    """Return the metadata of a field.

    Args:
        edition: edition of the protocol.
        comment: meaning of the field.
        rule: the field's grammar rule; of a field without a rule (not `named`), the rule that contains it.
        line: line of the field in the grammar; 0 if it is not from there.
        more: keys between ``abnf`` and ``source``.
    """
    where = f", grammar line {line}" if line else ""
    abnf = {"abnf": rule} if named else {}
    return {"comment": comment, **abnf, **more, "source": f"{edition}, rule {rule}{where}"}


def message_metadata(rule: str) -> dict[str, str]:
    """Return the metadata of the column for the messages that a rule defines."""
    return {"comment": f"Message {rule}; null in rows of other messages."}
