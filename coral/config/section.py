"""What the sections of task.yaml are made of: strict, frozen, and the bounds that many of their values have."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, JsonValue, Strict

DAY = 86400.0
Seconds = Annotated[float, Field(gt=0, le=30 * DAY, allow_inf_nan=False)]
Grace = Annotated[float, Field(ge=0, le=DAY, allow_inf_nan=False)]
Text = Annotated[str, Field(min_length=1)]
Texts = Annotated[tuple[Text, ...], Strict(False)]  # YAML gives lists; a tuple cannot change afterwards
Options = dict[str, JsonValue]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
