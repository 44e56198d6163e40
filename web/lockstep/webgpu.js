// The core's WebGPU calls (src/device/webgpu/browser/imports.hpp), answered by the browser's. Objects are numbers there.

const errorTypes = { GPUValidationError: 2, GPUOutOfMemoryError: 3, GPUInternalError: 4 };
const limitNames = [
  "maxBufferSize", "maxStorageBufferBindingSize", "maxStorageBuffersPerShaderStage", "maxComputeInvocationsPerWorkgroup",
  "maxComputeWorkgroupSizeX", "maxComputeWorkgroupSizeY", "maxComputeWorkgroupSizeZ", "maxComputeWorkgroupStorageSize",
  "maxComputeWorkgroupsPerDimension",
];

/** Why the core cannot use WebGPU in this browser, or "". The core waits for results by suspending itself. */
function missing() {
  if (!globalThis.navigator?.gpu) return globalThis.isSecureContext === false ? "WebGPU needs https or localhost" : "this browser has no WebGPU";
  if (typeof WebAssembly.promising !== "function" || typeof WebAssembly.Suspending !== "function")
    return "this browser does not suspend WebAssembly (JavaScript Promise Integration)";
  return "";
}

/** `core` gives bytes(address, size), text(address, size), report(device, type, message) and mayWait(). */
export function gpuImports(core) {
  const objects = new Map();
  let next = 0, reason = missing(), adapter;

  const keep = (object, device) => {
    objects.set(++next, { object, device, count: 1 });
    return next;
  };
  const deviceOf = (number) => objects.get(number).device;
  const at = (number) => objects.get(number).object;
  const words = (address, count) => new Uint32Array(core.bytes(address, 4 * count).slice().buffer);

  /** Runs `make` between error scopes, whose errors are reported for the device. */
  function checked({ object, number, scopes }, make, what = "", filters = ["validation"]) {
    for (const filter of filters) object.pushErrorScope(filter);
    const made = make(object);
    for (const _ of filters) {
      const scope = object.popErrorScope().then(
        (error) => error && core.report(number, errorTypes[error.constructor.name] ?? 5, what + error.message), () => {}).finally(() => scopes.delete(scope));
      scopes.add(scope);
    }
    return made;
  }

  async function requestAdapter() {
    if (missing()) return 0;
    try {
      adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
      reason = adapter ? "" : "the browser gives no adapter (chrome://gpu or about:support says why)";
    } catch (error) {
      adapter = null;
      reason = error.message;
    }
    return adapter ? 1 : 0;
  }
  async function requestDevice() {
    try {
      // An adapter gives one device: a page that lost one begins anew.
      const fresh = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
      if (!fresh) throw new Error("the browser gives no adapter any more");
      const object = await fresh.requestDevice({ requiredLimits: Object.fromEntries(limitNames.map((name) => [name, fresh.limits[name]])) });
      const number = keep(object), device = objects.get(number);
      device.device = Object.assign(device, {
        number, submissions: 0, encoders: 0,
        done: new Map(),  // promises of the submissions that are not
        scopes: new Set(),  // promises of checks
        maps: new Map(),  // of buffers that are being mapped: true or false when they are, else a promise
        doomed: [],  // buffers that commands of an open encoder may use
      });
      object.lost.then(({ message, reason: why }) => core.report(number, 0, message || why || "the browser says no more"));
      object.addEventListener("uncapturederror", (event) => {
        event.preventDefault();
        core.report(number, errorTypes[event.error.constructor.name] ?? 5, event.error.message);
      });
      return number;
    } catch (error) {
      reason = error.message;
      return 0;
    }
  }
  async function wait({ object, scopes, maps, done }, submission) {
    if (submission === 0) return void (await Promise.all(scopes));
    const pending = [...maps.values()].filter((state) => typeof state !== "boolean");
    if (pending.length) {
      await Promise.all(pending);
      // A lost device fails its maps: let the news arrive first.
      if ([...maps.values()].includes(false)) await Promise.race([object.lost, new Promise((go) => setTimeout(go, 5000))]);
    } else {
      await (done.get(submission) ?? object.queue.onSubmittedWorkDone().catch(() => {}));
    }
    await Promise.all(scopes);
  }
  const information = () => adapter?.info ?? {};
  const texts = {
    name: () => [information().vendor, information().architecture].filter(Boolean).join(" ") || "adapter",
    driver: () => information().description ?? "",
    reason: () => reason,
  };

  const suspending = { gpu_adapter: requestAdapter, gpu_device: requestDevice, gpu_wait: (device, submission) => wait(deviceOf(device), submission >>> 0) };
  const imports = {
    gpu_may_wait: () => (core.mayWait() && !missing() ? 1 : 0),
    gpu_number(name, size) {
      const key = core.text(name, size);
      if (key === "software") return adapter.isFallbackAdapter || adapter.info.isFallbackAdapter || /swiftshader|llvmpipe/i.test(texts.name()) ? 1 : 0;
      return adapter.limits[key];
    },
    gpu_text(name, size, to, room) {
      const bytes = new TextEncoder().encode(texts[core.text(name, size)]()).subarray(0, room);
      core.bytes(to, bytes.length).set(bytes);
      return bytes.length;
    },

    gpu_buffer(number, size, usage) {
      const device = deviceOf(number);
      return keep(checked(device, (gpu) => gpu.createBuffer({ size, usage }), "", ["validation", "out-of-memory"]), device);
    },
    gpu_layout: (device, kinds, count) => keep(at(device).createBindGroupLayout({
      entries: Array.from(words(kinds, count), (kind, binding) => ({
        binding, visibility: GPUShaderStage.COMPUTE,
        buffer: kind === 2 ? { type: "uniform", hasDynamicOffset: true } : { type: kind === 1 ? "read-only-storage" : "storage" },
      })),
    })),
    gpu_group(device, layout, address, count) {
      const all = words(address, 3 * count);
      const entries = Array.from({ length: count }, (_, binding) => ({
        binding, resource: { buffer: at(all[3 * binding]), offset: all[3 * binding + 1], size: all[3 * binding + 2] },
      }));
      return keep(at(device).createBindGroup({ layout: at(layout), entries }));
    },
    gpu_pipeline_layout: (device, layouts, count) => keep(at(device).createPipelineLayout({ bindGroupLayouts: Array.from(words(layouts, count), at) })),
    gpu_shader(device, address, size, label, labelSize) {
      const descriptor = { code: core.text(address, size), label: core.text(label, labelSize) };
      return keep(checked(deviceOf(device), (gpu) => gpu.createShaderModule(descriptor)));
    },
    gpu_pipeline(device, layout, module, label, labelSize) {
      const descriptor = { layout: at(layout), label: core.text(label, labelSize), compute: { module: at(module), entryPoint: "main" } };
      const make = (gpu) => gpu.createComputePipeline(descriptor);
      return keep(checked(deviceOf(device), make, `kernel ${descriptor.label}: `, ["validation", "internal"]));
    },

    gpu_encoder(number) {
      const device = deviceOf(number);
      ++device.encoders;
      return keep(device.object.createCommandEncoder(), device);
    },
    gpu_pass: (encoder) => keep(at(encoder).beginComputePass()),
    gpu_set_pipeline: (pass, pipeline) => at(pass).setPipeline(at(pipeline)),
    gpu_set_group: (pass, number, group, offset) => at(pass).setBindGroup(number, at(group), offset < 0 ? [] : [offset]),
    gpu_dispatch: (pass, x, y, z) => at(pass).dispatchWorkgroups(x >>> 0, y >>> 0, z >>> 0),
    gpu_end_pass: (pass) => at(pass).end(),
    gpu_copy: (encoder, from, fromAt, to, toAt, bytes) => at(encoder).copyBufferToBuffer(at(from), fromAt, at(to), toAt, bytes),
    gpu_clear: (encoder, buffer, offset, bytes) => at(encoder).clearBuffer(at(buffer), offset, bytes),
    gpu_finish(encoder) {
      const device = deviceOf(encoder);
      return keep(checked(device, () => at(encoder).finish()), device);
    },
    gpu_submit(number, commands) {
      const device = deviceOf(number), { queue } = device.object;
      if (commands) {
        checked(device, () => queue.submit([at(commands)]));
        --device.encoders;
        for (const buffer of device.doomed.splice(0)) buffer.destroy();
      }
      const submission = ++device.submissions;
      device.done.set(submission, queue.onSubmittedWorkDone().catch(() => {}).finally(() => device.done.delete(submission)));
      return submission;
    },
    gpu_write: (device, buffer, offset, data, bytes) => at(device).queue.writeBuffer(at(buffer), offset, core.bytes(data, bytes)),

    gpu_map(buffer, bytes) {
      const { maps } = deviceOf(buffer);
      maps.set(buffer, at(buffer).mapAsync(GPUMapMode.READ, 0, bytes).then(() => maps.set(buffer, true), () => maps.set(buffer, false)));
    },
    gpu_mapped: (buffer) => ({ true: 1, false: 2 })[deviceOf(buffer).maps.get(buffer)] ?? 0,
    gpu_read: (buffer, to, bytes) => core.bytes(to, bytes).set(new Uint8Array(at(buffer).getMappedRange(0, bytes))),
    gpu_unmap(buffer) {
      deviceOf(buffer).maps.delete(buffer);
      at(buffer).unmap();
    },

    gpu_keep: (number) => void ++objects.get(number).count,
    gpu_release(number) {
      const entry = objects.get(number);
      if (!entry || --entry.count > 0) return;
      objects.delete(number);
      const { object, device } = entry;
      if (object instanceof GPUBuffer) {
        if (device.encoders > 0) device.doomed.push(object);
        else object.destroy();
      } else if (object instanceof GPUDevice) {
        object.destroy();
      }
    },
  };
  for (const [name, work] of Object.entries(suspending)) imports[name] = missing() ? () => 0 : new WebAssembly.Suspending(work);
  return imports;
}
