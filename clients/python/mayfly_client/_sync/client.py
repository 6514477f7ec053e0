# Written by codegen/generate_sync.py from _async/client.py. Do not edit.
"""The client: one object per server and key."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Literal, cast

from .. import _types as types
from .._options import CallOptions, ChangeFilters, CreateInbox, CreateInboxes, SetSignIn
from .._requests import key_of, path_of
from .connection import Connection
from .inbox import Inbox
from .messages import Messages
from .resources import (
    Accounts,
    Audit,
    Domains,
    Faults,
    Invitations,
    Keys,
    Members,
    Quotas,
    Runs,
    Usage,
    Webhooks,
)

if TYPE_CHECKING:
    import httpx
    from typing_extensions import Self, Unpack

DEFAULT_URL = "http://127.0.0.1:3000"
DEFAULT_TIMEOUT = 30.0


class Mayfly:
    """A Mayfly server, used with one API key.

    `url` defaults to MAYFLY_URL, then to http://127.0.0.1:3000; `api_key` to MAYFLY_KEY. `timeout` is for each call,
    in seconds, with its retries. Calls are repeated if the connection breaks, the server is busy, or the key is over
    its limit; never in a way that does something twice. `transport` replaces the transport of httpx, for example to
    observe the requests.

    All methods raise ApiError if the API refuses a request, and UnreachableError if Mayfly does not answer. The
    constructor raises MayflyError if there is no key, or if the address is not one.
    """

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        *,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        url = url or os.environ.get("MAYFLY_URL") or DEFAULT_URL
        api_key = key_of(api_key or os.environ.get("MAYFLY_KEY"))
        self._connection = Connection(url, api_key, timeout, transport)
        self.inboxes = Inboxes(self._connection)
        self.messages = Messages(self._connection)
        self.webhooks = Webhooks(self._connection)
        self.keys = Keys(self._connection)
        self.members = Members(self._connection)
        self.invitations = Invitations(self._connection)
        self.domains = Domains(self._connection)
        self.accounts = Accounts(self._connection)
        self.quotas = Quotas(self._connection)
        self.usage = Usage(self._connection)
        self.faults = Faults(self._connection)
        self.runs = Runs(self._connection)
        self.audit = Audit(self._connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections. Inboxes are not deleted."""
        self._connection.close()

    def activity(self, *, limit: int | None = None, **filters: Unpack[ChangeFilters]) -> list[types.Activity]:
        """Who changed what in the account: all of it, or the first `limit`. Needs the scope ``admin`` or ``audit``."""
        return cast("list[types.Activity]", self._connection.get_list(path_of("activity"), filters, limit))

    def set_sign_in(self, **options: Unpack[SetSignIn]) -> types.Account:
        """Set how people sign in to the console for the account. Needs the scope ``admin``."""
        return cast("types.Account", self._connection.patch(path_of("account"), options))

    def account(self, **call: Unpack[CallOptions]) -> types.Account:
        """The account of the key, with its plan and limits."""
        return cast("types.Account", self._connection.get(path_of("account"), call))

    def version(self, **call: Unpack[CallOptions]) -> types.Version:
        """The version of the server."""
        return cast("types.Version", self._connection.get("/version", call))


class Inboxes:
    """The inboxes of the key's environment."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def create(self, **options: Unpack[CreateInbox]) -> Inbox:
        """Creates an inbox.

        `duration` is its lifetime, such as `"30m"`, `"24h"`, `"7d"` or `"2w"`; by default 24 hours or what the plan
        allows. `labels` are pairs to find it by; `name` is shown to people. With `password_protected=True` its mail
        can be read only with its password, which the returned object has and sends.
        """
        return Inbox(self._connection, self._connection.post(path_of("inboxes"), options))

    def create_many(self, **options: Unpack[CreateInboxes]) -> list[Inbox]:
        """Creates `count` inboxes, at most 10,000, with the options of `create`, the same for all.

        `name` gets a number: `user-1`, `user-2` and so on.
        """
        created = self._connection.post(path_of("inboxes", "bulk"), options)
        return [Inbox(self._connection, each) for each in created]

    def get(self, inbox_id: str, **call: Unpack[CallOptions]) -> Inbox:
        """An inbox by its id. For the mail of a protected inbox, give its `password`."""
        data = self._connection.get(path_of("inboxes", inbox_id), call)
        return Inbox(self._connection, data, call.get("password"))

    def list(
        self,
        *,
        state: Literal["active", "deleted", "expired"] = "active",
        labels: Mapping[str, str] | None = None,
        address: str | None = None,
        order: Literal["asc", "desc"] = "desc",
        limit: int | None = None,
        **call: Unpack[CallOptions],
    ) -> list[types.Inbox | types.EndedInbox]:
        """The inboxes in that state that have all of the labels, newest first: all of them, or the first `limit`.

        With `address`, only the newest inbox that has it.
        """
        query = {"state": state, "labels": labels, "address": address, "order": order}
        data = self._connection.get_list(path_of("inboxes"), call, limit, **query)
        return cast("list[types.Inbox | types.EndedInbox]", data)

    def delete(self, inbox_id: str, **call: Unpack[CallOptions]) -> types.DeletedInbox:
        """Deletes an inbox and all its mail permanently."""
        return cast("types.DeletedInbox", self._connection.delete(path_of("inboxes", inbox_id), call))

    def delete_many(
        self, *, ids: Sequence[str] | None = None, label: str | None = None, timeout: float | None = None
    ) -> int:
        """Deletes inboxes by their `ids`, at most 10,000, or all with a `label` such as `"run:42"`.

        Returns how many it deleted. Skips protected ones, unless the key has the scope `admin`. `timeout` is for
        each request, in seconds. It sends more than one if more than 10,000 inboxes have the label.
        """
        options = {"label": label} if ids is None else {"ids": list(ids)}
        path = path_of("inboxes", "bulk-delete")
        total = 0
        while True:
            answer = cast("types.DeletedInboxes", self._connection.post(path, {**options, "timeout": timeout}))
            total += answer["deleted"]
            if answer["remaining"] == 0:
                return total
