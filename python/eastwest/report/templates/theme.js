/* Light and dark colours: the button in the head of a page, and what the reader chose last. */
function setUpTheme() {
  const button = document.getElementById("theme");
  const root = document.documentElement;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const kept = () => {
    try {
      return localStorage.getItem("eastwest-theme");
    } catch {
      return null;
    }
  };
  const apply = (theme) => {
    if (theme) root.dataset.theme = theme;
    const now = theme || (dark.matches ? "dark" : "light");
    button.textContent = now === "dark" ? "Light" : "Dark";
    button.setAttribute("aria-label", "Switch to " + (now === "dark" ? "light" : "dark") + " colours");
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    const now = root.dataset.theme || (dark.matches ? "dark" : "light");
    const next = now === "dark" ? "light" : "dark";
    try {
      localStorage.setItem("eastwest-theme", next);
    } catch {
      /* A page from disk may have no storage: then the choice lasts as long as the page. */
    }
    apply(next);
  });
  dark.addEventListener("change", () => apply(root.dataset.theme));
  const first = kept();
  apply(first === "dark" || first === "light" ? first : undefined);
}
