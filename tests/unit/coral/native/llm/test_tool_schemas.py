"""What the model is shown of the tools: kept in a file, so that no launch has to derive it."""

import json

from coral.native.llm.tool_schemas import SHIPPED_SCHEMAS, shipped_schemas
from coral.native.llm.tools.arguments import schema_of
from coral.native.llm.tools.shipped import SHIPPED_TOOLS, schemas_text
from coral.native.llm.toolset import Toolset


def test_the_file_is_what_the_tools_say() -> None:
    """After a change of a tool: `python -m coral.native.llm.tools.shipped`."""
    assert SHIPPED_SCHEMAS.read_text("utf-8") == schemas_text()
    assert shipped_schemas() == tuple(map(schema_of, SHIPPED_TOOLS))


def test_every_tool_asks_for_a_heartbeat_and_explains_itself() -> None:
    for schema in shipped_schemas():
        assert "request_heartbeat" in schema.parameters["required"], schema.name
        assert schema.description
        assert '"title"' not in json.dumps(schema.parameters["properties"].get("action", {}))


def test_a_tool_of_the_task_takes_the_place_of_ours() -> None:
    class Check(SHIPPED_TOOLS[0]):  # type: ignore[misc,valid-type]
        """Another check."""

        name = "check"

    shown = {schema.name: schema.description for schema in Toolset([Check]).schemas}
    assert shown["check"] == "Another check."
    assert list(shown) == [tool.name for tool in SHIPPED_TOOLS]
