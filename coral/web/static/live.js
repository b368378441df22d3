// What a run tells by itself: one connection, which is made again when it drops, or when nothing comes over it any more.
import { AGAIN, get, useEffect, useState } from "./base.js";

const KEPT = 1000;
const RETRY_MS = 2000;
const SILENT_MS = 9000; // the server says something every three seconds (PING_SECONDS)

const nothing = () => ({ fleet: null, events: [], points: [], connected: false, everConnected: false, trouble: "", version: 0 });
const keyOf = (event) => `${event.clock} ${event.type} ${event.agent} ${event.text}`;

// {fleet, events, points, connected, trouble, version}: `points` are those published since the page was opened;
// `version` grows with each improvement, for what has to be read again then; `trouble`: why there is no connection.
export function useLive(run) {
  const [state, setState] = useState(nothing);
  useEffect(() => {
    if (!run) return undefined;
    setState(nothing());
    return follow(run, setState);
  }, [run]);
  return state;
}

// Keeps a connection to the run until the function that it returns is called.
function follow(run, setState) {
  const path = `/api/runs/${encodeURIComponent(run)}`;
  let source;
  let retry;
  let heard;
  let known = false; // whether there was a connection before
  let gone = false;
  const again = () => document.dispatchEvent(new Event(AGAIN));
  const lost = (trouble) => setState((before) => ({ ...before, connected: false, trouble }));
  const on = (kind, change) =>
    source.addEventListener(kind, (message) => {
      heard = Date.now();
      const data = JSON.parse(message.data);
      setState((before) => ({ ...before, ...change(before, data) }));
    });
  const open = () => {
    heard = Date.now();
    source = new EventSource(`${path}/live`);
    source.addEventListener("open", () => {
      heard = Date.now();
      setState((before) => ({ ...before, connected: true, everConnected: true, trouble: "" }));
      if (known) again();
      known = true;
    });
    source.addEventListener("error", () => {
      lost("");
      if (source.readyState !== EventSource.CLOSED) return; // the browser tries again by itself
      get(`${path}/fleet`).catch((error) => lost(error.hint ? `${error.message}: ${error.hint}` : error.message));
      retry = setTimeout(open, RETRY_MS);
    });
    on("fleet", (_, fleet) => {
      if (gone && !fleet.gone) again();
      gone = Boolean(fleet.gone);
      return { fleet };
    });
    on("events", (_, events) => ({ events }));
    on("event", addEvent);
    on("point", addPoint);
    on("ping", () => ({}));
  };
  // A server that was suspended, or a network that is gone, ends no connection.
  const watch = setInterval(() => {
    if (Date.now() - heard < SILENT_MS || source.readyState === EventSource.CLOSED) return;
    lost("the dashboard's server does not answer; trying again");
    source.close();
    open();
  }, 1000);
  open();
  return () => {
    clearInterval(watch);
    clearTimeout(retry);
    source.close();
  };
}

export function addEvent(before, event) {
  const key = keyOf(event);
  if (before.events.slice(-50).some((known) => keyOf(known) === key)) return {};
  return { events: [...before.events, event].slice(-KEPT) };
}

export function addPoint(before, point) {
  if (before.points.some((known) => known.number === point.number)) return {};
  const improved = point.verdict === "new best" || point.verdict === "own best";
  return { points: [...before.points, point].slice(-KEPT), version: before.version + improved };
}
