// Enhances pages that work without it: the key for the search, fresh figures, the line of a mistake, fields of the studio.
// It loads nothing but the page itself from the console, and sets no HTML that the page does not bring.
"use strict";
(() => {
  const EVERY_MS = 5000, LONGEST_MS = 60000;

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

  // A text that is not saved is not lost by a wrong click.
  const form = document.querySelector("form.wide");
  if (form) {
    let changed = false;
    form.addEventListener("input", () => { changed = true; });
    form.addEventListener("submit", () => { changed = false; });
    addEventListener("beforeunload", (event) => { if (changed) event.preventDefault(); });
  }

  const part = document.querySelector("[data-part]");
  const isError = part && part.dataset.part === "error";
  if (!part || (!("live" in document.body.dataset) && !isError)) return;
  let wait = EVERY_MS, since = null;
  const stale = document.getElementById("stale");

  async function load() {
    if (document.hidden || part.contains(document.activeElement) || String(getSelection())) return again(EVERY_MS);
    try {
      const answer = await fetch(location.href, { headers: { "x-refresh": "1" }, redirect: "manual" });
      if (answer.type === "opaqueredirect") { location.reload(); return; }
      if (!answer.ok) throw new Error(answer.status);
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("[data-part]");
      if (!fresh || fresh.dataset.part !== part.dataset.part) { location.reload(); return; }
      part.replaceChildren(...document.importNode(fresh, true).childNodes);
      stale.hidden = true;
      since = null;
      wait = EVERY_MS;
    } catch {
      if (isError) return again(wait = Math.min(wait * 1.5, LONGEST_MS));
      since = since || new Date().toLocaleTimeString();
      stale.textContent = stale.dataset.words.replace("@", since);
      stale.hidden = false;
      wait = Math.min(wait * 1.5, LONGEST_MS);
    }
    again(wait);
  }
  function again(ms) { setTimeout(load, ms); }
  again(EVERY_MS);
})();
