"""The JSON that the API takes and returns, from its OpenAPI document.

Written by codegen/generate_types.py. Do not edit.
"""

from __future__ import annotations

from typing import Dict, Literal, TypedDict, Union


DeliveryState = Literal[
    "pending",
    "succeeded",
    "failed",
    "abandoned",
]


EventType = Literal[
    "message.received",
    "message.deleted",
    "inbox.expired",
    "inbox.deleted",
    "domain.verified",
    "domain.lapsed",
    "key.expiring",
    "quota.reached",
]


ProblemCode = Literal[
    "invalid-request",
    "malformed-json",
    "missing-api-key",
    "invalid-api-key",
    "revoked-api-key",
    "sign-in-failed",
    "not-signed-in",
    "plan-lacks-api-access",
    "account-suspended",
    "missing-scope",
    "not-invited",
    "no-role",
    "sign-in-with-provider",
    "link-check-disabled",
    "untrusted-origin",
    "inbox-password-required",
    "inbox-password-invalid",
    "not-found",
    "no-matching-message",
    "method-not-allowed",
    "not-acceptable",
    "already-signed-in",
    "idempotency-key-in-use",
    "address-taken",
    "inbox-full",
    "not-yet-checkpointed",
    "inbox-deleted",
    "inbox-expired",
    "history-expired",
    "message-deleted",
    "body-too-large",
    "unsupported-media-type",
    "idempotency-key-reused",
    "domain-not-verified",
    "html-too-complex",
    "rate-limited",
    "quota-exceeded",
    "too-many-password-attempts",
    "audit-log-contradicted",
    "internal-error",
    "catching-up",
    "log-unavailable",
    "read-model-unavailable",
    "provider-unavailable",
    "busy",
    "too-many-streams",
    "too-many-waits",
    "shutting-down",
]


Scope = Literal[
    "inboxes",
    "read",
    "audit",
    "admin",
    "operator",
]


class Account(TypedDict):
    """The owner of keys and inboxes, with its limits."""
    id: str
    """The id of the account."""
    name: str | None
    """For people; null once erased."""
    plan: str
    """The name of its plan."""
    limits: Limits | None
    """Null if its plan is no longer configured. The account then has no API access."""
    environments: list[str]
    """The environments of its active keys."""
    sign_in: Literal["any", "provider"]
    """`provider`: people can sign in to the console only with an identity provider."""
    state: Literal["active", "suspended", "closed"]
    """A suspended or closed account is refused all requests, and gets no mail."""
    suspended_at: str | None
    """When it was suspended, or closed; null if it is active."""
    closed_at: str | None
    """When it was closed; null if it is not."""
    erased_at: str | None
    """When all of the closed account had been erased; null before that."""
    created_at: str
    """When it was opened."""


class AccountLimits(TypedDict, total=False):
    """The account's own limits. For a limit that is left out, the plan's applies."""
    requests_per_minute: int
    account_requests_per_minute: int
    retention: str
    max_messages: int
    max_inboxes: int
    max_inboxes_per_day: int
    max_messages_per_day: int
    max_stored_bytes: int
    max_webhooks: int
    max_domains: int
    max_members: int


class AccountWithKey(TypedDict):
    """An account, with its new key, if one was issued."""
    id: str
    """The id of the account."""
    name: str | None
    """For people; null once erased."""
    plan: str
    """The name of its plan."""
    limits: Limits | None
    """Null if its plan is no longer configured. The account then has no API access."""
    environments: list[str]
    """The environments of its active keys."""
    sign_in: Literal["any", "provider"]
    """`provider`: people can sign in to the console only with an identity provider."""
    state: Literal["active", "suspended", "closed"]
    """A suspended or closed account is refused all requests, and gets no mail."""
    suspended_at: str | None
    """When it was suspended, or closed; null if it is active."""
    closed_at: str | None
    """When it was closed; null if it is not."""
    erased_at: str | None
    """When all of the closed account had been erased; null before that."""
    created_at: str
    """When it was opened."""
    key: KeyWithSecret | None
    """Its first key with the scope `admin`. The secret is only in this answer. Null if the account already has such
    a key, or no API access.
    """


class ActivityActor(TypedDict):
    """An object."""
    type: Literal["key", "member", "session", "token", "operator", "system"]
    """`session`: of the console, started with a key. `operator`: of the server. `system`: Mayfly itself, or for the
    role of a member an identity provider.
    """
    id: str | None
    """Null for `operator` and `system`."""
    name: str | None
    """The member's email address, or the key's name; null for others."""


_ActivityChangesKeywords = TypedDict(
    "_ActivityChangesKeywords",
    {
        "from": "object",
    },
)


class ActivityChanges(_ActivityChangesKeywords):
    """An object."""
    field: str
    to: object


class Activity(TypedDict):
    """A change of an account, or in it."""
    id: str
    """The id of the event."""
    time: str
    """When it happened."""
    action: str
    """Such as `member.changed`."""
    actor: ActivityActor
    subject: str
    """The id of what was changed."""
    environment: str | None
    """Of what was changed; null if that is of the whole account."""
    outcome: Literal["applied", "ignored"]
    """`ignored`: it had no effect, because another change came first."""
    request_id: str | None
    """The request's `X-Request-Id`; null for `operator`, and if no request caused it."""
    remote_address: str | None
    """Where the request came from."""
    changes: list[ActivityChanges]
    """Both values are null if they are not shown."""


class AttachContent(TypedDict):
    """An attachment of the mail."""
    filename: str
    """The file name."""
    content_type: str
    """The media type, without parameters; not multipart."""
    content: str
    """The content in base64."""


class Attachment(TypedDict):
    """An attachment of a mail."""
    index: int
    """Its number in the path of its content, from 0."""
    filename: str | None
    """The file name that the sender declared."""
    content_type: str
    """The media type that the sender declared."""
    size: int
    """The decoded size in bytes."""
    content_id: str | None
    """The id that `cid:` links in the HTML refer to."""
    inline: bool
    """Whether it is to be shown within the mail."""
    sha256: str
    """SHA-256 of the decoded bytes."""


class Attempt(TypedDict):
    """One POST to an endpoint."""
    time: str
    """When it started."""
    status: int | None
    """The status that the endpoint answered; null if it did not answer."""
    latency_ms: int
    """From its start to the answer or the failure."""
    answer: str | None
    """The beginning of the answer, at most 1 kB, read as UTF-8; null if there was none, for a redirect, if there is
    no inbox, and after the inbox has ended.
    """
    error: str | None
    """Why it failed; null if it succeeded."""


class AuditEvent(TypedDict):
    """An event of the account in its audit log."""
    index: int
    """Its index in the log."""
    id: str
    """The id of the event."""
    type: str
    """As on the event log."""
    time: str
    """When it happened."""
    actor: str | None
    """The id of who caused it; null for Mayfly itself."""
    environment: str
    """Of the inbox, or of the key that was used."""
    subject: str
    """The id of what it is about."""
    position: str
    """Topic, partition and offset of its record."""
    record_sha256: str
    """SHA-256 of its record."""


class AuditLog(TypedDict):
    """A tamper-evident log of the account (C2SP tlog-tiles)."""
    id: str
    """The id of the log."""
    origin: str
    """Its name in checkpoints."""
    public_key: str
    """What verifies its checkpoints (C2SP signed-note)."""
    size: int
    """The number of its leaves."""


class AuthenticationSpf(TypedDict):
    """An object."""
    result: Literal["none", "neutral", "pass", "fail", "softfail", "policy", "temperror", "permerror"]
    """The result as in RFC 8601, section 2.7."""
    domain: str | None
    """The domain of MAIL FROM, or of EHLO if MAIL FROM is empty."""
    detail: str | None
    """Details of the result; null if there are none."""


class AuthenticationDkim(TypedDict):
    """An object."""
    result: Literal["none", "neutral", "pass", "fail", "softfail", "policy", "temperror", "permerror"]
    """The result as in RFC 8601, section 2.7."""
    domain: str | None
    """The domain that signed."""
    selector: str | None
    """The selector of the key."""
    algorithm: str | None
    """The algorithm of the signature."""
    aligned: bool
    """Whether the domain that signed is aligned with the author, as in DMARC."""
    detail: str | None
    """Details of the result; null if there are none."""


class AuthenticationDmarc(TypedDict):
    """An object."""
    result: Literal["none", "neutral", "pass", "fail", "softfail", "policy", "temperror", "permerror"]
    """The result as in RFC 8601, section 2.7."""
    domain: str | None
    """The domain of the author."""
    policy: Literal["none", "quarantine", "reject"] | None
    """The policy of the domain."""
    detail: str | None
    """Details of the result; null if there are none."""


class AuthenticationArc(TypedDict):
    """Only for a mail with a chain of ARC headers."""
    result: Literal["none", "neutral", "pass", "fail", "softfail", "policy", "temperror", "permerror"]
    """The result as in RFC 8601, section 2.7."""
    instances: int
    """The length of the chain."""
    detail: str | None
    """Details of the result; null if there are none."""


class _AuthenticationOptional(TypedDict, total=False):
    arc: AuthenticationArc
    """Only for a mail with a chain of ARC headers."""


class Authentication(_AuthenticationOptional):
    """Whether a mail is from its declared sender, as verified when it was received: SPF, DKIM, DMARC, ARC."""
    spf: AuthenticationSpf | None
    """Null if it was not verified."""
    dkim: list[AuthenticationDkim]
    """One result for each signature."""
    dmarc: AuthenticationDmarc | None
    """Null if it was not verified, or the mail has no author."""


class BulkSummary(TypedDict):
    """The last line of inboxes that are created in one request."""
    created: int
    """The number of inboxes in the lines above."""
    failed: int
    """The number of inboxes that were not created."""
    problem: Problem | None
    """Why they were not created; null if all were."""


class ChangeAccount(TypedDict, total=False):
    """What to change of an account."""
    plan: str
    """The name of a configured plan."""
    limits: AccountLimits | None
    """The account's own limits, on a plan with limits per account. Null for the limits of the plan."""


class ChangeDomain(TypedDict, total=False):
    """What to change of a domain."""
    subdomains: bool
    """Whether the domain includes all its subdomains. The records are then checked again."""
    catch_all: DomainCatchAll
    """What becomes of mail to an address without an inbox."""


class ChangeMember(TypedDict, total=False):
    """What the member may do from now on."""
    role: Literal["owner", "admin", "developer", "viewer", "auditor"]
    """What the member may do, as in docs/teams.md. Only an owner can give the role `owner`."""
    environments: list[str] | None
    """The only environments that the member can use, or null for all. Not for an `owner` or an `admin`."""
    permissions: list[Literal["content:read"]]
    """`content:read` allows the member to read mail. An `admin` has it unless it is left out here, an `auditor`
    only if it is given, all others always.
    """


class ChangeWebhook(TypedDict, total=False):
    """What to change of a webhook."""
    url: str
    """The new URL of the endpoint."""
    events: list[EventType]
    """The new list of events to deliver."""
    state: Literal["active", "disabled"]
    """Whether events are delivered. `active` enables a webhook that was disabled for any reason."""


class CheckedLink(TypedDict):
    """A link of a mail, and what its host answered."""
    href: str
    """As in `links` of the message."""
    status: int | None
    """The HTTP status, after redirects; null if there was no answer."""
    error: str | None
    """Why there is no status, or why it is that of a redirect; null otherwise. Without addresses."""


class ClientSupport(TypedDict):
    """A mail client that does not fully support a feature."""
    name: str
    """The mail client and its platform, in its newest version that was tested."""
    support: Literal["none", "partial"]
    """How far it supports the feature."""
    notes: list[str]
    """What it does not support, or does instead, in Markdown."""


class Code(TypedDict):
    """A one-time code in a mail."""
    value: str
    """The code as a user types it."""
    text: str
    """The code as written in the mail."""
    confidence: float
    """How likely it is a one-time code."""


class _CreatedInboxOptional(TypedDict, total=False):
    password: str
    """Only for a protected inbox, and only in this answer: the value for `Mayfly-Inbox-Password`."""


class CreatedInbox(_CreatedInboxOptional):
    """An inbox, with its password if it is protected."""
    id: str
    """Never changes and is never reused."""
    address: str
    """The address. Upper and lower case are the same, and mail to `local+tag@` arrives in the same inbox. It is
    made up, except that of an inbox that mail to its address has made.
    """
    state: Literal["active"]
    """It receives mail."""
    duration: str
    """The lifetime that was last requested."""
    password_protected: bool
    """Whether reading its mail requires a password."""
    name: str | None
    """A name to show to people."""
    labels: InboxLabels
    environment: str
    """The environment of the key that created it."""
    created_at: str
    """When it was created."""
    expires_at: str
    """When it expires, with all its mail."""
    message_count: int
    """The number of messages that it has received, without deleted ones."""
    last_message_at: str | None
    """When the newest message arrived."""


class CreateInbox(TypedDict, total=False):
    """A new inbox. Every property is optional."""
    address: str
    """Its address, such as `support@staging.example.com`, in one of your domains. Default: a generated address."""
    local_part: str
    """Instead of `address`: its local part. Requires `domain`."""
    domain: str
    """Instead of `address`: its domain. Requires `local_part`."""
    duration: str
    """The lifetime: a whole number and one of `m`, `h`, `d`, `w`, from one minute to the retention of the plan.
    Default: the shorter of that retention and 24 hours.
    """
    password_protected: bool
    """Whether reading its mail requires a password. The answer then has the password. Default: `false`."""
    name: str | None
    """A name to show to people."""
    labels: InboxLabels
    """Labels to find the inbox by."""


class _CreateInboxesOptional(TypedDict, total=False):
    duration: str
    """The lifetime: a whole number and one of `m`, `h`, `d`, `w`, from one minute to the retention of the plan.
    Default: the shorter of that retention and 24 hours.
    """
    password_protected: bool
    """Whether reading its mail requires a password. The answer then has the password. Default: `false`."""
    name: str | None
    """A name to show to people."""
    labels: InboxLabels
    """Labels to find the inbox by."""


class CreateInboxes(_CreateInboxesOptional):
    """New inboxes. All have the same properties, and `name` gets a number: `user-1`, `user-2` and so on."""
    count: int
    """The number of inboxes."""


class CreateInboxToken(TypedDict, total=False):
    """A new token for one inbox. Every property is optional."""
    access: Literal["read", "owner"]
    """`read` for a token that reads the inbox and its mail; `owner` for one that may delete the inbox too. Default:
    `"read"`.
    """
    expires_in: str
    """How long it is valid: a whole number and one of `m`, `h`, `d`, `w`, from one minute to the end of the inbox.
    Default: until the inbox expires.
    """


class DeletedInbox(TypedDict):
    """An inbox that was deleted."""
    id: str
    """Never changes and is never reused."""
    address: str
    """The address. Upper and lower case are the same, and mail to `local+tag@` arrives in the same inbox. It is
    made up, except that of an inbox that mail to its address has made.
    """
    state: Literal["deleted"]
    """It is permanently deleted."""
    deleted_at: str
    """When it was deleted. The same in the answer to a repeat."""


class DeletedInboxes(TypedDict):
    """What was deleted."""
    deleted: int
    """The number of inboxes that this request has deleted."""
    remaining: int
    """The number of inboxes that are left to delete. Repeat the request until it is 0."""


class DeletedMessage(TypedDict):
    """A message that was deleted."""
    id: str
    """Never changes and is never reused."""
    deleted_at: str
    """When it was deleted. The same in the answer to a repeat."""


class DeleteInboxesById(TypedDict):
    """Single inboxes."""
    ids: list[str]
    """The ids of the inboxes."""


class DeleteInboxesByLabel(TypedDict):
    """All inboxes with a label."""
    label: str
    """A label `<name>:<value>`."""


class Delivery(TypedDict):
    """An event for a webhook, and the attempts to deliver it."""
    id: str
    """The id of the delivery."""
    webhook_id: str
    """The webhook."""
    event: Literal["message.received", "message.deleted", "inbox.expired", "inbox.deleted", "domain.verified", "domain.lapsed", "key.expiring", "quota.reached", "sample"]
    """The event that is delivered."""
    inbox_id: str | None
    """The inbox of the event; null for a sample, and for an event of a domain or a key."""
    message_id: str | None
    """The message of the event; null if the event is not about a message."""
    domain_id: str | None
    """The domain of the event; null if the event is not about a domain."""
    key_id: str | None
    """The key of the event; null if the event is not about a key."""
    quota: str | None
    """The quota of the event, if any."""
    replay_id: str | None
    """The replay that it belongs to; null if it is not part of one."""
    state: DeliveryState
    """`failed` if the last attempt failed; `abandoned` if there is nothing left to deliver."""
    abandoned_reason: Literal["inbox-ended", "message-deleted", "webhook-disabled", "webhook-removed", "replay-cancelled"] | None
    """Why it was abandoned."""
    created_at: str
    """When it was requested."""
    next_attempt_at: str | None
    """When the next attempt is due; null if there is none."""
    attempts: list[Attempt]
    """All attempts, in their order."""


class Domain(TypedDict):
    """A domain whose mail the account receives."""
    id: str
    """The id of the domain. It never changes."""
    name: str
    """The name, in Unicode."""
    environment: str
    """The environment whose inboxes receive the mail."""
    state: Literal["pending", "verified", "failed", "lapsed"]
    """`pending` until all records are found; `verified`; `failed` if they are not found within 72 hours, or if
    another account has proved the domain since; `lapsed` if they are gone for two days.
    """
    hosted: bool
    """Whether it is a name below the mail domain of Mayfly."""
    subdomains: bool
    """Whether it includes all its subdomains."""
    name_taken: bool
    """Whether all records were found, but another account has the domain. It is verified at the first check that
    does not find the TXT record of that account.
    """
    records: list[DomainRecord]
    """The DNS records that it must have; none if it is hosted."""
    catch_all: DomainCatchAll
    created_at: str
    """When it was registered."""
    verified_at: str | None
    """Since when it is verified, without interruption; null if it never was."""
    checked_at: str | None
    """When name servers last gave a clear answer about its records; null if they never did."""


class _DomainCatchAllOptional(TypedDict, total=False):
    inbox_id: str
    """The inbox of `deliver`."""
    duration: str
    """The lifetime of the inboxes that `create` makes: a whole number and one of `m`, `h`, `d`, `w`. Default: that
    of a new inbox.
    """
    labels: InboxLabels


class DomainCatchAll(_DomainCatchAllOptional):
    """What becomes of mail to an address of the domain without an inbox."""
    action: Literal["reject", "create", "deliver"]
    """`reject` refuses the mail, `create` makes an inbox for the address, `deliver` delivers it to one inbox."""


class DomainLapsedEvent(TypedDict):
    """The event `domain.lapsed`."""
    type: Literal["domain.lapsed"]
    """The type of the event."""
    timestamp: str
    """When it happened."""
    data: EventDomain


class DomainRecord(TypedDict):
    """A DNS record that the domain must have."""
    type: Literal["TXT", "MX"]
    """The type of the record."""
    name: str
    """Its full name."""
    zone_name: str
    """Its name in the zone of the registrable domain, as most DNS providers ask for it; `@` for the zone itself."""
    value: str
    """Its value."""
    priority: int | None
    """The preference of an MX record; null for a TXT record."""
    status: Literal["missing", "invalid", "valid"]
    """The result of the last check. `invalid`: there are other values only, or other MX records that senders try
    first.
    """
    found: list[str]
    """The values found in DNS, at most 10; MX as `10 mx.example.com`."""


class DomainVerifiedEvent(TypedDict):
    """The event `domain.verified`."""
    type: Literal["domain.verified"]
    """The type of the event."""
    timestamp: str
    """When it happened."""
    data: EventDomain


class EndedInbox(TypedDict):
    """An inbox after its end. It can be read as long as the log is kept."""
    id: str
    """Never changes and is never reused."""
    address: str
    """The address. Upper and lower case are the same, and mail to `local+tag@` arrives in the same inbox. It is
    made up, except that of an inbox that mail to its address has made.
    """
    state: Literal["deleted"] | Literal["expired"]
    """How it ended."""
    labels: InboxLabels
    created_at: str
    """When it was created."""
    ended_at: str
    """When it ended."""
    message_count: int
    """The number of messages that it has received, without deleted ones."""


class EnvelopeTls(TypedDict):
    """An object."""
    version: str
    cipher: str


class Envelope(TypedDict):
    """The SMTP envelope of a mail."""
    mail_from: str
    """The address in MAIL FROM; empty for the null reverse-path."""
    rcpt_to: str
    """The RCPT TO address of this copy."""
    helo: str
    """The client's EHLO or HELO."""
    remote_address: str
    """The client's IP address."""
    tls: EnvelopeTls | None
    """Null for an unencrypted connection."""


class ErasedMail(TypedDict):
    """A line of the manifest whose inbox has ended."""
    kind: Literal["erased"]
    """The inbox of the recipient has ended, so its mail is permanently deleted."""
    recipient: str
    """The address of RCPT TO."""
    id: str
    """As in the manifest."""
    line: int
    """The line of the manifest, without empty lines."""
    sent_at: str | None
    """As in the manifest."""
    inbox_id: str
    """The id of the inbox."""
    state: Literal["deleted", "expired"]
    """How the inbox ended."""
    ended_at: str
    """When it ended."""


class Erasure(TypedDict):
    """A certificate of the erasure of an inbox. `proof` shows that `leaf` is in the audit log, whose checkpoint is
    signed. The leaf has the SHA-256 of `record`, and the value of the record has the other facts.
    """
    inbox_id: str
    """The inbox."""
    state: Literal["deleted", "expired"]
    """How it ended."""
    ended_at: str
    """When it ended."""
    actor: str | None
    """The id of who deleted it: a key, or a member, session or inbox token; null if it expired."""
    erased_at: str
    """When its key was deleted. Nothing that it encrypted can be read since."""
    copies_gone_by: str
    """From then on Mayfly's own disks have no copy of the key."""
    event_id: str
    """The event of the erasure."""
    log_id: str
    """The audit log."""
    index: int
    """The index of its leaf."""
    leaf: str
    """The leaf, as it is hashed."""
    record: str
    """The record of the event, as the leaf has its SHA-256."""
    proof: str
    """The proof that the leaf is in the log (C2SP tlog-proof)."""
    does_not_prove: list[str]
    """What it can not prove."""


class Event(TypedDict):
    """An event of an inbox, without content."""
    id: str
    """The id of the event."""
    type: Literal["inbox.created", "inbox.changed", "token.issued", "token.revoked", "faults.set", "message.received", "message.dropped", "message.deleted", "inbox.expired", "inbox.deleted"]
    """The type of the event."""
    time: str
    """When it happened."""
    inbox_id: str
    """The inbox."""
    message_id: str | None
    """The message; null if the event is about the inbox."""
    key_id: str | None
    """The key that caused the event; null if no key did."""
    actor: str | None
    """The member who did it; or the inbox token or console session that was used, and made with the key; null if
    the key itself was.
    """
    changed: list[Literal["duration", "name", "labels"]] | None
    """The properties of the inbox that were changed; null if `type` is not `inbox.changed`."""
    position: Position
    size: int | None
    """Bytes of a mail's source."""
    digest: str | None
    """SHA-256 of the sealed bytes of a mail on the log, or of the source of a mail that a fault dropped."""


class EventDeletedMessage(TypedDict):
    """A deleted message, as in an event."""
    id: str
    """Never changes and is never reused."""
    inbox_id: str
    """The inbox that received it."""
    deleted_at: str
    """When it was deleted."""


class EventDomain(TypedDict):
    """A domain, as in an event."""
    id: str
    """The id of the domain."""
    name: str
    """The name, in Unicode."""
    environment: str
    """The environment whose inboxes receive its mail."""
    state: Literal["verified", "lapsed"]
    """Its new state."""


class EventEndedInbox(TypedDict):
    """An ended inbox, as in an event."""
    id: str
    """Never changes and is never reused."""
    state: Literal["deleted"] | Literal["expired"]
    """How it ended."""
    ended_at: str
    """When it ended."""


class EventKey(TypedDict):
    """A key, as in an event."""
    id: str
    """The id of the key."""
    name: str
    """The name of the key."""
    environment: str
    """The environment that the key belongs to."""
    expires_at: str
    """When it expires."""


_EventMessageKeywords = TypedDict(
    "_EventMessageKeywords",
    {
        "from": "list[Mailbox]",
    },
)


class _EventMessageOptional(TypedDict, total=False):
    injected: bool
    """True in a message that was put in by the API, without SMTP."""
    duplicate_of: str
    """Only in a message that a fault repeated: the original."""
    truncated: list[Literal["html", "visible_text", "text", "headers"]]
    """Properties that are null because the event would exceed 256 kB. The message itself has them."""


class EventMessage(_EventMessageKeywords, _EventMessageOptional):
    """A message, as in an event."""
    id: str
    """Never changes and is never reused."""
    inbox_id: str
    """The inbox that received it."""
    received_at: str
    """When it was accepted."""
    subject: str | None
    """The decoded subject; null if the mail has none."""
    sender: str
    """The first From address, or the envelope's MAIL FROM if there is none."""
    recipient: str
    """The RCPT TO address of this copy."""
    recipient_detail: str | None
    """What follows the first `+` in the local part of `recipient` (RFC 5233); null without one."""
    to: list[Mailbox]
    cc: list[Mailbox]
    reply_to: list[Mailbox]
    date: str | None
    """The Date header, in UTC; null if missing or unreadable."""
    text: str | None
    """The text part; null if the mail has none."""
    html: str | None
    """The HTML part; null if the mail has none."""
    visible_text: str | None
    """The visible text of `html`, which the filter `text` also searches; null without `html`."""
    links: list[Link]
    """From the HTML's anchors, areas and forms, then the text, in order, without repeats."""
    codes: list[Code]
    """One-time codes, the most likely first."""
    attachments: list[Attachment]
    headers: list[Header] | None
    """All headers in their order, including repeated ones; null if they are left out."""
    envelope: Envelope
    authentication: Authentication
    size: int
    """The size of the source in bytes."""
    sha256: str
    """SHA-256 of the source."""
    raw_url: str
    """The path of the source."""
    warnings: list[Warning]
    """Empty if the whole mail could be read."""


class EventQuota(TypedDict):
    """A quota, as in an event."""
    name: Literal["inboxes", "inboxes-per-day", "messages-per-day", "stored-bytes", "webhooks", "domains", "members"]
    """`inboxes`: active inboxes. `inboxes-per-day`: inboxes created today (UTC). `messages-per-day`: messages
    received today (UTC). `stored-bytes`: bytes in the sources of active inboxes' mail. `webhooks`: webhooks of
    environments. `domains`: domains. `members`: members and invitations.
    """
    environment: str | None
    """The environment whose inboxes count; null if not only one does."""
    key_id: str | None
    """The key whose inboxes count; null if not only one does."""
    limit: int
    """The maximum."""
    used: int
    """How much is used now."""
    resets_at: str | None
    """When a daily quota begins again; null for others."""
    percent: Literal[80] | Literal[100]
    """Used, at least."""


class Extracted(TypedDict):
    """A match of the expression `extract` in a mail."""
    text: str
    """The match."""
    groups: list[str | None]
    """What the capturing groups matched, also the named ones, in their order."""


class _FaultOptional(TypedDict, total=False):
    pointer: str
    """The location in the body (RFC 6901); empty for the whole body."""
    parameter: str
    """The parameter of the query or the path."""
    header: str
    """The header."""


class Fault(_FaultOptional):
    """An error in a request, and its location: `pointer`, `parameter` or `header`."""
    detail: str
    """What is wrong there."""


class Header(TypedDict):
    """A header of a mail."""
    name: str
    """The name as written."""
    value: str
    """The value, decoded and unfolded."""


class _HostedDomainOptional(TypedDict, total=False):
    environment: str
    """The environment whose inboxes receive the mail. Default: the key's environment."""
    subdomains: bool
    """Whether the domain includes all its subdomains. They need an MX record `*.<domain>`."""
    catch_all: DomainCatchAll
    """What becomes of mail to an address without an inbox. Default: `create` for a hosted domain, else `reject`."""


class HostedDomain(_HostedDomainOptional):
    """A new name below the mail domain, which needs no DNS records."""
    hosted: bool
    """Whether Mayfly makes a name below its mail domain, verified at once."""


class HtmlCheck(TypedDict):
    """Which mail clients support the HTML and CSS of a mail, from the data of caniemail.com."""
    supported_percent: float
    """The mean of 100 for full, 50 for partial and 0 for no support, over every feature that the mail uses and
    every client whose support for it is known. Two decimals; 100 if it uses none.
    """
    warnings: list[HtmlWarning]
    """The least supported feature first."""


class HtmlPosition(TypedDict):
    """An element, or a part of a style sheet, in the HTML of a mail."""
    line: int
    """Its line in `html` of the message, from 1."""
    column: int
    """Its UTF-16 code unit in that line, from 1."""


class HtmlWarningFeature(TypedDict):
    """An object."""
    slug: str
    """Its name for programs."""
    title: str
    """Its name."""
    url: str
    """Its page at caniemail.com."""


class HtmlWarningWhere(TypedDict):
    """An object."""
    count: int
    """How often the mail uses it."""
    positions: list[HtmlPosition]
    """The first ones, in order."""


class HtmlWarning(TypedDict):
    """A feature that a mail uses and that some mail clients do not support."""
    feature: HtmlWarningFeature
    where: HtmlWarningWhere
    clients: list[ClientSupport]
    """The clients that support it partially or not, by name."""


class Inbox(TypedDict):
    """An address that receives mail for a limited time."""
    id: str
    """Never changes and is never reused."""
    address: str
    """The address. Upper and lower case are the same, and mail to `local+tag@` arrives in the same inbox. It is
    made up, except that of an inbox that mail to its address has made.
    """
    state: Literal["active"]
    """It receives mail."""
    duration: str
    """The lifetime that was last requested."""
    password_protected: bool
    """Whether reading its mail requires a password."""
    name: str | None
    """A name to show to people."""
    labels: InboxLabels
    environment: str
    """The environment of the key that created it."""
    created_at: str
    """When it was created."""
    expires_at: str
    """When it expires, with all its mail."""
    message_count: int
    """The number of messages that it has received, without deleted ones."""
    last_message_at: str | None
    """When the newest message arrived."""


class InboxDeletedEvent(TypedDict):
    """The event `inbox.deleted`."""
    type: Literal["inbox.deleted"]
    """The type of the event."""
    timestamp: str
    """When it happened."""
    data: EventEndedInbox


class InboxExpiredEvent(TypedDict):
    """The event `inbox.expired`."""
    type: Literal["inbox.expired"]
    """The type of the event."""
    timestamp: str
    """When it happened."""
    data: EventEndedInbox


class _InboxFaultOptional(TypedDict, total=False):
    code: int
    """With `reject`: the reply code. Default: `451`."""
    enhanced_code: str
    """With `reject`: the enhanced status code (RFC 3463). Default: `4.0.0` or `5.0.0`."""
    text: str
    """With `reject`: the text of the reply."""
    delay_ms: int
    """With `delay`: how long the reply is delayed, in milliseconds."""
    first_n: int
    """Only at the first n attempts of each pair of sender and recipient. With 451, this is greylisting."""
    every_n: int
    """Only at every nth attempt."""
    probability: float
    """Only with this probability."""
    seed: int
    """With `probability`: the attempts that are chosen depend only on this number. Default: a random one."""


class InboxFault(_InboxFaultOptional):
    """A fault on purpose. It applies if all of its conditions hold."""
    stage: Literal["rcpt", "data", "after_accept"]
    """When it happens: at RCPT TO, after the content of the mail, or once the mail is accepted."""
    action: Literal["reject", "delay", "drop", "duplicate"]
    """`reject` and `delay` at `rcpt` and `data`; `drop` and `duplicate` at `after_accept`: the sender gets its 250,
    and the mail is lost, or arrives twice.
    """


class InboxMessages(TypedDict):
    """How many messages an inbox has received."""
    inbox_id: str
    count: int
    """The number of messages that it has received."""


class InboxToken(TypedDict):
    """A token for one inbox."""
    id: str
    """The id of the token."""
    access: Literal["read", "owner"]
    """What it may do: `read`, or also delete the inbox."""
    expires_at: str
    """When it expires, at the latest with its inbox."""
    created_at: str
    """When it was issued."""


class InboxTokenWithSecret(TypedDict):
    """A token for one inbox, with its secret."""
    id: str
    """The id of the token."""
    access: Literal["read", "owner"]
    """What it may do: `read`, or also delete the inbox."""
    expires_at: str
    """When it expires, at the latest with its inbox."""
    created_at: str
    """When it was issued."""
    token: str
    """The bearer token. Only in this answer."""


_InjectMessageKeywords = TypedDict(
    "_InjectMessageKeywords",
    {
        "from": "str",
    },
)


class _InjectMessageOptional(TypedDict, total=False):
    text: str
    """The text part."""
    html: str
    """The HTML part."""
    headers: MailHeaders
    """Further header fields."""
    attachments: list[AttachContent]
    """The attachments."""


class InjectMessage(_InjectMessageKeywords, _InjectMessageOptional):
    """A mail. `To` is the address of the inbox, unless `headers` has another one."""
    subject: str
    """The subject."""


class Invitation(TypedDict):
    """An invitation to become a member."""
    id: str
    """The id of the invitation."""
    email: str | None
    """The address that was invited; null once erased."""
    role: Literal["owner", "admin", "developer", "viewer", "auditor"]
    """What the member may do."""
    environments: list[str] | None
    """The only environments that the member can use; null for all."""
    permissions: list[Literal["content:read"]]
    """`content:read` if the member may read mail, else none."""
    invited_by: str
    """The key or the member that invited."""
    state: Literal["pending", "accepted", "revoked", "expired"]
    """Only a `pending` one can be used, once."""
    member_id: str | None
    """The member who used it; null if nobody has."""
    created_at: str
    """When it was made."""
    expires_at: str
    """Its link is invalid from then on."""


class InvitationWithUrl(TypedDict):
    """An invitation with its link."""
    id: str
    """The id of the invitation."""
    email: str | None
    """The address that was invited; null once erased."""
    role: Literal["owner", "admin", "developer", "viewer", "auditor"]
    """What the member may do."""
    environments: list[str] | None
    """The only environments that the member can use; null for all."""
    permissions: list[Literal["content:read"]]
    """`content:read` if the member may read mail, else none."""
    invited_by: str
    """The key or the member that invited."""
    state: Literal["pending", "accepted", "revoked", "expired"]
    """Only a `pending` one can be used, once."""
    member_id: str | None
    """The member who used it; null if nobody has."""
    created_at: str
    """When it was made."""
    expires_at: str
    """Its link is invalid from then on."""
    url: str
    """The link for the new member, valid once. It is only in this answer."""
    mailed: bool
    """Whether the link was also sent to the address."""


class _InviteMemberOptional(TypedDict, total=False):
    environments: list[str] | None
    """The only environments that the member can use, or null for all. Not for an `owner` or an `admin`."""
    permissions: list[Literal["content:read"]]
    """`content:read` allows the member to read mail. An `admin` has it unless it is left out here, an `auditor`
    only if it is given, all others always.
    """
    expires_in: str
    """How long the link is valid: 1 to 30 days. Default: `"7d"`."""


class InviteMember(_InviteMemberOptional):
    """Whom to invite, and what the new member may do."""
    email: str
    """The email address."""
    role: Literal["owner", "admin", "developer", "viewer", "auditor"]
    """What the member may do, as in docs/teams.md. Only an owner can give the role `owner`."""


class _IssueKeyOptional(TypedDict, total=False):
    scopes: list[Scope]
    """The scopes of the key. The scope `operator` can only be given by a key that has it. Default: `["inboxes"]`.
    """
    owner: Literal["service", "personal"]
    """Whether it belongs to the account, or to the member who is signed in. A personal key ends with the
    membership. Default: `"service"`.
    """
    rate_limit: int | None
    """The maximum requests per minute, if it is less than the account's."""
    expires_at: str | None
    """When the key expires, at most 3650 days from now; null for a key that never expires. Default: in 365 days."""


class IssueKey(_IssueKeyOptional):
    """A new API key."""
    name: str
    """A name to show to people."""
    environment: str
    """The environment that the key belongs to: a lower-case letter, then up to 31 lower-case letters, digits and
    hyphens.
    """


class Key(TypedDict):
    """An API key, which authenticates requests. Its secret is stored as a digest and shown only once."""
    id: str
    """The id of the key. It does not change when the secret is rotated."""
    name: str
    """A name to show to people."""
    environment: str
    """The environment that the key belongs to."""
    scopes: list[Scope]
    """The scopes of the key."""
    prefix: str
    """The beginning of its secret."""
    created_at: str
    """When it was issued."""
    owner: Literal["service", "personal"]
    """`service`: it belongs to the account. `personal`: it belongs to the member that issued it, has at most the
    access of that member, and ends with the membership.
    """
    member_id: str | None
    """The member that a personal key belongs to; null for a service key."""
    created_by: str | None
    """The key or the member that issued it; null for the first key of all."""
    expires_at: str | None
    """When it expires; null if it never does."""
    last_used_at: str | None
    """The approximate time of the last request with it."""
    state: Literal["active", "revoked", "expired"]
    """Whether it is valid."""
    rate_limit: int | None
    """The maximum requests per minute; null if the account's applies."""
    usage: KeyUsage | None
    """Its usage since it was issued, a few seconds behind; null if it cannot be read at the moment."""


class KeyExpiringEvent(TypedDict):
    """The event `key.expiring`."""
    type: Literal["key.expiring"]
    """The type of the event."""
    timestamp: str
    """When it happened."""
    data: EventKey


class KeyUsage(TypedDict):
    """The usage of a key."""
    requests: int
    """Requests that were answered."""
    refusals: int
    """Requests that were answered 429, and mails that were refused."""
    inboxes: int
    """Inboxes that were created."""
    mails: int
    """Mails received; each recipient's copy counts."""
    bytes: int
    """Bytes of those mails."""


class KeyWithSecret(TypedDict):
    """A key with its new secret."""
    id: str
    """The id of the key. It does not change when the secret is rotated."""
    name: str
    """A name to show to people."""
    environment: str
    """The environment that the key belongs to."""
    scopes: list[Scope]
    """The scopes of the key."""
    prefix: str
    """The beginning of its secret."""
    created_at: str
    """When it was issued."""
    owner: Literal["service", "personal"]
    """`service`: it belongs to the account. `personal`: it belongs to the member that issued it, has at most the
    access of that member, and ends with the membership.
    """
    member_id: str | None
    """The member that a personal key belongs to; null for a service key."""
    created_by: str | None
    """The key or the member that issued it; null for the first key of all."""
    expires_at: str | None
    """When it expires; null if it never does."""
    last_used_at: str | None
    """The approximate time of the last request with it."""
    state: Literal["active", "revoked", "expired"]
    """Whether it is valid."""
    rate_limit: int | None
    """The maximum requests per minute; null if the account's applies."""
    usage: KeyUsage | None
    """Its usage since it was issued, a few seconds behind; null if it cannot be read at the moment."""
    secret: str
    """The bearer token. Only in this answer."""


class Limits(TypedDict):
    """The limits of an account."""
    requests_per_minute: int
    """The sustained rate of each key. In addition, a burst of half as many every ten minutes."""
    account_requests_per_minute: int
    """The rate of all keys, sessions of the console and inbox tokens of the account together."""
    retention: str
    """The maximum lifetime of an inbox."""
    max_message_bytes: int
    """The maximum size of a mail."""
    max_messages: int
    """The maximum number of messages in one inbox."""
    max_inboxes: int
    """The quota of active inboxes."""
    max_inboxes_per_day: int
    """The quota of inboxes created today (UTC)."""
    max_messages_per_day: int
    """The quota of messages received today (UTC)."""
    max_stored_bytes: int
    """The quota of bytes in the sources of active inboxes' mail."""
    max_webhooks: int
    """The quota of webhooks of environments."""
    max_domains: int
    """The quota of domains."""
    max_members: int
    """The quota of members and invitations."""


class Link(TypedDict):
    """A link, form or bare URL in a mail."""
    href: str
    """Its target URL, http or https."""
    text: str | None
    """The visible text; null for a bare URL."""


class Mailbox(TypedDict):
    """A name and address in a header."""
    name: str | None
    """The display name."""
    address: str
    """The address, as written."""


class _ManifestLineOptional(TypedDict, total=False):
    sent_at: str | None
    """When it was sent (RFC 3339), to find late mail."""
    sha256: str | None
    """The SHA-256 of its source as it was sent, before dot-stuffing, to find altered mail."""


class ManifestLine(_ManifestLineOptional):
    """A mail that was sent to a recipient. Other properties are ignored."""
    recipient: str
    """The address of RCPT TO."""
    id: str
    """The value of the header that identifies the mail."""


class Member(TypedDict):
    """Somebody who can sign in to the console for the account."""
    id: str
    """The id of the member."""
    email: str | None
    """The address that was invited; null once erased."""
    role: Literal["owner", "admin", "developer", "viewer", "auditor"]
    """What the member may do."""
    environments: list[str] | None
    """The only environments that the member can use; null for all."""
    permissions: list[Literal["content:read"]]
    """`content:read` if the member may read mail, else none."""
    invited_by: str
    """The key or the member that invited."""
    issuer: str | None
    """The identity provider to sign in with; null if there are only links."""
    created_at: str
    """When the invitation was used."""


_MessageKeywords = TypedDict(
    "_MessageKeywords",
    {
        "from": "list[Mailbox]",
    },
)


class _MessageOptional(TypedDict, total=False):
    injected: bool
    """True in a message that was put in by the API, without SMTP."""
    duplicate_of: str
    """Only in a message that a fault repeated: the original."""
    extracted: list[Extracted]
    """Only with `extract`: its different matches in the subject, the text and the visible text, in this order. At
    most 100 matches, with 65,536 characters in all.
    """


class Message(_MessageKeywords, _MessageOptional):
    """A received mail, parsed. Parts that it does not have are null or empty."""
    id: str
    """Never changes and is never reused."""
    inbox_id: str
    """The inbox that received it."""
    received_at: str
    """When it was accepted."""
    subject: str | None
    """The decoded subject; null if the mail has none."""
    sender: str
    """The first From address, or the envelope's MAIL FROM if there is none."""
    recipient: str
    """The RCPT TO address of this copy."""
    recipient_detail: str | None
    """What follows the first `+` in the local part of `recipient` (RFC 5233); null without one."""
    to: list[Mailbox]
    cc: list[Mailbox]
    reply_to: list[Mailbox]
    date: str | None
    """The Date header, in UTC; null if missing or unreadable."""
    text: str | None
    """The text part; null if the mail has none."""
    html: str | None
    """The HTML part; null if the mail has none."""
    visible_text: str | None
    """The visible text of `html`, which the filter `text` also searches; null without `html`."""
    links: list[Link]
    """From the HTML's anchors, areas and forms, then the text, in order, without repeats."""
    codes: list[Code]
    """One-time codes, the most likely first."""
    attachments: list[Attachment]
    headers: list[Header]
    """All headers in their order, including repeated ones."""
    envelope: Envelope
    authentication: Authentication
    size: int
    """The size of the source in bytes."""
    sha256: str
    """SHA-256 of the source."""
    raw_url: str
    """The path of the source."""
    warnings: list[Warning]
    """Empty if the whole mail could be read."""


class MessageCount(TypedDict):
    """The messages of a label."""
    count: int
    """The number of messages that the inboxes of the label have received."""
    inboxes: int
    """The number of inboxes."""
    cursor: str
    """A position before all messages that arrive later. One that arrived while counting may be counted and also be
    behind it.
    """


class MessageDeletedEvent(TypedDict):
    """The event `message.deleted`."""
    type: Literal["message.deleted"]
    """The type of the event."""
    timestamp: str
    """When it happened."""
    data: EventDeletedMessage


class MessageReceivedEvent(TypedDict):
    """The event `message.received`."""
    type: Literal["message.received"]
    """The type of the event."""
    timestamp: str
    """When it happened."""
    data: EventMessage


_MessageWithRawKeywords = TypedDict(
    "_MessageWithRawKeywords",
    {
        "from": "list[Mailbox]",
    },
)


class _MessageWithRawOptional(TypedDict, total=False):
    injected: bool
    """True in a message that was put in by the API, without SMTP."""
    duplicate_of: str
    """Only in a message that a fault repeated: the original."""
    extracted: list[Extracted]
    """Only with `extract`: its different matches in the subject, the text and the visible text, in this order. At
    most 100 matches, with 65,536 characters in all.
    """
    raw: str
    """The whole source; absent with `raw=false`."""
    raw_encoding: Literal["utf-8"] | Literal["base64"]
    """`base64` if the source is not valid UTF-8. Absent with `raw=false`."""


class MessageWithRaw(_MessageWithRawKeywords, _MessageWithRawOptional):
    """A message, with its source unless `raw=false`."""
    id: str
    """Never changes and is never reused."""
    inbox_id: str
    """The inbox that received it."""
    received_at: str
    """When it was accepted."""
    subject: str | None
    """The decoded subject; null if the mail has none."""
    sender: str
    """The first From address, or the envelope's MAIL FROM if there is none."""
    recipient: str
    """The RCPT TO address of this copy."""
    recipient_detail: str | None
    """What follows the first `+` in the local part of `recipient` (RFC 5233); null without one."""
    to: list[Mailbox]
    cc: list[Mailbox]
    reply_to: list[Mailbox]
    date: str | None
    """The Date header, in UTC; null if missing or unreadable."""
    text: str | None
    """The text part; null if the mail has none."""
    html: str | None
    """The HTML part; null if the mail has none."""
    visible_text: str | None
    """The visible text of `html`, which the filter `text` also searches; null without `html`."""
    links: list[Link]
    """From the HTML's anchors, areas and forms, then the text, in order, without repeats."""
    codes: list[Code]
    """One-time codes, the most likely first."""
    attachments: list[Attachment]
    headers: list[Header]
    """All headers in their order, including repeated ones."""
    envelope: Envelope
    authentication: Authentication
    size: int
    """The size of the source in bytes."""
    sha256: str
    """SHA-256 of the source."""
    raw_url: str
    """The path of the source."""
    warnings: list[Warning]
    """Empty if the whole mail could be read."""


class MissingMail(TypedDict):
    """A line of the manifest without a message."""
    kind: Literal["missing"]
    """No message has the recipient and the id."""
    recipient: str
    """The address of RCPT TO."""
    id: str
    """As in the manifest."""
    line: int
    """The line of the manifest, without empty lines."""
    sent_at: str | None
    """As in the manifest."""


class NearMiss(TypedDict):
    """A message that a wait examined, and why it did not match."""
    id: str
    """The id of the message."""
    inbox_id: str
    """The id of its inbox."""
    subject: str | None
    """Its subject."""
    received_at: str
    """When it was accepted."""
    mismatches: list[str]
    """A sentence for each filter that it does not match."""


class _OpenAccountOptional(TypedDict, total=False):
    limits: AccountLimits | None
    """The account's own limits, on a plan with limits per account."""


class OpenAccount(_OpenAccountOptional):
    """A new account."""
    name: str
    """A name to show to people."""
    plan: str
    """The name of a configured plan."""


class _OwnDomainOptional(TypedDict, total=False):
    environment: str
    """The environment whose inboxes receive the mail. Default: the key's environment."""
    subdomains: bool
    """Whether the domain includes all its subdomains. They need an MX record `*.<domain>`."""
    catch_all: DomainCatchAll
    """What becomes of mail to an address without an inbox. Default: `create` for a hosted domain, else `reject`."""


class OwnDomain(_OwnDomainOptional):
    """A domain of your own."""
    name: str
    """The domain, in Unicode or as A-labels. Not a public suffix such as `co.uk`, and not the mail domain of
    Mayfly.
    """


class PastInboxErased(TypedDict):
    """An object."""
    event_id: str
    """The event."""
    type: Literal["message.deleted", "inbox.expired", "inbox.deleted"]
    """The type of the event."""
    time: str
    """When it happened."""


class PastInbox(TypedDict):
    """An inbox as it was. `name` is null, since it is sealed like mail."""
    id: str
    """Never changes and is never reused."""
    address: str
    """The address. Upper and lower case are the same, and mail to `local+tag@` arrives in the same inbox. It is
    made up, except that of an inbox that mail to its address has made.
    """
    state: Literal["active"]
    """It receives mail."""
    duration: str
    """The lifetime that was last requested."""
    password_protected: bool
    """Whether reading its mail requires a password."""
    name: str | None
    """A name to show to people."""
    labels: InboxLabels
    environment: str
    """The environment of the key that created it."""
    created_at: str
    """When it was created."""
    expires_at: str
    """When it expires, with all its mail."""
    message_count: int
    """The number of messages that it has received, without deleted ones."""
    last_message_at: str | None
    """When the newest message arrived."""
    erased: PastInboxErased | None
    """The event that has erased it since; null if it still exists."""


class PastMessageErased(TypedDict):
    """An object."""
    event_id: str
    """The event."""
    type: Literal["message.deleted", "inbox.expired", "inbox.deleted"]
    """The type of the event."""
    time: str
    """When it happened."""


class PastMessage(TypedDict):
    """A message that an inbox had, without content."""
    id: str
    """The id of the message."""
    inbox_id: str
    """The inbox that received it."""
    received_at: str
    """When it was accepted."""
    size: int
    """Bytes of its source."""
    digest: str
    """SHA-256 of its sealed bytes on the log."""
    erased: PastMessageErased | None
    """The event that has erased it since; null if it still exists."""


class Position(TypedDict):
    """A position on the event log."""
    topic: Literal["inbox-events"]
    """Without the prefix that an installation may have configured."""
    partition: int
    """The partition of the inbox."""
    offset: int
    """The offset in the partition."""


class _ProblemOptional(TypedDict, total=False):
    errors: list[Fault]
    """With `invalid-request`: all errors in the request."""
    ended_at: str
    """When the inbox ended."""
    ended_by: str | None
    """The key that deleted the inbox; null if it expired."""
    deleted_at: str
    """When the message was deleted."""
    examined: int
    """With `no-matching-message`: the number of messages that were examined."""
    nearest: list[NearMiss]
    """With `no-matching-message`: the messages nearest to a match."""
    count: int
    """With `no-matching-message`, if `count` was sent: the number of messages that the label has received."""
    expected: int
    """The `count` that was sent."""
    too_few: list[InboxMessages]
    """The first 100 inboxes of the label with too few messages."""
    too_many: list[InboxMessages]
    """The first 100 inboxes of the label with too many messages."""
    quota: Literal["inboxes", "inboxes-per-day", "messages-per-day", "stored-bytes", "webhooks", "domains", "members"]
    """With `quota-exceeded`: the quota that is used up."""
    environment: str | None
    """The environment that the quota is of; null if it is not of one."""
    key_id: str | None
    """The key that the quota is of; null if it is not of one."""
    limit: int
    """The limit of the quota."""
    used: int
    """How much of it is used, with what is under way."""
    cursor: str
    """With `no-matching-message`: the position after the last message that was examined."""


class Problem(_ProblemOptional):
    """An error (RFC 9457)."""
    type: str
    """The URL of a page about the problem."""
    title: str
    """The same for every problem with this `code`."""
    status: int
    """The status of the answer."""
    detail: str
    """What is wrong with this request."""
    code: ProblemCode
    """The kind of the problem, for programs."""
    fix: str
    """What to do."""
    request_id: str
    """The value of the header `X-Request-Id`."""


class Quantiles(TypedDict):
    """Milliseconds: median, 95th and 99th percentile."""
    p50: float
    p95: float
    p99: float


class QuantilesAndMax(TypedDict):
    """Milliseconds: median, 95th and 99th percentile, maximum."""
    p50: float
    p95: float
    p99: float
    max: float


class Quota(TypedDict):
    """What the account may use, and uses, of something: in all, in an environment, or by a key."""
    name: Literal["inboxes", "inboxes-per-day", "messages-per-day", "stored-bytes", "webhooks", "domains", "members"]
    """`inboxes`: active inboxes. `inboxes-per-day`: inboxes created today (UTC). `messages-per-day`: messages
    received today (UTC). `stored-bytes`: bytes in the sources of active inboxes' mail. `webhooks`: webhooks of
    environments. `domains`: domains. `members`: members and invitations.
    """
    environment: str | None
    """The environment whose inboxes count; null if not only one does."""
    key_id: str | None
    """The key whose inboxes count; null if not only one does."""
    limit: int
    """The maximum."""
    used: int
    """How much is used now."""
    resets_at: str | None
    """When a daily quota begins again; null for others."""


class QuotaReachedEvent(TypedDict):
    """The event `quota.reached`."""
    type: Literal["quota.reached"]
    """The type of the event."""
    timestamp: str
    """When it happened."""
    data: EventQuota


class RefusedMail(TypedDict):
    """A recipient whose mail was refused."""
    time: str
    """When the recipient was last refused."""
    recipient: str
    """The address of RCPT TO, as the client sent it."""
    sender: str
    """The address of MAIL FROM; empty for a bounce."""
    code: int
    """The code of the SMTP reply. 400 to 499: the client may try again."""
    reason: str
    """The text of the reply, which begins with the enhanced status code (RFC 3463)."""
    count: int
    """How often this recipient was refused to this sender for this reason, since it was first listed."""


class _RegisterInboxWebhookOptional(TypedDict, total=False):
    events: list[Literal["message.received", "message.deleted", "inbox.expired", "inbox.deleted"]]
    """The events to deliver. Default: `["message.received"]`."""
    start_from: str
    """The first event to deliver: `now`, `beginning` for all existing events, or a time (RFC 3339) for the events
    since then. Default: `"now"`.
    """


class RegisterInboxWebhook(_RegisterInboxWebhookOptional):
    """A new webhook of an inbox."""
    url: str
    """The URL of the endpoint: http or https, without user name, password or fragment."""


class _RegisterWebhookOptional(TypedDict, total=False):
    events: list[EventType]
    """The events to deliver. Default: `["message.received"]`."""
    start_from: str
    """The first event to deliver: `now`, `beginning` for all existing events, or a time (RFC 3339) for the events
    since then. Default: `"now"`.
    """


class RegisterWebhook(_RegisterWebhookOptional):
    """A new webhook of an environment."""
    url: str
    """The URL of the endpoint: http or https, without user name, password or fragment."""


class RemovedMember(TypedDict):
    """Somebody who was a member, with the keys that the member issued."""
    id: str
    """The id of the member."""
    email: str | None
    """The address that was invited; null once erased."""
    role: Literal["owner", "admin", "developer", "viewer", "auditor"]
    """What the member may do."""
    environments: list[str] | None
    """The only environments that the member can use; null for all."""
    permissions: list[Literal["content:read"]]
    """`content:read` if the member may read mail, else none."""
    invited_by: str
    """The key or the member that invited."""
    issuer: str | None
    """The identity provider to sign in with; null if there are only links."""
    created_at: str
    """When the invitation was used."""
    revoked_keys: list[str]
    """The personal keys of the member. They are revoked."""
    service_keys: list[str]
    """The active service keys that the member issued. They stay valid: revoke them if needed."""


class Replay(TypedDict):
    """Events that are delivered to a webhook again."""
    id: str
    """The id of the replay."""
    webhook_id: str
    """The webhook."""
    state: Literal["running", "completed", "cancelled"]
    """`completed` once all deliveries are requested and finished."""
    requested: int
    """Deliveries requested so far."""
    done: int
    """Deliveries that are finished: delivered, failed without another attempt, or abandoned."""
    created_at: str
    """When it was requested."""


class _ReplayOfDeliveriesOptional(TypedDict, total=False):
    only_failed: bool
    """Only events whose delivery has not succeeded: its last attempt failed, it waits for another attempt after a
    failed one, or it was abandoned because the webhook was disabled or the replay was cancelled. Default: `false`.
    """


class ReplayOfDeliveries(_ReplayOfDeliveriesOptional):
    """The events of single deliveries."""
    delivery_ids: list[str]
    """Deliveries of the webhook, instead of a time range. Samples are skipped."""


_ReplayOfRangeKeywords = TypedDict(
    "_ReplayOfRangeKeywords",
    {
        "from": "str",
    },
)


class _ReplayOfRangeOptional(TypedDict, total=False):
    only_failed: bool
    """Only events whose delivery has not succeeded: its last attempt failed, it waits for another attempt after a
    failed one, or it was abandoned because the webhook was disabled or the replay was cancelled. Default: `false`.
    """


class ReplayOfRange(_ReplayOfRangeKeywords, _ReplayOfRangeOptional):
    """All events in a time range."""
    to: str
    """The end of the range, exclusive; at most now."""


class ResendInvitation(TypedDict, total=False):
    """How long the new link is valid."""
    expires_in: str
    """How long the link is valid: 1 to 30 days. Default: `"7d"`."""


class RevokedInboxToken(TypedDict):
    """A token that was revoked."""
    id: str
    """The id of the token."""
    revoked_at: str
    """When it was revoked. The same in the answer to a repeat."""


class RotateKey(TypedDict, total=False):
    """How to replace the secret of a key."""
    grace: str
    """How long the former secret stays valid, at most 7 days: `0`, or a whole number and one of `s`, `m`, `h`, `d`,
    `w`. Default: `"0"`.
    """
    expires_at: str | None
    """When the key expires from now on, at most 3650 days from now; null if it never expires. Default: unchanged.
    """


class RotateWebhookSecret(TypedDict, total=False):
    """How to replace the secret of a webhook."""
    grace: str
    """How long requests are also signed with the former secret, at most 7 days: `0`, or a whole number and one of
    `s`, `m`, `h`, `d`, `w`. Default: `"24h"`.
    """


class _RunDifferenceOptional(TypedDict, total=False):
    duplicate_of: str
    """With `duplicate`, if a fault of the inbox made it: the message that it repeats."""
    line: int
    """The line of the manifest, without empty lines."""
    sent_at: str
    """With `late`: as in the manifest."""
    delay_ms: int
    """With `late`: from `sent_at` to `received_at`."""
    late_by_ms: int
    """With `late`: by how much that is more than `late_ms`."""
    sha256: str
    """With `altered`: as in the manifest."""
    received_sha256: str
    """With `altered`: that of the message."""
    after_line: int
    """With `reordered`: the line of an earlier message."""


class RunDifference(_RunDifferenceOptional):
    """A message that differs from the manifest."""
    kind: Literal["duplicate", "unexpected", "late", "altered", "reordered"]
    """`duplicate`: a message beyond those that the manifest has. `unexpected`: no line has its recipient and id.
    `late`: it was received more than `late_ms` after `sent_at`. `altered`: its source has another SHA-256.
    `reordered`: its line is before that of an earlier message of the inbox.
    """
    recipient: str
    """The address of RCPT TO."""
    id: str | None
    """The value of its header; null if it has no such header."""
    message_id: str
    """The id of the message."""
    inbox_id: str
    """The id of its inbox."""
    received_at: str
    """When it was accepted."""


class RunProblem(TypedDict):
    """The last line of a verification that failed after its answer had begun. It has no summary."""
    kind: Literal["problem"]
    problem: Problem


class RunSummaryFaults(TypedDict):
    """What the faults of the inboxes did on purpose."""
    dropped: int
    """Mails that were accepted and dropped. They are missing."""
    duplicated: int
    """Of `duplicate`, those that a fault made."""


class RunSummary(TypedDict):
    """The last line of a verification."""
    kind: Literal["summary"]
    expected: int
    """Lines of the manifest."""
    found: int
    """Lines with a message."""
    missing: int
    """Lines without a message."""
    duplicate: int
    """Messages beyond those that the manifest has."""
    unexpected: int
    """Messages that no line names."""
    late: int
    """Messages that were late."""
    altered: int
    """Messages with another source."""
    reordered: int
    """Messages out of order; 0 without `order=true`."""
    erased: int
    """Lines whose inbox has ended. They are not missing."""
    faults: RunSummaryFaults
    """What the faults of the inboxes did on purpose."""
    visible_ms: QuantilesAndMax | None
    """From the acceptance of a mail until it can be read over the API, as far as it is counted. Null if nothing is.
    """


class _SetQuotaOptional(TypedDict, total=False):
    environment: str | None
    """Limits the inboxes of this environment, instead of all of the account. Not for `webhooks`, `domains` and
    `members`.
    """
    key_id: str | None
    """Limits the inboxes that this key created. Not together with `environment`, and only for the same quotas."""


class SetQuota(_SetQuotaOptional):
    """The limit of a quota."""
    limit: int | None
    """At most that of the account's plan. Null removes the limit, so that of the plan applies."""


class SetSignIn(TypedDict):
    """How people may sign in to the console."""
    sign_in: Literal["any", "provider"]
    """`any`: also with links and keys. `provider`: only with an identity provider."""


class UpdateInbox(TypedDict, total=False):
    """What to change of an inbox. Every property is optional."""
    duration: str
    """The lifetime, counted from the creation: a whole number and one of `m`, `h`, `d`, `w`, from one minute to the
    retention of the plan.
    """
    name: str | None
    """A name to show to people; null removes it."""
    labels: InboxLabels
    """Replaces all labels."""


class UsageReport(TypedDict):
    """A summary of a load run."""
    counted_up_to: str | None
    """Everything that happened before this time is in the report, except for requests, refusals, reads and
    latencies that a process could not append to the log immediately. Null if counting is more than a minute behind,
    or the server has just started.
    """
    requests: int
    """Requests that were answered."""
    refusals: int
    """Requests that were answered 429, and mails that were refused."""
    inboxes: int
    """Inboxes that were created."""
    mails: int
    """Mails received; each recipient's copy counts."""
    bytes: int
    """Bytes of those mails."""
    duplicates: int
    """Mails beyond the first of those with the same Message-ID in the same inbox."""
    read: int
    """Messages that the API has answered with at least once."""
    inboxes_without_mail: int
    """Inboxes that were created and got no mail."""
    accept_ms: QuantilesAndMax | None
    """From the last byte of a mail until it is durable, just before the sender gets 250. Null if no mail was
    accepted.
    """
    visible_ms: QuantilesAndMax | None
    """From the acceptance of a mail until it can be read over the API. Null if there was nothing to measure."""
    first_read_ms: QuantilesAndMax | None
    """From the acceptance of a mail to the first answer that contains it. Null if there was nothing to measure."""
    first_mail_at: str | None
    """When the first mail arrived."""
    last_mail_at: str | None
    """When the last mail arrived."""
    mails_per_second: float | None
    """Average rate from the first mail to the last. Null for fewer than two mails, or if all arrived at the same
    time.
    """
    timeline: list[UsageTimelineBucket]
    """Mails over time, from the first to the last, in buckets of equal length; buckets without mail are included.
    The length is at least a second and depends on how long the run took.
    """


_UsageRowKeywords = TypedDict(
    "_UsageRowKeywords",
    {
        "from": "str",
    },
)


class UsageRow(_UsageRowKeywords):
    """The usage in an interval."""
    to: str
    """The end of the interval, or of the span of the query if that is earlier."""
    group: str | None
    """The key, environment or label value of the row; null without one."""
    group_name: str | None
    """The name of the row's key. Null for other groups, and for keys beyond the account's newest 1,000."""
    requests: int
    """Requests that were answered."""
    refusals: int
    """Requests that were answered 429, and mails that were refused."""
    inboxes: int
    """Inboxes that were created."""
    mails: int
    """Mails received; each recipient's copy counts."""
    bytes: int
    """Bytes of those mails."""
    request_ms: Quantiles | None
    """From a request to its answer, without waits and streams. Null if there was nothing to measure."""
    visible_ms: Quantiles | None
    """From the acceptance of a mail until it can be read over the API. Null if there was nothing to measure."""


_UsageTimelineBucketKeywords = TypedDict(
    "_UsageTimelineBucketKeywords",
    {
        "from": "str",
    },
)


class UsageTimelineBucket(_UsageTimelineBucketKeywords):
    """The mails of a part of a load run."""
    to: str
    """When it ends, exclusive."""
    mails: int
    """Mails received; each recipient's copy counts."""
    bytes: int
    """Bytes of those mails."""


class Version(TypedDict):
    """The build and engine of this server."""
    version: str
    commit: str | None
    """The git commit that it was built from; null if it is unknown."""
    engine: Literal["embedded"] | Literal["distributed"]


class Warning(TypedDict):
    """A part of a mail that could not be read."""
    code: str
    """The kind of the warning, for programs."""
    detail: str
    """The warning, for people."""


class Webhook(TypedDict):
    """An endpoint to which the events of an inbox or of an environment are delivered. Its signing secret is shown
    only once.
    """
    id: str
    """The id of the webhook. It never changes."""
    url: str
    """The URL of the endpoint."""
    inbox_id: str | None
    """The inbox whose events are delivered; null for all inboxes of the environment."""
    events: list[EventType]
    """The events that are delivered."""
    state: Literal["active"] | Literal["disabled"]
    """Whether events are delivered."""
    created_at: str
    """When it was registered."""
    disabled_reason: Literal["by-request", "gone", "failing"] | None
    """Why it is disabled: `by-request`; `gone` if its endpoint answered 410; `failing` after 5 days in which every
    attempt failed. Null if it is active.
    """


class WebhookWithSecret(TypedDict):
    """A webhook with its new secret."""
    id: str
    """The id of the webhook. It never changes."""
    url: str
    """The URL of the endpoint."""
    inbox_id: str | None
    """The inbox whose events are delivered; null for all inboxes of the environment."""
    events: list[EventType]
    """The events that are delivered."""
    state: Literal["active"] | Literal["disabled"]
    """Whether events are delivered."""
    created_at: str
    """When it was registered."""
    disabled_reason: Literal["by-request", "gone", "failing"] | None
    """Why it is disabled: `by-request`; `gone` if its endpoint answered 410; `failing` after 5 days in which every
    attempt failed. Null if it is active.
    """
    secret: str
    """The signing secret in the form of Standard Webhooks: `whsec_` and base64. Only in this answer."""


class InboxAttributes:
    """An address that receives mail for a limited time."""
    id: str
    """Never changes and is never reused."""
    address: str
    """The address. Upper and lower case are the same, and mail to `local+tag@` arrives in the same inbox. It is
    made up, except that of an inbox that mail to its address has made.
    """
    state: Literal["active"]
    """It receives mail."""
    duration: str
    """The lifetime that was last requested."""
    password_protected: bool
    """Whether reading its mail requires a password."""
    name: str | None
    """A name to show to people."""
    labels: InboxLabels
    environment: str
    """The environment of the key that created it."""
    created_at: str
    """When it was created."""
    expires_at: str
    """When it expires, with all its mail."""
    message_count: int
    """The number of messages that it has received, without deleted ones."""
    last_message_at: str | None
    """When the newest message arrived."""


class MessageAttributes:
    """A received mail, parsed. Parts that it does not have are null or empty."""
    id: str
    """Never changes and is never reused."""
    inbox_id: str
    """The inbox that received it."""
    received_at: str
    """When it was accepted."""
    subject: str | None
    """The decoded subject; null if the mail has none."""
    sender: str
    """The first From address, or the envelope's MAIL FROM if there is none."""
    recipient: str
    """The RCPT TO address of this copy."""
    recipient_detail: str | None
    """What follows the first `+` in the local part of `recipient` (RFC 5233); null without one."""
    from_: list[Mailbox]
    to: list[Mailbox]
    cc: list[Mailbox]
    reply_to: list[Mailbox]
    date: str | None
    """The Date header, in UTC; null if missing or unreadable."""
    text: str | None
    """The text part; null if the mail has none."""
    html: str | None
    """The HTML part; null if the mail has none."""
    visible_text: str | None
    """The visible text of `html`, which the filter `text` also searches; null without `html`."""
    links: list[Link]
    """From the HTML's anchors, areas and forms, then the text, in order, without repeats."""
    codes: list[Code]
    """One-time codes, the most likely first."""
    headers: list[Header]
    """All headers in their order, including repeated ones."""
    envelope: Envelope
    authentication: Authentication
    size: int
    """The size of the source in bytes."""
    sha256: str
    """SHA-256 of the source."""
    raw_url: str
    """The path of the source."""
    warnings: list[Warning]
    """Empty if the whole mail could be read."""
    injected: bool
    """True in a message that was put in by the API, without SMTP."""
    duplicate_of: str
    """Only in a message that a fault repeated: the original."""
    extracted: list[Extracted]
    """Only with `extract`: its different matches in the subject, the text and the visible text, in this order. At
    most 100 matches, with 65,536 characters in all.
    """


class AttachmentAttributes:
    """An attachment of a mail."""
    index: int
    """Its number in the path of its content, from 0."""
    filename: str | None
    """The file name that the sender declared."""
    content_type: str
    """The media type that the sender declared."""
    size: int
    """The decoded size in bytes."""
    content_id: str | None
    """The id that `cid:` links in the HTML refer to."""
    inline: bool
    """Whether it is to be shown within the mail."""
    sha256: str
    """SHA-256 of the decoded bytes."""


CreateDomain = Union["OwnDomain", "HostedDomain"]


DeleteInboxes = Union["DeleteInboxesById", "DeleteInboxesByLabel"]


EventBody = Union["MessageReceivedEvent", "MessageDeletedEvent", "InboxExpiredEvent", "InboxDeletedEvent"]


InboxLabels = Dict[str, str]


MailHeaders = Dict[str, str]


RequestReplay = Union["ReplayOfRange", "ReplayOfDeliveries"]


SetFaults = list[InboxFault]
