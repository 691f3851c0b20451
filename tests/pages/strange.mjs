// Opens an HTML report with names and stacks that try to break it: node strange.mjs FILE PICTURES

import assert from "node:assert/strict";
import path from "node:path";
import { until, withPage } from "./browser.mjs";

const [file, pictures] = process.argv.slice(2);

await withPage(file, file, {}, async (page) => {
  let dialogs = 0;
  page.on("dialog", (dialog) => {
    dialogs++;
    return dialog.dismiss();
  });
  const names = await page.locator("#body td.name > *").allTextContents();
  for (const name of ["</script><script>alert(1)</script>", "<img src=x onerror=alert(2)>", "&amp<b>\"'`${1}"]) {
    assert.ok(names.includes(name), `${name} is not shown as it is: ${names.slice(0, 9).join()}`);
    await page.locator("#search").fill(name);
    await page.locator("#body td.name > *").first().click();
    assert.equal(await page.locator("#callers-title").textContent(), name);
  }
  await page.locator("#search").fill("");
  const first = await page.locator("#body tr").first().locator(".number").allTextContents();
  assert.deepEqual([first[0], first[2]], ["30.0 %", "30.0 %"], "stacks without a number of samples have their weights");
  assert.equal(await page.locator("img").count(), 0);
  assert.equal(await page.locator("script").count(), 2);
  assert.equal(dialogs, 0);

  // A stack of 500 frames: it scrolls, from its root to its end.
  const scroller = page.locator("#scroller");
  const extent = () => scroller.evaluate((box) => [box.scrollTop, box.clientHeight, box.scrollHeight]);
  const [top, height, whole] = await until("the graph is laid out", extent, ([, , whole]) => whole > 500 * 15);
  assert.ok(Math.abs(top + height - whole) <= 2, `the root is not in view: ${[top, height, whole]}`);
  const root = await page.locator("#canvas").screenshot();
  await scroller.evaluate((box) => (box.scrollTop = 0));
  await until("the end of the stack shows", () => page.locator("#canvas").screenshot(), (now) => !now.equals(root));

  // A very long name stays inside its place.
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(width <= 1440, `the page is ${width} pixels wide`);
  await page.locator("#search").fill("long::long");
  await page.locator("#body td.name > *").first().click();
  await page.screenshot({ path: path.join(pictures, "strange.png") });
});
