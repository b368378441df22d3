// The attempts: a table that the server sorts and narrows, and one of them with all that is known of it.
import { Attempt, Trouble, VERDICTS, Verdict, Waiting, html, link, query, useAnswer, useEffect, useState } from "../base.js";

const ROWS = 50;
const KINDS = ["real", "tune", "confirm", "baseline"];
const COLUMNS = [
  ["number", "#"],
  ["score", "score"],
  ["verdict", "verdict"],
  ["kind", "kind"],
  ["agent", "agent"],
];

export function Attempts({ run, at, live }) {
  return at.more[0] ? html`<${One} run=${run} number=${at.more[0]} />` : html`<${Table} run=${run} at=${at} live=${live} />`;
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
  const [wanted, setWanted] = useState({ agent: "", verdict: "", kind: "", text: "", order: "number", way: "down", offset: 0 });
  const change = (more) => setWanted((before) => ({ ...before, offset: 0, ...more }));
  const text = useRested(wanted.text);
  const latest = wanted.offset === 0 && live.points.length ? live.points[live.points.length - 1].number : 0;
  const state = useAnswer(`/api/runs/${encodeURIComponent(run)}/attempts${query({ ...wanted, text, most: ROWS })}`, latest);
  const [held, setHeld] = useState(null);
  useEffect(() => state.data && setHeld(state.data), [state.data]);
  const data = state.data || held;
  const choose = (name) => (event) => change({ [name]: event.target.value });
  const sort = (name) => change(wanted.order === name ? { way: wanted.way === "down" ? "up" : "down" } : { order: name, way: "down" });
  const agents = live.fleet ? (live.fleet.agents || []).map((agent) => agent.name) : [];
  return html`<h2>Attempts</h2>
    <form class="bar" role="search" onSubmit=${(event) => event.preventDefault()}>
      <label>Agent <select value=${wanted.agent} onChange=${choose("agent")}><option value="">all</option>${agents.map((name) => html`<option>${name}</option>`)}</select></label>
      <label>Verdict <select value=${wanted.verdict} onChange=${choose("verdict")}><option value="">all</option>${VERDICTS.map((name) => html`<option>${name}</option>`)}</select></label>
      <label>Kind <select value=${wanted.kind} onChange=${choose("kind")}><option value="">all</option>${KINDS.map((name) => html`<option>${name}</option>`)}</select></label>
      <label>Text <input type="search" value=${wanted.text} onInput=${choose("text")} placeholder="title, reason, feedback" /></label>
    </form>
    <${Trouble} error=${state.error} />
    ${data ? html`<${Pages} data=${data} move=${(offset) => setWanted((before) => ({ ...before, offset }))} />
    <div class="scroll" role="region" aria-label="Attempts" tabindex="0"><table class="attempts" aria-busy=${!state.data}>
      <thead><tr>${COLUMNS.map(
        ([name, title]) => html`<th scope="col" class=${name === "number" || name === "score" ? "number" : ""} aria-sort=${wanted.order === name ? (wanted.way === "down" ? "descending" : "ascending") : undefined}>
          <button type="button" class="sort" onClick=${() => sort(name)}>${title}${wanted.order === name ? (wanted.way === "down" ? " ↓" : " ↑") : ""}</button></th>`,
      )}<th scope="col">when</th><th scope="col">title</th></tr></thead>
      <tbody>${data.rows.map(
        (row) => html`<tr key=${row.number} data-row=${row.number}><th scope="row" class="number"><${Attempt} run=${run} number=${row.number} /></th>
          <td class=${`number ${row.best ? "best" : ""}`}>${row.score}</td><td><${Verdict} verdict=${row.kind === "baseline" ? "the seed" : row.verdict} />${row.best ? " (the best)" : ""}</td>
          <td>${row.kind}${row.of === null ? "" : ` of #${row.of}`}${row.epoch === null ? "" : `, epoch ${row.epoch}`}</td><td><bdi>${row.agent}</bdi></td>
          <td><time datetime=${row.at}>${row.ago}</time></td><td class="title"><bdi>${row.title}</bdi>${row.reason ? html` <span class="quiet">${row.reason}</span>` : null}</td></tr>`,
      )}</tbody></table></div>
    ${data.rows.length ? null : html`<p class="quiet">No attempt matches.</p>`}` : html`<p class="quiet" role="status">Loading ...</p>`}`;
}

function Pages({ data, move }) {
  const last = Math.min(data.offset + data.most, data.total);
  return html`<p class="bar"><span role="status">${data.total ? `${data.offset + 1} to ${last} of ${data.total}` : "none"}</span>
    <button type="button" disabled=${data.offset === 0} onClick=${() => move(Math.max(0, data.offset - data.most))}>Earlier rows</button>
    <button type="button" disabled=${last >= data.total} onClick=${() => move(data.offset + data.most)}>Later rows</button></p>`;
}

function One({ run, number }) {
  const state = useAnswer(`/api/runs/${encodeURIComponent(run)}/attempts/${encodeURIComponent(number)}`);
  return html`<p><a href=${link(run, "attempts")}>All attempts</a></p><${Waiting} state=${state}>${(one) => html`<${Details} run=${run} one=${one} />`}<//>`;
}

function Details({ run, one }) {
  const fact = (name, value) => (value ? html`<div><dt>${name}</dt><dd>${value}</dd></div>` : null);
  const measured = one.measured && `${one.measured.count} times: median ${one.measured.median}, mean ${one.measured.mean}, standard deviation ${one.measured.deviation}`;
  return html`<h2>#${one.number} <span class="figure">${one.score}</span> <${Verdict} verdict=${one.kind === "baseline" ? "the seed" : one.verdict} /></h2>
    <p><bdi>${one.title}</bdi></p>
    ${one.reason ? html`<p class="trouble">${one.reason}</p>` : null}
    <dl class="pairs">
      ${fact("by", one.agent)}${fact("against the seed", one.gain)}${fact("kind", one.of === null ? one.kind : html`${one.kind} of <${Attempt} run=${run} number=${one.of} />`)}
      ${fact("measured", measured)}${fact("graded", `${one.ago}, in ${one.seconds}`)}${fact("commit", html`<code>${one.commit.slice(0, 12)}</code>`)}
      ${fact("channel", one.score ? one.channel : "")}${fact("agent sealed", one.sealed_by)}
      ${one.metrics.map(([name, value]) => fact(name, value))}${fact("files", one.files.join(", "))}</dl>
    <h3>Lineage</h3><${Family} run=${run} one=${one} />
    ${one.feedback ? html`<h3>Feedback</h3><pre class="foreign" tabindex="0">${one.feedback}</pre>` : null}
    <${Change} run=${run} number=${one.number} />`;
}

function Family({ run, one }) {
  return html`<p class="family">${one.ancestors.map((held) => html`<span><${Attempt} run=${run} number=${held.number} /> <span class="quiet">${held.score}</span> → </span>`)}
    <strong>#${one.number}</strong>${one.children.length ? " → " : ""}${one.children.map((child) => html`<span><${Attempt} run=${run} number=${child} /> </span>`)}${one.more_children ? `and ${one.more_children} more` : ""}</p>`;
}

function Change({ run, number }) {
  const [against, setAgainst] = useState("parent");
  const [other, setOther] = useState("");
  const wanted = against === "other" ? digits(other) : against;
  const state = useAnswer(wanted ? `/api/runs/${encodeURIComponent(run)}/attempts/${number}/diff${query({ against: wanted })}` : null);
  return html`<div class="bar"><h3>Change</h3><label>against <select value=${against} onChange=${(event) => setAgainst(event.target.value)}>
      <option value="parent">its parent</option><option value="best">the best</option><option value="seed">the seed</option><option value="other">another attempt</option></select></label>
      ${against === "other" ? html`<label>number <input inputmode="numeric" size="7" value=${other} onInput=${(event) => setOther(event.target.value)} /></label>` : null}</div>
    ${wanted ? html`<${Waiting} state=${state}>${(data) => (data.none ? html`<p class="quiet">${data.none}</p>` : html`<${Diff} data=${data} />`)}<//>` : null}`;
}

const digits = (text) => (/^#?\d{1,9}$/.test(text) ? text.replace("#", "") : "");

const KIND_OF_LINE = [
  [/^(diff |index |--- |\+\+\+ |new file|deleted file|similarity|rename)/, "head"],
  [/^@@/, "hunk"],
  [/^\+/, "added"],
  [/^-/, "removed"],
];

function Diff({ data }) {
  if (!data.text) return html`<p class="quiet">The files are the same.</p>`;
  const lines = data.text.split("\n");
  const kind = (text) => (KIND_OF_LINE.find(([form]) => form.test(text)) || [])[1] || "same";
  return html`<pre class="diff" tabindex="0" aria-label=${`The change against ${data.against}`}>${lines.map((text) => html`<span class=${kind(text)}>${text || " "}</span>`)}</pre>
    ${data.cut ? html`<p class="quiet">The rest is left out: it is too long for a page.</p>` : null}`;
}
