// The one file: a run's page is unpacked when the address asks for it.

const packed = new Map(
  [...document.querySelectorAll("[data-page]")].map((e) => [e.dataset.page, e]));
const main = document.getElementById("main");
const indexPage = main.innerHTML;
let shownPage = "";
let libraryReady = null;

async function unpacked(element) {
  const bytes = Uint8Array.from(atob(element.textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

async function loadLibrary() {
  for (const element of document.querySelectorAll("[data-library]")) {
    const script = document.createElement("script");
    script.textContent = await unpacked(element);
    document.head.append(script);
  }
}

async function route() {
  const asked = query();
  // #claims and the like are places of the page that is shown
  if (location.hash && !asked.has("page") && !asked.has("row")) return;
  if (!asked.has("row") || asked.has("page")) {
    const name = packed.has(asked.get("page")) ? asked.get("page") : "";
    if (name !== shownPage) {
      shownPage = name;
      if (name) await (libraryReady ??= loadLibrary());
      main.innerHTML = name ? await unpacked(packed.get(name)) : indexPage;
      window.exploreRows?.();
      scrollTo(0, 0);
      main.focus({ preventScroll: true });
    }
  }
  goToRows(asked);
}
addEventListener("hashchange", route);
route();
