"use strict";
// Draws the figures that stand in the page as JSON. Nothing is fetched.
const page = JSON.parse(document.getElementById("data").textContent);
const settings = { responsive: true, displaylogo: false, displayModeBar: false };

function draw(id, figure) {
  const place = document.getElementById(id);
  return place ? Plotly.newPlot(place, figure.data, figure.layout, settings) : Promise.resolve();
}

function chooseArm(arm) {
  for (const id of Object.keys(page.outputs)) {
    const place = document.getElementById(id);
    Plotly.restyle(place, {
      visible: place.data.map((trace) => arm < 0 || trace.meta === arm),
      "line.width": arm < 0 ? 1.3 : 2,
    });
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
  return Plotly.react(place, [trace], layout, settings);
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

async function start() {
  for (const [id, figure] of Object.entries({ ...page.rates, ...page.outputs })) await draw(id, figure);
  const arm = document.getElementById("choose-arm");
  if (arm) arm.addEventListener("change", () => chooseArm(Number(arm.value)));
  const run = document.getElementById("choose-run");
  if (run) {
    run.addEventListener("change", () => chooseRun(run.value));
    await chooseRun(run.value);
  }
  document.documentElement.dataset.drawn = "yes";
}

start();
