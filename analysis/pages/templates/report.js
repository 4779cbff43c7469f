"use strict";
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

// A CSV by RFC 4180, as pandas writes it
function parseCsv(text) {
  const rows = [];
  let row = [], cell = "", quoted = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (quoted) {
      if (c === '"' && text[i + 1] === '"') { cell += '"'; i++; }
      else if (c === '"') quoted = false;
      else cell += c;
    } else if (c === '"') quoted = true;
    else if (c === ",") { row.push(cell); cell = ""; }
    else if (c === "\n") { row.push(cell); rows.push(row); row = []; cell = ""; }
    else cell += c;
  }
  if (cell !== "" || row.length) { row.push(cell); rows.push(row); }
  return rows;
}

function showRows(figure) {
  const place = figure.querySelector(".rows");
  place.hidden = !place.hidden;
  figure.querySelector(".picture").setAttribute("aria-expanded", String(!place.hidden));
  if (place.firstChild) return;
  const [header, ...rows] = parseCsv(JSON.parse(figure.querySelector("script").textContent));
  const scroll = document.createElement("div");
  scroll.className = "scroll";
  const table = document.createElement("table");
  const head = table.createTHead().insertRow();
  for (const name of header) {
    const heading = document.createElement("th");
    const button = document.createElement("button");
    button.textContent = name;
    heading.append(button);
    head.append(heading);
  }
  const body = table.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    for (const cell of row) line.insertCell().textContent = cell;
  }
  scroll.append(table);
  place.append(scroll);
}

document.addEventListener("click", (event) => {
  const heading = event.target.closest("th");
  if (heading) sortBy(heading);
  const picture = event.target.closest(".picture");
  if (picture) showRows(picture.closest("figure"));
  const csv = event.target.closest("a.csv");
  if (csv && !csv.href.startsWith("blob:")) {
    const text = JSON.parse(csv.closest("figure").querySelector("script").textContent);
    csv.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  }
});
