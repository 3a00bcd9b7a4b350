// Builds npm packages from the archives of packaging/build: `stvc`, and one per platform with its
// program.
//
//   node packaging/npm/pack.mjs [--all] [DIST]      tarballs into DIST/npm, which is emptied first
//
// `stvc` depends on the platform packages of this run only: a missing one could not be installed.
// A release passes --all, which fails if an archive is missing: a published version cannot be
// changed, so a forgotten platform would have no program until the next version.
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const words = process.argv.slice(2);
const isComplete = words[0] === "--all";
if (isComplete) words.shift();
const dist = resolve(words[0] ?? join(root, "dist"));
const [, version] = readFileSync(join(root, "Cargo.toml"), "utf8").match(/^version = "(.*)"/m);

// Termux reports android; the static Linux program runs there.
const PLATFORMS = [
  { os: "win32", cpu: "x64", target: "x86_64-pc-windows-gnu", archive: "zip", program: "stvc.exe" },
  {
    os: "linux",
    cpu: "x64",
    target: "x86_64-unknown-linux-musl",
    archive: "tar.gz",
    program: "stvc",
  },
  {
    os: "linux",
    cpu: "arm64",
    target: "aarch64-unknown-linux-musl",
    archive: "tar.gz",
    program: "stvc",
  },
  {
    os: "darwin",
    cpu: "arm64",
    target: "aarch64-apple-darwin",
    archive: "tar.gz",
    program: "stvc",
  },
  {
    os: "darwin",
    cpu: "x64",
    target: "x86_64-apple-darwin",
    archive: "tar.gz",
    program: "stvc",
  },
  {
    os: "android",
    cpu: "arm64",
    target: "aarch64-unknown-linux-musl",
    archive: "tar.gz",
    program: "stvc",
  },
];
// npm adds a file called LICENSE automatically, but none of these.
const LICENSES = ["LICENSE-APACHE", "LICENSE-MIT"];
const about = {
  version,
  description: "Snapshot archive and version control for SillyTavern chat timelines",
  license: "MIT OR Apache-2.0",
  keywords: ["sillytavern", "backup", "snapshot", "version-control", "chat"],
};

const calledOf = (target) => `stvc-${version}-${target}`;
const pathOf = ({ target, archive }) => join(dist, `${calledOf(target)}.${archive}`);
const missing = PLATFORMS.filter((platform) => !existsSync(pathOf(platform)));
for (const platform of missing) {
  const { os, cpu, target } = platform;
  console.error(`${os}-${cpu}: ${pathOf(platform)} does not exist (packaging/build ${target})`);
}
if (isComplete ? missing.length > 0 : missing.length === PLATFORMS.length) process.exit(1);

const out = join(dist, "npm");
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
const work = mkdtempSync(join(tmpdir(), "stvc-npm-"));

/** @param {string} name @param {{ files: string[] }} manifest @param {(folder: string) => void} fill */
function pack(name, { files, ...manifest }, fill) {
  const folder = join(work, name);
  mkdirSync(folder);
  writeFileSync(
    join(folder, "package.json"),
    `${JSON.stringify({ name, ...about, ...manifest, files: [...files, ...LICENSES] }, null, 2)}\n`,
  );
  for (const file of LICENSES) copyFileSync(join(root, file), join(folder, file));
  fill(folder);
  const [made] = JSON.parse(
    execFileSync("npm", ["pack", "--json", "--pack-destination", out], {
      cwd: folder,
      stdio: ["ignore", "pipe", "inherit"],
      encoding: "utf8",
      shell: process.platform === "win32",
    }),
  );
  console.log(`${made.filename}  ${made.size} bytes`);
}

const made = {};
for (const platform of PLATFORMS.filter((platform) => !missing.includes(platform))) {
  const { os, cpu, target, archive, program } = platform;
  const [called, path] = [calledOf(target), pathOf(platform)];
  const name = `stvc-${os}-${cpu}`;
  pack(
    name,
    {
      os: [os],
      cpu: [cpu],
      preferUnplugged: true,
      files: [program, "LICENSES-OF-DEPENDENCIES.txt"],
    },
    (folder) => {
      const into = mkdtempSync(join(work, "archive-"));
      if (archive === "zip") execFileSync("python3", ["-m", "zipfile", "-e", path, into]);
      else execFileSync("tar", ["-xzf", path, "-C", into]);
      for (const file of [program, "LICENSES-OF-DEPENDENCIES.txt"])
        copyFileSync(join(into, called, file), join(folder, file));
      chmodSync(join(folder, program), 0o755);
    },
  );
  made[name] = version;
}
pack(
  "stvc",
  {
    bin: { stvc: "stvc.js" },
    engines: { node: ">=18" },
    optionalDependencies: made,
    files: ["stvc.js"],
  },
  (folder) => {
    for (const file of ["stvc.js"])
      copyFileSync(join(root, "packaging/npm", file), join(folder, file));
    chmodSync(join(folder, "stvc.js"), 0o755);
    copyFileSync(join(root, "README.md"), join(folder, "README.md"));
  },
);
rmSync(work, { recursive: true });
