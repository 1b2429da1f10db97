// The page: takes files, hands them to the worker, shows its answer. Names of files become text, never markup.
const at = (id) => document.getElementById(id);
const worker = new Worker("worker.js", { type: "module" });
let files = [];
let answer = null;
let asked = 0;
let ready = false;

function say(text, bad = false) {
  at("state").textContent = text;
  at("state").classList.toggle("bad", bad);
}

function busy(on) {
  at("progress").hidden = !on;
}

function examine() {
  at("list").replaceChildren(...files.map((file) => Object.assign(document.createElement("li"), { textContent: `${file.name} (${file.size.toLocaleString("en")} bytes)` })));
  at("clear").hidden = !files.length;
  at("result").hidden = true;
  if (!files.length) return;
  asked += 1;
  busy(true);
  say(ready ? "Examining …" : "Python is loading; then the files are examined …");
  worker.postMessage({ number: asked, files, machine: at("machine").value });
}

function add(dropped) {
  // A file of the same name takes the place of the one before.
  const names = new Set(dropped.map((file) => file.name));
  files = [...files.filter((file) => !names.has(file.name)), ...dropped];
  examine();
}

worker.onmessage = ({ data }) => {
  if (data.ready) {
    ready = true;
    if (!asked) { busy(false); say("Ready."); }
    return;
  }
  if (data.number !== asked) return;
  busy(false);
  document.body.dataset.answers = data.number;
  if (data.message !== undefined) {
    say(data.message, true);
    return;
  }
  answer = data;
  const verdicts = { 0: "Nothing wrong found.", 1: "A problem was found.", 3: "Not explained.", 4: "It could not be examined.", 5: "aotidoctor itself failed." };
  say(verdicts[data.status] ?? `Exit status ${data.status}.`);
  at("command").textContent = data.command;
  at("report").srcdoc = data.html;
  at("result").hidden = false;
};
worker.onerror = (error) => { busy(false); say(`aotidoctor failed here: ${error.message || "the worker could not be started"}`, true); };

at("files").addEventListener("change", (event) => { add([...event.target.files]); event.target.value = ""; });
at("machine").addEventListener("change", examine);
at("clear").addEventListener("click", () => { files = []; asked += 1; answer = null; busy(!ready); examine(); say(ready ? "Ready." : "Python is loading …"); });
at("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(at("command").textContent);
    at("copy").textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(at("command"));
  }
});
at("example").addEventListener("click", async () => {
  const made = await Promise.all(["embedding_cuda.pt2", "int32_ids.json"].map(async (name) => new File([await (await fetch(`example/${name}`)).blob()], name)));
  files = [];
  add(made);
});
for (const button of document.querySelectorAll("[data-save]")) {
  button.addEventListener("click", () => {
    const kind = button.dataset.save;
    const [ending, type] = { html: ["html", "text/html"], markdown: ["md", "text/markdown"], json: ["json", "application/json"] }[kind];
    const address = URL.createObjectURL(new Blob([answer[kind]], { type }));
    Object.assign(document.createElement("a"), { href: address, download: `aotidoctor-report.${ending}` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  });
}
for (const name of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(name, (event) => {
    event.preventDefault();
    at("drop").classList.toggle("over", name === "dragover");
    if (name === "drop" && event.dataTransfer.files.length) add([...event.dataTransfer.files]);
  });
}
