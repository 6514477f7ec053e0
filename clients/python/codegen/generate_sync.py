"""Writes mayfly_client/_sync from _async: the same code without async and await. `npm run generate` calls it.

python codegen/generate_sync.py [--check]

With --check it writes nothing, and exits 1 if a file is not what it would write.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "mayfly_client"

# In this order. The names of httpx differ more than by a prefix.
REPLACEMENTS = [
    (r"httpx\.AsyncClient", "httpx.Client"),
    (r"asyncio\.sleep", "time.sleep"),
    (r"import asyncio", "import time"),
    (r"AsyncGenerator\[(\w+), None\]", r"Generator[\1, None, None]"),
    (r"\baclose\b", "close"),
    (r"\baread\b", "read"),
    (r"\baiter_(bytes|lines)\b", r"iter_\1"),
    (r"__a(enter|exit)__", r"__\1__"),
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\bAsync(?=[A-Z])", ""),
]


def main(check: bool) -> int:
    """Returns the exit code."""
    for source in sorted((PACKAGE / "_async").iterdir()):
        if source.suffix != ".py":
            continue
        text = source.read_text(encoding="utf-8")
        for pattern, replacement in REPLACEMENTS:
            text = re.sub(pattern, replacement, text)
        if text:
            text = f"# Written by codegen/generate_sync.py from _async/{source.name}. Do not edit.\n{text}"
        target = PACKAGE / "_sync" / source.name
        if not check:
            target.parent.mkdir(exist_ok=True)
            target.write_text(text, encoding="utf-8")
        elif not target.exists() or text != target.read_text(encoding="utf-8"):
            print(f"{target} is not up to date", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
