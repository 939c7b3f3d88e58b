// The studio beside its styled page: a click in the frame becomes a change of the rule, and a popover at the clicked element
// offers what else the click could mean. All of it are links that the page has anyway.
"use strict";
(() => {
  const page = document.querySelector("iframe.styled");
  if (!page) return;
  const scrolled = "studio " + page.dataset.page, CLICK = "studio click";
  const popover = document.querySelector("[data-popover]");
  const click = JSON.parse(sessionStorage.getItem(CLICK) || "null");
  sessionStorage.removeItem(CLICK);
  // The click led here from another state; a reload of that state is no click.
  const corrects = popover && click && click.from !== location.pathname;

  function pick(node, y) {
    if (Number.isInteger(y)) sessionStorage.setItem(scrolled, String(y));
    const { mode, field } = popover ? popover.dataset : { mode: "", field: "" };
    sessionStorage.setItem(CLICK, JSON.stringify({ from: location.pathname, node, mode, field }));
    location.assign(`?pick=${node}`);
  }
  function fill() {
    for (const link of popover.querySelectorAll("a[data-mode]")) {
      const named = link.dataset.words.includes("@");
      link.textContent = link.dataset.words.replace("@", click.field);
      link.hidden = named && !click.field;
      link.href = `${click.from}?mode=${link.dataset.mode}&pick=${click.node}`;
      if (link.dataset.mode === click.mode) link.setAttribute("aria-current", "true");
    }
  }
  function place({ right, top }) {
    const frame = page.getBoundingClientRect(), stage = popover.parentElement.getBoundingClientRect();
    popover.hidden = !(top >= 0 && top < frame.height - 40);
    const left = Math.min(right + 12, frame.width - popover.offsetWidth - 20);
    popover.style.left = `${Math.max(left, 8) + frame.left - stage.left}px`;
    popover.style.top = `${Math.min(top, frame.height - popover.offsetHeight - 8) + frame.top - stage.top}px`;
  }
  if (corrects) {
    fill();
    popover.querySelector("button").addEventListener("click", () => popover.remove());
    addEventListener("keydown", (event) => { if (event.key === "Escape") popover.remove(); });
  }

  addEventListener("message", (event) => {
    if (event.source !== page.contentWindow || !event.data) return;
    const { pick: node, y, ready, unstyled, right, top } = event.data;
    if (Number.isInteger(node) && node >= 0) pick(node, y);
    else if (Number.isInteger(right) && Number.isInteger(top)) { if (corrects && popover.isConnected) place({ right, top }); }
    else if (ready && unstyled) page.parentElement.querySelector("[data-unstyled]").hidden = false;
    else if (ready && sessionStorage.getItem(scrolled)) page.contentWindow.postMessage({ y: Number(sessionStorage.getItem(scrolled)) }, "*");
  });
  page.contentWindow.postMessage({ ask: true }, "*");
})();
