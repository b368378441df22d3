"""Makes the schema of a tool's arguments for the model, and reads the arguments of a call; errors say which arguments
would have been right."""

import json
from collections.abc import Mapping
from inspect import cleandoc
from typing import Any

from pydantic import ValidationError

from coral.native.llm.conversation import ToolCall
from coral.native.llm.request import ToolSchema
from coral.native.llm.tools.base import AgentTool
from coral.native.tool_error import ToolError


def read_arguments(tool: type[AgentTool], call: ToolCall) -> AgentTool:
    """Return the tool with the arguments of the call. ToolError says what is wrong with them."""
    try:
        arguments: object = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError) as problem:
        raise ToolError(f"the arguments are not JSON: {problem}. {_right(tool)}") from None
    try:
        return tool.model_validate(arguments)
    except ValidationError as problem:
        found = problem.errors(include_url=False)[:5]
        wrong = "; ".join(f"{'.'.join(map(str, error['loc'])) or 'arguments'}: {error['msg']}" for error in found)
        raise ToolError(f"the arguments are wrong: {wrong}. {_right(tool)}") from None


def _right(tool: type[AgentTool]) -> str:
    """Describe the arguments that a tool takes, in one line."""
    schema = tool.model_json_schema()
    return (
        f"{tool.name} takes {_fields(schema, schema.get('$defs', {}))}; a question mark means that it may be left out"
    )


def _fields(schema: Mapping[str, Any], models: Mapping[str, Any]) -> str:
    """Describe an object. `models`: the schemas that are named by reference."""
    required = set(schema.get("required", ()))
    parts = schema["properties"].items()
    named = [f"{name}{'' if name in required else '?'}: {_kind(part, models)}" for name, part in parts]
    return f"{{{', '.join(named)}}}"


def _kind(part: Mapping[str, Any], models: Mapping[str, Any]) -> str:
    part = models.get(str(part.get("$ref")).rpartition("/")[2], part)
    if "properties" in part:
        return _fields(part, models)
    if "enum" in part:
        return " | ".join(json.dumps(value) for value in part["enum"])
    kind = str(part.get("type", "object"))
    return f"list of {_kind(part['items'], models)}" if kind == "array" and "items" in part else kind


def schema_of(tool: type[AgentTool]) -> ToolSchema:
    parameters = _plain(tool.model_json_schema())
    parameters.pop("description", None)
    return ToolSchema(name=tool.name, description=cleandoc(tool.__doc__ or tool.name), parameters=parameters)


def _plain(part: Any) -> Any:
    """Return a schema without the titles that pydantic adds: they cost tokens and say nothing."""
    if isinstance(part, dict):
        return {key: _plain(value) for key, value in part.items() if not (key == "title" and isinstance(value, str))}
    return [_plain(value) for value in part] if isinstance(part, list) else part
