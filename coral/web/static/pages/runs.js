// All runs of the folder, and two to ten of them side by side.
import { Waiting, html, link, useAnswer, useEffect, useRef, useState } from "../base.js";
import { figure, lines } from "../chart.js";

const MOST = 10;

export function RunList({ at }) {
  const [chosen, setChosen] = useState([]);
  const state = useAnswer("/api/runs");
  const toggle = (run) => setChosen((before) => (before.includes(run) ? before.filter((one) => one !== run) : [...before, run].slice(-MOST)));
  return html`<h2>Runs</h2><${Waiting} state=${state}>${(data) => html`<div class="scroll" role="region" aria-label="Runs" tabindex="0"><table>
    <thead><tr><th scope="col">compare</th><th scope="col">run</th><th scope="col">task</th><th scope="col">state</th><th scope="col" class="number">best</th><th scope="col" class="number">attempts</th><th scope="col" class="number">agents</th>${anyUse(data) ? html`<th scope="col" class="number">used</th>` : null}<th scope="col" class="number">time</th><th scope="col" class="number">started</th></tr></thead>
    <tbody>${data.runs.map((one) => html`<tr key=${one.run} aria-current=${one.run === at.run ? "true" : undefined}><td><input type="checkbox" aria-label=${`compare ${one.run}`} checked=${chosen.includes(one.run)} onChange=${() => toggle(one.run)} /></td>
      <th scope="row"><a href=${link(one.run, "fleet")}>${one.run}</a></th><td><bdi>${one.task}</bdi></td><td><span class=${token(one.state)}>${one.state}</span></td><td class="number">${one.best}</td><td class="number">${one.attempts}</td><td class="number">${one.agents}</td>${anyUse(data) ? html`<td class="number">${one.used}</td>` : null}<td class="number">${one.clock}</td><td class="number">${one.started}</td></tr>`)}</tbody></table></div>
    ${data.left_out ? html`<p class="quiet">${data.left_out} older runs are not listed.</p>` : null}`}<//>
    ${chosen.length > 1 ? html`<${Comparison} runs=${chosen} />` : html`<p class="quiet">Choose two to ten runs to compare them.</p>`}`;
}

const anyUse = (data) => data.runs.some((one) => one.used);

const token = (state) => `is-${state}`;

function Comparison({ runs }) {
  const [over, setOver] = useState("time");
  const [scale, setScale] = useState("linear");
  const path = `/api/compare?${runs.map((run) => `run=${encodeURIComponent(run)}`).join("&")}`;
  const state = useAnswer(path);
  const best = (one) => (one.best_number === null ? figure(one.best) : html`<a href=${link(one.run, "attempts", one.best_number)}>${figure(one.best)}</a>`);
  return html`<section aria-labelledby="compare-title"><div class="bar"><h3 id="compare-title">Side by side</h3><label>Over <select value=${over} onChange=${(event) => setOver(event.target.value)}><option value="time">time</option><option value="graded">attempts</option></select></label>
      <label>Scale <select value=${scale} onChange=${(event) => setScale(event.target.value)}><option value="linear">linear</option><option value="gap">gap to the best of all</option></select></label></div>
    <${Waiting} state=${state}>${(data) => html`${data.concerns.map((text) => html`<p class="notice">${text}</p>`)}
      <${Curves} runs=${data.runs} over=${over} scale=${scale} direction=${data.direction} edge=${data.edge} />
      <${Figures} label="Comparison" runs=${data.runs} rows=${[["best", best], ["seed", (one) => figure(one.seed)], ["attempts", (one) => one.attempts], ["failed", (one) => one.failed], ["agents", (one) => one.agents], ["time", (one) => one.clock], ["time to the best", (one) => one.to_best], ["used", (one) => one.used], ["gain per attempt", (one) => figure(one.gain_per_attempt)]]} />
      <h3>Best changes</h3>${data.runs.map((one) => html`<h4>${one.label}</h4>${one.changes.length ? html`<ul>${one.changes.map((change) => html`<li><a href=${link(one.run, "attempts", change.number)}>#${change.number}</a> gained ${figure(change.gain)} <span class="quiet">${change.agent}</span> <bdi>${change.title}</bdi></li>`)}</ul>` : html`<p class="quiet">Nothing has beaten ${one.seed === null && one.best !== null ? "its first attempt with a score" : "its seed"}.</p>`}`)}
      ${data.settings.length ? html`<h3>Settings that differ</h3><${Figures} label="Settings" runs=${data.runs} rows=${data.settings.map(([key, values]) => [key, (_, place) => values[place]])} />` : null}`}<//></section>`;
}

// A column for each run; a row is its name and what it says of a run. Those that say nothing of any are left out.
function Figures({ label, runs, rows }) {
  const saying = rows.filter(([, value]) => runs.some((one, place) => value(one, place) !== ""));
  return html`<div class="scroll" role="region" aria-label=${label} tabindex="0"><table><thead><tr><td></td>${runs.map((one) => html`<th scope="col" class="number">${one.label}</th>`)}</tr></thead>
    <tbody>${saying.map(([name, value]) => html`<tr><th scope="row">${name}</th>${runs.map((one, place) => html`<td class="number">${value(one, place)}</td>`)}</tr>`)}</tbody></table></div>`;
}

// A logarithmic scale has no place for 0, where the best of all is: it lies at half of the smallest gap, as in a report.
function gaps(runs, over, direction) {
  const ends = runs.flatMap((run) => run[over].map(([, value]) => value));
  const best = (direction === "maximize" ? Math.max : Math.min)(...ends);
  const least = Math.min(...ends.map((value) => Math.abs(best - value)).filter(Boolean)) / 2;
  return (points) => points.map(([at, value]) => [at, Math.abs(best - value) || (least < Infinity ? least : null)]);
}

function Curves({ runs, over, scale, direction, edge }) {
  const box = useRef(null);
  const isWorse = (value) => edge !== null && (direction === "maximize" ? value < edge : value > edge);
  useEffect(() => {
    const atEdge = (points) => points.map(([at, value]) => [at, isWorse(value) ? edge : value]);
    const shown = scale === "gap" ? gaps(runs, over, direction) : atEdge;
    const plot = lines(box.current, runs.map((one) => ({ label: one.label, points: shown(one[over]) })), over === "time", scale === "gap", edge);
    return () => plot.destroy();
  }, [runs, over, scale]);
  const beyond = scale !== "gap" && runs.some((one) => one[over].some(([, value]) => isWorse(value)));
  return html`<div class="chart" ref=${box} role="img" aria-label="The best score of each run; the table below has the figures"></div>
    ${beyond ? html`<p class="quiet">At the edge of the axis: what scores ${direction === "maximize" ? "less" : "more"} than ${figure(edge)}.</p>` : null}`;
}
