// Lets stvc.js start the program of another system; packaging/try makes Node load it first.
//
// STVC_TRY_PLATFORM is the name of that system's package, STVC_TRY_RUNNER the command that runs its
// programs here.
"use strict";

const childProcess = require("node:child_process");

const [, platform, arch] = process.env.STVC_TRY_PLATFORM.split("-");
const runner = process.env.STVC_TRY_RUNNER;
const { spawn } = childProcess;
childProcess.spawn = (program, args, options) =>
  runner ? spawn(runner, [program, ...args], options) : spawn(program, args, options);
Object.defineProperty(process, "platform", { value: platform });
Object.defineProperty(process, "arch", { value: arch });
