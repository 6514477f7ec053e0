"""The generated files are those that their generators write now."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CODEGEN = Path(__file__).parent.parent / "codegen"


@pytest.mark.parametrize(
    "command",
    [["generate_types.py", f"{os.environ.get('MAYFLY_URL')}/openapi.json"], ["generate_sync.py"]],
    ids=["types of the API", "sync client"],
)
def test_is_up_to_date(command: list[str]) -> None:
    script, *arguments = command
    result = subprocess.run(
        [sys.executable, CODEGEN / script, *arguments, "--check"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
