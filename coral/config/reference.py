"""Makes the reference of task.yaml as Markdown from the shipped JSON Schema: every key, its type, its default and its
sentence."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from coral.config.schema import SHIPPED

Node = Mapping[str, Any]
_PLAIN = {"string": "text", "boolean": "true or false", "number": "number", "integer": "whole number", "null": ""}
_BOUNDS = {"minimum": "from", "exclusiveMinimum": "above", "maximum": "to"}
_NO_LIMIT = 1e9  # a bound that keeps numbers readable, and that nobody reaches


def task_reference() -> str:
    """Return a heading and a table of keys for each section; a section inside another has a heading of its own."""
    root = json.loads(SHIPPED.read_text(encoding="utf-8"))
    return "\n".join(line for name in root["properties"] for line in _section(root, root, name, name))


def _section(root: Node, owner: Node, key: str, path: str) -> Iterator[str]:
    """Yield the lines of the section that `key` of `owner` holds: directly, or as the elements of a list."""
    node = owner["properties"][key]
    inner = _object(root, node)
    if inner is None:
        return
    yield f"{'#' * min(2 + path.count('.'), 4)} `{path}`\n"
    yield " ".join(f"{inner['description']} {node.get('description', '') if 'items' in node else ''}".split()) + "\n"
    fields = {name: field for name, field in inner["properties"].items() if owner["properties"].get(name) != field}
    if not fields:
        same = ", ".join(f"`{name}`" for name in inner["properties"])
        yield f"Its keys {same} are those of `{path.rpartition('.')[0]}`.\n"
    else:
        yield from _table(root, inner)
    for name in fields:
        yield from _section(root, inner, name, f"{path}.{name}")


def _table(root: Node, section: Node) -> Iterator[str]:
    yield "| key | type | default | meaning |\n|---|---|---|---|"
    for name, field in section["properties"].items():
        default = _default(field, required=name in section.get("required", ()))
        yield f"| `{name}` | {_cell(_type(root, field))} | {_cell(default)} | {_cell(field.get('description', ''))} |"
    yield ""


def _object(root: Node, node: Node) -> Node | None:
    """Return the section that a key holds; None where it holds a value."""
    for choice in (node, node.get("items", {}), *node.get("anyOf", ())):
        if "$ref" in choice:
            found: Node = root["$defs"][choice["$ref"].rpartition("/")[2]]
            return found if "properties" in found else None
    return None


def _type(root: Node, node: Node) -> str:
    """Return the type in words, with its bounds: `whole number from 1 to 1000`."""
    if _object(root, node) is not None:
        return "list of sections" if "items" in node else "section"
    if "$ref" in node:
        return _type(root, root["$defs"][node["$ref"].rpartition("/")[2]])
    choices = node.get("anyOf") or node.get("oneOf")
    if choices:
        return " or ".join(dict.fromkeys(filter(None, (_type(root, choice) for choice in choices))))
    if "enum" in node:
        return " or ".join(f"`{value}`" for value in node["enum"])
    kind = node.get("type", "")
    if kind == "array":
        return f"list of {_type(root, node.get('items', {})) or 'value'}s"
    if kind == "object":
        return "keys with values"
    bounds = [f"{word} {node[bound]:.15g}" for bound, word in _BOUNDS.items() if node.get(bound, _NO_LIMIT) < _NO_LIMIT]
    return " ".join([_PLAIN.get(kind, "any value"), *bounds]).strip()


def _default(node: Node, *, required: bool) -> str:
    if required:
        return "needed"
    value = node.get("default")
    return "" if value in (None, "", [], {}) or isinstance(value, dict) else f"`{json.dumps(value)}`"


def _cell(text: str) -> str:
    """Escape the bars of a text: in a table, a bar would end the cell."""
    return text.replace("|", "\\|")
