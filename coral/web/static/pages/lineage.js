// Who built on whom: a graph, the same as a list, and whose best came from whom.
import { Attempt, Verdict, Waiting, html, link, query, token, useAnswer, useEffect, useMemo, useRef, useState } from "../base.js";
import { ROW, TOP, laidOut, rowNames, neighbour } from "../graph.js";

export function Lineage({ run, around, live }) {
  const state = useAnswer(`/api/runs/${encodeURIComponent(run)}/lineage${query({ around })}`, live.version);
  return html`<${Chooser} run=${run} around=${around} />
    <${Waiting} state=${state}>${(data) => html`<${Shown} run=${run} data=${data} />`}<//>`;
}

function Chooser({ run, around }) {
  const [number, setNumber] = useState(around);
  useEffect(() => setNumber(around), [around]);
  const go = (event) => {
    event.preventDefault();
    const found = /^#?(\d{1,9})$/.exec(number.trim());
    location.hash = found ? link(run, "attempts", "lineage", found[1]) : link(run, "attempts", "lineage");
  };
  return html`<form class="bar" onSubmit=${go}><label>Around attempt <input class="short" inputmode="numeric" value=${number} onInput=${(event) => setNumber(event.target.value)} /></label>
    <button>Show</button>${around ? html`<a href=${link(run, "attempts", "lineage")}>Where the best comes from</a>` : null}</form>`;
}

function Shown({ run, data }) {
  if (!data.nodes.length) return html`<p class="quiet">No attempt yet.</p>`;
  const shown = data.around === null ? "Where the best and each agent's own best come from, and the latest attempts." : `What #${data.around} was built on, what was built on it, and where the best comes from.`;
  return html`${data.note ? html`<p class="notice">${data.note}</p>` : null}
    <p>${shown} ${data.left_out ? html`<span class="quiet">It draws ${data.nodes.length} attempts and leaves out ${data.left_out}: a dashed line passes over some, +n counts those that were built on an attempt.</span>` : null}</p>
    <${Graph} run=${run} data=${data} />
    <${Bests} run=${run} data=${data} />
    <${List} run=${run} data=${data} />`;
}

const named = (agent) => agent || "the seed";

function says(node, best) {
  const from = node.parent === null ? "" : `, built on #${node.parent}${node.between ? ` with ${node.between} between` : ""}`;
  const more = node.hidden ? `, ${node.hidden} more built on it` : "";
  return `#${node.number} by ${named(node.agent)}: ${node.score}, ${node.number === best ? "the best" : node.verdict}${from}${more}`;
}

function Graph({ run, data }) {
  const drawn = useMemo(() => laidOut(data), [data]);
  const first = data.around !== null && drawn.nodes.has(data.around) ? data.around : drawn.nodes.has(data.best) ? data.best : data.nodes[data.nodes.length - 1].number;
  const [current, setCurrent] = useState(first);
  const box = useRef(null);
  const at = drawn.nodes.has(current) ? current : first;
  useEffect(() => {
    box.current.scrollLeft = drawn.nodes.get(first).x - box.current.clientWidth * 0.7;
    setCurrent(first);
  }, [data.around, first]);
  const move = (event) => {
    const number = neighbour(data, at, event.key);
    if (number === null) return;
    event.preventDefault();
    setCurrent(number);
    box.current.querySelector(`a[data-attempt="${number}"]`)?.focus();
  };
  const label = "Lineage: arrow keys go from attempt to attempt, Enter opens one. The list below says the same.";
  return html`<div class="graph"><ol class="row-names" aria-hidden="true">${rowNames(data).map((name) => html`<li><bdi>${name}</bdi></li>`)}</ol>
    <div class="scroll" ref=${box}><svg width=${drawn.width} height=${drawn.height} role="group" aria-label=${label} onKeyDown=${move}>
      ${rowNames(data).map((_, place) => html`<line class="row-line" x1="0" x2="100%" y1=${TOP + place * ROW} y2=${TOP + place * ROW} />`)}
      ${drawn.edges.map((edge) => html`<path class=${`edge${edge.main ? " main" : ""}${edge.between ? " passes" : ""}`} d=${edge.path} />`)}
      ${[...drawn.nodes.values()].map(
        ({ x, y, node }) => html`<a key=${node.number} class=${`node ${token(node.verdict)}${node.main ? " main" : ""}${node.number === data.around ? " chosen" : ""}`} href=${link(run, "attempts", node.number)} data-attempt=${node.number}
          tabindex=${node.number === at ? 0 : -1} aria-label=${says(node, data.best)} onFocus=${() => setCurrent(node.number)}>
          <rect class="reach" x=${x - 25} y=${y - 18} width="50" height="36" />
          <circle cx=${x} cy=${y} r=${node.number === data.best ? 9 : 6} />
          <text x=${x} y=${y + 20}>#${node.number}</text></a>
          ${node.hidden ? html`<text class="more" aria-hidden="true" x=${x + 9} y=${y - 7}>+${node.hidden}</text>` : null}`,
      )}</svg></div></div>
    <p class="legend" aria-hidden="true"><span class="line">the line of the best</span>${["new best", "own best", "tied", "worse", "failed"].map((name) => html`<span class=${token(name)}>${name}</span>`)}</p>`;
}

function Bests({ run, data }) {
  if (!data.bests.length) return null;
  return html`<h3 id="bests-title">Whose best came from whom</h3>
    <div class="scroll tall" role="region" aria-labelledby="bests-title" tabindex="0"><table><thead><tr><th scope="col">agent</th><th scope="col" class="number">own best</th><th scope="col">came from</th></tr></thead>
    <tbody>${data.bests.map(
      (own) => html`<tr><th scope="row"><bdi>${own.agent}</bdi></th><td class="number"><${Attempt} run=${run} number=${own.number} /> ${own.score}</td>
        <td class="title">${own.from.length ? own.from.map((step, place) => html`${place ? " ← " : ""}<bdi>${named(step.agent)}</bdi> <${Attempt} run=${run} number=${step.number} />`) : html`<span class="quiet">its own attempts alone</span>`}${own.more ? ` ← and ${own.more} more` : ""}</td></tr>`,
    )}</tbody></table></div>
    ${data.more_agents ? html`<p class="quiet">${data.more_agents} more agents are left out.</p>` : null}`;
}

function List({ run, data }) {
  return html`<h3 id="list-title">As a list</h3>
    <div class="scroll tall" role="region" aria-labelledby="list-title" tabindex="0"><table class="attempts"><thead><tr><th scope="col" class="number">#</th><th scope="col" class="number">score</th><th scope="col">verdict</th><th scope="col">agent</th><th scope="col">built on</th><th scope="col">title</th></tr></thead>
    <tbody>${data.nodes.map(
      (node) => html`<tr><th scope="row" class="number"><${Attempt} run=${run} number=${node.number} /></th><td class=${`number ${node.number === data.best ? "best" : ""}`}>${node.score}</td>
        <td><${Verdict} verdict=${node.agent ? node.verdict : "the seed"} />${node.number === data.best ? " (the best)" : ""}</td><td><bdi>${node.agent}</bdi></td>
        <td>${node.parent === null ? null : html`<${Attempt} run=${run} number=${node.parent} />${node.between ? html` <span class="quiet">(${node.between} between)</span>` : null}`}</td>
        <td class="title"><bdi>${node.title}</bdi></td></tr>`,
    )}</tbody></table></div>`;
}
