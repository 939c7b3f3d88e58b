// Ctrl-K: go to a screen, take an action of the page, or search, by a few letters; g and a letter goes to a screen at once.
// All of it is links and buttons that the page has anyway.
"use strict";
(() => {
  const dialog = document.getElementById("palette");
  if (!dialog) return;
  const input = dialog.querySelector("input"), list = dialog.querySelector("ul");
  const GO_MS = 1500;
  let choices = [], at = 0, goes = 0;

  function entries() {
    const screens = [...document.querySelectorAll(".rail nav a")].map((link) => [link.textContent.trim(), list.dataset.screen, link]);
    const actions = [...document.querySelectorAll("main .actions a, main .actions button")].map((one) => [one.textContent.trim(), list.dataset.action, one]);
    return [...actions, ...screens];
  }
  // The letters of the words stand in the name in their order.
  function matches(words, name) {
    let from = 0;
    for (const letter of words.toLowerCase()) {
      if (letter === " ") continue;
      from = name.toLowerCase().indexOf(letter, from) + 1;
      if (!from) return false;
    }
    return true;
  }
  function draw() {
    const words = input.value.trim();
    choices = entries().filter(([name]) => matches(words, name));
    if (words) choices.push([`${list.dataset.words} “${words}”`, "", null]);
    at = Math.min(at, Math.max(choices.length - 1, 0));
    list.replaceChildren(...choices.map(([name, kind, target], i) => {
      const row = document.createElement("li"), label = document.createElement("span");
      row.id = "palette-" + i;
      row.setAttribute("role", "option");
      row.setAttribute("aria-selected", String(i === at));
      label.textContent = kind;
      row.append(name, label);
      if (target && target.dataset.go) {
        const key = document.createElement("kbd");
        key.textContent = "g " + target.dataset.go;
        label.append(" ", key);
      }
      row.addEventListener("click", () => take(i));
      return row;
    }));
    input.setAttribute("aria-activedescendant", choices.length ? "palette-" + at : "");
    if (list.children[at]) list.children[at].scrollIntoView({ block: "nearest" });
  }
  function take(i) {
    if (!choices[i]) return;
    const [, , target] = choices[i], words = input.value.trim();
    dialog.close();
    if (target) target.click();
    else location.assign(list.dataset.search + "?q=" + encodeURIComponent(words));
  }

  function open() {
    if (dialog.open) { dialog.close(); return; }
    input.value = ""; at = 0;
    dialog.showModal();
    draw();
    input.focus();
  }
  // In the capture phase: a key after g is no key of the page.
  addEventListener("keydown", (event) => {
    const plain = !event.ctrlKey && !event.metaKey && !event.altKey, inField = event.target.closest("input, textarea, select");
    if (!plain) {
      if (!event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") { event.preventDefault(); open(); }
      return;
    }
    if (inField || dialog.open || event.repeat) return;
    const link = Date.now() - goes < GO_MS && document.querySelector(`.rail nav a[data-go="${CSS.escape(event.key.toLowerCase())}"]`);
    goes = event.key === "g" ? Date.now() : 0;
    if (link) link.click();
    else if (event.key === "?") open();
    else return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }, true);
  input.addEventListener("input", () => { at = 0; draw(); });
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      at = (at + (event.key === "ArrowDown" ? 1 : choices.length - 1)) % Math.max(choices.length, 1);
      draw();
    } else if (event.key === "Enter") { event.preventDefault(); take(at); }
  });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
})();
