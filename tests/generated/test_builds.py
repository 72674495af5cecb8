"""What holds across builds: a message in C is the one in Python to everybody who cannot see how it is made."""

from __future__ import annotations

import copy
import functools
import inspect
import os
import pickle
import pydoc
import subprocess
import sys
import threading
import typing
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specwire.generated.builds import PURE
from specwire.generated.errors import EncodeError
from specwire.generated.layout import ListOf, ProtocolLayout, Record, Type, Union
from specwire.generated.messages import Message, restore
from specwire.generated.messages import Record as RecordBase
from tests.cases import each_case
from tests.examples import examples
from tests.generated import strategies
from tests.generated.agreement import fields_of
from tests.generated.builds import package, twins
from tests.generated.vectors import PACKAGES


def layout_of(name: str) -> ProtocolLayout:
    """The layout of a package, without the package's choice of a build."""
    layout = import_module(f"specwire.generated.{name}.layout").LAYOUT
    assert isinstance(layout, ProtocolLayout)
    return layout


def record_names(name: str) -> Iterator[str]:
    """The class names of the records of a package."""

    def inside(type: Type) -> Iterator[str]:
        match type:
            case ListOf(element=element):
                yield from inside(element)
            case Union(options=options):
                for option in options:
                    yield from inside(option)
            case Record(class_name=class_name, fields=fields):
                yield class_name
                for field in fields:
                    yield from inside(field.type)

    for entry in layout_of(name).messages:
        for field in fields_of(entry):
            yield from inside(field.type)


def classes_of(name: str) -> list[str]:
    """The names of all classes of a package, messages and records."""
    return [*(entry.class_name for entry in layout_of(name).messages), *dict.fromkeys(record_names(name))]


every_package = pytest.mark.parametrize("name", PACKAGES)
every_class = each_case("class_name", classes_of)


def pure_of(value: Any, codec: Any) -> Any:
    """A value with the records in it as those of the pure build."""
    if isinstance(value, RecordBase):
        class_ = getattr(codec, type(value).__name__)
        return class_(**{name: pure_of(getattr(value, name), codec) for name in class_.__match_args__})
    return tuple(pure_of(item, codec) for item in value) if isinstance(value, tuple) else value


@every_package
@settings(max_examples=examples(30), deadline=None)
@given(data=st.data())
def test_a_message_is_its_twin(name: str, data: st.DataObject) -> None:
    module = package(name, "native")
    native = data.draw(strategies.messages(module))
    pure = pure_of(native, module.codec)
    assert type(pure) is not type(native) is module.MESSAGES[type(pure).__name__]
    assert native == pure and pure == native
    assert (native != pure, pure != native) == (False, False)
    assert hash(native) == hash(pure)
    assert len({native, pure}) == 1
    assert repr(native) == repr(pure)
    assert native.to_dict() == pure.to_dict()
    assert list(native.to_dict()) == list(pure.to_dict())
    assert native.encode() == pure.encode()
    assert module.codec.decode(native.encode()) == module.decode(pure.encode())
    assert getattr(native, "wire_flags", None) == getattr(pure, "wire_flags", None)


@every_package
@settings(max_examples=examples(30), deadline=None)
@given(data=st.data())
def test_pickles_are_read_by_the_active_build(name: str, data: st.DataObject) -> None:
    """Whoever wrote them: one class path, and never a class of the other build."""
    module = package(name, "native")
    native = data.draw(strategies.messages(module))
    pure = pure_of(native, module.codec)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.dumps(pure, protocol) == pickle.dumps(native, protocol)
        assert type(pickle.loads(pickle.dumps(pure, protocol))) is type(native)
        assert pickle.loads(pickle.dumps(pure, protocol)) == native


@every_package
@settings(max_examples=examples(30), deadline=None)
@given(data=st.data())
def test_one_changed_field_is_another_message(name: str, data: st.DataObject) -> None:
    module = package(name, "native")
    native = data.draw(strategies.messages(module))
    pure = pure_of(native, module.codec)
    for field in type(native).__match_args__:
        for one, other in ((native, pure), (pure, native), (native, native), (pure, pure)):
            assert one.replace(**{field: object()}) != other
            assert one != other.replace(**{field: "something else"})


@every_package
@every_class
def test_classes_are_described_alike(name: str, class_name: str) -> None:
    pure, native = (typing.cast(Any, class_) for class_ in twins(name, class_name))
    for class_ in (pure, native):
        assert issubclass(class_, RecordBase)
        assert issubclass(class_, Message) == (class_name in layout_names(name))
        assert class_.__module__ == f"specwire.generated.{name}"
        assert class_.__qualname__ == class_.__name__ == class_name
    assert native.__match_args__ == pure.__match_args__
    assert inspect.getdoc(native) == inspect.getdoc(pure)  # Python 3.13 takes indentation out of its own
    constants = {key for key in vars(pure) if not key.startswith("_") and not callable(getattr(pure, key))}
    constants -= {*pure.__match_args__, "wire_flags"}
    assert {key: getattr(native, key) for key in constants} == {key: getattr(pure, key) for key in constants}
    assert parameters(native) == parameters(pure)
    hints = typing.get_type_hints(native), typing.get_type_hints(pure)
    assert [hints[0][field] for field in pure.__match_args__] == [
        hints[1][field] for field in pure.__match_args__
    ]


def parameters(class_: type) -> list[tuple[str, Any, Any]]:
    """Names, kinds and defaults."""
    return [(p.name, p.kind, p.default) for p in inspect.signature(class_).parameters.values()]


def layout_names(name: str) -> set[str]:
    return {entry.class_name for entry in layout_of(name).messages}


@every_package
@every_class
def test_construction_takes_and_refuses_the_same(name: str, class_name: str) -> None:
    """Nothing, all by position, one too many, an unknown name, a name twice: the twins answer alike."""
    pure, native = twins(name, class_name)
    fields: tuple[str, ...] = native.__match_args__  # type: ignore[attr-defined]
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((), {}),
        ((), {"no_such_field": 1}),
        (tuple(range(len(fields) + 1)), {}),
        (tuple(range(len(fields))), {"no_such_field": 1}),
        *((tuple(range(count)), {}) for count in range(1, len(fields) + 1)),
        *(((), dict.fromkeys(fields[:count], 1)) for count in range(1, len(fields) + 1)),
        *(((), dict.fromkeys(fields[count:], 1)) for count in range(1, len(fields))),
        *(((1,), {field: 1}) for field in fields),
    ]
    for positional, named in calls:
        assert outcome(native, positional, named) == outcome(pure, positional, named), (positional, named)


def outcome(class_: type, positional: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """The values of the message that is made, or the type of what is raised."""
    try:
        return class_(*positional, **named)._values()
    except TypeError as error:
        return type(error)


@every_package
@every_class
def test_every_way_to_call_a_class_gives_the_same(name: str, class_name: str) -> None:
    """By way of `type` too, as compiled code calls a class: made or refused, no message is ever half made."""
    for class_ in twins(name, class_name):
        values = {field: place for place, field in enumerate(class_.__match_args__)}  # type: ignore[attr-defined]
        message = class_(**values)
        assert functools.partial(class_, **values)() == message
        try:
            assert type.__call__(class_, **values) == message
        except TypeError as error:
            assert "takes no arguments" in str(error)
        with pytest.raises(TypeError):
            type.__call__(class_, no_such_field=1)


ODD_VALUES: list[Any] = [
    None, -1, 2**64, 2**63, 256, True, 1.5, "x", b"x", bytearray(b"x"), (), [], ("a", "b"), [("a", "b")], {"a": "b"}, object(),
]  # fmt: skip


@every_package
@every_class
def test_a_value_that_does_not_fit_is_kept_as_it_was_given(name: str, class_name: str) -> None:
    """Encoding refuses it, in the same words; until then it is there, and is the same object."""
    pure, native = twins(name, class_name)
    sound = dict.fromkeys(native.__match_args__, 1)  # type: ignore[attr-defined]
    for field in sound:
        for odd in ODD_VALUES:
            one, other = native(**sound | {field: odd}), pure(**sound | {field: odd})
            assert getattr(one, field) is odd or (type(odd) is int and getattr(one, field) == odd)
            assert type(getattr(one, field)) is type(odd)
            assert one == other and other == one
            assert repr(one) == repr(other)
            assert told(one, hash) == told(other, hash)
            if isinstance(one, Message):
                assert told(one, lambda m: m.encode()) == told(other, lambda m: m.encode())
                assert told(one, lambda m: m.encode(strict=True)) == told(
                    other, lambda m: m.encode(strict=True)
                )


def told(message: Any, question: Any) -> Any:
    """What comes of a question, or what is raised, in words."""
    try:
        return question(message)
    except (TypeError, EncodeError) as error:
        return type(error), str(error)


@every_package
@every_class
def test_nothing_can_be_changed(name: str, class_name: str) -> None:
    for class_ in twins(name, class_name):
        fields = class_.__match_args__  # type: ignore[attr-defined]
        message = class_(**dict.fromkeys(fields, 1))
        for field in (*fields, "NAME", "other", "__class__"):
            with pytest.raises((AttributeError, TypeError)):
                setattr(message, field, 2)
            with pytest.raises((AttributeError, TypeError)):
                delattr(message, field)
        assert [getattr(message, field) for field in fields] == [1] * len(fields)


@every_package
@every_class
def test_copies(name: str, class_name: str) -> None:
    for class_ in twins(name, class_name):
        fields = class_.__match_args__  # type: ignore[attr-defined]
        message: Any = class_(**{field: [1] for field in fields})
        assert copy.copy(message) == message
        deep = copy.deepcopy(message)
        assert type(deep) is class_ and deep == message
        assert all(getattr(deep, field) is not getattr(message, field) for field in fields)
        assert message.replace() == message.__replace__() == message
        for field in fields:
            assert getattr(message.replace(**{field: 2}), field) == 2
        with pytest.raises(TypeError):
            message.replace(no_such_field=1)


@every_package
@every_class
def test_patterns_match_by_position(name: str, class_name: str) -> None:
    class_: Any
    for class_ in twins(name, class_name):
        fields = class_.__match_args__
        match class_(**{field: place for place, field in enumerate(fields)}):
            case class_() if not fields:
                pass
            case class_(first):
                assert first == 0
            case _:
                raise AssertionError("no match")


@every_package
@every_class
def test_classes_are_pickled_by_their_name(name: str, class_name: str) -> None:
    _, native = twins(name, class_name)
    assert pickle.loads(pickle.dumps(native)) is native


def test_a_pickle_crosses_to_a_process_of_the_other_build_and_back() -> None:
    """Written here in C, read and written there in Python, read here in C again."""
    module = package("filemq", "native")
    message = module.Icanhaz("/a", options=(("x", "1"),), cache=(("f", "0123"),))
    program = (
        "import pickle, sys; from specwire.generated import filemq; assert not filemq.ACCELERATED;"
        "message = pickle.load(sys.stdin.buffer); assert type(message) is filemq.codec.Icanhaz;"
        "sys.stdout.buffer.write(pickle.dumps((message, type(message))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=pickle.dumps(message),
        env={**os.environ, PURE: "1"},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    back, class_ = pickle.loads(done.stdout)
    assert back == message and type(back) is class_ is module.Icanhaz


def test_a_pickle_of_another_edition_says_so() -> None:
    with pytest.raises(TypeError, match="Nom has 1 fields, and 2 were pickled: another edition"):
        restore("specwire.generated.filemq", "Nom", (1, 2))
    with pytest.raises(AttributeError, match="Lost"):
        restore("specwire.generated.filemq", "Lost", ())


@pytest.mark.parametrize("build", ["pure", "native"])
def test_octets_may_be_views(build: str) -> None:
    """They compare, hash, print and pickle as what they show, whatever lies below."""
    flux, filemq = package("flux", build), package("filemq", build)
    below = bytearray(b"octets")
    for view in (memoryview(b"octets"), memoryview(below), memoryview(below).toreadonly()):
        for shown, owned in (
            (flux.Request(payload=view), flux.Request(payload=b"octets")),
            (filemq.Cheezburger(1, 1, "/f", 0, (), view), filemq.Cheezburger(1, 1, "/f", 0, (), b"octets")),
        ):
            assert shown == owned and owned == shown
            assert hash(shown) == hash(owned)
            assert repr(shown) == repr(owned)
            assert pickle.dumps(shown) == pickle.dumps(owned)
            assert copy.deepcopy(shown) == owned
            assert shown.encode() == owned.encode()
            assert shown.replace() == owned
            assert dict(shown.__rich_repr__()) == owned.to_dict()


def test_views_in_a_tuple_of_octets() -> None:
    for build in ("pure", "native"):
        cmb1 = package("cmb1", build)
        shown = cmb1.Request(topic="a", routes=(memoryview(bytearray(b"id")),))
        owned = cmb1.Request(topic="a", routes=(b"id",))
        assert (shown == owned, hash(shown), repr(shown)) == (True, hash(owned), repr(owned))
        assert pickle.loads(pickle.dumps(shown)).routes == (b"id",)


@pytest.mark.parametrize("build", ["pure", "native"])
def test_help_tells_fields_and_their_meaning(build: str) -> None:
    flux = package("flux", build)
    text = pydoc.render_doc(flux.Request, renderer=pydoc.plaintext)  # type: ignore[attr-defined]
    assert "class Request(" in text
    assert "request: A request for a service; the topic names it." in text
    assert "Rank that the request is for." in text
    assert "Return the ZeroMQ frames of the message" in text
    assert "_values" not in text


def test_threads_share_messages() -> None:
    """Each decodes, encodes and compares what all others do, at once."""
    flux = package("flux", "native")
    message = flux.Request(topic="kvs.get", payload=b"{}\0", matchtag=7)
    frames = message.encode()
    found: list[bool] = []

    def work() -> None:
        same = [
            flux.decode(frames) == message and hash(flux.decode(frames)) == hash(message) for _ in range(300)
        ]
        found.append(all(same) and message.encode() == frames)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert found == [True] * 8


@every_package
def test_tables_hold_classes_of_their_build(name: str, build: str) -> None:
    module = package(name, build)
    assert (build == "native") is module.ACCELERATED
    assert all(class_ is getattr(module, key) for key, class_ in module.MESSAGES.items())
    assert set(module.UNEXPECTED.values()) <= set(module.MESSAGES.values())
    answered = typing.get_args(module.AnyMessage) or (module.AnyMessage,)
    assert set(answered) == set(module.MESSAGES.values())
