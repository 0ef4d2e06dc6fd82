/* A chart of one quantity over simulated time: the present run in colour, earlier runs pale.
   A series is {points: [[time, value], …], dash: number}. Arrow keys read values. */
class Curve {
  constructor(title, unit) {
    this.title = title;
    this.unit = unit;
    this.runs = [];
    this.figure = element("figure", { class: "chart" });
    this.heading = element("h3", {}, title);
    this.key = element("p", { class: "small" });
    const frame = element("div", { class: "frame" });
    this.yaxis = svgElement("svg", { class: "yaxis", width: "66", height: "150", "aria-hidden": "true" });
    this.plot = element("div", { class: "plot", role: "slider", tabindex: "0", "aria-label": "Values of: " + title, "aria-valuemin": "0", "aria-valuemax": "1000", "aria-valuenow": "0", "aria-valuetext": "No run yet" });
    this.svg = svgElement("svg", { viewBox: "0 0 1000 150", height: "150", preserveAspectRatio: "none", "aria-hidden": "true" });
    this.grid = svgElement("g", { class: "grid" });
    this.lines = svgElement("g", {});
    this.svg.append(this.grid, this.lines);
    this.cursor = element("div", { class: "cursor" });
    this.cursor.hidden = true;
    this.plot.append(this.svg, this.cursor);
    this.xaxis = svgElement("svg", { class: "xaxis", height: "22", "aria-hidden": "true" });
    frame.append(this.yaxis, this.plot, this.xaxis);
    this.figure.append(this.heading, this.key, frame);
    this.share = 0;
    this.plot.addEventListener("pointermove", (event) => {
      const box = this.plot.getBoundingClientRect();
      this.read((event.clientX - box.left) / box.width);
    });
    this.plot.addEventListener("pointerleave", () => this.leave());
    this.plot.addEventListener("blur", () => this.leave());
    this.plot.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -0.01, ArrowRight: 0.01, Home: -2, End: 2 }[event.key];
      if (event.key === "Escape") this.leave();
      if (!by) return;
      event.preventDefault();
      this.read(this.share + by);
    });
  }

  /* Draws runs: [{name, css, series: […]}, …], the present run last; `end` is the end of the x axis
     in s. */
  draw(runs, end) {
    this.runs = runs;
    this.end = end || 1;
    let top = 0;
    for (const run of runs) for (const one of run.series) for (const [, value] of one.points) if (value > top) top = value;
    const step = niceStep(top || 1, 4);
    this.top = Math.max(step, Math.ceil(top / step - 1e-9) * step);
    const paths = [];
    for (const run of runs) {
      for (const one of run.series) {
        if (one.points.length) paths.push(svgElement("path", { class: "line " + run.css + (one.dash ? " dash" : ""), d: this.path(one.points) }));
      }
    }
    this.lines.replaceChildren(...paths);
    this.axes(step);
  }

  path(points) {
    const x = 1000 / this.end;
    const y = 150 / this.top;
    let text = "";
    for (const [time, value] of points) text += (text ? "L" : "M") + (time * x).toFixed(1) + " " + (150 - value * y).toFixed(1);
    return text;
  }

  axes(step) {
    const labels = [];
    const across = [];
    for (let n = 0; n * step <= this.top * 1.0001; n += 1) {
      const y = 150 - (150 * n * step) / this.top;
      labels.push(svgElement("text", { x: "60", y: Math.max(9, y + 4) }, write(this.unit, n * step)));
      across.push(svgElement("path", { d: "M0 " + y + "h1000" }));
    }
    this.yaxis.replaceChildren(...labels);
    this.grid.replaceChildren(...across);
    const width = this.plot.clientWidth || 400;
    const along = timeStep(this.end, Math.max(2, Math.floor(width / 90)));
    const times = [];
    for (let n = 0; n * along <= this.end * 1.0001; n += 1) {
      const share = (n * along) / this.end;
      const last = share > 0.93;
      times.push(svgElement("text", { x: 100 * share + "%", y: "15", class: last ? "end" : "" }, clock(n * along, this.end, along)));
    }
    this.xaxis.replaceChildren(...times);
  }

  read(share) {
    if (!this.runs.length) return;
    this.share = Math.max(0, Math.min(1, share));
    const time = this.share * this.end;
    const head = clock(time, this.end, this.end / 1000);
    const lines = [];
    for (const run of [...this.runs].reverse()) {
      for (const one of run.series) {
        const value = valueBefore(one.points, time);
        if (value !== null) lines.push([run.name + (one.name ? ", " + one.name : ""), write(this.unit, value)]);
      }
    }
    this.cursor.hidden = false;
    this.cursor.style.left = 100 * this.share + "%";
    this.plot.setAttribute("aria-valuenow", String(Math.round(1000 * this.share)));
    this.plot.setAttribute("aria-valuetext", head + ": " + lines.map((line) => line.join(" ")).join("; "));
    tip.replaceChildren(element("b", {}, head));
    for (const [name, text] of lines.slice(0, 12)) {
      const line = element("span", {});
      line.append(element("i", {}, name), element("em", {}, text));
      tip.append(line);
    }
    tip.hidden = false;
    const box = this.plot.getBoundingClientRect();
    const across = box.left + this.share * box.width;
    const room = document.documentElement.clientWidth;
    const left = across + 14 + tip.offsetWidth < room ? across + 14 : Math.max(4, across - 14 - tip.offsetWidth);
    tip.style.left = left + window.scrollX + "px";
    tip.style.top = box.top + window.scrollY + 8 + "px";
  }

  leave() {
    this.cursor.hidden = true;
    tip.hidden = true;
  }
}

/* Value of the last point at or before a time; null before the first one. */
function valueBefore(points, time) {
  let low = 0;
  let high = points.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (points[middle][0] <= time * 1.000001) low = middle + 1;
    else high = middle;
  }
  return low ? points[low - 1][1] : null;
}
