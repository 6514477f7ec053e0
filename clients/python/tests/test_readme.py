"""The examples of README.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

BLOCKS = re.findall(r"(?ms)^```python\n(.*?)^```$", (Path(__file__).parents[1] / "README.md").read_text("utf-8"))


def test_a_sign_up_test_is_short_and_passes(pytester: pytest.Pytester) -> None:
    example = next(block for block in BLOCKS if "def test_" in block)
    assert len(example.splitlines()) < 20
    pytester.makepyfile(example)
    pytester.runpytest_subprocess().assert_outcomes(passed=1)


def test_all_examples_run(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    for block in BLOCKS:
        exec(block, names)
    printed = capsys.readouterr().out
    assert "app@example.com Your code is 493201: https://app.example/verify?t=1" in printed
    assert "['493201', 'https://app.example/verify?t=1']" in printed
    assert "message.received {'id': 'msg_" in printed
    assert names["receive"]({}, b"{}", "whsec_MTIz") == 401
