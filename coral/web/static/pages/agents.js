// An agent's heartbeats and what became of each; and its conversation, live.
import { Linked, Waiting, html, link, query, token, useAnswer, useEffect, useState } from "../base.js";
import { Answered, useRequest } from "../steer.js";

const LOOK_MS = 1500;

function Choose({ agents, agent, to }) {
  return html`<label>Agent <select value=${agent} onChange=${(event) => (location.hash = to(event.target.value))}>${agents.map((name) => html`<option>${name}</option>`)}</select></label>`;
}

export function Heartbeats({ run, at, live, session }) {
  const agent = at.more[0] || "";
  const latest = live.events.length ? live.events[live.events.length - 1] : {};
  const state = useAnswer(`/api/runs/${encodeURIComponent(run)}/heartbeats${query({ agent })}`, `${latest.clock} ${latest.type} ${latest.agent}`);
  return html`<h2>Heartbeats</h2><${Waiting} state=${state}>${(data) => html`
    <p class="bar"><${Choose} agents=${data.agents} agent=${data.agent} to=${(name) => link(run, "heartbeats", name)} /></p>
    ${data.heartbeats.length ? data.heartbeats.map((one) => html`<${Heartbeat} key=${`${one.owner} ${one.name}`} run=${run} one=${one} session=${session} />`) : html`<p class="quiet">No heartbeat is in force yet.</p>`}
    <h3>The life of <bdi>${data.agent}</bdi></h3>
    ${data.lane.length ? null : html`<p class="quiet">Nothing has happened to it yet.</p>`}
    <ol class="timeline lane">${data.lane.map((event) => html`<li class=${token(event.type)}><span class="when">${event.when}</span> <span class="who">${event.type}</span> <span><${Linked} run=${run} text=${event.text} /></span></li>`)}</ol>`}<//>`;
}

function Heartbeat({ run, one, session }) {
  const state = useRequest(run, session.change);
  const change = (event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    const amount = form.get("amount");
    const heartbeat = { name: one.name };
    if (amount) heartbeat[form.get("trigger")] = Number(amount);
    if (form.get("prompt") !== one.prompt) heartbeat.prompt = form.get("prompt");
    state.send({ type: "set_heartbeat", owner: one.owner, heartbeat });
  };
  return html`<article class="card"><h3><bdi>${one.name}</bdi> <span class="quiet">of ${one.owner}, ${one.when}${one.next ? `, next: ${one.next}` : ""}, by ${one.delivery || "interrupt"}${one.protected ? "; protected: its interval may be changed within bounds, and it stays" : ""}</span></h3>
    <details><summary>Change it</summary><form class="say" onSubmit=${change}>
      <p class="bar"><label>Every <input name="amount" inputmode="numeric" size="6" /></label> <label>of <select name="trigger"><option value="every">attempts</option><option value="stagnant">attempts without improvement</option><option value="minutes">minutes</option></select></label></p>
      <label>Prompt (empty: the built-in one) <textarea name="prompt" rows="5" defaultValue=${one.prompt}></textarea></label>
      <button disabled=${state.busy}>Change ${one.name}</button> <${Answered} state=${state} /></form></details></article>`;
}

// The sizes of the output are compared, so that an unchanged conversation is not read again.
function useConversation(run, agent, launch, text) {
  const [part, setPart] = useState({ before: "", seen: 0 });
  const base = `/api/runs/${encodeURIComponent(run)}/transcript`;
  const [size, setSize] = useState("");
  const state = useAnswer(base + query({ agent, launch, text, before: part.before }), size);
  useEffect(() => setPart({ before: "", seen: 0 }), [agent, launch, text]);
  useEffect(() => {
    if (!state.data || part.before || document.hidden) return undefined;
    const timer = setInterval(async () => {
      const found = await fetch(base + query({ agent, launch, seen: state.data.size })).then((answer) => answer.json(), () => null);
      if (found && found.launch !== undefined && !found.same) setSize(`${found.launch} ${found.size}`);
    }, LOOK_MS);
    return () => clearInterval(timer);
  }, [state.data, part.before, agent, launch]);
  return { state, earlier: (first) => setPart({ before: first }), latest: () => setPart({ before: "" }), isLatest: !part.before };
}

export function Transcripts({ run, at }) {
  const [agent, launch] = [at.more[0] || "", at.more[1] || ""];
  const [text, setText] = useState("");
  const shown = useConversation(run, agent, launch, text);
  const search = (event) => {
    event.preventDefault();
    setText(new FormData(event.target).get("text"));
  };
  return html`<h2>Transcripts</h2><form class="bar" role="search" onSubmit=${search}><label>Search in this conversation <input type="search" name="text" /></label><button>Search</button></form>
    <${Waiting} state=${shown.state}>${(data) => html`
    <p class="bar">${data.agents.length ? html`<${Choose} agents=${data.agents} agent=${data.agent} to=${(name) => link(run, "transcripts", name)} />` : null}
      ${data.launches.length ? html`<label>Launch <select value=${String(data.launch)} onChange=${(event) => (location.hash = link(run, "transcripts", data.agent, event.target.value))}>${data.launches.map((number) => html`<option>${String(number)}</option>`)}</select></label>` : html`<span class="quiet">No launch has left anything yet.</span>`}
      <span class="quiet">${data.reason}</span></p>
    <p class="bar"><span role="status">${data.entries.length ? `${data.first + 1} to ${data.first + data.entries.length} of ${data.total}` : "nothing"}</span>
      <button type="button" disabled=${!data.first} onClick=${() => shown.earlier(data.first)}>Earlier part</button><button type="button" disabled=${shown.isLatest} onClick=${shown.latest}>The end</button></p>
    <ol class="conversation" start=${data.first + 1}>${data.entries.map((entry, place) => html`<li key=${data.first + place} class=${`entry entry-${entry.kind} ${entry.failed ? "is-failed" : ""}`}><span class="quiet">${entry.label}</span><pre>${entry.text}</pre>${entry.cut ? html`<span class="quiet">cut off here</span>` : null}</li>`)}</ol>`}<//>`;
}
