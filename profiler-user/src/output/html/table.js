// The table: sorted by any column, filtered by the search, a part of its rows at a time.

const ROWS_AT_ONCE = 100;
/** Places in the list of numbers that a row has of an event. */
const COST = { OWN_SAMPLES: 0, OWN: 1, TOTAL_SAMPLES: 2, TOTAL: 3, LOW: 4, HIGH: 5 };

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
    const most = rows.reduce((most, row) => Math.max(most, row.events[event]?.[COST.OWN] ?? 0), 1);
    const of = (row, place) => row.events[event]?.[place] ?? 0;
    const number = (id, title, hint, value, cell) => ({ id, title, hint, value, cell, numeric: true });
    const text = (id, title, hint, value, cell) => ({ id, title, hint, value, cell, numeric: false });
    const name = profile.events[event].name;
    const columns = [
      number("self", "self", `share of ${name} in it alone`, (row) => of(row, COST.OWN), (row) => bar(of(row, COST.OWN) / whole, of(row, COST.OWN) / most)),
      number("interval", "95 % interval", "of the self share, in percent: how far it can be from the truth of this run",
        (row) => row.events[event]?.[COST.LOW] ?? -1,
        (row) => (row.events[event]?.length > COST.LOW ? interval(row.events[event][COST.LOW], row.events[event][COST.HIGH]) : "–")),
      number("total", "total", `share of ${name} in it and all it calls`, (row) => of(row, COST.TOTAL), (row) => percent(of(row, COST.TOTAL) / whole)),
      number("samples", "samples", `samples of ${name} in it alone`, (row) => of(row, COST.OWN_SAMPLES), (row) => count(of(row, COST.OWN_SAMPLES))),
      ...profile.events.flatMap((other, index) => (index === event ? [] : [this.eventColumn(other, index)])),
      ...profile.metrics.map((metric, index) => this.metricColumn(metric, index)),
    ];
    const label = text("name", heading, "", (row) => row.name, (row) => this.name(row));
    const objects = rows.some((row) => row.object !== "");
    const object = text("object", "object", "file that it lies in", (row) => row.object, (row) => row.object);
    return [label, ...columns, ...(objects ? [object] : [])];
  }

  eventColumn(event, index) {
    const of = (row) => row.events[index]?.[COST.OWN] ?? 0;
    return {
      id: `event ${index}`,
      title: event.name,
      hint: `${event.name} in it alone, with its 95 % interval`,
      numeric: true,
      value: of,
      cell: (row) => {
        const cost = row.events[index];
        if (!cost) return "0";
        const value = amount(of(row), event.unit);
        if (cost.length <= COST.LOW) return value;
        const [low, high] = [cost[COST.LOW], cost[COST.HIGH]].map((share) => amount(share * event.weight, event.unit));
        return withInterval(value, low, high);
      },
    };
  }

  metricColumn(metric, index) {
    return {
      id: `metric ${index}`,
      title: metric.title,
      hint: `${metric.explanation ?? metric.name}`,
      numeric: true,
      value: (row) => row.metrics?.[index]?.[0] ?? -1,
      cell: (row) => {
        const estimate = row.metrics?.[index];
        if (!estimate) return "–";
        const [value, low, high] = estimate.map((number) => metricText(metric, number));
        return withInterval(value, low, high);
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
    const compare = numeric ? (a, b) => value(a) - value(b) : (a, b) => value(a).localeCompare(value(b));
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
    const { rows, hidden, hidden_weights: weights, heading } = this.profile.tables[this.current];
    const plural = (number) => `${count(number)} ${heading}${number === 1 ? "" : "s"}`;
    const shown = this.query === "" ? plural(rows.length) : `${plural(found)} of ${count(rows.length)} match`;
    if (hidden === 0) return shown;
    const { name, weight } = this.profile.events[this.event];
    return `${shown}; ${count(hidden)} more below 1 in ${count(this.profile.smallest)} are left out, with ${percent(weights[this.event] / (weight || 1))} of ${name} in all`;
  }
}

/** A share with a bar behind it, which may be on another scale. */
function bar(share, length = share) {
  const fill = element("span", { class: "fill" });
  fill.style.width = `${Math.min(length * 100, 100)}%`;
  return element("span", { class: "bar" }, fill, element("span", { class: "value" }, percent(share)));
}

/** A value over its interval. */
function withInterval(value, low, high) {
  return element("span", { class: "estimate" }, element("span", {}, value), element("small", { class: "muted" }, `${low}–${high}`));
}
