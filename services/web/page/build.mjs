// Makes dist/ out of src/: `npm ci --ignore-scripts && node build.mjs`. `node build.mjs --check DIST` compares instead, and
// fails if what is committed is not what the sources make. gzip's own bytes may differ from one release of Node to the next,
// so what is in them is compared.
import { build } from "esbuild";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { gunzipSync, gzipSync } from "node:zlib";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const isCheck = process.argv[2] === "--check";
const output = (isCheck ? process.argv[3] : process.argv[2]) ?? join(here, "dist");
const common = {
  bundle: true,
  minify: true,
  charset: "utf8",
  // The notices of packages are in NOTICE, which goes with every copy of the program.
  legalComments: "none",
  target: "es2022",
  absWorkingDir: here,
  write: false,
};

const made = new Map();
async function script(name, entry) {
  const result = await build({
    ...common,
    entryPoints: [entry],
    format: "iife",
    jsx: "automatic",
    jsxImportSource: "preact",
  });
  made.set(name, Buffer.from(result.outputFiles[0].contents));
}

await script("app.js", "src/main.tsx");
await script("graph.js", "src/graph_worker.ts");
const style = await build({ ...common, entryPoints: ["src/style.css"] });
made.set("style.css", Buffer.from(style.outputFiles[0].contents));
made.set("icon.svg", await readFile(join(here, "src/icon.svg")));

await mkdir(output, { recursive: true });
let differ = false;
let sum = 0;
for (const [name, bytes] of made) {
  const packed = gzipSync(bytes, { level: 9 });
  // The byte that names the system on which it was packed.
  packed[9] = 255;
  sum += packed.length;
  const file = join(output, `${name}.gz`);
  if (!isCheck) {
    await writeFile(file, packed);
  } else if (!gunzipSync(await readFile(file)).equals(bytes)) {
    console.log(`${name} is not what the sources make: run \`npm ci --ignore-scripts && node build.mjs\` there`);
    differ = true;
  }
  console.log(`${name}: ${bytes.length} bytes, ${packed.length} compressed`);
}
console.log(`all: ${sum} compressed`);
process.exitCode = differ ? 1 : 0;
