// What do they know now? The latest synthesis first; then claims in conflict, dead ends, notes and skills.
import { Attempt, Waiting, html, link, query, useAnswer, useState } from "../base.js";
import { Prose } from "../prose.js";

const path = (run, ...more) => ["/api/runs", encodeURIComponent(run), "knowledge", ...more].join("/");

export function Knowledge({ run, at }) {
  if (at.more[0] === "note") return html`<${OneNote} run=${run} number=${at.more[1]} />`;
  if (at.more[0] === "skill") return html`<${OneSkill} run=${run} name=${at.more[1]} />`;
  return html`<${Front} run=${run} />`;
}

function Front({ run }) {
  const [text, setText] = useState("");
  const [offset, setOffset] = useState(0);
  const state = useAnswer(path(run) + query({ text, offset: offset || "" }));
  const search = (event) => {
    event.preventDefault();
    setOffset(0);
    setText(new FormData(event.target).get("text"));
  };
  return html`<h2>Knowledge</h2>
    <form class="bar" role="search" onSubmit=${search}><label>Search in all of it <input type="search" name="text" /></label><button>Search</button></form>
    <${Waiting} state=${state}>${(data) => html`
      ${text || offset ? null : data.synthesis ? html`<${Note} run=${run} note=${data.synthesis} />` : html`<p class="quiet">No synthesis yet: agents write one when they consolidate.</p>`}
      ${data.conflicts.length ? html`<h3>Claims in conflict</h3><ul>${data.conflicts.map((one) => html`<li><${To} run=${run} note=${one.claim} /> against <${To} run=${run} note=${one.other} /> <span class="quiet">${one.why}</span></li>`)}</ul>` : null}
      ${data.dead_ends.length ? html`<h3>Dead ends</h3><ul>${data.dead_ends.map((note) => html`<li><${To} run=${run} note=${note} /></li>`)}</ul>` : null}
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
    <${Prose} run=${run} markup=${note.html} />${note.cut ? html`<p class="quiet">The rest is left out: it is too long for a page.</p>` : null}
    <p>${note.attempts.length ? html`It cites ${note.attempts.map((number) => html`<${Attempt} run=${run} number=${number} /> `)}. ` : null}<span class=${`state-${note.state}`}>The records say: ${note.state}</span>${note.agreeing ? `, ${note.agreeing} of its figures agree` : ""}</p>
    ${note.disputed.length ? html`<ul>${note.disputed.map((text) => html`<li class="trouble">${text}</li>`)}</ul>` : null}</article>`;
}

function OneSkill({ run, name }) {
  const state = useAnswer(path(run, "skill") + query({ name }));
  return html`<p><a href=${link(run, "knowledge")}>All knowledge</a></p><${Waiting} state=${state}>${(skill) => html`<article class="card"><h2><bdi>${skill.name}</bdi></h2><p><bdi>${skill.description}</bdi></p><${Prose} run=${run} markup=${skill.html} /></article>`}<//>`;
}
