// Enhances pages that work without it: the key for the search, fresh figures, the line of a mistake, fields of the studio.
// It loads nothing but the page itself from the console, and sets no HTML that the page does not bring.
"use strict";
(() => {
  addEventListener("keydown", (event) => {
    const inField = event.target.closest("input, textarea, select");
    if (event.key === "/" && !inField && !event.ctrlKey && !event.metaKey && !event.altKey) {
      const search = document.querySelector(".rail .search input");
      if (search) { event.preventDefault(); search.focus(); search.select(); }
    } else if (event.key === "Escape" && inField && inField.closest(".search, .verdicts")) {
      inField.blur();
    } else if (!inField && !event.ctrlKey && !event.metaKey && !event.altKey && !event.repeat && /^[a-z]$/i.test(event.key)) {
      // A key that stands beside a button or a field.
      const keyed = document.querySelector(`[data-key="${event.key.toLowerCase()}"]`);
      if (keyed) { event.preventDefault(); if (keyed.matches("input")) keyed.focus(); else keyed.click(); }
    }
  });

  addEventListener("click", (event) => {
    const mark = event.target.closest("[data-line]");
    const text = document.getElementById("text");
    if (!mark || !text) return;
    event.preventDefault();
    const lines = text.value.split("\n"), line = Number(mark.dataset.line) - 1;
    const start = lines.slice(0, line).reduce((sum, one) => sum + one.length + 1, 0);
    text.focus();
    text.setSelectionRange(start, start + (lines[line] || "").length);
    text.scrollTop = Math.max(0, line - 5) * parseFloat(getComputedStyle(text).lineHeight);
  });

  // A field of the studio is set when it changes; the button is for those without script.
  for (const form of document.querySelectorAll("form[data-auto]")) {
    form.addEventListener("change", () => { if (form.reportValidity()) form.requestSubmit(); });
  }

  const here = document.querySelector(".rail nav [aria-current]");
  if (here) here.scrollIntoView({ block: "nearest", inline: "center" });

  // A text that is not saved is not lost by a wrong click.
  const form = document.querySelector("form.wide");
  if (form) {
    let changed = false;
    form.addEventListener("input", () => { changed = true; });
    form.addEventListener("submit", () => { changed = false; });
    addEventListener("beforeunload", (event) => { if (changed) event.preventDefault(); });
  }

  const part = document.querySelector("[data-part]");
  if (!part) return;
  const FIRST_MS = 3000, LONGEST_MS = 60000, SILENT_MS = 20000;
  if (part.dataset.part === "error") { again(FIRST_MS, () => location.reload()); return; }
  if (!("live" in document.body.dataset)) return;
  const stale = document.getElementById("stale");
  let events = null, heard = 0, fresh = "", since = null, done = false;

  // Waits until the server answers. A session that has ended leads to the login, which comes back here.
  function again(wait, back) {
    setTimeout(async () => {
      try {
        const answer = await fetch(location.href, { headers: { "x-refresh": "1" }, redirect: "manual", signal: AbortSignal.timeout(10000) });
        if (answer.type === "opaqueredirect") { location.reload(); return; }
        if (answer.ok) { back(); return; }
      } catch { /* away */ }
      again(Math.min(wait * 1.5, LONGEST_MS), back);
    }, wait);
  }
  function show() {
    // What a person selects, ticks or types in stays; the next event has it.
    if (!fresh || part.contains(document.activeElement) || String(getSelection()) || part.querySelector("input:checked")) return;
    const found = new DOMParser().parseFromString(fresh, "text/html").querySelector("[data-part]");
    if (!found || found.dataset.part !== part.dataset.part) { location.reload(); return; }
    part.replaceChildren(...document.importNode(found, true).childNodes);
    part.dispatchEvent(new CustomEvent("console:fresh", { bubbles: true }));
    fresh = "";
    if ("done" in found.dataset) { stop(); done = true; }
  }
  function old() {
    since = since || new Date().toLocaleTimeString();
    stale.textContent = stale.dataset.words.replace("@", since);
    stale.hidden = false;
  }
  function stop() {
    if (events) events.close();
    events = null;
  }
  function lost() {
    stop();
    old();
    again(FIRST_MS, watch);
  }
  function watch() {
    stop();
    if (document.hidden || done) return;
    heard = Date.now();
    events = new EventSource("/console/live?at=" + encodeURIComponent(location.pathname + location.search));
    events.addEventListener("part", (event) => {
      heard = Date.now();
      since = null;
      stale.hidden = true;
      fresh = JSON.parse(event.data);
      show();
    });
    events.addEventListener("away", () => { heard = Date.now(); old(); });
    events.addEventListener("end", () => location.reload());
    // A browser tries again by itself, but not where the answer is no stream of events.
    events.addEventListener("error", () => { if (events && events.readyState === EventSource.CLOSED) lost(); else old(); });
  }
  // A server that hangs keeps the connection and sends nothing.
  setInterval(() => { if (events && Date.now() - heard > SILENT_MS) lost(); }, FIRST_MS);
  document.addEventListener("visibilitychange", watch);
  watch();
})();
