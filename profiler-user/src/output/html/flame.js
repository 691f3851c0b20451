// The flame graph: a canvas as large as its window, which scrolls over deep stacks.

const ROW = 19;
/** Frames narrower than this are not drawn, in pixels. */
const NARROWEST = 0.4;
const FONT = '12px ui-sans-serif, system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif';

/** A flame graph. It tells the page which node was chosen, and asks it for nothing. */
class Flame {
  constructor(profile, palette, parts, onChoose) {
    Object.assign(this, { profile, palette, onChoose, ...parts });
    Object.assign(this, { event: 0, icicle: false, colorBy: "kind", zoom: 0, cursor: -1, hover: -1 });
    this.matching = null;
    this.selected = -1;
    this.levels = 1;
    this.scroller.addEventListener("scroll", () => this.schedule());
    this.canvas.addEventListener("mousemove", (event) => this.pointAt(event));
    this.canvas.addEventListener("mouseleave", () => this.leave());
    this.canvas.addEventListener("click", (event) => this.click(event));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("blur", () => this.moveCursor(-1));
    new ResizeObserver(() => this.arrange()).observe(this.scroller);
  }

  /** Changes what is shown: any of profile, event, icicle, colorBy, matching, selected. */
  show(changes) {
    const turned = "icicle" in changes && changes.icicle !== this.icicle;
    // Numbers of nodes are those of one tree.
    if ("profile" in changes) Object.assign(this, { zoom: 0, cursor: -1, hover: -1 });
    Object.assign(this, changes);
    if (this.profile.count > 0 && !(this.weight(this.zoom) > 0)) this.zoom = 0;
    this.arrange(turned || "event" in changes || "profile" in changes);
  }

  /** Makes a node as wide as the graph. */
  zoomTo(node) {
    this.zoom = node;
    this.arrange(true);
  }

  weight(node) {
    return this.profile.weights[this.event][node];
  }

  isEmpty() {
    return this.profile.count === 0 || !(this.weight(0) > 0);
  }

  /** Fits the height to the stacks that are visible; the root is scrolled into view on request. */
  arrange(toRoot = false) {
    const width = this.scroller.clientWidth;
    if (width === 0) return;
    const { depth, end } = this.profile;
    let deepest = 0;
    if (!this.isEmpty()) {
      deepest = depth[this.zoom];
      const least = (NARROWEST / width) * this.weight(this.zoom);
      for (let node = this.zoom; node < end[this.zoom]; ) {
        if (this.weight(node) >= least && this.weight(node) > 0) deepest = Math.max(deepest, depth[node++]);
        else node = end[node];
      }
    }
    this.levels = deepest + 1;
    const height = Math.max(this.levels, 6) * ROW;
    this.scroller.style.height = `${Math.min(height, Math.max(220, Math.round(window.innerHeight * 0.56)))}px`;
    this.space.style.height = `${height}px`;
    if (toRoot) this.scroller.scrollTop = this.icicle ? 0 : height;
    this.schedule();
  }

  schedule() {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => {
      this.pending = 0;
      this.draw();
    });
  }

  contentHeight() {
    return Math.max(Math.max(this.levels, 6) * ROW, this.scroller.clientHeight);
  }

  top(depth) {
    const at = this.icicle ? depth * ROW : this.contentHeight() - (depth + 1) * ROW;
    return at - this.scroller.scrollTop;
  }

  /** Left edge and width of a node in pixels. */
  extent(node) {
    const { depth } = this.profile;
    if (depth[node] <= depth[this.zoom]) return [0, this.width];
    const left = layout(this.profile, this.event);
    const scale = this.width / this.weight(this.zoom);
    return [(left[node] - left[this.zoom]) * scale, this.weight(node) * scale];
  }

  draw() {
    const context = this.canvas.getContext("2d");
    const ratio = window.devicePixelRatio || 1;
    this.width = this.scroller.clientWidth;
    this.height = this.scroller.clientHeight;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${this.height}px`;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = FONT;
    context.textBaseline = "middle";
    this.dark = isDark();
    this.ink = getComputedStyle(this.canvas).color;
    if (this.isEmpty()) {
      context.fillStyle = this.ink;
      context.fillText(`No samples of ${this.profile.events[this.event].name}.`, 12, this.height / 2);
      return;
    }
    for (let node = this.profile.parent[this.zoom]; node >= 0; node = this.profile.parent[node]) this.box(context, node, true);
    const { end } = this.profile;
    const least = (NARROWEST / this.width) * this.weight(this.zoom);
    for (let node = this.zoom; node < end[this.zoom]; ) {
      if (this.weight(node) < least || this.weight(node) === 0) {
        node = end[node];
        continue;
      }
      this.box(context, node, false);
      node++;
    }
    if (this.cursor >= 0) this.outline(context, this.cursor, 2);
    else if (this.hover >= 0) this.outline(context, this.hover, 1);
  }

  box(context, node, above) {
    const top = this.top(this.profile.depth[node]);
    if (top > this.height || top + ROW < 0) return;
    const [left, width] = this.extent(node);
    const name = this.profile.functions[this.profile.functionOf[node]].name;
    const isMatch = this.matching?.[this.profile.functionOf[node]];
    context.globalAlpha = above ? 0.55 : this.matching && !isMatch ? 0.38 : 1;
    context.fillStyle = isMatch ? (this.dark ? "#d86ad0" : "#e58be0") : this.palette.of(this.colorBy, node, this.dark);
    context.fillRect(left, top + 0.5, Math.max(width - (width > 3 ? 1 : 0), NARROWEST), ROW - 1);
    if (this.selected >= 0 && this.profile.functionOf[node] === this.selected && width > 2) {
      context.strokeStyle = this.ink;
      context.lineWidth = 1.5;
      context.strokeRect(left + 0.75, top + 1.25, Math.max(width - 2.5, 0.5), ROW - 2.5);
    }
    if (width > 26) {
      context.globalAlpha = above ? 0.8 : this.matching && !isMatch ? 0.75 : 1;
      context.fillStyle = this.matching && !isMatch ? this.ink : "#14181d";
      context.fillText(fit(context, name, width - 8), left + 4, top + ROW / 2 + 0.5);
    }
    context.globalAlpha = 1;
  }

  outline(context, node, thickness) {
    const [left, width] = this.extent(node);
    context.strokeStyle = this.ink;
    context.lineWidth = thickness;
    context.strokeRect(left + 0.5, this.top(this.profile.depth[node]) + 0.5, Math.max(width - 1, 1), ROW - 1);
  }

  /** The node at a place in the window. */
  at(event) {
    if (this.isEmpty()) return -1;
    const place = this.canvas.getBoundingClientRect();
    const y = event.clientY - place.top + this.scroller.scrollTop;
    const depth = Math.floor((this.icicle ? y : this.contentHeight() - y) / ROW);
    return this.find(event.clientX - place.left, depth);
  }

  find(x, wanted) {
    const { depth, parent } = this.profile;
    let node = this.zoom;
    if (wanted < 0) return -1;
    while (depth[node] > wanted) node = parent[node];
    while (node >= 0 && depth[node] < wanted) {
      node = children(this.profile, node).find((child) => {
        const [left, width] = this.extent(child);
        return left <= x && x < left + width;
      }) ?? -1;
    }
    return node;
  }

  pointAt(event) {
    this.hover = this.at(event);
    this.canvas.style.cursor = this.hover >= 0 ? "pointer" : "default";
    this.tell(this.hover, event);
    this.schedule();
  }

  leave() {
    this.hover = -1;
    this.tip.hidden = true;
    this.schedule();
  }

  click(event) {
    const node = this.at(event);
    if (node < 0) return;
    this.choose(node);
    this.tell(this.at(event), event);
  }

  choose(node) {
    if (this.profile.kind[node] !== KIND.SMALL) this.zoomTo(node);
    this.onChoose(node);
  }

  key(event) {
    if (this.isEmpty() || event.altKey || event.ctrlKey || event.metaKey) return;
    const { parent } = this.profile;
    const at = this.cursor >= 0 ? this.cursor : this.zoom;
    const steps = {
      [this.icicle ? "ArrowUp" : "ArrowDown"]: () => (this.cursor < 0 ? at : Math.max(parent[at], 0)),
      [this.icicle ? "ArrowDown" : "ArrowUp"]: () => (this.cursor < 0 ? at : this.inner(at)),
      ArrowLeft: () => this.beside(at, -1),
      ArrowRight: () => this.beside(at, 1),
    };
    if (event.key in steps) this.moveCursor(steps[event.key]());
    else if (event.key === "Enter" || event.key === " ") this.choose(at);
    else if (event.key === "Escape") this.zoomTo(0);
    else return;
    event.preventDefault();
  }

  inOrder(nodes) {
    const left = layout(this.profile, this.event);
    return nodes.filter((node) => this.weight(node) > 0).sort((a, b) => left[a] - left[b]);
  }

  inner(node) {
    return this.inOrder(children(this.profile, node))[0] ?? node;
  }

  beside(node, step) {
    const parent = this.profile.parent[node];
    if (parent < 0 || this.profile.depth[node] <= this.profile.depth[this.zoom]) return node;
    const row = this.inOrder(children(this.profile, parent));
    return row[row.indexOf(node) + step] ?? node;
  }

  moveCursor(node) {
    this.cursor = node;
    if (node >= 0) {
      const top = this.top(this.profile.depth[node]);
      if (top < 0) this.scroller.scrollTop += top;
      else if (top + ROW > this.scroller.clientHeight) this.scroller.scrollTop += top + ROW - this.scroller.clientHeight;
      this.status.textContent = this.describe(node).map(([name, value]) => (name ? `${name} ${value}` : value)).join(", ");
    }
    this.schedule();
  }

  /** Name and numbers of a node. */
  describe(node) {
    const { profile, event } = this;
    const { name, object } = profile.functions[profile.functionOf[node]];
    const { unit } = profile.events[event];
    const whole = this.weight(0);
    const share = (weight) => `${percent(weight / whole)} · ${amount(weight, unit)}`;
    const own = ownWeight(profile, event, node);
    const where = [object, KIND_NAMES[profile.kind[node]]].filter((part) => part !== "").join(" · ");
    const lines = [["", name], ["", where], ["total", share(this.weight(node))]];
    if (profile.kind[node] <= KIND.KERNEL) lines.push(["self", share(own)]);
    profile.events.forEach((other, index) => {
      if (index !== event && other.weight > 0) lines.push([other.name, amount(profile.weights[index][node], other.unit)]);
    });
    for (const metric of profile.metrics) {
      const value = metricOf(profile, metric, node);
      lines.push([metric.title, value === null ? "–" : metricText(metric, value)]);
    }
    return lines.filter(([, value]) => value !== "");
  }

  /** Shows the tip of a node beside the pointer. */
  tell(node, event) {
    this.tip.hidden = node < 0;
    if (node < 0) return;
    const [[, title], ...lines] = this.describe(node);
    const rows = lines.map(([name, value]) =>
      element("div", {}, element("span", { class: "muted" }, name), element("span", {}, value)));
    this.tip.replaceChildren(element("strong", {}, title), ...rows);
    const { width, height } = this.tip.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, window.innerWidth - width - 8);
    const below = event.clientY + 18;
    this.tip.style.left = `${Math.max(left, 8)}px`;
    this.tip.style.top = `${below + height > window.innerHeight ? Math.max(event.clientY - height - 12, 8) : below}px`;
  }
}

/** As much of a name as fits, its end rather than its begin. */
function fit(context, name, width) {
  // Twice the usual letters are surely too wide to be measured in full.
  const fits = (text) => text.length < width / 2 && context.measureText(text).width <= width;
  if (fits(name)) return name;
  const short = shortName(name);
  if (fits(short)) return short;
  let [least, most] = [0, Math.min(short.length, Math.ceil(width / 3))];
  while (least < most) {
    const middle = Math.ceil((least + most) / 2);
    if (context.measureText(`${short.slice(0, middle)}…`).width <= width) least = middle;
    else most = middle - 1;
  }
  return least > 1 ? `${short.slice(0, least)}…` : "";
}
