"""The parts of which every section of task.yaml is made: strict, frozen models, keys with a sentence, types of
values."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Discriminator, Field, JsonValue, Strict, Tag

DAY = 86400.0
Finite = Annotated[float, Field(allow_inf_nan=False)]
Seconds = Annotated[Finite, Field(gt=0, le=30 * DAY)]
Grace = Annotated[Finite, Field(ge=0, le=DAY)]
Minutes = Annotated[Finite, Field(gt=0, le=1440)]
Price = Annotated[Finite, Field(ge=0, le=1_000_000)]
Money = Annotated[Finite, Field(gt=0, le=1e9)]
Gigabytes = Annotated[Finite, Field(gt=0, le=1e9)]
Count = Annotated[int, Field(ge=1, le=10**15)]
Text = Annotated[str, Field(min_length=1)]
Texts = Annotated[tuple[Text, ...], Strict(False)]  # YAML gives lists; a tuple cannot change afterwards
Options = dict[str, JsonValue]


def _number_or_text(value: object) -> str:
    return "text" if isinstance(value, str) else "number"


# What each pattern stands for is said by `coral.config.validate`.
NOISE_PATTERN = r"^(auto|[0-9]{1,6}(\.[0-9]{1,9})?%)$"
SPAN_PATTERN = r"^\d{1,6}(\.\d{1,6})? ?[smhd]$"
NoiseValue = Annotated[
    Annotated[Finite, Field(ge=0), Tag("number")] | Annotated[str, Field(pattern=NOISE_PATTERN), Tag("text")],
    Discriminator(_number_or_text),
]
AttemptsOrSpan = Annotated[
    Annotated[int, Field(ge=1, le=1_000_000), Tag("number")] | Annotated[str, Field(pattern=SPAN_PATTERN), Tag("text")],
    Discriminator(_number_or_text),
]


def key(description: str, default: Any = ..., **bounds: Any) -> Any:
    """Declare a key of a section. `description`: the sentence that editors show for it; `default`: a value or a
    function that makes one; without it, every task must give the key."""
    if callable(default):
        return Field(default_factory=default, description=description, **bounds)
    return Field(default=default, description=description, **bounds)


class Section(BaseModel):
    """A section is strict and frozen, and refuses unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
