// Control of the stand-in CUDA driver (libcuda.so.1 of this folder): memory is the host's, copies happen at once or
// in any order that events allow, kernels are noted and do what a test says. With it the back end's own logic
// and its answers to every failure are tested without a GPU.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

struct FakeLaunch {
  unsigned grid[3], block[3], shared_bytes;
  uintptr_t stream, context;
  unsigned char arguments[256];
};
struct FakeState {
  int64_t allocated_bytes, peak_bytes;  // device memory
  int live_streams, live_events, live_modules, live_graphs, pinned_buffers;
  int64_t launches, stream_waits, event_waits;
};

/// The nth coming call (1 = the next, 0 = every one) of an API function returns `code`; "" forgets all, and the limit of
/// fake_memory.
void fake_fail(const char* function, int code, int nth);
/// At most so many bytes of device memory are given.
void fake_memory(int64_t bytes);
void fake_state(FakeState* to);
/// Launch number n since the last clear; false where there is none.
bool fake_launch(int64_t n, FakeLaunch* to);
void fake_clear_launches();
/// From now on work is put off until something waits for it, and runs in an order drawn from `seed` among those
/// that events allow; freed memory is given again at once, as a pool may. 0: all work at once.
void fake_defer(uint64_t seed);
/// Puts work of another stand-in library into a stream: `run` is given a copy of `data`.
void fake_enqueue(void* stream, void (*run)(const void*), const void* data, size_t bytes);
/// Sets the work of a launch, done when its turn comes; null: nothing.
void fake_kernel(void (*run)(const FakeLaunch*));
}
