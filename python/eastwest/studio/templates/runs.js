/* The runs of this session: their figures in a table, two of them side by side, and exports. */
const SHADES_OF_RUNS = 6;

class Runs {
  constructor(select) {
    this.all = [];
    this.select = select;
    this.present = null;
    this.checked = new Set();
    this.table = document.getElementById("runs-table");
    this.side = document.getElementById("side");
    this.compareButton = document.getElementById("compare");
    this.differenceButton = document.getElementById("difference");
    this.compareButton.addEventListener("click", () => this.compare());
    this.differenceButton.addEventListener("click", () => window.dispatchEvent(new CustomEvent("studio-difference", { detail: [...this.checked].sort((a, b) => a - b) })));
    this.show();
  }

  find(id) {
    return this.all.find((run) => run.id === id);
  }

  add(run) {
    run.number = run.id;
    run.css = "s" + (run.number % SHADES_OF_RUNS);
    this.all.push(run);
    // The server keeps the newest twelve results.
    while (this.all.length > 12) this.checked.delete(this.all.shift().id);
    this.present = run;
    this.show();
  }

  /* Figures that at least one run has, in the order of the first run that has them. */
  columns() {
    const names = [];
    const label = this.present ? this.present.label : null;
    for (const run of this.all) for (const [key, , , title] of run.label === label ? run.figures || [] : []) if (!names.some(([name]) => name === key)) names.push([key, title || key]);
    return names.slice(0, 8);
  }

  anyGoals() {
    return this.all.some((run) => (run.goals || []).length);
  }

  show() {
    const columns = this.columns();
    const head = element("tr", {});
    for (const text of ["", "run", "seed", "set by sliders", ...columns.map(([, title]) => title), ...(this.anyGoals() ? ["goals"] : []), "state"]) head.append(element("th", { scope: "col", class: ["run", "set by sliders", "goals"].includes(text) ? "text" : "" }, text));
    this.table.querySelector("thead").replaceChildren(head);
    const rows = [...this.all].reverse().map((run) => this.row(run, columns));
    this.table.querySelector("tbody").replaceChildren(...rows);
    this.compareButton.disabled = this.differenceButton.disabled = this.checked.size !== 2;
  }

  row(run, columns) {
    const row = element("tr", run === this.present ? { class: "present" } : {});
    const box = element("input", { type: "checkbox", "aria-label": "Compare run " + run.number });
    box.dataset.run = run.id;
    box.checked = this.checked.has(run.id);
    box.disabled = run.state !== "done";
    box.addEventListener("change", () => this.check(run.id, box.checked));
    const first = element("td", {});
    first.append(box);
    const name = element("th", { scope: "row", class: "text" });
    const button = element("button", { type: "button", class: "as-link", "aria-pressed": String(run === this.present) });
    button.append(element("span", { class: "swatch " + run.css, "aria-hidden": "true" }), run.label + " " + run.number);
    button.addEventListener("click", () => {
      this.present = run;
      this.show();
      this.select(run);
    });
    name.append(button);
    row.append(first, name, element("td", {}, run.seedShown === undefined ? "" : String(run.seedShown)), element("td", { class: "text" }, run.set.map((pair) => pair.join(" = ")).join("; ") || "–"));
    const values = new Map((run.figures || []).map(([key, , text]) => [key, text]));
    for (const [key] of columns) row.append(element("td", {}, values.get(key) || DASH));
    if (this.anyGoals()) {
      const goals = element("td", { class: "text" });
      for (const goal of run.goals || []) if (goal.met !== null && goal.met !== undefined) goals.append(element("div", { class: goal.met ? "good" : "bad" }, (goal.met ? "✓ " : "✗ ") + String(goal.goal).split(".").slice(-2).join(".") + (goal.met ? " met" : " missed")));
      row.append(goals);
    }
    row.append(element("td", {}, run.state));
    return row;
  }

  check(id, on) {
    if (on) this.checked.add(id);
    else this.checked.delete(id);
    while (this.checked.size > 2) this.checked.delete(this.checked.values().next().value);
    for (const box of this.table.querySelectorAll("input")) box.checked = this.checked.has(Number(box.dataset.run));
    this.compareButton.disabled = this.differenceButton.disabled = this.checked.size !== 2;
    this.side.hidden = true;
  }

  /* Shows the figures of the two checked runs side by side, with their ratio. */
  compare() {
    const [first, second] = [...this.checked].map((id) => this.find(id)).sort((a, b) => a.number - b.number);
    if (!first || !second) return;
    const table = element("table", {});
    const head = element("tr", {});
    for (const text of ["", "run " + first.number, "run " + second.number, "change"]) head.append(element("th", { scope: "col" }, text));
    const body = element("tbody", {});
    const settings = [...new Set([...first.set, ...second.set].map(([path]) => path))];
    const valueOf = (run, path) => (run.set.find(([each]) => each === path) || [path, "as in the scenario"])[1];
    for (const path of settings) body.append(line(path, valueOf(first, path), valueOf(second, path), ""));
    if (first.text !== second.text) body.append(line("text of the scenario", "", "changed", ""));
    const others = new Map((second.figures || []).map(([key, value, text]) => [key, [value, text]]));
    for (const [key, value, text, title] of first.figures || []) {
      const [other, otherText] = others.get(key) || [null, DASH];
      if (other === value && !(first.goals || []).some((goal) => goal.goal === key)) continue;
      const change = value && other !== null ? (other >= value ? "+" : "−") + digits(Math.abs((100 * (other - value)) / value)) + " %" : "";
      body.append(line(title || key, text, otherText, change));
    }
    if (!body.children.length) body.append(line("all figures are equal", "", "", ""));
    const top = element("thead", {});
    top.append(head);
    table.append(top, body);
    const more = element("button", { type: "button" }, "Open the full comparison");
    more.addEventListener("click", () => openPage("Comparison", "/api/compare?runs=" + first.id + "," + second.id));
    this.side.replaceChildren(element("h3", {}, "Run " + first.number + " and run " + second.number), table, more);
    this.side.hidden = false;
    this.side.scrollIntoView({ block: "nearest" });
  }
}

/* A goal of the scenario, and whether a run meets it. */
function goalLine(tag, goal) {
  return element(tag, { class: goal.met === false ? "bad" : goal.met ? "good" : "" }, (goal.met === false ? "✗ " : goal.met ? "✓ " : "") + goal.text);
}

function line(name, ...values) {
  const row = element("tr", {});
  row.append(element("th", { scope: "row", class: "text" }, name), ...values.map((value) => element("td", {}, value)));
  return row;
}

/* Shows a page of the server in a frame that cannot reach this page. */
async function openPage(title, path) {
  const dialog = document.getElementById("pages");
  document.getElementById("pages-title").textContent = title;
  document.getElementById("page").src = addressOf(path);
  dialog.showModal();
}

/* Copy of a drawing with the colours that it has on the page, as text of an SVG file. */
function svgText(svg, caption) {
  const copy = svg.cloneNode(true);
  const originals = [svg, ...svg.querySelectorAll("*")];
  const copies = [copy, ...copy.querySelectorAll("*")];
  originals.forEach((one, n) => {
    const style = getComputedStyle(one);
    for (const name of ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "opacity", "font-size", "font-family", "text-anchor", "paint-order", "vector-effect"]) {
      copies[n].style.setProperty(name, style.getPropertyValue(name));
    }
  });
  copy.setAttribute("xmlns", SVG);
  if (caption) {
    const [x, y, width, height] = copy.getAttribute("viewBox").split(" ").map(Number);
    copy.setAttribute("viewBox", [x, y, width, height + 26].join(" "));
    copy.append(svgElement("text", { x: x + 8, y: y + height + 17, "font-size": "13", "font-family": "sans-serif", fill: "gray" }, caption));
  }
  const box = svg.getBoundingClientRect();
  copy.setAttribute("width", Math.round(box.width));
  copy.setAttribute("height", Math.round(box.height));
  copy.style.background = getComputedStyle(document.documentElement).getPropertyValue("--card") && getComputedStyle(document.body).backgroundColor;
  return new XMLSerializer().serializeToString(copy);
}

function download(name, data, type) {
  const address = URL.createObjectURL(new Blob([data], { type }));
  const link = element("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

/* Writes an SVG text as PNG at twice its size. */
function downloadPng(name, text) {
  const picture = new Image();
  const address = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  picture.onload = () => {
    const canvas = element("canvas", { width: 2 * picture.width, height: 2 * picture.height });
    canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
    URL.revokeObjectURL(address);
    canvas.toBlob((blob) => download(name, blob, "image/png"));
  };
  picture.src = address;
}

/* One SVG with all charts below each other. */
function curvesText(figures) {
  const parts = [];
  let y = 0;
  for (const figure of figures) {
    const plot = figure.querySelector(".plot > svg");
    const box = plot.getBoundingClientRect();
    parts.push('<g transform="translate(0 ' + y + ')"><text x="4" y="14" font-family="sans-serif" font-size="13">' + escaped(figure.querySelector("h3").textContent) + "</text>");
    for (const [css, x, down, width] of [[".yaxis", 0, 24, 66], [".plot > svg", 66, 24, box.width], [".xaxis", 66, 174, box.width]]) {
      const inner = svgText(figure.querySelector(css)).replace(/^<svg /, '<svg x="' + x + '" y="' + down + '" ');
      parts.push(inner.replace(/ width="[^"]*"/, ' width="' + Math.round(width) + '"'));
    }
    parts.push("</g>");
    y += 206;
  }
  const width = Math.round(66 + figures[0].querySelector(".plot > svg").getBoundingClientRect().width + 20);
  return '<svg xmlns="' + SVG + '" width="' + width + '" height="' + y + '">' + parts.join("") + "</svg>";
}

function escaped(text) {
  return text.replace(/[&<>"']/g, (sign) => "&#" + sign.charCodeAt(0) + ";");
}
