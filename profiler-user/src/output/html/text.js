// Numbers and names as people read them.

const COUNT = new Intl.NumberFormat("en-US");

/** A whole number with a comma between each three digits. */
function count(number) {
  return COUNT.format(number);
}

/** A share in percent, with two digits where they matter. */
function percent(share) {
  if (!Number.isFinite(share)) return "–";
  const value = share * 100;
  const digits = (value > 0 && value < 0.95) || (value >= 99.95 && value < 100) ? 2 : 1;
  return `${value.toFixed(digits)} %`;
}

/** Both ends of an interval of shares, in percent. */
function interval(low, high) {
  return `${(low * 100).toFixed(1)}–${(high * 100).toFixed(1)}`;
}

/** Two numbers with what is behind them, which is said once if it is the same. */
function range(low, high) {
  const [number, suffix] = low.split(" ");
  return suffix === high.split(" ")[1] ? `${number}–${high}` : `${low}–${high}`;
}

/** A weight in the unit of its event; nanoseconds as time. */
function amount(weight, unit) {
  if (unit !== "ns") return `${compact(weight)} ${unit}`;
  if (weight === 0) return "0 s";
  const steps = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]];
  const [size, name] = steps.find(([size]) => weight >= size) ?? [1, "ns"];
  return `${digits(weight / size)} ${name}`;
}

/** A number in few characters: 1,234 or 12.3 M. */
function compact(number) {
  const [size, name] = [[1e12, " T"], [1e9, " G"], [1e6, " M"], [1e5, " k"]].find(([size]) => number >= size) ?? [1, ""];
  if (size === 1) return count(Math.round(number));
  return `${digits(number / (size === 1e5 ? 1e3 : size))}${name}`;
}

/** Three digits that count. */
function digits(number) {
  const places = number >= 100 ? 0 : number >= 10 ? 1 : 2;
  return number.toFixed(places);
}

/** A value of a metric. */
function metricText(metric, value) {
  if (metric.isShare) return percent(value);
  return value >= 1e5 ? compact(value) : digits(value);
}

/** The end of a name that says most where there is little room: generics gone, the last two parts of the path. */
function shortName(name) {
  if (name.startsWith("[") || name.startsWith("(")) return name;
  let depth = 0;
  let plain = "";
  for (const letter of name) {
    if (letter === "<") depth++;
    if (depth === 0) plain += letter;
    if (letter === ">" && depth > 0) depth--;
  }
  const parts = plain.split("::").filter((part) => part !== "");
  return parts.slice(-2).join("::") || name;
}

/** The last parts of a path. */
function endOfPath(path) {
  const parts = path.split("/");
  return parts.length > 4 ? `…/${parts.slice(-3).join("/")}` : path;
}

/** An element with attributes and children; text is never read as HTML. */
function element(tag, attributes = {}, ...content) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name === "onclick") made.addEventListener("click", value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...content.filter((part) => part !== null));
  return made;
}
