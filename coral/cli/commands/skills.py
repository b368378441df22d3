"""`coral skills`: lists what agents wrote down for reuse, shows one in full, or runs the tests of skills."""

import argparse
from dataclasses import asdict

from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from coral.cli import EXIT_USER_ERROR
from coral.cli.parser import Parser, print_json
from coral.cli.run_data import run_lookup
from coral.cli.run_data.skill_tests import as_text, last_test, run_tests
from coral.cli.ui.markdown import markdown
from coral.cli.ui.table import console, dim, print_table
from coral.errors import CoralError
from coral.reading.knowledge_view import folders
from coral.reading.run_view import names_in
from workspace.knowledge import Skill, list_skills
from workspace.layout import Layout


def add_arguments(parser: Parser) -> None:
    parser.exit_codes = {0: "shown; with --test: every test passed", EXIT_USER_ERROR: "refused, or a test failed"}
    parser.add_argument("--read", metavar="NAME", help="one of them in full")
    parser.add_argument("--test", action="store_true", help="run the tests that skills bring along, each in a sandbox")
    parser.add_argument("--json", action="store_true", help="for programs")
    run_lookup.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    layout = run_lookup.run_of(args)
    skills = [skill for folder in folders(layout) for skill in list_skills(folder)]
    if args.read:
        skills = [_named(skills, args.read)]
    if args.test:
        return _test(layout, skills, as_json=args.json)
    if args.json:
        return print_json([{**asdict(skill), "test": last_test(layout, skill)[0]} for skill in skills])
    if not skills:
        print("no skills yet: agents distil them from notes as they consolidate")
    elif args.read:
        _read(skills[0])
    else:
        _list(layout, skills)
    return 0


def _list(layout: Layout, skills: list[Skill]) -> None:
    rows = []
    for skill in skills:
        test, fails = last_test(layout, skill)
        shown = Text(test, style="red" if fails else "dim")
        author = f"{skill.author} (earlier run)" if skill.is_earlier else skill.author
        rows.append([Text(skill.name, style="bold"), author, skill.description, shown])
    print_table(("skill", "author", "description*", "test*?"), rows)


def _test(layout: Layout, skills: list[Skill], *, as_json: bool) -> int:
    """Run the tests of skills and print the results; return exit code 1 if one fails."""
    outcomes = [(skill, outcome) for skill in skills if (outcome := run_tests(layout, skill)) is not None]
    if as_json:
        print_json([{"skill": skill.name, **asdict(outcome)} for skill, outcome in outcomes])
    elif not outcomes:
        print("no skill has a test: `test.sh` or `test_*.py` beside its SKILL.md is one")
    else:
        print_table(("skill", "test*"), [[skill.name, as_text(outcome)] for skill, outcome in outcomes])
    return 0 if all(outcome.passed for _, outcome in outcomes) else EXIT_USER_ERROR


def _read(skill: Skill) -> None:
    out = console()
    out.print(Rule(Text.assemble((skill.name, "bold"), dim(f"  {skill.author}")), align="left", style="cyan"))
    out.print(Padding(Text(skill.description, style="italic"), (0, 0, 1, 2)))
    out.print(markdown(skill.body))
    others = [name for name in names_in(skill.path.parent) if name != skill.path.name]
    if others:
        out.print(dim(f"beside it in {skill.path.parent}: {', '.join(others)}"))


def _named(skills: list[Skill], name: str) -> Skill:
    for skill in skills:
        if name in (skill.name, skill.path.parent.name):
            return skill
    names = ", ".join(skill.name for skill in skills) or "none yet"
    raise CoralError(f"cannot read the skill {name!r}: there is none of that name", f"there are: {names}")
