"use strict";
// Tables that sort, filter and turn pages. The rows come from the JSON beside each table; only what is seen is built.
for (const grid of document.querySelectorAll(".grid")) {
  const PAGE = matchMedia("(max-width: 40rem)").matches ? 10 : 50;
  const table = grid.querySelector("table");
  const heads = [...table.tHead.rows[0].cells];
  const kinds = heads.map((head) => head.className);
  const labels = heads.map((head) => head.textContent);
  const rows = JSON.parse(grid.querySelector('script[type="application/json"]').textContent);
  const filter = grid.querySelector(".filter");
  const pager = grid.querySelector(".pager");
  const words = new Intl.Collator("en", { numeric: true });
  let texts = null;
  let shown = rows.map((_, place) => place);
  let sorted = -1;
  let rising = true;
  let page = 0;

  const size = (bytes) => {
    for (const unit of ["B", "kB", "MB", "GB"]) {
      if (bytes < 1000) return (unit === "B" ? bytes : bytes.toFixed(1)) + " " + unit;
      bytes /= 1000;
    }
    return bytes.toFixed(1) + " TB";
  };
  const told = (value, kind) => {
    if (value === null) return "";
    if (typeof value === "string") return value;
    return kind === "bytes" ? size(value) : value.toLocaleString("en");
  };
  const draw = () => {
    const body = document.createElement("tbody");
    body.setAttribute("role", "rowgroup"); // said, for a phone that shows rows as cards
    for (const place of shown.slice(page * PAGE, (page + 1) * PAGE)) {
      const line = body.insertRow();
      line.setAttribute("role", "row");
      rows[place].forEach((value, column) => {
        const cell = line.insertCell();
        cell.className = value === 0 ? kinds[column] + " zero" : kinds[column];
        cell.setAttribute("role", "cell");
        cell.dataset.label = labels[column];
        cell.textContent = told(value, kinds[column]);
      });
    }
    table.tBodies[0].replaceWith(body);
    const pages = Math.ceil(shown.length / PAGE);
    const [back, on] = pager.querySelectorAll("button");
    back.disabled = page === 0;
    on.disabled = page >= pages - 1;
    const from = shown.length ? page * PAGE + 1 : 0;
    const until = Math.min((page + 1) * PAGE, shown.length);
    pager.querySelector("[role=status]").textContent =
      from.toLocaleString("en") + " to " + until.toLocaleString("en") + " of " + shown.length.toLocaleString("en");
    pager.hidden = rows.length <= PAGE && shown.length === rows.length;
  };
  const order = () => {
    if (sorted < 0) return;
    const sign = rising ? 1 : -1;
    shown.sort((left, right) => {
      const a = rows[left][sorted];
      const b = rows[right][sorted];
      if (a === null || b === null) return a === b ? left - right : a === null ? 1 : -1;
      const step = typeof a === "number" && typeof b === "number" ? a - b : words.compare(a, b);
      return step * sign || left - right;
    });
  };
  const sortBy = (column) => {
    rising = column === sorted ? !rising : kinds[column] === "text" || kinds[column] === "url";
    sorted = column;
    heads.forEach((head, place) => {
      if (place === column) head.setAttribute("aria-sort", rising ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    });
    page = 0;
    order();
    draw();
  };
  const narrow = (wanted) => {
    texts = texts || rows.map((row) => row.join("\n").toLowerCase());
    const parts = wanted.toLowerCase().split(/\s+/).filter(Boolean);
    shown = rows.map((_, place) => place).filter((place) => parts.every((part) => texts[place].includes(part)));
    page = 0;
    order();
    draw();
  };

  grid.classList.add("cards");
  table.setAttribute("role", "table");
  table.tHead.setAttribute("role", "rowgroup");
  table.tHead.rows[0].setAttribute("role", "row");
  heads.forEach((head, column) => {
    head.setAttribute("role", "columnheader");
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    button.addEventListener("click", () => sortBy(column));
    head.replaceChildren(button);
  });
  pager.addEventListener("click", (event) => {
    const step = Number(event.target.dataset.step || 0);
    if (step) {
      page += step;
      draw();
    }
  });
  if (filter) {
    filter.hidden = false;
    filter.querySelector("input").addEventListener("input", (event) => narrow(event.target.value));
  }
  draw();
}
