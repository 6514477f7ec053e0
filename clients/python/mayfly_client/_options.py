"""The keyword arguments of the methods that send a body, from the schemas of the API."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from . import _types as types
from ._requests import CallOptions
from ._waits import ListFilters, WaitOptions


class CreateInbox(types.CreateInbox, CallOptions, total=False):
    """Of `inboxes.create`."""


class CreateInboxes(types.CreateInboxes, CallOptions):
    """Of `inboxes.create_many`."""


class UpdateInbox(types.UpdateInbox, CallOptions, total=False):
    """Of `update`."""


class NewMessage(CallOptions):
    """The required part of `InjectMessage`."""

    from_: str
    """The sender: an address, or `Name <address>`."""
    subject: str


class InjectMessage(NewMessage, total=False):
    """Of `inject_message`."""

    text: str
    html: str
    headers: types.MailHeaders
    attachments: list[types.AttachContent]


class CreateInboxToken(types.CreateInboxToken, CallOptions, total=False):
    """Of `tokens.create`."""


class RegisterWebhook(types.RegisterWebhook, CallOptions):
    """Of `create_webhook` and `webhooks.create`."""


class ChangeWebhook(types.ChangeWebhook, CallOptions, total=False):
    """Of `webhooks.change`."""


class RotateWebhookSecret(types.RotateWebhookSecret, CallOptions, total=False):
    """Of `webhooks.rotate_secret`."""


class RequestReplay(CallOptions, total=False):
    """Of `webhooks.replay`: a span of time, or deliveries."""

    from_: str | datetime
    """The start of the span: RFC 3339 or a datetime."""
    to: str | datetime
    """The end of the span, exclusive."""
    delivery_ids: list[str]
    only_failed: bool
    """Only deliveries that failed."""


class OpenAccount(types.OpenAccount, CallOptions):
    """Of `accounts.open`."""


class ChangeAccount(types.ChangeAccount, CallOptions, total=False):
    """Of `accounts.change`."""


class IssueKey(types.IssueKey, CallOptions):
    """Of `keys.issue` and `accounts.issue_key`."""


class CreateDomain(CallOptions, total=False):
    """Of `domains.create`: with a `name`, or `hosted=True`."""

    name: str
    hosted: bool
    environment: str
    subdomains: bool
    catch_all: types.DomainCatchAll


class ChangeDomain(types.ChangeDomain, CallOptions, total=False):
    """Of `domains.change`."""


class InviteMember(types.InviteMember, CallOptions):
    """Of `invitations.create`."""


class ResendInvitation(types.ResendInvitation, CallOptions, total=False):
    """Of `invitations.resend`."""


class ChangeMember(types.ChangeMember, CallOptions, total=False):
    """Of `members.change`."""


class RotateKey(types.RotateKey, CallOptions, total=False):
    """Of `keys.rotate`."""


class SetQuota(types.SetQuota, CallOptions, total=False):
    """Of `quotas.set`."""


class SetSignIn(types.SetSignIn, CallOptions):
    """Of `set_sign_in`."""


class Span(CallOptions, total=False):
    """A span of time."""

    from_: str | datetime
    """Its start: RFC 3339 or a datetime."""
    to: str | datetime
    """Its end, exclusive. Default: now."""


class ChangeFilters(Span, total=False):
    """Of `activity` and `audit.events`: who did what, when."""

    actor: str
    """The id of who did it."""
    type: str
    """A type, or its first part, such as `member`."""
    environment: str
    subject: str
    """The id of what it is about."""
    order: Literal["asc", "desc"]


__all__ = [
    "CallOptions",
    "ChangeAccount",
    "ChangeDomain",
    "ChangeFilters",
    "ChangeMember",
    "ChangeWebhook",
    "CreateDomain",
    "CreateInbox",
    "CreateInboxToken",
    "InjectMessage",
    "InviteMember",
    "IssueKey",
    "ListFilters",
    "OpenAccount",
    "RegisterWebhook",
    "RequestReplay",
    "ResendInvitation",
    "RotateKey",
    "RotateWebhookSecret",
    "SetQuota",
    "SetSignIn",
    "Span",
    "WaitOptions",
]
