// One attempt with all that is known of it: figures, lineage, feedback, files, and what it changed.
import { Attempt, Verdict, Waiting, html, link, query, useAnswer, useState } from "../base.js";
import { Change } from "../diff.js";

export function One({ run, number }) {
  const state = useAnswer(`/api/runs/${encodeURIComponent(run)}/attempts/${encodeURIComponent(number)}`);
  return html`<${Waiting} state=${state}>${(one) => html`<${Details} key=${one.number} run=${run} one=${one} />`}<//>`;
}

function Details({ run, one }) {
  const fact = (name, value) => (value ? html`<div><dt><bdi>${name}</bdi></dt><dd>${value}</dd></div>` : null);
  return html`<h2>#${one.number} <span class="figure">${one.score}</span> <${Verdict} verdict=${one.verdict} />${one.best ? " (the best)" : ""}</h2>
    <p><bdi>${one.title}</bdi></p>
    ${one.reason ? html`<p class="trouble">${one.reason}</p>` : null}
    <dl class="pairs">
      ${fact("by", one.agent)}${fact("against the seed", one.gain)}${fact("kind", one.of === null ? one.kind : html`${one.kind} of <${Attempt} run=${run} number=${one.of} />`)}
      ${fact("measured", one.measured)}${fact("graded", `${one.ago}, in ${one.seconds}`)}${fact("commit", html`<code>${one.commit.slice(0, 12)}</code>`)}
      ${fact("channel", one.score ? one.channel : "")}${fact("agent sealed", one.sealed_by)}</dl>
    ${one.metrics.length ? html`<h3>Metrics</h3><dl class="pairs">${one.metrics.map(([name, value]) => fact(name, html`<bdi>${value}</bdi>`))}</dl>` : null}
    <h3>Lineage</h3><${Family} run=${run} one=${one} />
    ${one.feedback ? html`<h3>Feedback</h3><pre class="foreign" tabindex="0" role="region" aria-label="Feedback">${one.feedback}</pre>` : null}
    ${one.files.length ? html`<h3>Files</h3><ul class="plain">${one.files.map((file) => html`<${File} run=${run} number=${one.number} file=${file} />`)}</ul>` : null}
    <${Change} run=${run} number=${one.number} />`;
}

function Family({ run, one }) {
  return html`<p class="family">${one.ancestors.map((held) => html`<span><${Attempt} run=${run} number=${held.number} /> <span class="quiet">${held.score}</span> → </span>`)}
    <strong>#${one.number}</strong>${one.children.length ? " → " : ""}${one.children.map((child) => html`<span><${Attempt} run=${run} number=${child} /> </span>`)}${one.more_children ? `and ${one.more_children} more` : ""}
    <span class="quiet"> - </span><a href=${link(run, "attempts", "lineage", one.number)}>as a graph</a></p>`;
}

function File({ run, number, file }) {
  const [open, setOpen] = useState(false);
  const address = (what, more) => `/api/runs/${encodeURIComponent(run)}/attempts/${number}/${what}${query({ name: file.name, ...more })}`;
  const shown = () => (file.shown_as === "picture" ? html`<img class="artifact" src=${address("file")} alt=${`The picture ${file.name}`} />` : html`<${Text} path=${address("text")} name=${file.name} />`);
  return html`<li class="file"><bdi>${file.name}</bdi> <span class="quiet">${file.size}</span>
    ${file.shown_as ? html`<button type="button" aria-expanded=${open} onClick=${() => setOpen(!open)}>${open ? "Hide" : "Show"}<span class="hidden"> ${file.name}</span></button>` : null}
    <a href=${address("file", { save: "1" })} download=${file.name}>Save<span class="hidden"> ${file.name}</span></a>
    ${open ? shown() : null}</li>`;
}

function Text({ path, name }) {
  const state = useAnswer(path);
  return html`<${Waiting} state=${state}>${(data) => html`<pre class="foreign" tabindex="0" role="region" aria-label=${name}>${data.text}</pre>${data.cut ? html`<p class="quiet">The rest is left out: save the file to read it.</p>` : null}`}<//>`;
}
