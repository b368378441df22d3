// What the operator does: a form or a button that sends one request, and shows what the supervisor answered.
import { html, post, useRef, useState } from "./base.js";

const NOTHING = { busy: false, text: "", failed: false };

// {send, clear, busy, text, failed}: `send` gives whether it was granted.
export function useRequest(run, change) {
  const [state, setState] = useState(NOTHING);
  const send = async (request) => {
    setState({ busy: true, text: "", failed: false });
    try {
      const data = await post(`/api/runs/${encodeURIComponent(run)}/${request.type === "resume" ? "resume" : "requests"}`, change, request);
      setState({ busy: false, text: [data.message, data.hint].filter(Boolean).join(" - "), failed: false });
      return true;
    } catch (error) {
      setState({ busy: false, text: [error.message, error.hint].filter(Boolean).join(" - "), failed: true });
      return false;
    }
  };
  return { ...state, send, clear: () => setState(NOTHING) };
}

export function Answered({ state }) {
  return html`<span role="status" class=${state.failed ? "trouble" : "quiet"}>${state.busy ? "asking the supervisor ..." : state.text}</span>`;
}

// A button; with `confirm`, a question is asked before, as for what spends or ends something.
export function Act({ run, change, request, title, confirm, label, disabled }) {
  const state = useRequest(run, change);
  const dialog = useRef(null);
  const act = () => (confirm ? dialog.current.showModal() : state.send(request));
  const agree = () => {
    dialog.current.close();
    state.send(request);
  };
  return html`<span class="act"><button type="button" aria-label=${label} disabled=${state.busy || disabled} onClick=${act}>${title}</button>
    <${Answered} state=${state} />
    ${confirm ? html`<dialog ref=${dialog} aria-label=${title}><p>${confirm}</p><p class="bar"><button type="button" onClick=${agree}>${title}</button>
      <button type="button" onClick=${() => dialog.current.close()}>Leave it</button></p></dialog>` : null}</span>`;
}

// A line of text for somebody: `make` turns it into a request.
export function Say({ run, change, make, label, title }) {
  const [text, setText] = useState("");
  const state = useRequest(run, change);
  const submit = async (event) => {
    event.preventDefault();
    if (text.trim() && (await state.send(make(text)))) setText("");
  };
  return html`<form class="say" onSubmit=${submit}><label>${label} <textarea rows="2" value=${text} onInput=${(event) => setText(event.target.value)}></textarea></label>
    <button disabled=${state.busy || !text.trim()}>${title}</button> <${Answered} state=${state} /></form>`;
}
