// The table: sorted by any column, filtered by the search, a part of its rows at a time.

const ROWS_AT_ONCE = 100;
const ALPHABET = new Intl.Collator("en");
/** Places in the list of numbers that a row has of an event. */
const COST = { OWN_SAMPLES: 0, OWN: 1, TOTAL_SAMPLES: 2, TOTAL: 3 };

/** One of the numbers that a row has of an event. */
function costOf(row, event, place) {
  return row.events[event]?.[0][place] ?? 0;
}

/** Both ends of the interval of a row's own weight, or null. */
function endsOf(row, event) {
  return row.events[event]?.[1] ?? null;
}

/** The table of functions, lines, objects or threads. */
class Table {
  constructor(profile, parts, onChoose) {
    Object.assign(this, { profile, onChoose, ...parts });
    Object.assign(this, { current: 0, event: 0, query: "", selected: -1, limit: ROWS_AT_ONCE });
    this.sort = { column: "self", descending: true };
    this.more.addEventListener("click", () => {
      this.limit += ROWS_AT_ONCE * 5;
      this.render();
    });
  }

  /** Changes what is shown: any of current, event, query, selected. */
  show(changes) {
    if (["current", "event", "query"].some((name) => name in changes && changes[name] !== this[name])) this.limit = ROWS_AT_ONCE;
    Object.assign(this, changes);
    if (!this.columns().some((column) => column.id === this.sort.column)) this.sort = { column: "self", descending: true };
    this.render();
  }

  columns() {
    const { profile, event } = this;
    const { heading, rows } = profile.tables[this.current];
    const whole = profile.events[event].weight || 1;
    const of = (row, place) => costOf(row, event, place);
    const most = rows.reduce((most, row) => Math.max(most, of(row, COST.OWN)), 1);
    const number = (id, title, hint, value, cell) => ({ id, title, hint, value, cell, numeric: true });
    const text = (id, title, hint, value, cell) => ({ id, title, hint, value, cell, numeric: false });
    const name = profile.events[event].name;
    const columns = [
      number("self", "self", `share of ${name} in it alone`, (row) => of(row, COST.OWN), (row) => bar(of(row, COST.OWN) / whole, of(row, COST.OWN) / most)),
      number("interval", "95 % interval", "of the self share, in percent: how far it can be from the truth of this run",
        (row) => endsOf(row, event)?.[0] ?? -1, (row) => ends(endsOf(row, event), (low, high) => interval(low / whole, high / whole))),
      number("total", "total", `share of ${name} in it and all it calls`, (row) => of(row, COST.TOTAL), (row) => percent(of(row, COST.TOTAL) / whole)),
      number("samples", "samples", `samples of ${name} in it alone`, (row) => of(row, COST.OWN_SAMPLES), (row) => count(of(row, COST.OWN_SAMPLES))),
      ...profile.events.flatMap((other, index) => (index === event ? [] : [this.eventColumn(other, index)])),
      ...profile.metrics.map((metric, index) => this.metricColumn(metric, index)),
    ];
    const reading = text("reading", "reading", "what the metrics say; `bpfprof help metrics` explains it", (row) => row.reading ?? "", (row) => row.reading ?? "");
    const hasReadings = rows.some((row) => row.reading);
    const label = text("name", heading, "", (row) => row.name, (row) => this.name(row));
    const objects = rows.some((row) => row.object !== "");
    const object = text("object", "object", "file that it lies in", (row) => row.object, (row) => row.object);
    return [label, ...columns, ...(hasReadings ? [reading] : []), ...(objects ? [object] : [])];
  }

  eventColumn(event, index) {
    const value = (row) => costOf(row, index, COST.OWN);
    const text = (weight) => (event.unit === "ns" ? amount(weight, "ns") : compact(weight));
    return {
      id: `event ${index}`,
      title: event.name,
      hint: `${event.name} (${event.unit}) in it alone, with its 95 % interval`,
      numeric: true,
      value,
      cell: (row) => {
        const [low, high] = endsOf(row, index) ?? [0, 0];
        // Where each occurrence was counted the value is exact.
        return low === high ? text(value(row)) : withInterval(text(value(row)), range(text(low), text(high)));
      },
    };
  }

  metricColumn(metric, index) {
    return {
      id: `metric ${index}`,
      title: metric.title,
      hint: `${metric.name}, ${metric.unit}: ${metric.explanation}`,
      numeric: true,
      value: (row) => row.metrics[index]?.[0] ?? -1,
      cell: (row) => {
        const estimate = row.metrics[index];
        if (!estimate) return "–";
        const [value, low, high] = estimate.map((number) => metricText(metric, number));
        return withInterval(value, range(low, high));
      },
    };
  }

  name(row) {
    if (row.function < 0) {
      const isLine = this.profile.tables[this.current].heading === "line";
      return element("span", { class: "name", title: row.name }, isLine ? endOfPath(row.name) : row.name);
    }
    return element("button", { class: "name", title: row.name, onclick: () => this.onChoose(row.function) }, row.name);
  }

  /** The rows that match, in order. */
  rows(columns) {
    const query = this.query.toLowerCase();
    const matches = (row) => query === "" || row.name.toLowerCase().includes(query) || row.object.toLowerCase().includes(query);
    const { value, numeric } = columns.find((column) => column.id === this.sort.column);
    const sign = this.sort.descending ? -1 : 1;
    const compare = numeric ? (a, b) => value(a) - value(b) : (a, b) => ALPHABET.compare(value(a), value(b));
    return this.profile.tables[this.current].rows.filter(matches).sort((a, b) => sign * compare(a, b));
  }

  render() {
    const columns = this.columns();
    const rows = this.rows(columns);
    this.head.replaceChildren(element("tr", {}, ...columns.map((column) => this.heading(column))));
    this.body.replaceChildren(...rows.slice(0, this.limit).map((row) => {
      const cells = columns.map((column) => element("td", { class: column.numeric ? "number" : column.id }, column.cell(row)));
      return element("tr", { class: row.function >= 0 && row.function === this.selected ? "selected" : null }, ...cells);
    }));
    this.more.hidden = rows.length <= this.limit;
    this.more.textContent = `Show more (${count(rows.length - this.limit)} left)`;
    this.note.textContent = this.summary(rows.length);
  }

  heading(column) {
    const isSorted = column.id === this.sort.column;
    const direction = isSorted ? (this.sort.descending ? "descending" : "ascending") : null;
    const sort = () => {
      this.sort = { column: column.id, descending: isSorted ? !this.sort.descending : column.numeric };
      this.render();
      this.head.querySelector(`[data-column="${column.id}"]`)?.focus();
    };
    const mark = element("span", { class: "mark", "aria-hidden": "true" }, isSorted ? (this.sort.descending ? "▼" : "▲") : "");
    const button = element("button", { title: column.hint, "data-column": column.id, onclick: sort }, column.title, mark);
    return element("th", { scope: "col", class: column.numeric ? "number" : column.id, "aria-sort": direction }, button);
  }

  summary(found) {
    const { rows, hidden, hiddenWeights, heading, plural } = this.profile.tables[this.current];
    const counted = (number) => `${count(number)} ${number === 1 ? heading : plural}`;
    const shown = this.query === "" ? counted(rows.length) : `${counted(found)} of ${count(rows.length)} match`;
    if (hidden === 0) return shown;
    const { name, weight } = this.profile.events[this.event];
    return `${shown}; ${count(hidden)} more below 1 in ${count(this.profile.smallest)} are left out, with ${percent(hiddenWeights[this.event] / (weight || 1))} of ${name} in all`;
  }
}

/** A share with a bar behind it, which may be on another scale. */
function bar(share, length = share) {
  const fill = element("span", { class: "fill" });
  fill.style.width = `${Math.min(length * 100, 100)}%`;
  return element("span", { class: "bar" }, fill, element("span", { class: "value" }, percent(share)));
}

/** An interval in words. */
function ends(both, text) {
  if (!both) return "–";
  return both[0] === both[1] ? "exact" : text(...both);
}

/** A value over its interval. */
function withInterval(value, interval) {
  return element("span", { class: "estimate" }, element("span", {}, value), element("small", { class: "muted" }, interval));
}
