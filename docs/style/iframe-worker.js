// Search of pages that are opened from disk. Browsers start no worker for a page of file://, so the search worker of
// Material for MkDocs runs in a hidden frame there. Its script looks for the name IFrameWorker in the page.
"use strict";

/** Loads a script into a frame's page; the promise is fulfilled when the script has run. */
function loadInto(page, url) {
  return new Promise((loaded, failed) => {
    const script = page.createElement("script");
    script.onload = loaded;
    script.onerror = failed;
    script.src = new URL(url, document.baseURI).href;
    page.body.append(script);
  });
}

/** Worker in a frame, with the part of the interface of Worker that the search uses. */
class FrameWorker extends EventTarget {
  constructor(url) {
    super();
    this.onmessage = null;
    this.frame = document.createElement("iframe");
    this.frame.hidden = true;
    document.body.append(this.frame);
    this.inside = this.frame.contentWindow;
    const page = this.inside.document;
    // Firefox replaces the first empty page of a frame later, unless it was written to.
    page.open();
    page.write("<!doctype html><title>search</title><body>");
    page.close();
    this.inside.postMessage = (data) => this.deliver(data);
    this.inside.importScripts = (...urls) =>
      urls.reduce((before, next) => before.then(() => loadInto(page, next)), Promise.resolve());
    this.ready = loadInto(page, url);
  }

  /** Hands a message of the worker's script to the page. */
  deliver(data) {
    const event = new MessageEvent("message", { data });
    this.dispatchEvent(event);
    if (this.onmessage) this.onmessage(event);
  }

  postMessage(data) {
    const message = new MessageEvent("message", { data: structuredClone(data) });
    this.ready.then(() => this.inside.dispatchEvent(message));
  }

  terminate() {
    this.frame.remove();
  }
}

window.IFrameWorker = FrameWorker;
if (location.protocol === "file:") window.Worker = FrameWorker;
