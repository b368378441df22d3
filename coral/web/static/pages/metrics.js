// Two figures of each attempt against each other, as points of the verdict's colour. Drawn by uPlot.
import { VERDICTS, Waiting, html, link, query, token, useAnswer, useEffect, useRef, useState } from "../base.js";
import { HEIGHT, NEAR, axis, colour, dots, figure, figures } from "../chart.js";

const GROUPS = ["failed", "worse", "tied", "own best", "new best"]; // the last lies on top

export function Metrics({ run, live }) {
  const state = useAnswer(`/api/runs/${encodeURIComponent(run)}/metrics`, live.version);
  return html`<${Waiting} state=${state}>${({ names }) => (names.length ? html`<${Pair} run=${run} live=${live} names=${names} />` : html`<p class="quiet">No attempt has metrics: the grader gives a score alone.</p>`)}<//>`;
}

function Pair({ run, live, names }) {
  const [axes, setAxes] = useState({ x: names[0], y: "" });
  const state = useAnswer(`/api/runs/${encodeURIComponent(run)}/metrics/pairs${query(axes)}`, live.version);
  const choose = (name) => html`<label>${name === "x" ? "Across" : "Up"} <select value=${axes[name]} onChange=${(event) => setAxes({ ...axes, [name]: event.target.value })}>
    <option value="">the score</option>${names.map((one) => html`<option>${one}</option>`)}</select></label>`;
  const text = (name) => axes[name] || "score";
  return html`<div class="bar">${choose("y")}${choose("x")}</div>
    <${Waiting} state=${state}>${(data) => html`${data.points.length ? html`<${Scatter} run=${run} data=${data} x=${text("x")} y=${text("y")} />` : html`<p class="quiet">No attempt has both.</p>`}
      <p class="legend" aria-hidden="true">${VERDICTS.slice(0, 5).map((name) => html`<span class=${token(name)}>${name}</span>`)}${data.left_out ? html`<span class="quiet">${data.left_out} more attempts not drawn</span>` : null}</p>
      <p class="quiet">Drag over a part to see it larger; a double click shows all again.</p>
      <${Bests} run=${run} data=${data} x=${text("x")} y=${text("y")} />`}<//>`;
}

// The rows for uPlot: x from left to right, then a row for each verdict.
export function rowsOf(points) {
  const sorted = [...points].sort((a, b) => a[3] - b[3]);
  const group = (verdict) => sorted.map((point) => (point[2] === verdict ? point[4] : null));
  return { sorted, data: [sorted.map((point) => point[3]), ...GROUPS.map(group)] };
}

function Scatter({ run, data, x, y }) {
  const box = useRef(null);
  useEffect(() => {
    const rows = rowsOf(data.points);
    let plot;
    const make = () => {
      plot?.destroy();
      const titled = (label, more) => ({ ...axis(), label, labelSize: 22, values: figures(false), ...more });
      const options = {
        width: box.current.clientWidth,
        height: HEIGHT + 60,
        legend: { show: false },
        cursor: { drag: { x: true, y: true }, points: { show: false } },
        scales: { x: { time: false } },
        axes: [titled(x), titled(y, { size: 70 })],
        series: [{}, ...GROUPS.map((name) => ({ ...dots(name), scale: "y" }))],
      };
      plot = new uPlot(options, rows.data, box.current);
    };
    make();
    const open = (event) => {
      const over = plot.over.getBoundingClientRect();
      const number = nearest(plot, rows.sorted, event.clientX - over.left, event.clientY - over.top);
      if (number !== null) location.hash = link(run, "attempts", number);
    };
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", make);
    box.current.addEventListener("click", open);
    const sizes = new ResizeObserver(() => box.current && plot.setSize({ width: box.current.clientWidth, height: HEIGHT + 60 }));
    sizes.observe(box.current);
    const held = box.current;
    return () => {
      sizes.disconnect();
      held.removeEventListener("click", open);
      dark.removeEventListener("change", make);
      plot.destroy();
    };
  }, [data, x, y]);
  const label = `${y} against ${x} of ${data.points.length} attempts. The table below has the new bests, the table of attempts all of them.`;
  return html`<div class="chart" ref=${box} role="img" aria-label=${label}></div>`;
}

// The number of the attempt whose point is nearest to a place on the drawing, in pixels.
function nearest(plot, points, left, top) {
  let found = null;
  for (const [number, , , x, y] of points) {
    const far = Math.hypot(plot.valToPos(x, "x") - left, plot.valToPos(y, "y") - top);
    if (far <= NEAR && (!found || far < found.far)) found = { number, far };
  }
  return found && found.number;
}

function Bests({ run, data, x, y }) {
  const bests = data.points.filter((point) => point[2] === "new best").slice(-20).reverse();
  if (!bests.length) return null;
  return html`<h3 id="pairs-title">The last new bests</h3><div class="scroll" role="region" aria-labelledby="pairs-title" tabindex="0"><table><thead><tr><th scope="col" class="number">#</th><th scope="col">agent</th><th scope="col" class="number">${y}</th><th scope="col" class="number">${x}</th></tr></thead>
    <tbody>${bests.map(([number, agent, , across, up]) => html`<tr><th scope="row" class="number"><a class="attempt" href=${link(run, "attempts", number)} data-attempt=${number}>#${number}</a></th><td><bdi>${agent || "the seed"}</bdi></td><td class="number">${figure(up)}</td><td class="number">${figure(across)}</td></tr>`)}</tbody></table></div>`;
}
