"""Numbers for messages, and the columns of narrow rows."""

from __future__ import annotations

from importlib import import_module

import pytest
from pyspark.sql import SparkSession

from specwire.runtime.spark.answers.dialogs.symbols import Alphabet, Label, Pairing, dialogs_of, narrow_rows
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.protocols import known_protocols
from tests.runtime.spark.answers.dialogs import sessions

NOTED = "tap string, conversation string, sender string, peer string, seq long, ts timestamp, mono long"


def test_symbols_stand_for_labels() -> None:
    """A sender that is no role, and a message that did not decode, have symbols too."""
    alphabet = Alphabet("flux")
    pairings = len(Pairing)
    for message in (*alphabet.messages, None):
        labels = iter(alphabet.labels[alphabet.base(message) :])
        for sender in ("C", "S", None):
            assert [next(labels) for _ in range(pairings)] == [
                Label(sender, message, each) for each in Pairing
            ]
    is_undecodable = [label.message is None for label in alphabet.labels]
    assert is_undecodable == [symbol >= alphabet.undecodable for symbol in range(len(alphabet.labels))]


def test_all_protocols_with_a_dialog_can_be_followed() -> None:
    """The one without a dialog raises."""
    assert [name for name in known_protocols() if not dialogs_of(name)] == ["zmtp"]
    with pytest.raises(InputError, match="'zmtp' has no dialog"):
        Alphabet("zmtp")


def test_every_dialog_has_its_messages_in_the_alphabet() -> None:
    """A label that no typed table has could never be followed."""
    for protocol in ("filemq", "flux", "norfab", "norfab_ascii", "zre", "cmb1", "cmb1_json", "libfilemq"):
        names = set(import_module(f"specwire.generated.{protocol}.schema").SCHEMAS)
        for dialog in sessions.dialogs_of(protocol).values():
            labels = {label for row in dialog.strict.values() for label in row} | set(dialog.replies)
            assert {label.partition(":")[2] for label in labels} <= names


@pytest.mark.spark
@pytest.mark.parametrize(("protocol", "has_keys"), [("filemq", False), ("flux", True)])
def test_rows_have_keys_if_the_protocol_has_them(spark: SparkSession, protocol: str, has_keys: bool) -> None:
    """The column is missing otherwise."""
    message = Alphabet(protocol).messages[0]
    rows = narrow_rows({message: spark.createDataFrame([], NOTED)}, Alphabet(protocol))
    assert ("key" in rows.columns) == has_keys
