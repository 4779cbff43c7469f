// The chart of a run's page: rows chosen by quantity, axis, problem and version, drawn with Bokeh.

const QUANTITIES = [
  ["ms", "ms per iteration"], ["speedup", "speedup"], ["floor", "times the physical floor"],
  ["noise", "± % of the median's 95% interval"],
];
const PROBLEM = ["n", "k", "dim", "precision", "data"];
const IN_WORDS = { n: "N", k: "K", dim: "dim" };
const inWords = (name) => IN_WORDS[name] || name.replaceAll("_", " ");

window.exploreRows = function () {
  const section = document.getElementById("explore");
  window.redrawChart = null;
  if (!section || !window.Bokeh) return;
  const { columns, looks, axes, baseline } =
    JSON.parse(document.getElementById("chart-rows").textContent);
  const size = columns.row.length;
  const rows = Array.from({ length: size }, (_, i) =>
    Object.fromEntries(Object.entries(columns).map(([name, of]) => [name, of[i]])));
  const known = (value) => value !== null && value !== undefined;
  const values = (name) =>
    [...new Set(rows.map((row) => row[name]))].filter(known)
      .sort((a, b) => (typeof a === "number" ? a - b : String(a).localeCompare(b)));
  const varying = [...PROBLEM, ...axes].filter((name) => columns[name] && values(name).length > 1);
  const chosen = new Set(Object.keys(looks).filter((version) => columns.version.includes(version)));

  const controls = section.querySelector(".controls");
  function select(label, options) {
    const element = document.createElement("select");
    for (const [value, words] of options) element.add(new Option(words, value));
    const around = document.createElement("label");
    around.append(label, element);
    controls.append(around);
    element.addEventListener("change", draw);
    return element;
  }
  const quantity = select("Show", QUANTITIES.filter(([name]) => columns[name])
    .map(([name, words]) => [name, name === "speedup" ? `speedup over ${baseline}` : words]));
  if (columns.speedup) quantity.value = "speedup";
  const numeric = varying.filter((name) => typeof values(name)[0] === "number");
  const against = select("against",
    [...numeric.map((name) => [name, inWords(name)]), ["version", "version"]]);
  // For each other property of the problem, one value or all. At first the one with the most rows.
  const fixed = new Map();
  for (const name of varying) {
    const options = values(name).map((value, place) => [String(place), grouped(value)]);
    const all = axes.includes(name) ? "the fastest" : "all";
    const element = select(inWords(name), [["", all], ...options]);
    const counts = values(name).map((value) => rows.filter((row) => row[name] === value).length);
    const most = counts.lastIndexOf(Math.max(...counts));
    element.value = PROBLEM.includes(name) && name !== "precision" ? String(most) : "";
    fixed.set(name, element);
  }

  const list = section.querySelector(".versions");
  for (const [words, on] of [["All", true], ["None", false]]) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = words;
    button.addEventListener("click", () => {
      for (const box of list.querySelectorAll("input")) {
        box.checked = on;
        on ? chosen.add(box.value) : chosen.delete(box.value);
      }
      draw();
    });
    list.append(button);
  }
  for (const version of [...chosen]) {
    const label = document.createElement("label");
    const box = document.createElement("input");
    Object.assign(box, { type: "checkbox", value: version, checked: true });
    box.addEventListener("change", () => {
      box.checked ? chosen.add(version) : chosen.delete(version);
      draw();
    });
    const swatch = document.createElement("span");
    swatch.className = "swatch";
    swatch.style.background = `var(--${looks[version].colour})`;
    label.append(box, swatch, version);
    list.append(label);
  }

  // a colour of the page as Bokeh understands it
  function colour(name) {
    const probe = document.createElement("span");
    probe.style.color = `var(--${name})`;
    section.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  }

  // The rows to draw: those of the chosen versions and values. Where a tunable is left open, the
  // fastest row is drawn.
  function shownRows(x) {
    const open = varying.filter((name) => name !== x && fixed.get(name).value === "");
    const kept = rows.filter((row) => chosen.has(row.version) && row[quantity.value] !== null
      && row[quantity.value] > 0 && row[x] !== null
      && varying.every((name) => name === x || fixed.get(name).value === ""
        || row[name] === null || row[name] === values(name)[Number(fixed.get(name).value)]));
    const best = new Map();
    for (const row of kept) {
      const problem = open.filter((name) => PROBLEM.includes(name));
      const line = [row.version, ...problem.map((name) => row[name])];
      const key = JSON.stringify([...line, row[x]]);
      if (!best.has(key) || row.ms < best.get(key).ms)
        best.set(key, { ...row, line: JSON.stringify(line) });
    }
    return [...best.values()];
  }

  function draw() {
    const x = against.value;
    for (const [name, element] of fixed) element.parentNode.hidden = name === x;
    const shown = shownRows(x);
    const y = quantity.value;
    const versions = x === "version" ? [...new Set(shown.map((row) => row.version))] : null;
    const figure = Bokeh.Plotting.figure({
      height: versions ? Math.max(220, 90 + 26 * versions.length) : 420,
      sizing_mode: "stretch_width",
      tools: "pan,box_zoom,reset,save",
      background_fill_color: colour("ground"),
      border_fill_color: colour("ground"),
      outline_line_color: colour("faint"),
      x_axis_type: "log",
      ...(versions
        ? { y_range: new Bokeh.FactorRange({ factors: [...versions].reverse() }) }
        : { y_axis_type: "log" }),
    });
    figure.toolbar.logo = null;
    const quantityWords = quantity.selectedOptions[0].textContent;
    figure.xaxis.axis_label = versions ? quantityWords : inWords(x);
    figure.yaxis.axis_label = versions ? "" : quantityWords;
    for (const axis of [figure.xaxis, figure.yaxis]) {
      for (const text of ["axis_label", "major_label"]) axis[`${text}_text_color`] = colour("ink");
      axis.axis_label_text_font_style = "normal";
      for (const line of ["axis", "major_tick", "minor_tick"])
        axis[`${line}_line_color`] = colour("grey");
    }
    // ticks at the values of the rows; 1, 2 and 5 of each power of ten where it is a measure
    const measure = versions ? "x" : "y";
    const ticked = [[measure, steps(shown.map((row) => row[y]))]];
    const isShown = (value) => shown.some((row) => row[x] === value);
    if (!versions) ticked.push(["x", values(x).filter(isShown)]);
    for (const [way, at] of ticked) {
      const axis = figure[`${way}axis`];
      const ticker = new Bokeh.FixedTicker({ ticks: at });
      axis.ticker = ticker;
      axis.major_label_overrides = new Map(at.map((value) => [value, short(value)]));
      figure[`${way}grid`].ticker = ticker;
    }
    for (const grid of [figure.xgrid, figure.ygrid]) grid.grid_line_color = colour("faint");
    const marks = [];
    for (const line of new Set(shown.map((row) => row.line))) {
      const of = shown.filter((row) => row.line === line).sort((a, b) => a[x] - b[x]);
      const look = looks[of[0].version];
      const ink = colour(look.colour);
      const data = { told: of.map(told), row: of.map((row) => row.row) };
      data.fill = of.map((row) => (row.noisy ? 0 : 1));
      data.along = of.map((row) => (versions ? row.version : row[x]));
      data.value = of.map((row) => row[y]);
      data.low = of.map((row) => row[`${y}_low`] ?? row[y]);
      data.high = of.map((row) => row[`${y}_high`] ?? row[y]);
      const source = new Bokeh.ColumnDataSource({ data });
      const [at, value, low, high] = ["along", "value", "low", "high"].map((field) => ({ field }));
      if (versions) figure.segment(low, at, high, at, { source, color: ink });
      else {
        figure.line(at, value, { source, color: ink, line_dash: look.line, line_width: 1.5 });
        figure.segment(at, low, at, high, { source, color: ink });
      }
      const mark = { marker: look.mark, size: 9, line_color: ink, fill_color: ink };
      marks.push(figure.scatter(versions ? value : at, versions ? at : value,
        { source, ...mark, fill_alpha: { field: "fill" } }));
      source.selected.change.connect(() => {
        const [index] = source.selected.indices;
        if (index !== undefined) goToRows(new URLSearchParams({ row: data.row[index] }));
      });
    }
    const tooltips = "<div style='max-width:20rem'>@told</div>";
    figure.add_tools(
      new Bokeh.HoverTool({ renderers: marks, tooltips }),
      new Bokeh.TapTool({ renderers: marks }),
    );
    const place = document.getElementById("chart");
    const count = new Set(shown.map((row) => row.version)).size;
    const says = shown.length
      ? `${shown.length} rows of ${count} versions: ${quantityWords} against ${inWords(x)}.`
      : "No row has what was chosen.";
    document.getElementById("chart-says").textContent = says;
    place.setAttribute("aria-label", says);
    chart = chart.then((old) => {
      old?.remove();
      place.replaceChildren();
      return shown.length ? Bokeh.Plotting.show(figure, place) : null;
    });
  }

  // A number with commas between its thousands. Leaves text alone.
  function grouped(value) {
    return typeof value === "number" ? value.toLocaleString("en") : value;
  }

  function digits(value, most) {
    return value.toLocaleString("en", { maximumSignificantDigits: most });
  }

  // A count for the little space of an axis: 2×10⁴, 1,200.
  function short(value) {
    const power = String(value).length - 1;
    const lead = value / 10 ** power;
    if (power < 4 || !Number.isInteger(lead)) return digits(value, 8);
    const raised = [...String(power)].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("");
    return (lead === 1 ? "" : `${lead}×`) + `10${raised}`;
  }

  // 1, 2 and 5 times the powers of ten around positive numbers. Many decades get only the powers.
  function steps(numbers) {
    const first = Math.floor(Math.log10(Math.min(...numbers)));
    const last = Math.ceil(Math.log10(Math.max(...numbers)));
    const leads = last - first > 3 ? [1] : [1, 2, 5];
    const at = [];
    for (let power = first; power <= last; power++)
      for (const lead of leads) at.push(Number(`${lead}e${power}`));
    return at;
  }

  // a row in words, for the tooltip
  function told(row) {
    const number = (value) => (known(value) ? digits(Number(value.toPrecision(3)), 3) : "–");
    const interval = (name) => {
      const [low, high] = [row[`${name}_low`], row[`${name}_high`]];
      return number(row[name]) + (low ? ` [${number(low)}, ${number(high)}]` : "");
    };
    const where = [...PROBLEM, ...axes].filter((name) => known(row[name]))
      .map((name) => `${inWords(name)} ${grouped(row[name])}`);
    const says = [row.version, where.join(", "), `${interval("ms")} ms per iteration`];
    if (row.speedup) says.push(`${interval("speedup")}× over ${row.over ?? baseline}`);
    if (row.floor) says.push(`${number(row.floor)}× the floor`);
    says.push(`${row.samples} samples${row.noisy ? ", noisy" : ""}`);
    return says.join("; ");
  }

  let chart = Promise.resolve(null);
  section.hidden = false;
  window.redrawChart = draw;
  draw();
};
