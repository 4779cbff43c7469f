"use strict";
// Tables: sorted by a click on a heading, filtered by words, and rows that links name.

// "3,440× [3,400, 3,500]", "2×10⁴", "0.119 ms": the number that a cell begins with; NaN without one
function leading(text) {
  const digits = "⁰¹²³⁴⁵⁶⁷⁸⁹";
  const power = text.match(/^(?:([\d.]+)×)?10([⁰¹²³⁴⁵⁶⁷⁸⁹]+)/);
  if (power) {
    const exponent = [...power[2]].map((digit) => digits.indexOf(digit)).join("");
    return Number(power[1] || 1) * 10 ** Number(exponent);
  }
  return parseFloat(text.replace(/,/g, ""));
}

function sortBy(heading) {
  const table = heading.closest("table");
  const column = [...heading.parentNode.children].indexOf(heading);
  const descending = heading.getAttribute("aria-sort") === "ascending";
  for (const other of heading.parentNode.children) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
  const body = table.tBodies[0];
  const keyed = [...body.rows].map((row) => {
    const text = row.cells[column].textContent.trim();
    return { row, text, number: leading(text) };
  });
  const numeric = keyed.every((k) => k.text === "" || k.text === "–" || !Number.isNaN(k.number));
  keyed.sort((a, b) => {
    // what has no value stays last either way
    if ((a.text === "") !== (b.text === "")) return a.text === "" ? 1 : -1;
    const order = numeric ? (a.number || 0) - (b.number || 0) : a.text.localeCompare(b.text);
    return descending ? -order : order;
  });
  body.append(...keyed.map((k) => k.row));
}

// Leaves of the rows or list items below `root` those that have every word; `name=value` is a word
// that a row's data-at must have whole.
function filterItems(root, asked) {
  const words = asked.toLowerCase().split(/\s+/).filter(Boolean);
  const items = [...root.querySelectorAll("tbody tr, li")];
  let shown = 0;
  for (const item of items) {
    const at = ` ${(item.dataset.at || "").toLowerCase()} `;
    // the heading above a table says what its rows are about
    const above = item.closest(".scroll")?.getAttribute("aria-label") || "";
    const text = `${item.textContent} ${above}`.toLowerCase();
    const has = (word) =>
      word.includes("=") && at.trim() ? at.includes(` ${word} `) : text.includes(word);
    item.hidden = !words.every(has);
    shown += item.hidden ? 0 : 1;
  }
  const count = document.querySelector(`[data-count="${root.id}"]`);
  count.textContent = words.length ? `${shown} of ${items.length}` : "";
}

// #row=17, or #version=…&n=…&k=…: marks that row, or leaves those rows
function goToRows(query) {
  const input = document.querySelector('[data-filters="row-list"]');
  if (!input) return;
  const row = query.get("row") && document.getElementById(`row=${query.get("row")}`);
  for (const found of document.querySelectorAll("tr.found")) found.classList.remove("found");
  if (row) {
    if (row.hidden) setFilter(input, "");
    row.classList.add("found");
    row.scrollIntoView({ block: "center" });
    return;
  }
  const words = [...query].filter(([name]) => name !== "page" && name !== "row");
  if (!words.length) return;
  setFilter(input, words.map(([name, value]) => `${name}=${value}`).join(" "));
  document.getElementById("rows").scrollIntoView();
}

function setFilter(input, text) {
  input.value = text;
  filterItems(document.getElementById(input.dataset.filters), text);
}

function query() {
  return new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
}

document.addEventListener("click", (event) => {
  const heading = event.target.closest("th");
  if (heading) sortBy(heading);
});
document.addEventListener("input", (event) => {
  const id = event.target.dataset.filters;
  if (id) filterItems(document.getElementById(id), event.target.value);
});
