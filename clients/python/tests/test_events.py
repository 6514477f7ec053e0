"""The parser of server-sent events."""

from __future__ import annotations

import pytest

from mayfly_client._events import EventParser

STREAM = """retry: 2000

: comment

id: 1
event: message.received
data: {"a":
data: "ü\u2028\\u000b"}

id: 2
event: inbox.deleted
data: 2

"""
EVENTS = [("1", "message.received", {"a": "ü\u2028\x0b"}), ("2", "inbox.deleted", 2)]


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_finds_events_in_pieces_of_any_size(line_end: str, size: int) -> None:
    stream = STREAM.replace("\n", line_end).encode()
    parser = EventParser()
    pieces = [stream[start : start + size] for start in range(0, len(stream), size)]
    events = [event for piece in [*pieces, b"\n"] for event in parser.feed(piece)]
    assert [(each.id, each.event, each.data) for each in events] == EVENTS
