/* Explanations: a list of flows, and the story of what was chosen. */
class Stories {
  /* `fits` tells whether a run has the links that are drawn. */
  constructor(runs, live, fits) {
    this.runs = runs;
    this.live = live;
    this.fits = fits;
    // Numbers of the newest questions: the answer to an older one may belong to another run.
    this.askedList = this.askedStory = 0;
    this.box = document.getElementById("story");
    this.table = document.getElementById("flows");
    this.ofLink = document.getElementById("slow-link");
    this.title = document.getElementById("flows-title");
    this.of = document.getElementById("slow-of");
    document.getElementById("slow-all").addEventListener("click", () => this.list(this.of.value ? "&workload=" + encodeURIComponent(this.of.value) : ""));
    this.of.addEventListener("change", () => document.getElementById("slow-all").click());
    this.ofLink.addEventListener("click", () => {
      const links = this.live.chosenLinks;
      if (links && this.run && !this.fits(this.run)) this.say(otherFabric(this.run));
      else if (links) this.list("&link=" + links[0]);
    });
    window.addEventListener("studio-difference", (event) => this.difference(event.detail));
  }

  /* Removes list and story, which belong to another run. */
  clear() {
    this.askedList += 1;
    this.askedStory += 1;
    this.title.textContent = "";
    this.table.querySelector("thead").replaceChildren();
    this.table.querySelector("tbody").replaceChildren();
    this.box.replaceChildren();
    this.live.showWay([]);
    const run = this.run;
    const names = run && run.workloads ? run.workloads : [];
    this.of.replaceChildren(element("option", { value: "" }, "of all workloads"), ...names.map((name) => element("option", { value: name }, "of " + name)));
  }

  get run() {
    const run = this.runs.present;
    return run && run.state === "done" ? run : null;
  }

  /* Lists the slowest flows of the present run. */
  async list(filter) {
    const run = this.run;
    if (!run) return this.say("There is no finished run. Press Run first.");
    const asked = (this.askedList += 1);
    const link = this.live.chosenName;
    try {
      const rows = await ask("GET", "/api/runs/" + run.id + "/flows?top=20" + filter);
      if (asked !== this.askedList) return;
      this.title.textContent = (filter.startsWith("&link") ? "Flows that lost packets on " + link : "Slowest flows") + ", run " + run.number;
      const head = element("tr", {});
      for (const text of ["flow", "size", "took", "slowdown", "resent", "timeouts"]) head.append(element("th", { scope: "col", class: text === "flow" ? "text" : "" }, text));
      this.table.querySelector("thead").replaceChildren(head);
      const body = rows.map((row) => {
        const line = element("tr", {});
        const name = element("th", { scope: "row", class: "text" });
        const button = element("button", { type: "button", class: "as-link" }, row.flow + ": " + row.src + " → " + row.dst);
        button.addEventListener("click", () => this.explain("flow", row.flow));
        name.append(button, element("small", {}, row.workload + (row.purpose ? ", " + row.purpose : "")));
        line.append(name, ...[write("size", row.bytes), write("span", row.fct_us / 1e6), write("times", row.slowdown), write("count", row.retransmits), write("count", row.timeouts)].map((text) => element("td", {}, text)));
        return line;
      });
      if (!body.length) {
        const line = element("tr", {});
        line.append(element("td", { class: "text", colspan: "6" }, filter ? "No flow lost a packet on this link." : "No flow has finished."));
        body.push(line);
      }
      this.table.querySelector("tbody").replaceChildren(...body);
    } catch (error) {
      this.say(error.message);
    }
  }

  async explain(kind, id) {
    const run = this.run;
    if (!run) return this.say("There is no finished run. Press Run first.");
    this.say("Reading the tables of the run …");
    const asked = this.askedStory;
    try {
      const story = await ask("POST", "/api/runs/" + run.id + "/explain", { kind, id, workload: null });
      if (asked === this.askedStory) this.show(story, kind, id, run);
    } catch (error) {
      if (asked !== this.askedStory) return;
      this.say(error.message);
      if (kind === "packet") this.box.append(this.packetForm(String(id).split("@")[0]));
    }
  }

  async difference(ids) {
    this.say("Comparing the tables of both runs …");
    const asked = this.askedStory;
    try {
      const story = await ask("GET", "/api/difference?runs=" + ids.join(","));
      if (asked !== this.askedStory) return;
      this.show(story, "difference", "", null);
      document.getElementById("explain").scrollIntoView();
    } catch (error) {
      this.say(error.message);
    }
  }

  /* Shows a story of the run `run`; null: of two runs. */
  show(story, kind, id, run) {
    const parts = [element("h3", {}, story.title + (run ? ", run " + run.number : ""))];
    if (story.text) parts.push(element("p", {}, story.text));
    for (const section of story.sections || []) {
      parts.push(element("h4", {}, section.title));
      const list = element("ul", { class: "said" });
      for (const text of section.lines) list.append(element("li", {}, text));
      parts.push(list);
    }
    if (story.hops && story.hops.length) {
      parts.push(this.hops(story.hops));
      if (run && this.fits(run)) this.live.showWay(story.hops);
    }
    if (kind === "flow") parts.push(this.packetForm(id));
    if (kind === "packet") {
      const flow = String(id).split("@")[0];
      const back = element("button", { type: "button" }, "Back to flow " + flow);
      back.addEventListener("click", () => this.explain("flow", Number(flow)));
      parts.push(this.packetForm(flow), back);
    }
    this.box.replaceChildren(...parts);
    this.box.focus({ preventScroll: true });
  }

  /* A form that follows the packet with a byte of a flow from hop to hop. */
  packetForm(flow) {
    const row = element("div", { class: "row" });
    const byte = element("input", { type: "text", inputmode: "numeric", size: "10", value: "0", id: "packet-byte" });
    const button = element("button", { type: "button" }, "Follow from hop to hop");
    button.addEventListener("click", () => this.explain("packet", flow + "@" + byte.value.replace(/[\s,.]/g, "")));
    const label = element("label", { for: "packet-byte" }, "The packet with byte");
    row.append(label, byte, button);
    return row;
  }

  /* The hops of a packet: waiting and travelling as bars on one axis of time. */
  hops(hops) {
    const table = element("table", { class: "hops" });
    const head = element("tr", {});
    for (const [text, css] of [["port", "text"], ["waited", ""], ["sent and travelled", ""], ["", "text"]]) head.append(element("th", { scope: "col", class: css }, text));
    const top = element("thead", {});
    top.append(head);
    const body = element("tbody", {});
    const whole = hops.reduce((sum, hop) => sum + hop.total_us, 0) || 1;
    let at = 0;
    for (const hop of hops) {
      const row = line(hop.name, write("span", hop.waited_us / 1e6), write("span", (hop.total_us - hop.waited_us) / 1e6));
      const bar = svgElement("svg", { class: "strip", viewBox: "0 0 1000 12", preserveAspectRatio: "none", "aria-hidden": "true" });
      const x = (1000 * at) / whole;
      const wait = (1000 * hop.waited_us) / whole;
      const rest = (1000 * (hop.total_us - hop.waited_us)) / whole;
      bar.append(svgElement("path", { class: "whole", d: "M0 3h1000v6H0z" }), svgElement("path", { class: "waiting", d: "M" + x + " 2h" + wait + "v8h" + -wait + "z" }), svgElement("path", { class: "travel", d: "M" + (x + wait) + " 2h" + rest + "v8h" + -rest + "z" }));
      const cell = element("td", { class: "text story" });
      cell.append(bar);
      row.append(cell);
      body.append(row);
      at += hop.total_us;
    }
    table.append(top, body);
    return table;
  }

  say(text) {
    this.askedStory += 1;
    this.box.replaceChildren(element("p", {}, text));
  }
}

function otherFabric(run) {
  return "Run " + run.number + " has another fabric than the scenario in the editor: its links are not shown.";
}
