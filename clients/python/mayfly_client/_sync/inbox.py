# Written by codegen/generate_sync.py from _async/inbox.py. Do not edit.
"""An inbox: reading its mail, waiting for mail, its events."""

from __future__ import annotations

from collections.abc import Generator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Literal, cast

from .. import _types as types
from .._errors import ApiError, MayflyError, UnexpectedMessageError, WaitTimeoutError
from .._events import InboxEvent
from .._options import (
    CallOptions,
    CreateInboxToken,
    InjectMessage,
    ListFilters,
    RegisterWebhook,
    UpdateInbox,
    WaitOptions,
)
from .._requests import path_of, request_of
from .._waits import EXPECT_NONE_SECONDS, Pattern, Wait, expression_of, find_link
from .connection import Connection
from .message import Message
from .messages import next_match

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


class Inbox(types.InboxAttributes):
    """An inbox. Its attributes are the properties of the API at the time it was read; `refresh` reads them again.

    As a context manager it is deleted at the end of the block.

    Methods raise ApiError if the API refuses a request, with the code `inbox-deleted` or `inbox-expired` after the
    inbox has ended; UnreachableError if Mayfly does not answer.
    """

    password: str | None
    """The password of a protected inbox, which is sent with each of its requests."""

    def __init__(
        self, connection: Connection, data: types.Inbox | types.CreatedInbox, password: str | None = None
    ) -> None:
        self.password = password
        self.__dict__.update(data)
        self._connection = connection
        self._path = path_of("inboxes", data["id"])

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} {self.address}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self.delete()
        except ApiError as failure:
            # Nothing is left to delete.
            if failure.code not in ("inbox-deleted", "inbox-expired"):
                raise

    def refresh(self, **call: Unpack[CallOptions]) -> Self:
        """Reads the attributes again, such as `message_count`. Returns this object."""
        self.__dict__.update(self._connection.get(self._path, self._call(call)))
        return self

    def update(self, **options: Unpack[UpdateInbox]) -> Self:
        """Changes what is given, and the attributes with it. Returns this object.

        `duration` counts from the creation; `labels` replace all labels; `name=None` removes the name.
        """
        self.__dict__.update(self._connection.patch(self._path, self._call(options)))
        return self

    def cursor(self, **call: Unpack[CallOptions]) -> str:
        """The position after all messages that are there now, for `since`."""
        answer = self._connection.send(request_of("GET", self._path, self._call(call)))
        return answer.cursor

    def wait_for_message(
        self, *, match: Callable[[Message], bool] | None = None, **options: Unpack[WaitOptions]
    ) -> Message:
        """The first message that matches: one that is there already, or the next to arrive.

        `match` is also required of it, and runs in this process. If it returns False, the wait goes on with what
        arrived after that message. Raises WaitTimeoutError if none arrives in time, 30 seconds unless set.
        """
        return self._next_match(self._wait(options, match))

    def wait_for_code(
        self, *, match: Callable[[Message], bool] | None = None, **options: Unpack[WaitOptions]
    ) -> str:
        """The most likely one-time code of the first message that matches and has a code.

        Raises WaitTimeoutError.
        """
        message = self._next_match(self._wait({**options, "has_code": True}, match))
        return message.codes[0]["value"]

    def wait_for_link(
        self,
        pattern: Pattern = "",
        *,
        match: Callable[[Message], bool] | None = None,
        **options: Unpack[WaitOptions],
    ) -> str:
        """The address of the first link that contains a text, or matches an expression, in its address or its text.

        A text is found in upper or lower case; an expression is searched with its own flags. Without a pattern it is
        the first link. Raises WaitTimeoutError.
        """
        wait = self._wait({**options, "has_link": True}, match)
        wait.link = pattern
        message = self._next_match(wait)
        return find_link(message.links, pattern) or ""

    def wait_for_match(
        self,
        pattern: Pattern,
        *,
        match: Callable[[Message], bool] | None = None,
        **options: Unpack[WaitOptions],
    ) -> types.Extracted:
        """The first match of an expression in subject, text or visible text of the first message that has one.

        It has the `text` and the `groups` of the match. The server searches in the syntax of RE2, which has no
        lookaheads and backreferences; a text is an expression too. Raises WaitTimeoutError.
        """
        message = self._next_match(self._wait({**options, "extract": expression_of(pattern)}, match))
        extracted = message.data.get("extracted")
        if not extracted:
            raise MayflyError("The server does not support extract.")
        return extracted[0]

    def wait_for_count(
        self,
        count: int,
        *,
        match: Callable[[Message], bool] | None = None,
        **options: Unpack[WaitOptions],
    ) -> list[Message]:
        """The first `count` messages that match, oldest first, once there are as many.

        The time is for all of them. Raises WaitTimeoutError.
        """
        wait = self._wait({**options, "order": "asc"}, match)
        messages: list[Message] = []
        while len(messages) < count:
            wait.found = f"{len(messages)} of {count} messages matched. "
            messages.append(self._next_match(wait))
            wait.cursor = messages[-1].cursor
        return messages

    def expect_none(
        self,
        *,
        within: float = EXPECT_NONE_SECONDS,
        match: Callable[[Message], bool] | None = None,
        **options: Unpack[WaitOptions],
    ) -> None:
        """Returns if no message matches within 5 seconds, or `within` seconds.

        Messages that are there already count, unless they are before `since`. Raises UnexpectedMessageError.
        """
        wait = self._wait({**options, "timeout": within}, match)
        try:
            message = self._next_match(wait)
        except WaitTimeoutError:
            return
        raise UnexpectedMessageError(message, self.address)

    def list_messages(
        self,
        *,
        order: Literal["asc", "desc"] = "asc",
        limit: int | None = None,
        **filters: Unpack[ListFilters],
    ) -> list[Message]:
        """The messages that match, oldest first unless `order` is `desc`; all of them, or the first `limit`."""
        path = f"{self._path}/messages"
        page = self._connection.get_list(path, self._call(filters), limit, order=order)
        return [Message(self._connection, each, self.password) for each in page]

    def get_message(
        self, message_id: str, *, extract: str | None = None, **call: Unpack[CallOptions]
    ) -> Message:
        """A message by its id, with the matches of an expression (RE2) as `extracted` if one is given."""
        path = path_of("inboxes", self.id, "messages", message_id)
        data = self._connection.get(path, self._call(call), raw=False, extract=extract)
        return Message(self._connection, data, self.password)

    def delete_message(self, message_id: str, **call: Unpack[CallOptions]) -> types.DeletedMessage:
        """Deletes a message permanently."""
        path = path_of("inboxes", self.id, "messages", message_id)
        return cast("types.DeletedMessage", self._connection.delete(path, self._call(call)))

    def events(self, *, since: str | None = None) -> Generator[InboxEvent, None, None]:
        """What happens in the inbox, as it happens: after `since`, or after the iteration starts.

        The iteration goes on where it stopped if the connection breaks, and ends after the inbox has ended.
        """
        start = since or request_of("GET", self._path, self._call({}))
        return self._connection.events(f"{self._path}/events", self._call({}), start, is_of_inbox=True)

    def history(self, *, limit: int | None = None, **call: Unpack[CallOptions]) -> list[types.Event]:
        """Every event of the inbox, oldest first, without content; also after the inbox has ended."""
        events = self._connection.get_list(f"{self._path}/history", call, limit)
        return cast("list[types.Event]", events)

    @property
    def tokens(self) -> InboxTokens:
        """Bearer tokens for this inbox only."""
        return InboxTokens(self._connection, self.id, self.password)

    def delete(self, **call: Unpack[CallOptions]) -> types.DeletedInbox:
        """Deletes the inbox and all its mail permanently."""
        return cast("types.DeletedInbox", self._connection.delete(self._path, self._call(call)))

    def create_webhook(self, **options: Unpack[RegisterWebhook]) -> types.WebhookWithSecret:
        """Registers a webhook for this inbox. The secret is only in this answer."""
        answer = self._connection.post(f"{self._path}/webhooks", self._call(options))
        return cast("types.WebhookWithSecret", answer)

    def list_webhooks(self, *, limit: int | None = None, **call: Unpack[CallOptions]) -> list[types.Webhook]:
        """The webhooks of this inbox."""
        webhooks = self._connection.get_list(f"{self._path}/webhooks", self._call(call), limit)
        return cast("list[types.Webhook]", webhooks)

    def inject_message(self, **options: Unpack[InjectMessage]) -> Message:
        """Injects a message without SMTP. It is in the inbox when this returns. `from_` is the sender."""
        data = self._connection.post(f"{self._path}/messages", self._call(options))
        return Message(self._connection, data, self.password)

    def _call(self, options: object) -> dict[str, Any]:
        return {"password": self.password, **cast("dict[str, Any]", options)}

    def _wait(self, options: object, match: Callable[[Message], bool] | None) -> Wait[Message]:
        return Wait(self.address, cast("dict[str, Any]", options), match, self._connection.timeout)

    def _next_match(self, wait: Wait[Message]) -> Message:
        return next_match(self._connection, f"{self._path}/messages/wait", wait, self.password)


class InboxTokens:
    """The tokens of an inbox. A client whose `api_key` is a token can read that inbox and nothing else."""

    def __init__(self, connection: Connection, inbox_id: str, password: str | None) -> None:
        self._connection = connection
        self._inbox_id = inbox_id
        self._password = password

    def create(self, **options: Unpack[CreateInboxToken]) -> types.InboxTokenWithSecret:
        """Issues a token. The secret is only in this answer. With the access `owner` it may also delete the inbox."""
        path = path_of("inboxes", self._inbox_id, "tokens")
        return cast("types.InboxTokenWithSecret", self._connection.post(path, self._call(options)))

    def list(self, **call: Unpack[CallOptions]) -> list[types.InboxToken]:
        """The tokens that are valid."""
        path = path_of("inboxes", self._inbox_id, "tokens")
        return cast("list[types.InboxToken]", self._connection.get(path, self._call(call)))

    def revoke(self, token_id: str, **call: Unpack[CallOptions]) -> types.RevokedInboxToken:
        """Ends a token, and its waits and streams within a second."""
        path = path_of("inboxes", self._inbox_id, "tokens", token_id)
        return cast("types.RevokedInboxToken", self._connection.delete(path, self._call(call)))

    def _call(self, options: object) -> dict[str, Any]:
        return {"password": self._password, **cast("dict[str, Any]", options)}
