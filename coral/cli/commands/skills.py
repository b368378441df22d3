"""`coral skills`: what the agents distilled for reuse, and each in full."""

import argparse
from dataclasses import asdict

from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from coral.cli.parser import print_json
from coral.cli.run_data import run_lookup
from coral.cli.run_data.knowledge_view import folders
from coral.cli.run_data.run_view import names_in
from coral.cli.ui.markdown import markdown
from coral.cli.ui.table import console, dim, print_table
from coral.errors import CoralError
from workspace.knowledge import Skill, list_skills


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--read", metavar="NAME", help="one of them in full")
    parser.add_argument("--json", action="store_true", help="for programs")
    run_lookup.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    layout = run_lookup.run_of(args)
    skills = [skill for folder in folders(layout) for skill in list_skills(folder)]
    if args.read:
        skills = [_named(skills, args.read)]
    if args.json:
        return print_json([asdict(skill) for skill in skills])
    if not skills:
        print("no skills yet: agents distil them from notes as they consolidate")
    elif args.read:
        _read(skills[0])
    else:
        rows = [[Text(skill.name, style="bold"), skill.author, skill.description] for skill in skills]
        print_table(("skill", "author", "description*"), rows)
    return 0


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
