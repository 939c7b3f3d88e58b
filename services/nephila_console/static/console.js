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
  const FIRST_MS = 5000, LONGEST_MS = 60000;
  if (part.dataset.part === "error") { retry(FIRST_MS); return; }
  if (!("live" in document.body.dataset)) return;
  const stale = document.getElementById("stale");
  let events = null, fresh = "", since = null;

  // An error of a server that is away: the page is loaded again once it answers.
  function retry(wait) {
    setTimeout(async () => {
      try {
        const answer = await fetch(location.href, { headers: { "x-refresh": "1" }, redirect: "manual" });
        if (answer.ok || answer.type === "opaqueredirect") { location.reload(); return; }
      } catch { /* away */ }
      retry(Math.min(wait * 1.5, LONGEST_MS));
    }, wait);
  }
  function show() {
    // What a person selects or types in stays; the next event has it.
    if (!fresh || part.contains(document.activeElement) || String(getSelection())) return;
    const found = new DOMParser().parseFromString(fresh, "text/html").querySelector("[data-part]");
    if (!found || found.dataset.part !== part.dataset.part) { location.reload(); return; }
    part.replaceChildren(...document.importNode(found, true).childNodes);
    part.dispatchEvent(new CustomEvent("console:fresh", { bubbles: true }));
    fresh = "";
  }
  function old() {
    since = since || new Date().toLocaleTimeString();
    stale.textContent = stale.dataset.words.replace("@", since);
    stale.hidden = false;
  }
  function watch() {
    if (events) events.close();
    events = null;
    if (document.hidden) return;
    events = new EventSource("/console/live?at=" + encodeURIComponent(location.pathname + location.search));
    events.addEventListener("part", (event) => { since = null; stale.hidden = true; fresh = JSON.parse(event.data); show(); });
    events.addEventListener("away", old);
    events.addEventListener("end", () => location.reload());
    events.addEventListener("error", () => {
      old();
      // A browser gives up where the answer is no stream of events.
      if (events && events.readyState === EventSource.CLOSED) { events = null; setTimeout(watch, LONGEST_MS); }
    });
  }
  document.addEventListener("visibilitychange", watch);
  watch();
})();
