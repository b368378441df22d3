// Is it alive, is it getting better, and what needs a person? Alerts and questions first, then the score, then agents.
import { Attempt, Linked, Trouble, VERDICTS, html, link, query, token, useAnswer, useMemo, useState } from "../base.js";
import { Chart } from "../chart.js";

const MANY_AGENTS = 60;

export function Fleet({ run, live }) {
  const fleet = live.fleet;
  if (!fleet) return html`<p class="quiet" role="status">Loading ...</p>`;
  if (fleet.gone) return null;
  return html`
    <h2 class="hidden">Fleet</h2>
    <${Notices} run=${run} fleet=${fleet} />
    <${Score} run=${run} fleet=${fleet} />
    <${Budgets} fleet=${fleet} />
    <${Curve} run=${run} fleet=${fleet} live=${live} />
    <${Agents} run=${run} agents=${fleet.agents} />
    <p><a href=${link(run, "steering")}>Add, move, pause or retire agents</a></p>
    <${Grading} run=${run} grading=${fleet.grading} />
    <${Timeline} run=${run} events=${live.events} agents=${fleet.agents} />`;
}

function Notices({ run, fleet }) {
  return html`
    ${fleet.warnings.map((text) => html`<p class="notice">${text}</p>`)}
    ${fleet.questions.map(
      (asked) => html`<p class="notice" data-question=${asked.number}><strong>Question ${asked.number}</strong> of <bdi>${asked.agent}</bdi>: <${Linked} run=${run} text=${asked.text} /></p>`,
    )}
    ${fleet.alerts.map((alert) => html`<p class="notice alert"><strong>Alert</strong> <${Linked} run=${run} text=${alert.text} /></p>`)}`;
}

export function Score({ run, fleet }) {
  const score = fleet.score;
  const tile = (name, value, more) => html`<div><dt>${name}</dt><dd><span class="figure">${value}</span> <span class="quiet">${more}</span></dd></div>`;
  const than = score.has_seed ? `${score.gain} against the seed's ${score.seed}` : "the seed has no score";
  const seed = score.has_seed ? "the seed: nobody has beaten it" : "no attempt has a score";
  const best = score.number === null ? seed : html`<${Attempt} run=${run} number=${score.number} /> by <bdi>${score.agent}</bdi>, ${than}`;
  const failed = fleet.failed ? `${fleet.failed} failed` : "none failed";
  return html`<dl class="tiles" aria-label="Where the run stands">
    ${tile(score.number === null ? "Best" : "Best, proven", score.best || "none", best)}
    ${score.lead ? tile("Lead", score.lead.score, html`<${Attempt} run=${run} number=${score.lead.number} /> by <bdi>${score.lead.agent}</bdi>, not proven`) : null}
    ${tile("Attempts", fleet.attempts, fleet.trials ? `${failed}, ${fleet.trials} beside them` : failed)}
    ${fleet.used ? tile("Used", fleet.used, fleet.per_hour) : null}
  </dl>`;
}

export function Budgets({ fleet }) {
  if (!fleet.budgets.length) return html`<p class="quiet">${fleet.limits.join(" - ")}</p>`;
  return html`<section aria-label="Budgets" class="budgets">
    ${fleet.budgets.map(
      (budget) => html`<div><label>${budget.key} ${budget.share === null ? null : html`<progress max="1" value=${budget.share} class=${budget.share >= 0.95 ? "full" : budget.share >= 0.8 ? "high" : ""}></progress>`}</label>
      <span>${budget.amounts}${budget.left ? `, ${budget.left}` : ""}</span></div>`,
    )}
  </section>`;
}

function Curve({ run, fleet, live }) {
  const [agent, setAgent] = useState("");
  const [scale, setScale] = useState("linear");
  const state = useAnswer(`/api/runs/${encodeURIComponent(run)}/curve${query({ agent })}`, live.version);
  const names = useMemo(() => fleet.agents.map((one) => one.name), [fleet.agents.length]);
  const open = (number) => {
    location.hash = link(run, "attempts", number);
  };
  const label = `Score over time: best ${fleet.score.best}, seed ${fleet.score.seed}, ${fleet.attempts} attempts. The table of attempts has them one by one.`;
  return html`<section aria-labelledby="curve-title">
    <div class="bar"><h3 id="curve-title">Score over time</h3>
      <label>Of <select value=${agent} onChange=${(event) => setAgent(event.target.value)}>
        <option value="">the fleet</option>${names.map((name) => html`<option value=${name}>${name}</option>`)}</select></label>
      <label>Scale <select value=${scale} onChange=${(event) => setScale(event.target.value)}>
        <option value="linear">linear</option><option value="log">logarithmic</option><option value="gap">gap to the best</option></select></label>
    </div>
    <${Trouble} error=${state.error} />
    ${state.data ? html`<${Chart} run=${run} curve=${state.data} extra=${live.points} agent=${agent} scale=${scale} onOpen=${open} label=${label} />` : html`<div class="chart empty"></div>`}
    <p class="legend" aria-hidden="true"><span class="line">best</span>${VERDICTS.slice(0, 5).map((name) => html`<span class=${token(name)}>${name}</span>`)}
      ${state.data && state.data.left_out ? html`<span class="quiet">${state.data.left_out} more attempts not drawn</span>` : null}</p>
  </section>`;
}

export function Agents({ run, agents }) {
  const [all, setAll] = useState(false);
  const shown = all ? agents : agents.slice(0, MANY_AGENTS);
  const anyUse = agents.some((agent) => agent.used);
  return html`<section aria-labelledby="agents-title"><h3 id="agents-title">Agents</h3>
    <div class="scroll" role="region" aria-labelledby="agents-title" tabindex="0"><table>
      <thead><tr><th scope="col">agent</th><th scope="col">phase</th><th scope="col" class="number">launch</th><th scope="col">last beat</th>
        <th scope="col" class="number">attempts</th><th scope="col" class="number">own best</th><th scope="col" class="number">stagnant</th>
        ${anyUse ? html`<th scope="col" class="number">used</th>` : null}<th scope="col">next heartbeat</th></tr></thead>
      <tbody>${shown.map(
        (agent) => html`<tr key=${agent.name} data-agent=${agent.name}>
          <th scope="row"><bdi>${agent.name}</bdi> <span class="quiet">${agent.program}</span></th>
          <td><span class=${`phase ${token(agent.phase)}`}>${agent.phase}</span></td><td class="number">${agent.launch}</td>
          <td class="beat">${agent.progress === null ? null : html`<progress max="1" value=${agent.progress} aria-label=${`progress of ${agent.name}`}></progress> `}<bdi>${agent.beat}</bdi></td>
          <td class="number">${agent.attempts}</td>
          <td class="number">${agent.best_number === null ? agent.best : html`<a href=${link(run, "attempts", agent.best_number)}>${agent.best}</a>`}</td>
          <td class="number">${agent.stagnant}</td>${anyUse ? html`<td class="number">${agent.used}</td>` : null}<td>${agent.next}</td></tr>`,
      )}</tbody></table></div>
    ${agents.length > shown.length ? html`<button type="button" onClick=${() => setAll(true)}>Show all ${agents.length} agents</button>` : null}
    ${agents.length ? null : html`<p class="quiet">No agent has been started yet.</p>`}</section>`;
}

export function Grading({ run, grading }) {
  const states = [grading.paused ? "paused" : "", grading.held ? "held by the operator" : ""].filter(Boolean).join(", ");
  return html`<section aria-labelledby="grading-title"><h3 id="grading-title">Grading <span class="quiet">${grading.slots === null ? "" : `${grading.slots} slot${grading.slots === 1 ? "" : "s"}`}${states ? `, ${states}` : ""}</span></h3>
    ${grading.running.length || grading.queued.length ? null : html`<p class="quiet">Nothing is being graded.</p>`}
    <ul class="plain">${grading.running.map(
      (one) => html`<li><${Attempt} run=${run} number=${one.number} /> ${one.progress === null ? "is being graded" : html`<progress max="1" value=${one.progress} aria-label=${`progress of the grade of #${one.number}`}></progress>`} <bdi>${one.message}</bdi></li>`,
    )}</ul>
    ${grading.queued.length ? html`<p>Queued: ${grading.queued.slice(0, 40).map((number) => html`<span>#${number} </span>`)}${grading.queued.length > 40 ? `and ${grading.queued.length - 40} more` : ""}</p>` : null}
  </section>`;
}

const SHOWN = 150;

function Timeline({ run, events, agents }) {
  const [kind, setKind] = useState("");
  const [agent, setAgent] = useState("");
  const kinds = useMemo(() => [...new Set(events.map((event) => event.type))].sort(), [events]);
  const shown = events
    .filter((event) => (kind ? kind === "every step" || event.type === kind : !event.step) && (!agent || event.agent === agent))
    .slice(-SHOWN)
    .reverse();
  return html`<section aria-labelledby="timeline-title"><div class="bar"><h3 id="timeline-title">Timeline</h3>
      <label>Kind <select value=${kind} onChange=${(event) => setKind(event.target.value)}><option value="">what matters</option><option>every step</option>${kinds.map((name) => html`<option>${name}</option>`)}</select></label>
      <label>Agent <select value=${agent} onChange=${(event) => setAgent(event.target.value)}><option value="">all</option>${agents.map((one) => html`<option>${one.name}</option>`)}</select></label></div>
    ${shown.length ? null : html`<p class="quiet">Nothing of that kind yet.</p>`}
    <ol class="timeline">${shown.map(
      (event) => html`<li class=${token(event.type)}><span class="when">${event.when}</span> <bdi class="who">${event.agent}</bdi> <span><${Linked} run=${run} text=${event.text} /></span></li>`,
    )}</ol></section>`;
}
