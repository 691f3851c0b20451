// Who calls a function, and what it calls.

/**
 * What a function takes of an event, by caller and by callee.
 *
 * Calls of itself are part of its outermost call: so callers add up to the total, and the function itself and its callees do.
 */
function neighbours(profile, event, wanted) {
  const { functionOf, parent, end } = profile;
  const weight = profile.weights[event];
  const found = { total: 0, own: 0, callers: new Map(), callees: new Map() };
  for (let node = 0; node < profile.count; ) {
    if (functionOf[node] !== wanted) {
      node++;
      continue;
    }
    found.total += weight[node];
    if (parent[node] >= 0) addTo(found.callers, functionOf[parent[node]], weight[node]);
    const calls = [node];
    for (let call = calls.pop(); call !== undefined; call = calls.pop()) {
      found.own += ownWeight(profile, event, call);
      for (const child of children(profile, call)) {
        if (functionOf[child] === wanted) calls.push(child);
        else addTo(found.callees, functionOf[child], weight[child]);
      }
    }
    node = end[node];
  }
  return found;
}

function addTo(sums, key, weight) {
  if (weight > 0) sums.set(key, (sums.get(key) ?? 0) + weight);
}

const NEIGHBOURS_SHOWN = 40;

/** The panel of one function. */
class Callers {
  /** `rows` gives the tree with the functions of the table alone. */
  constructor(profile, rows, parts, onChoose) {
    Object.assign(this, { profile, rows, onChoose, ...parts });
    Object.assign(this, { event: 0, selected: -1 });
  }

  /** Changes what is shown: any of event, selected. */
  show(changes) {
    Object.assign(this, changes);
    this.hint.hidden = this.selected >= 0;
    this.content.hidden = this.selected < 0;
    if (this.selected >= 0) this.render();
  }

  render() {
    const { profile, event, selected } = this;
    const { name, object } = profile.functions[selected];
    const { name: eventName, unit, weight: whole } = profile.events[event];
    // A function without a row of its own can still be chosen in the graph.
    const tree = this.rows().functionOf.includes(selected) ? this.rows() : profile;
    const { total, own, callers, callees } = neighbours(tree, event, selected);
    const share = (weight) => `${percent(weight / (whole || 1))} · ${amount(weight, unit)}`;
    this.title.textContent = name;
    this.object.textContent = object;
    this.figures.replaceChildren(
      ...[["total", share(total)], ["itself", share(own)], ["event", eventName]]
        .flatMap(([label, value]) => [element("dt", {}, label), element("dd", {}, value)]));
    this.callers.replaceChildren(...this.list(callers, total));
    this.callees.replaceChildren(...this.list(callees, total, own));
  }

  /** The heaviest, with what is the function's own among them. */
  list(sums, total, own = 0) {
    const rows = [...sums].map(([target, weight]) => ({ label: this.link(target), weight }));
    if (own > 0) rows.push({ label: element("em", {}, "(itself)"), weight: own });
    rows.sort((a, b) => b.weight - a.weight);
    const rest = rows.splice(NEIGHBOURS_SHOWN);
    if (rest.length > 0) {
      rows.push({ label: element("em", {}, `${count(rest.length)} more`), weight: rest.reduce((sum, row) => sum + row.weight, 0) });
    }
    if (rows.length === 0) return [element("li", { class: "muted" }, "none")];
    return rows.map(({ label, weight }) => element("li", {}, bar(weight / total), label));
  }

  link(target) {
    const { name } = this.profile.functions[target];
    if (!this.profile.callable.has(target)) return element("em", { title: name }, name);
    return element("button", { class: "name", title: name, onclick: () => this.onChoose(target) }, name);
  }
}
