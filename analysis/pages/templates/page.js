// The page as a whole: theme, what is printed, what the address asks for.

function isDark() {
  const set = document.documentElement.dataset.theme;
  return set ? set === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function showTheme(chosen) {
  if (chosen) document.documentElement.dataset.theme = chosen;
  const button = document.getElementById("theme");
  button.setAttribute("aria-pressed", String(isDark()));
  window.redrawChart?.();
}

function keptTheme(chosen) {
  try {
    if (chosen) localStorage.setItem("theme", chosen);
    return localStorage.getItem("theme");
  } catch {
    return chosen; // a browser may refuse storage to a file
  }
}

document.getElementById("theme").addEventListener("click", () => {
  const chosen = isDark() ? "light" : "dark";
  keptTheme(chosen);
  showTheme(chosen);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => showTheme());
showTheme(keptTheme());

// On paper everything is open and nothing is left out by a filter.
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details")) details.open = true;
  for (const input of document.querySelectorAll("[data-filters]")) setFilter(input, "");
});

function begin() {
  window.exploreRows?.();
  goToRows(query());
}
if (!document.querySelector("[data-page]")) {
  begin();
  addEventListener("hashchange", () => goToRows(query()));
}
