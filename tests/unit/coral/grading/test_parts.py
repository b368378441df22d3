"""What of Coral is copied to run a grader elsewhere is there, and is all that it needs to be imported."""

import ast

from coral.grading.parts import PACKAGE, PARTS


def test_the_parts_import_nothing_of_coral_but_each_other() -> None:
    names = {f"coral.{part.removesuffix('.py').replace('/', '.')}".removesuffix(".__init__") for part in PARTS}
    imported = set[str]()
    for part in PARTS:
        for node in ast.parse((PACKAGE / part).read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("coral"):
                imported.add(node.module)
    assert imported
    assert imported <= names
    assert {"coral.grading.runner", "coral.grader.candidate"} <= names
