"""The base of all tools: a pydantic model of a tool's arguments, which the model fills in, with what the tool does.

The docstring of a tool, the descriptions of its fields and the texts of its errors are read by the model.
"""

from abc import abstractmethod
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from coral.native.llm.workbench import Workbench

NEXT = "true: you get the result at once and make your next step. false: you yield; the outer loop has the next word."


class AgentTool(BaseModel):
    """The base class of tools. `works`: whether its calls change something."""

    model_config = ConfigDict(extra="forbid")
    name: ClassVar[str]
    works: ClassVar[bool] = False

    request_heartbeat: bool = Field(description=NEXT)

    @property
    def changes(self) -> bool:
        """Whether this call changes something when it succeeds, so that its turn counts as work."""
        return self.works

    @abstractmethod
    def perform(self, bench: Workbench) -> str:
        """Do what the tool does, and return its result. ToolError says what did not work and what would have worked."""
