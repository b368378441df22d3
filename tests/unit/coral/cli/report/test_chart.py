"""Curves as SVG: nothing that counts is left out, what is left out is said, and of any figures a picture comes."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given, strategies as st

from attempts.record import Direction, Verdict
from coral.cli.report.chart import COLOURS, AxisScale, Chart, bounds, colour_of, description, draw
from coral.views.curve import BestStep, Curve, Point

NEW, OWN, WORSE, FAILED = Verdict.NEW_BEST, Verdict.OWN_BEST, Verdict.WORSE, Verdict.FAILED


def curve(*values: float, points: tuple[Point, ...] = (), direction: Direction = Direction.MAXIMIZE) -> Curve:
    steps = [BestStep(place * 10.0, place, value) for place, value in enumerate(values)]
    own = {"ann": steps, "bob": steps[:1]}
    return Curve(direction, steps, own, points, max(len(values) * 10.0, 100.0))


def drawn(of: Curve, scale: AxisScale = AxisScale.SCORE, **more: object) -> tuple[Chart, ElementTree.Element]:
    made = draw(of, scale, 900, 340, title="A <title>", **more)  # type: ignore[arg-type]  # agents
    return made, ElementTree.fromstring(made.svg)


def classes(picture: ElementTree.Element) -> list[str]:
    return [str(part.get("class")) for part in picture.iter() if part.get("class")]


@pytest.mark.parametrize(
    ("values", "has_seed", "said"),
    [
        ((1.0,), True, "The seed scores 1; nothing has beaten it for 1 min 40 s."),
        ((1.0, 2.0), True, "From the seed's 1 to 2 (#1) in 1 step, the last after 10 s of 1 min 40 s; 0 attempts."),
        (
            (1.0,),
            False,
            "The seed has no score. #0 was the first to have one, 1, after 0 s of 1 min 40 s, and nothing has beaten "
            "it; 0 attempts.",
        ),
        (
            (1.0, 2.0),
            False,
            "The seed has no score. From 1 (#0), the first step, to 2 (#1) in 2 steps, the last after 10 s of "
            "1 min 40 s; 0 attempts.",
        ),
    ],
)
def test_a_picture_is_described_with_what_it_begins_with(values: tuple[float], has_seed: bool, said: str) -> None:
    assert description(replace(curve(*values), has_seed=has_seed)) == said


def test_a_picture_is_described_as_the_seeds_when_that_is_the_best_again() -> None:
    steps = [BestStep(0.0, 0, 1.0), BestStep(10.0, 1, 0.5), BestStep(90.0, 0, 1.0)]
    said = description(Curve(Direction.MAXIMIZE, steps, end=100.0))
    assert said.startswith("The seed scores 1; it is the best again after 1 min 30 s of 1 min 40 s, ")
    assert "#" not in said


def test_attempts_are_coloured_by_their_verdict() -> None:
    points = tuple(
        Point(at, int(at), "ann", verdict, None if verdict is FAILED else 1.5)
        for at, verdict in ((5.0, NEW), (15.0, OWN), (25.0, WORSE), (35.0, Verdict.TIED), (45.0, FAILED))
    )
    _, picture = drawn(curve(1.0, 2.0, points=points))
    assert {"mark new-best", "mark own-best", "dots worse", "dots tied", "failed"} <= set(classes(picture))
    titles = [part.text for part in picture.iter("{http://www.w3.org/2000/svg}title")]
    assert titles == ["A <title>", "#15 by ann: 1.5, own best", "#5 by ann: 1.5, new best"]


def test_every_new_best_is_drawn_however_many_attempts_there_are() -> None:
    points = [Point(float(at), at, "ann", NEW if at % 100 == 0 else WORSE, at / 1e5) for at in range(100_000)]
    made, picture = drawn(curve(0.0, 1.0, points=tuple(points)))
    marks = classes(picture).count("mark new-best")
    dots = sum(
        len(re.findall("M", part.get("d") or "")) for part in picture.iter() if part.get("class") == "dots worse"
    )
    assert marks == 1000
    assert 100 < dots < 5000
    assert made.left_out + marks + dots == 100_000
    assert len(made.svg) < 300_000


def test_so_many_new_bests_become_one_path() -> None:
    points = [Point(float(at), at, "ann", NEW, at / 1e4) for at in range(10_000)]
    made, picture = drawn(curve(0.0, 1.0, points=tuple(points)))
    path = next(part for part in picture.iter() if part.get("class") == "dots new-best")
    assert len(re.findall("M", path.get("d") or "")) == 10_000
    assert made.left_out == 0


def test_what_lies_below_the_axis_is_at_its_edge_which_is_said() -> None:
    points = (Point(5.0, 1, "ann", WORSE, -1e9), Point(6.0, 2, "ann", WORSE, 2.625), Point(7.0, 3, "ann", FAILED, None))
    made, picture = drawn(curve(1.82, 2.62, 2.63, 2.636, points=points))
    dots = next(part.get("d") or "" for part in picture.iter() if part.get("class") == "dots worse")
    edge = next(part.get("y1") for part in picture.iter() if part.get("class") == "base")
    assert next(y for _, y in re.findall(r"M([\d.]+) ([\d.]+)h0", dots)) == edge
    assert "at the lower edge: what scores less than 2.6" in made.svg
    assert made.begins == BestStep(10.0, 1, 2.62)
    assert (made.outside, made.left_out) == (1, 0)
    low, high = bounds(curve(1.82, 2.62, 2.63, 2.636), AxisScale.SCORE) or (0.0, 0.0)
    assert 2.61 < low < 2.62 < 2.636 < high < 2.64
    gap, _ = drawn(curve(1.82, 2.62, 2.63, 2.636, points=points), AxisScale.GAP)
    assert gap.outside == 0, "a logarithm has room for all"
    assert "edge" not in gap.svg + drawn(curve(1.0, 2.0))[0].svg
    less = curve(90.0, 1.1, 1.05, 1.0, direction=Direction.MINIMIZE)
    assert "at the upper edge: what scores more than 1.1" in drawn(less)[0].svg


@pytest.mark.parametrize("direction", Direction)
def test_a_gap_falls(direction: Direction) -> None:
    values = (1.0, 2.0, 2.9, 3.0) if direction is Direction.MAXIMIZE else (5.0, 4.0, 3.1, 3.0)
    _, picture = drawn(curve(*values, direction=direction), AxisScale.GAP)
    path = next(part.get("d") or "" for part in picture.iter() if part.get("class") == "line fleet")
    heights = [float(y) for y in re.findall(r"V([\d.]+)", path)]
    assert heights == sorted(heights), "down the page"
    assert len(heights) == 3


def test_each_agent_has_a_line_and_the_first_a_colour() -> None:
    _, picture = drawn(curve(1.0, 2.0), agents=("ann", "bob"))
    assert {"line agent-1", "line agent-2", "line behind"} <= set(classes(picture))
    assert not [name for name in classes(picture) if name.startswith(("mark", "dots"))]
    assert colour_of(COLOURS) == "other"


def test_there_is_nothing_to_draw() -> None:
    assert draw(Curve(Direction.MAXIMIZE), AxisScale.SCORE, 900, 340, title="") == Chart("")  # type: ignore[arg-type]
    assert not draw(curve(1.0), AxisScale.GAP, 900, 340, title="").svg
    assert draw(curve(1.0), AxisScale.SCORE, 900, 340, title="").svg


FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(
    st.lists(FINITE, min_size=1, max_size=8),
    st.lists(st.tuples(st.floats(0, 1e9), st.one_of(st.none(), FINITE), st.sampled_from(Verdict)), max_size=8),
    st.sampled_from(AxisScale),
    st.sampled_from(Direction),
)
def test_a_picture_of_anything(
    values: list[float],
    given_points: list[tuple[float, float | None, Verdict]],
    scale: AxisScale,
    direction: Direction,
) -> None:
    points = tuple(Point(at, 1, "ann", verdict, score) for at, score, verdict in given_points)
    made = draw(curve(*values, points=points, direction=direction), scale, 360, 280, title="")
    assert "nan" not in made.svg
    assert "inf" not in made.svg
    if made.svg:
        ElementTree.fromstring(made.svg)
