// The attempts: a table that the server sorts and narrows. What else there is of them has pages below it.
import { Attempt, Trouble, VERDICTS, Verdict, html, link, query, useAnswer, useEffect, useState } from "../base.js";
import { One } from "./attempt.js";
import { Lineage } from "./lineage.js";
import { Metrics } from "./metrics.js";

const ROWS = 50;
const KINDS = ["real", "tune", "confirm", "baseline"];
const COLUMNS = [
  ["number", "#"],
  ["score", "score"],
  ["verdict", "verdict"],
  ["kind", "kind"],
  ["agent", "agent"],
];
const VIEWS = [
  ["", "Table"],
  ["lineage", "Lineage"],
  ["metrics", "Metrics"],
];
const NOTHING = { agent: "", verdict: "", kind: "", text: "", metric: "", least: "", greatest: "" };

export function Attempts({ run, at, live }) {
  const [view, number] = at.more;
  if (view && /^\d+$/.test(view)) return html`<${Views} run=${run} /><${One} run=${run} number=${view} />`;
  const shown = VIEWS.some(([name]) => name === view) ? view : "";
  return html`<h2>Attempts</h2><${Views} run=${run} shown=${shown} />
    ${shown === "lineage" ? html`<${Lineage} run=${run} around=${number || ""} live=${live} />` : shown === "metrics" ? html`<${Metrics} run=${run} live=${live} />` : html`<${Table} run=${run} live=${live} />`}`;
}

function Views({ run, shown }) {
  const current = (name) => (name === shown ? "page" : undefined);
  return html`<nav class="views" aria-label="Views of the attempts">${VIEWS.map(
    ([name, title]) => html`<a href=${name ? link(run, "attempts", name) : link(run, "attempts")} aria-current=${current(name)}>${title}</a>`,
  )}</nav>`;
}

// A text that is taken over when the keyboard has rested for a moment.
function useRested(value) {
  const [rested, setRested] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setRested(value), 250);
    return () => clearTimeout(timer);
  }, [value]);
  return rested;
}

function Table({ run, live }) {
  const [wanted, setWanted] = useState({ ...NOTHING, order: "number", way: "down", offset: 0 });
  const change = (more) => setWanted((before) => ({ ...before, offset: 0, ...more }));
  const rested = { text: useRested(wanted.text), least: useRested(wanted.least), greatest: useRested(wanted.greatest) };
  const latest = wanted.offset === 0 && live.points.length ? live.points[live.points.length - 1].number : 0;
  const state = useAnswer(`/api/runs/${encodeURIComponent(run)}/attempts${query({ ...wanted, ...rested, most: ROWS })}`, latest);
  const [held, setHeld] = useState(null);
  useEffect(() => state.data && setHeld({ ...state.data, metric: wanted.metric }), [state.data]);
  const data = state.data || (held && held.metric === wanted.metric ? held : null);
  const sort = (name) => change(wanted.order === name ? { way: wanted.way === "down" ? "up" : "down" } : { order: name, way: "down" });
  const columns = wanted.metric ? [...COLUMNS.slice(0, 2), ["metric", wanted.metric], ...COLUMNS.slice(2)] : COLUMNS;
  return html`<${Filters} run=${run} live=${live} wanted=${wanted} change=${change} />
    <${Trouble} error=${state.error} />
    ${data ? html`<${Pages} data=${data} move=${(offset) => setWanted((before) => ({ ...before, offset }))} />
    <div class="scroll" role="region" aria-label="Attempts" tabindex="0"><table class="attempts" aria-busy=${!state.data}>
      <thead><tr>${columns.map(([name, title]) => html`<${Heading} name=${name} title=${title} wanted=${wanted} sort=${sort} />`)}<th scope="col">when</th><th scope="col">title</th></tr></thead>
      <tbody>${data.rows.map((row) => html`<${Row} key=${row.number} run=${run} row=${row} metric=${wanted.metric} />`)}</tbody></table></div>
    ${data.rows.length ? null : html`<p class="quiet">No attempt matches.</p>`}` : state.error ? null : html`<p class="quiet" role="status">Loading ...</p>`}`;
}

function Filters({ run, live, wanted, change }) {
  const state = useAnswer(`/api/runs/${encodeURIComponent(run)}/metrics`, live.version);
  const names = state.data ? state.data.names : [];
  const choose = (name) => (event) => change({ [name]: event.target.value });
  const agents = live.fleet ? (live.fleet.agents || []).map((agent) => agent.name) : [];
  const select = (label, name, options) => html`<label>${label} <select value=${wanted[name]} onChange=${choose(name)}><option value="">all</option>${options.map((one) => html`<option>${one}</option>`)}</select></label>`;
  const metric = (event) => change({ metric: event.target.value, least: "", greatest: "", order: wanted.order === "metric" ? "number" : wanted.order });
  return html`<form class="bar" role="search" onSubmit=${(event) => event.preventDefault()}>
    ${select("Agent", "agent", agents)}${select("Verdict", "verdict", VERDICTS)}${select("Kind", "kind", KINDS)}
    <label>Text <input type="search" value=${wanted.text} onInput=${choose("text")} placeholder="title, reason, feedback" /></label>
    ${names.length ? html`<label>Metric <select value=${wanted.metric} onChange=${metric}><option value="">none</option>${names.map((name) => html`<option>${name}</option>`)}</select></label>` : null}
    ${wanted.metric ? html`<label>at least <input class="short" inputmode="decimal" value=${wanted.least} onInput=${choose("least")} /></label>
    <label>at most <input class="short" inputmode="decimal" value=${wanted.greatest} onInput=${choose("greatest")} /></label>` : null}
  </form>`;
}

function Heading({ name, title, wanted, sort }) {
  const sorted = wanted.order === name;
  const down = wanted.way === "down";
  return html`<th scope="col" class=${["number", "score", "metric"].includes(name) ? "number" : ""} aria-sort=${sorted ? (down ? "descending" : "ascending") : undefined}>
    <button type="button" class="sort" onClick=${() => sort(name)}><bdi>${title}</bdi>${sorted ? (down ? " ↓" : " ↑") : ""}</button></th>`;
}

function Row({ run, row, metric }) {
  return html`<tr data-row=${row.number}><th scope="row" class="number"><${Attempt} run=${run} number=${row.number} /></th>
    <td class=${`number ${row.best ? "best" : ""}`}>${row.score}</td>${metric ? html`<td class="number">${row.metric}</td>` : null}
    <td><${Verdict} verdict=${row.verdict} />${row.best ? " (the best)" : ""}</td>
    <td>${row.kind}${row.of === null ? "" : ` of #${row.of}`}${row.epoch === null ? "" : `, epoch ${row.epoch}`}</td><td><bdi>${row.agent}</bdi></td>
    <td><time datetime=${row.at}>${row.ago}</time></td><td class="title"><bdi>${row.title}</bdi>${row.reason ? html` <span class="quiet">${row.reason}</span>` : null}</td></tr>`;
}

function Pages({ data, move }) {
  const last = Math.min(data.offset + data.most, data.total);
  return html`<p class="bar"><span role="status">${data.total ? `${data.offset + 1} to ${last} of ${data.total}` : "none"}</span>
    <button type="button" disabled=${data.offset === 0} onClick=${() => move(Math.max(0, data.offset - data.most))}>Earlier rows</button>
    <button type="button" disabled=${last >= data.total} onClick=${() => move(data.offset + data.most)}>Later rows</button></p>`;
}
