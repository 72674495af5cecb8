"""Which protocol a connection's messages are of, and who has which role."""

from __future__ import annotations

import pytest

from specwire.generated import cmb1, filemq, flux, libfilemq, norfab, norfab_ascii, zre
from specwire.runtime.pcap.choosing import Chooser, Roles, in_order

ALL = [flux, filemq, norfab, norfab_ascii, libfilemq, zre, cmb1]


@pytest.mark.parametrize(
    ("package", "message"),
    [
        (flux, flux.Request(topic="kvs.get")),
        (filemq, filemq.Ohai()),
        (libfilemq, libfilemq.Ohai()),
        (norfab, norfab.Open(body=b"{}")),
        (norfab_ascii, norfab_ascii.Open(body=b"{}")),
    ],
    ids=lambda value: getattr(value, "PROTOCOL", None),
)
def test_first_message_tells_the_protocol(package: object, message: flux.Request) -> None:
    chooser = Chooser(ALL)
    assert chooser.package is None
    reading = chooser.decode(message.encode())
    assert (reading.protocol, reading.error) == (message.PROTOCOL, None)
    assert reading.message == message and chooser.package is package


def test_what_both_dialects_read_stays_open_until_one_fails() -> None:
    """HUGZ is AA A3 09 in both; OHAI of libfilemq has two octets of version."""
    chooser = Chooser([filemq, libfilemq])
    assert chooser.decode(filemq.Hugz().encode()).protocol == "filemq"
    assert chooser.decode(libfilemq.Ohai().encode()).protocol == "libfilemq"
    assert chooser.decode(filemq.Hugz().encode()).protocol == "libfilemq"
    reading = chooser.decode(filemq.Ohai().encode())
    assert reading.protocol == "libfilemq" and "OHAI.version" in str(reading.error)


def test_what_nothing_reads() -> None:
    reading = Chooser([filemq, zre]).decode([b"?"])
    assert reading == (None, None, "a message of none of the protocols filemq, zre")
    assert Chooser([], unknown="mine").decode([b"?"]).error == (
        "there is no protocol 'mine' here: "
        "name its package with --packages MODULE, --grammars DIR or SPECWIRE_PACKAGES"
    )


def test_transport_is_never_what_is_carried() -> None:
    assert in_order(["mine", "zre", "zmtp", "flux"]) == ["flux", "zre", "mine"]


def test_roles() -> None:
    """Who is connected to is the server or broker; what a NORFAB peer sends tells client and worker apart."""
    roles = Roles()
    assert roles.of(None, None, is_listener=True) == ""
    assert (
        roles.of(filemq, None, is_listener=True) == "S" and roles.of(filemq, None, is_listener=False) == "C"
    )
    opening: object
    for opening, letter in (
        (norfab.Open(body=b"{}"), "C"),
        (norfab.Open(header="NFPW01", body=b"{}"), "W"),
        (norfab.Ready(service="all"), "W"),
    ):
        roles = Roles()
        assert roles.of(norfab, opening, is_listener=False) == letter
        assert roles.of(norfab, None, is_listener=False) == letter
        assert roles.of(norfab, opening, is_listener=True) == "B"
