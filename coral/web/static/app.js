// The page as a whole: which run and which page is shown, and what is the matter with the connection.
import { Trouble, html, link, place, render, useAnswer, useEffect, useState } from "./base.js";
import { useLive } from "./live.js";
import { Fleet } from "./pages/fleet.js";
import { Hint } from "./prose.js";
import { Transcripts } from "./pages/agents.js";
import { Attempts } from "./pages/attempts.js";
import { Heartbeats } from "./pages/heartbeats.js";
import { Knowledge } from "./pages/knowledge.js";
import { RunList } from "./pages/runs.js";
import { Past } from "./pages/past.js";
import { Steering } from "./pages/steering.js";

const PAGES = [
  ["fleet", "Fleet", Fleet],
  ["attempts", "Attempts", Attempts],
  ["knowledge", "Knowledge", Knowledge],
  ["heartbeats", "Heartbeats", Heartbeats],
  ["transcripts", "Transcripts", Transcripts],
  ["time", "Time", Past],
  ["runs", "Runs", RunList],
  ["steering", "Steering", Steering],
];

function usePlace() {
  const now = () => ({ hash: location.hash, place: place() });
  const [at, setAt] = useState(now);
  useEffect(() => {
    const moved = () => setAt((was) => (was.hash === location.hash ? was : now()));
    addEventListener("hashchange", moved);
    moved();  // the address may have changed since the first drawing
    return () => removeEventListener("hashchange", moved);
  }, []);
  return at.place;
}

// The reader of a screen is told of a new page, and the keyboard goes on from its top.
function useFocusOnMove(at) {
  useEffect(() => {
    document.title = `${at.page} - ${at.run || "Coral"}`;
    if (document.activeElement && document.activeElement.tagName === "A") document.getElementById("main")?.focus();
  }, [at.run, at.page, at.more.join("/")]);
}

function App() {
  const at = usePlace();
  const session = useAnswer("/api/session");
  const run = at.run || (session.data ? session.data.run : "");
  const live = useLive(run);
  useFocusOnMove(at);
  const [, , Page] = PAGES.find(([name]) => name === at.page) || PAGES[0];
  return html`
    <a class="skip" href="#main" onClick=${skip}>Skip to the page</a>
    <header class="top">
      <h1><a href=${link(run, "fleet")}>Coral</a> <span class="run">${live.fleet && live.fleet.task ? `${live.fleet.task} / ` : ""}${run}</span></h1>
      <nav aria-label="Pages">
        ${PAGES.map(([name, title]) => html`<a href=${link(run, name)} aria-current=${name === at.page ? "page" : undefined}>${title}</a>`)}
      </nav>
      <${Connection} live=${live} />
    </header>
    <main id="main" tabindex="-1">
      <${Trouble} error=${session.error} />
      ${live.fleet && live.fleet.gone ? html`<p class="trouble" role="alert">${live.fleet.gone}</p>` : null}
      ${run && session.data ? html`<${Page} key=${`${run} ${at.page}`} run=${run} at=${at} live=${live} session=${session.data} />` : null}
    </main>
    <${Hint} run=${run} />`;
}

function skip(event) {
  event.preventDefault();
  document.getElementById("main").focus();
}

function Connection({ live }) {
  const state = live.fleet && live.fleet.state;
  const text = live.connected ? state || "connected" : live.trouble || (live.everConnected ? "connection lost, trying again" : "connecting");
  return html`<p class=${`connection ${live.connected ? "" : "lost"}`} role="status">${text}</p>`;
}

const root = document.getElementById("app");
root.replaceChildren();
render(html`<${App} />`, root);
