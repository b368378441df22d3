"""The schemas of the tools that come along, from a file: to derive them needs pydantic and every tool, which would
take longer than all else that comes before a launch's first request."""

import json
from pathlib import Path

from coral.native.llm.request import ToolSchema

SHIPPED_SCHEMAS = Path(__file__).parent / "tools" / "schemas.json"


def shipped_schemas() -> tuple[ToolSchema, ...]:
    return tuple(ToolSchema(**schema) for schema in json.loads(SHIPPED_SCHEMAS.read_text("utf-8")))
