// The data of the page in the form that the scripts work with; `document.rs` writes it.

/** Kinds of frames, by number. */
const KIND = { USER: 0, INLINED: 1, KERNEL: 2, THREADS: 3, SMALL: 4, ALL: 5 };
const KIND_NAMES = ["user", "inlined", "kernel", "threads of this name", "too small to be drawn", ""];

/** Fewest samples that a ratio is drawn for. */
const FEWEST_SAMPLES = 10;

/** A tree that can be walked in both directions, from the columns of its nodes and from what frames are. */
function tree(depths, frameOf, weights, frames) {
  const count = depths.length;
  const depth = Uint16Array.from(depths);
  const frame = Uint32Array.from(frameOf);
  const parent = new Int32Array(count).fill(-1);
  // Behind the last node below each node: nodes lie in the order of a walk that visits callers first.
  const end = new Uint32Array(count);
  const open = [];
  for (let node = 0; node < count; node++) {
    while (open.length > depth[node]) end[open.pop()] = node;
    if (open.length > 0) parent[node] = open[open.length - 1];
    open.push(node);
  }
  while (open.length > 0) end[open.pop()] = count;
  return {
    count,
    depth,
    frame,
    parent,
    end,
    functionOf: Uint32Array.from(frame, (index) => frames[index][0]),
    kind: Uint8Array.from(frame, (index) => frames[index][1]),
    isLibrary: Uint8Array.from(frame, (index) => frames[index][2]),
    weights: weights.map((column) => Float64Array.from(column)),
    layouts: [],
  };
}

/** The file in the form that the page works with. */
function decode(data) {
  const nodes = tree(data.nodes.depth, data.nodes.frame, data.nodes.weights, data.frames);
  const functions = data.functions.map(([name, object]) => ({ name: data.strings[name], object: data.strings[object] }));
  const ofKinds = (wanted) => new Set(nodes.functionOf.filter((_, node) => wanted(nodes.kind[node])));
  const byNames = new Map(data.functions.map(([name, object], index) => [`${name} ${object}`, index]));
  const tables = data.tables.map((table) => ({
    ...table,
    rows: table.rows.map((row) => ({
      ...row,
      name: data.strings[row.name],
      object: data.strings[row.object],
      function: table.heading === "function" ? (byNames.get(`${row.name} ${row.object}`) ?? -1) : -1,
    })),
  }));
  return {
    ...data,
    ...nodes,
    functions,
    tables,
    // Functions proper, and with the threads.
    callable: ofKinds((kind) => kind <= KIND.KERNEL),
    searchable: ofKinds((kind) => kind <= KIND.THREADS),
  };
}

/** The children of a node. */
function children(profile, node) {
  const found = [];
  for (let child = node + 1; child < profile.end[node]; child = profile.end[child]) found.push(child);
  return found;
}

/** Where each node begins in the sum of an event's weight, the heaviest callee of a node first, and small ones last. */
function layout(profile, event) {
  if (!profile.layouts[event]) {
    const weight = profile.weights[event];
    const left = new Float64Array(profile.count);
    const isSmall = (node) => profile.kind[node] === KIND.SMALL;
    for (let node = 0; node < profile.count; node++) {
      let at = left[node];
      for (const child of children(profile, node).sort((a, b) => isSmall(a) - isSmall(b) || weight[b] - weight[a])) {
        left[child] = at;
        at += weight[child];
      }
    }
    profile.layouts[event] = left;
  }
  return profile.layouts[event];
}

/** Weight of a node without what it calls. */
function ownWeight(profile, event, node) {
  const weight = profile.weights[event];
  return children(profile, node).reduce((own, child) => own - weight[child], weight[node]);
}

/** A metric of a node, or null where its samples do not carry one. */
function metricOf(profile, metric, node) {
  const denominator = profile.events[metric.denominator];
  const below = profile.weights[metric.denominator][node];
  const period = denominator.weight / denominator.samples;
  if (!(below >= FEWEST_SAMPLES * period)) return null;
  return (profile.weights[metric.numerator][node] / below) * metric.factor;
}
