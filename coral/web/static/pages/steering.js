// What to say to them, and what to do with them. What spends or ends something asks before.
import { html, link, useState } from "../base.js";
import { Member } from "../member.js";
import { Act, Say } from "../steer.js";

export function Steering({ run, live, session }) {
  const fleet = live.fleet;
  if (!fleet || fleet.gone) return null;
  const common = { run, change: session.change };
  const agents = fleet.agents.map((agent) => agent.name);
  return html`<h2>Steering</h2>
    ${fleet.supervised ? null : html`<p class="notice">Nobody supervises this run: what you ask for takes effect when it is resumed.</p>`}
    <h3>Questions and alerts</h3>
    ${fleet.questions.length + fleet.alerts.length ? null : html`<p class="quiet">Nothing waits for you.</p>`}
    ${fleet.questions.map((asked) => html`<article class="card" key=${asked.number}><p><strong>Question ${asked.number}</strong> of <bdi>${asked.agent}</bdi>: <bdi>${asked.text}</bdi></p>
      <${Say} ...${common} label=${`Answer to question ${asked.number}`} title="Answer" make=${(text) => ({ type: "answer", number: asked.number, text })} /></article>`)}
    ${fleet.alerts.map((alert) => html`<p class="notice alert" key=${alert.id}><bdi>${alert.text}</bdi> <${Act} ...${common} title="Acknowledge" label=${`Acknowledge alert ${alert.number} and those before`} request=${{ type: "acknowledge_alerts", number: alert.number }} /></p>`)}
    <h3>Tell</h3>
    <${Say} ...${common} label="To all agents" title="Tell all" make=${(text) => ({ type: "tell", text })} />
    <h3>Agents</h3><p class="bar"><${Member} ...${common} /></p>
    <div class="scroll" role="region" aria-label="Agents" tabindex="0"><table><thead><tr><th scope="col">agent</th><th scope="col">phase</th><th scope="col">do</th><th scope="col">tell</th></tr></thead>
      <tbody>${fleet.agents.map((agent) => html`<${Agent} key=${agent.name} common=${common} agent=${agent} />`)}</tbody></table></div>
    <h3>Grading</h3>
    <p class="bar">${fleet.grading.held ? html`<${Act} ...${common} title="Release the queue" request=${{ type: "release_grading" }} />` : html`<${Act} ...${common} title="Hold the queue" request=${{ type: "hold_grading" }} />`}
      ${[...fleet.grading.running.map((one) => one.number), ...fleet.grading.queued.slice(0, 20)].map((number) => html`<${Act} ...${common} title=${`Cancel #${number}`} confirm=${`End attempt #${number} as void? Its agent is told.`} request=${{ type: "cancel_grade", number }} />`)}</p>
    <h3>Budgets</h3><${Budget} common=${common} />
    <h3>The run</h3>
    ${fleet.supervised ? html`<p class="bar"><${Act} ...${common} title="Stop after the grades" confirm="End the agents now, and the run when everything that they submitted is graded?" request=${{ type: "stop", after_grades: true, reason: ASKED }} />
      <${Act} ...${common} title="Stop the run" confirm="Stop the run and everything that it started? It can be resumed later." request=${{ type: "stop", reason: ASKED }} /></p>` : html`<${Resume} common=${common} />`}
    ${agents.length ? html`<p>Heartbeats are changed <a href=${link(run, "heartbeats")}>on their page</a>.</p>` : null}`;
}

const ASKED = "asked on the dashboard";
const BUDGETS = ["hours", "attempts", "money", "tokens", "plateau", "target", "per_agent.attempts", "per_agent.money", "per_agent.tokens"];

function Budget({ common }) {
  const [given, setGiven] = useState({ key: BUDGETS[0], value: "" });
  const set = (name) => (event) => setGiven({ ...given, [name]: event.target.value });
  return html`<p class="bar"><label>Budget <select value=${given.key} onChange=${set("key")}>${BUDGETS.map((key) => html`<option>${key}</option>`)}</select></label>
    <label>Limit <input size="8" value=${given.value} onInput=${set("value")} aria-describedby="limit-help" /></label> <span id="limit-help" class="quiet">a number, none, or task for what the task has</span>
    <${Act} ...${common} title="Set the budget" disabled=${!given.value.trim()} confirm=${`Set the budget ${given.key} to ${given.value.trim()}? A larger one lets the agents spend more, one that is used up ends the run.`} request=${{ type: "set_budget", ...given }} /></p>`;
}

function Resume({ common }) {
  const [given, setGiven] = useState({ budgets: "", text: "", agreed: false });
  return html`<div class="say"><label>Larger budgets, where one is used up (budget.hours=4 budget.money=20) <input value=${given.budgets} onInput=${(event) => setGiven({ ...given, budgets: event.target.value })} /></label>
    <label>What the agents are told first <textarea rows="2" value=${given.text} onInput=${(event) => setGiven({ ...given, text: event.target.value })}></textarea></label>
    <p><label class="check"><input type="checkbox" checked=${given.agreed} onChange=${(event) => setGiven({ ...given, agreed: event.target.checked })} /> Go on although it may cost more than budget.ask_above, or somebody has changed the run</label></p>
    <p><${Act} ...${common} title="Resume the run" confirm="Resume the run? Its agents go on at once, and spend until a budget is used up or you stop it." request=${{ type: "resume", ...given }} /></p></div>`;
}

function Agent({ common, agent }) {
  const name = agent.name;
  const act = (type, title, confirm, more) => html`<${Act} ...${common} title=${title} label=${`${title} ${name}`} confirm=${confirm} request=${{ type, agent: name, ...more }} />`;
  return html`<tr><th scope="row"><bdi>${name}</bdi></th><td>${agent.phase}</td><td>${act("pause", "Pause")} ${act("unpause", "Unpause")} ${act("restart", "Restart", `End what ${name} does now, and start it again?`)} ${act("restart", "Start afresh", `End what ${name} does now, and start it again in a new conversation?`, { fresh: true })} ${act("retire", "Retire", `Interrupt ${name} for good?`)} <${Member} ...${common} agent=${name} /></td>
    <td><${Say} ...${common} label=${`To ${name}`} title="Tell" make=${(text) => ({ type: "tell", to: name, text })} /></td></tr>`;
}
