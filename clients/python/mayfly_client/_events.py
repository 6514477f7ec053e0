"""Server-sent events (WHATWG HTML, section 9.2). No input or output."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from . import _types as types


@dataclass(frozen=True)
class InboxEvent:
    """Something that happened in an inbox."""

    id: str
    """Its position, for `since`."""
    event: types.EventType
    data: types.EventBody
    """The same as the body of a webhook."""


class EventParser:
    """Collects events from the pieces of a stream. A line may end with CR, LF or both, and so may a piece."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._id = ""
        self._event = ""
        self._data: list[str] = []

    def feed(self, piece: bytes) -> Iterator[InboxEvent]:
        """Yields the events that are complete with this piece."""
        searched = max(len(self._rest) - 1, 0)
        self._rest += piece
        start = 0
        # A CR at the end may be the first half of CR LF.
        for end in re.finditer(rb"\r\n|\n|\r(?!\Z)", self._rest[searched:]):
            line = self._rest[start : searched + end.start()]
            start = searched + end.end()
            event = self._line(line.decode("utf-8", "replace"))
            if event is not None:
                yield event
        del self._rest[:start]

    def _line(self, line: str) -> InboxEvent | None:
        name, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if name == "id":
            self._id = value
        elif name == "event":
            self._event = value
        elif name == "data":
            self._data.append(value)
        elif line == "" and self._data:
            event = InboxEvent(self._id, self._event, json.loads("\n".join(self._data)))  # type: ignore[arg-type]
            self._event, self._data = "", []
            return event
        return None
