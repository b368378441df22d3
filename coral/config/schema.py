"""The JSON Schema of task.yaml, for editors. `python -m coral.config.schema` writes the file that is shipped."""

import json
from pathlib import Path

from coral.config.model import TaskFile

SHIPPED = Path(__file__).with_name("task.schema.json")
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema() -> str:
    """Return the text of the schema file, which is the same for the same models."""
    return json.dumps({"$schema": DIALECT, **TaskFile.model_json_schema()}, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    SHIPPED.write_text(schema(), encoding="utf-8")
