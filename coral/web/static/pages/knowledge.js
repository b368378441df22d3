// What do they know now? The latest synthesis first; then claims in conflict, dead ends, notes and skills.
import { Attempt, Linked, Verdict, Waiting, html, link, query, useAnswer, useEffect, useState } from "../base.js";
import { Prose } from "../prose.js";

const LOOK_MS = 15000; // agents write notes at any time, of which the live feed says nothing

const BULLET = /^[-*+] /;
const path = (run, ...more) => ["/api/runs", encodeURIComponent(run), "knowledge", ...more].join("/");

export function Knowledge({ run, at }) {
  if (at.more[0] === "note") return html`<${OneNote} run=${run} number=${at.more[1]} />`;
  if (at.more[0] === "skill") return html`<${OneSkill} run=${run} name=${at.more[1]} />`;
  return html`<${Front} run=${run} />`;
}

function Front({ run }) {
  const [text, setText] = useState("");
  const [offset, setOffset] = useState(0);
  const [looks, setLooks] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => document.hidden || setLooks((count) => count + 1), LOOK_MS);
    return () => clearInterval(timer);
  }, []);
  const state = useAnswer(path(run) + query({ text, offset: offset || "" }), looks);
  const search = (event) => {
    event.preventDefault();
    setOffset(0);
    setText(new FormData(event.target).get("text"));
  };
  return html`<h2>Knowledge</h2>
    <form class="bar" role="search" onSubmit=${search}><label>Search in all of it <input type="search" name="text" /></label><button>Search</button></form>
    <${Waiting} state=${state}>${(data) => html`
      ${text || offset ? null : data.synthesis ? html`<${Note} run=${run} note=${data.synthesis} />` : html`<p class="quiet">No synthesis yet: agents write one when they consolidate.</p>`}
      ${text || offset || !data.synthesis ? null : html`<${Changes} key=${data.synthesis.number} run=${run} looks=${looks} />`}
      ${data.conflicts.length && !text ? html`<h3>Claims in conflict</h3><ul>${data.conflicts.map((one) => html`<li><${To} run=${run} note=${one.claim} /> against <${To} run=${run} note=${one.other} /> <span class="quiet">${one.why}</span></li>`)}</ul>` : null}
      ${data.dead_ends.length && !text ? html`<h3>Dead ends</h3><ul>${data.dead_ends.map((note) => html`<li><${To} run=${run} note=${note} /></li>`)}</ul>` : null}
      <${Notes} run=${run} data=${data} move=${setOffset} />
      <h3>Skills</h3>${data.skills.length ? html`<ul>${data.skills.map((skill) => html`<li><a href=${link(run, "knowledge", "skill", skill.name)}><bdi>${skill.name}</bdi></a> <bdi>${skill.description}</bdi> <span class="quiet">${skill.author}</span></li>`)}</ul>` : html`<p class="quiet">None.</p>`}`}<//>`;
}

function To({ run, note }) {
  return html`<a href=${link(run, "knowledge", "note", note.number)}><bdi>${note.title || `note ${note.number}`}</bdi></a>`;
}

function Notes({ run, data, move }) {
  if (!data.total) return html`<h3>Notes</h3><p class="quiet">None.</p>`;
  return html`<h3>Notes <span class="quiet">${data.total}</span></h3>
    <div class="scroll" role="region" aria-label="Notes" tabindex="0"><table><thead><tr><th scope="col" class="number">note</th><th scope="col">title</th><th scope="col">author</th><th scope="col">kind</th><th scope="col">the records say</th><th scope="col">written</th></tr></thead>
    <tbody>${data.notes.map((note) => html`<tr key=${note.number}><th scope="row" class="number">${note.number}</th><td class="title"><${To} run=${run} note=${note} />${note.superseded ? html` <span class="quiet">superseded</span>` : null}</td>
      <td><bdi>${note.author}</bdi></td><td>${note.kind}</td><td class=${`state-${note.state}`}>${note.state}</td><td>${note.created}</td></tr>`)}</tbody></table></div>
    <p class="bar"><button type="button" disabled=${!data.offset} onClick=${() => move(Math.max(0, data.offset - data.most))}>Newer</button>
      <button type="button" disabled=${data.offset + data.most >= data.total} onClick=${() => move(data.offset + data.most)}>Older</button></p>`;
}

function OneNote({ run, number }) {
  const state = useAnswer(path(run, "notes", encodeURIComponent(number)));
  return html`<p><a href=${link(run, "knowledge")}>All knowledge</a></p><${Waiting} state=${state}>${(note) => html`<${Note} run=${run} note=${note} />`}<//>`;
}

// A conclusion, and beside it the attempts that it cites and what the records say of its figures.
function Note({ run, note }) {
  const about = [`note ${note.number}`, note.kind, note.author, note.created, note.confidence && `confidence ${note.confidence}`];
  return html`<article class="card"><h3><bdi>${note.title}</bdi></h3><p class="quiet"><bdi>${about.filter(Boolean).join(", ")}</bdi></p>
    ${note.superseded_by ? html`<p class="notice">Superseded by <bdi>${note.superseded_by}</bdi></p>` : null}${note.stale ? html`<p class="notice">May no longer hold: ${note.stale}</p>` : null}
    <${Prose} run=${run} markup=${note.html} />
    ${note.conclusions.length ? html`<h4>Conclusions, beside the attempts that they cite</h4><ol class="conclusions">${note.conclusions.map((one) => html`<${Conclusion} run=${run} one=${one} />`)}</ol>` : null}
    <${Prose} run=${run} markup=${note.rest} />${note.cut ? html`<p class="quiet">The rest is left out: it is too long for a page.</p>` : null}
    <p>${note.attempts.length ? html`It cites ${note.attempts.map((number) => html`<${Attempt} run=${run} number=${number} /> `)}. ` : null}<span class=${`state-${note.state}`}>The records say: ${note.state}</span>${note.agreeing ? `, ${note.agreeing} of its figures agree` : ""}</p>
    ${note.disputed.length ? html`<ul>${note.disputed.map((text) => html`<li class="trouble">${text}</li>`)}</ul>` : null}</article>`;
}

const BEARS = { supported: "the records bear it out", disputed: "the records say otherwise", unchecked: "no figure that could be checked", elsewhere: "from another run" };

function Conclusion({ run, one }) {
  return html`<li><${Prose} run=${run} markup=${one.html} /><div class="cited"><p class=${`state-${one.state}`}>${BEARS[one.state] || one.state}</p>
    ${one.attempts.length ? html`<ul class="plain">${one.attempts.map((cited) => html`<li><${Attempt} run=${run} number=${cited.number} /> ${cited.score} <${Verdict} verdict=${cited.verdict} /></li>`)}${one.left_out ? html`<li class="quiet">and ${one.left_out} more</li>` : null}</ul>` : html`<p class="quiet">It cites no attempt.</p>`}
    ${one.disputed.map((text) => html`<p class="trouble">${text}</p>`)}</div></li>`;
}

// How the synthesis changed: two of all that were written, by default the last two.
function Changes({ run, looks }) {
  const [open, setOpen] = useState(false);
  const [pair, setPair] = useState({ old: "", new: "" });
  const state = useAnswer(open ? path(run, "syntheses") + query(pair) : null, looks);
  const choose = (data, side, title) => html`<label>${title} <select value=${data[side]} onChange=${(event) => setPair({ old: data.old, new: data.new, [side]: event.target.value })}>${data.syntheses.map((one, place) => html`<option value=${one.id}>${place + 1}: ${one.created} ${one.title.slice(0, 60)}</option>`)}</select></label>`;
  return html`<details class="card" onToggle=${(event) => setOpen(event.target.open)}><summary>How the synthesis changed</summary>${open ? html`<${Waiting} state=${state}>${(data) => data.syntheses.length < 2 ? html`<p class="quiet">There is one synthesis so far.</p>` : html`
    <p class="bar">${choose(data, "old", "From")} ${choose(data, "new", "to")}</p>
    ${data.sections.length ? data.sections.map((one) => html`<h4><bdi>${one.heading || "At the beginning"}</bdi></h4><div class="prose changes">${one.gone.map((text) => html`<p class="removed"><span class="hidden">gone: </span><${Linked} run=${run} text=${text.replace(BULLET, "")} /></p>`)}${one.new.map((text) => html`<p class="added"><span class="hidden">new: </span><${Linked} run=${run} text=${text.replace(BULLET, "")} /></p>`)}</div>`) : html`<p class="quiet">The two say the same.</p>`}`}<//>` : null}</details>`;
}

function OneSkill({ run, name }) {
  const state = useAnswer(path(run, "skill") + query({ name }));
  return html`<p><a href=${link(run, "knowledge")}>All knowledge</a></p><${Waiting} state=${state}>${(skill) => html`<article class="card"><h2><bdi>${skill.name}</bdi></h2><p><bdi>${skill.description}</bdi></p><${Prose} run=${run} markup=${skill.html} /></article>`}<//>`;
}
