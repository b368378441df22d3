"""The shipped tools, and the file of their schemas, by which the model is shown them before any is imported.

`python -m coral.native.llm.tools.shipped` writes `schemas.json` anew; a test says when it must.
"""

import json
from collections.abc import Mapping

from coral.native.llm.tool_schemas import SHIPPED_SCHEMAS
from coral.native.llm.tools import commands, files, knowledge, memory, submit
from coral.native.llm.tools.arguments import schema_of
from coral.native.llm.tools.base import AgentTool

SHIPPED_TOOLS: tuple[type[AgentTool], ...] = (
    *(memory.SendMessage, files.ReadFile, files.ListFiles, files.SearchFiles, files.EditFile, files.WriteFile),
    *(commands.RunCommand, commands.RunCheck, submit.SubmitTool, commands.Log, commands.Show, commands.Checkout),
    *(knowledge.Notes, knowledge.Skills, knowledge.HandOverTool, commands.JobTool),
    *(memory.CoreMemoryAppend, memory.CoreMemoryReplace, memory.Recall),
)


def schemas_text() -> str:
    """Return what `schemas.json` has to hold."""
    schemas: list[Mapping[str, object]] = []
    for schema in map(schema_of, SHIPPED_TOOLS):
        schemas.append({"name": schema.name, "description": schema.description, "parameters": schema.parameters})
    return json.dumps(schemas, indent=1) + "\n"


if __name__ == "__main__":
    SHIPPED_SCHEMAS.write_text(schemas_text(), encoding="utf-8")
