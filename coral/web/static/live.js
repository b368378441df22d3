// What a run tells by itself: one connection, which the browser makes again when it drops.
import { useEffect, useState } from "./base.js";

const KEPT = 1000;

const nothing = () => ({ fleet: null, events: [], points: [], connected: false, everConnected: false, version: 0 });
const keyOf = (event) => `${event.clock} ${event.type} ${event.agent} ${event.text}`;

// {fleet, events, points, connected, version}: `points` are those published since the page was opened; `version` grows
// with each improvement, for what has to be read again then.
export function useLive(run) {
  const [state, setState] = useState(nothing);
  useEffect(() => {
    if (!run) return undefined;
    setState(nothing());
    const on = (source, kind, change) =>
      source.addEventListener(kind, (message) => {
        const data = JSON.parse(message.data);
        setState((before) => ({ ...before, ...change(before, data) }));
      });
    let source;
    let timer;
    const open = () => {
      source = new EventSource(`/api/runs/${encodeURIComponent(run)}/live`);
      source.addEventListener("open", () =>
        setState((before) => ({ ...before, connected: true, everConnected: true, version: before.version + before.everConnected })),
      );
      source.addEventListener("error", () => {
        setState((before) => ({ ...before, connected: false }));
        if (source.readyState === EventSource.CLOSED) timer = setTimeout(open, 2000);
      });
      on(source, "fleet", (_, fleet) => ({ fleet }));
      on(source, "events", (_, events) => ({ events }));
      on(source, "event", (before, event) => addEvent(before, event));
      on(source, "point", (before, point) => addPoint(before, point));
    };
    open();
    return () => {
      clearTimeout(timer);
      source.close();
    };
  }, [run]);
  return state;
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
