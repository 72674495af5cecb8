"use strict";
// Whatever comes from the server is set as text, never as markup.

const EVERY_MS = 1000, AFTER_FAULT_MS = 4000, TIMEOUT_MS = 5000;
const UNITS = ["octets", "kB", "MB", "GB", "TB", "PB", "EB"];
const NOTHING = "–";

const place = (id) => document.getElementById(id);

function make(tag, text, name) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (name) element.className = name;
  return element;
}

function showOctets(octets) {
  let unit = 0;
  while (octets >= 999.5 && unit < UNITS.length - 1) { octets /= 1000; unit += 1; }
  return octets.toFixed(unit && octets < 99.95 ? 1 : 0) + " " + UNITS[unit];
}

function showSeconds(seconds) {
  if (seconds < 9.95) return seconds.toFixed(1) + " s";
  const whole = Math.round(seconds), two = (n) => String(n).padStart(2, "0");
  if (whole < 60) return whole + " s";
  const days = Math.floor(whole / 86400), hours = Math.floor(whole / 3600) % 24;
  const minutes = Math.floor(whole / 60) % 60;
  if (days) return `${days} d ${hours} h`;
  return hours ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
}

function showNumber(number) {
  if (Number.isInteger(number) || number >= 100) return Math.round(number).toLocaleString("en");
  return number.toFixed(number < 10 ? 2 : 1);
}

function show(value, kind) {
  if (value === null || value === undefined) return NOTHING;
  if (typeof value !== "number") return value === "" ? NOTHING : String(value);
  switch (kind) {
    case "octets": return showOctets(value);
    case "seconds": return showSeconds(value);
    case "share": return Math.floor(value * 100) + " %";
    default: return showNumber(value);
  }
}

// Replaces what an element holds only where it is not the same already, so that nothing that a reader marked is lost.
const last = new Map();
function renew(id, value, build) {
  const text = JSON.stringify(value);
  if (last.get(id) === text) return;
  last.set(id, text);
  place(id).replaceChildren(...build(value));
}

function draw(history) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", "0 0 120 40");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  const top = Math.max(...history, 1e-9), begin = 120 - history.length + 1;
  const points = history.map((value, at) => `${begin + at},${(38.5 - 36 * value / top).toFixed(2)}`);
  if (points.length > 1) {
    const area = document.createElementNS(space, "polygon");
    area.setAttribute("points", `${begin},40 ${points.join(" ")} 120,40`);
    const line = document.createElementNS(space, "polyline");
    line.setAttribute("points", points.join(" "));
    svg.append(area, line);
  }
  return svg;
}

const buildRates = (rates) => rates.map((rate) => {
  const card = make("div", undefined, "card");
  const most = Math.max(0, ...rate.history);
  card.title = "the last two minutes";
  card.append(make("b", `${show(rate.per_s, rate.kind)} / s`), make("span", rate.label), draw(rate.history));
  card.append(make("small", `at most ${show(most, rate.kind)} / s`));
  return card;
});

const buildGauges = (facts) => facts.map((fact) => {
  const card = make("div", undefined, "card");
  card.append(make("b", show(fact.value, fact.kind)), make("span", fact.label));
  return card;
});

function buildFacts(facts) {
  const list = make("dl");
  for (const fact of facts) list.append(make("dt", fact.label), make("dd", show(fact.value, fact.kind)));
  return [make("h2", "About"), list];
}

function buildNode(node) {
  const item = make("li");
  const mark = make("i", "●", node.tone || "none");
  item.append(mark, make("b", node.name));
  if (node.note) item.append(make("span", node.note));
  if (node.children.length || node.more) {
    const below = make("ul");
    below.append(...node.children.map(buildNode));
    if (node.more) below.append(make("li", `and ${showNumber(node.more)} more`, "none"));
    item.append(below);
  }
  return item;
}

function buildTree(tree) {
  if (!tree) return [];
  const list = make("ul");
  list.append(buildNode(tree));
  return [make("h2", "Tree"), list];
}

function buildCell(value, column) {
  const text = show(value, column.kind), cell = make("td", "", column.kind === "text" ? "" : "number");
  cell.dataset.label = column.name;
  if (text === NOTHING) cell.classList.add("blank");
  if (column.kind === "share" && typeof value === "number") {
    const meter = make("meter");
    meter.value = value;
    cell.append(meter);
  }
  cell.append(make("span", text));
  return cell;
}

function buildTables(tables) {
  return tables.map((table) => {
    const section = make("section");
    const title = make("h2", table.title + " ");
    const shown = table.rows.length < table.total ? `${showNumber(table.rows.length)} of ` : "";
    title.append(make("small", shown + showNumber(table.total)));
    section.append(title);
    if (!table.rows.length) {
      section.append(make("p", table.empty, "none"));
      return section;
    }
    const grid = make("table"), head = make("thead"), names = make("tr"), body = make("tbody");
    for (const column of table.columns) {
      const cell = make("th", column.name, column.kind === "text" ? "" : "number");
      cell.scope = "col";
      names.append(cell);
    }
    head.append(names);
    for (const row of table.rows) {
      const line = make("tr");
      line.append(...row.map((value, at) => buildCell(value, table.columns[at])));
      body.append(line);
    }
    grid.append(head, body);
    const scroll = make("div", undefined, "scroll");
    scroll.append(grid);
    section.append(scroll);
    return section;
  });
}

function buildNotices(notices) {
  if (!notices) return [];
  if (!notices.length) return [make("h2", "Refused"), make("p", "nothing was refused", "none")];
  const list = make("ol");
  for (const notice of notices) {
    const item = make("li"), time = make("time", notice.at.replace("T", " ").replace("+00:00", " UTC"));
    time.dateTime = notice.at;
    item.append(time, make("span", notice.text));
    list.append(item);
  }
  return [make("h2", "Refused"), list];
}

function render(shown) {
  const view = shown.view;
  place("title").textContent = view.title;
  place("name").textContent = view.name;
  place("health").textContent = view.health.word;
  place("health").className = view.health.tone;
  document.title = `${view.health.word} · ${view.title} ${view.name}`;
  renew("rates", shown.rates, buildRates);
  renew("gauges", view.gauges, buildGauges);
  renew("tree", view.tree, buildTree);
  renew("facts", view.facts, buildFacts);
  renew("tables", view.tables, buildTables);
  renew("notices", view.notices, buildNotices);
  place("at").textContent = shown.at.replace("T", " ").replace("+00:00", " UTC");
}

function tell(fault) {
  place("stale").hidden = !fault;
  place("stale").textContent = fault;
  document.querySelector("main").className = fault ? "old" : "";
}

async function refresh() {
  let wait = EVERY_MS;
  if (!document.hidden) {
    try {
      const answer = await fetch("view.json", { cache: "no-store", signal: AbortSignal.timeout(TIMEOUT_MS) });
      if (!answer.ok) throw new Error(`it answers ${answer.status}`);
      render(await answer.json());
      tell("");
    } catch (error) {
      tell(`The server does not answer: what is below is of ${place("at").textContent}`);
      wait = AFTER_FAULT_MS;
    }
  }
  setTimeout(refresh, wait);
}

render(JSON.parse(place("first").textContent));
setTimeout(refresh, EVERY_MS);
