"""verify_webhook, compared with the library of Standard Webhooks."""

from __future__ import annotations

import base64
import json
import time
from datetime import datetime, timezone

import pytest
from standardwebhooks import Webhook

from mayfly_client import WebhookVerificationError, verify_webhook

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
OTHER = "whsec_" + base64.b64encode(bytes(32)).decode()
EVENT = {"type": "message.received", "timestamp": "2026-11-21T09:30:00.000Z", "data": {"subject": "Grüße"}}
BODY = json.dumps(EVENT, ensure_ascii=False)


def headers_of(secret: str = SECRET, age: float = 0, body: str = BODY) -> dict[str, str]:
    """The headers that a sender signs."""
    now = datetime.fromtimestamp(int(time.time() - age), timezone.utc)
    return {
        "Webhook-Id": "dlv_1",
        "Webhook-Timestamp": str(int(now.timestamp())),
        "Webhook-Signature": Webhook(secret).sign("dlv_1", now, body),
    }


@pytest.mark.parametrize("age", [0, 290, -290])
@pytest.mark.parametrize("body", [BODY, BODY.encode()])
def test_returns_the_event(body: str | bytes, age: float) -> None:
    assert verify_webhook(headers_of(age=age), body, SECRET) == EVENT


def test_accepts_one_of_several_signatures() -> None:
    headers = headers_of()
    signature = headers["Webhook-Signature"]
    headers["Webhook-Signature"] = f"{headers_of(OTHER)['Webhook-Signature']} v1a,AAAA {signature}"
    assert verify_webhook(headers, BODY, SECRET) == EVENT


@pytest.mark.parametrize("age", [310, -310])
def test_refuses_another_time(age: float) -> None:
    with pytest.raises(WebhookVerificationError, match="5 minutes"):
        verify_webhook(headers_of(age=age), BODY, SECRET)


@pytest.mark.parametrize("name", ["Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"])
def test_refuses_a_request_without_a_header(name: str) -> None:
    headers = headers_of()
    del headers[name]
    with pytest.raises(WebhookVerificationError, match=name.lower()):
        verify_webhook(headers, BODY, SECRET)


@pytest.mark.parametrize(
    "changed",
    [
        {"Webhook-Id": "dlv_2"},
        {"Webhook-Id": "dlv_\udc80"},
        {"Webhook-Timestamp": "soon"},
        {"Webhook-Timestamp": "١٢"},
        {"Webhook-Signature": "v1,"},
        {"Webhook-Signature": "v1,\xe9"},
    ],
)
def test_refuses_changed_headers(changed: dict[str, str]) -> None:
    with pytest.raises(WebhookVerificationError):
        verify_webhook({**headers_of(), **changed}, BODY, SECRET)


def test_refuses_a_changed_body_and_another_secret() -> None:
    with pytest.raises(WebhookVerificationError, match="No signature"):
        verify_webhook(headers_of(), BODY + " ", SECRET)
    with pytest.raises(WebhookVerificationError, match="No signature"):
        verify_webhook(headers_of(), BODY, OTHER)


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_?"])
def test_refuses_a_secret_that_is_none(secret: str) -> None:
    with pytest.raises(ValueError, match="whsec_"):
        verify_webhook(headers_of(), BODY, secret)
