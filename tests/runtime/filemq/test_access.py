"""Who may subscribe to what: permitted paths, lists of clients with their faults, and a name that changes hands."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
import zmq

from specwire.generated.filemq import IcanhazOk, Nom, Ohai, OhaiOk, Srsly
from specwire.runtime.filemq.access import (
    AccessError,
    Client,
    Clients,
    ServerSecurity,
    fault_in_security,
    judge_by,
    load_clients,
    load_passwords,
    read_client_security,
    read_server_security,
)
from specwire.runtime.filemq.catalogue import Put
from specwire.runtime.filemq.events import FilePublished, PeerClosed
from specwire.runtime.filemq.server import allow_all
from specwire.runtime.kernel.effects import CancelAsk
from specwire.runtime.transport.keys import KeyPair, make_keys
from specwire.runtime.transport.security import NULL, CurveClient, CurveServer, PlainClient, PlainServer
from tests.runtime.filemq.server_driver import (
    LABEL,
    ServerDriver,
    content,
    entry,
    logged,
    one_read,
    reads,
    sent,
    subscription,
)


def new_key() -> str:
    return zmq.curve_keypair()[0].decode()


def only(*paths: str) -> Clients:
    return Clients([Client("site-b", paths, key=new_key())])


@pytest.mark.parametrize(
    ("permitted", "path", "allowed"),
    [
        ("/foo", "/foo", True),
        ("/foo", "/foo/bar", True),
        ("/foo/", "/foo/bar", True),
        ("/foo", "/foobar", False),
        ("/foo", "/fo", False),
        ("/foo", "/", False),
        ("/foo", "/FOO", False),
        ("/foo", "/bar/foo", False),
        ("/foo/bar", "/foo", False),
        ("/", "/", True),
        ("/", "/anything/at all", True),
        ("/ünïcode", "/ünïcode/文件", True),
        ("/ünïcode", "/u\u0308ni\u0308code", False),  # other octets are another name
    ],
)
def test_a_permitted_path_is_a_whole_one(permitted: str, path: str, allowed: bool) -> None:
    assert (only(permitted).refusal("site-b", path) is None) == allowed


def test_a_client_that_is_not_listed_may_nothing() -> None:
    for user in ("", "site-c", "site"):
        assert only("/").refusal(user, "/foo") is not None


@pytest.mark.parametrize(
    "path",
    ["/foo/../secret", "/foo/..", "/foo//secret", "/foo/./../secret", "/foobar", "/", "", "foo", "/foo//"],
)
def test_tricks_with_paths_are_refused_by_the_engine(path: str) -> None:
    """SRSLY, and nothing from outside; files that are published later are not sent either."""
    driver = ServerDriver(authorise=judge_by(only("/foo"), allow_all))
    assert sent(driver.receive(Ohai().encode(), user="site-b")) == [OhaiOk()]
    driver.receive(Nom(credit=1000).encode(), user="site-b")
    (answer,) = sent(driver.receive(ask(path), user="site-b"))
    assert isinstance(answer, Srsly)
    # FILEMQ v2: any further commands from this client are discarded.
    assert driver.receive(ask("/foo"), user="site-b") == []
    effects = driver.change(*(Put(entry(name, 1)) for name in ("/secret", "/foobar", "/foo/a")))
    assert [type(event) for event in logged(effects)] == [FilePublished] * 3
    assert len(effects) == 3


def test_the_list_and_the_callback_have_both_to_allow() -> None:
    judge = judge_by(only("/foo"), lambda user, path: "is closed today" if path == "/foo/bar" else None)
    assert judge("site-b", "/foo") is None
    assert judge("site-b", "/foo/bar") == "is closed today"
    assert judge("site-b", "/baz") == "is not permitted to 'site-b'"


def test_another_client_with_the_same_routing_id_inherits_nothing() -> None:
    """Who takes the routing id of a client that has just left gets neither its subscriptions nor its credit."""
    clients = Clients([Client("a", ("/a",), key=new_key()), Client("b", ("/b",), key=new_key())])
    driver = ServerDriver(authorise=judge_by(clients, allow_all))
    for message in (Ohai().encode(), ask("/a"), Nom(credit=1000).encode()):
        driver.receive(message, user="a")
    request = one_read(driver.publish(entry("/a/news", 1)))
    assert driver.credit() == 1000
    effects = driver.receive(Ohai().encode(), user="b")
    assert CancelAsk(request.ticket) in effects
    assert PeerClosed(LABEL, "another client has its routing id now") in logged(effects)
    assert sent(effects) == [OhaiOk()]
    assert (driver.clients, driver.credit()) == (1, 0)
    assert driver.read(request, b"1") == []
    effects = driver.publish(entry("/a/news", 1, "BB"))
    assert (content(effects), reads(effects)) == ([], [])
    assert sent(driver.receive(ask("/b"), user="b")) == [IcanhazOk()]
    assert isinstance(sent(driver.receive(ask("/a"), user="b"))[0], Srsly)


@pytest.mark.parametrize("frames", [[b"nonsense"], [b"\xaa\xa3\x07"], Nom(credit=1).encode()])
def test_any_message_of_another_client_ends_a_peering(frames: list[bytes]) -> None:
    """Also one that is not accepted: it shows that the client which had the routing id has gone."""
    driver = ServerDriver()
    driver.receive(Ohai().encode(), user="a")
    driver.receive(frames, user="b")
    assert driver.clients == driver.suspended == 0


def ask(path: str) -> list[bytes]:
    return subscription(path).encode()


# ---- lists of clients


def write(folder: Path, text: str, *, mode: int = 0o600) -> Path:
    file = folder / "clients.toml"
    file.write_text(text, encoding="utf-8")
    os.chmod(file, mode)
    return file


def test_a_list_has_keys_as_text_and_as_files(tmp_path: Path) -> None:
    public, _ = make_keys(tmp_path / "keys", "site b")
    key = new_key()
    known = load_clients(
        write(
            tmp_path,
            '["site b"]\nkey = "keys/site b.key"\npaths = ["/"]\n'
            f"['zoë']\nkey = '{key}'\npaths = ['/photos/', '/docs/public']\n",
        )
    )
    assert set(known.names.values()) == {"site b", "zoë"}
    assert known.names[key] == "zoë"
    assert next(k for k, name in known.names.items() if name == "site b") in public.read_text()
    assert known.passwords == {}
    assert known.refusal("zoë", "/photos/2013") is None
    assert known.refusal("zoë", "/docs") is not None
    assert known.refusal("site b", "/docs") is None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "lists nobody: add a table [NAME] with key and paths"),
        ("[a\n", "is not TOML"),
        ('[a]\nkey = "K"\npaths = ["/"]\n[a]\n', "is not TOML"),
        ("a = 1\n", "client 'a': write a table [a] with key and paths"),
        ('[a]\nkey = "K"\npath = ["/"]\n', "client 'a': it has the unknown entry 'path'; only key and paths"),
        ('[a]\npassword = "x"\npaths = ["/"]\n', "client 'a': it has the unknown entry 'password'"),
        ('[a]\npaths = ["/"]\n', "client 'a': it needs key = "),
        ("[a]\nkey = 5\npaths = ['/']\n", "client 'a': it needs key = "),
        ('[a]\nkey = "K"\n', "client 'a': it needs paths = "),
        ('[a]\nkey = "K"\npaths = "/"\n', "client 'a': it needs paths = "),
        ('[a]\nkey = "K"\npaths = [1]\n', "client 'a': it needs paths = "),
        ('[a]\nkey = "K"\npaths = []\n', "client 'a': it may subscribe to nothing"),
        ('[a]\nkey = "K"\npaths = ["photos"]\n', "client 'a': its path 'photos' is not a full virtual path"),
        ('[a]\nkey = "K"\npaths = ["/a/../b"]\n', "its path '/a/../b' has a component '.' or '..'"),
        ('[a]\nkey = "K"\npaths = ["/a//b"]\n', "its path '/a//b' has an empty component"),
        ('[a]\nkey = "short"\npaths = ["/"]\n', "client 'a': 'short' is no public key: 40 characters of Z85"),
        ('[a]\nkey = "missing.key"\npaths = ["/"]\n', "missing.key cannot be read"),
        (
            '[""]\nkey = "K"\npaths = ["/"]\n',
            "client '': its name must have 1 to 255 octets of printable text",
        ),
        ('["a\\u0000b"]\nkey = "K"\npaths = ["/"]\n', "its name must have 1 to 255 octets of printable text"),
        (
            '[a]\nkey = "K"\npaths = ["/"]\n[b]\nkey = "K"\npaths = ["/"]\n',
            "client 'b': the key is that of 'a' too",
        ),
    ],
)
def test_faults_of_a_list_are_told_with_file_and_entry(tmp_path: Path, text: str, sentence: str) -> None:
    file = write(tmp_path, text.replace('"K"', f"'{new_key()}'"))
    with pytest.raises(AccessError) as caught:
        load_clients(file)
    assert str(file) in str(caught.value) or "missing.key" in str(caught.value)
    assert sentence in str(caught.value)


def test_passwords_are_for_their_owner_alone(tmp_path: Path) -> None:
    text = '[ada]\npassword = "lovelace"\npaths = ["/"]\n'
    assert load_passwords(write(tmp_path, text)).passwords == {"ada": "lovelace"}
    readable = write(tmp_path, text, mode=0o640)
    with pytest.raises(AccessError, match="chmod 600"):
        load_passwords(readable)
    with pytest.raises(AccessError, match="unknown entry 'key'"):
        load_passwords(write(tmp_path, '[ada]\nkey = "x"\npaths = ["/"]\n'))
    with pytest.raises(AccessError, match="longer than 255 octets"):
        load_passwords(write(tmp_path, f'[ada]\npassword = "{"é" * 128}"\npaths = ["/"]\n'))
    assert "lovelace" not in repr(Client("ada", ("/",), password="lovelace"))
    assert stat.S_IMODE(readable.stat().st_mode) == 0o600


# ---- what goes together


def test_a_server_is_not_guarded_by_what_cannot_guard_it() -> None:
    pair = KeyPair(*(half.decode() for half in zmq.curve_keypair()))
    with_keys = only("/")
    with_passwords = Clients([Client("ada", ("/",), password="x")])
    fitting: list[tuple[ServerSecurity, Clients | None]] = [
        (NULL, None),
        (CurveServer(pair), None),
        (CurveServer(pair), with_keys),
        (PlainServer(), with_passwords),
    ]
    for security, clients in fitting:
        assert fault_in_security(security, clients) is None
    unfit: list[tuple[ServerSecurity, Clients | None]] = [
        (NULL, with_keys),
        (CurveServer(pair), with_passwords),
        (PlainServer(), with_keys),
        (PlainServer(), None),
    ]
    for security, clients in unfit:
        assert fault_in_security(security, clients) is not None
    assert "is for clients" in str(fault_in_security(PlainClient("a", "b"), None))


def test_options_of_a_server(tmp_path: Path) -> None:
    curve = make_keys(tmp_path, "server")[1]
    assert read_server_security(curve=None, clients=None, plain=None) == (NULL, None)
    security, clients = read_server_security(curve=curve, clients=None, plain=None)
    assert isinstance(security, CurveServer) and clients is None
    listed = write(tmp_path, f"[a]\nkey = '{new_key()}'\npaths = ['/']\n")
    assert read_server_security(curve=curve, clients=listed, plain=None)[1] is not None
    for given in (
        {"curve": curve, "plain": listed, "clients": None},
        {"curve": None, "plain": None, "clients": listed},
        {"curve": None, "plain": listed, "clients": listed},
        {"curve": tmp_path / "server.key", "plain": None, "clients": None},
    ):
        with pytest.raises(AccessError):
            read_server_security(**given)


def test_options_of_a_client(tmp_path: Path) -> None:
    public, secret = make_keys(tmp_path, "a")
    word = tmp_path / "word"
    word.write_text("love lace \nsecond line\n")
    os.chmod(word, 0o600)

    def given(**options: object) -> object:
        every: dict[str, object] = {
            "curve": None, "server_key": None, "user": None, "password_file": None, "environment": {}
        }  # fmt: skip
        return read_client_security(**{**every, **options})  # type: ignore[arg-type]

    key = new_key()
    assert given() == NULL
    by_curve = given(curve=secret, server_key=key)
    assert isinstance(by_curve, CurveClient) and by_curve.server_key == key
    by_file = given(curve=secret, server_key=str(public))
    assert isinstance(by_file, CurveClient) and by_file.server_key == by_file.keys.public
    assert given(user="ada", password_file=word) == PlainClient("ada", "love lace ")
    assert given(user="ada", environment={"SPECWIRE_PASSWORD": "x"}) == PlainClient("ada", "x")
    assert given(environment={"SPECWIRE_PASSWORD": "x"}) == NULL
    for wrong, sentence in (
        ({"curve": secret}, "name both"),
        ({"server_key": key}, "name both"),
        ({"curve": secret, "server_key": key, "user": "ada"}, "choose one"),
        ({"curve": secret, "server_key": "nonsense"}, "'nonsense' is no public key"),
        ({"user": "ada"}, "set SPECWIRE_PASSWORD"),
        ({"password_file": word}, "needs user"),
        ({"user": "ada", "password_file": tmp_path / "none"}, "cannot be read"),
    ):
        with pytest.raises(AccessError, match=sentence):
            given(**wrong)
