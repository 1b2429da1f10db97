// Run commands_in_process.py in WebAssembly: node in_node.mjs FOLDER COMMANDS.json ANSWERS.json SITE-PACKAGES
// FOLDER has node_modules/pyodide. Every absolute path below / is the machine's own.
import { createRequire } from "node:module";
import { readdirSync, statSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [folder, commands, answers, source, site] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(createRequire(`${folder}/`).resolve("pyodide/pyodide.mjs")).href);
const python = await loadPyodide({ stdout: console.error, stderr: console.error });
const own = new Set(python.FS.readdir("/"));
for (const name of readdirSync("/")) {
  if ((own.has(name) && !["home", "tmp"].includes(name)) || !statSync(`/${name}`).isDirectory()) continue;
  if (!own.has(name)) python.FS.mkdir(`/${name}`);
  python.FS.mount(python.FS.filesystems.NODEFS, { root: `/${name}` }, `/${name}`);
}
// What is redacted are the names of this user and home.
python.globals.set("words", python.toPy([commands, answers, source, site, process.env.HOME ?? "/"]));
await python.runPythonAsync(`
import os, sys
commands, answers, source, site, os.environ["HOME"] = words
sys.dont_write_bytecode = True
sys.path[:0] = [source, source + "/tests/portable"]
sys.path.append(site)
import commands_in_process
commands_in_process.main(commands, answers)
`);
