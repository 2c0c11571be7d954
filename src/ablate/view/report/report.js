"use strict";
// Draws the figures that stand in the page as JSON; menus, search and sorting. Nothing is fetched.
const page = JSON.parse(document.getElementById("data").textContent);
const settings = { responsive: true, displaylogo: false, displayModeBar: false };

function draw(id, figure) {
  const place = document.getElementById(id);
  return place ? Plotly.newPlot(place, figure.data, fitted(figure.layout, place.clientWidth), settings).then(() => scalable(place)) : Promise.resolve();
}

// Beside long row names a narrow screen has room for every second tick only.
function fitted(layout, width) {
  const ticks = layout.xaxis.tickvals;
  if (width >= 450 || layout.margin.l < 100 || !ticks || ticks.length < 4) return layout;
  const kept = (items) => items.filter((_, place) => place % 2 === ticks.length % 2);
  return { ...layout, xaxis: { ...layout.xaxis, tickvals: kept(ticks), ticktext: kept(layout.xaxis.ticktext) } };
}

// Print scales a picture with its column instead of cutting it.
function scalable(place) {
  for (const svg of place.querySelectorAll("svg.main-svg")) {
    svg.setAttribute("viewBox", `0 0 ${svg.getAttribute("width")} ${svg.getAttribute("height")}`);
  }
  if (!place.dataset.watched) {
    place.dataset.watched = "yes";
    place.on("plotly_afterplot", () => scalable(place));
  }
}

function chooseArm(ids, arm) {
  for (const id of ids) {
    const place = document.getElementById(id);
    Plotly.restyle(place, { visible: place.data.map((trace) => arm < 0 || trace.meta === arm) });
  }
  hideEmpty(ids);
}

// A site that the chosen arm does not have leaves no empty axes.
function hideEmpty(ids) {
  for (const id of ids) {
    const place = document.getElementById(id);
    place.closest(".panel").hidden = !place.data.some((trace) => trace.visible);
  }
}

function ratio(run, twin) {
  return run.linears.map((linear, row) => {
    const other = twin.linears.indexOf(linear);
    return run.steps.map((step, column) => {
      const at = twin.steps.indexOf(step);
      const mine = run.z[row][column];
      const its = other < 0 || at < 0 ? null : twin.z[other][at];
      return mine === null || its === null ? null : (mine - its) / 100;
    });
  });
}

// The colours' limit, in decades: what 98 % of the growths lie within, at least half a decade.
function span(rows) {
  const sizes = rows.flat().filter((x) => x !== null).map(Math.abs).sort((a, b) => a - b);
  return Math.max(0.5, sizes.length ? sizes[Math.floor(0.98 * (sizes.length - 1))] : 0);
}

function heatmap(name, run, z, range) {
  const place = document.getElementById("map-" + name);
  const figure = page.maps.figures[name];
  const height = Math.max(220, 70 + 13 * run.linears.length);
  place.style.height = height + "px";
  const trace = { ...figure.data[0], x: run.steps, y: run.linears, z, zmin: range[0], zmax: range[1] };
  const layout = { ...figure.layout, yaxis: { ...figure.layout.yaxis }, xaxis: { ...figure.layout.xaxis }, height };
  return Plotly.react(place, [trace], layout, settings).then(() => scalable(place));
}

function chooseRun(id) {
  const byId = new Map(page.maps.runs.map((entry) => [entry.id, entry]));
  const run = byId.get(id);
  const twin = byId.get(run.twin);
  const level = (entry) => entry.z.map((row) => row.map((x) => (x === null ? null : x / 100)));
  const known = [run, twin].filter(Boolean).flatMap((entry) => entry.z.flat()).filter((x) => x !== null);
  const range = known.reduce(([low, high], x) => [Math.min(low, x / 100), Math.max(high, x / 100)], [Infinity, -Infinity]);
  const drawn = [heatmap("run", run, level(run), range)];
  for (const name of ["growth", "twin"]) document.getElementById("panel-" + name).hidden = !twin;
  if (twin) {
    document.getElementById("twin-name").textContent = `${twin.arm}, ${twin.label}`;
    const growth = ratio(run, twin);
    const limit = span(growth);
    drawn.push(heatmap("twin", twin, level(twin), range), heatmap("growth", run, growth, [-limit, limit]));
  }
  document.getElementById("run-name").textContent = `${run.arm}, ${run.label}`;
  document.getElementById("no-twin").hidden = Boolean(twin);
  return Promise.all(drawn);
}

function searchable(table) {
  const rows = [...table.tBodies[0].rows];
  const search = document.getElementById("search");
  const found = document.getElementById("found");
  search.addEventListener("input", () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      count += row.hidden ? 0 : 1;
    }
    found.textContent = `${count} of ${rows.length} runs`;
  });
}

// A click on a heading sorts: numbers by size, the rest as text; a second click turns it around.
function sortable(table) {
  for (const head of table.tHead.rows[0].cells) {
    head.tabIndex = 0;
    head.setAttribute("role", "button");
    const sort = () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const key = (row) => row.cells[head.cellIndex].textContent;
      const compare = (a, b) => {
        const [x, y] = [parseFloat(key(a)), parseFloat(key(b))];
        if (!Number.isNaN(x) && !Number.isNaN(y)) return x - y;
        return Number.isNaN(x) && Number.isNaN(y) ? key(a).localeCompare(key(b)) : Number.isNaN(x) ? 1 : -1;
      };
      const body = table.tBodies[0];
      body.append(...[...body.rows].sort((a, b) => (down ? -1 : 1) * compare(a, b)));
    };
    head.addEventListener("click", sort);
    head.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sort(); }
    });
  }
}

async function start() {
  const table = document.getElementById("runs-table");
  searchable(table);
  sortable(table);
  for (const [id, figure] of Object.entries(page.figures)) await draw(id, figure);
  for (const [name, ids] of Object.entries(page.arms)) {
    const menu = document.getElementById(name);
    if (menu) menu.addEventListener("change", () => chooseArm(ids, Number(menu.value)));
    hideEmpty(ids);
  }
  const run = document.getElementById("choose-run");
  if (run) {
    run.addEventListener("change", () => chooseRun(run.value));
    await chooseRun(run.value);
  }
  document.documentElement.dataset.drawn = "yes";
}

start();
