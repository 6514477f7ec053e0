# Written by codegen/generate_sync.py from _async/connection.py. Do not edit.
"""HTTP requests to the API, with retries."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Mapping
from typing import Any

import httpx

from .._errors import ApiError, UnreachableError
from .._events import EventParser, InboxEvent
from .._requests import (
    MAX_PAGE_ITEMS,
    Answer,
    Request,
    Retries,
    body_of,
    line_of,
    pieces_of,
    query_of,
    request_of,
    url_of,
)
from .._version import VERSION

# The server sends a comment every 15 seconds.
SILENCE_SECONDS = 45.0
RECONNECT_SECONDS = 0.5
EXCHANGE_SECONDS = 600.0
EVENT_STREAM = "text/event-stream"


class Connection:
    """Sends requests to one server with one key."""

    def __init__(
        self, url: str, api_key: str, timeout: float, transport: httpx.BaseTransport | None = None
    ) -> None:
        self.url = url_of(url)
        self.timeout = timeout
        self._http = httpx.Client(
            headers={
                "Accept": "*/*",
                "Authorization": f"Bearer {api_key}",
                "User-Agent": f"mayfly-client/{VERSION}",
            },
            # The key is sent only to the given address.
            follow_redirects=False,
            # Each wait needs a connection.
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=100, keepalive_expiry=30),
            transport=transport,
        )

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def get(self, path: str, options: Mapping[str, Any], **query: object) -> Any:
        """The JSON of a GET."""
        return (self.send(request_of("GET", path, options, query))).json()

    def read(self, path: str, options: Mapping[str, Any], **query: object) -> bytes:
        """The content that a GET returns."""
        return (self.send(request_of("GET", path, options, query))).content

    def post(self, path: str, options: Mapping[str, Any]) -> Any:
        """The JSON of a POST whose body has the options that are not of the call."""
        return (self.send(request_of("POST", path, options))).json()

    def patch(self, path: str, options: Mapping[str, Any]) -> Any:
        """The JSON of a PATCH whose body has the options that are not of the call."""
        return (self.send(request_of("PATCH", path, options))).json()

    def put(self, path: str, options: Mapping[str, Any]) -> Any:
        """The JSON of a PUT whose body has the options that are not of the call."""
        return (self.send(request_of("PUT", path, options))).json()

    def delete(self, path: str, options: Mapping[str, Any]) -> Any:
        """The JSON of a DELETE."""
        return (self.send(request_of("DELETE", path, options))).json()

    def get_list(self, path: str, options: Mapping[str, Any], limit: int | None, **query: object) -> Any:
        """The items of a list, from as many pages as needed; at most `limit`, if it is given."""
        items: list[Any] = []
        cursor: str | None = None
        while True:
            size = MAX_PAGE_ITEMS if limit is None else min(limit - len(items), MAX_PAGE_ITEMS)
            page = {**query, "limit": size, "cursor": cursor}
            answer = self.send(request_of("GET", path, options, page))
            items += answer.json()
            cursor = answer.next_cursor()
            if cursor is None or (limit is not None and len(items) >= limit):
                return items

    def send(self, request: Request) -> Answer:
        """Sends a request until it is answered.

        Tries again, within the time of the call, if the connection breaks, and if the server is busy or the key is
        over its limit. Raises ApiError or UnreachableError.
        """
        retries = Retries(self.url, self.timeout if request.timeout is None else request.timeout)
        while True:
            try:
                answer = self._attempt(request, retries)
            except httpx.RequestError as error:
                pause = retries.after_failure(error)
            else:
                if answer.is_success:
                    return answer
                pause = retries.after_refusal(answer)
            time.sleep(pause)

    def exchange(
        self, path: str, lines: Iterable[object], options: Mapping[str, Any], **query: object
    ) -> Generator[Any, None, None]:
        """Sends lines of JSON with a POST, as they are read, and yields those of the answer as they arrive.

        It is not sent again if it fails: the lines are there only once.
        """
        request = request_of("POST", path, options)
        prepared = self._http.build_request(
            "POST",
            self.url + path + query_of(query),
            content=streamed(pieces_of(lines)),
            headers={**request.headers, "Content-Type": "application/x-ndjson"},
            timeout=EXCHANGE_SECONDS if request.timeout is None else request.timeout,
        )
        try:
            response = self._http.send(prepared, stream=True)
            try:
                if not response.is_success:
                    raise Answer(response.status_code, response.headers, response.read()).error()
                rest = b""
                # Not `iter_lines`, which also ends lines at characters that JSON may have in a string, such as U+2028.
                for piece in response.iter_bytes():
                    *lines_read, rest = (rest + piece).split(b"\n")
                    for line in lines_read:
                        yield line_of(line)
            finally:
                response.close()
        except httpx.RequestError as error:
            raise UnreachableError(self.url, str(error) or type(error).__name__) from error

    def events(
        self, path: str, options: Mapping[str, Any], start: str | Request, *, is_of_inbox: bool
    ) -> Generator[InboxEvent, None, None]:
        """The events after a position, or after that of the answer to a request.

        Goes on where it stopped if the connection breaks. Ends after the inbox has ended, if it is the stream of one.
        """
        cursor = start if isinstance(start, str) else (self.send(start)).cursor
        was_open = False
        retries = Retries(self.url, self.timeout)
        while True:
            is_open = False
            request = request_of("GET", path, options, {"cursor": cursor})
            try:
                response = self._open(request, httpx.Timeout(retries.time_left(), read=SILENCE_SECONDS))
                try:
                    if response.is_success and response.headers.get("content-type", "").startswith(EVENT_STREAM):
                        is_open = was_open = True
                        parser = EventParser()
                        for piece in response.iter_bytes():
                            for event in parser.feed(piece):
                                cursor = event.id
                                yield event
                                if is_of_inbox and "ended_at" in event.data["data"]:
                                    return
                        raise httpx.ReadError("the stream ended")
                    content = response.read()
                finally:
                    response.close()
                answer = Answer(response.status_code, response.headers, content)
                if answer.is_success:
                    raise answer.foreign()
                pause = retries.after_refusal(answer)
            except httpx.RequestError as error:
                if is_open:
                    retries = Retries(self.url, self.timeout)
                    pause = RECONNECT_SECONDS
                else:
                    pause = retries.after_failure(error)
            except ApiError as error:
                if was_open and error.code in ("inbox-deleted", "inbox-expired"):
                    return
                raise
            time.sleep(pause)

    def _attempt(self, request: Request, retries: Retries) -> Answer:
        response = self._open(request, httpx.Timeout(retries.time_left()))
        try:
            pieces: list[bytes] = []
            for piece in response.iter_bytes():
                retries.time_left()
                pieces.append(piece)
        finally:
            response.close()
        return Answer(response.status_code, response.headers, b"".join(pieces))

    def _open(self, request: Request, timeout: httpx.Timeout) -> httpx.Response:
        """Sends a request once. The body of the answer is not read yet."""
        headers = dict(request.headers)
        if request.body is not None:
            headers["Content-Type"] = "application/json"
        prepared = self._http.build_request(
            request.method,
            self.url + request.path + query_of(request.query),
            content=None if request.body is None else body_of(request.body),
            headers=headers,
            timeout=timeout,
        )
        return self._http.send(prepared, stream=True)


def streamed(pieces: Iterable[bytes]) -> Generator[bytes, None, None]:
    """The same pieces, for httpx."""
    for piece in pieces:
        yield piece
