// Markdown that the server rendered, in which #17 is a link; and what is shown when a link to an attempt is pointed at.
import { get, html, link, useEffect, useRef, useState } from "./base.js";

const NAMED = /#(\d{1,9})\b/g;

export function Prose({ run, markup }) {
  const box = useRef(null);
  useEffect(() => {
    box.current.innerHTML = markup;
    const walker = document.createTreeWalker(box.current, NodeFilter.SHOW_TEXT);
    const texts = [];
    while (walker.nextNode()) if (/#\d/.test(walker.currentNode.data) && !walker.currentNode.parentElement.closest("a, code, pre")) texts.push(walker.currentNode);
    for (const text of texts) text.replaceWith(...linked(run, text.data));
  }, [run, markup]);
  return html`<div class="prose" ref=${box}></div>`;
}

function linked(run, text) {
  const parts = [];
  let from = 0;
  for (const found of text.matchAll(NAMED)) {
    const anchor = document.createElement("a");
    anchor.href = link(run, "attempts", found[1]);
    anchor.dataset.attempt = found[1];
    anchor.textContent = found[0];
    parts.push(text.slice(from, found.index), anchor);
    from = found.index + found[0].length;
  }
  return [...parts, text.slice(from)];
}

// One box for the whole page: shown while the pointer or the keyboard is on a link to an attempt, gone with Escape.
export function Hint({ run }) {
  const [shown, setShown] = useState(null);
  const known = useRef(new Map());
  useEffect(() => {
    let wanted = null;
    const enter = async (event) => {
      const anchor = event.target.closest?.("a[data-attempt]");
      wanted = anchor;
      if (!anchor) return setShown(null);
      const number = anchor.dataset.attempt;
      const path = `/api/runs/${encodeURIComponent(run)}/attempts/${number}/hint`;
      if (!known.current.has(path)) known.current.set(path, await get(path).catch((error) => ({ error: error.message })));
      if (wanted !== anchor || !anchor.isConnected) return undefined;
      const at = anchor.getBoundingClientRect();
      return setShown({ ...known.current.get(path), left: Math.max(4, Math.min(at.left, innerWidth - 360)), top: at.bottom + 6 });
    };
    const leave = (event) => event.key === "Escape" && setShown(null);
    const events = ["mouseover", "focusin"];
    events.forEach((name) => document.addEventListener(name, enter));
    document.addEventListener("keydown", leave);
    return () => {
      events.forEach((name) => document.removeEventListener(name, enter));
      document.removeEventListener("keydown", leave);
    };
  }, [run]);
  if (!shown) return null;
  const by = shown.agent ? ` by ${shown.agent}` : "";
  const title = shown.kind === "baseline" ? "" : `: ${shown.title || shown.reason}`;
  const text = shown.error || `#${shown.number} ${shown.score} ${shown.verdict}${by}${title}`;
  return html`<div class="hint" role="tooltip" style=${{ left: `${shown.left}px`, top: `${shown.top}px` }}><bdi>${text}</bdi></div>`;
}
