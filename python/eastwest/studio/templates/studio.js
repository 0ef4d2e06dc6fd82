/* The studio: connects editor, runs, live view, sliders and explanations. */
const byId = (id) => document.getElementById(id);
const tip = byId("tip");
/* Largest wall time of a run, in s, that a slider repeats while it moves. */
const SMALL_S = 1.5;

class Studio {
  constructor() {
    this.file = { path: null, shipped: null, hash: null };
    this.saved = "";
    this.numbers = [];
    this.sliders = [];
    this.running = null;
    this.waiting = null;
    this.editor = new Editor(() => this.edited(), () => this.aboutSetting());
    this.live = new LiveFabric((e) => this.linkChosen(e));
    this.runs = new Runs((run) => this.select(run));
    this.stories = new Stories(this.runs, this.live, (run) => this.fits(run));
    this.fabricEditor = new FabricEditor({
      apply: (topology) => this.saveTopology(topology),
      restore: (text) => this.restore(text),
      ready: () => this.inFolder(),
      text: () => this.editor.text,
    });
    this.curves = [
      { chart: new Curve("Queue", "size"), series: (run) => [{ points: this.queuePoints(run) }] },
      { chart: new Curve("Rate", "rate"), series: (run) => [{ points: this.ratePoints(run) }] },
      { chart: new Curve("Drops and marks", "count"), names: ["drops", "marks"], series: (run) => [{ name: "drops", points: points(run, (f) => f.drops) }, { name: "marks", dash: true, points: points(run, (f) => f.marks) }] },
      { chart: new Curve("Timeouts and retransmissions", "count"), names: ["timeouts", "retransmissions"], series: (run) => [{ name: "timeouts", points: points(run, (f) => f.timeouts) }, { name: "retransmissions", dash: true, points: points(run, (f) => f.retransmits) }] },
      { chart: new Curve("Flows and jobs that have finished", "count"), names: ["flows", "units of work"], series: (run) => [{ name: "flows", points: points(run, (f) => f.flows) }, { name: "units of work", dash: true, points: points(run, (f) => f.jobs[0]) }] },
      { chart: new Curve("Power of links that can sleep", "power"), energy: true, series: (run) => [{ points: rates(run, (f) => f.energy) }] },
    ];
    for (const { chart, names } of this.curves) {
      byId("curve-grid").append(chart.figure);
      if (names) chart.key.textContent = names[0] + ": solid; " + names[1] + ": dashed. Since the start of the run.";
    }
    this.bind();
  }

  bind() {
    byId("files").addEventListener("change", () => this.openChosen());
    byId("save").addEventListener("click", () => this.save());
    byId("save-as").addEventListener("click", () => this.saveAs());
    byId("go").addEventListener("click", () => this.run({}));
    byId("more-seeds").addEventListener("click", () => this.moreSeeds());
    byId("pause").addEventListener("click", () => this.pause());
    byId("step").addEventListener("click", () => this.control({ step: Number(byId("step-size").value) }));
    byId("stop").addEventListener("click", () => this.control({ stop: true }));
    byId("speed").addEventListener("change", () => { if (this.running) this.control({ speed: this.speed }); });
    byId("slider-add").addEventListener("click", () => this.addSlider(byId("slider-setting").value));
    byId("colour").addEventListener("change", () => this.paintMoment());
    byId("moment").addEventListener("input", () => {
      this.stopReplay();
      this.paintMoment();
    });
    byId("replay").addEventListener("click", () => (this.timer ? this.stopReplay() : this.replay()));
    byId("export").addEventListener("change", () => this.exportAs());
    byId("pages-close").addEventListener("click", () => byId("pages").close());
    byId("pages").addEventListener("close", () => { byId("page").src = "about:blank"; });
    window.addEventListener("studio-keep", (event) => this.keep(event.detail));
    window.addEventListener("resize", () => this.drawCurves());
    window.addEventListener("keydown", (event) => {
      if (!(event.ctrlKey || event.metaKey)) return;
      if (event.key === "Enter") this.run({});
      else if (event.key === "s") this.save();
      else return;
      event.preventDefault();
    });
    window.addEventListener("beforeunload", (event) => { if (this.editor.text !== this.saved) event.preventDefault(); });
  }

  async start() {
    try {
      const state = await ask("GET", "/api/state");
      this.listFiles(state);
      byId("name-folder").textContent = state.folder;
      this.opened(state.opened);
      await this.earlierRuns();
    } catch (error) {
      this.message(error.message);
    }
    byId("text").focus();
  }

  listFiles(state) {
    const group = (label, values) => {
      const made = element("optgroup", { label });
      for (const [value, text] of values) made.append(element("option", { value }, text));
      return made;
    };
    byId("files").replaceChildren(
      group("In " + state.folder, state.files.map((path) => ["f:" + path, path])),
      group("Shipped with Eastwest", state.shipped.map(({ name, about }) => ["s:" + name, name + (about ? ": " + about : "")])),
    );
  }

  async openChosen() {
    const [kind, name] = [byId("files").value[0], byId("files").value.slice(2)];
    if (this.editor.text !== this.saved && !window.confirm("The changes of " + (this.file.path || this.file.shipped) + " are not saved. Open the other scenario?")) return this.nameFile();
    try {
      this.opened(await ask("GET", "/api/file?" + (kind === "f" ? "path=" : "shipped=") + encodeURIComponent(name)));
    } catch (error) {
      this.message(error.message);
    }
  }

  opened({ path, shipped, text, hash }) {
    this.file = { path, shipped, hash };
    this.saved = text;
    this.sliders = [];
    this.showSliders();
    byId("seed").value = "";
    this.live.set(null);
    this.runs.present = this.runs.all.findLast((run) => run.label === (path || shipped)) || null;
    this.runs.show();
    this.runs.side.hidden = true;
    byId("failure").hidden = true;
    this.stories.clear();
    this.showFigures(this.runs.present);
    this.paint();
    this.editor.set(text);
    this.editor.area.setSelectionRange(0, 0);
    this.editor.area.scrollTop = 0;
    this.nameFile();
    this.check();
  }

  nameFile() {
    const value = this.file.path !== null ? "f:" + this.file.path : "s:" + this.file.shipped;
    const list = byId("files");
    if (![...list.options].some((option) => option.value === value) && this.file.path) list.querySelector("optgroup").append(element("option", { value }, this.file.path));
    list.value = value;
    this.showSaved();
  }

  showSaved() {
    const same = this.editor.text === this.saved;
    byId("file-state").textContent = this.file.path === null ? (same ? "" : "not saved. ") + "A shipped scenario: Save as … makes a copy of your own." : same ? "" : "not saved";
  }

  get base() {
    return this.file.path;
  }

  edited() {
    this.showSaved();
    clearTimeout(this.soon);
    this.soon = setTimeout(() => this.check(), 200);
  }

  /* Checks the text; an answer that is older than the text is ignored. */
  async check() {
    const text = this.editor.text;
    const scenario = JSON.stringify([text, this.base, this.set]);
    if (this.checking) this.checking.abort();
    const checking = (this.checking = new AbortController());
    try {
      const found = await ask("POST", "/api/check", { text, path: this.base, shipped: this.file.shipped, set: this.set }, checking.signal);
      if (text !== this.editor.text) return;
      this.showProblems(found);
      if (!found.problems.length) {
        this.live.set(found.fabric);
        this.scenario = scenario;
        this.drawn = JSON.stringify((found.fabric ? found.fabric.edges : []).map((edge) => [edge.name, edge.links, edge.rate_bps]));
        for (const run of this.runs.all) if (run.scenario === scenario) run.drawn = this.drawn;
        this.fabricEditor.set(found.fabric);
        this.numbers = found.numbers;
        this.listNumbers();
        this.aboutSetting();
        if (this.runs.present && this.runs.present.history.frames.length) {
          this.paintMoment();
          this.drawCurves();
        }
      }
    } catch (error) {
      if (error.name !== "AbortError") this.message(error.message);
    }
  }

  showProblems({ problems, notes }) {
    byId("problems-title").textContent = problems.length ? (problems.length === 1 ? "1 problem" : problems.length + " problems") : "No problems";
    byId("problems-title").className = problems.length ? "bad" : "good";
    byId("problems").replaceChildren(...problems.slice(0, 50).map((problem) => {
      const item = element("li", {});
      const where = [problem.line ? "line " + problem.line : "", problem.path].filter(Boolean).join(": ");
      const text = (problem.value ? " = " + problem.value : "") + ": " + problem.message + (problem.hint ? "; did you mean " + problem.hint + "?" : "");
      if (problem.line) {
        const button = element("button", { type: "button", class: "as-link" }, where);
        button.addEventListener("click", () => this.editor.goTo(problem.line));
        item.append(button);
      } else {
        item.append(where);
      }
      item.append(text);
      return item;
    }));
    byId("check-notes").replaceChildren(...notes.map((note) => element("li", {}, note)));
    this.editor.markLines(problems.map((problem) => problem.line).filter(Boolean));
    byId("go").disabled = problems.length > 0;
  }

  /* Documentation of the setting at the cursor, and a button that makes a slider of it. */
  async aboutSetting() {
    const [text, offset] = [this.editor.text, this.editor.offset];
    if (this.lastAbout && this.lastAbout[0] === text && this.lastAbout[1] === offset) return;
    this.lastAbout = [text, offset];
    let found = {};
    try {
      found = await ask("POST", "/api/hover", { text, offset });
    } catch {
      return;
    }
    if (this.lastAbout[1] !== offset) return;
    const box = byId("about");
    if (!found.path) return box.replaceChildren();
    const allowed = found.min || found.max ? " Allowed: " + (found.min || "") + " to " + (found.max || "") + "." : "";
    const first = element("p", {});
    first.append(element("b", {}, found.path), " (" + found.type + "): " + (found.doc || "") + allowed + (found.default ? " Default: " + found.default + "." : ""));
    box.replaceChildren(first);
    const line = this.editor.line;
    const last = found.path.split(".").pop();
    const number = this.numbers.find((one) => one.line === line && one.path.split(".").pop() === last);
    if (number && !this.sliders.some((slider) => slider.path === number.path)) {
      const button = element("button", { type: "button" }, "Slider for this number");
      button.addEventListener("click", () => this.addSlider(number.path));
      box.append(button);
    }
  }

  listNumbers() {
    const list = byId("slider-setting");
    const before = list.value;
    const groups = [["In the scenario", this.numbers.filter((n) => n.explicit)], ["Defaults", this.numbers.filter((n) => !n.explicit)]];
    list.replaceChildren(...groups.filter(([, numbers]) => numbers.length).map(([label, numbers]) => {
      const group = element("optgroup", { label });
      for (const number of numbers) group.append(element("option", { value: number.path }, number.path + " = " + String(number.value).replaceAll('"', "")));
      return group;
    }));
    if (this.numbers.some((number) => number.path === before)) list.value = before;
  }

  addSlider(path) {
    const setting = this.numbers.find((number) => number.path === path);
    if (!setting || this.sliders.some((slider) => slider.path === path)) return;
    const slider = new Slider(setting, (final) => this.slid(final), (one) => {
      this.sliders = this.sliders.filter((each) => each !== one);
      this.showSliders();
      this.check();
    });
    this.sliders.push(slider);
    this.showSliders();
    slider.range.focus();
    this.aboutSetting();
  }

  showSliders() {
    byId("slider-list").replaceChildren(...this.sliders.map((slider) => slider.box));
  }

  get set() {
    return this.sliders.map((slider) => slider.pair);
  }

  /* A slider has moved: small scenarios run again at once, others when the slider is let go. */
  slid(final) {
    const last = this.runs.all.findLast((run) => run.state === "done" && run.text === this.editor.text);
    const small = last && last.wall <= SMALL_S;
    if (!small && !final) return;
    const newest = this.running || last;
    if (newest && newest.text === this.editor.text && JSON.stringify(newest.set) === JSON.stringify(this.set) && !this.waiting) return;
    this.run({ again: true });
  }

  /* Place of the value of a slider in a text: start, end, and the new value; null if the text does not
     set it on a line of its own. */
  placeOf(slider, text) {
    const number = this.numbers.find((one) => one.path === slider.path);
    const key = slider.path.split(".").pop().replace(/[^\w-]/g, "");
    const lines = text.split("\n");
    const at = number && number.explicit && number.line ? number.line - 1 : -1;
    const pattern = new RegExp("(^|[\\s{,])(" + key + "\\s*=\\s*)(\"[^\"]*\"|'[^']*'|[^\\s,}#]+)");
    const found = at >= 0 && at < lines.length ? lines[at].match(pattern) : null;
    if (!found) return null;
    const start = lines.slice(0, at).join("\n").length + (at ? 1 : 0) + found.index + found[1].length + found[2].length;
    return [start, start + found[3].length, slider.unit || slider.given ? JSON.stringify(slider.pair[1]) : slider.pair[1]];
  }

  /* Writes the value of a slider into the text. */
  keep(slider) {
    const place = this.placeOf(slider, this.editor.text);
    if (!place) return this.message("The scenario does not set " + slider.path + " on a line of its own. Add it: " + slider.pair.join(" = "));
    this.editor.replace(...place);
    this.message(slider.path + " = " + place[2] + " is in the text now.");
  }

  get speed() {
    return byId("speed").value ? Number(byId("speed").value) : null;
  }

  /* Starts a run. While another one is in progress, only the newest request waits. */
  async run({ again = false, seed = null }) {
    if (byId("go").disabled && !again) return;
    if (this.running) {
      if (again) {
        this.waiting = { again };
        return;
      }
      await this.control({ stop: true });
    }
    const wanted = seed === null ? byId("seed").value.trim() : String(seed);
    if (!Number.isSafeInteger(Number(wanted))) return this.fail("The seed must be a whole number of at most " + Number.MAX_SAFE_INTEGER + ".");
    const before = this.runs.all.findLast((run) => run.state === "done" && run.text === this.editor.text);
    const speed = this.speed;
    const run = { label: this.file.path || this.file.shipped || "scenario", text: this.editor.text, path: this.base, shipped: this.file.shipped, set: this.set, seed: wanted === "" ? null : Number(wanted), history: new History(0), state: "running", figures: [], wall: 0, largest: 0 };
    run.scenario = JSON.stringify([run.text, run.path, run.set]);
    run.drawn = run.scenario === this.scenario ? this.drawn : null;
    this.running = run;
    byId("failure").hidden = true;
    try {
      const made = await ask("POST", "/api/runs", {
        text: run.text, path: run.path, shipped: run.shipped, set: run.set, seed: run.seed, label: run.label, live: true, speed, keep: true, replace: true,
        frame_s: before && speed === null && before.history.end > 0 ? before.history.end / 400 : null,
      });
      run.id = made.run;
    } catch (error) {
      this.running = null;
      return this.fail(error.message);
    }
    this.runs.add(run);
    this.stories.clear();
    byId("figures-title").classList.add("old");
    this.buttons();
    try {
      await follow("/api/runs/" + run.id + "/stream", (event) => this.take(run, event));
    } catch (error) {
      run.state = "failed";
      this.fail(error.message);
    }
    if (this.running === run) this.running = null;
    this.buttons();
    this.runs.show();
    this.paint();
    if (this.waiting && !this.running) {
      const next = this.waiting;
      this.waiting = null;
      this.run(next);
    }
  }

  /* Takes one object of the stream of a run. */
  take(run, event) {
    if (event.kind === "start") {
      run.history = new History(event.links);
      run.target = event.target_s;
    } else if (event.kind === "frame") {
      run.history.add(event);
      for (const [, , bytes] of event.q) if (bytes > run.largest) run.largest = bytes;
      run.wall = event.wall;
      run.done = event.jobs && event.jobs[1] ? event.jobs[0] / event.jobs[1] : run.target ? event.t / run.target : null;
      this.soonPaint();
    } else if (event.kind === "progress") {
      run.done = event.done;
      this.soonPaint();
    } else if (event.kind === "end") {
      run.state = event.state;
      run.figures = event.figures || [];
      run.goals = event.goals || [];
      run.notes = event.notes || [];
      run.digest = event.digest;
      run.seedShown = event.summary ? event.summary.seed : run.seed;
      run.workloads = event.summary && event.summary.workloads ? Object.keys(event.summary.workloads) : [];
      if (event.summary && event.summary.wall_s !== undefined) run.wall = event.summary.wall_s;
      if (event.error) this.fail(event.error);
      else if (event.state === "done" && run === this.runs.present) {
        this.showFigures(run);
        this.stories.clear();
      }
    }
  }

  /* Repeats the present run with the three seeds after its own. */
  async moreSeeds() {
    const run = this.runs.present;
    if (!run || this.running) return;
    if (run.scenario !== JSON.stringify([this.editor.text, this.base, this.set])) return this.message("The scenario is not that of run " + run.number + ". Press Run first, so that all seeds are of one scenario.");
    for (let n = 1; n <= 3; n += 1) await this.run({ again: true, seed: run.seedShown + n });
  }

  /* Shows the runs that the server still has, after the page was loaded again. */
  async earlierRuns() {
    const listed = await ask("GET", "/api/runs");
    for (const one of listed.filter(({ state }) => state === "done").reverse()) {
      const run = { id: one.run, label: one.label, text: null, set: one.set, seed: one.seed, history: new History(0), state: "running", figures: [], wall: one.wall_s, largest: 0 };
      this.runs.add(run);
      await follow("/api/runs/" + run.id + "/stream", (event) => this.take(run, event));
    }
    this.runs.present = this.runs.all.findLast((run) => run.label === (this.file.path || this.file.shipped)) || null;
    this.runs.show();
    if (!this.runs.present) return;
    this.select(this.runs.present);
  }

  showFigures(run) {
    byId("figures-title").textContent = run ? "Run " + run.number + (run.set.length ? ": " + run.set.map((pair) => pair.join(" = ")).join("; ") : "") + (run.seedShown === undefined ? "" : ", seed " + run.seedShown) + (run.digest ? ", digest " + run.digest : "") : "";
    byId("figures-title").classList.remove("old");
    byId("more-seeds").disabled = !run || run.state !== "done";
    if (!run) {
      for (const id of ["figures", "goals", "run-notes"]) byId(id).replaceChildren();
      return;
    }
    byId("figures").replaceChildren(...(run.figures || []).slice(0, 8).map(([key, , text, title]) => {
      const card = element("li", {});
      card.append(element("span", { class: "what" }, title || key), element("strong", {}, text));
      return card;
    }));
    byId("run-notes").replaceChildren(...(run.notes || []).map((note) => element("li", {}, note)));
    byId("goals").replaceChildren(...(run.goals || []).map((goal) => goalLine("li", goal)));
  }

  fail(text) {
    byId("failure").textContent = text;
    byId("failure").hidden = false;
  }

  buttons() {
    const active = Boolean(this.running && this.running.id);
    for (const id of ["pause", "step", "stop"]) byId(id).disabled = !active;
    byId("pause").setAttribute("aria-pressed", String(active && this.paused));
    byId("pause").textContent = active && this.paused ? "Continue" : "Pause";
    if (!active) this.paused = false;
  }

  async pause() {
    this.paused = !this.paused;
    this.buttons();
    await this.control({ pause: this.paused });
  }

  async control(order) {
    const run = this.running;
    if (!run || !run.id) return;
    if (order.step) {
      this.paused = true;
      this.buttons();
    }
    try {
      await ask("POST", "/api/runs/" + run.id + "/control", order);
    } catch (error) {
      if (error.status !== 409) this.message(error.message);
    }
    if (order.stop) while (this.running === run) await new Promise((done) => setTimeout(done, 20));
  }

  soonPaint() {
    if (this.painting) return;
    this.painting = requestAnimationFrame(() => {
      this.painting = 0;
      this.paint();
    });
  }

  /* Shows the newest frame of the present run. */
  paint() {
    const run = this.runs.present;
    if (!run) {
      byId("clock").textContent = "Not run yet.";
      byId("progress").value = 0;
      byId("moment-text").textContent = byId("link-now").textContent = "";
      for (const id of ["moment", "replay"]) byId(id).disabled = true;
      for (const { chart } of this.curves) chart.draw([], 1);
      return;
    }
    const { frames, end } = run.history;
    const slider = byId("moment");
    slider.max = Math.max(0, frames.length - 1);
    slider.value = slider.max;
    slider.disabled = byId("replay").disabled = frames.length < 2;
    if (run.state === "done") byId("progress").value = 1;
    else if (run.done === null || run.done === undefined) byId("progress").removeAttribute("value");
    else byId("progress").value = Math.min(1, run.done);
    const state = { running: this.paused ? "paused" : "running", done: "finished", stopped: "stopped", failed: "failed" }[run.state];
    byId("clock").textContent = "Run " + run.number + " " + state + " at " + write("span", end) + " of simulated time, " + write("span", run.wall) + " of wall time.";
    this.paintMoment();
    this.drawCurves();
  }

  paintMoment() {
    const run = this.runs.present;
    if (!run || !run.history.frames.length) return;
    const frame = run.history.frames[Number(byId("moment").value)] || run.history.frames[run.history.frames.length - 1];
    const end = run.history.end;
    const text = clock(frame.from, end, end / 1000) + " – " + clock(frame.t, end, end / 1000);
    byId("moment-text").textContent = text;
    byId("moment").setAttribute("aria-valuetext", text);
    if (this.fits(run)) this.live.show(frame, run.largest, byId("colour").value);
    else this.live.blank(otherFabric(run));
  }

  /* Whether a run has the links that are drawn. Of a run without a check, such as one from before
     a reload of the page, only the number of links is known. */
  fits(run) {
    if (!this.live.fabric) return false;
    if (run.drawn) return run.drawn === this.drawn;
    return run.history.links === this.live.fabric.edges.reduce((sum, edge) => sum + edge.links.length, 0);
  }

  replay() {
    const slider = byId("moment");
    if (Number(slider.value) >= Number(slider.max)) slider.value = 0;
    byId("replay").textContent = "Pause replay";
    const by = Math.max(1, Math.round(Number(slider.max) / 240));
    this.timer = setInterval(() => {
      slider.value = Number(slider.value) + by;
      this.paintMoment();
      if (Number(slider.value) >= Number(slider.max)) this.stopReplay();
    }, 50);
  }

  stopReplay() {
    clearInterval(this.timer);
    this.timer = 0;
    byId("replay").textContent = "Replay";
  }

  /* Shows a run that is chosen in the table. */
  select(run) {
    this.showFigures(run);
    this.stories.clear();
    this.paint();
    this.drawCurves(true);
  }

  linkChosen(e) {
    byId("slow-link").disabled = e === null;
    this.paintMoment();
    this.drawCurves(true);
    const run = this.stories.run;
    if (e !== null && run && !this.fits(run)) this.stories.say(otherFabric(run));
    else if (e !== null && run) this.stories.explain("link", this.live.chosenLinks[0]);
  }

  /* Draws the charts: the last five runs pale, the present one in colour. During a run only its own
     points are read again. */
  drawCurves(fresh) {
    const present = this.runs.present;
    if (!present) return;
    const shown = [...this.runs.all.filter((run) => run !== present && run.label === present.label && run.history.frames.length).slice(-5), present];
    const end = Math.max(...shown.map((run) => run.history.end));
    byId("curves-link").textContent = "Queue and rate: " + this.live.chosenName + (this.live.chosen === null ? "; rate: all links to hosts." : ".");
    for (const curve of this.curves) {
      const runs = shown.map((run) => {
        run.kept = fresh || run === present || !run.kept ? new Map(fresh ? [] : run.kept || []) : run.kept;
        const key = curve.chart.title + "/" + this.live.chosen + "/" + this.fits(run);
        if (run === present || !run.kept.has(key)) run.kept.set(key, curve.series(run));
        return { name: "run " + run.number + (run.set.length ? " (" + run.set.map(([path, value]) => path.split(".").pop() + " " + value).join(", ") + ")" : ""), css: run.css + (run === present ? "" : " ghost"), series: run.kept.get(key) };
      });
      const any = runs.some((run) => run.series.some((one) => one.points.some(([, value]) => value > 0)));
      if (curve.energy) curve.chart.figure.hidden = !any;
      if (!curve.energy || any) curve.chart.draw(runs, end);
    }
  }

  queuePoints(run) {
    const links = this.live.chosenLinks;
    if (links !== null && !this.fits(run)) return [];
    return points(run, (frame) => {
      let largest = 0;
      if (links === null) for (const [, bytes] of frame.queues.values()) largest = Math.max(largest, bytes);
      else for (const link of links) largest = Math.max(largest, (frame.queues.get(link) || [0, 0])[1]);
      return largest;
    });
  }

  ratePoints(run) {
    if (!this.fits(run)) return [];
    // Of a line that stands for several links, the busiest one counts.
    const chosen = this.live.chosenLinks;
    const links = chosen || this.toHosts();
    const all = chosen ? (sum, bytes) => Math.max(sum, bytes) : (sum, bytes) => sum + bytes;
    return points(run, (frame) => {
      const bytes = links.reduce((sum, link) => all(sum, (frame.traffic.get(link) || [0])[0]), 0);
      return (8 * bytes) / (frame.t - frame.from || 1e-9);
    });
  }

  toHosts() {
    if (!this.live.fabric) return [];
    return this.live.fabric.edges.filter((edge) => edge.tier === "host-down").flatMap((edge) => edge.links);
  }

  async save() {
    if (this.file.path === null) return this.saveAs();
    try {
      const text = this.editor.text;
      this.file.hash = (await ask("PUT", "/api/file", { path: this.file.path, text, hash: this.file.hash })).hash;
      this.saved = text;
      this.showSaved();
      this.message("Saved as " + this.file.path + ".");
    } catch (error) {
      this.message(error.message);
    }
  }

  async saveAs() {
    const dialog = byId("name");
    byId("name-text").value = this.file.path || (this.file.shipped || "scenario") + "-mine.toml";
    dialog.returnValue = "";
    dialog.showModal();
    await new Promise((done) => dialog.addEventListener("close", done, { once: true }));
    if (dialog.returnValue !== "save") return;
    const [path, text] = [byId("name-text").value.trim(), this.editor.text];
    try {
      const { hash } = await ask("PUT", "/api/file", { path, text, hash: null });
      this.file = { path, shipped: null, hash };
      this.saved = text;
      this.nameFile();
      this.check();
      this.message("Saved as " + path + ".");
    } catch (error) {
      this.message(error.message);
    }
  }

  async saveTopology(topology) {
    try {
      const { text } = await ask("POST", "/api/topology", { path: this.file.path, text: this.editor.text, topology });
      this.editor.set(text);
      this.showSaved();
      await this.check();
      return true;
    } catch (error) {
      this.fabricEditor.say(error.message);
      return false;
    }
  }

  /* Whether the scenario is a file of the folder; asks for its name if it is not. */
  async inFolder() {
    if (this.file.path === null) await this.saveAs();
    return this.file.path !== null;
  }

  async restore(text) {
    this.editor.set(text);
    this.showSaved();
    await this.check();
  }

  /* Text of the scenario with the values of the sliders, and a comment for those that it does not
     set on a line of their own. */
  withSliders() {
    let text = this.editor.text;
    const left = [];
    for (const slider of this.sliders) {
      const place = this.placeOf(slider, text);
      if (place) text = text.slice(0, place[0]) + place[2] + text.slice(place[1]);
      else left.push("# Also set: --set " + slider.pair.join("="));
    }
    return left.length ? left.join("\n") + "\n" + text : text;
  }

  async exportAs() {
    const kind = byId("export").value;
    byId("export").value = "";
    const run = this.runs.present;
    const drawing = byId("drawing").querySelector("svg");
    const name = (this.file.path || this.file.shipped || "scenario").replace(/\.toml$/, "").split("/").pop();
    if (kind === "scenario") return download(name + ".toml", this.withSliders(), "application/toml");
    if ((kind === "svg" || kind === "png") && drawing) {
      const text = svgText(drawing, name + (run ? ", run " + run.number + ", " + byId("moment-text").textContent + ", " + byId("colour").value : ""));
      return kind === "svg" ? download(name + "-fabric.svg", text, "image/svg+xml") : downloadPng(name + "-fabric.png", text);
    }
    if (!run || run.state !== "done") return this.message("There is no finished run. Press Run first.");
    if (kind === "curves") return download(name + "-curves.svg", curvesText(this.curves.filter((curve) => !curve.chart.figure.hidden).map((curve) => curve.chart.figure)), "image/svg+xml");
    if (kind === "report") return openPage("Report of run " + run.number, "/api/runs/" + run.id + "/report");
    if (kind === "result") {
      const link = element("a", { href: addressOf("/api/runs/" + run.id + "/result.zip"), download: name + ".zip" });
      document.body.append(link);
      link.click();
      return link.remove();
    }
    try {
      const { command, note } = await ask("GET", "/api/runs/" + run.id + "/command");
      byId("command").textContent = note ? command + "\n# " + note : command;
      byId("command").hidden = false;
      byId("command").focus();
      if (navigator.clipboard) navigator.clipboard.writeText(command).then(() => this.message("The command line is in the clipboard."), () => {});
    } catch (error) {
      this.message(error.message);
    }
  }

  message(text) {
    const box = byId("message");
    box.textContent = text;
    box.hidden = false;
    clearTimeout(this.quiet);
    this.quiet = setTimeout(() => { box.hidden = true; }, 7000);
  }
}

/* Points of a run: the value of each frame at its end. */
function points(run, value) {
  return run.history.frames.map((frame) => [frame.t, value(frame)]);
}

/* Points of a run: the increase of a value per second in each frame. */
function rates(run, value) {
  let before = 0;
  return run.history.frames.map((frame) => {
    const rate = (value(frame) - before) / (frame.t - frame.from || 1e-9);
    before = value(frame);
    return [frame.t, rate];
  });
}

setUpTheme();
const studio = new Studio();
window.eastwestStudio = studio;
studio.start();
