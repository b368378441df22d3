// What an attempt changed, against another: file by file, with the colours that the server found.
import { Waiting, html, query, useAnswer, useState } from "./base.js";

const OPEN_LINES = 600; // files are open at first until so many lines are shown

export function Change({ run, number }) {
  const [against, setAgainst] = useState("parent");
  const [other, setOther] = useState("");
  const wanted = against === "other" ? digits(other) : against;
  const state = useAnswer(wanted ? `/api/runs/${encodeURIComponent(run)}/attempts/${number}/diff${query({ against: wanted })}` : null);
  return html`<div class="bar"><h3>Change</h3><label>against <select value=${against} onChange=${(event) => setAgainst(event.target.value)}>
      <option value="parent">its parent</option><option value="best">the best</option><option value="seed">the seed</option><option value="other">another attempt</option></select></label>
      ${against === "other" ? html`<label>number <input class="short" inputmode="numeric" value=${other} onInput=${(event) => setOther(event.target.value)} /></label>` : null}</div>
    ${wanted ? html`<${Waiting} state=${state}>${(data) => (data.none ? html`<p class="quiet">${data.none}</p>` : html`<${Diff} data=${data} />`)}<//>` : null}`;
}

const digits = (text) => (/^#?\d{1,9}$/.test(text.trim()) ? text.trim().replace("#", "") : "");
const count = (number, what) => `${number} ${what}${number === 1 ? "" : "s"}`;

function Diff({ data }) {
  if (!data.files.length) return html`<p class="quiet">The files are the same.</p>`;
  const added = data.files.reduce((sum, file) => sum + file.added, 0);
  const removed = data.files.reduce((sum, file) => sum + file.removed, 0);
  let shown = 0;
  const opens = data.files.map((file) => (shown += file.lines.length) <= OPEN_LINES || file === data.files[0]);
  return html`<p>${count(data.files.length, "file")}${data.more_files ? " and more" : ""} against ${data.against}: <span class="plus">+${added}</span> <span class="minus">-${removed}</span>${count(added + removed, " line").replace(/^\d+/, "")}</p>
    ${data.files.map((file, place) => html`<${File} key=${`${data.against} ${place}`} file=${file} open=${opens[place]} />`)}
    ${data.cut || data.more_files ? html`<p class="quiet">The rest is left out: it is too long for a page. <code>coral show N --diff</code> has it in a terminal.</p>` : null}`;
}

function File({ file, open }) {
  const [isOpen, setOpen] = useState(open);
  return html`<details class="change" open=${isOpen} onToggle=${(event) => setOpen(event.target.open)}>
    <summary><bdi>${file.name}</bdi> <span class="plus">+${file.added}</span> <span class="minus">-${file.removed}</span>${file.notes.map((note) => html` <span class="quiet">${note}</span>`)}</summary>
    ${isOpen && file.lines.length ? html`<pre class="diff" tabindex="0" role="region" aria-label=${`Changed lines of ${file.name}`}>${file.lines.map(line)}</pre>` : null}
    ${file.left_out ? html`<p class="quiet">${count(file.left_out, "more line")} left out.</p>` : null}</details>`;
}

const SIGN = { added: "+", removed: "-", same: " ", hunk: "" };

// The numbers are for the eye: they are no text that is copied with the lines.
function line([kind, before, after, pieces]) {
  const text = pieces.map(([name, piece]) => (name ? html`<span class=${`t-${name}`}>${piece}</span>` : piece));
  const numbers = kind === "hunk" ? "" : `${String(before ?? "").padStart(5)} ${String(after ?? "").padStart(5)} `;
  return html`<span class=${`row ${kind}`}><span class="lines" data-lines=${numbers}></span>${SIGN[kind]}${text}</span>`;
}
