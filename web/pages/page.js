// What all pages share: elements, the verdict, colours, files that come in and go out.
export const at = (id) => document.getElementById(id);
export const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
export const calm = matchMedia("(prefers-reduced-motion: reduce)");

export function say(text, kind = "") {
  at("verdict").textContent = text;
  at("verdict").className = `verdict ${kind}`;
}
/** Stages that fell back to the processor, as a sentence. */
export const fallbackText = (fallbacks) => `Fallbacks: ${Object.entries(fallbacks).map(([stage, n]) => `${stage} ${n}`).join(", ") || "none"}.`;
/** Work that may wait for the core, one after the other. */
let last = Promise.resolve();
export function alone(work) {
  const done = last.then(work);
  last = done.catch(() => {});
  return done;
}
/** Work that waits so, once for all that ask for it before it begins. */
export function lately(work) {
  let waiting;
  return () => (waiting ??= alone(() => {
    waiting = undefined;
    return work();
  }));
}
/** A place of a pointer on a canvas, in its pixels. */
export function place(canvas, event) {
  const { left, top, width, height } = canvas.getBoundingClientRect();
  return [((event.clientX - left) * canvas.width) / width, ((event.clientY - top) * canvas.height) / height];
}

export function download(name, parts, type = "application/octet-stream") {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(parts instanceof Blob ? parts : new Blob(parts, { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
/** Gives files that are chosen or dropped to `open`, as a list; what is wrong with them is a sentence. `kinds`: what may be
 * dropped, `most`: bytes of one. */
export function takeFiles(input, open, { kinds, most }) {
  const take = async (list) => {
    const files = [...(list ?? [])];
    try {
      if (files.length === 0) throw new Error(`Nothing was dropped: drop ${kinds}.`);
      for (const file of files)
        if (file.size > most) throw new Error(`${file.name} has ${Math.round(file.size / 1e6)} MB: this page takes files of up to ${most / 1e6} MB.`);
      await open(files);
    } catch (error) {
      say(error.message, "bad");
    }
    document.body.dataset.files = Number(document.body.dataset.files ?? 0) + 1;
  };
  input.addEventListener("change", () => take(input.files));
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    take(event.dataTransfer?.files);
  });
}

/** Rows of f32 as an .npy file. */
export function npyOf(values, shape) {
  const about = `{'descr': '<f4', 'fortran_order': False, 'shape': (${shape.join(", ")}), }`;
  const header = about.padEnd(Math.ceil((about.length + 11) / 64) * 64 - 11) + "\n", bytes = new Uint8Array(10 + header.length);
  bytes.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, header.length & 255, header.length >> 8]);
  bytes.set(new TextEncoder().encode(header), 10);
  return [bytes, values];
}
