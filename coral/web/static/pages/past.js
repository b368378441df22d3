// The fleet as it was at any moment: a slider, and a button that plays.
import { Trouble, html, link, useAnswer, useEffect, useMemo, useState } from "../base.js";
import { Chart, clock } from "../chart.js";
import { Agents, Budgets, Grading, Score } from "./fleet.js";

const STEPS = 60; // of a whole run, when it is played
const STEP_MS = 500;
const REST_MS = 120; // that the slider must rest before the fleet is asked for

export function Past({ run, live }) {
  const end = Math.floor((live.fleet && live.fleet.clock) || 0);
  const [chosen, setChosen] = useState(null);
  const [playing, setPlaying] = useState(false);
  const [asked, setAsked] = useState(null);
  const at = Math.min(chosen === null ? end : chosen, end);
  useEffect(() => {
    const timer = setTimeout(() => setAsked(at), REST_MS);
    return () => clearTimeout(timer);
  }, [at]);
  useEffect(() => {
    if (!playing) return undefined;
    if (at >= end) return setPlaying(false);
    const timer = setTimeout(() => setChosen(at + Math.max(1, Math.round(end / STEPS))), STEP_MS);
    return () => clearTimeout(timer);
  }, [playing, at, end]);
  const state = useAnswer(asked === null ? null : `/api/runs/${encodeURIComponent(run)}/past?at=${asked}`);
  const [shown, setShown] = useState(null);
  useEffect(() => state.data && setShown(state.data), [state.data]);
  const play = () => {
    if (!playing && at >= end) setChosen(0);
    setPlaying(!playing);
  };
  return html`<h2>The fleet at ${clock(at)} <span class="quiet">${shown ? shown.wall.slice(0, 19).replace("T", " ") : ""}</span></h2>
    <p class="slider"><button type="button" onClick=${play}>${playing ? "Pause" : "Play"}</button>
      <input type="range" min="0" max=${end} value=${at} aria-label="Moment of the run" aria-valuetext=${clock(at)} onInput=${(event) => {
        setPlaying(false);
        setChosen(Number(event.target.value));
      }} /> <span>${clock(end)}</span></p>
    <${Trouble} error=${state.error} />
    ${shown ? html`<${Score} run=${run} fleet=${shown} /><${Budgets} fleet=${shown} /><${CurveUntil} run=${run} at=${at} /><${Agents} run=${run} agents=${shown.agents} /><${Grading} run=${run} grading=${shown.grading} />` : state.error ? null : html`<p class="quiet" role="status">Loading ...</p>`}`;
}

const NONE = [];

function CurveUntil({ run, at }) {
  const state = useAnswer(`/api/runs/${encodeURIComponent(run)}/curve`);
  const curve = useMemo(() => {
    if (!state.data) return null;
    const until = (steps) => steps.filter((step) => step[0] <= at);
    // Before the step at which the axis begins, all that there was would lie at its edge.
    const axis = state.data.axis && (state.data.axis.begins || [0])[0] <= at ? state.data.axis : null;
    return { ...state.data, axis, steps: until(state.data.steps), points: state.data.points.filter((point) => point.at <= at), end: at };
  }, [state.data, at]);
  if (!curve) return null;
  return html`<${Chart} run=${run} curve=${curve} extra=${NONE} agent="" scale="linear" onOpen=${(number) => (location.hash = link(run, "attempts", number))} label=${`Score until ${clock(at)}`} />`;
}
