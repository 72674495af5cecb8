"""Status of a peer: its process, and metrics from the fields of a status."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from enum import Enum
from typing import Annotated, Any

import msgspec

from specwire.runtime.kernel.status import Distribution, Measure, ProcessClock, measure


def test_uptime_is_that_of_the_peer() -> None:
    """It grows, and the start has a time zone."""
    clock = ProcessClock()
    first, second = clock.describe(), clock.describe()
    assert second.uptime_s >= first.uptime_s >= 0
    assert first.pid == os.getpid()
    assert datetime.fromisoformat(first.started).tzinfo is UTC


class Row(msgspec.Struct, frozen=True):
    """One room."""

    room: str
    open_doors: int


class House(msgspec.Struct, frozen=True):
    """Status of a house, with every kind of measure."""

    name: str
    warm: Annotated[bool, Measure("gauge", "Whether it is warm.")]
    came: Annotated[int, Measure("counter", "People.", "people", {"direction": "in"})]
    left: Annotated[int, Measure("counter", "People.", "people", {"direction": "out"})]
    by_day: Annotated[dict[str, int], Measure("counter", "Visits.", label="day")]
    rooms: Annotated[tuple[Row, ...], Measure("gauge", "Rooms.")]
    visit_s: Annotated[Distribution, Measure("histogram", "Length of a visit.", "visit_seconds")]
    cellar: Row


def house() -> House:
    """Return a house with two rooms and three visits."""
    visits = Distribution((1.0, 10.0))
    for seconds in (0.5, 10.0, 11.0):
        visits.add(seconds)
    rooms = (Row("kitchen", 1), Row("hall\n", 1200))
    return House("house", True, 3, 2, {"Monday": 4}, rooms, visits, Row("cellar", 0))


def test_measures_of_a_status() -> None:
    """Numbers, labels, lengths, and cumulative buckets as Prometheus has them."""
    families: dict[str, Any] = {family.name: family for family in measure(house(), "specwire_house")}
    assert {name: family.samples for name, family in families.items()} == {
        "specwire_house_warm": {(): 1},
        "specwire_house_people": {("in",): 3, ("out",): 2},
        "specwire_house_by_day": {("Monday",): 4},
        "specwire_house_rooms": {(): 2},
        "specwire_house_visit_seconds": {(): 21.5},
    }
    assert families["specwire_house_visit_seconds"].buckets == {(): [1, 2, 3]}
    assert families["specwire_house_people"].labels == ("direction",)


class Season(Enum):
    """Two seasons."""

    SUMMER = "summer"
    WINTER = "winter"


class Garage(msgspec.Struct, frozen=True):
    """A garage, known by its street."""

    street: str
    cars: Annotated[int, Measure("gauge", "Cars.", by="street")]


class Shed(msgspec.Struct, frozen=True):
    """A shed, one like the other."""

    tools: Annotated[int, Measure("gauge", "Tools in all sheds.")]


class Village(msgspec.Struct, frozen=True):
    """Status with other structs in it."""

    season: Annotated[Season, Measure("gauge", "1 for the season.", label="season")]
    guest: Annotated[Row | None, Measure("gauge", "Whether somebody visits.")]
    garages: Annotated[tuple[Garage, ...], Measure("gauge", "Garages.")]
    sheds: tuple[Shed, ...]


def measured(village: Village) -> dict[str, Any]:
    """Return the samples by name."""
    return {family.name: family.samples for family in measure(village, "specwire_village")}


def test_measures_of_elements() -> None:
    """They are told apart by a field, or added up; a member of an enumeration is 1."""
    garages = Garage("north", 2), Garage("south", 1)
    assert measured(Village(Season.WINTER, None, garages, (Shed(5), Shed(6)))) == {
        "specwire_village_season": {("summer",): 0, ("winter",): 1},
        "specwire_village_guest": {(): 0},
        "specwire_village_garages": {(): 2},
        "specwire_village_cars": {("north",): 2, ("south",): 1},
        "specwire_village_tools": {(): 11},
    }


def test_measures_without_elements() -> None:
    """A metric without labels is 0, and one with labels has no sample."""
    found = measured(Village(Season.SUMMER, Row("attic", 0), (), ()))
    assert found["specwire_village_tools"] == {(): 0} and found["specwire_village_cars"] == {}
    assert found["specwire_village_guest"] == {(): 1}
