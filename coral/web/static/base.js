// What every page uses: elements, the server's answers, addresses within the page.
import { h } from "./vendor/preact-11.2.0.mjs";
import { useEffect, useState } from "./vendor/preact-hooks-11.2.0.mjs";
import htm from "./vendor/htm-3.1.1.mjs";

export const html = htm.bind(h);
export { render } from "./vendor/preact-11.2.0.mjs";
export { useEffect, useLayoutEffect, useMemo, useRef, useState } from "./vendor/preact-hooks-11.2.0.mjs";

export class Refused extends Error {
  constructor(status, message, hint) {
    super(message);
    this.status = status;
    this.hint = hint;
  }
}

async function answer(response) {
  const text = await response.text();
  let data;
  try {
    data = JSON.parse(text);
  } catch {
    data = { error: `the server answered ${response.status} and no JSON` };
  }
  if (!response.ok) throw new Refused(response.status, data.error || response.statusText, data.hint || "");
  return data;
}

async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Refused(0, "the dashboard's server does not answer", "start it again: coral ui");
  }
  return answer(response);
}

export const get = (path) => ask(path, { cache: "no-store" });

export const post = (path, change, data) =>
  ask(path, {
    method: "POST",
    headers: { "content-type": "application/json", "x-coral-change": change },
    body: JSON.stringify(data),
  });

// The parameters that have a value, as the end of an address.
export function query(given) {
  const found = Object.entries(given).filter(([, value]) => value !== "" && value != null);
  return found.length ? `?${new URLSearchParams(found)}` : "";
}

const RETRY_MS = 2000;

// Told by `live.js` when the connection or the run is back: what a page has read may be old.
export const AGAIN = "coral-again";

// {data, error}: of an address, read again whenever it or `version` changes, and when the server or the run is back;
// retried after an error, whatever it was: an attempt may come, a folder be moved back, a cookie be given.
export function useAnswer(path, version = 0) {
  const [state, setState] = useState({ path: null, data: null, error: null });
  const [tries, setTries] = useState(0);
  useEffect(() => {
    const again = () => setTries((count) => count + 1);
    document.addEventListener(AGAIN, again);
    return () => document.removeEventListener(AGAIN, again);
  }, []);
  useEffect(() => {
    if (!path) return undefined;
    let timer;
    let current = true;
    get(path).then(
      (data) => current && setState({ path, data, error: null }),
      (error) => {
        if (!current) return;
        setState((before) => ({ path, data: before.path === path ? before.data : null, error }));
        timer = setTimeout(() => setTries((count) => count + 1), RETRY_MS);
      },
    );
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [path, version, tries]);
  return state.path === path ? state : { data: null, error: null };
}

// A part of the page's address after #: /RUN/PAGE/MORE?name=value
export function place() {
  const [path, rest] = location.hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").filter(Boolean).map(decode);
  return { run: parts[0] || "", page: parts[1] || "fleet", more: parts.slice(2), asked: new URLSearchParams(rest || "") };
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export const link = (run, page, ...more) => `#/${[run, page, ...more].map(encodeURIComponent).join("/")}`;

export function Trouble({ error }) {
  if (!error) return null;
  return html`<p class="trouble" role="alert">${error.message}${error.hint ? html`<span class="quiet"> - ${error.hint}</span>` : null}</p>`;
}

export function Waiting({ state, children }) {
  if (state.data) return html`<${Trouble} error=${state.error} />${children(state.data)}`;
  return state.error ? html`<${Trouble} error=${state.error} />` : html`<p class="quiet" role="status">Loading ...</p>`;
}

// Text in which #17 is a link to that attempt.
export function Linked({ run, text }) {
  const parts = String(text ?? "").split(/(#\d{1,9}\b)/);
  return parts.map((part, place) => (place % 2 ? html`<${Attempt} run=${run} number=${part.slice(1)} />` : part));
}

export function Attempt({ run, number }) {
  return html`<a class="attempt" href=${link(run, "attempts", number)} data-attempt=${number}>#${number}</a>`;
}

export const VERDICTS = ["new best", "own best", "tied", "worse", "failed", "void"];
export const token = (text) => `is-${String(text).replace(/[^a-z]+/g, "-")}`;

export function Verdict({ verdict }) {
  return html`<span class=${`verdict ${token(verdict)}`}>${verdict}</span>`;
}
