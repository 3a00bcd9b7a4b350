// Install the packages of pack.mjs into an empty place, from the tarballs alone, and run the program.
//
//   node packaging/npm/try.mjs [FOLDER OF TARBALLS]
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const from = resolve(process.argv[2] ?? "dist/npm");
const tarballs = readdirSync(from).filter((name) => name.endsWith(".tgz"));
const own = tarballs.find((name) => name.startsWith(`stvc-${process.platform}-${process.arch}-`));
const main = tarballs.find((name) => /^stvc-\d/.test(name));
if (!own || !main)
  throw new Error(`nothing for ${process.platform}-${process.arch} among ${tarballs.join(", ")}`);

const place = mkdtempSync(join(tmpdir(), "stvc-try-"));
const isWindows = process.platform === "win32";
const run = (program, args) =>
  execFileSync(program, args, {
    cwd: place,
    encoding: "utf8",
    shell: isWindows,
    stdio: ["ignore", "pipe", "inherit"],
  });
try {
  writeFileSync(join(place, "package.json"), '{ "private": true }');
  // Nothing may be fetched and nothing may run.
  run("npm", [
    "install",
    "--offline",
    "--ignore-scripts",
    "--no-audit",
    "--no-fund",
    join(from, own),
    join(from, main),
  ]);
  const stvc = join(place, "node_modules", ".bin", isWindows ? "stvc.cmd" : "stvc");
  const version = run(stvc, ["--version"]).trim();
  if (!version.startsWith("stvc ")) throw new Error(version);
  const demo = run(stvc, ["demo"]);
  if (!demo.includes("stvc restore")) throw new Error(demo);
  // What it answers comes through, and so does how it ends.
  let code = 0;
  try {
    execFileSync(stvc, ["status"], { cwd: place, shell: isWindows, stdio: "ignore" });
  } catch (error) {
    code = error.status;
  }
  if (code !== 1) throw new Error(`stvc status where no library is exits with ${code}`);
  console.log(
    `${version}: installed from ${main} and ${own}, and the demo runs (node ${process.version})`,
  );
} finally {
  rmSync(place, { recursive: true, force: true });
}
