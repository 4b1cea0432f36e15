// Plays one scene: node run.mjs <url> <module.function> <json of what it is given>
import { tell } from "./scene.mjs";

const [url, name, given] = process.argv.slice(2);
const [module, scene] = name.split(".");
process.on("unhandledRejection", (error) => fail(error));

function fail(error) {
  const cause = error?.cause ? ` because of ${error.cause?.stack}` : "";
  tell({ failed: String(error?.stack ?? error) + cause }, () => process.exit(1));
}

try {
  const scenes = await import(`./${module}.mjs`);
  const result = await scenes[scene]({ url, ...JSON.parse(given) });
  tell({ result: result ?? null }, () => process.exit(0));
} catch (error) {
  fail(error);
}
