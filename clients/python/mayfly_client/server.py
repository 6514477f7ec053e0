"""Starts a Mayfly server for a test run."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import threading
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from queue import Empty, Queue
from types import TracebackType
from typing import Any

from ._errors import MayflyError

MAX_LINES = 20
"""The lines of the log that an error shows."""
STOP_TIMEOUT = 70.0
"""Longer than the server takes to finish its work."""


class MayflyServer:
    """A server that this process has started. `with start_mayfly() as server:` stops it at the end of the block."""

    url: str
    """Where the API listens."""
    api_key: str
    smtp_host: str
    """Where it receives mail."""
    smtp_port: int

    def __init__(self, process: subprocess.Popen[str], folder: str, api_key: str, listening: Mapping[str, Any]) -> None:
        self._process = process
        self._folder = folder
        self.url = f"http://127.0.0.1:{listening['httpPort']}"
        self.api_key = api_key
        self.smtp_host = "127.0.0.1"
        self.smtp_port = listening["smtpPort"]

    def stop(self) -> None:
        """Stops it, and removes its data."""
        _end(self._process, signal.SIGTERM, self._folder)

    def __enter__(self) -> MayflyServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


def start_mayfly(
    folder: str | os.PathLike[str] | None = None,
    *,
    env: Mapping[str, str] | None = None,
    timeout: float = 60,
) -> MayflyServer:
    """Start a Mayfly server with empty data, on free ports of 127.0.0.1, and wait until it is ready.

    `folder` has the server: a clone in which `npm ci` was run. Without it, MAYFLY_FOLDER names the folder, or
    `node_modules/mayfly` of the current folder is used. `env` has settings of the server, such as MAYFLY_SMTP_TLS.
    The server also stops when this process ends. Raises MayflyError if it does not start within `timeout` seconds.
    """
    root = Path(folder or os.environ.get("MAYFLY_FOLDER") or "node_modules/mayfly").resolve()
    node, main = _find_server(root)
    data = tempfile.mkdtemp(prefix="mayfly-")
    api_key = f"key-of-this-test-run-{secrets.token_hex(16)}"
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    try:
        process = subprocess.Popen(
            [str(node), "--disable-warning=ExperimentalWarning", str(main)],
            env={
                **kept,
                # As under npm: the server ends by itself if this process is gone.
                "npm_lifecycle_event": "test",
                **(env or {}),
                "MAYFLY_DATA_DIR": data,
                "MAYFLY_HTTP_PORT": "0",
                "MAYFLY_SMTP_PORT": "0",
                "MAYFLY_BOOTSTRAP_API_KEY": api_key,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
        )
    except BaseException:
        shutil.rmtree(data, ignore_errors=True)
        raise
    try:
        listening = _when_listening(process, timeout)
    except BaseException:
        _end(process, signal.SIGKILL, data)
        raise
    return MayflyServer(process, data, api_key, listening)


def _find_server(root: Path) -> tuple[Path, Path]:
    """The Node that the server comes with, and its program. Builds the server if that was not done."""
    node = next(
        (each for each in (root / "node_modules/node/bin/node", root.parent / "node/bin/node") if each.exists()), None
    )
    if node is None:
        fix = "Set MAYFLY_FOLDER to a clone of its repository in which `npm ci` was run."
        raise MayflyError(f"There is no installed Mayfly in {root}. {fix}")
    main = root / "dist/apps/standalone/main.js"
    if not main.exists():
        subprocess.run(["npm", "run", "--silent", "build"], cwd=root, stdout=subprocess.DEVNULL, check=True)
    return node, main


def _when_listening(process: subprocess.Popen[str], timeout: float) -> Mapping[str, Any]:
    """What the server logs once it listens. A thread reads its log until it ends, so that it never has to wait."""
    found: Queue[Mapping[str, Any] | None] = Queue()
    lines: deque[str] = deque(maxlen=MAX_LINES)

    def read() -> None:
        log = process.stderr
        is_listening = False
        for line in log or ():
            if not is_listening and '"msg":"listening"' in line:
                is_listening = True
                found.put(json.loads(line))
            elif not is_listening:
                lines.append(line)
        found.put(None)

    threading.Thread(target=read, daemon=True).start()
    try:
        listening = found.get(timeout=timeout)
    except Empty:
        raise MayflyError("".join([f"Mayfly was not ready within {timeout} seconds\n", *lines])) from None
    if listening is None:
        raise MayflyError("".join([f"Mayfly did not start: it ended with {process.wait()}\n", *lines]))
    return listening


def _end(process: subprocess.Popen[str], by: signal.Signals, folder: str) -> None:
    if process.poll() is None:
        process.send_signal(by)
    try:
        process.wait(STOP_TIMEOUT)
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)
