// The score over time: the best as a line, each attempt as a point of its verdict's colour. Drawn by uPlot.
import { Linked, html, token, useEffect, useLayoutEffect, useMemo, useRef } from "./base.js";

export const HEIGHT = 300;
export const NEAR = 14; // pixels between a click and the point that it means
const GROUPS = ["new best", "own best", "tied", "worse", "failed"];
const SECONDS = [1, 5, 10, 30, 60, 300, 600, 1800, 3600, 7200, 14400, 43200, 86400, 604800]; // between two marks
const FAILED_AT = 0.02; // of the height: what failed has no score

export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

// The rows for uPlot: times, the best, one agent's own best, then a row of scores for each verdict.
export function rowsOf(curve, extra, agent, scale) {
  const known = new Set(curve.points.map((point) => point.number));
  const points = [...curve.points, ...extra.filter((point) => !known.has(point.number))];
  const shown = points.filter((point) => !agent || point.agent === agent);
  const own = (agent && curve.own[agent]) || [];
  const end = Math.max(curve.end, ...shown.slice(-1).map((point) => point.at));
  const best = curve.steps.length ? curve.steps[curve.steps.length - 1][1] : null;
  const edge = scale === "linear" && curve.axis ? (curve.direction === "maximize" ? curve.axis.low : curve.axis.high) : null;
  const isWorse = (score) => edge !== null && (curve.direction === "maximize" ? score < edge : score > edge);
  const value = (score) => (score !== null && isWorse(score) ? edge : scaled(score, best, curve.direction, scale));
  const times = [...new Set([...curve.steps.map((step) => step[0]), ...own.map((step) => step[0]), ...shown.map((point) => point.at), end])];
  times.sort((a, b) => a - b);
  const index = new Map(times.map((time, place) => [time, place]));
  const row = () => new Array(times.length).fill(null);
  const line = (steps) => {
    const found = row();
    let next = 0;
    let held = null;
    times.forEach((time, place) => {
      while (next < steps.length && steps[next][0] <= time) held = value(steps[next++][1]);
      found[place] = held;
    });
    return found;
  };
  const groups = Object.fromEntries(GROUPS.map((name) => [name, row()]));
  const at = new Map();
  for (const point of shown) {
    const place = index.get(point.at);
    const y = point.verdict === "failed" || point.score === null ? FAILED_AT : value(point.score);
    const group = groups[point.score === null ? "failed" : point.verdict] || groups.worse;
    group[place] = y;
    at.set(place, [...(at.get(place) || []), { ...point, y }]);
  }
  const outside = shown.filter((point) => point.score !== null && isWorse(point.score)).length;
  return { data: [times, line(curve.steps), line(own), ...GROUPS.map((name) => groups[name])], at, edge, outside };
}

// The two ends of a linear axis, with some room; none beyond `edge`, where what is worse than the axis shows is drawn.
function ends(low, high, edge) {
  if (low === null) return [null, null];
  const room = high / 20 - low / 20 || Math.abs(high) / 20 || 1;
  return [low === edge ? low : low - room, high === edge ? high : high + room];
}

// `gap`: how far from the best, on a logarithmic scale, which has no place for 0.
function scaled(score, best, direction, scale) {
  if (score === null) return null;
  if (scale === "linear") return score;
  if (scale === "log") return score > 0 ? score : null;
  const gap = direction === "maximize" ? best - score : score - best;
  return gap > 0 ? gap : null;
}

export const clock = (seconds) => {
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes}:${String(Math.floor(seconds % 60)).padStart(2, "0")}` : `${Math.floor(minutes / 60)}h${String(minutes % 60).padStart(2, "0")}`;
};

export function figure(value, digits = 5) {
  if (value == null) return "";
  const rounded = Number(value.toPrecision(digits));
  return rounded && Math.abs(rounded) < 1e-4 ? rounded.toExponential() : rounded.toString();
}

// The figures at an axis, with as many digits as tell two of them apart, `step` from each other.
export const figures = (isLog) => (_, marks, __, ___, step) =>
  marks.map((mark) => figure(mark, isLog || !mark ? 5 : Math.min(Math.max(5, Math.ceil(Math.log10(Math.abs(mark) / step)) + 1), 15)));

// Of a logarithmic axis, the powers of ten: lines between them would be closer than can be told apart.
function powers(_, marks) {
  const found = marks.map((mark) => (mark > 0 && Math.abs(Math.log10(mark) - Math.round(Math.log10(mark))) < 1e-9 ? mark : null));
  return found.filter((mark) => mark !== null).length > 1 ? found : marks;
}

export const axis = (isLog = false) => {
  const filter = isLog ? { filter: powers } : {};
  return { stroke: colour("text"), grid: { stroke: colour("line"), width: 1, ...filter }, ticks: { stroke: colour("line"), ...filter } };
};

// The points of one verdict.
export const dots = (name) => ({
  label: name,
  scale: name === "failed" ? "failed" : "y",
  stroke: colour(token(name)),
  paths: () => null,
  points: { show: true, size: 6, fill: colour(token(name)), stroke: colour(token(name)) },
});

function options(width, scale, agent, rows) {
  const stepped = uPlot.paths.stepped({ align: 1 });
  const line = (label, stroke) => ({ label, stroke, width: 2, paths: stepped, points: { show: false }, spanGaps: true });
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { drag: { x: true, y: false }, points: { show: false } },
    scales: { x: { time: false }, y: scale === "linear" ? { range: (_, low, high) => ends(low, high, rows.current.edge) } : { distr: 3 }, failed: { range: [0, 1] } },
    axes: [
      { ...axis(), incrs: SECONDS, values: (_, ticks) => ticks.map(clock) },
      { ...axis(scale !== "linear"), size: 70, values: figures(scale !== "linear") },
    ],
    series: [{}, line("best", colour("accent")), { ...line(agent || "own best", colour("text")), show: Boolean(agent) }, ...GROUPS.map(dots)],
  };
}

// The attempt whose point is nearest to a place on the drawing, in pixels.
function nearest(plot, at, left, top) {
  let found = null;
  for (const [place, points] of at) {
    const x = plot.valToPos(plot.data[0][place], "x");
    if (Math.abs(x - left) > NEAR) continue;
    for (const point of points) {
      if (point.y === null) continue;
      const y = plot.valToPos(point.y, point.score === null ? "failed" : "y");
      const far = Math.hypot(x - left, y - top);
      if (far <= NEAR && (!found || far < found.far)) found = { ...point, far };
    }
  }
  return found;
}

export function Chart({ run, curve, extra, agent, scale, onOpen, label }) {
  const box = useRef(null);
  const plot = useRef(null);
  const rows = useRef(null);
  // Whatever else changes on the page, these stay: thousands of points are not gone through for a beat.
  rows.current = useMemo(() => rowsOf(curve, extra, agent, scale), [curve, extra, agent, scale]);
  useEffect(() => {
    if (!box.current) return undefined;
    const make = () => {
      plot.current?.destroy();
      plot.current = new uPlot(options(box.current.clientWidth, scale, agent, rows), rows.current.data, box.current);
    };
    make();
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", make);
    const sizes = new ResizeObserver(() => box.current && plot.current.setSize({ width: box.current.clientWidth, height: HEIGHT }));
    sizes.observe(box.current);
    return () => {
      sizes.disconnect();
      dark.removeEventListener("change", make);
      plot.current.destroy();
    };
  }, [scale, agent]);
  // Before the page is painted: an effect after it would show a new point one frame later, or two.
  useLayoutEffect(() => plot.current?.setData(rows.current.data), [curve, extra]);
  const click = (event) => {
    const over = plot.current.over.getBoundingClientRect();
    const found = nearest(plot.current, rows.current.at, event.clientX - over.left, event.clientY - over.top);
    if (found) onOpen(found.number);
  };
  return html`<div class="chart" ref=${box} role="img" aria-label=${label} onClick=${click}></div><${Edge} run=${run} curve=${curve} rows=${rows.current} />`;
}

// Says where a linear axis begins, and what lies at its edge since it is worse.
function Edge({ run, curve, rows }) {
  const begins = rows.edge !== null && curve.axis.begins;
  if (!begins && !rows.outside) return null;
  const worse = curve.direction === "maximize" ? "below" : "above";
  return html`<p class="quiet"><${Linked} run=${run} text=${begins ? `The axis begins at #${begins[2]}, ${figure(begins[1])}; ${curve.has_seed ? "the seed" : `#${curve.steps[0][2]}`}, ${figure(curve.steps[0][1])}, lies ${worse} it. ` : ""} />
    ${rows.outside ? `At its edge: ${rows.outside} attempt${rows.outside === 1 ? "" : "s"} with a worse score than it shows.` : ""}</p>`;
}

const COLOURS = ["#a83a24", "#1f6f8b", "#1a6b35", "#7a5200", "#6b3fa0", "#b0447f", "#3f5fbf", "#5d6b1f", "#8a5a44", "#59616c"];

// Several runs' best scores as stepped lines. Runs are told apart by colour and by the legend. `edge`: of a linear axis.
export function lines(box, runs, isTime, isLog, edge) {
  const times = [...new Set(runs.flatMap((run) => run.points.map(([at]) => at)))].sort((a, b) => a - b);
  const rows = runs.map((run) => {
    let next = 0;
    let held = null;
    const last = run.points.length ? run.points[run.points.length - 1][0] : -1;
    return times.map((time) => {
      while (next < run.points.length && run.points[next][0] <= time) held = run.points[next++][1];
      return time > last ? null : held;
    });
  });
  const stepped = uPlot.paths.stepped({ align: 1 });
  const series = runs.map((run, place) => ({ label: run.label, stroke: COLOURS[place % COLOURS.length], width: 2, paths: stepped, points: { show: false } }));
  const found = {
    width: box.clientWidth,
    height: HEIGHT,
    scales: { x: { time: false }, y: isLog ? { distr: 3 } : { range: (_, low, high) => ends(low, high, edge) } },
    axes: [isTime ? { ...axis(), incrs: SECONDS, values: (_, ticks) => ticks.map(clock) } : axis(), { ...axis(isLog), size: 70, values: figures(isLog) }],
    series: [{ label: isTime ? "time" : "attempts", value: (_, value) => (value === null ? "" : isTime ? clock(value) : value) }, ...series],
  };
  return new uPlot(found, [times, ...rows], box);
}
