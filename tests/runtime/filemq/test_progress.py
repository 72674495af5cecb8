"""Progress: told of what takes long, at most once a look, and never of what came and went between two looks."""

from __future__ import annotations

from specwire.runtime.cli.peer_log import FILES_SHOWN, PROGRESS_S, ProgressLines
from specwire.runtime.filemq.events import FileReceived, FileSent, PeerClosed, Progress
from specwire.runtime.filemq.status import ProgressLooks, UnderWay


def under_way(octets: int, path: str = "/a", *, size: int | None = 1000, peer: str = "") -> UnderWay:
    return UnderWay(path, octets, size, peer)


def test_a_file_is_told_of_at_its_second_look() -> None:
    looks = ProgressLooks()
    assert looks.look([under_way(100)], 1.0) == []
    assert looks.look([under_way(500)], 3.0) == [Progress("/a", 500, 1000, 200.0)]
    assert looks.look([under_way(600)], 4.0) == [Progress("/a", 600, 1000, 100.0)]


def test_files_that_are_quick_are_never_told_of() -> None:
    looks = ProgressLooks()
    assert [looks.look([under_way(10, f"/{n}")], float(n)) for n in range(5)] == [[]] * 5


def test_a_file_that_stands_still_or_begins_again_is_not_told_of() -> None:
    looks = ProgressLooks()
    looks.look([under_way(500)], 1.0)
    assert looks.look([under_way(500)], 2.0) == []
    assert looks.look([under_way(100)], 3.0) == []
    assert looks.look([under_way(200)], 4.0) == [Progress("/a", 200, 1000, 100.0)]


def test_one_file_to_two_clients_is_two_transfers() -> None:
    looks = ProgressLooks()
    looks.look([under_way(0, peer="01"), under_way(0, peer="02")], 1.0)
    told = looks.look([under_way(10, peer="01"), under_way(20, peer="02")], 2.0)
    assert told == [Progress("/a", 10, 1000, 10.0, "01"), Progress("/a", 20, 1000, 20.0, "02")]


def test_the_rate_of_the_last_look_is_known() -> None:
    looks = ProgressLooks()
    looks.look([under_way(0)], 1.0)
    looks.look([under_way(300)], 2.0)
    assert looks.rated(under_way(350)).octets_per_s == 300.0
    assert looks.rated(under_way(350, "/b")).octets_per_s == 0.0
    looks.look([under_way(300)], 3.0)
    assert looks.rated(under_way(300)).octets_per_s == 0.0


def test_progress_in_words() -> None:
    received = Progress("/a", 450_000_000, 1_000_000_000, 55e6)
    assert received.describe() == "receiving /a: 45 % of 1.0 GB, 55.0 MB/s, 0:10 left"
    sent = Progress("/a", 999, 1_000_000_000_000, 1000.0, "00ff")
    assert sent.describe() == "sending /a to 00ff: 0 % of 1.0 TB, 0.0 MB/s, 11574 d 1:46:39 left"
    unknown = Progress("/a", 5_000, None, 2.5e8)
    assert unknown.describe() == "receiving /a: 5.0 kB, 250 MB/s"


class Log:
    """Lines of progress, with a clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0
        self.lines: list[str] = []
        self.progress = ProgressLines(self.lines.append, lambda: self.now)

    def tell(self, *files: tuple[str, str], octets: int = 500) -> None:
        for path, peer in files:
            self.progress.follow(Progress(path, octets, 1000, 1e6, peer))


def test_progress_is_told_every_few_seconds() -> None:
    log = Log()
    for second in range(11):
        log.now = 100.0 + second
        log.tell(("/a", ""))
    assert len(log.lines) == 1 + 10 // PROGRESS_S


def test_a_file_that_is_through_is_not_told_of_any_more() -> None:
    log = Log()
    log.tell(("/first", ""))
    log.tell(("/a", "01"), ("/b", "01"), ("/c", "02"), ("/d", ""), ("/e", "03"))
    for through in (FileSent("/a", 1000, "01"), FileReceived("/d", 1000, "AA"), PeerClosed("02", "is gone")):
        log.progress.follow(through)
    log.lines.clear()
    log.now += PROGRESS_S
    log.tell(("/e", "03"))
    assert [line.split(":")[0] for line in log.lines] == ["sending /b to 01", "sending /e to 03"]


def test_many_files_are_one_line() -> None:
    log = Log()
    log.tell(("/first", "01"))
    log.now += PROGRESS_S - 1
    log.tell(*((f"/{n}", f"{n:02}") for n in range(FILES_SHOWN)))
    log.now += 1
    log.tell(("/last", "00"))
    assert log.lines[1:] == [f"sending {FILES_SHOWN + 1} files to {FILES_SHOWN} clients, 5.0 MB/s together"]
