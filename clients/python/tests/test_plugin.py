"""The pytest plugin, in test runs of its own."""

from __future__ import annotations

import re
import uuid
from pathlib import Path

import pytest

from mayfly_client import Inbox, Mayfly

HEADER = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\nfrom mail import send_mail\n"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> str:
    """The label of a test run."""
    name = uuid.uuid4().hex
    monkeypatch.setenv("MAYFLY_RUN", name)
    return name


def inboxes_of(mayfly: Mayfly, run: str) -> tuple[list[Inbox], int]:
    """The inboxes that a run has kept, and how many it has deleted."""
    kept = [mayfly.inboxes.get(each["id"]) for each in mayfly.inboxes.list(labels={"run": run})]
    return kept, len(mayfly.inboxes.list(labels={"run": run}, state="deleted"))


def test_deletes_the_inbox_of_a_test_that_passed(pytester: pytest.Pytester, mayfly: Mayfly, run: str) -> None:
    pytester.makepyfile(
        HEADER
        + """
def test_sign_up(mayfly_inbox, mayfly_inbox_factory):
    other = mayfly_inbox_factory(duration="5m", labels={"role": "admin"})
    send_mail(mayfly_inbox.address, "Your code", "Your code is 493201.")
    assert mayfly_inbox.wait_for_code() == "493201"
    assert other.labels["role"] == "admin" and other.labels["run"] == mayfly_inbox.labels["run"]
    assert other.labels["worker"] == "main" and other.labels["test"].endswith("::test_sign_up")
    other.delete()
"""
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=1)
    assert inboxes_of(mayfly, run) == ([], 2)


def test_shows_the_mail_of_a_test_that_failed(pytester: pytest.Pytester, mayfly: Mayfly, run: str) -> None:
    pytester.makepyfile(
        HEADER
        + """
def test_sign_up(mayfly_inbox):
    send_mail(mayfly_inbox.address, "Your code", "Your code is 493201: https://app.example/verify?t=1")
    mayfly_inbox.wait_for_message(subject="Welcome", timeout=2)
"""
    )
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(failed=1)
    kept, deleted = inboxes_of(mayfly, run)
    assert deleted == 0
    assert len(kept) == 1
    message = kept[0].wait_for_message()
    result.stdout.re_match_lines(
        [
            r'E +mayfly_client\..*WaitTimeoutError: No message for .* matched within 2 s: subject contains "Welcome"\.',
            r"E +1 message arrived:",
            r'E +"Your code", .*: subject does not contain "Welcome"',
            rf"-+ Mayfly inbox {kept[0].address} -+",
            r"1 message arrived:",
            r"- Your code",
            rf"  from app@example\.com, {message.received_at}",
            r"  codes: 493201",
            r"  links:",
            r"    https://app\.example/verify\?t=1",
            rf"  source: {message.raw_url}",
            rf"The inbox is kept as {kept[0].id}\.",
        ],
        consecutive=False,
    )
    # The traceback ends in the test.
    assert "_sync/" not in result.stdout.str()
    kept[0].delete()


def test_keeps_the_inboxes_of_parallel_tests_apart(pytester: pytest.Pytester, mayfly: Mayfly, run: str) -> None:
    pytester.makepyfile(
        HEADER
        + """
import pytest

@pytest.mark.parametrize("number", range(8))
def test_code(mayfly_inbox, number, worker_id):
    assert mayfly_inbox.labels["worker"] == worker_id
    send_mail(mayfly_inbox.address, "Your code", f"Your code is 49320{number}.")
    assert mayfly_inbox.wait_for_code() == f"49320{number}"
    assert number != 5
"""
    )
    result = pytester.runpytest_subprocess("-n", "2")
    result.assert_outcomes(passed=7, failed=1)
    assert re.search(r"(?s)Mayfly inbox .*codes: 493205", result.stdout.str())
    kept, deleted = inboxes_of(mayfly, run)
    assert deleted == 7
    assert [each.labels["test"].rpartition("::")[2] for each in kept] == ["test_code[5]"]
    kept[0].delete()


def test_says_that_the_server_does_not_run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAYFLY_URL", "http://127.0.0.1:9")
    pytester.makepyfile("def test_sign_up(mayfly_inbox): pass")
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(errors=1)
    result.stdout.re_match_lines([r"E +.*UnreachableError: Mayfly is not reachable at http://127\.0\.0\.1:9: .*"])
