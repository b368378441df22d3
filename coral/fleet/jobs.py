"""Jobs: what an agent runs beside its launches, such as a long training.

A job belongs to its agent: no launch of it ends the job, its end is told to the agent, and it ends when the agent
retires or the run stops. An agent whose turn ends meanwhile waits for it, or for a heartbeat, but not for ever.
"""

from coral.fleet import actions as do
from coral.fleet import events as on
from coral.fleet import stalls, tidings
from coral.fleet.draft import Draft
from coral.fleet.policy import KILL_AGAIN_SECONDS, MOST_JOBS, MOST_KILLS, back_off, runs_job
from coral.fleet.state import Agent, Job, JobEnd, Phase
from heartbeats.heartbeat import Refused

LAUNCH = 1  # of a job: it is started once
WAITS = "a job runs"  # why an agent starts no sooner
RUN_STOPPED = "the run stopped"
AGENT_RETIRED = "its agent has retired"
WHICH = "`coral job list` shows what runs"


def start(draft: Draft, wanted: on.StartJob) -> str:
    """Begin a job for an agent. Refused says why not."""
    agent, run = draft.agents.get(wanted.agent), draft.run
    if agent is None:
        raise Refused(f"cannot start a job of {wanted.agent!r}: there is no such agent", "coral status names them")
    if agent.phase is Phase.RETIRED:
        raise Refused(f"cannot start a job: {agent.name} has retired", "coral status shows who is at work")
    if run.stopping or run.left:
        raise Refused("cannot start a job: the run is stopping", "`coral resume` goes on with it")
    if run.lack:
        raise Refused(f"cannot start a job: {run.lack}", "ask again when there is space")
    count = sum(each.agent == agent.name for each in draft.jobs.values())
    if count >= MOST_JOBS:
        raise Refused(f"cannot start a job: {count} run already", "`coral job stop N` ends one of them")
    job = Job(
        number=run.jobs + 1,
        agent=agent.name,
        argv=wanted.argv,
        what=wanted.what,
        folder=wanted.folder,
        began=draft.wall,
        began_at=draft.clock,
        phase=Phase.WAITING,
    )
    draft.set_run(jobs=job.number)
    draft.jobs[job.number] = job
    return f"job {job.number} starts: `coral job log {job.number}` shows its output, and you are told when it ends"


def stop(draft: Draft, sender: str, number: int) -> str:
    """End a job in order. Its agent need not be told of what it asks for itself."""
    job = draft.jobs.get(number)
    if job is None or (sender in draft.agents and sender != job.agent):
        raise Refused(f"cannot stop job {number}: there is none that runs", WHICH)
    why = job.why or f"{sender} stopped it"
    draft.set_job(number, why=why, told=job.told or sender == job.agent)
    return f"job {number} ends"


def on_ended(draft: Draft, event: on.JobEnded) -> None:
    job = draft.jobs.get(event.number)
    if job is not None:
        _end(draft, job, _how(event.code), event)


def on_not_started(draft: Draft, number: int, reason: str) -> None:
    job = draft.jobs.get(number)
    if job is not None:
        _end(draft, job, f"could not be started: {reason}", on.JobEnded(number=number))


def on_lingered(draft: Draft, number: int) -> None:
    """Its command has ended, and left something behind: that is no job any more."""
    job = draft.jobs.get(number)
    if job is not None and job.phase in (Phase.RUNNING, Phase.INTERRUPTED):
        _terminate(draft, job)


def resume(draft: Draft, away: float) -> None:
    """They ran on meanwhile. Whether the signal went out before the last supervisor died is not known; twice does no
    harm."""
    for job in list(draft.jobs.values()):
        if job.phase is not Phase.WAITING:
            draft.set_job(job.number, away=job.away + away)
        if job.phase is Phase.INTERRUPTED:
            draft.act(do.Interrupt(who=job.who, launch=LAUNCH))


def advance(draft: Draft) -> None:
    """Jobs that begin, and those that must end: of a run that stops, of an agent that has retired, because somebody
    asked for it; and those that do not obey."""
    for job in list(draft.jobs.values()):
        why = job.why or _reason_to_end(draft, job)
        if job.phase is Phase.WAITING and why:
            _end(draft, draft.set_job(job.number, why=why), "was not started", on.JobEnded(number=job.number))
        elif job.phase is Phase.WAITING:
            draft.act(do.StartJob(job=draft.set_job(job.number, phase=Phase.RUNNING)))
            draft.note("job", f"job {job.number} starts: {job.title}", job.agent)
        elif job.phase is Phase.RUNNING and why:
            _interrupt(draft, job, why)
        elif job.phase is not Phase.RUNNING and draft.clock >= job.deadline:
            if job.phase is Phase.INTERRUPTED:
                _terminate(draft, job)
            else:
                _kill(draft, job)


def wait_for(draft: Draft, agent: Agent) -> bool:
    """A turn has ended while a job runs: then the end of that is waited for, or a heartbeat."""
    if not runs_job(agent.name, draft.jobs):
        return False
    deadline = draft.clock + draft.rules.backoff_max
    draft.set_agent(agent.name, phase=Phase.WAITING, deadline=deadline, why=WAITS)
    return True


def wake(draft: Draft) -> None:
    """Who waits for a job goes on when it has ended, or when something is owed: no sooner than after any turn."""
    for agent in list(draft.agents.values()):
        if agent.why == WAITS and agent.phase is Phase.WAITING and (agent.owed or not runs_job(agent.name, draft.jobs)):
            seconds = back_off(draft.run.id, agent, agent.idle, draft.rules) if agent.idle else 0.0
            draft.set_agent(agent.name, why="turn ended", deadline=draft.clock + seconds)


def _reason_to_end(draft: Draft, job: Job) -> str:
    if draft.run.stopping:
        return RUN_STOPPED
    return AGENT_RETIRED if draft.agents[job.agent].phase is Phase.RETIRED else ""


def _interrupt(draft: Draft, job: Job, why: str) -> None:
    draft.set_job(job.number, phase=Phase.INTERRUPTED, deadline=draft.clock + draft.rules.interrupt_grace, why=why)
    draft.act(do.Interrupt(who=job.who, launch=LAUNCH))
    draft.note("job", f"job {job.number} is to end: {why}", job.agent)


def _terminate(draft: Draft, job: Job) -> None:
    draft.set_job(job.number, phase=Phase.TERMINATED, deadline=draft.clock + draft.rules.terminate_grace)
    draft.act(do.Terminate(who=job.who, launch=LAUNCH))


def _kill(draft: Draft, job: Job) -> None:
    if job.kills >= MOST_KILLS:
        draft.alert(f"job {job.number} of {job.agent} cannot be killed", job.agent)
        _end(draft, job, "cannot be killed, and is given up", on.JobEnded(number=job.number))
        return
    draft.set_job(job.number, phase=Phase.KILLED, deadline=draft.clock + KILL_AGAIN_SECONDS, kills=job.kills + 1)
    draft.act(do.Kill(who=job.who, launch=LAUNCH))


def _end(draft: Draft, job: Job, how: str, event: on.JobEnded) -> None:
    del draft.jobs[job.number]
    stalls.excuse(draft, job.agent, job.began_at)
    how = f"{how} ({job.why})" if job.why else how
    seconds = max(job.seconds(draft.clock) - event.ago, 0.0)
    draft.act(do.ShowJob(job=job, ended=draft.wall, seconds=seconds, code=event.code, how=how))
    draft.note("job", f"job {job.number} {how}", job.agent)
    agent = draft.agents[job.agent]
    if agent.phase is not Phase.RETIRED and not job.told:
        tidings.owe(draft, agent, JobEnd(number=job.number, said=_said(job, how, seconds, event), last=event.last))


def _how(code: int | None) -> str:
    if code is None:
        return "ended; its exit code is not known"
    if code < 0:
        return f"was ended by signal {-code}"
    return "ended well" if code == 0 else f"ended with exit code {code}"


def _said(job: Job, how: str, seconds: float, event: on.JobEnded) -> str:
    said = f"Your job {job.number} ({job.title}) {how}, {seconds:.0f} seconds after it began."
    if not event.output:
        return said
    return f"{said}\nAll that it printed is in {event.output}; `coral job log {job.number}` shows the end of it."
