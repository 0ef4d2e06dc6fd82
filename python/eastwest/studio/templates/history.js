/* Frames of one run: a bounded list over simulated time. When it is full, neighbouring frames are
   merged: traffic, drops and marks are added up, of two queue lengths the larger one stays. */
class History {
  constructor(links) {
    this.links = links;
    this.most = Math.max(60, Math.min(800, Math.floor(600000 / Math.max(links, 1))));
    this.frames = [];
  }

  get end() {
    return this.frames.length ? this.frames[this.frames.length - 1].t : 0;
  }

  /* Adds a frame as the server sends it. */
  add(sent) {
    // A frame between the grid shows the present state until the next one.
    let carry = null;
    if (this.frames.length && !this.frames[this.frames.length - 1].grid) carry = this.frames.pop();
    const last = this.frames[this.frames.length - 1];
    const frame = {
      from: last ? last.t : 0,
      t: sent.t,
      grid: sent.grid,
      queues: new Map(sent.q.map(([link, packets, bytes]) => [link, [packets, bytes]])),
      traffic: new Map(sent.d.map(([link, bytes, drops, marks]) => [link, [bytes, drops, marks]])),
      paused: new Set(sent.p || []),
      energy: (sent.e || []).reduce((sum, [, joules]) => sum + joules, 0),
      jobs: sent.jobs || [0, 0],
      flows: sent.flows || 0,
      timeouts: sent.timeouts || 0,
      retransmits: sent.retransmits || 0,
      drops: last ? last.drops : 0,
      marks: last ? last.marks : 0,
    };
    if (carry) frame.traffic = added(carry.traffic, frame.traffic);
    for (const [, drops, marks] of frame.traffic.values()) {
      frame.drops += drops;
      frame.marks += marks;
    }
    if (last && frame.t <= last.t) this.frames[this.frames.length - 1] = merged(last, frame);
    else this.frames.push(frame);
    if (this.frames.length >= this.most) this.halve();
  }

  halve() {
    const kept = [];
    for (let n = 0; n + 1 < this.frames.length; n += 2) kept.push(merged(this.frames[n], this.frames[n + 1]));
    if (this.frames.length % 2) kept.push(this.frames[this.frames.length - 1]);
    this.frames = kept;
  }
}

function merged(first, second) {
  const queues = new Map(first.queues);
  for (const [link, queue] of second.queues) {
    const before = queues.get(link);
    queues.set(link, before && before[1] > queue[1] ? before : queue);
  }
  return { ...second, from: first.from, queues, traffic: added(first.traffic, second.traffic) };
}

/* Sums of two maps of bytes, drops and marks by link. */
function added(first, second) {
  const traffic = new Map(first);
  for (const [link, amounts] of second) {
    const before = traffic.get(link);
    traffic.set(link, before ? amounts.map((amount, n) => amount + before[n]) : amounts);
  }
  return traffic;
}
