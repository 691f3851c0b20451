// Puts the page together.

const byId = (id) => document.getElementById(id);
const systemIsDark = window.matchMedia("(prefers-color-scheme: dark)");

/** Whether the page is dark now. */
function isDark() {
  return (document.documentElement.dataset.theme ?? (systemIsDark.matches ? "dark" : "light")) === "dark";
}

/** Makes one of several buttons the pressed one at a time. */
function chooser(group, choices, chosen, onChoose) {
  const buttons = choices.map(([value, label]) => {
    const press = () => {
      for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.value === String(value)));
      onChoose(value);
    };
    return element("button", { type: "button", "data-value": value, "aria-pressed": String(value === chosen), onclick: press }, label);
  });
  group.replaceChildren(...buttons);
}

/** Fills a list to choose from. */
function options(select, choices, chosen, onChoose) {
  select.replaceChildren(...choices.map(([value, label]) => element("option", { value, selected: value === chosen }, label)));
  select.addEventListener("change", () => onChoose(select.value));
}

function fillHeader(profile) {
  byId("target").textContent = profile.target;
  const [[, first], ...lines] = profile.header;
  byId("summary").textContent = first.replace(/^bpfprof: /, "");
  byId("header").replaceChildren();
  for (const [label, text] of lines) {
    // Lines without a label go on with the one before.
    if (label !== "") byId("header").append(element("div", {}, element("dt", {}, label)));
    byId("header").lastElementChild?.append(element("dd", {}, text));
  }
  byId("version").textContent = `bpfprof ${profile.version}`;
}

/** Functions and threads whose name or object has the text, and the share of an event that is in them. */
function search(profile, event, query) {
  const wanted = query.toLowerCase();
  const matching = profile.functions.map(({ name, object }, index) =>
    profile.searchable.has(index) && (name.toLowerCase().includes(wanted) || object.toLowerCase().includes(wanted)));
  let weight = 0;
  for (let node = 0; node < profile.count; ) {
    const isMatch = matching[profile.functionOf[node]];
    if (isMatch) weight += profile.weights[event][node];
    node = isMatch ? profile.end[node] : node + 1;
  }
  return { matching, share: weight / (profile.events[event].weight || 1) };
}

function start() {
  const profile = decode(JSON.parse(byId("data").textContent));
  const palette = new Palette(profile);
  const state = { event: profile.start.event, query: "" };

  const select = (index) => {
    for (const part of [flame, table, callers]) part.show({ selected: index });
  };
  const ownCode = lazy(() => without(profile, OWN_CODE.graph));
  const flame = new Flame(profile, palette, {
    canvas: byId("canvas"), scroller: byId("scroller"), space: byId("space"), tip: byId("tip"), status: byId("status"),
  }, (node) => select(flame.profile.kind[node] <= KIND.KERNEL ? flame.profile.functionOf[node] : -1));
  const table = new Table(profile, { head: byId("head"), body: byId("body"), more: byId("more"), note: byId("note") }, select);
  const rows = lazy(() => (profile.inlines === "own" ? without(profile, OWN_CODE.rows) : profile));
  const callers = new Callers(profile, rows, {
    hint: byId("callers-hint"), content: byId("callers-content"), title: byId("callers-title"), object: byId("callers-object"),
    figures: byId("callers-figures"), callers: byId("callers"), callees: byId("callees"),
  }, select);

  const find = () => {
    const found = state.query === "" ? null : search(profile, state.event, state.query);
    flame.show({ matching: found?.matching ?? null });
    table.show({ query: state.query });
    byId("found").textContent = found ? `${percent(found.share)} of ${profile.events[state.event].name}` : "";
  };
  const legend = () => {
    const metric = palette.metric(flame.colorBy);
    byId("legend").replaceChildren(...(metric ? metricLegend(metric, palette.marks(metric)) : flame.colorBy === "object" ? objectLegend(profile, palette) : kindLegend()));
  };

  fillHeader(profile);
  const label = ({ name, weight, unit }) => `${name} (${weight > 0 ? amount(weight, unit) : "no samples"})`;
  options(byId("event"), profile.events.map((event, index) => [index, label(event)]), state.event, (value) => {
    state.event = Number(value);
    for (const part of [flame, table, callers]) part.show({ event: state.event });
    find();
  });
  options(byId("color"), palette.choices(), profile.start.colorBy, (value) => {
    flame.show({ colorBy: value });
    legend();
  });
  chooser(byId("direction"), [["flame", "Flame"], ["icicle", "Icicle"]], "flame", (value) => flame.show({ icicle: value === "icicle" }));
  chooser(byId("tables"), profile.tables.map(({ plural }, index) => [index, `${plural[0].toUpperCase()}${plural.slice(1)}`]), profile.start.table,
    (value) => table.show({ current: value }));
  byId("own").checked = false;
  byId("own").addEventListener("change", () => {
    const shown = byId("own").checked ? ownCode() : profile;
    palette.profile = shown;
    flame.show({ profile: shown });
    find();
  });
  byId("search").addEventListener("input", () => {
    state.query = byId("search").value.trim();
    find();
  });
  byId("reset").addEventListener("click", () => flame.zoomTo(0));
  byId("theme").addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    flame.show({});
    legend();
  });
  systemIsDark.addEventListener("change", () => {
    flame.show({});
    legend();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== byId("search")) {
      event.preventDefault();
      byId("search").focus();
    } else if (event.key === "Escape" && document.activeElement === byId("search")) {
      byId("search").value = "";
      byId("search").dispatchEvent(new Event("input"));
    }
  });
  flame.show({ event: state.event, colorBy: profile.start.colorBy });
  table.show({ event: state.event, current: profile.start.table });
  callers.show({ event: state.event });
  legend();
  flame.arrange(true);
}

function swatch(color, label) {
  const patch = element("span", { class: "swatch" });
  patch.style.background = color;
  return element("span", { class: "entry" }, patch, label);
}

const OBJECTS_IN_LEGEND = 6;

/** The objects with most samples in them. */
function objectLegend(profile, palette) {
  const { rows } = profile.tables.find(({ heading }) => heading === "object");
  return rows.slice(0, OBJECTS_IN_LEGEND).map(({ name }) => swatch(palette.ofObject(name, isDark()), name));
}

function kindLegend() {
  return [KIND.USER, KIND.INLINED, KIND.KERNEL].map((kind) => {
    const [hue, , saturation] = KIND_HUES[kind];
    return swatch(`hsl(${hue} ${saturation}% ${isDark() ? 56 : 72}%)`, KIND_NAMES[kind]);
  });
}

function metricLegend(metric, marks) {
  const scale = element("span", { class: "scale" });
  scale.style.background = `linear-gradient(90deg, ${[0, 0.5, 1].map((at) => metricGradient(at, isDark())).join(", ")})`;
  const [bad, good] = marks.map((mark) => element("span", {}, metricText(metric, mark)));
  return [bad, scale, good, element("span", {}, metric.unit), swatch(metricColor(marks, null, isDark()), "too few samples")];
}

start();
