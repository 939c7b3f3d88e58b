// Counts the cells of a grid that differ from the server's, and reads a file into a text field. Both work without it.
"use strict";
(() => {
  const grid = document.querySelector("form[data-grid]");
  if (grid) {
    const counter = grid.querySelector("output");
    const initial = (cell) => cell.type === "checkbox" ? String(cell.defaultChecked)
      : cell.options ? ([...cell.options].find((option) => option.defaultSelected) || cell.options[0]).value : cell.defaultValue;
    const present = (cell) => cell.type === "checkbox" ? String(cell.checked) : cell.value;
    let sent = false;
    function changed() {
      const cells = [...grid.querySelectorAll("tbody input, tbody select")];
      const edited = cells.filter((cell) => present(cell) !== initial(cell));
      for (const cell of cells) if (present(cell) !== initial(cell)) cell.classList.add("edited");
      for (const row of grid.querySelectorAll("tbody tr")) {
        const box = row.querySelector("input[type=checkbox]");
        row.classList.toggle("going", Boolean(box && box.checked));
      }
      counter.textContent = edited.length ? grid.dataset.words.replace("@", edited.length) : "";
      return edited.length;
    }
    grid.addEventListener("input", (event) => { event.target.classList.toggle("edited", present(event.target) !== initial(event.target)); changed(); });
    grid.addEventListener("submit", () => { sent = true; });
    addEventListener("beforeunload", (event) => { if (!sent && changed()) event.preventDefault(); });
    // Up and down go to the same column of the next row, as in a spreadsheet; Enter goes down.
    grid.addEventListener("keydown", (event) => {
      const cell = event.target.closest("td > input, td > select");
      const step = { ArrowUp: -1, ArrowDown: 1, Enter: 1 }[event.key];
      if (!cell || !step || event.ctrlKey || event.metaKey || (cell.options && event.key !== "Enter")) return;
      const rows = [...grid.querySelectorAll("tbody tr")], row = cell.closest("tr");
      const next = rows[rows.indexOf(row) + step];
      const target = next && next.children[[...row.children].indexOf(cell.parentElement)];
      const field = target && target.querySelector("input, select");
      event.preventDefault();
      if (field) field.focus();
    });
    changed();
  }
  for (const file of document.querySelectorAll("input[data-into]")) {
    file.hidden = false;
    document.querySelector(`label[for="${file.id}"]`).hidden = false;
    file.addEventListener("change", async () => {
      if (file.files[0]) document.getElementById(file.dataset.into).value = await file.files[0].text();
    });
  }
})();
