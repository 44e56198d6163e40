// The functions of web/lockstep/webgpu.js as the core calls them. Objects are numbers; 0 is none. Sizes are f64, which holds them exactly.
#pragma once

#include <cstdint>

#define LOCKSTEP_GPU(name) __attribute__((import_module("lockstep"), import_name("gpu_" #name))) extern

namespace lockstep::device::webgpu::page {

extern "C" {
// These three suspend the core; only where may_wait() says so.
LOCKSTEP_GPU(adapter) uint32_t gpu_adapter();  // requests one; 1 where there is one
LOCKSTEP_GPU(device) uint32_t gpu_device();    // requests one with all of the adapter's limits
/// Until the device's submission is done and the buffers that it maps are; 0: until the checks of its objects are known.
LOCKSTEP_GPU(wait) void gpu_wait(uint32_t device, uint32_t submission);
LOCKSTEP_GPU(may_wait) uint32_t gpu_may_wait();

/// A limit of the adapter by its name, or "software".
LOCKSTEP_GPU(number) double gpu_number(const char* name, uint32_t size);
/// "name", "driver", or "reason" why there is none, into memory of `room` bytes; its length.
LOCKSTEP_GPU(text) uint32_t gpu_text(const char* name, uint32_t size, char* to, uint32_t room);

LOCKSTEP_GPU(buffer) uint32_t gpu_buffer(uint32_t device, double bytes, uint32_t usage);
/// Words of a layout: 0 a buffer that is written, 1 one that is read, 2 arguments at an offset of each dispatch.
LOCKSTEP_GPU(layout) uint32_t gpu_layout(uint32_t device, const uint32_t* kinds, uint32_t count);
/// Three words a binding: buffer, offset, bytes.
LOCKSTEP_GPU(group)
uint32_t gpu_group(uint32_t device, uint32_t layout, const uint32_t* words, uint32_t count);
LOCKSTEP_GPU(pipeline_layout)
uint32_t gpu_pipeline_layout(uint32_t device, const uint32_t* layouts, uint32_t count);
LOCKSTEP_GPU(shader)
uint32_t gpu_shader(uint32_t device, const char* text, uint32_t size, const char* label, uint32_t label_size);
LOCKSTEP_GPU(pipeline)
uint32_t gpu_pipeline(uint32_t device, uint32_t layout, uint32_t shader, const char* label,
                      uint32_t label_size);

LOCKSTEP_GPU(encoder) uint32_t gpu_encoder(uint32_t device);
LOCKSTEP_GPU(pass) uint32_t gpu_pass(uint32_t encoder);
LOCKSTEP_GPU(set_pipeline) void gpu_set_pipeline(uint32_t pass, uint32_t pipeline);
/// `offset` of the arguments; -1: a group without.
LOCKSTEP_GPU(set_group) void gpu_set_group(uint32_t pass, uint32_t number, uint32_t group, double offset);
LOCKSTEP_GPU(dispatch) void gpu_dispatch(uint32_t pass, uint32_t x, uint32_t y, uint32_t z);
LOCKSTEP_GPU(end_pass) void gpu_end_pass(uint32_t pass);
LOCKSTEP_GPU(copy)
void gpu_copy(uint32_t encoder, uint32_t from, double from_at, uint32_t to, double to_at, double bytes);
LOCKSTEP_GPU(clear) void gpu_clear(uint32_t encoder, uint32_t buffer, double at, double bytes);
LOCKSTEP_GPU(finish) uint32_t gpu_finish(uint32_t encoder);
/// Number of the submission; `commands` 0: none.
LOCKSTEP_GPU(submit) uint32_t gpu_submit(uint32_t device, uint32_t commands);
LOCKSTEP_GPU(write)
void gpu_write(uint32_t device, uint32_t buffer, double at, const void* data, uint32_t bytes);

LOCKSTEP_GPU(map) void gpu_map(uint32_t buffer, uint32_t bytes);
LOCKSTEP_GPU(mapped) uint32_t gpu_mapped(uint32_t buffer);  // 0 not yet, 1 yes, 2 never
LOCKSTEP_GPU(read) void gpu_read(uint32_t buffer, void* to, uint32_t bytes);
LOCKSTEP_GPU(unmap) void gpu_unmap(uint32_t buffer);

LOCKSTEP_GPU(keep) void gpu_keep(uint32_t object);
LOCKSTEP_GPU(release) void gpu_release(uint32_t object);
}

}  // namespace lockstep::device::webgpu::page
