"""What a package offers besides messages: answers to malformed and unexpected ones, modules loaded late."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from specwire.generated.errors import DecodeError, EncodeError, Violation
from tests.generated.builds import package
from tests.generated.vectors import PACKAGES

LATE = ("columns", "constructs", "machine", "schema")


@pytest.mark.parametrize("name", PACKAGES)
def test_importing_a_package_loads_no_library(name: str) -> None:
    """Construct, numpy, pyarrow and pyspark come with the module that needs them, when it is asked for."""
    program = f"""
import sys
from specwire.generated import {name}
heavy = {{"construct", "numpy", "pyarrow", "pandas", "pyspark", "lark", "jinja2", "zmq", "hypothesis"}}
assert not heavy & sys.modules.keys(), heavy & sys.modules.keys()
own = {{m for m in sys.modules if m.startswith("specwire.generated.{name}.")}}
assert not own & {{f"specwire.generated.{name}.{{late}}" for late in {LATE!r}}}, own
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", PACKAGES)
def test_late_modules_and_names(name: str, build: str) -> None:
    module = package(name, build)
    for late in LATE:
        found = getattr(module, late)
        assert found.__name__ == f"{module.__name__}.{late}"
        assert getattr(module, late) is found
    assert (module.DecodeError, module.EncodeError, module.Violation) == (DecodeError, EncodeError, Violation)
    for exported in module.__all__:
        assert hasattr(module, exported), exported
    with pytest.raises(AttributeError, match="no_such_name"):
        module.no_such_name  # noqa: B018
    assert {*module.MESSAGES, "MESSAGES", "UNEXPECTED", "answer", "decode", "EDITION"} <= set(module.__all__)


@pytest.mark.parametrize("name", PACKAGES)
def test_constructs_have_every_rule_and_message(name: str, build: str) -> None:
    module = package(name, build)
    assert list(module.constructs.MESSAGES) == list(module.MESSAGES)


def test_construct_names_keep_the_spelling_of_the_rules(filemq: Any, flux: Any) -> None:
    assert flux.constructs.PROTO.parse(b"\x8e\x01\x01\x00" + bytes(16)).id == b"\x01"
    assert flux.constructs.C_request is flux.constructs.MESSAGES["Request"]
    for name in ("OHAI_OK", "key_value", "S_SRSLY", "NOM"):
        assert hasattr(filemq.constructs, name), name
    assert filemq.constructs.NOM.parse(b"\xaa\xa3\x07" + bytes(7) + b"\x05").credit == 5


def refusal(module: object, frames: list[bytes]) -> DecodeError:
    with pytest.raises(DecodeError) as caught:
        module.decode(frames)  # type: ignore[attr-defined]
    return caught.value


FILEMQ_ANSWERS: list[tuple[list[bytes], str | None]] = [
    # A wrong signature is discarded without a word, whatever comes with it.
    ([b"\xaa\xa4\x01"], None),
    ([b"GET / HTTP/1.1"], None),
    ([b""], None),
    ([], None),
    # Another version and an unknown command are told with RTFM.
    ([b"\xaa\xa3\x01\x06FILEMQ\x03"], "Rtfm"),
    ([b"\xaa\xa3\x01\x06FILEMQ"], "Rtfm"),
    ([b"\xaa\xa3\x55"], "Rtfm"),
    # Everything else is WAT.
    ([b"\xaa\xa3\x01\x06FILEMX\x02"], "Wat"),
    ([b"\xaa\xa3\x01\x06FILEMQ\x02x"], "Wat"),
    ([b"\xaa\xa3\x07\x00"], "Wat"),
    ([b"\xaa\xa3\x04", b"more"], "Wat"),
    ([b"\xaa\xa3"], "Wat"),
]


@pytest.mark.parametrize(("frames", "reply"), FILEMQ_ANSWERS)
def test_filemq_server_answers_malformed_messages(
    filemq: Any, frames: list[bytes], reply: str | None
) -> None:
    error = refusal(filemq, frames)
    assert filemq.answer("S", error) is (reply and filemq.MESSAGES[reply])
    # A client answers none of them.
    assert filemq.answer("C", error) is None


def test_libfilemq_server_never_sends_wat(libfilemq: Any) -> None:
    assert libfilemq.answer("S", refusal(libfilemq, [b"\xaa\xa3\x07\x00"])) is libfilemq.Rtfm
    assert libfilemq.answer("S", refusal(libfilemq, [b"\xab\xa3\x07"])) is None
    assert not hasattr(libfilemq, "Wat")


def test_flux_answers_nothing_malformed(flux: Any) -> None:
    assert flux.answer("S", refusal(flux, [b"x"])) is None


def test_replies_to_unexpected_messages(filemq: Any, flux: Any, libfilemq: Any, norfab: Any) -> None:
    assert dict(filemq.UNEXPECTED) == {"S": filemq.Rtfm}
    assert dict(libfilemq.UNEXPECTED) == {"S": libfilemq.Rtfm}
    assert dict(norfab.UNEXPECTED) == {"B": norfab.Disconnect}
    assert dict(flux.UNEXPECTED) == {}
