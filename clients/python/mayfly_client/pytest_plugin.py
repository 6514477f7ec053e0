"""pytest fixtures: an inbox for each test, and a report of the mail that a failed test received.

Loaded by pytest once this package is installed. The server and the key come from MAYFLY_URL and MAYFLY_KEY.
"""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Generator, Iterator
from operator import methodcaller
from typing import TYPE_CHECKING, Protocol

import pytest

from . import Inbox, Mayfly, MayflyError, Message
from ._errors import printable

if TYPE_CHECKING:
    import pluggy
    from typing_extensions import Unpack

    from ._options import CreateInbox

MAX_LISTED = 20
MAX_LABEL_CHARACTERS = 128

_inboxes = pytest.StashKey["list[Inbox]"]()
_has_failed = pytest.StashKey[bool]()
_run = pytest.StashKey[str]()


class InboxFactory(Protocol):
    """Creates an inbox that belongs to the test. Takes the options of `inboxes.create`."""

    def __call__(self, **options: Unpack[CreateInbox]) -> Inbox:
        """The inbox. Its labels are `run`, `worker` and `test`, and those of the call."""
        ...


@pytest.fixture(scope="session")
def mayfly() -> Iterator[Mayfly]:
    """A client for MAYFLY_URL with MAYFLY_KEY, the same for all tests of a process."""
    with Mayfly() as client:
        yield client


@pytest.fixture
def mayfly_inbox_factory(mayfly: Mayfly, request: pytest.FixtureRequest) -> Iterator[InboxFactory]:
    """Creates more inboxes for a test. They are deleted after it passes, and kept after it fails."""
    node: pytest.Item = request.node
    created = node.stash.setdefault(_inboxes, [])
    labels = {
        "run": node.config.stash[_run],
        "worker": os.environ.get("PYTEST_XDIST_WORKER", "main"),
        "test": _label_of(node.nodeid),
    }

    def create(**options: Unpack[CreateInbox]) -> Inbox:
        options["labels"] = {**labels, **options.get("labels", {})}
        inbox = mayfly.inboxes.create(**options)
        created.append(inbox)
        return inbox

    yield create
    if not node.stash.get(_has_failed, False):
        for inbox in created:
            with inbox:
                pass


@pytest.fixture
def mayfly_inbox(mayfly_inbox_factory: InboxFactory) -> Inbox:
    """An inbox of its own for each test. It is deleted after the test passes, and kept after it fails."""
    return mayfly_inbox_factory()


def pytest_configure(config: pytest.Config) -> None:
    """Names the run: by MAYFLY_RUN, or at random, the same in all workers of xdist."""
    _hide_library()
    run = os.environ.get("MAYFLY_RUN") or os.environ.get("PYTEST_XDIST_TESTRUNUID") or uuid.uuid4().hex
    config.stash[_run] = _label_of(run)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pluggy.Result[pytest.TestReport], None]:
    """Adds the mail of a test's inboxes to its report if it failed."""
    outcome = yield
    report = outcome.get_result()
    if not report.failed or report.when == "teardown":
        return
    item.stash[_has_failed] = True
    for inbox in item.stash.get(_inboxes, list[Inbox]()):
        report.sections.append((f"Mayfly inbox {inbox.address}", _mail_of(inbox)))


def _hide_library() -> None:
    """Leaves the code of this package out of the tracebacks of its own errors. They say what is wrong."""
    for name, module in sys.modules.items():
        if name.startswith(f"{__package__}."):
            vars(module)["__tracebackhide__"] = methodcaller("errisinstance", MayflyError)


def _label_of(text: str) -> str:
    """A value that a label may have: the end of the text."""
    return printable(text)[-MAX_LABEL_CHARACTERS:]


def _mail_of(inbox: Inbox) -> str:
    try:
        messages = inbox.list_messages(order="desc", limit=MAX_LISTED)[::-1]
        count = inbox.refresh().message_count
    except MayflyError as error:
        return f"Its mail can't be read: {error}"
    if count == 0:
        return f"No message arrived. The inbox is kept as {inbox.id}."
    missing = f", the newest {len(messages)} of them:" if count > len(messages) else ":"
    title = f"{count} messages arrived" if count != 1 else "1 message arrived"
    return "\n".join([f"{title}{missing}", *map(_about, messages), f"The inbox is kept as {inbox.id}."])


def _about(message: Message) -> str:
    codes = ", ".join(printable(code["value"]) for code in message.codes) or "none"
    links = "".join(f"\n    {printable(link['href'])}" for link in message.links[:MAX_LISTED]) or " none"
    lines = [
        f"- {printable(message.subject or '(no subject)')}",
        f"  from {printable(message.sender)}, {message.received_at}",
        f"  codes: {codes}",
        f"  links:{links}",
        f"  source: {message.raw_url}",
    ]
    return "\n".join(lines)
