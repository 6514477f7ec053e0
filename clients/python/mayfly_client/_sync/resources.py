# Written by codegen/generate_sync.py from _async/resources.py. Do not edit.
"""Webhooks, keys, members, domains, accounts, audit, usage and load runs. They return the JSON of the API."""

from __future__ import annotations

import builtins
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, cast

from .. import _types as types
from .._errors import ApiError, MayflyError
from .._options import (
    CallOptions,
    ChangeAccount,
    ChangeDomain,
    ChangeFilters,
    ChangeMember,
    ChangeWebhook,
    CreateDomain,
    InviteMember,
    IssueKey,
    OpenAccount,
    RegisterWebhook,
    RequestReplay,
    ResendInvitation,
    RotateKey,
    RotateWebhookSecret,
    SetQuota,
    Span,
)
from .._requests import path_of, request_of
from .connection import Connection

if TYPE_CHECKING:
    from typing_extensions import TypeAlias, Unpack

    RunLine: TypeAlias = "types.RunDifference | types.MissingMail | types.ErasedMail | types.RunSummary"


class Webhooks:
    """Webhooks. For those of a protected inbox, give its `password` with each call."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def create(self, **options: Unpack[RegisterWebhook]) -> types.WebhookWithSecret:
        """Registers a webhook for all inboxes of the key's environment (scope `admin`).

        The secret is only in this answer.
        """
        return cast("types.WebhookWithSecret", self._connection.post(path_of("webhooks"), options))

    def list(self, *, limit: int | None = None, **call: Unpack[CallOptions]) -> list[types.Webhook]:
        """The webhooks of the environment: all of them, or the first `limit`."""
        return cast("list[types.Webhook]", self._connection.get_list(path_of("webhooks"), call, limit))

    def get(self, webhook_id: str, **call: Unpack[CallOptions]) -> types.Webhook:
        """A webhook by its id."""
        return cast("types.Webhook", self._connection.get(path_of("webhooks", webhook_id), call))

    def change(self, webhook_id: str, **options: Unpack[ChangeWebhook]) -> types.Webhook:
        """Changes the `url`, the `events` or the `state`. `state="active"` enables it again."""
        return cast("types.Webhook", self._connection.patch(path_of("webhooks", webhook_id), options))

    def delete(self, webhook_id: str, **call: Unpack[CallOptions]) -> types.Webhook:
        """Removes a webhook."""
        return cast("types.Webhook", self._connection.delete(path_of("webhooks", webhook_id), call))

    def rotate_secret(self, webhook_id: str, **options: Unpack[RotateWebhookSecret]) -> types.WebhookWithSecret:
        """Issues a new signing secret. The old one also signs for the `grace`, such as `"1h"`; by default no longer."""
        path = path_of("webhooks", webhook_id, "secret", "rotate")
        return cast("types.WebhookWithSecret", self._connection.post(path, options))

    def test(self, webhook_id: str, **call: Unpack[CallOptions]) -> types.Delivery:
        """Sends a sample. Read its delivery by id for the result."""
        path = path_of("webhooks", webhook_id, "test")
        return cast("types.Delivery", self._connection.post(path, call))

    def list_deliveries(
        self,
        webhook_id: str,
        *,
        state: types.DeliveryState | None = None,
        order: Literal["asc", "desc"] | None = None,
        limit: int | None = None,
        **call: Unpack[CallOptions],
    ) -> builtins.list[types.Delivery]:
        """The deliveries to a webhook with their attempts: all of them, or the first `limit`."""
        path = path_of("webhooks", webhook_id, "deliveries")
        data = self._connection.get_list(path, call, limit, state=state, order=order)
        return cast("list[types.Delivery]", data)

    def get_delivery(self, webhook_id: str, delivery_id: str, **call: Unpack[CallOptions]) -> types.Delivery:
        """A delivery by its id."""
        path = path_of("webhooks", webhook_id, "deliveries", delivery_id)
        return cast("types.Delivery", self._connection.get(path, call))

    def replay(self, webhook_id: str, **options: Unpack[RequestReplay]) -> types.Replay:
        """Delivers again what happened from `from_` to `to`, or the deliveries `delivery_ids`."""
        path = path_of("webhooks", webhook_id, "replays")
        return cast("types.Replay", self._connection.post(path, options))

    def list_replays(
        self, webhook_id: str, *, limit: int | None = None, **call: Unpack[CallOptions]
    ) -> builtins.list[types.Replay]:
        """The replays of a webhook."""
        path = path_of("webhooks", webhook_id, "replays")
        return cast("list[types.Replay]", self._connection.get_list(path, call, limit))

    def get_replay(self, webhook_id: str, replay_id: str, **call: Unpack[CallOptions]) -> types.Replay:
        """A replay by its id, with its progress."""
        path = path_of("webhooks", webhook_id, "replays", replay_id)
        return cast("types.Replay", self._connection.get(path, call))

    def cancel_replay(self, webhook_id: str, replay_id: str, **call: Unpack[CallOptions]) -> types.Replay:
        """Stops a replay."""
        path = path_of("webhooks", webhook_id, "replays", replay_id)
        return cast("types.Replay", self._connection.delete(path, call))


class Keys:
    """The API keys of the account (scope `admin`)."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def issue(self, **options: Unpack[IssueKey]) -> types.KeyWithSecret:
        """Issues a key. The secret is only in this answer."""
        return cast("types.KeyWithSecret", self._connection.post(path_of("keys"), options))

    def list(self, *, limit: int | None = None, **call: Unpack[CallOptions]) -> list[types.Key]:
        """The keys of the account: all of them, or the first `limit`."""
        return cast("list[types.Key]", self._connection.get_list(path_of("keys"), call, limit))

    def get(self, key_id: str, **call: Unpack[CallOptions]) -> types.Key:
        """A key by its id, with its usage."""
        return cast("types.Key", self._connection.get(path_of("keys", key_id), call))

    def rotate(self, key_id: str, **options: Unpack[RotateKey]) -> types.KeyWithSecret:
        """Issues a new secret. The old one works for the `grace`, such as `"1h"`; by default no longer."""
        path = path_of("keys", key_id, "rotate")
        return cast("types.KeyWithSecret", self._connection.post(path, options))

    def revoke(self, key_id: str, **call: Unpack[CallOptions]) -> types.Key:
        """Ends a key, within a second."""
        return cast("types.Key", self._connection.delete(path_of("keys", key_id), call))


class Members:
    """The people of the account (scope `admin`)."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list(self, *, limit: int | None = None, **call: Unpack[CallOptions]) -> list[types.Member]:
        """The members of the account: all of them, or the first `limit`."""
        return cast("list[types.Member]", self._connection.get_list(path_of("members"), call, limit))

    def get(self, member_id: str, **call: Unpack[CallOptions]) -> types.Member:
        """A member by its id."""
        return cast("types.Member", self._connection.get(path_of("members", member_id), call))

    def change(self, member_id: str, **options: Unpack[ChangeMember]) -> types.Member:
        """Changes the `role`, the `environments` or the `permissions`."""
        return cast("types.Member", self._connection.patch(path_of("members", member_id), options))

    def remove(self, member_id: str, **call: Unpack[CallOptions]) -> types.RemovedMember:
        """Ends the sessions and personal keys of a member. Its service keys stay, and are in the answer."""
        return cast("types.RemovedMember", self._connection.delete(path_of("members", member_id), call))


class Invitations:
    """Invitations that were not used (scope `admin`)."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def create(self, **options: Unpack[InviteMember]) -> types.InvitationWithUrl:
        """Invites somebody. The link, `url`, is only in this answer."""
        return cast("types.InvitationWithUrl", self._connection.post(path_of("invitations"), options))

    def list(self, *, limit: int | None = None, **call: Unpack[CallOptions]) -> list[types.Invitation]:
        """The invitations that were not used or revoked: all of them, or the first `limit`."""
        return cast("list[types.Invitation]", self._connection.get_list(path_of("invitations"), call, limit))

    def get(self, invitation_id: str, **call: Unpack[CallOptions]) -> types.Invitation:
        """An invitation by its id."""
        return cast("types.Invitation", self._connection.get(path_of("invitations", invitation_id), call))

    def resend(self, invitation_id: str, **options: Unpack[ResendInvitation]) -> types.InvitationWithUrl:
        """Makes a new link; the former one is invalid."""
        path = path_of("invitations", invitation_id, "resend")
        return cast("types.InvitationWithUrl", self._connection.post(path, options))

    def revoke(self, invitation_id: str, **call: Unpack[CallOptions]) -> types.Invitation:
        """Makes the link of an invitation invalid."""
        return cast("types.Invitation", self._connection.delete(path_of("invitations", invitation_id), call))


class Domains:
    """The domains whose mail the account receives (scope `admin`)."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def create(self, **options: Unpack[CreateDomain]) -> types.Domain:
        """Registers a domain.

        The `records` of a domain of your own must then be in DNS. One with `hosted=True` is below the mail domain.
        """
        return cast("types.Domain", self._connection.post(path_of("domains"), options))

    def list(self, *, limit: int | None = None, **call: Unpack[CallOptions]) -> list[types.Domain]:
        """The domains of the account: all of them, or the first `limit`."""
        return cast("list[types.Domain]", self._connection.get_list(path_of("domains"), call, limit))

    def get(self, domain_id: str, **call: Unpack[CallOptions]) -> types.Domain:
        """A domain by its id."""
        return cast("types.Domain", self._connection.get(path_of("domains", domain_id), call))

    def change(self, domain_id: str, **options: Unpack[ChangeDomain]) -> types.Domain:
        """Changes `subdomains` or `catch_all`."""
        return cast("types.Domain", self._connection.patch(path_of("domains", domain_id), options))

    def delete(self, domain_id: str, **call: Unpack[CallOptions]) -> types.Domain:
        """Removes a domain."""
        return cast("types.Domain", self._connection.delete(path_of("domains", domain_id), call))

    def verify(self, domain_id: str, **call: Unpack[CallOptions]) -> types.Domain:
        """Checks the DNS records now."""
        return cast("types.Domain", self._connection.post(path_of("domains", domain_id, "verify"), call))

    def zone_file(self, domain_id: str, **call: Unpack[CallOptions]) -> str:
        """The records in the format of a zone file."""
        return (self._connection.read(path_of("domains", domain_id, "zonefile"), call)).decode()


class Accounts:
    """All accounts of the server (scope `operator`)."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def open(self, **options: Unpack[OpenAccount]) -> types.AccountWithKey:
        """Opens an account with a `name` and a `plan`. The secret of its first key is only in this answer."""
        return cast("types.AccountWithKey", self._connection.post(path_of("accounts"), options))

    def list(self, *, limit: int | None = None, **call: Unpack[CallOptions]) -> list[types.Account]:
        """The accounts: all of them, or the first `limit`."""
        return cast("list[types.Account]", self._connection.get_list(path_of("accounts"), call, limit))

    def get(self, account_id: str, **call: Unpack[CallOptions]) -> types.Account:
        """An account by its id."""
        return cast("types.Account", self._connection.get(path_of("accounts", account_id), call))

    def change(self, account_id: str, **options: Unpack[ChangeAccount]) -> types.AccountWithKey:
        """Changes the `plan` or the `limits`; `limits=None` stands for those of the plan."""
        path = path_of("accounts", account_id)
        return cast("types.AccountWithKey", self._connection.patch(path, options))

    def suspend(self, account_id: str, **call: Unpack[CallOptions]) -> types.Account:
        """Refuses all requests of an account, and its mail, until it is resumed."""
        return cast("types.Account", self._connection.post(path_of("accounts", account_id, "suspend"), call))

    def resume(self, account_id: str, **call: Unpack[CallOptions]) -> types.Account:
        """Ends a suspension."""
        return cast("types.Account", self._connection.post(path_of("accounts", account_id, "resume"), call))

    def close(self, account_id: str, **call: Unpack[CallOptions]) -> types.Account:
        """Closes an account for good. Its keys, domains, webhooks and inboxes end within seconds, with all mail."""
        return cast("types.Account", self._connection.post(path_of("accounts", account_id, "close"), call))

    def issue_key(self, account_id: str, **options: Unpack[IssueKey]) -> types.KeyWithSecret:
        """Issues a key for an account. The secret is only in this answer."""
        path = path_of("accounts", account_id, "keys")
        return cast("types.KeyWithSecret", self._connection.post(path, options))


class Quotas:
    """What the account may use, and uses."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list(self, **call: Unpack[CallOptions]) -> list[types.Quota]:
        """The quotas of the account."""
        return cast("list[types.Quota]", self._connection.get(path_of("quotas"), call))

    def set(self, name: str, **options: Unpack[SetQuota]) -> types.Quota:
        """Sets a quota within that of the plan, or with `limit=None` to that (scope `admin`)."""
        return cast("types.Quota", self._connection.put(path_of("quotas", name), options))


class Audit:
    """The audit log of the account (scope `audit`)."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def logs(self, **call: Unpack[CallOptions]) -> list[types.AuditLog]:
        """The logs: one, that of the account."""
        return cast("list[types.AuditLog]", self._connection.get(path_of("audit", "logs"), call))

    def checkpoint(self, log_id: str, **call: Unpack[CallOptions]) -> str:
        """The last checkpoint of the log, as text (C2SP tlog-checkpoint)."""
        return (self._connection.read(path_of("audit", "logs", log_id, "checkpoint"), call)).decode()

    def events(
        self, log_id: str, *, limit: int | None = None, **filters: Unpack[ChangeFilters]
    ) -> list[types.AuditEvent]:
        """What the log has up to its last checkpoint: all of it, or the first `limit`."""
        path = path_of("audit", "logs", log_id, "events")
        return cast("list[types.AuditEvent]", self._connection.get_list(path, filters, limit))

    def proof(self, log_id: str, event_id: str, **call: Unpack[CallOptions]) -> str:
        """Proves that the event is in the log, as text (C2SP tlog-proof)."""
        path = path_of("audit", "logs", log_id, "events", event_id, "proof")
        return (self._connection.read(path, call)).decode()

    def erasure(self, inbox_id: str, **call: Unpack[CallOptions]) -> types.Erasure:
        """The certificate of erasure of an inbox that has ended."""
        path = path_of("inboxes", inbox_id, "erasure")
        return cast("types.Erasure", self._connection.get(path, call))

    def inbox_as_of(self, as_of: str | int, inbox_id: str, **call: Unpack[CallOptions]) -> types.PastInbox:
        """An inbox as it was, without content, at a time (RFC 3339) or with a number of leaves."""
        path = path_of("inboxes", inbox_id)
        return cast("types.PastInbox", self._connection.get(path, call, as_of=as_of))

    def messages_as_of(
        self, as_of: str | int, inbox_id: str, *, limit: int | None = None, **call: Unpack[CallOptions]
    ) -> list[types.PastMessage]:
        """The messages that an inbox had, without content: all, or the first `limit`."""
        path = path_of("inboxes", inbox_id, "messages")
        return cast("list[types.PastMessage]", self._connection.get_list(path, call, limit, as_of=as_of))

    def history_as_of(
        self, as_of: str | int, inbox_id: str, *, limit: int | None = None, **call: Unpack[CallOptions]
    ) -> list[types.Event]:
        """The history of an inbox until then: all of it, or the first `limit` events."""
        path = path_of("inboxes", inbox_id, "history")
        return cast("list[types.Event]", self._connection.get_list(path, call, limit, as_of=as_of))

    def account_as_of(self, as_of: str | int, **call: Unpack[CallOptions]) -> types.Account:
        """The account as it was."""
        return cast("types.Account", self._connection.get(path_of("account"), call, as_of=as_of))


class Faults:
    """Faults on purpose: of an inbox, by its id, or of all new inboxes of an environment, by its name.

    The latter needs the scope `admin`.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, inbox_or_environment: str, **call: Unpack[CallOptions]) -> list[types.InboxFault]:
        """All faults."""
        return cast("list[types.InboxFault]", self._connection.get(_faults_path(inbox_or_environment), call))

    def set(
        self, inbox_or_environment: str, faults: Sequence[types.InboxFault], **call: Unpack[CallOptions]
    ) -> list[types.InboxFault]:
        """Replaces all faults."""
        request = replace(
            request_of("PUT", _faults_path(inbox_or_environment), cast("dict[str, Any]", call)), body=faults
        )
        return cast("list[types.InboxFault]", (self._connection.send(request)).json())

    def remove(self, inbox_or_environment: str, **call: Unpack[CallOptions]) -> list[types.InboxFault]:
        """Removes all faults."""
        return cast("list[types.InboxFault]", self._connection.delete(_faults_path(inbox_or_environment), call))


def _faults_path(inbox_or_environment: str) -> str:
    return path_of(
        "inboxes" if inbox_or_environment.startswith("inb_") else "environments", inbox_or_environment, "faults"
    )


class Usage:
    """What was used: by the key, or with the scope `admin` by the account."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def read(
        self,
        *,
        interval: Literal["second", "minute", "hour", "day"] = "hour",
        group_by: str | None = None,
        labels: Mapping[str, str] | None = None,
        **span: Unpack[Span],
    ) -> list[types.UsageRow]:
        """Usage by time, by default of the last 24 hours.

        `group_by` is `key`, `environment`, `label.<name>` or `none`. Only usage with all of the labels is counted.
        """
        path = path_of("usage")
        data = self._connection.get(path, span, interval=interval, group_by=group_by, labels=labels)
        return cast("list[types.UsageRow]", data)

    def report(self, *, labels: Mapping[str, str], **span: Unpack[Span]) -> types.UsageReport:
        """A summary of everything with the labels, such as a load run."""
        data = self._connection.get(path_of("usage", "report"), span, labels=labels)
        return cast("types.UsageReport", data)

    def export(
        self,
        *,
        format: Literal["parquet", "ndjson", "csv"] = "ndjson",
        table: str | None = None,
        **span: Unpack[Span],
    ) -> bytes:
        """The usage of the account as a file (scope `admin`). docs/analytics.md lists the tables and columns."""
        return self._connection.read(path_of("usage", "export"), span, format=format, table=table)


class Runs:
    """Load runs: everything with a label."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def verify(
        self,
        label: str,
        manifest: Iterable[types.ManifestLine],
        *,
        id_header: str | None = None,
        late: float | None = None,
        order: bool | None = None,
        **call: Unpack[CallOptions],
    ) -> Generator[RunLine, None, None]:
        """Compares the mail in the inboxes with a label, such as `run:42`, with what was sent.

        Yields the differences as they are found, and then the summary. A mail is late that was received more than
        `late` seconds after it was sent. The manifest is read once and sent as it is read, so the request is not
        repeated if it fails.
        """
        late_ms = None if late is None else round(late * 1000)
        path = path_of("runs", label, "verify")
        is_complete = False
        for line in self._connection.exchange(
            path, manifest, call, id_header=id_header, late_ms=late_ms, order=order
        ):
            if line["kind"] == "problem":
                raise ApiError(line["problem"])
            is_complete = line["kind"] == "summary"
            yield line
        if not is_complete:
            raise MayflyError("The answer ended before its summary.")
