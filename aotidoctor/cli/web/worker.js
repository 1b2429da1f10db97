// The worker: Python in WebAssembly. Files are mounted and read by slices, so that a package need not fit into memory.
import { loadPyodide } from "./pyodide/pyodide.mjs";

const FOLDER = "/dropped";
const started = start();

async function start() {
  const python = await loadPyodide({ indexURL: new URL("pyodide/", import.meta.url).href, stdout: () => {}, stderr: () => {} });
  const archive = await (await fetch(new URL("python.zip", import.meta.url))).arrayBuffer();
  python.unpackArchive(archive, "zip", { extractDir: "/site" });
  python.FS.mkdir(FOLDER);
  python.runPython("import sys; sys.path.insert(0, '/site'); from aotidoctor.cli.web.in_page import examine");
  postMessage({ ready: true });
  return python;
}

let last = Promise.resolve();
onmessage = ({ data }) => { last = last.then(() => answer(data)); };

async function answer({ number, files, machine }) {
  let python;
  try {
    python = await started;
  } catch (error) {
    postMessage({ number, message: `aotidoctor failed here: Python could not be loaded: ${error.message}` });
    return;
  }
  try {
    python.FS.mount(python.FS.filesystems.WORKERFS, { files }, FOLDER);
    const examine = python.globals.get("examine");
    postMessage({ number, ...JSON.parse(examine(FOLDER, machine)) });
    examine.destroy();
  } catch (error) {
    postMessage({ number, message: `aotidoctor failed here: ${String(error.message).trim().split("\n").pop()}` });
  } finally {
    try { python.FS.unmount(FOLDER); } catch { /* it was never mounted */ }
  }
}
