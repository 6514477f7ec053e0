"""Runs clients/scenarios.json, which every client library of Mayfly must pass.

python tests/run_scenarios.py [--async] [--file scenarios.json]

The environment has MAYFLY_URL, of a proxy that injects faults, MAYFLY_KEY and MAYFLY_SMTP (host:port). Prints
`ok <name>` or `not ok <name>` with the reason for each scenario, and exits 1 if any failed. With the client that is
not async, scenarios that cancel a call are skipped.
"""

from __future__ import annotations

import argparse
import asyncio
import inspect
import itertools
import json
import os
import re
import secrets
import sys
import time
import traceback
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
from mail import send_mail

from mayfly_client import AsyncMayfly, Mayfly, MayflyError

SCENARIOS = Path(__file__).parents[2] / "scenarios.json"
VARIABLE = re.compile(r"\$(\w+(?:\.\w+)*)(.*)", re.DOTALL)
EVENTUALLY_SECONDS = 15

Step = dict[str, Any]


class ScenarioError(Exception):
    """A step did not do what the scenario expects."""


class Runner:
    """The state of one scenario: its variables, and what runs in the background."""

    def __init__(self, mayfly: Mayfly | AsyncMayfly, threads: ThreadPoolExecutor) -> None:
        self.url = os.environ["MAYFLY_URL"]
        self.variables: dict[str, Any] = {"mayfly": mayfly, "proxy": self.url, "random": secrets.token_hex(8)}
        self.threads = threads
        self.background: list[asyncio.Future[None]] = []

    async def run(self, steps: list[Step]) -> None:
        """Runs the steps. Raises ScenarioError."""
        try:
            for number, step in enumerate(steps, 1):
                try:
                    await self.run_step(step)
                except Exception as error:
                    shown = str(error) if isinstance(error, ScenarioError) else traceback.format_exc()
                    raise ScenarioError(f"step {number}, {json.dumps(step)[:200]}\n{shown}") from error
            await asyncio.gather(*self.background)
        finally:
            httpx.delete(f"{self.url}/__faults")
            for name, value in self.variables.items():
                if name != "mayfly" and isinstance(value, (Mayfly, AsyncMayfly)):
                    await finished(value.close(), None)

    async def run_step(self, step: Step) -> None:
        """Runs one step. Raises ScenarioError."""
        if "mail" in step:
            await self.mail(self.resolve(step["mail"]))
        elif "fault" in step:
            httpx.post(f"{self.url}/__faults", json=self.resolve(step["fault"])).raise_for_status()
        elif "clearFaults" in step:
            httpx.delete(f"{self.url}/__faults").raise_for_status()
        elif "connect" in step:
            client = type(self.variables["mayfly"])
            self.variables[step["as"]] = client(api_key=self.resolve(step["connect"]["apiKey"]))
        elif "later" in step:
            self.later(step["later"])
        elif step.get("eventually"):
            await self.repeat(step)
        else:
            await self.call(step)

    async def mail(self, mail: Step) -> None:
        """Sends a mail, in the background if it comes later."""
        after = mail.pop("afterMs", None)
        copies = mail.pop("copies", 1)
        sender = mail.pop("from", None)
        options = {**mail, **({} if sender is None else {"sender": sender})}

        def send() -> None:
            time.sleep((after or 0) / 1000)
            for _ in range(copies):
                send_mail(**options)

        sending = asyncio.get_running_loop().run_in_executor(self.threads, send)
        if after is None:
            await sending
        else:
            self.background.append(sending)

    def later(self, step: Step) -> None:
        """Calls a method in the background: in this loop if it is async, otherwise in another thread."""

        async def call() -> None:
            await asyncio.sleep(step["afterMs"] / 1000)
            await self.call(step)

        if isinstance(self.variables["mayfly"], AsyncMayfly):
            self.background.append(asyncio.ensure_future(call()))
        else:
            loop = asyncio.get_running_loop()
            self.background.append(loop.run_in_executor(self.threads, lambda: asyncio.run(call())))

    async def repeat(self, step: Step) -> None:
        """Calls a method until it does what is expected. Raises the last ScenarioError after 15 seconds."""
        deadline = time.monotonic() + EVENTUALLY_SECONDS
        while True:
            try:
                return await self.call(step)
            except ScenarioError:
                if time.monotonic() > deadline:
                    raise
            await asyncio.sleep(0.1)

    async def call(self, step: Step) -> None:
        """Calls a method, and compares what it returns or raises."""
        arguments = [pattern_of(self.resolve(each)) for each in step.get("args", [])]
        options = dict(option_of(name, self.resolve(value)) for name, value in step.get("with", {}).items())
        try:
            outcome = self.method(step["do"])(*arguments, **options)
            result = await with_abort(finished(outcome, step.get("take")), step.get("abortAfterMs"))
        except (MayflyError, asyncio.CancelledError) as error:
            if "throws" not in step:
                raise ScenarioError(f"raised {type(error).__name__}: {error}") from error
            compare(FieldsOf(error), self.resolve(step["throws"]), type(error).__name__)
            return
        if "throws" in step:
            raise ScenarioError(f"returned {result!r}, but should raise {step['throws']}")
        if "expect" in step:
            compare(result, self.resolve(step["expect"]), "result")
        if "as" in step:
            self.variables[step["as"]] = result

    def method(self, name: str) -> Any:
        """The method of a variable, or of a resource of `mayfly`."""
        first, *rest = name.split(".")
        is_variable = first in self.variables
        target = self.variables[first] if is_variable else getattr(self.variables["mayfly"], snake(first))
        for part in rest:
            # `mayfly` in a path is the client itself.
            is_itself = part == "mayfly" and isinstance(target, (Mayfly, AsyncMayfly))
            target = target if is_itself else field_of(target, snake(part))
        return target

    def resolve(self, value: Any) -> Any:
        """The value with the variables that it names. A text may go on after a variable."""
        if isinstance(value, dict):
            return {name: self.resolve(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self.resolve(each) for each in value]
        match = VARIABLE.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            return value
        first, *rest = match[1].split(".")
        target = self.variables[first]
        for part in rest:
            target = field_of(target, part)
        return f"{target}{match[2]}" if match[2] else target


class FieldsOf:
    """An error, with the names that scenarios use."""

    def __init__(self, error: BaseException) -> None:
        self.error = error
        self.type = "AbortError" if isinstance(error, asyncio.CancelledError) else type(error).__name__
        self.message = str(error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.error, snake(name))


async def finished(outcome: Any, take: int | None) -> Any:
    """The result of a call: of a coroutine, or the first items of an iterator."""
    if inspect.isawaitable(outcome):
        outcome = await outcome
    if take is None:
        return outcome
    items: list[Any] = []
    if isinstance(outcome, AsyncGenerator):
        async for item in outcome:
            items.append(item)
            if len(items) == take:
                break
        await outcome.aclose()
    else:
        items = list(itertools.islice(outcome, take))
    return items


async def with_abort(work: Any, after_ms: float | None) -> Any:
    """Runs the work, and cancels it after some time if given."""
    if after_ms is None:
        return await work
    task = asyncio.ensure_future(work)
    asyncio.get_running_loop().call_later(after_ms / 1000, task.cancel)
    return await task


def compare(actual: Any, expected: Any, where: str) -> None:
    """Compares partially. Raises ScenarioError that says what differs."""
    if isinstance(expected, dict) and set(expected) <= {"regex", "flags"} and expected:
        if not isinstance(actual, str) or not pattern_of(expected).search(actual):
            raise ScenarioError(f"{where} is {actual!r}, which does not match /{expected['regex']}/")
    elif isinstance(expected, dict) and set(expected) == {"bytes"}:
        compare(actual.decode(), expected["bytes"], where)
    elif isinstance(expected, dict):
        for name, value in expected.items():
            compare(field_of(actual, name), value, f"{where}.{name}")
    elif isinstance(expected, list):
        if not isinstance(actual, (list, tuple)) or len(actual) != len(expected):
            raise ScenarioError(f"{where} is {actual!r}, not {len(expected)} items")
        for index, value in enumerate(expected):
            compare(actual[index], value, f"{where}.{index}")
    elif actual != expected or isinstance(actual, bool) != isinstance(expected, bool):
        raise ScenarioError(f"{where} is {actual!r}, not {expected!r}")


def field_of(target: Any, name: str) -> Any:
    """A property of JSON, or an attribute. Those that are keywords of Python end with an underscore."""
    try:
        if isinstance(target, dict):
            return target[name]
        if isinstance(target, list):
            return len(target) if name == "length" else target[int(name)]
        return getattr(target, name) if hasattr(target, name) else getattr(target, f"{name}_")
    except (KeyError, IndexError, AttributeError, ValueError):
        raise ScenarioError(f"{target!r} has no {name}") from None


def option_of(name: str, value: Any) -> tuple[str, Any]:
    """A keyword argument: milliseconds become seconds, and `match` a function."""
    if name == "match":
        return name, lambda message: is_match(message, value)
    if name.endswith("Ms"):
        return snake(name[:-2]), value / 1000
    return ("from_" if name == "from" else snake(name)), value


def is_match(message: Any, expected: Any) -> bool:
    """Whether a message is as expected."""
    try:
        compare(message, expected, "message")
    except ScenarioError:
        return False
    return True


def pattern_of(value: Any) -> Any:
    """A regular expression, if the value stands for one."""
    if isinstance(value, dict) and "regex" in value:
        return re.compile(value["regex"], sum(re.RegexFlag[flag.upper()] for flag in value.get("flags", "")))
    return value


def snake(name: str) -> str:
    """`waitForCode` becomes `wait_for_code`."""
    return re.sub(r"(?<!^)[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


async def run_scenario(scenario: dict[str, Any], is_async: bool) -> str | None:
    """Returns what failed."""
    with ThreadPoolExecutor() as threads:
        try:
            if is_async:
                async with AsyncMayfly() as async_client:
                    await Runner(async_client, threads).run(scenario["steps"])
            else:
                with Mayfly() as client:
                    await Runner(client, threads).run(scenario["steps"])
        except ScenarioError as error:
            return str(error)
    return None


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--async", dest="is_async", action="store_true", help="run them with AsyncMayfly")
    parser.add_argument("--file", type=Path, default=SCENARIOS)
    options = parser.parse_args()
    code = 0
    for scenario in json.loads(options.file.read_text(encoding="utf-8")):
        if not options.is_async and any("abortAfterMs" in step for step in scenario["steps"]):
            print(f"ok {scenario['name']} # skipped: only an async call can be cancelled", flush=True)
            continue
        failure = asyncio.run(run_scenario(scenario, options.is_async))
        if failure is None:
            print(f"ok {scenario['name']}", flush=True)
        else:
            code = 1
            print(f"not ok {scenario['name']}\n    " + failure.replace("\n", "\n    "), flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
