"""What a wait looks for, how long, and what its error says. No input or output."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Callable, Generic, Literal, Protocol, TypedDict, TypeVar, Union

from . import _types as types
from ._errors import ApiError, WaitTimeoutError

MAX_POLL_SECONDS = 30
# More time than the server needs to answer after its wait.
GRACE_SECONDS = 0.25
# For the last request of a wait, which reports what arrived.
LAST_POLL_SECONDS = 5.0
EXPECT_NONE_SECONDS = 5.0
MAX_LISTED = 10

Pattern = Union[str, "re.Pattern[str]"]


class Filters(TypedDict, total=False):
    """Which messages match. All given filters must hold; texts match if they are contained, in upper or lower case."""

    subject: str
    sender: str
    """Its address or name."""
    recipient: str
    detail: str
    """What follows `+` in the recipient."""
    to: str
    """In an address or a name of the header To."""
    header: Sequence[str]
    """Headers `<name>:<text>`, of which each must be there and contain the text."""
    text: str
    """In the text part, or in the visible text of the HTML."""
    has_code: bool
    has_link: bool
    extract: str
    """An expression (RE2), whose matches a message then has as `extracted`. A wait also requires a match."""


class ListFilters(Filters, total=False):
    """Which messages a list has."""

    since: str | datetime
    """The earliest `received_at`: RFC 3339 or a datetime."""
    until: str | datetime
    """The end of the time, exclusive."""


class WaitOptions(Filters, total=False):
    """What a wait takes besides `match`."""

    since: str | None
    """Only messages after this position: a cursor of the inbox or of a message. Default: all messages."""
    order: Literal["asc", "desc"]
    """`asc`, the default, takes the oldest match; `desc` the newest that is there now, otherwise the next to arrive."""
    timeout: float
    """Seconds to wait, as long as you like. Default: the client's `timeout`, which is 30 unless set."""


class Received(Protocol):
    """What a wait reads of a message."""

    id: str
    inbox_id: str
    subject: str | None
    received_at: str
    links: list[types.Link]
    cursor: str | None


M = TypeVar("M", bound=Received)


class Wait(Generic[M]):
    """The state of one wait: what it looks for, its deadline, and the messages that `match` rejected."""

    def __init__(
        self,
        address: str,
        options: Mapping[str, Any],
        match: Callable[[M], bool] | None,
        default_timeout: float,
    ) -> None:
        self.address = address
        filters = {**options}
        timeout = filters.pop("timeout", None)
        self.timeout = default_timeout if timeout is None else float(timeout)
        self.deadline = time.monotonic() + self.timeout
        self.cursor: str | None = filters.pop("since", None)
        self.order = filters.pop("order", None)
        self.filters = filters
        self.labels: Mapping[str, str] | None = None
        self.match = match
        self.link: Pattern | None = None
        self.found = ""
        """A sentence for the error: how many messages matched before."""
        self.rejected: list[types.NearMiss] = []

    def seconds_left(self) -> float:
        """Seconds until the deadline; negative after it."""
        return self.deadline - time.monotonic()

    def next_poll(self) -> dict[str, Any]:
        """The options of the next request. After the deadline it does not wait, and reports what arrived."""
        left = self.seconds_left()
        seconds = min(max(math.ceil(left), 0), MAX_POLL_SECONDS)
        # The server waits whole seconds. A wait that ends before them is ended here.
        limit = seconds + GRACE_SECONDS if seconds - left < GRACE_SECONDS else left
        query = {**self.filters, "labels": self.labels, "order": self.order, "cursor": self.cursor}
        return {"timeout": limit if left > 0 else LAST_POLL_SECONDS, "query": {**query, "timeout": seconds}}

    def accepts(self, message: M) -> bool:
        """Whether the message is what the wait is for. If not, the wait goes on after it."""
        if self.link and find_link(message.links, self.link) is None:
            reason = f"there is no link that matches {_shown(self.link)}"
        elif self.match is not None and not self.match(message):
            reason = "the function `match` rejects it"
        else:
            return True
        miss: types.NearMiss = {
            "id": message.id,
            "inbox_id": message.inbox_id,
            "subject": message.subject,
            "received_at": message.received_at,
            "mismatches": [reason],
        }
        self.rejected.append(miss)
        self.cursor = message.cursor
        return False

    def timeout_error(self, error: ApiError) -> WaitTimeoutError | ApiError:
        """The error of a wait whose time is over, or the error itself if it has another reason."""
        if error.code != "no-matching-message":
            return error
        nearest = error.problem.get("nearest", [])
        examined = len(self.rejected) + error.problem.get("examined", 0)
        listed = [*self.rejected, *nearest][-MAX_LISTED:]
        return WaitTimeoutError(self._expected(), listed, examined, error.problem.get("cursor", ""))

    def _expected(self) -> str:
        conditions = [*_described(self.filters, self.link)]
        described = f": {', '.join(conditions)}" if conditions else ""
        return f"{self.found}No message for {self.address} matched within {self.timeout:g} s{described}."


def _described(filters: Mapping[str, Any], link: Pattern | None) -> Iterator[str]:
    """The filters in words: `subject contains "Welcome"`, `has a code`."""
    for name, value in filters.items():
        if value is None:
            continue
        if name == "has_link" and link:
            yield f"has a link that matches {_shown(link)}"
            continue
        if name in ("has_code", "has_link"):
            yield f"has {'a' if value else 'no'} {name[4:]}"
        elif name == "extract":
            yield f"has a match of {_shown(value)}"
        else:
            yield f"{name} contains {json.dumps(value, ensure_ascii=False, default=str)}"


def find_link(links: Sequence[types.Link], pattern: Pattern) -> str | None:
    """The address of the first link whose address or text contains a text or matches an expression."""
    for link in links:
        if any(_contains(each, pattern) for each in (link["href"], link["text"] or "")):
            return link["href"]
    return None


def expression_of(pattern: Pattern) -> str:
    """An expression as the server reads it. Raises ValueError if it has a flag that RE2 lacks."""
    if isinstance(pattern, str):
        return pattern
    if pattern.flags & (re.VERBOSE | re.ASCII | re.LOCALE):
        raise ValueError("an expression with re.VERBOSE, re.ASCII or re.LOCALE can't be sent")
    names = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL}
    flags = "".join(name for name, flag in names.items() if pattern.flags & flag)
    source = re.sub(r"(?s)\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|.)", _escape, pattern.pattern)
    return f"(?{flags}){source}" if flags else source


def _escape(escape: re.Match[str]) -> str:
    digits = escape[1] or escape[2]
    if digits:
        return f"\\x{{{digits}}}"
    return r"\z" if escape[0] == r"\Z" else escape[0]


def _contains(text: str, pattern: Pattern) -> bool:
    if isinstance(pattern, str):
        return pattern.lower() in text.lower()
    return pattern.search(text) is not None


def _shown(pattern: Pattern) -> str:
    return repr(pattern if isinstance(pattern, str) else pattern.pattern)
