// Opens a file in Speedscope itself: node speedscope.mjs FILE PICTURES EVENT FUNCTION

import assert from "node:assert/strict";
import path from "node:path";
import { packages, until, withPage } from "./browser.mjs";

const [file, pictures, event, wanted] = process.argv.slice(2);
const folder = path.join(packages, "speedscope/dist/release");

await withPage(path.join(folder, "index.html"), folder, {}, async (page) => {
  await page.locator("input[type=file]").setInputFiles(file);
  const shown = () => page.locator("body").innerText();
  const loaded = await until("the profile is shown", shown, (text) => text.includes("Sandwich"));
  assert.ok(loaded.includes(event), loaded);
  await page.getByText("Sandwich").click();
  await until("the function is in its table", shown, (text) => text.includes(wanted));
  await page.screenshot({ path: path.join(pictures, "speedscope.png") });
});
