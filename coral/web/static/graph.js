// Where the points and lines of a lineage go: from left to right as they were published, a row for each agent, the
// last one for those that share it. Pure.
export const STEP = 54; // pixels from one attempt to the next
export const ROW = 40; // from one agent to the next
export const TOP = 26;
const LEFT = 30;

// {width, height, nodes: Map of number to {x, y, node}, edges: [{from, to, path, main, between}]}
export function laidOut(data) {
  const rows = new Map(data.rows.map((agent, place) => [agent, place]));
  const nodes = new Map(data.nodes.map((node, place) => [node.number, { x: LEFT + place * STEP, y: TOP + (rows.get(node.agent) ?? rows.size) * ROW, place, node }]));
  const taken = new Map();
  for (const held of nodes.values()) taken.set(`${held.y} ${held.place}`, held);
  const edges = [];
  for (const held of nodes.values()) {
    const from = nodes.get(held.node.parent);
    if (!from) continue;
    edges.push({ from: from.node.number, to: held.node.number, path: path(from, held, taken), main: held.node.main && from.node.main, between: held.node.between });
  }
  return { width: LEFT * 3 + Math.max(0, data.nodes.length - 1) * STEP, height: TOP * 2 + Math.max(0, rowNames(data).length - 1) * ROW, nodes, edges };
}

// The names beside the rows.
export function rowNames(data) {
  const names = data.rows.map((agent) => agent || "the seed");
  return data.shared_row ? [...names, `${data.shared_row} others`] : names;
}

// In one row straight on, or above what lies between; from row to row a line that leaves and arrives level.
function path(from, to, taken) {
  if (from.y === to.y) {
    let free = true;
    for (let place = from.place + 1; place < to.place; place += 1) free = free && !taken.has(`${from.y} ${place}`);
    return free ? `M${from.x} ${from.y}H${to.x}` : `M${from.x} ${from.y}Q${(from.x + to.x) / 2} ${from.y - 34} ${to.x} ${to.y}`;
  }
  const bend = Math.min(STEP, to.x - from.x) * 0.8;
  return `M${from.x} ${from.y}C${to.x - bend} ${from.y} ${to.x - bend} ${from.y} ${to.x} ${to.y}`;
}

// The attempt that an arrow key leads to: left to what it was built on, right to what was built on it, up and down
// through the order of publication.
export function neighbour(data, number, key) {
  const place = data.nodes.findIndex((node) => node.number === number);
  const node = data.nodes[place];
  const found = {
    ArrowLeft: () => data.nodes.find((other) => other.number === node.parent),
    ArrowRight: () => data.nodes.find((other) => other.parent === number && other.main) || data.nodes.find((other) => other.parent === number),
    ArrowUp: () => data.nodes[place - 1],
    ArrowDown: () => data.nodes[place + 1],
    Home: () => data.nodes[0],
    End: () => data.nodes[data.nodes.length - 1],
  }[key];
  return found ? (found() || node).number : null;
}
