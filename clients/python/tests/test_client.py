"""What the scenarios of all client libraries do not show."""

from __future__ import annotations

import asyncio
import os
import pickle
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
from mail import send_mail

from mayfly_client import (
    ApiError,
    AsyncMayfly,
    Inbox,
    Mayfly,
    MayflyError,
    UnreachableError,
    WaitTimeoutError,
)


@contextmanager
def server_that_answers(answer: bytes) -> Iterator[str]:
    """The address of a server that sends the same bytes to every request."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(65536)
                    connection.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


def unused_url() -> str:
    """An address at which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}"


def test_sends_requests_through_a_transport() -> None:
    class Recording(httpx.AsyncHTTPTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            requests.append(f"{request.method} {request.url.path}")
            return await super().handle_async_request(request)

    async def read() -> None:
        async with AsyncMayfly(transport=Recording()) as mayfly:
            await mayfly.account()

    requests: list[str] = []
    asyncio.run(read())
    assert requests == ["GET /v1/account"]


def test_says_how_to_reach_a_server_that_does_not_run() -> None:
    url = unused_url()
    expected = f"Mayfly is not reachable at {url}: .*refused.* Start it, or set MAYFLY_URL"
    with Mayfly(url, "key") as mayfly, pytest.raises(UnreachableError, match=expected):
        mayfly.inboxes.create()

    async def create() -> None:
        async with AsyncMayfly(url, "key") as mayfly:
            await mayfly.inboxes.create()

    with pytest.raises(UnreachableError, match=expected.replace(".*refused.*", ".*")):
        asyncio.run(create())


@pytest.mark.parametrize("answer", ["200 OK", "502 Bad Gateway", "302 Found\r\nLocation: http://elsewhere.example/"])
def test_recognizes_answers_of_another_server(answer: str) -> None:
    with server_that_answers(f"HTTP/1.1 {answer}\r\nContent-Length: 5\r\n\r\nhello".encode()) as url:
        expected = r"does not come from Mayfly: .*(hello|elsewhere)"
        with Mayfly(url, "key") as mayfly, pytest.raises(MayflyError, match=expected):
            mayfly.version()


def test_says_if_the_server_does_not_know_expressions() -> None:
    body = b'{"id": "x", "address": "x", "inbox_id": "x", "from": [], "attachments": []}'
    answer = b"HTTP/1.1 200 OK\r\nMayfly-Cursor: a\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    with server_that_answers(answer) as url, Mayfly(url, "key") as mayfly:
        inbox = mayfly.inboxes.get("x")
        with pytest.raises(MayflyError, match="does not support extract"):
            inbox.wait_for_match("a")


def test_ends_a_call_in_time_when_the_answer_trickles() -> None:
    with server_that_answers(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{") as url:
        started = time.monotonic()
        with Mayfly(url, "key", timeout=0.5) as mayfly, pytest.raises(UnreachableError):
            mayfly.version()
        assert time.monotonic() - started < 2


def test_reads_lines_that_have_separators_of_unicode(mayfly: Mayfly) -> None:
    inbox = mayfly.inboxes.create(labels={"run": "separators"})
    inbox.inject_message(from_="app@example.com", subject="", headers={"X-Run": "a\u2028b"})
    lines = list(mayfly.runs.verify("run:separators", [], id_header="X-Run"))
    assert [(line["kind"], line.get("id")) for line in lines] == [("unexpected", "a\u2028b"), ("summary", None)]


def test_accepts_a_url_and_a_key_with_a_line_end(mayfly: Mayfly) -> None:
    url, key = os.environ["MAYFLY_URL"], os.environ["MAYFLY_KEY"]
    with Mayfly(f"{url}//\n", f"{key}\n") as other:
        assert other.account() == mayfly.account()


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:3000",
        "ftp://127.0.0.1",
        "http://",
        "http://127.0.0.1?a=b",
        "http://user@127.0.0.1",
        "http://127.0.0.1:x",
    ],
)
def test_refuses_an_address_that_is_none(url: str) -> None:
    with pytest.raises(MayflyError, match="must be an http or https URL"):
        Mayfly(url, "key")


def test_refuses_a_key_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MAYFLY_KEY")
    with pytest.raises(MayflyError, match="MAYFLY_KEY"):
        Mayfly()
    with pytest.raises(MayflyError) as caught:
        Mayfly(api_key="mf secret")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("message_id", ["", ".", ".."])
def test_sends_no_request_for_an_id_that_is_none(mayfly_inbox: Inbox, message_id: str) -> None:
    with pytest.raises(ValueError, match="is not an id"):
        mayfly_inbox.delete_message(message_id)
    assert mayfly_inbox.refresh().state == "active"


def test_has_typed_attributes_and_the_json(mayfly_inbox: Inbox) -> None:
    attachments = [{"filename": "report.csv", "content": "a;b"}]
    send_mail(mayfly_inbox.address, "Report", "Attached.", attachments=attachments)
    message = mayfly_inbox.wait_for_message()
    assert message.from_ == [{"name": "App", "address": "app@example.com"}]
    assert message.data["from"] == message.from_
    assert message.attachments[0].filename == "report.csv"
    assert message.attachments[0].bytes() == b"a;b"
    assert hash(message) is not None
    assert repr(message) == f"<Message {message.id} 'Report' from app@example.com>"


def test_deletes_an_inbox_at_the_end_of_its_block(mayfly: Mayfly) -> None:
    with mayfly.inboxes.create() as inbox, mayfly.inboxes.create() as other:
        other.delete()
    for each in (inbox, other):
        with pytest.raises(ApiError) as caught:
            each.list_messages()
        assert caught.value.code == "inbox-deleted"


def test_deletes_an_inbox_at_the_end_of_its_async_block() -> None:
    async def use() -> str:
        async with AsyncMayfly() as mayfly:
            async with await mayfly.inboxes.create() as inbox:
                await inbox.refresh()
            with pytest.raises(ApiError) as caught:
                await inbox.list_messages()
            return caught.value.code

    assert asyncio.run(use()) == "inbox-deleted"


def test_waits_in_parallel() -> None:
    async def wait() -> list[str]:
        async with AsyncMayfly() as mayfly, await mayfly.inboxes.create() as inbox:
            waits = asyncio.gather(*(inbox.wait_for_code() for _ in range(200)))
            await asyncio.sleep(0)
            await asyncio.to_thread(send_mail, inbox.address, "Code", "Your code is 493201.")
            return await waits

    assert asyncio.run(wait()) == ["493201"] * 200


@pytest.mark.parametrize("timeout", [0, 0.3, 1])
def test_waits_as_long_as_told(mayfly_inbox: Inbox, timeout: float) -> None:
    def wait() -> float:
        started = time.monotonic()
        with pytest.raises(WaitTimeoutError, match="No message arrived"):
            mayfly_inbox.wait_for_message(timeout=timeout)
        return time.monotonic() - started

    # The shortest, because a busy machine prolongs some.
    assert timeout <= min(wait() for _ in range(3)) < timeout + 0.6


def test_finds_links_by_text_and_by_expression(mayfly_inbox: Inbox) -> None:
    send_mail(
        mayfly_inbox.address,
        "Links",
        "plain",
        html='<a href="https://a.example/1">Verify</a> <a href="https://a.example/2">no</a>',
    )
    assert mayfly_inbox.wait_for_link("VERIFY") == "https://a.example/1"
    assert mayfly_inbox.wait_for_link(re.compile("2$")) == "https://a.example/2"
    with pytest.raises(WaitTimeoutError) as caught:
        mayfly_inbox.wait_for_link("reset", timeout=0.2)
    assert "has a link that matches 'reset'.\n1 message arrived:\n  \"Links\", " in str(caught.value)
    assert str(caught.value).endswith("there is no link that matches 'reset'")


def test_errors_can_be_pickled(mayfly_inbox: Inbox) -> None:
    with pytest.raises(WaitTimeoutError) as late:
        mayfly_inbox.wait_for_message(timeout=0)
    with pytest.raises(ApiError) as refused:
        mayfly_inbox.get_message("msg_1")
    for error in (late.value, refused.value, UnreachableError("http://a", "b")):
        assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_errors_do_not_control_the_terminal(mayfly_inbox: Inbox) -> None:
    send_mail(mayfly_inbox.address, "a\x9b31m\x1b[2J", "text")
    mayfly_inbox.wait_for_message()
    with pytest.raises(WaitTimeoutError) as caught:
        mayfly_inbox.wait_for_code(timeout=0)
    assert all(line.isprintable() for line in str(caught.value).split("\n"))
    assert "31m" in str(caught.value)
