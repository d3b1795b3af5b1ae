// CPython as WebAssembly, as a command: `node tools/pyodide.mjs [options] [-c code | -m module | file] [arguments]`.
// tools/pyodide.py installs the npm package, or THUNDER_PYODIDE names its folder; the checkout, PYTHONPATH and the
// folder for temporary files of this machine are there under the paths that they have here.
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";

const root = path.dirname(import.meta.dirname);
const home = process.env.THUNDER_PYODIDE ?? path.join(root, ".hatch", "pyodide", "node_modules", "pyodide");
const { loadPyodide } = await import(pathToFileURL(path.join(home, "pyodide.mjs")));

const wanted = [process.cwd(), root, os.tmpdir(), ...(process.env.PYTHONPATH ?? "").split(":").filter(Boolean)];
const real = wanted.filter((folder) => fs.existsSync(folder)).sort();
const folders = real.filter((folder, i) => !real.slice(0, i).some((outer) => (folder + "/").startsWith(outer + "/")));

function mount(FS) {
  for (const folder of folders) {
    FS.mkdirTree(folder);
    FS.mount(FS.filesystems.NODEFS, { root: folder }, folder);
  }
  FS.chdir(process.cwd());
}

const python = await loadPyodide({
  args: process.argv.slice(2),
  env: { ...process.env, HOME: "/home/pyodide", PYTHONINSPECT: "" }, // on by default, and then no exit ends the process
  fsInit: async (FS) => mount(FS),
});
let status;
try {
  status = python._module._run_main();
} catch (error) {
  if (error.name !== "ExitStatus") throw error;
  status = error.status;
}
process.exit(status);
