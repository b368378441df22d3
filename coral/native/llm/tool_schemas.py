"""Reads the schemas of the shipped tools from a file: deriving them needs pydantic and every tool, which would take
longer than all else before a launch's first request."""

import json
from pathlib import Path

from coral.native.llm.request import ToolSchema

SHIPPED_SCHEMAS = Path(__file__).parent / "tools" / "schemas.json"


def shipped_schemas() -> tuple[ToolSchema, ...]:
    return tuple(ToolSchema(**schema) for schema in json.loads(SHIPPED_SCHEMAS.read_text("utf-8")))
