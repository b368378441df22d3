"""`coral plot`: draws the score of a run over time as a picture."""

import argparse

from attempts.files import expanded
from coral.cli.parser import print_json
from coral.cli.run_data import run_lookup
from coral.cli.run_data.write_file import write_result
from coral.reading.run_view import RunView


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="RUN", help="its folder or name (default: the run around here)")
    what = "an SVG, or with the extra [plot] a PNG, PDF, JPG, WebP or EPS (default: curve.svg)"
    parser.add_argument("-o", "--output", metavar="FILE", default="curve.svg", help=what)
    parser.add_argument("--gap", action="store_true", help="how far from the best, on a logarithmic scale")
    parser.add_argument("--force", action="store_true", help="replace FILE if it exists")
    parser.add_argument("--json", action="store_true", help="for programs: run, file, bytes")
    run_lookup.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    args.run = args.name or args.run
    view = RunView(run_lookup.run_of(args))
    from coral.cli.report.chart import AxisScale
    from coral.cli.report.picture import picture
    from coral.reading.curve import read_curve
    from coral.reading.timeline import read_figures

    target = expanded(args.output)
    curve = read_curve(view, read_figures(view.layout).clocks)
    data = picture(
        curve, AxisScale.GAP if args.gap else AxisScale.SCORE, f"{view.task} {view.name}", target.suffix.lower()
    )
    write_result(target, data, force=args.force)
    if args.json:
        return print_json({"run": view.name, "file": str(target), "bytes": len(data)}, None)
    print(f"{target}: the score of {view.name} over time")
    return 0
