"""A Locust user with inboxes: a client of Mayfly whose requests are in the statistics of Locust.

Needs Locust: `pip install 'mayfly-client[locust]'`.
"""

from __future__ import annotations

import logging
import re
import ssl
import time
from functools import lru_cache

import httpx
from locust import User
from locust.env import Environment

from . import ApiError, Mayfly, MayflyError
from ._requests import Answer
from ._sync.connection import EVENT_STREAM

# Locust shows messages of the level INFO, and httpx has one for each request.
logging.getLogger("httpx").setLevel(logging.WARNING)

_ID = re.compile(r"(?<=/)[a-z]+_[0-9a-z]{26}(?=/|$)")


class MayflyUser(User):
    """A user with the client `mayfly`, for the server at MAYFLY_URL with the key MAYFLY_KEY.

    Each request is reported to Locust by its method and route, such as `/v1/inboxes/{id}/messages/wait`. It failed if
    there was no answer, or if the API refused it. A wait in which no message matched did not fail: it raises
    WaitTimeoutError, which Locust reports as an exception of the task.

    Combine it with the user of the application: `class SignUp(MayflyUser, HttpUser)`.
    """

    abstract = True

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self.mayfly = Mayfly(transport=_ReportingTransport(self))


class _ReportingTransport(httpx.BaseTransport):
    """Sends requests as httpx does, and reports each to Locust."""

    def __init__(self, user: User) -> None:
        self._user = user
        self._transport = httpx.HTTPTransport(verify=_ssl_context())

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Reads the answer completely, so that its time and length are known, unless it is a stream of events."""
        start_time = time.time()
        start = time.perf_counter()

        def report(response: httpx.Response | None, length: int, exception: Exception | None) -> None:
            self._user.environment.events.request.fire(  # pyright: ignore[reportUnknownMemberType]
                request_type=request.method,
                name=_ID.sub("{id}", request.url.path),
                response_time=(time.perf_counter() - start) * 1000,
                response_length=length,
                response=response,
                exception=exception,
                context=self._user.context(),  # pyright: ignore[reportUnknownMemberType]
                start_time=start_time,
                url=str(request.url),
            )

        # A request of a user that Locust stops is not reported: GreenletExit is no Exception.
        try:
            response = self._transport.handle_request(request)
            is_stream = response.headers.get("content-type", "").startswith(EVENT_STREAM)
            content = b"" if is_stream else response.read()
        except Exception as error:
            report(None, 0, error)
            raise
        report(response, len(content), None if is_stream else _failure_of(response))
        return response

    def close(self) -> None:
        """Closes the connections."""
        self._transport.close()


@lru_cache(maxsize=1)
def _ssl_context() -> ssl.SSLContext:
    """One for all users: it takes milliseconds to create."""
    return httpx.create_ssl_context()


def _failure_of(response: httpx.Response) -> MayflyError | None:
    """Why the API refused a request. The text is the same for all inboxes, because Locust groups failures by it."""
    answer = Answer(response.status_code, response.headers, response.content)
    if answer.is_success:
        return None
    error = answer.error()
    if not isinstance(error, ApiError):
        return error
    if error.code == "no-matching-message":
        return None
    return MayflyError(f"{error.status} {error.code}: {error.title}. {error.fix}")
