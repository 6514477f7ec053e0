"""Verification of webhooks (Standard Webhooks 1.0)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
import time
from collections.abc import Mapping
from typing import cast

from . import _types as types
from ._errors import WebhookVerificationError

MAX_AGE_SECONDS = 300


def verify_webhook(headers: Mapping[str, str], body: bytes | str, secret: str) -> types.EventBody:
    """Returns the event of a webhook, if it was signed with the secret of the webhook in the last 5 minutes.

    `headers` are those of the request, in upper or lower case. `body` is the body as it was received, not JSON that
    was parsed and written again. `secret` begins with `whsec_`.

    Raises WebhookVerificationError if the request was not sent by Mayfly, or too long ago; ValueError if the secret
    is malformed.
    """
    key = _key_of(secret)
    lower = {name.lower(): value for name, value in headers.items()}
    missing = [name for name in ("webhook-id", "webhook-timestamp", "webhook-signature") if not lower.get(name)]
    if missing:
        raise WebhookVerificationError(f"The request has no header {missing[0]}")
    timestamp = lower["webhook-timestamp"]
    if not re.fullmatch(r"[0-9]{1,15}", timestamp):
        raise WebhookVerificationError("webhook-timestamp is not a number of seconds")
    if abs(time.time() - int(timestamp)) > MAX_AGE_SECONDS:
        raise WebhookVerificationError("webhook-timestamp is more than 5 minutes from now")
    content = body.encode() if isinstance(body, str) else body
    signed = f"{lower['webhook-id']}.{timestamp}.".encode("utf-8", "replace") + content
    expected = b"v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest())
    signatures = lower["webhook-signature"].encode("utf-8", "replace").split(b" ")
    if not any([hmac.compare_digest(each, expected) for each in signatures]):
        raise WebhookVerificationError("No signature of the request is valid for this secret")
    try:
        return cast("types.EventBody", json.loads(content))
    except ValueError:
        raise WebhookVerificationError("The body of the request is not JSON") from None


def _key_of(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret[6:] if secret.startswith("whsec_") else secret, validate=True)
    except binascii.Error:
        key = b""
    # With an empty key, everybody could sign.
    if not key:
        raise ValueError("The secret of a webhook is `whsec_` and base64")
    return key
