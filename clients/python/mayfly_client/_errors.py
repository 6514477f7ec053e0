"""The errors of this library. All are subclasses of MayflyError."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from . import _types as types

if TYPE_CHECKING:
    from ._async.message import AsyncMessage
    from ._sync.message import Message


class MayflyError(Exception):
    """The base of all errors of this library. Raised itself if an answer does not come from Mayfly."""


class ApiError(MayflyError):
    """The API refused a request. `code` says why, for programs; the text says why and what to do, for people."""

    status: int
    code: types.ProblemCode
    """The kind of the problem. Later versions of the server may add some."""
    title: str
    detail: str
    fix: str
    request_id: str
    """Identifies the request in the server's log."""
    errors: list[types.Fault]
    """With the code `invalid-request`: each error in the request."""
    problem: types.Problem
    """The whole answer, with the properties that only some codes have."""

    def __init__(self, problem: types.Problem) -> None:
        super().__init__(problem)
        self.status = problem["status"]
        self.code = problem["code"]
        self.title = problem["title"]
        self.detail = problem["detail"]
        self.fix = problem["fix"]
        self.request_id = problem["request_id"]
        self.errors = problem.get("errors", [])
        self.problem = problem

    def __str__(self) -> str:
        faults = [f"\n  {_location_of(fault)}: {fault['detail']}" for fault in self.errors]
        return f"{self.detail} ({self.status} {self.code}) {self.fix}{''.join(faults)}"


def _location_of(fault: types.Fault) -> str:
    return fault.get("parameter") or fault.get("pointer") or fault.get("header") or "request"


class UnreachableError(MayflyError):
    """Mayfly did not answer: the connection failed repeatedly, or no answer came in time."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(url, reason)
        self.url = url
        self.reason = reason

    def __str__(self) -> str:
        return f"Mayfly is not reachable at {self.url}: {self.reason}. Start it, or set MAYFLY_URL to its address."


class WaitTimeoutError(MayflyError):
    """No message matched in time. The text lists what arrived and why it did not match."""

    def __init__(self, expected: str, arrived: Sequence[types.NearMiss], examined: int, cursor: str) -> None:
        super().__init__(expected, arrived, examined, cursor)
        self.expected = expected
        self.arrived = arrived
        """The messages nearest to a match, at most ten."""
        self.examined = examined
        """The number of messages that were examined."""
        self.cursor = cursor
        """The position after all examined messages, for `since`."""

    def __str__(self) -> str:
        if self.examined == 0:
            return f"{self.expected}\nNo message arrived."
        count = "1 message arrived" if self.examined == 1 else f"{self.examined} messages arrived"
        nearest = ". The nearest" if self.examined > len(self.arrived) else ""
        lines = [
            f"\n  {_quoted(each['subject'])}, {each['received_at']}: {'; '.join(each['mismatches'])}"
            for each in self.arrived
        ]
        return f"{self.expected}\n{count}{nearest}:{''.join(lines)}"


class UnexpectedMessageError(MayflyError):
    """A message matched although none was expected."""

    def __init__(self, received: Message | AsyncMessage, address: str) -> None:
        super().__init__(received, address)
        self.received = received
        """The message."""
        self.address = address

    def __str__(self) -> str:
        about = f"{_quoted(self.received.subject)} from {printable(self.received.sender)}, {self.received.received_at}"
        return f"Expected no message for {self.address}, but one arrived: {about}"


class WebhookVerificationError(MayflyError):
    """A request that claims to be a webhook does not have a valid signature."""


def printable(text: str) -> str:
    """A text without the characters that control a terminal: mail comes from anywhere."""
    return "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in text)


def _quoted(subject: str | None) -> str:
    return "(no subject)" if subject is None else printable(json.dumps(subject, ensure_ascii=False))
