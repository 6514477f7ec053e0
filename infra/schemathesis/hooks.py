"""Changes the requests of schemathesis where the document can't express what makes a request valid."""

import itertools
import json
import os
from datetime import datetime, timedelta, timezone

import schemathesis
from schemathesis import GenerationMode

INBOX = os.environ["MAYFLY_INBOX"]
MESSAGE = os.environ["MAYFLY_MESSAGE"]
# A cursor from before its mail arrived.
CURSOR = os.environ["MAYFLY_CURSOR"]
ENVIRONMENT_CURSOR = os.environ["MAYFLY_ENVIRONMENT_CURSOR"]
# Resources that the run needs, and well-formed unknown ids that replace them in destructive requests.
PROTECTED = {id: id[:4] + "0" * 26 for id in (INBOX, os.environ["MAYFLY_KEY_ID"], os.environ["MAYFLY_ACCOUNT_ID"])}

turns = itertools.count()


@schemathesis.serializer("application/x-ndjson")
def one_line(context, value):
    """The document has the schema of a line: a body has one."""
    return json.dumps(value).encode()


@schemathesis.hook
def before_load_schema(context, raw_schema):
    """The document has the schema of an event's data, but schemathesis validates the whole event."""
    for operations in raw_schema["paths"].values():
        for operation in operations.values():
            # Schemathesis can't send a mail. `npm run fuzz` sends many.
            operation.get("requestBody", {}).get("content", {}).pop("message/rfc822", None)
            for response in operation["responses"].values():
                # OpenAPI 3.1 can't describe a sequence of lines, and schemathesis reads the answer as one value.
                response.get("content", {}).pop("application/x-ndjson", None)
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
        make_valid(case)
    if case.path.endswith("/wait"):
        set_no_timeout(case)
    if case.path.endswith("/events"):
        stream_past_events(case)
    if case.method in ("DELETE", "PATCH") or case.path.endswith(("/rotate", "/suspend", "/resume", "/close")):
        protect_resources(case)
    # A closed account refuses what other requests of the run would change.
    if case.path.endswith("/close"):
        case.path_parameters = {name: "acc_" + "0" * 26 for name in case.path_parameters}
    if case.path.endswith("/bulk"):
        case.headers.pop("Accept", None)


def make_valid(case):
    # Cursors can't be invented: they come from answers.
    case.query.pop("cursor", None)
    case.headers.pop("Last-Event-ID", None)
    # Most inboxes of the run have no mail, and some have ended. This one has mail and is never ended.
    reads_mail = case.method == "GET" and "/messages" in case.path or case.path.endswith("/link-check")
    if reads_mail and next(turns) % 4 > 0:
        case.path_parameters["id"] = INBOX
        if "message_id" in case.path_parameters:
            case.path_parameters["message_id"] = MESSAGE
        if "index" in case.path_parameters:
            case.path_parameters["index"] = 0
    # The document can't express that `from` is before `to`, or that a day has too many rows by second.
    if "/usage" in case.path and ("from" in case.query or "to" in case.query or case.query.get("interval") == "second"):
        case.query["from"], case.query["to"] = "2026-11-21T08:00:00Z", "2026-11-21T09:00:00Z"
    # No pattern describes existing dates.
    for name in ("since", "until"):
        if name in case.query:
            case.query[name] = "2026-11-21T08:00:00Z"
    # Nor how many leaves there are. States as of a moment can't be filtered.
    if "as_of" in case.query:
        case.query["as_of"] = "3"
        for name in set(case.query) - {"as_of", "limit", "order"}:
            case.query.pop(name)
    if case.path.endswith("/records") and "to" in case.query:
        case.query["from"], case.query["to"] = "0", "3"
    # No pattern describes expressions.
    if "extract" in case.query:
        case.query["extract"] = "code is ([0-9]+)"
    # Nor searches.
    if case.path == "/v1/messages" and "q" in case.query:
        case.query["q"] = 'from:app has:code -subject:"nothing at all"'
    # A stream of labels that no inbox has is silent, which would delay the run.
    if case.path == "/v1/events":
        case.query.pop("label", None)
    if case.path == "/v1/messages/wait":
        make_count_valid(case.query)
    if case.path.endswith("/faults") and isinstance(case.body, list):
        case.body = [make_fault_valid(fault) if isinstance(fault, dict) else fault for fault in case.body]
    if case.path == "/v1/runs/{label}/verify":
        case.path_parameters["label"] = "run:42"
        if isinstance(case.body, dict) and isinstance(case.body.get("sent_at"), str):
            case.body["sent_at"] = "2026-11-21T08:00:00Z"
    if isinstance(case.body, dict):
        # Plans are configured. This one allows limits per account.
        if "plan" in case.body or "limits" in case.body:
            case.body["plan"] = "enterprise"
        # At most the limit of the account, which may be 1.
        if isinstance(case.body.get("rate_limit"), (int, float)):
            case.body["rate_limit"] = 1
        # In the future. The run ends before that.
        if "/keys" in case.path and isinstance(case.body.get("expires_at"), str):
            case.body["expires_at"] = (datetime.now(timezone.utc) + timedelta(days=1)).isoformat()
        # Thousands of inboxes in each request would delay the run.
        if isinstance(case.body.get("count"), (int, float)):
            case.body["count"] = 1 + int(case.body["count"]) % 20
        # Fast to generate, unlike texts of a megabyte. No pattern describes what is a space in each language.
        if "from" in case.body and case.path.endswith("/messages"):
            case.body["from"] = "App <no-reply@app.example>"
        # Nobody is signed in.
        if "owner" in case.body:
            case.body["owner"] = "service"
        # No identity provider is configured.
        if "sign_in" in case.body:
            case.body["sign_in"] = "any"
        # Addresses are invited once, and only some roles have these properties.
        if case.path == "/v1/invitations":
            case.body["email"] = f"person{next(turns)}@app.example"
            if case.body.get("environments") is not None or "permissions" in case.body:
                case.body["role"] = "auditor"
        make_address_valid(case.body)
        if case.path == "/v1/quotas/{quota}":
            make_quota_valid(case)
        # No pattern describes names that are no public suffixes.
        if case.path == "/v1/domains" and "name" in case.body:
            case.body["name"] = f"n{next(turns)}.app.example"
        elif case.path == "/v1/domains":
            case.body["hosted"] = True
        if isinstance(case.body.get("catch_all"), dict):
            case.body["catch_all"] = make_catch_all_valid(case.body["catch_all"])
        # No pattern describes existing hosts and dates.
        if "/webhooks" in case.path:
            if "url" in case.body:
                case.body["url"] = "https://ci.example/mail"
            # The webhook may be that of an inbox, which has no domains and keys.
            if isinstance(case.body.get("events"), list):
                of_inboxes = [event for event in case.body["events"] if str(event).startswith(("message.", "inbox."))]
                case.body["events"] = of_inboxes or ["message.received"]
            if case.body.get("start_from") not in (None, "now", "beginning"):
                case.body["start_from"] = "2026-11-21T08:00:00Z"
            if "from" in case.body and "to" in case.body:
                case.body["from"], case.body["to"] = "2026-11-21T08:00:00Z", "2026-11-22T08:00:00Z"


def make_address_valid(body):
    """A new inbox has an address, or a local part and a domain, or none of them. An address can be taken once."""
    if "address" in body:
        body.pop("local_part", None)
        body.pop("domain", None)
        body["address"] = f"chosen-{next(turns)}@app.example"
    elif "local_part" in body or "domain" in body:
        body["local_part"], body["domain"] = f"chosen-{next(turns)}", "app.example"


def make_quota_valid(case):
    """Only quotas of mail can be of an environment or a key. One is at most that of the plan; requests need most of it."""
    case.path_parameters["quota"] = "inboxes"
    if case.body.get("key_id") is not None:
        case.body.pop("environment", None)
    if isinstance(case.body.get("limit"), (int, float)):
        case.body["limit"] = 10_000_000 - int(case.body["limit"]) % 1000


def make_catch_all_valid(catch_all):
    """Each action has its own properties. That of `deliver` is an inbox in the environment of the domain."""
    if catch_all.get("action") == "create":
        return {name: catch_all[name] for name in ("action", "labels") if name in catch_all}
    return {"action": "reject"}


def make_count_valid(query):
    """`mode` and `per_inbox` need `count`, which needs one label and no other filter."""
    if "count" not in query:
        for name in ("mode", "per_inbox"):
            query.pop(name, None)
        return
    for name in set(query) - {"count", "mode", "per_inbox", "timeout"}:
        query.pop(name)
    query["label"] = "run:42"


def make_fault_valid(fault):
    """Some properties belong to one action, and actions to stages."""
    conditions = {name: fault[name] for name in ("first_n", "every_n", "probability") if name in fault}
    if fault.get("stage") == "after_accept":
        return {"stage": "after_accept", "action": "drop", **conditions}
    if "delay_ms" in fault:
        return {"stage": fault.get("stage"), "action": "delay", "delay_ms": fault["delay_ms"], **conditions}
    return {"stage": fault.get("stage"), "action": "reject", **conditions}


def set_no_timeout(case):
    """A longer timeout would only delay the run."""
    timeout = str(case.query.get("timeout", 25))
    if timeout.isdigit() and int(timeout) <= 55:
        case.query["timeout"] = 0


def stream_past_events(case):
    """A stream without events would delay the run. With a cursor, it starts with past events."""
    if "cursor" not in case.query and "Last-Event-ID" not in case.headers:
        if case.path == "/v1/events":
            case.query["cursor"] = ENVIRONMENT_CURSOR
        else:
            case.path_parameters["id"] = INBOX
            case.query["cursor"] = CURSOR


def protect_resources(case):
    """Destructive requests must not change the resources that the run needs."""
    for name, value in case.path_parameters.items():
        case.path_parameters[name] = PROTECTED.get(value, value)
