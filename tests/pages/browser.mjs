// Chromium without a window, for the tests of pages.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import path from "node:path";

/** Folder with the installed packages. */
export const packages = path.join(process.env.BPFPROF_PAGES, "node_modules");

const { chromium } = createRequire(path.join(packages, "x"))("playwright-core");

/** Far above what any step takes: a step that takes so long hangs. */
const HUNG = 60_000;

/** Opens a file in a page, hands it to `act`, and fails when the page complained or asked for anything outside of `folder`. */
export async function withPage(file, folder, options, act) {
  const browser = await chromium.launch({
    executablePath: process.env.BPFPROF_CHROMIUM ?? "/usr/bin/chromium",
    // The tests run as root, and there is no GPU.
    args: ["--no-sandbox", "--enable-unsafe-swiftshader"],
    timeout: HUNG,
  });
  try {
    const page = await browser.newPage({ viewport: { width: 1440, height: 1000 }, colorScheme: "light", ...options });
    page.setDefaultTimeout(HUNG);
    const complaints = [];
    page.on("console", (message) => {
      // What software rendering says of its own speed.
      const isOfDriver = message.text().includes("GL Driver Message");
      if (["error", "warning"].includes(message.type()) && !isOfDriver) complaints.push(message.text());
    });
    page.on("pageerror", (error) => complaints.push(error.stack));
    page.on("request", (request) => {
      const inside = request.url().startsWith(`file://${folder}`) || /^(data|blob):/.test(request.url());
      if (!inside) complaints.push(`request for ${request.url()}`);
    });
    await page.goto(`file://${file}`);
    await act(page);
    assert.deepEqual(complaints, []);
  } finally {
    await browser.close();
  }
}

/** Waits until `ask` answers so that `judge` accepts it, and returns the answer. */
export async function until(what, ask, judge) {
  const end = Date.now() + HUNG;
  for (;;) {
    const answer = await ask();
    if (judge(answer)) return answer;
    assert.ok(Date.now() < end, `${what}; the last answer was ${JSON.stringify(answer)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
