
"use strict";
const at = (id) => document.getElementById(id);
const numbers = new Intl.NumberFormat("en");
const count = (value) => numbers.format(value);
const percent = (share, digits = 1) => `${(share * 100).toFixed(digits)}%`;
const clock = (epoch, seconds) => new Date(epoch * 1000).toLocaleTimeString([], {
  hour: "2-digit", minute: "2-digit", hourCycle: "h23", ...(seconds && { second: "2-digit" }),
});
const secret = new URLSearchParams(location.search).get("token");

function address(path, parameters = {}) {
  const query = new URLSearchParams(secret === null ? parameters : { ...parameters, token: secret });
  return query.size ? `${path}?${query}` : path;
}

/* All text goes through here, as text: what a query, a document or a model says is never markup. */
function made(name, attributes = {}, ...children) {
  const [space, tag] = name.startsWith("svg:")
    ? ["http://www.w3.org/2000/svg", name.slice(4)] : ["http://www.w3.org/1999/xhtml", name];
  const element = document.createElementNS(space, tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children.map((child) => (child instanceof Node ? child : String(child))));
  return element;
}

function duration(seconds) {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

function rate(value) {
  return value >= 100 ? count(Math.round(value)) : value.toFixed(1);
}

const KINDS = { starting: "quiet", ranking: "good", writing: "good", publishing: "good",
  reporting: "good", stopping: "warn" };
const ENDS = { 0: ["complete", "good"], 3: ["rejected by a gate", "bad"],
  75: ["stopped, resumable", "warn"] };

function stateOf(now) {
  if (now.exit_code !== null) return ENDS[now.exit_code] ?? ["failed", "bad"];
  return now.waits === null ? [now.state, KINDS[now.state]] : ["waiting", "warn"];
}

let spoken = "";
function say(text) {
  if (text !== spoken) at("spoken").textContent = spoken = text;
}

function showHead(now) {
  const [word, kind] = stateOf(now);
  at("input").textContent = now.input;
  at("about").textContent =
    [now.model ?? "no model yet", now.run && `run ${now.run}`, `to ${now.output}`]
      .filter(Boolean).join(" · ");
  at("state").textContent = word;
  at("state").dataset.kind = kind;
  const share = now.share_done;
  document.title = `${share === null ? "" : `${percent(share, 0)} · `}${now.input} · batchrank`;
  at("share").replaceChildren(...(share === null ? ["–"]
    : [(share * 100).toFixed(share < 1 ? 1 : 0), made("small", {}, "%")]));
  at("fill").style.width = percent(share ?? 0);
  at("forecast").style.width = percent(now.share_by_deadline ?? 0);
  if (share !== null) at("rail").setAttribute("aria-valuenow", Math.round(share * 100));
  at("rail").setAttribute("aria-valuetext", now.told);
  const times = [["Finished", now.told], ["So far", duration(now.seconds)]];
  if (now.seconds_left !== null && now.exit_code === null) {
    times.push(["Left", duration(now.seconds_left)]);
  }
  if (now.deadline !== null) {
    const share = now.share_by_deadline;
    times.push([`By ${clock(now.deadline)}`, share === null ? "not known yet" : percent(share, 0)]);
  }
  at("times").replaceChildren(...times.map(([name, value]) =>
    made("div", {}, made("dt", {}, name), made("dd", {}, value))));
  const why = now.exit_code === null ? now.waits ?? now.step : now.reasons.join("; ");
  at("notice").hidden = !why;
  at("notice").textContent = why ?? "";
  at("notice").dataset.kind = kind;
  const tenth = share === null ? "" : `, ${Math.floor(share * 10) * 10}% finished`;
  say(`${word}${tenth}`);
  at("foot").textContent = `batchrank ${now.version} · process ${now.process} · ` +
    `store ${now.store}, ${(now.store_bytes / 1e6).toFixed(1)} MB · ${clock(now.written, true)}`;
}

function sparkline(values) {
  const most = Math.max(...values);
  const points = values.map((value, index) =>
    `${(index / (values.length - 1)) * 100},${38 - (value / most) * 34}`);
  return made("svg:svg", { viewBox: "0 0 100 40", preserveAspectRatio: "none", role: "img",
    "aria-label": `Calls a second since the beginning, at most ${rate(most)}` },
    made("svg:polyline", { class: "spark", points: points.join(" ") }));
}

function tile(name, value, note, ...more) {
  return made("div", { class: "tile" }, made("span", {}, name), made("strong", {}, value),
    made("em", {}, note), ...more);
}

function showTiles(now) {
  const { rates, windows } = now;
  const all = windows.ok + windows.repaired + windows.fallback + windows.error;
  const bad = windows.fallback + windows.error + windows.thin;
  const gate = now.gates.find((one) => one.name === "max_fallback");
  const spark = now.trace.length > 2 && Math.max(...now.trace) > 0 ? [sparkline(now.trace)] : [];
  at("tiles").replaceChildren(
    tile("Calls a second", rate(rates.calls),
      `${count(now.calls)} so far, ${count(now.calls_saved)} saved`, ...spark),
    tile("Queries a minute", rate(rates.queries * 60), `${count(now.open)} open`),
    tile("Tokens a second", count(Math.round(rates.prompt_tokens)),
      `${rate(rates.completion_tokens)} generated`),
    tile("In flight", count(now.in_flight), `of ${count(now.capacity)} that may be`),
    tile("Fallback rate", all ? percent(bad / all) : "–",
      gate ? `${percent(gate.limit)} allowed` : `${count(now.retries)} retries`),
  );
}

function showWindows(now) {
  const parts = ["ok", "repaired", "fallback", "error"].map((name) => [name, now.windows[name]]);
  const all = parts.reduce((sum, [, value]) => sum + value, 0);
  at("stack").setAttribute("aria-label", all
    ? parts.map(([name, value]) => `${count(value)} ${name}`).join(", ") : "no windows yet");
  at("stack").replaceChildren(...parts.filter(([, value]) => value).map(([name, value]) => {
    const part = made("i", { class: name });
    part.style.flex = value;
    return part;
  }));
  at("legend").replaceChildren(...parts.map(([name, value]) =>
    made("li", {}, made("i", { class: name }), `${count(value)} ${name}`)));
  at("gates").replaceChildren(...now.gates.map((gate) => {
    const [word, kind] = gate.passed === null ? ["not known yet", "quiet"]
      : gate.passed ? ["passed", "good"] : ["not passed", "bad"];
    const figures = [gate.value === null ? "" : percent(gate.value),
      gate.limit === null ? "" : `limit ${percent(gate.limit)}`].filter(Boolean).join(", ");
    return made("li", {}, made("span", {}, gate.name, figures && made("span", { class: "quiet" },
      `  ${figures}`)), made("b", { "data-kind": kind }, word));
  }));
}

function showLatency(now) {
  const bounds = now.latency_bounds;
  const counts = Array(bounds.length + 1).fill(0);
  for (const one of now.endpoints) one.latencies.forEach((value, place) => counts[place] += value);
  const all = counts.reduce((sum, value) => sum + value, 0);
  const holder = at("latency");
  const names = [...bounds.map((bound) => `${bound}`), "more"];
  if (!all) {
    holder.setAttribute("aria-label", "no calls yet");
    holder.replaceChildren(made("p", { class: "quiet" }, "No calls yet."));
    return;
  }
  let first = counts.findIndex(Boolean), last = counts.findLastIndex(Boolean);
  while (last - first < 5) {
    if (first > 0) first -= 1;
    if (last < counts.length - 1) last += 1;
  }
  const most = Math.max(...counts), width = Math.max(holder.clientWidth, 240);
  const step = width / (last - first + 1);
  const drawing = made("svg:svg", { viewBox: `0 0 ${width} 148`, "aria-hidden": "true" });
  for (let place = first; place <= last; place += 1) {
    const height = counts[place] ? Math.max(1.5, (counts[place] / most) * 104) : 0;
    const left = (place - first) * step, middle = left + step / 2;
    drawing.append(
      made("svg:rect", { class: "bar-fill", x: left + 3, y: 126 - height, width: step - 6, height, rx: 1.5 }),
      made("svg:text", { x: middle, y: 142, "text-anchor": "middle" },
        place < bounds.length ? `≤${names[place]}` : names[place]));
    if (counts[place]) {
      drawing.append(made("svg:text", { x: middle, y: 121 - height, "text-anchor": "middle" },
        counts[place] / all >= 0.005 ? percent(counts[place] / all, 0) : count(counts[place])));
    }
  }
  drawing.append(made("svg:line", { class: "base", x1: 0, x2: width, y1: 126.5, y2: 126.5 }));
  holder.setAttribute("aria-label", counts.map((value, place) => value &&
    `${count(value)} calls ${place < bounds.length ? `up to ${names[place]}` : "of more"} seconds`)
    .filter(Boolean).join(", "));
  holder.replaceChildren(drawing);
}

const HEALTH = { well: "good", resting: "warn", lost: "bad" };

function showServers(now) {
  const rows = now.endpoints.map((one) => {
    const number = (name, value) => made("td", { class: "n", "data-name": name }, value);
    return made("tr", {}, made("td", {}, one.url),
      made("td", {}, made("span", { class: "health", "data-kind": HEALTH[one.health] }, one.health)),
      number("in flight", `${count(one.in_flight)} of ${count(one.limit)}`),
      number("calls/s", one.rate.toFixed(1)),
      number("answered", count(one.answered)), number("failed", count(one.failed)),
      number("mean", one.answered ? duration(one.seconds / one.answered) : "–"));
  });
  at("servers").replaceChildren(...(rows.length ? rows
    : [made("tr", {}, made("td", { colspan: 7, class: "quiet" }, "None is asked yet."))]));
}

function moves(query) {
  const deepest = Math.max(query.candidates, query.top.length, 2);
  const place = (rank, most) => 3 + ((rank - 1) / (most - 1)) * 34;
  const drawing = made("svg:svg", { viewBox: "0 0 88 40", role: "img", "aria-label": "The best were " +
    query.top.map((move) => `${move.was}`).join(", ") });
  query.top.forEach((move, index) => {
    const kind = move.was > query.top.length ? "new" : move.was > index + 1 ? "up" : "down";
    const depth = move.was > query.top.length
      ? 37 : place(move.was, Math.max(query.top.length, 2));
    drawing.append(made("svg:line", { class: kind, x1: 2, x2: 86, y1: depth,
      y2: place(index + 1, Math.max(query.top.length, 2)) }));
  });
  drawing.append(made("svg:title", {}, `places before, the best first: ${
    query.top.map((move) => move.was).join(", ")} (of ${deepest})`));
  return drawing;
}

const STATUS = { ok: "good", repaired: "good", degraded: "warn", failed: "bad", unranked: "quiet" };
const rows = new Map();
const order = { key: "at", falls: true };
let recent = [];

/* Rows are kept from one snapshot to the next, so that the one in focus stays there. */
function showRecent(queries) {
  recent = queries;
  const before = (one, other) => {
    const [a, b] = [one[order.key], other[order.key]];
    return (a < b ? -1 : a > b ? 1 : other.at - one.at) * (order.falls ? -1 : 1);
  };
  const keys = new Set();
  const sorted = [...queries].sort(before).map((query) => {
    const key = `${query.at} ${query.qid}`;
    keys.add(key);
    if (!rows.has(key)) {
      const opener = made("button", { type: "button" }, made("b", {}, query.qid || "no qid"),
        made("span", {}, query.query));
      opener.addEventListener("click", () => open(query));
      rows.set(key, made("tr", {}, made("td", {}, opener),
        made("td", {}, made("span", { "data-kind": STATUS[query.status] }, query.status)),
        made("td", { class: "n" }, duration(query.seconds)),
        made("td", { class: "n" }, query.risen),
        made("td", {}, moves(query)), made("td", { class: "n" }, clock(query.at, true))));
    }
    return rows.get(key);
  });
  for (const key of rows.keys()) if (!keys.has(key)) rows.delete(key);
  const body = at("recent");
  const same = sorted.length === body.children.length &&
    sorted.every((row, index) => row === body.children[index]);
  if (!same) {
    const focused = document.activeElement;
    body.replaceChildren(...sorted);
    if (body.contains(focused)) focused.focus({ preventScroll: true });
  }
  at("none").hidden = sorted.length > 0;
}

for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => {
    const { key } = button.dataset;
    order.falls = order.key === key ? !order.falls : key !== "qid" && key !== "status";
    order.key = key;
    for (const head of document.querySelectorAll(".queries th")) head.removeAttribute("aria-sort");
    button.parentElement.setAttribute("aria-sort", order.falls ? "descending" : "ascending");
    showRecent(recent);
  });
}

function ranks(docids, was) {
  return made("ol", { class: "ranks" }, ...docids.map((docid, index) => {
    const rose = was && was[index] - (index + 1);
    const note = !was ? [] : [made("small", rose > 0 ? { class: "rose" } : {}, `was ${was[index]}`)];
    return made("li", {}, made("code", {}, docid), ...note);
  }));
}

function asked(one, number) {
  const { window: win, permutation } = one;
  const was = permutation.order.map((docid) => win.shown.indexOf(docid) + 1);
  const notes = permutation.notes.length ? ` (${permutation.notes.join(", ")})` : "";
  const said = one.answer === null ? one.fault ?? "no answer" : one.answer.text;
  return made("section", { class: "window" },
    made("h3", {}, `Window ${number}, round ${one.round + 1}: ${permutation.status}${notes}`),
    made("pre", { "aria-label": "What the model said", tabindex: "0" }, said),
    made("div", { class: "sides" },
      made("div", {}, made("h4", {}, "As the prompt showed them"), ranks(win.shown)),
      made("div", {}, made("h4", {}, "As the answer puts them"), ranks(permutation.order, was))));
}

async function open(query) {
  at("detail-title").textContent = query.query || query.qid;
  at("detail-about").textContent = `${query.qid} · ${query.status} · ${query.windows} windows`;
  at("detail-body").replaceChildren(made("p", { class: "quiet" }, "Reading the store…"));
  at("detail").showModal();
  const parts = [];
  try {
    const response = await fetch(address("query", { qid: query.qid }));
    if (!response.ok) throw new Error(await response.text());
    for (const found of await response.json()) {
      const top = found.ranking.slice(0, 10);
      parts.push(made("h3", {}, `Line ${found.line}: the best ${top.length} of the ranking`),
        ranks(top.map((one) => one.docid), top.map((one) => one.first_stage_rank)));
      if (found.error) parts.push(made("pre", {}, `${found.error.kind}: ${found.error.message}`));
      found.asked.forEach((one, index) => parts.push(asked(one, index + 1)));
    }
  } catch (error) {
    parts.push(made("p", {}, `Its windows can't be shown: ${error.message}`),
      made("p", { class: "quiet" }, `batchrank inspect ${query.qid} shows them, also later.`));
  }
  at("detail-body").replaceChildren(...parts);
}
at("close").addEventListener("click", () => at("detail").close());
at("detail").addEventListener("click", (event) => {
  if (event.target === at("detail")) at("detail").close();
});

const source = new EventSource(address("events"));
source.addEventListener("message", (event) => {
  const now = JSON.parse(event.data);
  showHead(now);
  showTiles(now);
  showWindows(now);
  showLatency(now);
  showServers(now);
  showRecent(now.recent);
});
source.addEventListener("end", () => source.close());
source.addEventListener("error", () => {
  at("state").textContent = "no connection";
  at("state").dataset.kind = "bad";
  say("no connection to the run; trying again");
});
