"""The mail of all inboxes of an environment, and waiting for a message."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, Any, Callable, Literal, cast

from .. import _types as types
from .._errors import ApiError, UnreachableError
from .._events import InboxEvent
from .._options import CallOptions, ListFilters, WaitOptions
from .._requests import Answer, Request, path_of, request_of
from .._waits import Wait
from .connection import AsyncConnection
from .message import AsyncMessage

if TYPE_CHECKING:
    from typing_extensions import Unpack


class AsyncMessages:
    """The mail of all inboxes of the key's environment, without that of protected inboxes.

    With `labels`, only of inboxes that have all of these labels.
    """

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def list_refused(self, **call: Unpack[CallOptions]) -> list[types.RefusedMail]:
        """The last 100 recipients of the account that were refused, newest first. Empty after a restart."""
        return cast("list[types.RefusedMail]", await self._connection.get(path_of("refused-mail"), call))

    async def list(
        self,
        *,
        q: str | None = None,
        labels: Mapping[str, str] | None = None,
        order: Literal["asc", "desc"] = "asc",
        limit: int | None = None,
        **filters: Unpack[ListFilters],
    ) -> list[AsyncMessage]:
        """The messages that match, oldest first unless `order` is `desc`; all of them, or the first `limit`.

        `q` is a search such as `from:app has:code`.
        """
        path = path_of("messages")
        page = await self._connection.get_list(path, filters, limit, q=q, order=order, labels=labels)
        return [AsyncMessage(self._connection, each) for each in page]

    async def cursor(self, **call: Unpack[CallOptions]) -> str:
        """The position after all messages that are there now, for `since` of `wait` and `events`."""
        return (await self._connection.send(_newest(call))).cursor

    async def wait(
        self,
        *,
        labels: Mapping[str, str] | None = None,
        match: Callable[[AsyncMessage], bool] | None = None,
        **options: Unpack[WaitOptions],
    ) -> AsyncMessage:
        """The first message that matches in any inbox, as `wait_for_message` of an inbox. Raises WaitTimeoutError."""
        wanted = cast("dict[str, Any]", options)
        wait = Wait[AsyncMessage]("any inbox", wanted, match, self._connection.timeout)
        wait.labels = labels
        return await next_match(self._connection, path_of("messages", "wait"), wait, None)

    async def wait_for_count(
        self,
        count: int,
        *,
        labels: Mapping[str, str],
        mode: Literal["at_least", "exactly"] | None = None,
        per_inbox: int | None = None,
        timeout: float | None = None,
    ) -> types.MessageCount:
        """Waits until the inboxes with one label have received `count` messages, with deleted ones.

        Raises ApiError, whose `problem` lists inboxes with `too_few` and `too_many`.
        """
        wanted = {"count": count, "mode": mode, "per_inbox": per_inbox, "timeout": timeout}
        wait = Wait[AsyncMessage]("any inbox", wanted, None, self._connection.timeout)
        wait.labels = labels
        answer = await _poll_until(self._connection, path_of("messages", "wait"), wait, None)
        return cast("types.MessageCount", answer.json())

    def events(
        self, *, since: str | None = None, labels: Mapping[str, str] | None = None
    ) -> AsyncGenerator[InboxEvent, None]:
        """What happens in all inboxes, as it happens: after `since`, or after the iteration starts.

        The iteration goes on where it stopped if the connection breaks. It does not end by itself.
        """
        return self._connection.events(path_of("events"), {"labels": labels}, since or _newest({}), is_of_inbox=False)


def _newest(call: CallOptions) -> Request:
    """Its answer has the position after all messages."""
    return request_of("GET", path_of("messages"), cast("dict[str, Any]", call), {"order": "desc", "limit": 1})


async def next_match(
    connection: AsyncConnection, path: str, wait: Wait[AsyncMessage], password: str | None
) -> AsyncMessage:
    """The next message that a wait accepts. Raises WaitTimeoutError."""
    while True:
        try:
            answer = await _poll_until(connection, path, wait, password)
        except ApiError as error:
            raise wait.timeout_error(error) from None
        message = AsyncMessage(connection, answer.json(), password, answer.cursor)
        if wait.accepts(message):
            return message


async def _poll_until(connection: AsyncConnection, path: str, wait: Wait[AsyncMessage], password: str | None) -> Answer:
    """Sends a wait again and again until it is answered. When no time is left, a last request looks at what arrived."""
    while True:
        is_last = wait.seconds_left() <= 0
        poll = wait.next_poll()
        options = {"password": password, "timeout": poll["timeout"]}
        try:
            return await connection.send(request_of("GET", path, options, poll["query"]))
        except UnreachableError:
            # A poll that the deadline ended.
            if is_last or wait.seconds_left() > 0:
                raise
        except ApiError as error:
            if is_last or error.code != "no-matching-message":
                raise
