// Opens an HTML report of the workload `spin` and uses it: node report.mjs FILE PICTURES

import assert from "node:assert/strict";
import path from "node:path";
import { until, withPage } from "./browser.mjs";

const [file, pictures] = process.argv.slice(2);
const rowNames = (page) => page.locator("#body td.name > *").allTextContents();
const text = (page, selector) => page.locator(selector).textContent();
const looks = (page) => page.locator("#canvas").screenshot();
const differs = (before) => (after) => !before.equals(after);

await withPage(file, file, {}, async (page) => {
  // The header.
  assert.match(await text(page, "#summary"), /samples of cpu-clock/);
  const labels = await page.locator("#header dt").allTextContents();
  for (const label of ["event", "counter", "quality"]) assert.ok(labels.includes(label), labels.join());

  // The table: sorted by self, and by what is clicked.
  const self = await rowNames(page);
  assert.ok(self[0].includes("cpu_time::mix"), `${self[0]} comes first, not what spins`);
  const head = page.locator("#head button", { hasText: "function" });
  await head.click();
  const ascending = (a, b) => a.localeCompare(b, "en");
  const sorted = await rowNames(page);
  assert.deepEqual(sorted, [...sorted].sort(ascending));
  assert.equal(await page.locator("#head th.name").getAttribute("aria-sort"), "ascending");
  await head.click();
  const reversed = await rowNames(page);
  assert.deepEqual(reversed, [...reversed].sort((a, b) => ascending(b, a)));
  assert.notDeepEqual(reversed, sorted);

  // The search filters rows, lights up frames, and tells their share.
  const plain = await looks(page);
  await page.keyboard.press("/");
  await page.keyboard.type("spin_alpha");
  const found = await rowNames(page);
  assert.ok(found.length > 0 && found.every((name) => name.includes("spin_alpha")), found.join());
  const share = Number.parseFloat(await text(page, "#found"));
  assert.ok(share > 15 && share < 85, `${share} % are in spin_alpha, one of two threads`);
  await until("the search shows in the graph", () => looks(page), differs(plain));
  await page.screenshot({ path: path.join(pictures, "report-search.png") });
  await page.keyboard.press("Escape");
  assert.equal(await text(page, "#found"), "");

  // A row chooses its function: callers and callees.
  const alpha = page.locator("#body td.name > *", { hasText: /spin_alpha$/ }).first();
  await alpha.click();
  assert.match(await text(page, "#callers-title"), /spin_alpha$/);
  assert.ok((await page.locator("#callers li").count()) > 0);
  assert.match(await text(page, "#callees"), /%/);

  // The graph by keyboard: move, zoom, back.
  const whole = await looks(page);
  const canvas = page.locator("#canvas");
  await canvas.focus();
  for (let step = 0; step < 3; step++) await page.keyboard.press("ArrowUp");
  const status = await text(page, "#status");
  assert.match(status, /total .*%/);
  await page.keyboard.press("Enter");
  await until("the zoom shows", () => looks(page), differs(whole));
  const chosen = await text(page, "#callers-title");
  assert.ok(status.startsWith(chosen), `${status} is not ${chosen}`);
  await page.keyboard.press("Escape");

  // By mouse: the tip, and a click that zooms.
  await page.locator("#direction button", { hasText: "Icicle" }).click();
  const icicle = await until("the icicle shows", () => looks(page), differs(whole));
  await canvas.hover({ position: { x: 30, y: 48 } });
  const tip = page.locator("#tip");
  await tip.waitFor({ state: "visible" });
  const name = await tip.locator("strong").textContent();
  await canvas.click({ position: { x: 30, y: 48 } });
  assert.equal(await text(page, "#callers-title"), name);
  const zoomed = await until("the click zooms", () => looks(page), differs(icicle));
  await page.locator("#reset").click();
  await until("the reset shows all", () => looks(page), differs(zoomed));

  // Events: one with samples, one without.
  const events = await page.locator("#event option").allTextContents();
  assert.equal(events.length, 3);
  assert.match(events[2], /alignment-faults \(no samples\)/);
  const clock = await looks(page);
  await page.locator("#event").selectOption({ index: 1 });
  const faults = await until("the other event shows", () => looks(page), differs(clock));
  await page.locator("#event").selectOption({ index: 2 });
  await until("an event without samples shows nothing", () => looks(page), differs(faults));
  await page.locator("#event").selectOption({ index: 0 });

  // Colours.
  const colours = await page.locator("#color option").allTextContents();
  assert.deepEqual(colours.slice(0, 2), ["Kind", "Object"]);
  assert.ok(colours.includes("faults/s"), colours.join());
  const byKind = await looks(page);
  await page.locator("#color").selectOption("object");
  await until("colours by object show", () => looks(page), differs(byKind));

  // Own code alone: what leads to it is gone, what it calls is not, and a function of the table is still chosen there.
  const everything = await looks(page);
  const own = page.locator("#own");
  await own.check();
  const less = await until("own code alone shows", () => looks(page), differs(everything));
  await canvas.focus();
  for (let step = 0; step < 3; step++) await page.keyboard.press("ArrowDown");
  assert.doesNotMatch(await text(page, "#status"), /_start|__libc_start|clone3|std::/);
  await page.screenshot({ path: path.join(pictures, "report-own-code.png") });
  await page.keyboard.press("Escape");
  await own.uncheck();
  await until("all code shows again", () => looks(page), differs(less));

  // Threads have a table too.
  await page.locator("#tables button", { hasText: "Threads" }).click();
  const threads = await rowNames(page);
  assert.ok(["alpha", "beta"].every((name) => threads.some((thread) => thread.startsWith(`${name} (`))), threads.join());

  // Dark, by the toggle.
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await background();
  await page.locator("#theme").click();
  assert.notEqual(await background(), light);
  await page.screenshot({ path: path.join(pictures, "report-dark.png") });
});

await withPage(file, file, { colorScheme: "dark", viewport: { width: 420, height: 900 } }, async (page) => {
  const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  assert.ok(background.match(/\d+/g).every((channel) => Number(channel) < 60), `${background} is not dark`);
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(width <= 420, `the page is ${width} pixels wide on a screen of 420`);
  await page.screenshot({ path: path.join(pictures, "report-narrow.png") });
});
