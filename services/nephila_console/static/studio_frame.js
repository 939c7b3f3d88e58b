// The only script of the styled page in the studio: it shows the element under the pointer and tells the studio of a click.
// It runs in a frame without origin; the policy of the frame allows it by its hash, and nothing else.
"use strict";
(() => {
  const NUMBER = "data-nephila", STEP = { ArrowUp: "up", ArrowDown: "down", ArrowLeft: "before", ArrowRight: "after" };
  let box = null, target = null, failed = 0;

  const numbered = (element) => element && element.closest ? element.closest(`[${NUMBER}]`) : null;
  const hasText = (element) => element.matches("img, input, textarea, video, svg") ||
    [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());

  // A link over a whole card lies above its price: the first element with a text of its own is meant.
  function under(event) {
    const stack = document.elementsFromPoint(event.clientX, event.clientY)
      .filter((element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true }));
    const reached = stack.find(hasText);
    return numbered(reached && stack[0] && !hasText(stack[0]) && !stack[0].children.length ? reached : stack[0] || event.target);
  }
  function show(element) {
    target = element;
    if (!box) document.documentElement.append(box = document.createElement("nephila-box"));
    const area = element ? element.getBoundingClientRect() : new DOMRect();
    box.hidden = !element;
    for (const [name, value] of Object.entries({ left: area.left, top: area.top, width: area.width, height: area.height })) {
      box.style.setProperty(name, `${value}px`, "important");
    }
    box.dataset.name = element ? element.localName + [...element.classList].slice(0, 2).map((name) => `.${name}`).join("") : "";
  }
  function pick(element) {
    if (element) parent.postMessage({ pick: Number(element.getAttribute(NUMBER)), y: Math.round(scrollY) }, "*");
  }
  function moved(step) {
    const ways = {
      up: () => numbered(target.parentElement),
      down: () => target.querySelector(`[${NUMBER}]`),
      before: () => target.previousElementSibling,
      after: () => target.nextElementSibling,
    };
    const next = target ? ways[step]() : document.body.querySelector(`[${NUMBER}]`);
    return next && next.hasAttribute(NUMBER) ? next : target;
  }

  addEventListener("pointermove", (event) => { const element = under(event); if (element !== target) show(element); }, true);
  addEventListener("scroll", () => { if (target) show(target); tellPlace(); }, true);
  addEventListener("resize", tellPlace);
  addEventListener("pointerleave", () => show(null));
  for (const kind of ["mousedown", "mouseup", "auxclick", "dblclick", "submit", "dragstart"]) {
    addEventListener(kind, (event) => event.preventDefault(), true);
  }
  addEventListener("click", (event) => {
    event.preventDefault();
    event.stopPropagation();
    // A click without a pointer is the Enter key on a link.
    pick(event.detail ? under(event) : numbered(event.target));
  }, true);
  addEventListener("keydown", (event) => {
    if (STEP[event.key] && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      const next = moved(STEP[event.key]);
      if (next) { next.scrollIntoView({ block: "nearest" }); show(next); }
    } else if (event.key === "Enter" && target) {
      event.preventDefault();
      pick(target);
    }
  }, true);
  addEventListener("error", (event) => { if (event.target.localName === "link") failed += 1; }, true);
  // Where the last picked element is on the screen; the studio shows what else the click could mean there.
  function tellPlace() {
    const last = location.hash.match(/^#n(\d+)$/), element = last && document.querySelector(`[${NUMBER}="${last[1]}"]`);
    if (!element) return;
    const area = element.getBoundingClientRect();
    parent.postMessage({ right: Math.round(area.right), top: Math.round(area.top) }, "*");
  }
  function ready() {
    // The first style element is the studio's own.
    const sheets = document.querySelectorAll('link[rel="stylesheet"]').length, own = document.querySelectorAll("style").length;
    parent.postMessage({ ready: true, unstyled: sheets > 0 && failed >= sheets && own < 2 }, "*");
    tellPlace();
  }
  addEventListener("message", (event) => {
    if (event.source !== parent || !event.data) return;
    if (Number.isInteger(event.data.y)) scrollTo(0, event.data.y);
    else if (event.data.ask && document.readyState === "complete") ready();
  });
  addEventListener("load", () => {
    const last = location.hash.match(/^#n(\d+)$/);
    const element = last && document.querySelector(`[${NUMBER}="${last[1]}"]`);
    if (element) element.scrollIntoView({ block: "center" });
    ready();
  });
})();
