"""Modules that no test in the folder of their package imports, and where they are tested; small ones with one importer.

A package stands before the modules of it that are meant.
"""

_PLACES = {
    "unit/coral/cli/commands/test_reading_commands": [
        "coral.cli.commands: log runs show status",
        "coral.reading: run_view",
        "coral.cli.ui: agents_table markdown",
    ],
    "integration/coral/cli/report/test_page": [
        "coral.cli.report: figures parts summary",
        "coral.reading: curve",
    ],
    "unit/coral/cli/commands/test_compare": ["coral.cli.run_data: comparison"],
    "unit/coral/cli/report/test_picture": ["coral.cli.commands: plot", "coral.cli.run_data: write_file"],
    "unit/coral/cli/commands/test_notes": [
        "coral.reading: knowledge_view",
        "coral.cli.ui: notes_diff notes_export notes_page",
    ],
    "unit/coral/cli/run_data/test_earlier": ["coral.cli.commands: knowledge"],
    "integration/coral/cli/commands/test_skills": ["coral.cli.run_data: skill_tests"],
    "unit/coral/cli/commands/test_transcript": ["coral.views: transcript"],
    "unit/coral/cli/ui/test_budgets": ["coral.reading: budgets"],
    "integration/coral/web/test_live serves by the command": ["coral.cli.commands: ui", "coral.web: runs"],
    "unit/coral/web, in every request": ["coral.web: app"],
    "integration/coral/web/test_start": ["coral.web: past_data resuming"],
    "unit/coral/web/test_steering": ["coral.cli.run_data: set_budget"],
    "unit/coral/cli/run_data/test_send_request": ["coral.cli.commands: heartbeat set stop tell"],
    "unit/coral/cli/commands/test_health": ["coral.reading: run_health"],
    "unit/coral/cli/run_data/test_pulse_board": ["coral.cli.ui: bar pulses"],
    "unit/coral/reading/test_beat_spans": ["coral.cli.ui: life"],
    "integration/coral/cli/commands/test_watch": ["coral.cli.run_data: pulses"],
    "unit/coral/cli/ui/test_live": ["coral.cli.commands: attach"],
    "unit/coral/config/test_load, which compares whole messages": ["coral.config: paths"],
    "unit/coral/runtimes/test_programs and test_transcripts; tests/agents with the real program": [
        "coral.runtimes: cursor exits kiro pi qwen",
    ],
    "unit/coral/runtimes: acp/test_lines, scripted/test_validate and test_command": [
        "coral.runtimes.acp: refusal wire",
        "coral.runtimes.scripted: script",
        "coral.runtimes: template",
    ],
    "unit/coral/supervisor/test_inbox": ["coral.supervisor: request_format"],
    "unit/heartbeats/test_render and unit/attempts/test_record": ["heartbeats: plain", "attempts: fields"],
    "every transcript in decisions goes through it": [
        "coral.fleet: transaction upkeep_events",
        "coral.fleet.attempts: intake",
    ],
    "integration/coral/cli/test_agent_commands": [
        "coral.cli.commands: checkout eval revert wait",
        "coral.cli.run_data: submissions",
    ],
    "integration/coral/cli/test_main": ["coral: errors"],
    "integration/coral/cli/test_agent_commands, of an agent that does not share": ["coral.reading: visibility"],
    "unit/coral/api/test_public": ["coral.cli.help: python_reference"],
    "unit/coral/api/test_run_data": ["coral.api: curve rows usage", "coral.reading: attempt_rows status_data"],
    "end_to_end/test_holdout reads every screen": ["coral.cli.ui: holdout"],
    "integration/coral/cli/commands/test_start and test_validate": [
        "coral.cli.ui: progress",
        "coral.preflight: task_check",
        "coral.runs: detach",
    ],
    "integration/coral/grading/test_once and test_runner": ["coral: types"],
    "unit/coral/config/test_other_format": ["coral.config: other_agents translation", "coral.runtimes: other_names"],
    "integration/coral/grader/test_task_grader": ["coral.grader: scores"],
    "integration/coral/importing/test_import": [
        "coral.importing: other_coral openevolve written_task",
        "coral.cli.commands: import",
        "coral.grader: openevolve",
    ],
    "integration/coral/grader/test_candidate": ["coral.grader: as_user inside starter"],
    "integration/coral/processes/test_seal": ["coral.grader: landlock"],
    "integration/coral/audit/test_audit": ["coral.cli.commands: audit"],
    "integration/coral/cli/commands/test_verify": ["coral.runs: verify"],
    "integration/coral/cli/commands/test_orders": ["coral.cli.commands: agent grading"],
    "integration/coral/cli/commands/test_alerts": ["coral.cli.commands: notify"],
    "integration/coral/cli/commands/test_questions": ["coral.cli.commands: alert answer ask"],
    "integration/coral/notify and unit/coral/config/test_load": ["coral.config: alerts section"],
    "integration/coral/native/llm/test_own": ["coral: own_code"],
    "integration/coral/native/llm/test_agent drives the whole loop": [
        "coral.native.llm: outer",
        "coral.native.llm.tools: base commands files knowledge memory submit",
    ],
    "unit/coral/native/llm/test_tool_schemas": ["coral.native.llm.tools: arguments shipped"],
    "integration/coral/preflight/test_doctor and test_resume_check run the command": [
        "coral.cli.commands: doctor resume",
        "coral.preflight: check",
    ],
    "integration/coral/runtimes: acp/test_program and scripted/test_runtime": [
        "coral.runtimes.acp: conversation",
        "coral.runtimes.scripted: program",
    ],
    "tests/cluster/test_grades, on a real cluster": [
        "coral.grading: remote",
    ],
    "tests/cluster/test_remote_launch, in which launches go through them": [
        "coral.cluster: program_end",
    ],
    "unit/coral/config/test_load": ["coral.config: budget session"],
    "end_to_end/test_start_failures": ["coral.processes: command"],
    "end_to_end/test_daemons": ["coral.supervisor: grade_watch"],
    "end_to_end, in every run; test_jobs, test_signals, test_clock_jumps, test_tampered, test_survival": [
        "coral.supervisor: context job_end starts",
        "coral.processes: received_signals",
    ],
}
TESTED_ELSEWHERE = {
    f"{package}.{name}": place
    for place, lines in _PLACES.items()
    for package, _, names in (line.partition(": ") for line in lines)
    for name in names.split()
}

SMALL_WITH_ONE_IMPORTER = {
    "coral.native.llm.tools.shipped": "a program of its own: python -m coral.native.llm.tools.shipped",
    "attempts.index.listing": "a question of its own to the index, which query.py has no room for",
    "coral.cli.ui.budgets": "bars for a terminal, apart from their figures",
    "coral.web.metrics_data": "the data of a page of its own",
    "coral.web.past_data": "the data of a page of its own",
    "coral.web.runs_data": "the data of a page of its own",
    "coral.web.assets": "the files of the page, apart from who may have them",
    "coral.cli.ui.life": "a drawing of its own, apart from the command that prints it",
    "coral.views.beats": "the archive of beats, apart from what status.json shows",
    "coral.config.schema": "a program of its own: python -m coral.config.schema",
    "coral.fleet.questions": "a subject of its own among the decisions",
    "coral.cli.report.knowledge": "the one place that turns what agents wrote into HTML",
    "coral.cli.ui.live_requests": "what waits for answers, apart from the view that goes on meanwhile",
    "coral.fleet.agents.conclusions": "a subject of its own among the decisions",
    "coral.fleet.upkeep": "a subject of its own among the decisions",
    "coral.fleet.machine": "a subject of its own among the decisions",
    "coral.cluster.excluded_nodes": "a state of its own, apart from the bridge that acts on it",
    "coral.supervisor.machine": "a reader of its own beside inbox and output",
    "coral.grader.files": "what graders import by its name in coral.grader",
    "coral.grader.sandbox": "the command line of the sandbox, apart from what runs in it",
    "coral.config.translation": "what is built, apart from the format that it is read from",
    "coral.runtimes.other_names": "names of agent programs, which no other package knows",
    "coral.native.answers.answer": "one module for each heartbeat, and this one to choose",
    "coral.native.answers.checkpoint": "one module for each heartbeat",
    "coral.cli.ui.chat_output": "what a person sees of an agent, apart from the talk with it",
    "coral.native.llm.outer": "the outer loop, which a person takes the place of",
    "coral.native.interrupt": "set before anything slow is imported",
    "coral.native.search.numeric.compass": "a method of its own",
    "coral.native.search.numeric.evolution": "a method of its own",
    "coral.notify.schedule": "when a message may go, pure, apart from the threads that send it",
    "coral.processes.without_proc": "what replaces /proc where there is none",
    "coral.records.index_feed": "what keeps the index up to date, apart from who publishes",
    "coral.supervisor.activity": "a reader of its own beside inbox and output",
    "coral.supervisor.disk": "a reader of its own beside inbox and output",
    "coral.supervisor.job_end": "what the end of a job means, apart from where it is read",
    "coral.views.conflicts": "a subject of its own beside the evidence of one note",
    "coral.types": "the name that graders of the other task format import",
}
