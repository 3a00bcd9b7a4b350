#!/usr/bin/env node
// Starts the program of this platform, which is in a separate package: the installation downloads
// nothing else and runs no script.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");

const name = `stvc-${process.platform}-${process.arch}`;
const file = process.platform === "win32" ? "stvc.exe" : "stvc";

let program;
try {
  program = require.resolve(`${name}/${file}`);
} catch {
  const known = Object.keys(require("./package.json").optionalDependencies).join(", ");
  console.error(`stvc: there is no program for ${process.platform} on ${process.arch} here.`);
  console.error(
    known.includes(name)
      ? `Install it again without --omit=optional (package ${name}).`
      : `There are ${known}. Elsewhere: cargo install stvc`,
  );
  process.exit(1);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit", windowsHide: true });
child.on("error", (error) => {
  console.error(`stvc: ${program}: ${error.message}`);
  process.exit(1);
});
// The terminal sends Ctrl-C to both processes; wait until the program has finished.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("exit", (code, signal) => process.exit(code ?? 128 + (constants.signals[signal] ?? 0)));
