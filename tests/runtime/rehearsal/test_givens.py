"""What a user says that certain fields are."""

from __future__ import annotations

import pytest

from specwire.generated import filemq, flux
from specwire.runtime.rehearsal.errors import RehearsalError
from specwire.runtime.rehearsal.givens import read_givens
from specwire.runtime.rehearsal.language import Language
from tests.runtime.rehearsal.staging import stage_of


def test_values_are_of_the_kind_of_their_field() -> None:
    words = [
        "Request.topic=broker.ping",
        "Request.topic=42",
        'Request.payload="{}\\u0000"',
        "Request.nodeid=0",
        'Request.routes=["a", "b"]',
    ]
    assert read_givens(Language(flux), words) == {
        "Request": {
            "topic": ["broker.ping", "42"],
            "payload": [b"{}\0"],
            "nodeid": [0],
            "routes": [("a", "b")],
        }
    }


def test_given_values_are_said() -> None:
    stage = stage_of("filemq", "C", given=["Icanhaz.path=/a", "Icanhaz.path=/b", "Icanhaz.cache=[]"])
    drawn = [stage.deck.deal("Icanhaz") for _ in range(20)]
    assert {message.path for message in drawn} == {"/a", "/b"}
    assert {message.cache for message in drawn} == {()}
    assert len({message.options for message in drawn}) > 1


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("Icanhaz", "--set Icanhaz: MESSAGE.FIELD=VALUE is wanted"),
        ("Icanhas.path=/", "filemq has no message 'Icanhas'; did you mean 'Icanhaz'?"),
        ("Icanhaz.paht=/", "Icanhaz has no field 'paht'; did you mean 'path'?"),
        ("Nom.credit=much", "Nom.credit wants int, not 'much'"),
    ],
)
def test_what_is_wrong_is_said_with_what_was_meant(word: str, told: str) -> None:
    with pytest.raises(RehearsalError) as raised:
        read_givens(Language(filemq), [word])
    assert told in str(raised.value)


def test_roles_and_dialogs_are_those_of_the_protocol() -> None:
    language = Language(flux)
    with pytest.raises(RehearsalError, match=r"flux has no role 'X'; it has C \(client\), S \(server\)"):
        language.choose_dialogs("X", None)
    with pytest.raises(
        RehearsalError, match="C does not speak in a dialog 'peering' of flux; it does in rpc"
    ):
        language.choose_dialogs("C", "peering")
