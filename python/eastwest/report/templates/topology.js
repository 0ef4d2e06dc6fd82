/* The drawing of the fabric at any time: colours links, marks drops, lists the busiest links. */
class Fabric {
  constructor(figure, data) {
    this.figure = figure;
    this.data = data;
    this.edges = new Edges(figure);
    this.rows = figure.querySelector(".now tbody");
    this.when = figure.querySelector(".now .when");
    this.slider = figure.querySelector('input[type="range"]');
    this.whole = figure.querySelector('input[type="checkbox"]');
    this.output = figure.querySelector("output");
    this.button = figure.querySelector(".play");
    if (data.cells) this.animate();
    this.edges.markLosses((e) => data.lost[e]);
  }

  animate() {
    this.cells = bytesOf(this.data.cells);
    this.drops = new Map();
    for (const [edge, bin, count] of this.data.drops) this.drops.set(edge * this.data.columns + bin, count);
    this.figure.querySelector(".player").hidden = false;
    this.slider.value = this.data.first;
    this.slider.addEventListener("input", () => {
      this.stop();
      this.show(false);
    });
    this.whole.addEventListener("change", () => {
      this.stop();
      this.show(this.whole.checked);
    });
    this.button.addEventListener("click", () => (this.timer ? this.stop() : this.play()));
    window.addEventListener("eastwest-time", (event) => {
      this.stop();
      this.slider.value = Math.floor(event.detail / this.data.step);
      this.show(false);
    });
    this.show(false);
  }

  play() {
    if (Number(this.slider.value) >= this.data.columns - 1) this.slider.value = 0;
    this.button.textContent = "Pause";
    this.button.setAttribute("aria-pressed", "true");
    this.timer = setInterval(() => {
      const next = Number(this.slider.value) + 1;
      this.slider.value = next;
      this.show(false);
      if (next >= this.data.columns - 1) this.stop();
    }, 120);
    this.show(false);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = 0;
    this.button.textContent = "Play";
    this.button.setAttribute("aria-pressed", "false");
  }

  /* Shows the whole run, or the interval that the slider is at. */
  show(whole) {
    const { step, columns, end, names } = this.data;
    const bin = Number(this.slider.value);
    this.whole.checked = whole;
    const from = clock(bin * step, end, step / 10);
    const when = whole ? "over the whole run" : from + " – " + clock((bin + 1) * step, end, step / 10);
    const used = (e) => {
      if (whole) return this.data.whole[e];
      const root = this.cells[e * columns + bin] / 255;
      return Number((root * root).toPrecision(2));
    };
    const lost = (e) => (whole ? this.data.lost[e] : this.drops.get(e * columns + bin) || 0);
    this.edges.paint(used, (e) => names[e] + ": used " + write("percent", used(e)) + ", " + write("count", lost(e)) + " drops");
    this.edges.markLosses(lost);
    this.list(used, lost);
    this.when.textContent = when;
    this.output.textContent = whole ? "Whole run" : when;
    this.slider.setAttribute("aria-valuetext", when);
  }

  list(used, lost) {
    const order = this.edges.all.map((_, e) => e).filter((e) => used(e) > 0 || lost(e));
    order.sort((a, b) => used(b) - used(a) || lost(b) - lost(a) || a - b);
    const most = this.rows.children.length;
    this.most = Math.max(this.most || 0, most, 8);
    const rows = order.slice(0, this.most).map((e) => {
      const row = element("tr", {});
      const name = element("th", { scope: "row", class: "text" }, this.data.names[e]);
      const bar = svgElement("svg", { class: "bar", viewBox: "0 0 100 3", preserveAspectRatio: "none", "aria-hidden": "true" });
      bar.append(svgElement("path", { d: "M0 0h" + 100 * used(e) + "v3H0z" }));
      name.append(bar);
      row.append(name, element("td", {}, write("percent", used(e))), element("td", {}, write("count", lost(e))));
      return row;
    });
    if (!rows.length) {
      const row = element("tr", {});
      row.append(element("td", { class: "text", colspan: "3" }, "All links are idle."));
      rows.push(row);
    }
    this.rows.replaceChildren(...rows);
  }
}

function setUpFabric(data) {
  const figure = document.getElementById("topology");
  if (figure && data) new Fabric(figure, data);
}
