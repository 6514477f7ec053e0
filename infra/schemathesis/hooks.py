"""What the document can't say of a valid request, said to schemathesis before it is sent."""

import itertools
import os

import schemathesis
from schemathesis import GenerationMode

INBOX = os.environ["MAYFLY_INBOX"]
MESSAGE = os.environ["MAYFLY_MESSAGE"]
# From before its mail came.
CURSOR = os.environ["MAYFLY_CURSOR"]
# What the run lives on, and well-formed ids of nothing in their places.
SPARED = {id: id[:4] + "0" * 26 for id in (INBOX, os.environ["MAYFLY_KEY_ID"], os.environ["MAYFLY_ACCOUNT_ID"])}

turns = itertools.count()


@schemathesis.hook
def before_load_schema(context, raw_schema):
    """The document has the schema of an event's data; schemathesis validates the whole event."""
    for operations in raw_schema["paths"].values():
        for operation in operations.values():
            for response in operation["responses"].values():
                stream = response.get("content", {}).get("text/event-stream")
                if stream is not None:
                    stream["schema"] = event_with(stream["schema"])


def event_with(data):
    text = {"type": "string"}
    return {
        "type": "object",
        "required": ["id", "event", "data"],
        "properties": {
            "id": text,
            "event": text,
            "data": {**text, "contentMediaType": "application/json", "contentSchema": data},
        },
    }


@schemathesis.hook
def before_call(context, case, kwargs):
    if case.meta is None or case.meta.generation.mode == GenerationMode.POSITIVE:
        make_acceptable(case)
    if case.path.endswith("/wait"):
        wait_no_longer(case)
    if case.path.endswith("/events"):
        stream_what_has_been(case)
    if case.method in ("DELETE", "PATCH") or case.path.endswith("/rotate"):
        spare(case)


def make_acceptable(case):
    # A cursor can't be made up: it is one that an answer had.
    case.query.pop("cursor", None)
    case.headers.pop("Last-Event-ID", None)
    # Most inboxes that are made here have no mail, and some have ended: one has, and stays.
    if case.method == "GET" and "/messages" in case.path and next(turns) % 4 > 0:
        case.path_parameters["id"] = INBOX
        if "message_id" in case.path_parameters:
            case.path_parameters["message_id"] = MESSAGE
        if "index" in case.path_parameters:
            case.path_parameters["index"] = 0
    # Nor does one tell which of two moments is first, and a day has too many seconds to be told one by one.
    if "/usage" in case.path and ("from" in case.query or "to" in case.query or case.query.get("interval") == "second"):
        case.query["from"], case.query["to"] = "2026-11-21T08:00:00Z", "2026-11-21T09:00:00Z"
    if isinstance(case.body, dict):
        # Plans are the installation's own, and this one leaves its limits to each account.
        if "plan" in case.body or "limits" in case.body:
            case.body["plan"] = "enterprise"
        # At most the account's.
        if isinstance(case.body.get("rate_limit"), int):
            case.body["rate_limit"] = 1 + case.body["rate_limit"] % 1000
        # No pattern tells which hosts and which days there are.
        if "/webhooks" in case.path:
            if "url" in case.body:
                case.body["url"] = "https://ci.example/mail"
            if case.body.get("start_from") not in (None, "now", "beginning"):
                case.body["start_from"] = "2026-11-21T08:00:00Z"
            if "from" in case.body and "to" in case.body:
                case.body["from"], case.body["to"] = "2026-11-21T08:00:00Z", "2026-11-22T08:00:00Z"


def wait_no_longer(case):
    """A wait of no time is as valid as any other, and a longer one would hold the run up."""
    timeout = str(case.query.get("timeout", 25))
    if timeout.isdigit() and int(timeout) <= 55:
        case.query["timeout"] = 0


def stream_what_has_been(case):
    """A stream of an inbox in which nothing happens would hold the run up: one with a past begins with that."""
    if "cursor" not in case.query and "Last-Event-ID" not in case.headers:
        case.path_parameters["id"] = INBOX
        case.query["cursor"] = CURSOR


def spare(case):
    """Nothing that ends or changes something reaches what the run lives on."""
    for name, value in case.path_parameters.items():
        case.path_parameters[name] = SPARED.get(value, value)
