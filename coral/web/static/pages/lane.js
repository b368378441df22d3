// The lane of an agent's life, as a drawing over the run's clock and as a list of the same things.
import { Attempt, Linked, html, link, query, token, useAnswer, useEffect, useMemo, useRef, useState } from "../base.js";
import { clock } from "../chart.js";

const ROW = 26;
const TOP = 22; // of the axis
const MARK = 40; // the width of a time at the axis
const MOST_ZOOM = 64;
const MOST_ROWS = 9; // heartbeats by name; more share the last row
const LISTED = 200;
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400, 172800, 604800];
const FATES = { received: "received", withdrawn: "withdrawn", skipped: "skipped" };
const SHOWS = { "": "everything", heartbeat: "heartbeats", attempt: "attempts", launch: "launches", interrupt: "interrupts", trouble: "stalls and crashes" };

export function Lane({ run, agent, lane }) {
  const [zoom, setZoom] = useState(1);
  const [chosen, setChosen] = useState(null);
  const [shows, setShows] = useState("");
  const names = useMemo(() => [...new Set(lane.items.filter((item) => item.name).map((item) => item.name))], [lane]);
  const select = (place) => {
    setShows("");
    setChosen(place);
  };
  if (!lane.items.length) return html`<p class="quiet">Nothing has happened to it yet.</p>`;
  return html`<p class="bar"><button type="button" disabled=${zoom >= MOST_ZOOM} onClick=${() => setZoom(zoom * 2)}>Zoom in</button>
      <button type="button" disabled=${zoom === 1} onClick=${() => setZoom(zoom / 2)}>Zoom out</button><button type="button" disabled=${zoom === 1} onClick=${() => setZoom(1)}>Its whole life</button>
      <span class="quiet">${lane.whole ? "" : `from ${clock(lane.begin)} on; what was before is left out. `}${lane.pending.length ? `Not delivered yet: ${lane.pending.join(", ")}.` : ""}</span></p>
    <${Drawing} agent=${agent} lane=${lane} names=${names} zoom=${zoom} chosen=${chosen} select=${select} />
    <p class="legend lanes" aria-hidden="true"><span class="lane-due">due, not received yet</span><span class="lane-work">at work on it</span><span class="lane-withdrawn">withdrawn</span><span class="lane-skipped">skipped</span><span class="lane-cut">interrupted</span></p>
    <div class="bar"><h3>The same as a list</h3><label>Show <select value=${shows} onChange=${(event) => setShows(event.target.value)}>${Object.entries(SHOWS).map(([kind, title]) => html`<option value=${kind}>${title}</option>`)}</select></label></div>
    <${List} run=${run} agent=${agent} items=${lane.items} shows=${shows} chosen=${chosen} />`;
}

function Drawing({ agent, lane, names, zoom, chosen, select }) {
  const box = useRef(null);
  const [width, setWidth] = useState(600);
  useEffect(() => {
    const sizes = new ResizeObserver(() => box.current && setWidth(box.current.clientWidth));
    sizes.observe(box.current);
    return () => sizes.disconnect();
  }, []);
  const before = useRef(1);
  useEffect(() => {
    const middle = box.current.scrollLeft + width / 2;
    box.current.scrollLeft = before.current === 1 && zoom > 1 ? box.current.scrollWidth : (middle * zoom) / before.current - width / 2;
    before.current = zoom;
  }, [zoom]);
  const rows = ["launches", "attempts", ...names.slice(0, MOST_ROWS), ...(names.length > MOST_ROWS ? ["others"] : [])];
  const whole = Math.max(width * zoom - 2, 100);
  const span = Math.max(lane.end - lane.begin, 1);
  const x = (at) => 8 + ((Math.max(at, lane.begin) - lane.begin) / span) * (whole - 16);
  const y = (row) => TOP + row * ROW + ROW / 2;
  const height = TOP + rows.length * ROW + 4;
  const step = STEPS.find((one) => (one / span) * whole > 70) || STEPS[STEPS.length - 1];
  const ticks = Array.from({ length: Math.floor(lane.end / step) - Math.ceil(lane.begin / step) + 1 }, (_, place) => (Math.ceil(lane.begin / step) + place) * step);
  const marks = useMemo(() => lane.items.map((item, place) => html`<g class=${`lane-item ${place === chosen ? "chosen" : ""}`} onClick=${() => select(place)}><title>${summary(item)}</title>${mark(item, x, y, names, lane.end)}</g>`), [lane, whole, chosen, names]);
  return html`<div class="lane"><div class="lane-names" aria-hidden="true" style=${{ paddingTop: `${TOP}px` }}>${rows.map((name) => html`<div>${name}</div>`)}</div>
    <div class="lane-box" ref=${box} tabindex="0" role="region" aria-label=${`The life of ${agent} over time; the list below has the same`}>
      <svg width=${whole} height=${height} aria-hidden="true">${ticks.map((at) => html`<g class="lane-tick"><line x1=${x(at)} x2=${x(at)} y1=${TOP - 4} y2=${height} />${x(at) + MARK < whole ? html`<text x=${x(at) + 3} y="13">${clock(at)}</text>` : null}</g>`)}
      ${marks}</svg></div></div>`;
}

// A launch is a bar; an attempt a point; a heartbeat a thin line from when it was due until the agent received it, and a
// bar while the agent was at work on it.
function mark(item, x, y, names, now) {
  const left = x(item.at);
  if (item.kind === "launch") return html`<rect class="lane-launch" x=${left} y=${y(0) - 7} width=${Math.max(x(item.end ?? now) - left, 2)} height="14" rx="2" />`;
  if (item.kind === "interrupt") return html`<line class="lane-cut" x1=${left} x2=${left} y1=${y(0) - 11} y2=${y(0) + 11} />`;
  if (item.kind === "trouble") return html`<text class="lane-trouble" x=${left} y=${y(0) + 5}>!</text>`;
  if (item.kind === "attempt") return html`<circle class=${`lane-attempt ${token(item.verdict)}`} cx=${left} cy=${y(1)} r=${item.verdict === "new best" ? 6 : 4} />`;
  const row = y(2 + Math.min(names.indexOf(item.name), MOST_ROWS));
  if (item.fate === "withdrawn") return html`<line class="lane-due" x1=${left} x2=${x(item.end)} y1=${row} y2=${row} /><circle class="lane-withdrawn" cx=${x(item.end)} cy=${row} r="4" />`;
  if (item.fate === "skipped") return html`<path class="lane-skipped" d=${`M${left - 4} ${row - 4}l8 8m0 -8l-8 8`} />`;
  const received = x(item.received);
  return html`<line class="lane-due" x1=${left} x2=${received} y1=${row} y2=${row} /><rect class="lane-work" x=${received} y=${row - 6} width=${Math.max(x(item.end ?? now) - received, 3)} height="12" rx="2" />`;
}

function summary(item) {
  if (item.kind === "attempt") return `${item.when} #${item.number} ${item.text}`;
  if (item.kind === "launch") return `${item.when} ${item.text}${item.took ? `, ${item.took}, ${item.ending}` : ", running"}`;
  if (item.kind === "interrupt") return `${item.when} interrupted: ${item.text}`;
  if (item.kind === "trouble") return `${item.when} ${item.text}`;
  return `${item.when} ${item.name} fell due${item.clocked ? " by the clock" : item.attempt === null ? "" : ` with #${item.attempt}`}, ${FATES[item.fate]}${item.waited ? ` after ${item.waited}` : ""}`;
}

function List({ run, agent, items, shows, chosen }) {
  const list = useRef(null);
  const [most, setMost] = useState(LISTED);
  const shown = items.map((item, place) => [item, place]).filter(([item, place]) => !shows || item.kind === shows || place === chosen).reverse();
  useEffect(() => {
    if (chosen === null) return;
    const place = shown.findIndex(([, one]) => one === chosen);
    if (place >= most) setMost(place + 1);
    requestAnimationFrame(() => list.current?.querySelector(".chosen")?.scrollIntoView({ block: "nearest" }));
  }, [chosen]);
  return html`<ol class="timeline lane-list" ref=${list} tabindex="0" aria-label=${`The life of ${agent}, the latest first`}>${shown.slice(0, most).map(([item, place]) => html`<li key=${place} class=${`${token(item.verdict || item.kind)} ${place === chosen ? "chosen" : ""}`} aria-current=${place === chosen ? "true" : undefined}><span class="when">${item.when}</span> <span class="who">${item.name || item.kind}</span> <span><${Told} run=${run} agent=${agent} item=${item} /></span></li>`)}</ol>
    ${shown.length > most ? html`<button type="button" onClick=${() => setMost(most + LISTED)}>Show ${Math.min(LISTED, shown.length - most)} more</button>` : null}`;
}

function Told({ run, agent, item }) {
  if (item.kind === "attempt") return html`<${Attempt} run=${run} number=${item.number} /> <bdi>${item.text}</bdi>`;
  if (item.kind === "launch") return html`<a href=${link(run, "transcripts", agent, item.launch)}>${item.text}</a>${item.took ? `: ${item.ending} after ${item.took}` : ", which runs"}`;
  if (item.kind === "interrupt") return `${item.text} is interrupted`;
  if (item.kind === "trouble") return item.text;
  const why = item.clocked ? "by the clock" : item.attempt === null ? "" : html`with <${Attempt} run=${run} number=${item.attempt} />`;
  if (item.fate !== "received") return html`fell due ${why}: <${Linked} run=${run} text=${item.fate === "skipped" ? `skipped, ${item.text}` : `withdrawn, ${item.text}`} />`;
  return html`fell due ${why}, received after ${item.waited || "an unknown time"}${item.interrupted === null ? ", without an interrupt" : ", interrupted for it"}${item.took ? `, at work on it ${item.took}` : ", at work on it now"}. ${item.launch === null ? null : html`<${Answer} run=${run} agent=${agent} launch=${item.launch} />`}`;
}

// Read when it is opened: an answer is a part of a conversation, which may be long.
function Answer({ run, agent, launch }) {
  const [open, setOpen] = useState(false);
  const state = useAnswer(open ? `/api/runs/${encodeURIComponent(run)}/heartbeats/answer${query({ agent, launch })}` : null);
  return html`<details onToggle=${(event) => setOpen(event.target.open)}><summary>Its answer</summary>${state.error ? html`<p class="trouble">${state.error.message}</p>` : !state.data ? html`<p class="quiet">Loading ...</p>` : state.data.replies.length ? state.data.replies.map((text) => html`<pre>${text}</pre>`) : html`<p class="quiet">It has said nothing in this launch.</p>`}
    <p><a href=${link(run, "transcripts", agent, launch)}>${state.data && state.data.more ? "It said more: the" : "The"} conversation of launch ${launch}</a></p></details>`;
}
