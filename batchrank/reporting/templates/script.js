
"use strict";
/* The page is whole without this: it only puts rows in another order and hides some. */
function made(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function compared(one, other) {
  const [a, b] = [one.replaceAll(",", ""), other.replaceAll(",", "")].map(Number);
  return Number.isNaN(a) || Number.isNaN(b)
    ? one.localeCompare(other, undefined, { numeric: true }) : a - b;
}

for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  [...table.tHead.rows[0].cells].forEach((head, place) => {
    const button = made("button", { type: "button" }, head.textContent);
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const falls = head.getAttribute("aria-sort") === "ascending";
      for (const one of table.tHead.rows[0].cells) one.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", falls ? "descending" : "ascending");
      const rows = [...body.rows].sort((one, other) => (falls ? -1 : 1) *
        compared(one.cells[place].textContent.trim(), other.cells[place].textContent.trim()));
      body.replaceChildren(...rows);
    });
  });
}

const list = document.getElementById("list");
if (list) {
  const items = [...list.children];
  const number = (item, key) => (item.dataset[key] === "" ? null : Number(item.dataset[key]));
  const orders = [
    ["as found", () => 0],
    ["most helped", (a, b) => number(b, "change") - number(a, "change"), "change"],
    ["most hurt", (a, b) => number(a, "change") - number(b, "change"), "change"],
    ["moved most", (a, b) => number(b, "fresh") - number(a, "fresh") || number(a, "tau") - number(b, "tau")],
    ["query", (a, b) => a.dataset.qid.localeCompare(b.dataset.qid, undefined, { numeric: true })],
  ].filter(([, , key]) => !key || items.some((item) => item.dataset[key] !== ""));
  const reasons = [...new Set(items.flatMap((item) => item.dataset.why.split("|")))];
  const sort = made("select", { id: "sort" },
    ...orders.map(([name], place) => made("option", { value: place }, name)));
  const why = made("select", { id: "why" }, made("option", { value: "" }, "any"),
    ...reasons.map((name) => made("option", { value: name }, name)));
  const words = made("input", { id: "words", type: "search", autocomplete: "off" });
  const told = made("span", { role: "status", class: "hidden" });
  document.getElementById("controls").append(
    made("label", { for: "words" }, "Find "), words,
    made("label", { for: "why" }, "Why "), why,
    made("label", { for: "sort" }, "Order "), sort, told);

  const show = () => {
    const [, compare, key] = orders[Number(sort.value)];
    const wanted = words.value.trim().toLocaleLowerCase();
    const last = (item) => (key && item.dataset[key] === "" ? 1 : 0);
    list.replaceChildren(...[...items].sort((a, b) => last(a) - last(b) || compare(a, b)));
    for (const item of items) {
      const text = item.querySelector(".what").textContent.toLocaleLowerCase();
      item.hidden = !text.includes(wanted) ||
        (why.value !== "" && !item.dataset.why.split("|").includes(why.value));
    }
    const shown = items.filter((item) => !item.hidden).length;
    document.getElementById("none").hidden = shown > 0;
    told.textContent = `${shown} of ${items.length} queries`;
  };
  list.addEventListener("keydown", (event) => {
    const opened = event.target.closest("details[open]");
    if (event.key !== "Escape" || !opened) return;
    opened.open = false;
    opened.querySelector("summary").focus();
  });
  for (const control of [words, why, sort]) control.addEventListener("input", show);
}
