"""The tools by name: gives the model their schemas, and reads its calls. The tools themselves are imported when the
first call comes, since pydantic takes longer to import than all else before the first request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING

from coral.native.llm import plugins
from coral.native.llm.conversation import ToolCall
from coral.native.llm.request import ToolSchema
from coral.native.llm.tool_schemas import shipped_schemas
from coral.native.tool_error import ToolError

if TYPE_CHECKING:
    from coral.native.llm.tools.base import AgentTool

EXAMPLE = '<call name="check">{"request_heartbeat": true}</call>'


class Toolset:
    """The shipped tools and the task's. `own`: those of the task; one with the name of a shipped tool replaces that."""

    def __init__(self, own: Sequence[type[AgentTool]] = ()) -> None:
        self._own = tuple(own)

    @cached_property
    def schemas(self) -> tuple[ToolSchema, ...]:
        schemas = {schema.name: schema for schema in shipped_schemas()}
        if self._own:
            from coral.native.llm.tools.arguments import schema_of

            schemas |= {tool.name: schema_of(tool) for tool in self._own}
        return tuple(schemas.values())

    @cached_property
    def _tools(self) -> Mapping[str, type[AgentTool]]:
        from coral.native.llm.tools.shipped import SHIPPED_TOOLS

        return {tool.name: tool for tool in (*SHIPPED_TOOLS, *self._own)}

    def find(self, call: ToolCall) -> AgentTool | None:
        """Return the tool of a call with its arguments; None if there is none, or they are wrong."""
        try:
            return self.read(call)
        except ToolError:
            return None

    def read(self, call: ToolCall) -> AgentTool:
        """Return the tool of a call with its arguments. ToolError says what is wrong, and what would have been
        right."""
        tool = self._tools.get(call.name)
        if not call.name:
            raise ToolError(f"a call has the name of a tool and a JSON object; as text: {EXAMPLE}")
        if tool is None:
            close = get_close_matches(call.name, self._tools, n=1)
            hint = f"did you mean {close[0]}? " if close else ""
            raise ToolError(f"there is no tool {call.name!r}; {hint}there are {', '.join(self._tools)}")
        return plugins.read(tool, call)
