// All runs of the folder, and two to ten of them side by side.
import { Waiting, html, link, useAnswer, useEffect, useRef, useState } from "../base.js";
import { figure, lines } from "../chart.js";

const MOST = 10;

export function RunList({ at }) {
  const [chosen, setChosen] = useState([]);
  const state = useAnswer("/api/runs");
  const toggle = (run) => setChosen((before) => (before.includes(run) ? before.filter((one) => one !== run) : [...before, run].slice(-MOST)));
  return html`<h2>Runs</h2><${Waiting} state=${state}>${(data) => html`<div class="scroll" role="region" aria-label="Runs" tabindex="0"><table>
    <thead><tr><th scope="col">compare</th><th scope="col">run</th><th scope="col">task</th><th scope="col">state</th><th scope="col" class="number">best</th><th scope="col" class="number">attempts</th><th scope="col" class="number">agents</th><th scope="col" class="number">used</th><th scope="col" class="number">time</th><th scope="col">started</th></tr></thead>
    <tbody>${data.runs.map((one) => html`<tr key=${one.run} aria-current=${one.run === at.run ? "true" : undefined}><td><input type="checkbox" aria-label=${`compare ${one.run}`} checked=${chosen.includes(one.run)} onChange=${() => toggle(one.run)} /></td>
      <th scope="row"><a href=${link(one.run, "fleet")}>${one.run}</a></th><td><bdi>${one.task}</bdi></td><td><span class=${token(one.state)}>${one.state}</span></td><td class="number">${one.best}</td><td class="number">${one.attempts}</td><td class="number">${one.agents}</td><td class="number">${one.used}</td><td class="number">${one.clock}</td><td>${one.started}</td></tr>`)}</tbody></table></div>
    ${data.left_out ? html`<p class="quiet">${data.left_out} older runs are not listed.</p>` : null}`}<//>
    ${chosen.length > 1 ? html`<${Comparison} runs=${chosen} />` : html`<p class="quiet">Choose two to ten runs to compare them.</p>`}`;
}

const token = (state) => `is-${state}`;

function Comparison({ runs }) {
  const [over, setOver] = useState("time");
  const path = `/api/compare?${runs.map((run) => `run=${encodeURIComponent(run)}`).join("&")}`;
  const state = useAnswer(path);
  return html`<section aria-labelledby="compare-title"><div class="bar"><h3 id="compare-title">Side by side</h3><label>Over <select value=${over} onChange=${(event) => setOver(event.target.value)}><option value="time">time</option><option value="graded">attempts</option></select></label></div>
    <${Waiting} state=${state}>${(data) => html`${data.concerns.map((text) => html`<p class="notice">${text}</p>`)}
      <${Curves} runs=${data.runs} over=${over} />
      <div class="scroll" role="region" aria-label="Comparison" tabindex="0"><table><thead><tr><th scope="col">run</th><th scope="col" class="number">seed</th><th scope="col" class="number">best</th><th scope="col" class="number">attempts</th><th scope="col" class="number">failed</th><th scope="col" class="number">gain per attempt</th><th scope="col">its best change</th></tr></thead>
      <tbody>${data.runs.map((one) => html`<tr><th scope="row">${one.label}</th><td class="number">${figure(one.seed)}</td><td class="number">${figure(one.best)}</td><td class="number">${one.attempts}</td><td class="number">${one.failed}</td><td class="number">${figure(one.gain_per_attempt)}</td>
        <td>${one.best_number === null ? "" : html`<a href=${link(one.run, "attempts", one.best_number)}>#${one.best_number}</a>`}</td></tr>`)}</tbody></table></div>
      ${data.settings.length ? html`<h3>Settings that differ</h3><div class="scroll" role="region" aria-label="Settings" tabindex="0"><table><thead><tr><th scope="col">setting</th>${data.runs.map((one) => html`<th scope="col">${one.label}</th>`)}</tr></thead><tbody>${data.settings.map(([key, values]) => html`<tr><th scope="row">${key}</th>${values.map((value) => html`<td>${value}</td>`)}</tr>`)}</tbody></table></div>` : null}`}<//></section>`;
}

function Curves({ runs, over }) {
  const box = useRef(null);
  useEffect(() => {
    const plot = lines(box.current, runs.map((one) => ({ label: one.label, points: one[over] })), over === "time");
    return () => plot.destroy();
  }, [runs, over]);
  return html`<div class="chart" ref=${box} role="img" aria-label="The best score of each run; the table below has the figures"></div>`;
}
