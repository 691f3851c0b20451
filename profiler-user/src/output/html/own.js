// The same stacks without the code that nobody but its authors acts on.

/** Trees that leave frames out. */
const OWN_CODE = {
  /** Without the standard library and runtime frames around own code; a library's own work stays where it is called. */
  graph: (profile, path) => {
    const innermost = path.findLastIndex((node) => profile.kind[node] <= KIND.INLINED && !profile.isLibrary[node]);
    return path.filter((node, at) => !profile.isLibrary[node] || (at > innermost && profile.kind[node] !== KIND.INLINED));
  },
  /** Without the inlined functions that have no rows in the tables. */
  rows: (profile, path) => path.filter((node) => !profile.isLibrary[node] || profile.kind[node] !== KIND.INLINED),
};

/** The profile with what is left of each path through its tree. */
function without(profile, kept) {
  const events = profile.weights.length;
  const blank = (node) => ({ node, weights: new Float64Array(events), callees: new Map() });
  const root = blank(-1);
  const path = [];
  for (let node = 0; node < profile.count; node++) {
    path.length = profile.depth[node];
    path.push(node);
    const own = profile.weights.map((_, event) => ownWeight(profile, event, node));
    if (!own.some((weight) => weight > 0)) continue;
    let at = root;
    for (const frame of kept(profile, path)) {
      const key = profile.frame[frame];
      if (!at.callees.has(key)) at.callees.set(key, blank(frame));
      at = at.callees.get(key);
      own.forEach((weight, event) => (at.weights[event] += weight));
    }
  }
  const [depth, nodes, weights] = [[], [], Array.from({ length: events }, () => [])];
  const open = [...root.callees.values()].map((branch) => [branch, 0]);
  while (open.length > 0) {
    const [branch, level] = open.pop();
    depth.push(level);
    nodes.push(branch.node);
    branch.weights.forEach((weight, event) => weights[event].push(weight));
    for (const callee of branch.callees.values()) open.push([callee, level + 1]);
  }
  const of = (column) => nodes.map((node) => column[node]);
  return { ...profile, ...tree(depth, of(profile.frame), weights, profile.frames) };
}

/** What a function gives, made when it is first asked for. */
function lazy(make) {
  let made;
  return () => (made ??= make());
}
