// The value under the pointer of a plot, and times in the clock of the viewer. The plots are drawn by the server; without
// script their times are in UTC.
"use strict";
(() => {
  const NS = "http://www.w3.org/2000/svg";
  const clock = (seconds, long) => new Date(seconds * 1000).toLocaleString([], long
    ? { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" }
    : { hour: "2-digit", minute: "2-digit", second: "2-digit" });

  function local(root) {
    for (const time of root.querySelectorAll("time[datetime]")) {
      const at = new Date(time.dateTime);
      if (!isNaN(at)) time.title = at.toLocaleString() + " (" + time.title.replace(/ \(.*/, "") + ")";
    }
    for (const figure of root.querySelectorAll("figure[data-plot]")) {
      const data = JSON.parse(figure.dataset.plot);
      const long = data.last - data.first > 86400;
      for (const label of figure.querySelectorAll("text[data-at]")) label.textContent = clock(Number(label.dataset.at), long);
      const utc = figure.querySelector(".utc");
      if (utc) utc.remove();
    }
  }

  function show(figure, svg, share) {
    const data = JSON.parse(figure.dataset.plot), offset = share * (data.last - data.first);
    let index = 0;
    data.times.forEach((at, i) => { if (Math.abs(at - offset) < Math.abs(data.times[index] - offset)) index = i; });
    const box = svg.viewBox.baseVal, left = Number(svg.dataset.left);
    const x = left + (box.width - left) * data.times[index] / (data.last - data.first);
    let line = svg.querySelector(".cross");
    if (!line) { line = document.createElementNS(NS, "line"); line.setAttribute("class", "cross"); svg.append(line); }
    for (const [name, value] of [["x1", x], ["x2", x], ["y1", svg.dataset.top], ["y2", svg.dataset.bottom]]) line.setAttribute(name, value);
    const values = Object.entries(data.values).filter(([, numbers]) => numbers.some(Boolean));
    figure.querySelector("output").textContent = [clock(data.first + data.times[index], data.last - data.first > 86400),
      ...values.map(([name, numbers]) => name + " " + numbers[index].toLocaleString())].join(" · ");
  }

  addEventListener("pointermove", (event) => {
    const svg = event.target.closest && event.target.closest("figure[data-plot] svg");
    for (const line of document.querySelectorAll(".plot .cross")) if (!svg || line.ownerSVGElement !== svg) line.remove();
    if (!svg) return;
    const box = svg.getBoundingClientRect(), left = Number(svg.dataset.left) / svg.viewBox.baseVal.width;
    show(svg.closest("figure"), svg, Math.min(Math.max(((event.clientX - box.left) / box.width - left) / (1 - left), 0), 1));
  });

  local(document);
  addEventListener("console:fresh", (event) => local(event.target));
})();
