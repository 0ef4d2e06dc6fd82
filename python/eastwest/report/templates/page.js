/* Functions of the whole page: light and dark colours, sorting of tables, copying, and the mark of
   the section that is being read. */
function setUpSorting(table) {
  const heads = [...table.querySelectorAll("thead th")];
  const body = table.querySelector("tbody");
  heads.forEach((head, column) => {
    if (!head.hasAttribute("data-sort")) return;
    const button = element("button", { type: "button" });
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const value = (row) => Number(row.children[column].dataset.value);
      const rows = [...body.rows].sort((a, b) => (down ? value(b) - value(a) : value(a) - value(b)));
      body.append(...rows);
    });
  });
}

function setUpCopying() {
  for (const box of document.querySelectorAll(".copy")) {
    const text = box.querySelector("pre").textContent;
    const button = element("button", { type: "button" }, "Copy");
    button.addEventListener("click", () => {
      const done = () => {
        button.textContent = "Copied";
        setTimeout(() => (button.textContent = "Copy"), 1500);
      };
      if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, () => select(box));
      else select(box);
    });
    box.append(button);
  }
}

function select(box) {
  const range = document.createRange();
  range.selectNodeContents(box.querySelector("pre"));
  const selection = window.getSelection();
  selection.removeAllRanges();
  selection.addRange(range);
}

/* Marks the section that is being read in the bar at the top. */
function setUpSections() {
  const links = new Map();
  for (const link of document.querySelectorAll(".sections a")) links.set(link.hash.slice(1), link);
  const sections = [...links.keys()].map((id) => document.getElementById(id)).filter(Boolean);
  const mark = () => {
    let here = sections[0];
    for (const section of sections) if (section.getBoundingClientRect().top < window.innerHeight * 0.3) here = section;
    const bottom = window.innerHeight + window.scrollY >= document.documentElement.scrollHeight - 4;
    if (bottom && window.scrollY > 0) here = sections[sections.length - 1];
    for (const [id, link] of links) {
      if (here && id === here.id) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  };
  let waiting = false;
  window.addEventListener("scroll", () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      mark();
    });
  }, { passive: true });
  mark();
}

const pageData = JSON.parse(document.getElementById("data").textContent);
setUpTheme();
setUpCharts(pageData.charts);
setUpFabric(pageData.topology);
for (const table of document.querySelectorAll(".sortable")) setUpSorting(table);
setUpCopying();
setUpSections();
for (const hint of document.querySelectorAll("[data-script]")) hint.hidden = false;
