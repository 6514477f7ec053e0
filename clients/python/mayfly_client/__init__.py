"""Client of Mayfly: disposable email inboxes for tests."""

from . import _types as types
from ._async.client import AsyncMayfly
from ._async.inbox import AsyncInbox
from ._async.message import AsyncAttachment, AsyncMessage
from ._errors import (
    ApiError,
    MayflyError,
    UnexpectedMessageError,
    UnreachableError,
    WaitTimeoutError,
    WebhookVerificationError,
)
from ._events import InboxEvent
from ._sync.client import Mayfly
from ._sync.inbox import Inbox
from ._sync.message import Attachment, Message
from ._version import VERSION as __version__
from ._webhooks import verify_webhook
from .server import MayflyServer, start_mayfly

__all__ = [
    "ApiError",
    "AsyncAttachment",
    "AsyncInbox",
    "AsyncMayfly",
    "AsyncMessage",
    "Attachment",
    "Inbox",
    "InboxEvent",
    "Mayfly",
    "MayflyError",
    "MayflyServer",
    "Message",
    "UnexpectedMessageError",
    "UnreachableError",
    "WaitTimeoutError",
    "WebhookVerificationError",
    "__version__",
    "start_mayfly",
    "types",
    "verify_webhook",
]
