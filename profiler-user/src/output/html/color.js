// The colours of frames: by where they run, by object, or by a metric.

/** Hue and its width in degrees, and saturation, by kind of frame. */
const KIND_HUES = [
  [17, 9, 82],
  [47, 7, 82],
  [212, 14, 62],
  [215, 0, 12],
  [215, 0, 8],
  [215, 0, 12],
];
/** From bad over neutral to good, distinguishable with any kind of colour vision. */
const METRIC_COLORS = { bad: [207, 84, 50], neutral: [232, 221, 196], good: [54, 144, 150] };

/** A number from 0 to 1 that a text always has. */
function hash(text) {
  let value = 2166136261;
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 16777619);
  return ((value >>> 0) % 1009) / 1008;
}

/** How the page colours frames: the choices, and a function from node to colour for each. */
class Palette {
  constructor(profile) {
    this.profile = profile;
    this.cache = new Map();
    const objects = profile.tables.find(({ heading }) => heading === "object");
    this.ranks = new Map(objects.rows.map(({ name }, rank) => [name, rank]));
  }

  /** What can be chosen. */
  choices() {
    const metrics = this.profile.metrics.map((metric) => [metric.name, metric.title]);
    return [["kind", "Kind"], ["object", "Object"], ...metrics];
  }

  /** The metric of this choice, if it is one. */
  metric(choice) {
    return this.profile.metrics.find((metric) => metric.name === choice) ?? null;
  }

  /** Where the colours of a metric begin: at its marks, else around the value of the whole profile. */
  marks(metric) {
    const whole = (this.profile.count > 0 && metricOf(this.profile, metric, 0)) || 1;
    return metric.marks ?? [whole * 4, whole / 4];
  }

  /** The colour of a node. */
  of(choice, node, dark) {
    const metric = this.metric(choice);
    const kind = this.profile.kind[node];
    if (metric && kind !== KIND.SMALL) return metricColor(this.marks(metric), metricOf(this.profile, metric, node), dark);
    const { name, object } = this.profile.functions[this.profile.functionOf[node]];
    if (choice === "object" && kind <= KIND.KERNEL) return this.ofObject(object, dark);
    const key = `${kind} ${dark} ${name}`;
    if (!this.cache.has(key)) this.cache.set(key, kindColor(kind, name, dark));
    return this.cache.get(key);
  }

  /** The colour of an object. Steps by the golden angle keep the hues of those with most samples apart. */
  ofObject(object, dark) {
    const hue = (128 + (this.ranks.get(object) ?? 0) * 137.508) % 360;
    return `hsl(${Math.round(hue)} 52% ${dark ? 58 : 75}%)`;
  }
}

function kindColor(kind, name, dark) {
  const lightness = dark ? 56 : 72;
  const [hue, width, saturation] = KIND_HUES[kind];
  const shade = hash(name) - 0.5;
  return `hsl(${Math.round(hue + shade * 2 * width)} ${saturation}% ${Math.round(lightness + shade * 8)}%)`;
}

/** Bad values are rust, good ones teal; grey where there are too few samples for a value. */
function metricColor([bad, good], value, dark) {
  if (value === null) return dark ? "#555d68" : "#cfd4da";
  const logarithm = (number) => Math.log(Math.max(number, 1e-9));
  const position = (logarithm(value) - logarithm(bad)) / (logarithm(good) - logarithm(bad));
  return metricGradient(position, dark);
}

/** A colour on the way from bad (0) to good (1). */
function metricGradient(position, dark) {
  const at = Math.min(Math.max(position, 0), 1) * 2;
  const { bad, neutral, good } = METRIC_COLORS;
  const [from, to, part] = at < 1 ? [bad, neutral, at] : [neutral, good, at - 1];
  const dim = dark ? 0.88 : 1;
  return `rgb(${from.map((channel, index) => Math.round((channel + (to[index] - channel) * part) * dim)).join(" ")})`;
}
