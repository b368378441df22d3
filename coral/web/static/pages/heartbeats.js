// The heartbeats in force, with forms that change them and show what they would say; and an agent's life.
import { Waiting, html, link, post, query, useAnswer, useRef, useState } from "../base.js";
import { Act, Answered, useRequest } from "../steer.js";
import { Choose } from "./agents.js";
import { Lane } from "./lane.js";

const UNITS = { every: "attempts", stagnant: "attempts without improvement", minutes: "minutes" };
const EVERYBODY = "*";

export function Heartbeats({ run, at, live, session }) {
  const agent = at.more[0] || "";
  const shown = useRef("");
  const latest = live.events.findLast((event) => !event.agent || event.agent === shown.current) || {};
  const state = useAnswer(`/api/runs/${encodeURIComponent(run)}/heartbeats${query({ agent })}`, `${latest.clock} ${latest.type}`);
  return html`<h2>Heartbeats</h2><${Waiting} state=${state}>${(data) => {
    shown.current = data.agent;
    const common = { run, agent: data.agent, agents: data.agents, change: session.change };
    return html`<p class="bar"><${Choose} agents=${data.agents} agent=${data.agent} to=${(name) => link(run, "heartbeats", name)} /></p>
    ${data.lane ? html`<h3>The life of <bdi>${data.agent}</bdi></h3><${Lane} key=${data.agent} run=${run} agent=${data.agent} lane=${data.lane} />` : null}
    <h3>In force</h3>
    ${data.heartbeats.length ? data.heartbeats.map((one) => html`<${Heartbeat} key=${`${one.owner} ${one.name}`} ...${common} one=${one} />`) : html`<p class="quiet">No heartbeat is in force yet.</p>`}
    ${data.agent ? html`<article class="card"><details><summary>Add a heartbeat</summary><${Form} ...${common} /></details></article>
      <p><${Act} run=${run} change=${session.change} title=${`Reset the heartbeats of ${data.agent}`} confirm=${`Give ${data.agent} the heartbeats that the run started with? Those that were added are removed.`} request=${{ type: "reset_heartbeats", owner: data.agent }} /></p>` : null}`;
  }}<//>`;
}

function Heartbeat({ one, ...common }) {
  const { run, change } = common;
  return html`<article class="card"><h4><bdi>${one.name}</bdi> <span class="quiet">of ${one.owner}, ${one.when}${one.next ? `, next: ${one.next}` : ""}, by ${one.delivery || "interrupt"}</span></h4>
    ${one.may ? html`<p class="quiet">Protected: it cannot be removed; ${one.may}.</p>` : null}
    <details><summary>Change it</summary><${Form} ...${common} one=${one} />
      ${one.may ? null : html`<${Act} run=${run} change=${change} title=${`Remove ${one.name}`} confirm=${`Remove ${one.name} of ${one.owner}?`} request=${{ type: "remove_heartbeat", owner: one.owner, name: one.name }} />`}</details></article>`;
}

// Of a new heartbeat where there is no `one`.
function Form({ run, agent, agents, change, one }) {
  const state = useRequest(run, change);
  const form = useRef(null);
  const named = (given) => (one ? one.name : given.get("name").trim());
  const submit = (event) => {
    event.preventDefault();
    const given = new FormData(form.current);
    const heartbeat = { name: named(given) };
    if (given.get("amount")) heartbeat[one && one.may ? one.trigger : given.get("trigger")] = Number(given.get("amount"));
    if (given.get("prompt").trim() && !(one && given.get("prompt") === one.prompt)) heartbeat.prompt = given.get("prompt");
    state.send({ type: "set_heartbeat", owner: given.get("owner") || one.owner, heartbeat });
  };
  const owners = one && one.owner === "fleet" ? null : html`<label>For <select name="owner"><option value=${agent}>${agent}</option><option value=${EVERYBODY}>all agents</option>${one ? null : html`<option value="fleet">the fleet as a whole</option>`}</select></label>`;
  const unit = one && one.may ? html`<span>${UNITS[one.trigger]}</span>` : html`<label>of <select name="trigger" value=${one ? one.trigger : "every"}>${Object.entries(UNITS).map(([name, title]) => html`<option value=${name}>${title}</option>`)}</select></label>`;
  return html`<form class="say" ref=${form} onSubmit=${submit}>
    <p class="bar">${one ? null : html`<label>Name <input name="name" required size="14" /></label>`}<label>Every <input name="amount" inputmode="numeric" size="6" required=${!one} /></label> ${unit} ${owners}</p>
    <label>Prompt ${one ? "(empty: it stays as it is)" : ""} <textarea name="prompt" rows="6" defaultValue=${one ? one.prompt : ""}></textarea></label>
    <${Preview} run=${run} agent=${agent} agents=${agents} change=${change} read=${() => ({ name: named(new FormData(form.current)), prompt: form.current.elements.prompt.value || (one ? one.prompt : "") })} />
    <p class="bar"><button disabled=${state.busy}>${one ? `Change ${one.name}` : "Add it"}</button> <${Answered} state=${state} /></p></form>`;
}

// What the prompt would say to an agent now, before anything is set.
function Preview({ run, agent, agents, change, read }) {
  const [whom, setWhom] = useState(agent);
  const [state, setState] = useState({});
  const show = () => {
    setState({ busy: true });
    post(`/api/runs/${encodeURIComponent(run)}/preview`, change, { ...read(), agent: whom }).then(
      (data) => setState({ data }),
      (error) => setState({ error: [error.message, error.hint].filter(Boolean).join(" - ") }),
    );
  };
  return html`<p class="bar"><button type="button" disabled=${state.busy} onClick=${show}>Preview</button> <label>as it would reach <select value=${whom} onChange=${(event) => setWhom(event.target.value)}>${agents.map((name) => html`<option>${name}</option>`)}</select></label></p>
    <div role="status">${state.busy ? "rendering ..." : ""}${state.error ? html`<p class="trouble">${state.error}</p>` : null}
    ${state.data ? html`${state.data.problem ? html`<p class="trouble">This prompt cannot be rendered: ${state.data.problem}</p>` : null}<pre class="preview" tabindex="0" aria-label=${`What ${state.data.agent} would read`}>${state.data.text}</pre>` : null}</div>`;
}
