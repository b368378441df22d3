"""Jobs: commands that an agent runs beside its launches, such as a long training.

A job belongs to its agent and outlives the agent's launches: it is ended when the agent retires or the run stops.
However many of its jobs end, the agent gets one notice of bounded length; it leaves out jobs whose end the agent has
seen itself. An agent whose turn ends while a job runs waits for the job or for a message, up to the longest back-off.
"""

from collections.abc import Collection
from dataclasses import replace

from coral.errors import CoralError
from coral.fleet import actions as do, events as on
from coral.fleet.agent_state import Agent, JobEnd, PendingMessage, Phase
from coral.fleet.agents import stalls
from coral.fleet.agents.back_off import back_off
from coral.fleet.messages import JOB_ENDED
from coral.fleet.policy import MAX_JOBS, MAX_KILLS, MAX_NOTICE_JOBS, MAX_NOTICE_OUTPUTS, kill_again_at, runs_job
from coral.fleet.reasons import JobOutcome, Reason, ReasonKind
from coral.fleet.run_state import Job
from coral.fleet.transaction import Transaction

JOB_LAUNCH = 1  # the launch number of every job, which is started once
WHICH = "`coral job list` shows what runs"


def start(transaction: Transaction, wanted: on.RunJob) -> str:
    """Queue a job for an agent; it starts in the same turn. CoralError where the agent or the run cannot have another
    job now."""
    agent, run = transaction.agents.get(wanted.agent), transaction.run
    if agent is None:
        raise CoralError(f"cannot start a job of {wanted.agent!r}: there is no such agent", "coral status names them")
    if agent.phase is Phase.RETIRED:
        raise CoralError(f"cannot start a job: {agent.name} has retired", "coral status shows who is at work")
    if run.is_ending or run.detached_reason:
        raise CoralError("cannot start a job: the run is stopping", "`coral resume` continues it")
    if run.disk_problem:
        raise CoralError(f"cannot start a job: {run.disk_problem}", "ask again when there is space")
    count = sum(job.agent == agent.name for job in transaction.jobs.values())
    if count >= MAX_JOBS:
        raise CoralError(f"cannot start a job: {count} run already", "`coral job stop N` ends one of them")
    job = Job(
        number=run.job_count + 1,
        agent=agent.name,
        argv=wanted.argv,
        what=wanted.what,
        folder=wanted.folder,
        began=transaction.wall,
        began_at=transaction.clock,
        phase=Phase.WAITING,
    )
    transaction.set_run(job_count=job.number)
    transaction.jobs[job.number] = job
    return f"job {job.number} starts: `coral job log {job.number}` shows its output, and a message says when it ends"


def stop(transaction: Transaction, sender: str, number: int) -> str:
    """End a job, as the operator or its agent asks. An agent that ends its own job gets no notice. CoralError where
    there is no such job, or it belongs to another agent."""
    job = transaction.jobs.get(number)
    if job is None or (sender in transaction.agents and sender != job.agent):
        raise CoralError(f"cannot stop job {number}: there is none that runs", WHICH)
    reason = job.reason or Reason(ReasonKind.REQUEST, detail=sender)
    transaction.set_job(number, reason=reason, stopped_by_owner=job.stopped_by_owner or sender == job.agent)
    return f"job {number} ends"


def on_ended(transaction: Transaction, event: on.JobEnded) -> None:
    job = transaction.jobs.get(event.number)
    if job is not None:
        _end(transaction, job, _outcome(event.code), event)


def on_not_started(transaction: Transaction, number: int, detail: str) -> None:
    job = transaction.jobs.get(number)
    if job is not None:
        _end(transaction, job, JobOutcome.NOT_STARTED, on.JobEnded(number=number), detail)


def on_left_processes(transaction: Transaction, number: int) -> None:
    """End the processes that a job's command left running when it ended."""
    job = transaction.jobs.get(number)
    if job is not None and job.phase in (Phase.RUNNING, Phase.INTERRUPTED):
        _terminate(transaction, job)


def resume(transaction: Transaction, away: float) -> None:
    """Adjust the jobs for a new supervisor: they ran on in the `away` seconds without one. A job that was being
    interrupted is interrupted again, because the last supervisor may have died before it sent the signal; a second
    signal does no harm."""
    for job in list(transaction.jobs.values()):
        if job.phase is not Phase.WAITING:
            transaction.set_job(job.number, away=job.away + away)
        if job.phase is Phase.INTERRUPTED:
            transaction.act(do.Interrupt(who=job.who, launch=JOB_LAUNCH))


def advance(transaction: Transaction) -> None:
    """Start waiting jobs; end the jobs of a run that stops or of a retired agent, and those that somebody asked to end;
    send the next, stronger signal to a job that has not ended in time."""
    for job in list(transaction.jobs.values()):
        reason = job.reason or _reason_to_end(transaction, job)
        if job.phase is Phase.WAITING and reason:
            job = transaction.set_job(job.number, reason=reason)
            _end(transaction, job, JobOutcome.CANCELLED, on.JobEnded(number=job.number))
        elif job.phase is Phase.WAITING:
            transaction.act(do.StartJob(job=transaction.set_job(job.number, phase=Phase.RUNNING)))
            transaction.log("job", f"job {job.number} starts: {job.title}", job.agent)
        elif job.phase is Phase.RUNNING and reason:
            _interrupt(transaction, job, reason)
        elif job.phase is not Phase.RUNNING and transaction.clock >= job.deadline:
            if job.phase is Phase.INTERRUPTED:
                _terminate(transaction, job)
            else:
                _kill(transaction, job)


def wait_for(transaction: Transaction, agent: Agent) -> bool:
    """Let an agent whose turn has ended wait for its job; return False if it has none."""
    if not runs_job(agent.name, transaction.jobs):
        return False
    deadline, reason = transaction.clock + transaction.rules.backoff_max, Reason(ReasonKind.WAITS_FOR_JOB)
    transaction.set_agent(agent.name, phase=Phase.WAITING, deadline=deadline, reason=reason)
    return True


def wake(transaction: Transaction) -> None:
    """End the wait for a job when it has ended or a message is pending: the agent starts as after any turn."""
    for agent in list(transaction.agents.values()):
        waits = agent.phase is Phase.WAITING and agent.reason.kind is ReasonKind.WAITS_FOR_JOB
        if waits and (
            any(not message.quiet for message in agent.pending_messages) or not runs_job(agent.name, transaction.jobs)
        ):
            turns = agent.unproductive_turns
            seconds = back_off(transaction.run.id, agent, turns, transaction.rules) if turns else 0.0
            deadline = transaction.clock + seconds
            transaction.set_agent(agent.name, reason=Reason(ReasonKind.TURN_ENDED), deadline=deadline)


def _reason_to_end(transaction: Transaction, job: Job) -> Reason | None:
    if transaction.run.is_ending:
        return Reason(ReasonKind.STOP)
    retired = transaction.agents[job.agent].phase is Phase.RETIRED
    return Reason(ReasonKind.AGENT_RETIRED) if retired else None


def _interrupt(transaction: Transaction, job: Job, reason: Reason) -> None:
    deadline = transaction.clock + transaction.rules.interrupt_grace
    transaction.set_job(job.number, phase=Phase.INTERRUPTED, deadline=deadline, reason=reason)
    transaction.act(do.Interrupt(who=job.who, launch=JOB_LAUNCH))
    transaction.log("job", f"job {job.number} is to end", job.agent, reason=reason)


def _terminate(transaction: Transaction, job: Job) -> None:
    transaction.set_job(
        job.number, phase=Phase.TERMINATED, deadline=transaction.clock + transaction.rules.terminate_grace
    )
    transaction.act(do.Terminate(who=job.who, launch=JOB_LAUNCH))


def _kill(transaction: Transaction, job: Job) -> None:
    if job.kills >= MAX_KILLS:
        transaction.alert(f"job {job.number} of {job.agent} cannot be killed", job.agent)
        _end(transaction, job, JobOutcome.UNKILLABLE, on.JobEnded(number=job.number))
        return
    deadline = kill_again_at(transaction.clock, job.kills)
    transaction.set_job(job.number, phase=Phase.KILLED, deadline=deadline, kills=job.kills + 1)
    transaction.act(do.Kill(who=job.who, launch=JOB_LAUNCH))


def _end(transaction: Transaction, job: Job, outcome: JobOutcome, event: on.JobEnded, detail: str = "") -> None:
    del transaction.jobs[job.number]
    stalls.exclude_time(transaction, job.agent, job.began_at)
    end = JobEnd(
        number=job.number,
        title=job.title,
        outcome=outcome,
        code=event.code,
        detail=detail,
        reason=job.reason,
        seconds=max(job.seconds(transaction.clock) - event.ago, 0.0),
        output=event.output,
        last_lines=event.last_lines,
    )
    transaction.act(do.ShowJob(job=job, end=end, ended=transaction.wall))
    agent = transaction.agents[job.agent]
    if agent.phase is not Phase.RETIRED and not job.stopped_by_owner:
        _queue_notice(transaction, agent, end)


def _outcome(code: int | None) -> JobOutcome:
    if code is None:
        return JobOutcome.UNKNOWN
    if code < 0:
        return JobOutcome.SIGNALLED
    return JobOutcome.FAILED if code else JobOutcome.SUCCEEDED


def _queue_notice(transaction: Transaction, agent: Agent, end: JobEnd) -> None:
    """Add a job's end to the notice that is pending for its agent, or queue a new notice. A notice that the current
    launch was given already is not changed."""
    waiting = [message for message in agent.undelivered if message.job_ends]
    if waiting:
        transaction.change_messages(agent.name, [_with(waiting[-1], end)])
    else:
        due = transaction.clock + transaction.rules.max_defer
        transaction.queue_notice(agent.name, JOB_ENDED, due, job_ends=(end,))


def mark_delivered(transaction: Transaction, name: str, numbers: Collection[int]) -> None:
    """Remove the ends of these jobs from the agent's pending notices, because the agent has seen them itself. A notice
    that the current launch was given already is not changed."""
    stays = []
    for message in transaction.agents[name].pending_messages:
        ends = tuple(end for end in message.job_ends if end.number not in numbers)
        if ends == message.job_ends or message.id in transaction.agents[name].in_flight:
            stays.append(message)
        elif ends:
            stays.append(replace(message, job_ends=ends))
        else:
            transaction.log_messages("withdrawn", f"{message.name} ({message.id}) was seen", name, (message,))
    if stays != list(transaction.agents[name].pending_messages):
        transaction.set_agent(name, pending_messages=tuple(stays))


def _with(message: PendingMessage, end: JobEnd) -> PendingMessage:
    ends = (*message.job_ends, end)
    named, last = ends[-MAX_NOTICE_JOBS:], ends[-MAX_NOTICE_OUTPUTS:]
    short = tuple(end if end in last else replace(end, last_lines=()) for end in named)
    return replace(message, job_ends=short, earlier_job_ends=message.earlier_job_ends + len(ends) - len(named))
