"""The report in headless Chromium: at phone and desktop width, in the dark, on paper."""

import pytest
from browser import Browser, browser_here
from recorded_runs import recorded_run

from analysis.model.load import load_run

WIDTHS = (390, 1280)
PAPER = 718
"""CSS pixels between the margins of an A4 page as the browser prints it."""

pytestmark = pytest.mark.skipif(
    browser_here() is None, reason="no Chromium here (Debian: apt-get install chromium)"
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.fixture(params=WIDTHS, ids=lambda width: f"{width}px")
def width(request):
    return request.param


K1000 = load_run(recorded_run("k1000")).measurements
POINTS, VERSIONS, SIZES = (K1000[column].nunique() for column in ("point", "version", "n"))


@pytest.fixture
def run_page(browser, report, width):
    return browser.page((report / "k1000" / "index.html").as_uri(), width)


# What reaches over the right edge of the window, but for the boxes that scroll
WIDE = """[...document.querySelectorAll("body *")]
  .filter((e) => !e.closest(".scroll *, .picture *, #chart *, .skip") && e.checkVisibility())
  .filter((e) => e.getBoundingClientRect().right > innerWidth + 1)
  .map((e) => e.tagName + " " + e.textContent.slice(0, 40))"""
SHOWN = "[...document.querySelectorAll('#%s tbody tr, #%s li')].filter((e) => !e.hidden).length"


@pytest.mark.parametrize("page", ["index.html", "k1000/index.html", "odd/index.html"])
def test_a_page_fits_the_window_and_says_nothing_on_the_console(browser, report, width, page):
    shown = browser.page((report / page).as_uri(), width)
    shown.evaluate("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    assert shown.evaluate(WIDE) == []
    assert shown.faults() == []


TYPE = """((field, text) => {
  const input = document.querySelector(`[data-filters="${field}"]`);
  input.value = text;
  input.dispatchEvent(new Event("input", { bubbles: true }));
})("%s", "%s")"""


def type_into(page, field, text):
    """Filters the list `field`; the number of items that are left."""
    page.evaluate(TYPE % (field, text))
    return page.evaluate(SHOWN % (field, field))


def test_filters_leave_what_has_every_word(browser, report, run_page, width):
    index = browser.page((report / "index.html").as_uri(), width)
    assert type_into(index, "run-list", "") == 3
    assert type_into(index, "run-list", "K1000 ladder") == 1
    assert (
        index.evaluate("document.querySelector('[data-count=\"run-list\"]').textContent")
        == "1 of 3"
    )
    assert type_into(index, "run-list", "nothing has this") == 0
    assert 0 < type_into(index, "claim-list", "holds") < type_into(index, "claim-list", "luigi")
    assert type_into(run_page, "row-list", "") == POINTS
    assert type_into(run_page, "row-list", "luigi_v1 n=10000") == 4
    assert type_into(run_page, "row-list", "n=1000") == 0


def test_a_heading_sorts_by_value(run_page):
    click = "document.querySelector('#row-list th:nth-child(8) button').click()"
    cells = (
        "[...document.querySelectorAll('#row-list td:nth-child(8)')]"
        ".map((e) => leading(e.textContent))"
    )
    run_page.evaluate(click)
    rising = run_page.evaluate(cells)
    assert rising == sorted(rising)
    run_page.evaluate(click)
    assert run_page.evaluate(cells) == sorted(rising, reverse=True)
    told = "['2×10⁴', '3,440× [1, 2]', '0.119 ms', '10⁷'].map(leading)"
    assert run_page.evaluate(told) == [20000, 3440, 0.119, 1e7]


def test_a_link_to_rows_shows_these_rows(browser, report, width):
    address = (report / "k1000" / "index.html").as_uri()
    page = browser.page(f"{address}#version=luigi_v1_fused&n=10000000&k=1000", width)
    assert page.evaluate(SHOWN % ("row-list", "row-list")) == 4
    page = browser.page(f"{address}#row=3", width)
    assert page.evaluate("[...document.querySelectorAll('tr.found')].map((e) => e.id)") == ["row=3"]


# The middle of the mark that the chart has drawn for a row, in the window
MARK = """(() => {
  document.getElementById("chart").scrollIntoView({ block: "center" });
  const [view] = Bokeh.index.roots;
  const { frame } = view;
  const glyph = [...view.model.renderers].filter((r) => r.glyph.type === "Scatter").at(%d);
  const { data } = glyph.data_source;
  const box = view.canvas_view.el.getBoundingClientRect();
  return {
    x: box.left + frame.x_scale.compute(data.along[0]),
    y: box.top + frame.y_scale.compute(data.value[0]),
    row: data.row[0], told: data.told[0],
  };
})()"""
TOOLTIP = """(() => {
  const texts = [];
  const walk = (node) => {
    if (node.shadowRoot) walk(node.shadowRoot);
    if (node.classList?.contains("bk-tooltip-content")) texts.push(node.textContent);
    for (const child of node.children ?? []) walk(child);
  };
  walk(document.body);
  return texts.join();
})()"""
SETTLED = "new Promise((done) => setTimeout(done, 300))"


def test_pointing_at_a_mark_tells_its_row_and_a_click_goes_there(run_page):
    run_page.evaluate(SETTLED)
    mark = run_page.evaluate(MARK % 0)
    run_page.point_at(mark["x"], mark["y"])
    run_page.evaluate(SETTLED)
    said = run_page.evaluate(TOOLTIP)
    assert mark["told"] in said
    row = run_page.evaluate(f"document.getElementById('row={mark['row']}').dataset.at")
    assert said.startswith(row.split()[0].removeprefix("version="))
    run_page.click_at(mark["x"], mark["y"])
    run_page.evaluate(SETTLED)
    found = run_page.evaluate("[...document.querySelectorAll('tr.found')].map((e) => e.id)")
    assert found == [f"row={mark['row']}"]
    assert run_page.faults() == []


def test_choosing_versions_and_axes_redraws_the_chart(run_page):
    says = "document.getElementById('chart-says').textContent"
    assert run_page.evaluate(says) == (
        f"{VERSIONS * SIZES} rows of {VERSIONS} versions: speedup over cpu_sequential against N."
    )
    box = "document.querySelector('.versions input[value=\"luigi_v1_fused\"]').click()"
    run_page.evaluate(box)
    fewer = VERSIONS - 1
    assert run_page.evaluate(says).startswith(f"{fewer * SIZES} rows of {fewer} versions")
    choose = (
        "(() => { const e = document.querySelectorAll('.controls select')[%d]; e.value = '%s';"
        "e.dispatchEvent(new Event('change')); })()"
    )
    run_page.evaluate(choose % (0, "ms"))
    run_page.evaluate(choose % (1, "threads_per_block"))
    assert run_page.evaluate(says).endswith("ms per iteration against threads per block.")
    run_page.evaluate("document.querySelectorAll('.versions button')[1].click()")
    assert run_page.evaluate(says) == "No row has what was chosen."
    assert run_page.faults() == []


# Of each text its contrast with the ground behind it, as WCAG 2 computes it, where it is low
CONTRAST = """(() => {
  const light = (colour) => {
    const [r, g, b] = colour.match(/[\\d.]+/g).map((v) => v / 255).map((v) =>
      v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const found = getComputedStyle(e).backgroundColor;
      if (!/, 0\\)$/.test(found)) return found;
    }
    return "rgb(255, 255, 255)";
  };
  const own = (e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
  return [...document.querySelectorAll("body *")]
    .filter((e) => own(e) && e.checkVisibility() && !e.closest("#chart, script, option, svg"))
    .map((e) => {
      const [a, b] = [light(getComputedStyle(e).color), light(ground(e))].sort((x, y) => y - x);
      return [Math.round(10 * (a + 0.05) / (b + 0.05)) / 10, e.tagName, e.textContent.slice(0, 30)];
    })
    .filter(([ratio]) => ratio < 4.5);
})()"""
INKS = """[...document.querySelectorAll(".picture:not(.paper) svg text")].map((e) =>
  getComputedStyle(e).fill)"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("page", ["index.html", "odd/index.html"])
def test_texts_have_contrast_in_both_themes(browser, report, page, dark):
    shown = browser.page((report / page).as_uri(), 1280, dark=dark)
    assert shown.evaluate("getComputedStyle(document.body).backgroundColor") == (
        "rgb(22, 24, 28)" if dark else "rgb(255, 255, 255)"
    )
    assert shown.evaluate(CONTRAST) == []
    inks = shown.evaluate(INKS)
    assert (("rgb(230, 230, 230)" if dark else "rgb(34, 34, 34)") in inks) == (page != "index.html")


def test_the_button_changes_the_theme(run_page):
    ground = "getComputedStyle(document.body).backgroundColor"
    pressed = "document.getElementById('theme').getAttribute('aria-pressed')"
    assert run_page.evaluate(ground) == "rgb(255, 255, 255)"
    assert run_page.evaluate(pressed) == "false"
    run_page.evaluate("document.getElementById('theme').click()")
    assert run_page.evaluate(ground) == "rgb(22, 24, 28)"
    assert run_page.evaluate(pressed) == "true"
    run_page.evaluate("document.getElementById('theme').click()")
    assert run_page.evaluate(ground) == "rgb(255, 255, 255)"


def test_the_keyboard_reaches_everything_in_order_and_one_sees_where_it_is(run_page):
    """Tab goes to the skip link first, then down the page; Enter on it goes to the content."""
    seen = []
    where = """(() => { const e = document.activeElement; const s = getComputedStyle(e);
      return { text: e.textContent.trim().slice(0, 24), outline: s.outlineStyle + s.outlineWidth,
               top: e.getBoundingClientRect().top + scrollY }; })()"""
    for _ in range(6):
        run_page.press("Tab")
        seen.append(run_page.evaluate(where))
    assert [place["text"] for place in seen[:4]] == [
        *("Skip to the content", "lloydbench report", "Dark theme", "All runs")
    ]
    assert {place["outline"] for place in seen} == {"solid3px"}
    assert [place["top"] for place in seen[2:]] == sorted(place["top"] for place in seen[2:])
    sortable = "[...document.querySelectorAll('th')].every((e) => e.querySelector('button'))"
    assert run_page.evaluate(sortable)
    boxes = "[...document.querySelectorAll('.scroll, .picture')].every((e) => e.tabIndex === 0)"
    assert run_page.evaluate(boxes)


# Tables that a sheet of paper would not show whole
LOST = """[...document.querySelectorAll("table")].filter((table) => {
  const box = getComputedStyle(table.closest(".scroll"));
  const cut = box.overflow !== "visible" || box.maxHeight !== "none";
  const rows = [...table.rows].some((row) => !row.checkVisibility());
  return cut || rows || table.getBoundingClientRect().right > innerWidth + 1;
}).map((table) => table.closest(".scroll").getAttribute("aria-label"))"""


@pytest.mark.parametrize("page", ["index.html", "k1000/index.html", "odd/index.html"])
def test_paper_loses_no_table(browser, report, page):
    shown = browser.page((report / page).as_uri(), PAPER, dark=True)
    for field in ("claim-list", "row-list"):
        if shown.evaluate(f"!!document.getElementById('{field}')"):
            type_into(shown, field, "nothing has this")
    shown.evaluate("dispatchEvent(new Event('beforeprint'))")
    shown.media("print", dark=True)
    assert shown.evaluate("document.querySelectorAll('table').length") > 1
    assert shown.evaluate(LOST) == []
    assert shown.evaluate("getComputedStyle(document.body).color") == "rgb(34, 34, 34)"
    assert shown.pdf().startswith(b"%PDF")


def test_the_one_file_has_every_page(browser, report, single_file, width):
    page = browser.page(single_file.as_uri(), width)
    title = "document.querySelector('h1').textContent"
    assert page.evaluate(title) == "lloydbench report"
    page.evaluate("document.querySelector('a[href*=\"page=k1000&\"]').click()")
    page.evaluate("new Promise((done) => setTimeout(done, 1500))")
    assert page.evaluate(title) == "Speedup with K = 1000"
    assert 0 < page.evaluate(SHOWN % ("row-list", "row-list")) < POINTS
    says = page.evaluate("document.getElementById('chart-says').textContent")
    assert says.startswith(f"{VERSIONS * SIZES} rows")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(WIDE) == []
    page.evaluate("history.back()")
    page.evaluate(SETTLED)
    assert page.evaluate(title) == "lloydbench report"
    assert page.faults() == []
