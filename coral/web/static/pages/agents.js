// An agent's conversation, live.
import { Linked, Waiting, html, link, query, useAnswer, useEffect, useState } from "../base.js";

const LOOK_MS = 1500;

export function Choose({ agents, agent, to }) {
  return html`<label>Agent <select value=${agent} onChange=${(event) => (location.hash = to(event.target.value))}>${agents.map((name) => html`<option>${name}</option>`)}</select></label>`;
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
    <ol class="conversation" start=${data.first + 1}>${data.entries.map((entry, place) => html`<li key=${data.first + place} class=${`entry entry-${entry.kind} ${entry.failed ? "is-failed" : ""}`}><span class="quiet">${entry.label}</span><pre><${Linked} run=${run} text=${entry.text} /></pre>${entry.cut ? html`<span class="quiet">cut off here</span>` : null}</li>`)}</ol>`}<//>`;
}
