"""Requests and answers of the API, and the rules by which a request is sent again. No input or output."""

from __future__ import annotations

import itertools
import json
import random
import re
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any, Literal, TypedDict, cast
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import httpx

from . import _types as types
from ._errors import ApiError, MayflyError, UnreachableError

MAX_BROKEN_CONNECTIONS = 4
FIRST_PAUSE_SECONDS = 0.1
MAX_PAUSE_SECONDS = 2.0
LINES_AT_ONCE = 500
MAX_PAGE_ITEMS = 100
"""The largest page that every list of the API allows."""


class CallOptions(TypedDict, total=False):
    """What every method takes besides its own options."""

    timeout: float
    """Seconds for the whole call, or each page of a list, retries included. Default: the client's `timeout`."""
    password: str | None
    """The password of a protected inbox. Objects of inboxes send theirs by themselves."""
    idempotency_key: str
    """For methods that send a POST: repeats with the same key within 24 hours get the first answer. Default: random."""


@dataclass(frozen=True)
class Request:
    """A request, before the server's address and the key are added."""

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: str
    query: Mapping[str, object]
    body: Mapping[str, object] | Sequence[object] | None
    headers: Mapping[str, str]
    timeout: float | None


def request_of(
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"],
    path: str,
    options: Mapping[str, Any],
    query: Mapping[str, object] | None = None,
) -> Request:
    """Options that are not of the call become the body. A POST gets an idempotency key, the same for its retries."""
    body = {**options}
    timeout = body.pop("timeout", None)
    password = body.pop("password", None)
    key = body.pop("idempotency_key", None)
    headers: dict[str, str] = {}
    if password is not None:
        headers["Mayfly-Inbox-Password"] = password
    if method == "POST":
        headers["Idempotency-Key"] = key or str(uuid.uuid4())
    has_body = method in ("POST", "PUT", "PATCH")
    parameters = {**(query or {}), **({} if has_body else body)}
    return Request(method, path, parameters, body if has_body else None, headers, timeout)


def path_of(*segments: str) -> str:
    """A path of the API from its segments, such as `webhooks` and an id. Raises ValueError for another path."""
    for segment in segments:
        if segment in ("", ".", ".."):
            raise ValueError(f"{segment!r} is not an id")
    return "/v1/" + "/".join(quote(each, safe="") for each in segments)


def query_of(query: Mapping[str, object]) -> str:
    """The query of an URL with its question mark. `labels` becomes one `label` per pair; None is left out."""
    parameters: list[tuple[str, str]] = []
    for name, value in query.items():
        if value is None:
            continue
        if name == "labels":
            parameters += [("label", f"{label}:{text}") for label, text in cast("Mapping[str, str]", value).items()]
        elif isinstance(value, (list, tuple)):
            parameters += [(name, text_of(each)) for each in cast("list[object]", value)]
        else:
            parameters.append((name.rstrip("_"), text_of(value)))
    return f"?{urlencode(parameters)}" if parameters else ""


def body_of(body: Mapping[str, object] | Sequence[object]) -> bytes:
    """The JSON of a body. Names lose the underscore that Python's keywords get."""
    if not isinstance(body, Mapping):
        return json.dumps(body).encode()
    named = {name.rstrip("_"): value for name, value in body.items()}
    return json.dumps(named, default=text_of).encode()


def pieces_of(lines: Iterable[object]) -> Iterator[bytes]:
    """Lines of JSON, several in a piece."""
    remaining = iter(lines)
    while some := list(itertools.islice(remaining, LINES_AT_ONCE)):
        yield b"".join(json.dumps(line).encode() + b"\n" for line in some)


def line_of(text: bytes) -> Any:
    """The JSON of a line of an answer."""
    return json.loads(text)


def text_of(value: object) -> str:
    """A value of a query. A datetime without a time zone is local time."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, (str, int, float)):
        return str(value)
    raise TypeError(f"{type(value).__name__} {value!r} cannot be sent to the API")


@dataclass(frozen=True)
class Answer:
    """An answer that was read completely."""

    status: int
    headers: httpx.Headers
    content: bytes

    @property
    def is_success(self) -> bool:
        """Whether the API did what was requested."""
        return 200 <= self.status < 300

    @property
    def cursor(self) -> str:
        """The position in the inbox that comes with the answer. Raises MayflyError if there is none."""
        cursor = cast("str | None", self.headers.get("mayfly-cursor"))
        if cursor is None:
            raise self.foreign()
        return cursor

    def json(self) -> Any:
        """The JSON of the answer. Raises MayflyError if it is not JSON."""
        try:
            return json.loads(self.content)
        except ValueError:
            raise self.foreign() from None

    def next_cursor(self) -> str | None:
        """The cursor of the next page of a list; None if this page is the last."""
        target = re.match(r'<([^>]+)>; rel="next"', self.headers.get("link", ""))
        return parse_qs(urlsplit(target[1]).query).get("cursor", [None])[0] if target else None

    def error(self) -> MayflyError:
        """What the API refused."""
        is_problem = self.headers.get("content-type", "").startswith("application/problem+json")
        problem = cast("types.Problem | None", self.json() if is_problem else None)
        if not isinstance(problem, dict) or not types.Problem.__required_keys__.issubset(problem):
            return self.foreign()
        return ApiError(problem)

    def foreign(self) -> MayflyError:
        """The error for an answer of another server."""
        location = self.headers.get("location")
        about = f"it redirects to {location}" if location else self.content[:200].decode("utf-8", "replace")
        return MayflyError(f"The answer {self.status} does not come from Mayfly: {about}")

    def retry_after(self) -> float | None:
        """Seconds to wait before another attempt, if the server says so: a number or a date. None instead of 0."""
        value = self.headers.get("retry-after", "")
        try:
            is_number = re.fullmatch(r"\d{1,9}", value)
            seconds = float(value) if is_number else parsedate_to_datetime(value).timestamp() - time.time()
        except (TypeError, ValueError):
            return None
        return seconds if seconds > 0 else None


class Retries:
    """Decides whether a call is attempted again, and after what pause."""

    def __init__(self, url: str, timeout: float) -> None:
        self.url = url
        self.timeout = timeout
        self.deadline = time.monotonic() + timeout
        self.attempts = 0
        self.broken = 0
        self.refusal: MayflyError | None = None

    def time_left(self) -> float:
        """Seconds until the call must end. Raises an error if there are none."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise self.late()
        return left

    def after_failure(self, error: httpx.RequestError) -> float:
        """Seconds to pause after no answer came. Raises UnreachableError if there is no other attempt."""
        self.broken += 1
        is_late = isinstance(error, httpx.TimeoutException)
        failure = self.late() if is_late else UnreachableError(self.url, str(error) or type(error).__name__)
        if self.broken >= MAX_BROKEN_CONNECTIONS:
            raise failure from None
        return self._pause(None, failure)

    def after_refusal(self, answer: Answer) -> float:
        """Seconds to pause after the API refused the request. Raises its error if there is no other attempt."""
        error = answer.error()
        code = error.code if isinstance(error, ApiError) else None
        is_in_use = code == "idempotency-key-in-use"
        # A quota seldom gets free within the time of a call.
        if code == "quota-exceeded" or (answer.status not in (429, 503) and not is_in_use):
            raise error from None
        self.refusal = error
        return self._pause(answer.retry_after(), error)

    def late(self) -> MayflyError:
        """The error after the time of the call: the last refusal, which says more, if there was one."""
        return self.refusal or UnreachableError(self.url, f"no answer within {self.timeout:g} s")

    def _pause(self, retry_after: float | None, failure: MayflyError) -> float:
        backoff = min(FIRST_PAUSE_SECONDS * 2**self.attempts, MAX_PAUSE_SECONDS) * random.uniform(0.5, 1)
        pause = backoff if retry_after is None else retry_after
        self.attempts = min(self.attempts + 1, 10)
        if time.monotonic() + pause >= self.deadline:
            raise failure from None
        return pause


def key_of(api_key: str | None) -> str:
    """A key that can be sent in a header. Raises MayflyError if there is none, or if it can't."""
    # A key from a file may end with a line end.
    key = (api_key or "").strip()
    if not key:
        raise MayflyError("No API key: set MAYFLY_KEY, or pass `api_key`.")
    if not re.fullmatch(r"[!-~]+", key):
        raise MayflyError("The API key has a character that no key has, such as a space.")
    return key


def url_of(url: str) -> str:
    """The URL of a server without slashes at its end. Raises MayflyError if it is not one."""
    text = url.strip().rstrip("/")
    try:
        parts = httpx.URL(text)
        if parts.scheme in ("http", "https") and parts.host and not (parts.userinfo or parts.query or parts.fragment):
            return text
    except httpx.InvalidURL:
        pass
    rule = "must be an http or https URL without a user, query or fragment"
    raise MayflyError(f"MAYFLY_URL, or `url`, {rule}, such as http://127.0.0.1:3000.")
