/* The drawing of the fabric during a run and afterwards: load or queue of each line, drops, marks,
   pauses, and the way of one packet. */
class LiveFabric {
  constructor(chosen) {
    this.figure = document.getElementById("drawing");
    this.links = document.getElementById("link");
    this.now = document.getElementById("link-now");
    this.chosen = null;
    this.fabric = null;
    this.onChosen = chosen;
    window.addEventListener("studio-end", (event) => {
      if (this.nodes) this.nodes.forEach((node, n) => node.classList.toggle("chosen", n === event.detail));
    });
    this.links.addEventListener("change", () => this.choose(this.links.value === "" ? null : Number(this.links.value)));
  }

  /* Shows another fabric; the SVG comes from the server, which escapes all names. */
  set(fabric) {
    const same = this.fabric && fabric && this.fabric.svg === fabric.svg;
    this.fabric = fabric;
    if (same) return;
    this.chosen = null;
    this.svg = this.way = null;
    this.figure.replaceChildren();
    this.links.replaceChildren(element("option", { value: "" }, "the longest queue of all"));
    if (!fabric) return;
    const parsed = new DOMParser().parseFromString(fabric.svg, "image/svg+xml").documentElement;
    if (parsed.nodeName !== "svg") return;
    this.figure.append(document.importNode(parsed, true));
    this.svg = this.figure.querySelector("svg");
    this.edges = new Edges(this.figure);
    this.marks = svgElement("g", { class: "queues" });
    this.way = svgElement("g", { class: "way" });
    this.figure.querySelector(".losses").before(this.marks);
    this.svg.append(this.way);
    fabric.edges.forEach((edge, e) => this.links.append(element("option", { value: e }, edge.name)));
    // A line is thin: a wide transparent one above it takes the clicks, and shows its tooltip.
    this.hits = this.edges.all.map((line, e) => {
      const hit = svgElement("path", { class: "hit", d: line.getAttribute("d") });
      hit.append(svgElement("title", {}, fabric.edges[e].name));
      hit.addEventListener("click", () => this.choose(e));
      hit.addEventListener("pointerenter", () => line.classList.add("near"));
      hit.addEventListener("pointerleave", () => line.classList.remove("near"));
      return hit;
    });
    this.figure.querySelector(".nodes").before(...this.hits);
    this.nodes = [...this.figure.querySelectorAll(".nodes > g")];
    [...this.figure.querySelectorAll(".nodes > g")].forEach((node, n) => {
      node.addEventListener("click", () => window.dispatchEvent(new CustomEvent("studio-node", { detail: n })));
    });
  }

  choose(e) {
    this.chosen = e;
    this.links.value = e === null ? "" : String(e);
    this.edges.all.forEach((line, n) => line.classList.toggle("chosen", n === e));
    this.onChosen(e);
  }

  /* Numbers of the links of the chosen line; null: all links. */
  get chosenLinks() {
    return this.chosen === null || !this.fabric ? null : this.fabric.edges[this.chosen].links;
  }

  get chosenName() {
    return this.chosen === null || !this.fabric ? "the longest queue of all" : this.fabric.edges[this.chosen].name;
  }

  /* Shows a frame of a run; `largest` is the largest queue in bytes that the run has had. */
  show(frame, largest, colour) {
    if (!this.fabric || !this.svg) return;
    const seconds = frame.t - frame.from || 1e-9;
    const load = [];
    const queue = [];
    const lost = [];
    const marked = [];
    const paused = [];
    this.fabric.edges.forEach((edge, e) => {
      load[e] = queue[e] = lost[e] = marked[e] = 0;
      paused[e] = false;
      for (const link of edge.links) {
        const [bytes, drops, marks] = frame.traffic.get(link) || [0, 0, 0];
        load[e] = Math.max(load[e], Math.min(1, (8 * bytes) / seconds / edge.rate_bps));
        queue[e] = Math.max(queue[e], (frame.queues.get(link) || [0, 0])[1]);
        lost[e] += drops;
        marked[e] += marks;
        paused[e] = paused[e] || frame.paused.has(link);
      }
    });
    const share = (e) => (colour === "queue" ? queue[e] / (largest || 1) : load[e]);
    const text = (e) => this.fabric.edges[e].name + ": load " + write("percent", load[e]) + ", queue " + write("size", queue[e]) +
      ", " + write("count", lost[e]) + " drops, " + write("count", marked[e]) + " marks" + (paused[e] ? ", paused" : "");
    this.edges.paint(share, text);
    this.hits.forEach((hit, e) => { hit.firstChild.textContent = text(e); });
    this.edges.all.forEach((line, e) => line.classList.toggle("paused", paused[e]));
    this.edges.markLosses((e) => lost[e]);
    const dots = [];
    this.fabric.edges.forEach((_, e) => {
      if (!queue[e]) return;
      const [x, y] = this.edges.at(e, 0.12);
      const dot = svgElement("circle", { cx: x.toFixed(1), cy: y.toFixed(1), r: (1.5 + 7 * Math.sqrt(queue[e] / (largest || 1))).toFixed(1), class: marked[e] ? "queue marked" : "queue" });
      dots.push(dot);
    });
    this.marks.replaceChildren(...dots);
    this.now.textContent = this.chosen === null ? "" : text(this.chosen);
  }

  /* Shows no run; `text` is the reason. */
  blank(text) {
    if (!this.svg) return;
    const name = (e) => this.fabric.edges[e].name;
    this.edges.paint(() => 0, name);
    this.hits.forEach((hit, e) => { hit.firstChild.textContent = name(e); });
    this.edges.all.forEach((line) => line.classList.remove("paused"));
    this.edges.markLosses(() => 0);
    this.marks.replaceChildren();
    this.now.textContent = text;
  }

  /* Draws the way of a packet over links, and moves a dot along it. */
  showWay(hops) {
    if (!this.way) return;
    this.way.replaceChildren();
    const found = hops.map((hop) => this.fabric.edges.findIndex((edge) => edge.links.includes(hop.link))).filter((e) => e >= 0);
    if (!found.length) return;
    let text = "";
    for (const e of found) {
      const [x1, y1, x2, y2] = this.edges.ends[e];
      text += "M" + x1 + " " + y1 + "L" + x2 + " " + y2;
    }
    this.way.append(svgElement("path", { class: "packet-way", d: text }));
    const dot = svgElement("circle", { class: "packet", r: "7" });
    this.way.append(dot);
    if (window.matchMedia("(prefers-reduced-motion: reduce)").matches) {
      const [x, y] = this.edges.at(found[found.length - 1], 1);
      dot.setAttribute("cx", x);
      dot.setAttribute("cy", y);
      return;
    }
    const whole = hops.reduce((sum, hop) => sum + (hop.total_us || 1), 0);
    const begin = performance.now();
    const step = (now) => {
      if (!dot.isConnected) return;
      let left = (((now - begin) / 4000) % 1) * whole;
      let n = 0;
      while (n < found.length - 1 && left > (hops[n].total_us || 1)) {
        left -= hops[n].total_us || 1;
        n += 1;
      }
      const wait = hops[n].waited_us || 0;
      const rest = Math.max(1e-9, (hops[n].total_us || 1) - wait);
      const [x, y] = this.edges.at(found[n], Math.max(0, Math.min(1, (left - wait) / rest)));
      dot.setAttribute("cx", x.toFixed(1));
      dot.setAttribute("cy", y.toFixed(1));
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }
}
