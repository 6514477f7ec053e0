"""A server for a test run."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import httpx
import pytest

from mayfly_client import Mayfly, MayflyError, start_mayfly


def test_starts_a_server_with_a_key_and_stops_it() -> None:
    with start_mayfly(env={"MAYFLY_MAIL_DOMAIN": "run.example"}) as server:
        assert server.url != os.environ["MAYFLY_URL"]
        with Mayfly(url=server.url, api_key=server.api_key) as mayfly, mayfly.inboxes.create() as inbox:
            assert inbox.address.endswith("@run.example")
        assert (server.smtp_host, server.smtp_port > 0) == ("127.0.0.1", True)
    with pytest.raises(httpx.TransportError):
        httpx.get(f"{server.url}/healthz")
    server.stop()


def test_says_why_a_server_does_not_start() -> None:
    with pytest.raises(MayflyError, match=r"it ended with 1\n(.|\n)*MAYFLY_MCP must be true or false"):
        start_mayfly(env={"MAYFLY_MCP": "perhaps"})


def test_says_where_a_server_is_missing(tmp_path: Path) -> None:
    with pytest.raises(MayflyError, match=r"There is no installed Mayfly in .*Set MAYFLY_FOLDER"):
        start_mayfly(tmp_path)


def test_leaves_no_folder_behind_if_no_process_can_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(ValueError, match="null byte"):
        start_mayfly(env={"MAYFLY_MAIL_DOMAIN": "\0"})
    assert list(tmp_path.iterdir()) == []
