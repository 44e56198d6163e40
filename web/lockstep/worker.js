// A thread of the core: runs parts of kernels.
import { fma } from "./fma.js";
import { serve } from "./threads.js";

if (globalThis.process?.versions?.node) {
  const { parentPort, workerData } = await import("node:worker_threads");
  parentPort.postMessage("ready");
  serve(workerData, fma);
} else {
  self.onmessage = ({ data }) => {
    self.postMessage("ready");
    serve(data, fma);
  };
}
