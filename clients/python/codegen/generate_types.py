"""Writes mayfly_client/_types.py from the OpenAPI document on standard input. `npm run generate` calls it.

python codegen/generate_types.py [--check] <openapi.json

With --check it writes nothing, and exits 1 if the file is not what it would write.
"""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Iterator
from keyword import iskeyword
from pathlib import Path
from typing import Any

Schema = dict[str, Any]

TARGET = Path(__file__).parent.parent / "mayfly_client" / "_types.py"

# Values that have a name of their own: the schema and the property that list them.
NAMED_VALUES = {
    "ProblemCode": ("Problem", "code"),
    "EventType": ("RegisterWebhook", "events"),
    "Scope": ("IssueKey", "scopes"),
    "DeliveryState": ("Delivery", "state"),
}

# Objects of the library that have the properties of a schema as attributes, except those that they define themselves.
ATTRIBUTES = {"Inbox": set[str](), "Message": {"attachments"}, "Attachment": set[str]()}

HEADER = '''"""The JSON that the API takes and returns, from its OpenAPI document.

Written by codegen/generate_types.py. Do not edit.
"""

from __future__ import annotations

from typing import Dict, Literal, TypedDict, Union
'''


def main(check: bool) -> int:
    """Returns the exit code."""
    document = json.load(sys.stdin)
    text = Generator(document["components"]["schemas"]).text()
    if not check:
        TARGET.write_text(text, encoding="utf-8")
    elif text != TARGET.read_text(encoding="utf-8"):
        print(f"{TARGET} is not up to date", file=sys.stderr)
        return 1
    return 0


class Generator:
    """Writes schemas as Python types."""

    def __init__(self, schemas: dict[str, Schema]) -> None:
        self.schemas = schemas
        self.values = {
            self.enum_of(schemas[name]["properties"][key]): alias for alias, (name, key) in NAMED_VALUES.items()
        }
        self.blocks: list[str] = []

    def text(self) -> str:
        """The whole file."""
        blocks = [HEADER]
        for values, alias in sorted(self.values.items(), key=lambda item: item[1]):
            members = "".join(f"    {json.dumps(value)},\n" for value in values)
            blocks.append(f"{alias} = Literal[\n{members}]\n")
        aliases: list[str] = []
        for name, schema in self.schemas.items():
            if "properties" in schema:
                self.add_class(name, schema)
            elif "anyOf" in schema:
                members = ", ".join(f'"{self.type_of(each, name)}"' for each in schema["anyOf"])
                aliases.append(f"{name} = Union[{members}]\n")
            else:
                aliases.append(f"{name} = {self.type_of(schema, name).replace('dict[', 'Dict[')}\n")
        for name, excluded in ATTRIBUTES.items():
            self.add_attributes(name, self.schemas[name], excluded)
        return "\n\n".join([*blocks, *self.blocks, *aliases])

    def add_class(self, name: str, schema: Schema) -> None:
        """Writes a TypedDict, with a base class each for optional properties and for those whose names are keywords."""
        required = set(schema.get("required", []))
        fields = {
            key: (self.type_of(each, name + _camel(key)), each.get("description", ""))
            for key, each in schema["properties"].items()
        }
        bases: list[str] = []
        keywords = {key: fields.pop(key) for key in [*fields] if iskeyword(key)}
        if keywords:
            bases.append(f"_{name}Keywords")
            types = "".join(f'    "{key}": "{type_}",\n' for key, (type_, _) in keywords.items())
            total = "" if required.issuperset(keywords) else ", total=False"
            self.blocks.append(
                f'_{name}Keywords = TypedDict(\n    "_{name}Keywords",\n    {{\n{_indent(types)}    }}{total},\n)\n'
            )
        optional = {key: field for key, field in fields.items() if key not in required}
        needed = {key: field for key, field in fields.items() if key in required}
        if optional and needed:
            bases.append(f"_{name}Optional")
            self.blocks.append(f"class _{name}Optional(TypedDict, total=False):\n{_body_of('', optional)}")
        total = ", total=False" if optional and not needed else ""
        header = f"class {name}({', '.join(bases) or 'TypedDict'}{total}):\n"
        self.blocks.append(header + _body_of(schema.get("description", "An object."), needed or optional))

    def add_attributes(self, name: str, schema: Schema, excluded: set[str]) -> None:
        """Writes a class whose objects have the properties as attributes."""
        fields = {
            f"{key}_" if iskeyword(key) else key: (self.type_of(each, name + _camel(key)), each.get("description", ""))
            for key, each in schema["properties"].items()
            if key not in excluded
        }
        self.blocks.append(f"class {name}Attributes:\n" + _body_of(schema["description"], fields))

    def type_of(self, schema: Schema, name: str) -> str:
        """The Python type of a schema. A nested object is written as a class of that name."""
        if "$ref" in schema:
            return str(schema["$ref"]).rpartition("/")[2]
        if "const" in schema:
            value = schema["const"]
            return f"Literal[{json.dumps(value) if isinstance(value, str) else value}]"
        if "enum" in schema:
            values = self.enum_of(schema)
            return self.values.get(values) or f"Literal[{', '.join(json.dumps(each) for each in values)}]"
        if "anyOf" in schema:
            return " | ".join(dict.fromkeys(self.type_of(each, name) for each in schema["anyOf"]))
        if isinstance(schema.get("type"), list):
            return " | ".join(self.type_of({**schema, "type": each}, name) for each in schema["type"])
        kind = schema.get("type")
        if kind == "array":
            return f"list[{self.type_of(schema['items'], name)}]"
        if kind == "object" and "properties" in schema:
            self.add_class(name, schema)
            return name
        if kind == "object":
            return f"dict[str, {self.type_of(schema['additionalProperties'], name)}]"
        if kind is None:
            return "object"
        return {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}[str(kind)]

    @staticmethod
    def enum_of(schema: Schema) -> tuple[str, ...]:
        """The values of a schema, or of its items."""
        return tuple(schema.get("enum") or schema.get("items", {}).get("enum", ()))


def _body_of(description: str, fields: dict[str, tuple[str, str]]) -> str:
    lines = [docstring(description)] if description else []
    for key, (type_, about) in fields.items():
        lines.append(f"{key}: {type_}")
        lines.extend([docstring(about)] if about else [])
    return _indent("\n".join(lines) + "\n")


def docstring(text: str) -> str:
    """A docstring, with the escapes that the text needs."""
    whole = f'"""{text}"""'.replace("\\", "\\\\")
    return whole if len(whole) <= 112 else "\n".join(_wrapped(text.replace("\\", "\\\\")))


def _wrapped(text: str) -> Iterator[str]:
    yield from textwrap.wrap(f'"""{text}', 112, break_long_words=False)
    yield '"""'


def _indent(text: str) -> str:
    return textwrap.indent(text, "    ")


def _camel(key: str) -> str:
    return "".join(word.capitalize() for word in key.split("_"))


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
