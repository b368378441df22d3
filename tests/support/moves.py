"""Histories for property tests: lists of moves that Hypothesis draws, and what each move does to a `World`.

A move is a kind and two figures, which choose what is left open: the agent, the seconds, the request. `calm` lets a run
come to rest after a history, so that a test can assert what must hold in the end.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from cases import TIMES
from hypothesis import HealthCheck, given, settings, strategies as st
from stage import SEED, on_request
from world import NAMES, OBEDIENT, UNKILLABLE, Process, World

from attempts.noise import NoiseSetting
from attempts.record import Direction, Kind, Submission
from attempts.standing import Scoring
from coral.fleet import events as on
from coral.fleet.agent_state import Order
from coral.fleet.agents.stalls import is_resting
from coral.fleet.events import Ending
from coral.fleet.members import WantedMember
from coral.fleet.rules import Rules
from heartbeats.heartbeat import Delivery, Heartbeat, Scope
from heartbeats.trigger import Elapsed, Every, Stagnant

Move = tuple[str, int, int]
History = tuple[Rules, tuple[Move, ...]]

ENDINGS = (Ending.CLEAN, Ending.CRASHED, Ending.LIMIT, Ending.UNKNOWN_SESSION, Ending.TERMINAL, Ending.INTERRUPTED)
MACHINE: tuple[on.Event, ...] = (
    on.MachineChecked(short=(on.Shortage.MEMORY, on.Shortage.LOAD), free=0.01, load=20.0),
    on.MachineChecked(short=()),
    on.Slept(seconds=7200.0),
    on.ClockSet(seconds=-90.0),
    on.WatchFailed(reason="no more watches"),
    on.WatchFailed(reason=""),
    on.ClusterChecked(problem="no head"),
    on.ClusterChecked(problem=""),
    on.NodesExcluded(nodes={"h": "its disk is full"}),
    on.NodesExcluded(nodes={}),
    on.AgentsClusterChecked(problem="no head"),
    on.AgentsClusterChecked(problem=""),
)
SECONDS = (0.125, 0.125, 1.0, 1.0, 5.0, 5.0, 30.0, 61.0, 200.0, 700.0)
TREES = 10
CALM_SECONDS = 2000.0
REQUESTS: tuple[on.Request, ...] = (
    on.Tell(to="*", text="to all"),
    on.Tell(to="ann", text="to ann"),
    on.SetHeartbeat(owner="ben", entry={"name": "mine", "every": 1, "prompt": "mine", "delivery": "inline"}),
    on.RaiseAlert(text="alert"),
)
CHANGES: tuple[on.Request, ...] = (
    on.SetHeartbeat(owner="*", entry={"name": "reflect", "every": 2}),
    on.SetHeartbeat(owner="*", entry={"name": "reflect", "every": 1}),
    on.SetHeartbeat(owner="fleet", entry={"name": "consolidate", "every": 5}),
    on.SetHeartbeat(owner="fleet", entry={"name": "consolidate", "every": 2}),
    on.SetHeartbeat(owner="*", entry={"name": "checkpoint", "seconds": 30}),
    on.RemoveHeartbeat(owner="*", name="redirect"),
    on.ResetHeartbeats(owner="*"),
)
ORDERS: tuple[on.Steering, ...] = (
    on.Pause(agent="ann"),
    on.Unpause(agent="ann"),
    on.Pause(agent="ben"),
    on.Unpause(agent="ben"),
    on.Restart(agent="ann", fresh=False),
    on.Restart(agent="ben", fresh=True),
    on.Retire(agent="ann"),
    on.HoldGrading(),
    on.ReleaseGrading(),
    on.AnswerQuestion(number=1, text="yes"),
    on.AcknowledgeAlerts(through=None),
    on.AcknowledgeAlerts(through=2),
    on.CancelGrade(number=1),
    on.CancelGrade(number=3),
    on.CancelGrade(number=5),
    on.SetBudget(key="hours", limit=0.02),
    on.SetBudget(key="attempts", limit=7),
    on.SetBudget(key="per_agent.attempts", limit=3),
    on.SetBudget(key="per_agent.attempts", limit=None),
    on.SetBudget(key="attempts", as_task=True),
    on.AddAgent(wanted=WantedMember()),
    on.AddAgent(name="dot", wanted=WantedMember(runtime="other")),
    on.MoveAgent(agent="ann", wanted=WantedMember(model="large")),
    on.MoveAgent(agent="ann", wanted=WantedMember(runtime="other", role="Draft.")),
    on.MoveAgent(agent="ben", wanted=WantedMember(runtime="first")),
    on.MoveAgent(agent="dot", wanted=WantedMember(runtime="first")),
)

HEARTBEATS = (
    Heartbeat(name="reflect", trigger=Every(1), protected=True),
    Heartbeat(name="consolidate", trigger=Every(3), scope=Scope.FLEET, protected=True),
    Heartbeat(name="redirect", trigger=Stagnant(2)),
    Heartbeat(name="stuck", trigger=Stagnant(3), scope=Scope.FLEET, prompt="look up"),
    Heartbeat(name="checkpoint", trigger=Elapsed(100)),
    Heartbeat(name="pulse", trigger=Elapsed(250), scope=Scope.FLEET, prompt="tick"),
    Heartbeat(name="tip", trigger=Every(2), delivery=Delivery.INLINE, prompt="mind the gap"),
)

RULES = st.builds(
    Rules,
    scoring=st.builds(
        Scoring,
        direction=st.sampled_from(Direction),
        noise=st.sampled_from(
            [NoiseSetting(), NoiseSetting(), NoiseSetting(deviation=0.2), NoiseSetting(deviation=None)]
        ),
    ),
    slots=st.integers(1, 3),
    holdout_timeout=st.sampled_from([None, None, 20.0]),
    grade_timeout=st.sampled_from([20.0, 300.0]),
    seed_commit=st.just(SEED),
    heartbeats=st.sets(st.sampled_from(HEARTBEATS)).map(lambda chosen: tuple(h for h in HEARTBEATS if h in chosen)),
    stall=st.sampled_from([150.0, 1200.0]),
    ttl=st.sampled_from([{}, {"tool": 225.0}, {"tool": 90.0, "starting": 180.0}]),
    interrupt_grace=st.sampled_from([0.0, 10.0]),
    terminate_grace=st.sampled_from([0.0, 5.0]),
    start_grace=st.sampled_from([0.0, 60.0]),
    max_defer=st.sampled_from([0.0, 40.0, 600.0]),
    backoff=st.sampled_from([0.1, 5.0]),
    backoff_max=st.sampled_from([30.0, 600.0]),
    breaker_crashes=st.sampled_from([2, 6]),
    breaker_pause=st.sampled_from([20.0, 300.0]),
    accounts=st.sampled_from([{}, {}, dict.fromkeys(NAMES, "acme"), dict.fromkeys(NAMES[:2], "acme")]),
    research=st.sampled_from([{}, {}, {}, dict.fromkeys(NAMES[:2], 60.0)]),
    stagger=st.sampled_from([0.05, 0.0, 30.0]),
    no_progress=st.sampled_from([None, 100.0, 400.0]),
    outage=st.sampled_from([900.0, 50.0]),
    retries=st.sampled_from([30, 3]),
    fresh_compactions=st.sampled_from([None, 1, 2]),
    fresh_tokens=st.sampled_from([None, 3000]),
)
BUDGETS = st.fixed_dictionaries(
    {},
    optional={
        "budget_attempts": st.integers(1, 6),
        "budget_seconds": st.sampled_from([50.0, 400.0]),
        "target": st.sampled_from([0.0, 2.25, 4.0]),
    },
)


# Kinds of moves, as often as each is to be drawn.
WORK = ["try"] * 8 + ["submit"] * 4 + ["print"] * 4 + ["grade"] * 4 + ["ack", "look", "look", "look", "look"]
TIME = ["wait"] * 6
STALLS = ["idle"] * 4 + ["edit", "edit silently", "retry", "retry", "compact", "use", "use"]
TROUBLE = ["end", "end", "mute", "deaf", "clean", "deafgrade", "broken", "spoil", "ask", "blind", "echo", "wall"]
TROUBLE += ["machine"]
JOBS = ["job"] * 3 + ["end job"] * 2 + ["stop job"]
DEATH = ["die", "leave", "resume", "again"]
RELOAD = ["reload"] * 2
STEER = ["order"] * 6
SCORES = (0.5, 1.0, 3.0)  # of a changed task's seed


def histories(*kinds: list[str], budgets: bool = False) -> st.SearchStrategy[History]:
    """Return a strategy for histories: the rules of a run, and moves of these kinds."""
    figures = st.integers(0, 99)
    move = st.tuples(st.sampled_from([name for kind in kinds for name in kind]), figures, figures)
    # Without a least size, Hypothesis would mostly draw short lists, in which nothing happens.
    moves = st.lists(move, min_size=25, max_size=60).map(tuple)
    rules = st.builds(lambda rules, budget: replace(rules, **budget), RULES, BUDGETS) if budgets else RULES
    return st.tuples(rules, moves)


def over(*kinds: list[str], budgets: bool = False, examples: int = 40) -> Callable[[Any], Any]:
    """Make a test a property over histories of these kinds of moves. `examples`: how many, times the variable
    `TIMES`."""
    quick = settings(
        max_examples=examples * TIMES, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    return lambda test: quick(given(histories(*kinds, budgets=budgets))(test))


def play(history: History, tick: float = 0.0) -> World:
    """Make these moves in a new world, which is returned. The supervisor gathers at some moves alone, such as `wait`
    and `look`, so that all that happened before comes as one batch of events."""
    rules, moves = history
    if rules.target is not None and not rules.scoring.direction.better(rules.target, 1.0):
        rules = replace(rules, target=None)  # the seed has reached it
    world = World(rules, tick=tick)
    for move in moves:
        make(world, move)
    return world


def make(world: World, move: Move) -> None:  # noqa: C901 - one arm per kind of move
    kind, x, y = move
    match kind:
        case "look":
            world.look()
        case "idle":
            idle(world, NAMES[x % len(NAMES)], (60.0, 120.0, 600.0)[y % 3])
        case "wait":
            world.resume()  # where nobody supervises, no time passes
            world.wait(SECONDS[x % len(SECONDS)])
        case "try":
            try_at_once(world, _named(world, x), y)
        case "die":
            world.die(x % 8 - 1)
        case "leave":
            ask(world, "operator", on.Leave(end=on_request("an upgrade")))
            world.look()
        case "resume":
            world.resume()
        case "reload":
            if world.fleet.run.opened:
                world.stage_task(SCORES[x % len(SCORES)])
                world.die(y % 8 - 1)
                world.resume()
        case "again":
            world.look(on.Resumed())
        case "echo":
            world.look(*[event for event in world.heard_of[x : x + y % 6] if not isinstance(event, on.Opened)])
        case "wall":
            world.wall = (0, 7, 1_000_000, 10**12)[x % 4]
        case "blind":
            world.blind = x % 4 == 0
        case "machine":
            world.happened.append(MACHINE[x % len(MACHINE)])
        case "mute":
            world.mute ^= {NAMES[x % len(NAMES)]}
        case "broken":
            world.broken = x % 4 == 0
        case "spoil":
            world.spoilt = x % 3
        case "ask":
            ask(world, ("operator", *NAMES)[y % 4], REQUESTS[x % len(REQUESTS)])
        case "order":
            ask(world, "operator" if y % 9 else "ann", ORDERS[x % len(ORDERS)])
        case "change":
            ask(world, "operator", CHANGES[x % len(CHANGES)])
        case "stop":
            ask(world, "operator", on.Stop(end=on_request("enough")))
        case "job":
            command = on.RunJob(agent=NAMES[x % len(NAMES)], argv=("train",))
            ask(world, command.agent if y % 4 else "operator", command)
        case "stop job":
            ask(world, ("operator", *NAMES)[y % 4], on.StopJob(number=x % 4 + 1))
        case "end job":
            jobs = [
                process
                for process in world.processes.values()
                if process.who.startswith("%") and process.ending is None
            ]
            if jobs:
                _do_to_grader(jobs[x % len(jobs)], "deafgrade" if y % 3 == 0 else "grade", y)
        case "grade" | "deafgrade":
            graders = [
                process
                for process in world.processes.values()
                if process.who.startswith("#") and process.ending is None
            ]
            if graders:
                _do_to_grader(graders[x % len(graders)], kind, y)
        case _:
            process = world.processes.get(_named(world, x))
            if process is not None:
                _do_to_agent(world, process, kind, y)


def _named(world: World, x: int) -> str:
    """Return the name of an agent, of those that the operator has added too."""
    names = dict.fromkeys([*NAMES, *world.fleet.agents])
    return list(names)[x % len(names)]


def ask(world: World, sender: str, request: on.Request) -> None:
    world.given += 1
    id = f"request-{world.given}"
    if isinstance(request, on.Tell):
        request = replace(request, text=id)  # so that each message is told from the others
    world.requests[id] = on.Requested(sender=sender, id=id, request=request)


def try_at_once(world: World, agent: str, code: int) -> None:
    """Let an agent make a whole attempt; the supervisor gathers after the submission and after the grade."""
    process = world.processes.get(agent)
    if process is None:
        return
    _do_to_agent(world, process, "submit", code)
    world.look()
    grader = world.processes.get(f"#{world.fleet.run.next_number - 1}")
    if grader is not None:
        _do_to_grader(grader, "grade", 0)
    world.look()


def idle(world: World, agent: str, seconds: float) -> None:
    """Let an agent make no progress for so many seconds; from 600 on it prints nothing either. It obeys every
    signal."""
    world.resume()
    for _ in range(int(seconds / 30.0)):
        process = world.processes.get(agent)
        if process is not None:
            process.deaf, process.leftovers = OBEDIENT, False
            if process.ending is None and seconds < 600.0:
                _do_to_agent(world, process, "print", 0)
        world.look()
        world.wait(30.0)


def _do_to_grader(grader: Process, kind: str, code: int) -> None:
    if kind == "deafgrade":
        grader.deaf = UNKILLABLE if grader.deaf == UNKILLABLE else code % 4  # by then it may have been given up
    else:
        grader.ending, grader.leftovers = Ending.CLEAN, code % 6 == 1


def _do_to_agent(world: World, process: Process, kind: str, code: int) -> None:
    if kind == "clean":
        process.leftovers = False
    elif kind == "deaf":
        process.deaf = code % 4
    elif process.ending is not None:
        return
    elif kind == "submit":
        world.given += 1
        submission = submission_of(world.given, process.who, code)
        world.inbox[submission.id] = world.handed[submission.id] = submission
    elif kind == "print":
        process.printed, process.unread, process.place = True, True, process.place + 1
        process.busy = ("", "tool", "thinking")[code % 3]
        process.reply = ("", "HEARTBEAT_OK", "ALERT: look here")[code // 3 % 3]
        process.count = replace(process.count, answered=process.count.retries)
    elif kind in ("edit", "retry", "compact", "use"):
        _count(process, kind)
    elif kind == "edit silently":
        process.silently = world.clock
    elif kind == "ack" and process.printed_inline:
        ask(world, process.who, on.Acknowledge(messages=tuple(process.printed_inline)))
        process.printed_inline = []
    elif kind == "end":
        process.ending, process.leftovers = ENDINGS[code % 6], code // 6 % 4 == 1


def _count(process: Process, kind: str) -> None:
    """Let an agent print something of a kind that `OutputCounts` or `Used` counts."""
    process.printed, process.unread, process.place = True, True, process.place + 1
    count = process.count
    match kind:
        case "edit":
            process.busy = ""
            process.count = replace(count, edits=count.edits + 1, answered=count.retries)
        case "compact":
            process.count = replace(count, compactions=count.compactions + 1)
        case "retry":
            process.count = replace(count, retries=count.retries + 2)
        case _:
            process.used += 2000


def submission_of(number: int, agent: str, code: int) -> Submission:
    """Return a submission. `code` chooses its tree and how long its `coral eval` waits, `number` its kind."""
    kind = (Kind.REAL, Kind.REAL, Kind.REAL, Kind.TUNE, Kind.REAL)[number % 5]
    return Submission(
        id=f"{number:020d}",
        agent=agent,
        commit=SEED[:32] + f"{number:08x}",
        tree=f"{code % TREES:040x}",
        title=f"try {number}",
        kind=kind,
        wait=(0.0, 5.0, 60.0, 1000.0)[code // TREES % 4],
        submitted_at="",
    )


def calm(world: World) -> World:
    """Let the run go on until everything has settled: faults end, budgets and pauses are lifted, every process obeys,
    and nothing is submitted. It takes CALM_SECONDS, counted again after each rest of a stalled agent."""
    world.rules = replace(world.rules, budget_attempts=None, budget_seconds=None, target=None)
    world.blind = world.broken = False
    world.mute = set()
    world.resume()
    world.look()  # what was asked for last is done first
    for name, agent in world.fleet.agents.items():
        if agent.order is Order.PAUSE:
            ask(world, "operator", on.Unpause(agent=name))
    if world.fleet.run.is_grading_held:
        ask(world, "operator", on.ReleaseGrading())
    for key in world.fleet.run.budgets:
        ask(world, "operator", on.SetBudget(key=key, as_task=True))
    world.happened += [on.MachineChecked(short=()), on.ClusterChecked(problem="")]
    world.spoilt, world.dying = 0, None
    world.requests = {
        id: request for id, request in world.requests.items() if not isinstance(request.request, on.Stop | on.Leave)
    }
    left = CALM_SECONDS
    while left > 0:
        left = CALM_SECONDS if any(is_resting(agent) for agent in world.fleet.agents.values()) else left - 40.0
        world.resume()
        for process in list(world.processes.values()):
            process.deaf, process.leftovers = OBEDIENT, False
            if process.who.startswith(("#", "%")):
                process.ending = Ending.CLEAN
            else:
                _do_to_agent(world, process, "ack", 0)
                _do_to_agent(world, process, "edit", 0)
        world.look()
        world.wait(40.0)
    return world
