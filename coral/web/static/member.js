// Adds an agent to the fleet, or has one driven in another way: a dialog, which asks again, since both spend.
import { Waiting, html, useAnswer, useEffect, useRef, useState } from "./base.js";
import { Answered, useRequest } from "./steer.js";

// `agent`: the one to move; none to add one.
export function Member({ run, change, agent }) {
  const state = useRequest(run, change);
  const [isOpen, setOpen] = useState(false);
  const box = useRef(null);
  useEffect(() => {
    if (isOpen) box.current.showModal();
  }, [isOpen]);
  const title = agent ? `Move ${agent}` : "Add an agent";
  const open = () => {
    state.clear();
    setOpen(true);
  };
  return html`<span class="act"><button type="button" aria-label=${title} aria-haspopup="dialog" onClick=${open}>${agent ? "Move" : title}</button>
    ${isOpen ? null : html`<${Answered} state=${state} />`}
    <dialog ref=${box} aria-label=${title} onClose=${() => setOpen(false)}>${isOpen ? html`<${Choose} run=${run} agent=${agent} title=${title} state=${state} close=${() => box.current.close()} />` : null}</dialog></span>`;
}

function Choose({ run, agent, title, state, close }) {
  const choices = useAnswer(`/api/runs/${encodeURIComponent(run)}/membership`);
  return html`<h3>${title}</h3><${Waiting} state=${choices}>${(data) => html`<${Form} data=${data} agent=${agent} state=${state} close=${close} />`}<//>
    ${choices.data ? null : html`<p class="bar"><button type="button" onClick=${close}>Leave it</button></p>`}`;
}

function Form({ data, agent, state, close }) {
  const now = agent ? data.agents[agent] : null;
  // What it has with a runtime where nothing else is chosen: `coral.runs.membership` decides it so.
  const usual = (runtime) => {
    const found = data.runtimes.find((one) => one.runtime === runtime) || { model: "", role: "" };
    return !now ? found : runtime === now.runtime ? now : { ...found, role: now.role };
  };
  const first = now ? now.runtime : data.first;
  const [given, setGiven] = useState({ name: "", runtime: first, model: usual(first).model, role: usual(first).role });
  const [isAsked, setAsked] = useState(false);
  const focused = useRef(null);
  useEffect(() => focused.current?.focus(), [isAsked]);
  const set = (name) => (event) => setGiven({ ...given, [name]: event.target.value });
  const choose = (event) => {
    const [before, after] = [usual(given.runtime), usual(event.target.value)];
    const kept = (name) => (given[name] === before[name] ? after[name] : given[name]);
    setGiven({ ...given, runtime: event.target.value, model: after.model, role: kept("role") });
  };
  const wanted = { ...(given.runtime === first ? {} : { runtime: given.runtime }) };
  for (const name of ["model", "role"]) if (given[name] !== usual(given.runtime)[name]) wanted[name] = given[name];
  const send = async () => {
    if (state.busy) return;
    const request = agent ? { type: "move_agent", agent, ...wanted } : { type: "add_agent", name: given.name, ...wanted };
    if (await state.send(request)) close();
    else setAsked(false);
  };
  const submit = (event) => {
    event.preventDefault();
    if (isAsked || (agent && !Object.keys(wanted).length)) send(); // the supervisor says that nothing is to change
    else setAsked(true);
  };
  const names = [...new Set([first, ...data.runtimes.map((one) => one.runtime)])];
  return html`<form class="say" onSubmit=${submit}>
    ${state.failed ? html`<p class="trouble" role="alert">${state.text}</p>` : null}
    <fieldset class="say" disabled=${isAsked}>
      ${agent ? null : html`<label>Name; empty for the next number <input value=${given.name} onInput=${set("name")} /></label>`}
      <label>Runtime <select ref=${isAsked ? null : focused} value=${given.runtime} onChange=${choose}>${names.map((name) => html`<option>${name}</option>`)}</select></label>
      <label>Model; empty for the program's own <input value=${given.model} onInput=${set("model")} /></label>
      <label>Role, which is added to its instructions <textarea rows="3" value=${given.role} onInput=${set("role")}></textarea></label>
    </fieldset>
    ${isAsked ? html`<p role="status">${state.busy ? "asking the supervisor ..." : question(agent, now, given)}</p>` : null}
    <p class="bar">${isAsked ? html`<button ref=${focused} key="yes">${agent ? "Move it" : "Add it"}</button><button type="button" onClick=${() => setAsked(false)}>Change it</button>` : html`<button key="go">${agent ? "Move ..." : "Add ..."}</button>`}
      <button type="button" onClick=${close}>Leave it</button></p></form>`;
}

function question(agent, now, given) {
  const driven = given.model ? `${given.runtime}, ${given.model}` : given.runtime;
  if (!agent) return `Add ${given.name.trim() || "an agent"}, driven by ${driven}? It begins when its workspace is ready, and spends as the others do until a budget is used up. Retire ends its work.`;
  const anew = given.runtime === now.runtime ? "" : " It begins a new conversation, and is told the story so far.";
  return `Move ${agent}, to be driven by ${driven}? It is interrupted at a good moment.${anew} From its next launch on it spends what that costs. Moving it back undoes it.`;
}
