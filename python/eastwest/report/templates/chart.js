/* This script adds to the drawn charts: reading values with mouse and keyboard, zooming all
   pictures over time together, and switching series off. Names from results only ever go into
   textContent. */
const WIDTH = 1000000;
const tip = document.getElementById("tip");
const zoomBar = document.getElementById("zoomed");
const timeCharts = [];
let timeWindow = null;

function spread(scale, value) {
  if (scale.kind === "log") return Math.log10(Math.max(value, 1e-300));
  if (scale.kind === "nines") return -Math.log10(Math.max(1 - value, 1e-12));
  return value;
}

function valueAt(scale, share) {
  const low = spread(scale, scale.low);
  const at = low + share * (spread(scale, scale.high) - low);
  if (scale.kind === "log") return 10 ** at;
  if (scale.kind === "nines") return 1 - 10 ** -at;
  return at;
}

function bytesOf(text) {
  return Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
}

/* Values of a chart at a place: a heading, and lines with a name and a value. */
const READERS = {
  bins(chart, at) {
    const { step, values } = chart.spec;
    const bin = Math.max(0, Math.min(values[0].length - 1, Math.floor(at / step)));
    const head = chart.time(bin * step) + " – " + chart.time((bin + 1) * step);
    return [head, values.map((v, i) => [chart.names[i] || chart.label, write(chart.spec.y.unit, v[bin]), i])];
  },
  curve(chart, at) {
    const head = write(chart.spec.x.unit, at);
    const lines = chart.spec.curves.map(([x, y], i) => {
      let low = 0;
      let high = x.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (x[middle] <= at * 1.000001) low = middle + 1;
        else high = middle;
      }
      const value = low ? y[low - 1] : chart.spec.y.kind === "log" ? y[0] : 0;
      return [chart.names[i] || chart.label, write(chart.spec.y.unit, value), i];
    });
    return [head, lines];
  },
  heat(chart, at, row) {
    const { step, columns, top, names, label } = chart.spec;
    const bin = Math.max(0, Math.min(columns - 1, Math.floor(at / step)));
    const line = Math.max(0, Math.min(names.length - 1, row));
    const byte = chart.cells[line * columns + bin] / 255;
    const value = Number((top * byte * byte).toPrecision(2));
    const head = chart.time(bin * step) + " – " + chart.time((bin + 1) * step);
    return [names[line] + ", " + head, [[label, write(chart.spec.y.unit, value), -1]]];
  },
  bars(chart, at, row) {
    const { names, values } = chart.spec;
    const line = Math.max(0, Math.min(names.length - 1, row));
    return [names[line], chart.names.map((name, i) => [name, write(chart.spec.x.unit, values[line][i]), i])];
  },
  cells(chart, at) {
    const { heads, cells, places } = chart.spec;
    let column = Math.max(0, Math.min(heads.length - 1, Math.floor(at)));
    if (places) column = places.reduce((best, place, i) => (Math.abs(place - at) < Math.abs(places[best] - at) ? i : best), 0);
    return [heads[column], cells[column]];
  },
  /* Points of a scatter: the nearest one; `spots` has their shares of the width and their heights. */
  spots(chart, at, row, y) {
    const { spots, names, cells } = chart.spec;
    const box = chart.plot.getBoundingClientRect();
    const away = ([x, down]) => Math.hypot((x - chart.at) * box.width, y === null ? 0 : down - y);
    const nearest = spots.reduce((best, spot, i) => (away(spot) < away(spots[best]) ? i : best), 0);
    return [names[nearest], cells[nearest]];
  },
  items(chart, at, row, y) {
    let best = null;
    let distance = Infinity;
    for (const item of chart.spec.items) {
      const away = Math.max(item[0] - at, at - item[1], 0) / chart.width() + (y === null ? 0 : Math.max(item[2] - y, y - item[2] - item[3], 0) / 40);
      if (away < distance) [best, distance] = [item, away];
    }
    if (!best || distance > 0.03) return [chart.time(at), []];
    return [best[4], [["submitted", chart.time(best[0]), -1], ["finished", chart.time(best[1]), -1]]];
  },
};

class Chart {
  constructor(figure, spec) {
    this.figure = figure;
    this.spec = spec;
    this.plot = figure.querySelector(".plot");
    this.svg = this.plot.querySelector("svg");
    this.height = Number(this.svg.getAttribute("height"));
    this.timed = this.plot.hasAttribute("data-time");
    this.names = [...figure.querySelectorAll(".legend li span")].map((s) => s.textContent);
    this.title = figure.querySelector("h3").textContent;
    const label = figure.querySelector(".ylabel");
    this.label = label ? label.textContent : "";
    this.hidden = new Set();
    this.from = spec.x.low;
    this.to = spec.x.high;
    this.at = null;
    this.row = 0;
    if (spec.type === "heat") this.cells = bytesOf(spec.cells);
    this.legend();
    if (spec.type in READERS) this.reading();
    if (this.timed) timeCharts.push(this);
  }

  width() {
    return this.to - this.from;
  }

  time(seconds) {
    return clock(seconds, this.spec.x.high, Math.max(this.width() / 1000, (this.spec.step || 0) / 100));
  }

  legend() {
    if (this.names.length < 2 || this.spec.type === "items") return;
    for (const item of this.figure.querySelectorAll(".legend li")) {
      const series = Number(item.dataset.series);
      const button = element("button", { type: "button", "aria-pressed": "true" });
      button.append(...item.childNodes);
      item.append(button);
      button.addEventListener("click", () => {
        const gone = !this.hidden.delete(series);
        if (gone) this.hidden.add(series);
        button.setAttribute("aria-pressed", String(!gone));
        for (const path of this.svg.querySelectorAll('[data-series="' + series + '"]')) path.classList.toggle("gone", gone);
      });
    }
  }

  /* The plot becomes a slider along its x axis; its text has the values at the cursor. */
  reading() {
    const plot = this.plot;
    this.svg.setAttribute("aria-hidden", "true");
    this.svg.removeAttribute("role");
    const most = this.spec.row ? ". Up and down change the row" : "";
    for (const [name, value] of Object.entries({
      role: "slider", tabindex: "0", "aria-label": "Values of: " + this.title + most,
      "aria-valuemin": "0", "aria-valuemax": "1000", "aria-valuenow": "0", "aria-valuetext": "Arrow keys read values",
    })) plot.setAttribute(name, value);
    this.cursor = element("div", { class: "cursor" });
    this.cursor.hidden = true;
    plot.append(this.cursor);
    plot.addEventListener("keydown", (event) => this.key(event));
    plot.addEventListener("blur", () => this.leave());
    plot.addEventListener("focus", () => { if (plot.matches(":focus-visible")) this.show(this.at === null ? 0 : this.at, null); });
    plot.addEventListener("pointermove", (event) => this.point(event));
    plot.addEventListener("pointerleave", () => { if (!this.start) this.leave(); });
    if (!this.timed) return;
    plot.addEventListener("pointerdown", (event) => this.press(event));
    plot.addEventListener("pointerup", (event) => this.release(event));
    plot.addEventListener("pointercancel", () => this.drop());
    plot.addEventListener("dblclick", () => zoom(null));
  }

  /* Share of the visible width at a pointer. */
  share(event) {
    const box = this.plot.getBoundingClientRect();
    return Math.max(0, Math.min(1, (event.clientX - box.left) / box.width));
  }

  point(event) {
    const share = this.share(event);
    const box = this.plot.getBoundingClientRect();
    if (this.start !== undefined && this.start !== null && Math.abs(share - this.start) * box.width > 4) {
      if (!this.brush) this.plot.append((this.brush = element("div", { class: "brush" })));
      this.brush.style.left = 100 * Math.min(share, this.start) + "%";
      this.brush.style.width = 100 * Math.abs(share - this.start) + "%";
    }
    this.show(share, event.clientY - box.top);
  }

  press(event) {
    if (event.button || event.pointerType === "touch") return;
    this.start = this.share(event);
    this.plot.setPointerCapture(event.pointerId);
  }

  release(event) {
    const from = this.start;
    const dragged = this.brush;
    this.drop();
    if (!dragged) return this.pick(this.share(event));
    const ends = [from, this.share(event)].sort((a, b) => a - b).map((s) => this.from + s * this.width());
    zoom(ends);
  }

  /* Shows the drawing of the fabric at a time of the heat map of its links. */
  pick(share) {
    if (this.figure.id !== "link-heat") return;
    window.dispatchEvent(new CustomEvent("eastwest-time", { detail: this.from + share * this.width() }));
  }

  drop() {
    this.start = null;
    if (this.brush) this.brush.remove();
    this.brush = null;
  }

  leave() {
    this.cursor.hidden = true;
    tip.hidden = true;
  }

  show(share, y) {
    this.at = share;
    if (y !== null && this.spec.row) this.row = Math.floor(y / this.spec.row);
    const whole = this.timed ? (this.from + share * this.width()) / (this.spec.x.high || 1) : share;
    const value = this.timed ? this.from + share * this.width() : valueAt(this.spec.x, whole);
    const [head, lines] = READERS[this.spec.type](this, value, this.row, y);
    const shown = lines.filter(([, , series]) => !this.hidden.has(series));
    this.cursor.hidden = false;
    this.cursor.style.left = 100 * share + "%";
    this.plot.setAttribute("aria-valuenow", String(Math.round(1000 * share)));
    this.plot.setAttribute("aria-valuetext", head + ": " + shown.map(([name, text]) => name + " " + text).join(", "));
    tip.replaceChildren(element("b", {}, head));
    for (const [name, text] of shown) {
      const line = element("span", {});
      line.append(element("i", {}, name), element("em", {}, text));
      tip.append(line);
    }
    this.place(share, y);
  }

  place(share, y) {
    tip.hidden = false;
    const box = this.plot.getBoundingClientRect();
    const across = box.left + share * box.width;
    const room = document.documentElement.clientWidth;
    const left = across + 14 + tip.offsetWidth < room ? across + 14 : Math.max(4, across - 14 - tip.offsetWidth);
    const row = this.spec.row ? (this.row + 1) * this.spec.row : 8;
    tip.style.left = left + window.scrollX + "px";
    tip.style.top = box.top + window.scrollY + (y === null ? row : Math.max(0, y - tip.offsetHeight - 12)) + "px";
  }

  key(event) {
    const now = this.at === null ? 0 : this.at;
    const small = this.spec.step ? this.spec.step / this.width() : 0.005;
    const step = Math.max(small, 0.004) * (event.shiftKey ? 10 : 1);
    const moves = { ArrowLeft: now - step, ArrowRight: now + step, PageUp: now + 0.1, PageDown: now - 0.1, Home: 0, End: 1 };
    if (this.spec.row && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
      const last = this.spec.names.length - 1;
      this.row = Math.max(0, Math.min(last, this.row + (event.key === "ArrowUp" ? -1 : 1)));
      this.show(now, null);
    } else if (event.key in moves) {
      this.show(Math.max(0, Math.min(1, moves[event.key])), null);
    } else if (this.timed && (event.key === "+" || event.key === "=" || event.key === "-")) {
      const at = this.from + now * this.width();
      const wide = this.width() * (event.key === "-" ? 2 : 0.5);
      zoom([at - now * wide, at + (1 - now) * wide]);
      this.show(now, null);
    } else if (event.key === "Enter") {
      this.pick(now);
    } else if (event.key === "Escape") {
      zoom(null);
      this.leave();
    } else return;
    event.preventDefault();
  }

  /* Shows a part of the axis: a change of the view box, and new labels. */
  window(from, to) {
    const { low, high } = this.spec.x;
    [this.from, this.to] = [from, to];
    const scale = WIDTH / (high - low || 1);
    const left = (from - low) * scale;
    const width = (to - from) * scale;
    this.svg.setAttribute("viewBox", [left, 0, width, this.height].join(" "));
    const most = Math.max(2, Math.min(8, Math.floor(this.plot.clientWidth / 105)));
    const step = timeStep(to - from, most);
    const labels = [];
    const lines = [];
    for (let n = Math.ceil(from / step - 1e-9); n * step <= to + 1e-9 * step; n += 1) {
      const label = document.createElementNS(SVG, "text");
      label.setAttribute("x", (100 * (n * step - from)) / (to - from) + "%");
      label.setAttribute("y", "15");
      label.textContent = clock(n * step, high, step);
      labels.push(label);
      const line = document.createElementNS(SVG, "path");
      line.setAttribute("d", "M" + Math.round((n * step - low) * scale) + " 0v" + this.height);
      lines.push(line);
    }
    this.figure.querySelector(".xaxis .labels").replaceChildren(...labels);
    this.svg.querySelector(".across").replaceChildren(...lines);
  }
}

/* Zooms all charts over time to [from, to] in seconds, or shows everything again. */
function zoom(ends) {
  if (!timeCharts.length) return;
  const { low, high } = timeCharts[0].spec.x;
  let [from, to] = ends || [low, high];
  const least = (high - low) / 2000;
  if (to - from < least) [from, to] = [(from + to - least) / 2, (from + to + least) / 2];
  if (from < low) [from, to] = [low, Math.min(high, to + low - from)];
  if (to > high) [from, to] = [Math.max(low, from - to + high), high];
  timeWindow = to - from < (high - low) * 0.999 ? [from, to] : null;
  for (const chart of timeCharts) chart.window(from, to);
  zoomBar.hidden = !timeWindow;
  const step = (to - from) / 100;
  zoomBar.firstElementChild.textContent = clock(from, high, step) + " – " + clock(to, high, step);
}

function setUpCharts(specs) {
  for (const [name, spec] of Object.entries(specs)) {
    const figure = document.getElementById(name);
    if (figure) new Chart(figure, spec);
  }
  zoomBar.querySelector("button").addEventListener("click", () => zoom(null));
  let later = 0;
  const fit = () => {
    for (const chart of timeCharts) chart.window(chart.from, chart.to);
  };
  window.addEventListener("resize", () => {
    clearTimeout(later);
    later = setTimeout(fit, 120);
  });
  fit();
}
