#include "driver.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace {

struct Planned {
  int code, nth;
  bool always;
};
std::recursive_mutex mutex;
std::map<std::string, Planned> failures;
FakeState state{};
std::vector<FakeLaunch> launches;
auto& memory = *new std::map<void*, size_t>;  // what a lost device leaves stays reachable
std::set<uintptr_t> capturing, streams;
uintptr_t next_handle = 0x1000;
thread_local void* current_context = nullptr;
int sticky = 0;
int64_t memory_limit = INT64_MAX;

// Work of streams that is put off (fake_defer): it runs when something waits, in an order drawn from `order` among
// those that events allow. What a capture takes waits for the graph's launch either way.
struct Work {
  std::function<void()> run;
  uint64_t after = 0;  // a record of an event; 0: none
};
uint64_t order = 0, records = 0;
std::set<uint64_t> reached{0};
std::map<uintptr_t, std::deque<Work>> queues;
std::map<uintptr_t, uint64_t> events;  // the last record of each
struct Node {
  uintptr_t handle;
  std::function<void()> run;
};
std::map<uintptr_t, std::vector<Node>> graphs;
std::map<size_t, std::vector<unsigned long long>>
    pool;  // freed in the order of a stream: given again at once
void (*kernel)(const FakeLaunch*) = nullptr;

uintptr_t number(const void* handle) { return reinterpret_cast<uintptr_t>(handle); }

void enqueue(void* stream, std::function<void()> run) {
  if (capturing.contains(number(stream)))
    graphs[number(stream)].push_back({next_handle++, std::move(run)});
  else if (order)
    queues[number(stream)].push_back({std::move(run)});
  else
    run();
}

/// Runs work that is due until `done`; 719 where only work is left that waits for what never comes.
template <class Done>
int advance(Done done) {
  while (!done()) {
    std::vector<std::deque<Work>*> due;
    for (auto& [stream, queue] : queues)
      if (!queue.empty() && reached.contains(queue.front().after)) due.push_back(&queue);
    if (due.empty()) return 719;
    order = order * 6364136223846793005u + 1442695040888963407u;
    std::deque<Work>& queue = *due[(order >> 33) % due.size()];
    const Work next = std::move(queue.front());
    queue.pop_front();
    if (next.run) next.run();
  }
  return 0;
}

int setting(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoi(text) : otherwise;
}

/// The planned failure of this call, the sticky one of an earlier call, or success.
int result_of(const char* function) {
  if (const auto found = failures.find(function);
      found != failures.end() && (found->second.nth == 0 || --found->second.nth == 0)) {
    const int code = found->second.code;
    if (!found->second.always) failures.erase(found);
    if (code >= 700 && code != 701) sticky = code;
    return code;
  }
  return sticky;
}

/// The arguments and their size, as the API lets a caller give them in one buffer.
bool arguments_of(void** buffer, FakeLaunch& launch) {
  if (!buffer || buffer[0] != reinterpret_cast<void*>(1) || buffer[2] != reinterpret_cast<void*>(2) ||
      buffer[4])
    return false;
  const size_t bytes = *static_cast<const size_t*>(buffer[3]);
  std::memcpy(launch.arguments, buffer[1], std::min(bytes, sizeof launch.arguments));
  return true;
}

struct FakeKernelNode {
  void* function;
  unsigned grid[3], block[3], shared_bytes;
  void** parameters;
  void** extra;
};

int allocate(unsigned long long* to, size_t bytes, const char* function) {
  if (const int code = result_of(function)) return code;
  if (int64_t(bytes) > memory_limit - state.allocated_bytes) return 2;
  void* place = std::malloc(bytes);
  memory[place] = bytes;
  state.allocated_bytes += int64_t(bytes);
  state.peak_bytes = std::max(state.peak_bytes, state.allocated_bytes);
  *to = reinterpret_cast<unsigned long long>(place);
  return 0;
}
int release(unsigned long long address) {
  void* place = reinterpret_cast<void*>(address);
  const auto found = memory.find(place);
  if (found == memory.end()) return 1;
  state.allocated_bytes -= int64_t(found->second);
  memory.erase(found);
  std::free(place);
  return 0;
}

}  // namespace

#define API extern "C" __attribute__((visibility("default"))) int
#define CHECKED                      \
  const std::lock_guard lock(mutex); \
  if (const int code = result_of(__func__)) return code

extern "C" {
__attribute__((visibility("default"))) void fake_fail(const char* function, int code, int nth) {
  const std::lock_guard lock(mutex);
  if (!*function) {
    failures.clear();
    sticky = 0;
    memory_limit = INT64_MAX;
    return;
  }
  failures[function] = {code, nth, nth == 0};
}
__attribute__((visibility("default"))) void fake_memory(int64_t bytes) {
  const std::lock_guard lock(mutex);
  memory_limit = bytes;
}
__attribute__((visibility("default"))) void fake_state(FakeState* to) {
  const std::lock_guard lock(mutex);
  *to = state;
  to->launches = int64_t(launches.size());
}
__attribute__((visibility("default"))) bool fake_launch(int64_t n, FakeLaunch* to) {
  const std::lock_guard lock(mutex);
  if (n < 0 || n >= int64_t(launches.size())) return false;
  *to = launches[size_t(n)];
  return true;
}
__attribute__((visibility("default"))) void fake_clear_launches() {
  const std::lock_guard lock(mutex);
  launches.clear();
}
__attribute__((visibility("default"))) void fake_defer(uint64_t seed) {
  const std::lock_guard lock(mutex);
  advance([] { return std::all_of(queues.begin(), queues.end(), [](auto& q) { return q.second.empty(); }); });
  order = seed;
  for (auto& [bytes, addresses] : pool)
    for (const unsigned long long address : addresses) release(address);
  pool.clear();
}
__attribute__((visibility("default"))) void fake_enqueue(void* stream, void (*run)(const void*),
                                                         const void* data, size_t bytes) {
  const std::lock_guard lock(mutex);
  const auto* first = static_cast<const std::byte*>(data);
  enqueue(stream, [run, copy = std::vector<std::byte>(first, first + bytes)] { run(copy.data()); });
}
__attribute__((visibility("default"))) void fake_kernel(void (*run)(const FakeLaunch*)) {
  const std::lock_guard lock(mutex);
  kernel = run;
}
}

API cuInit(unsigned) { return setting("FAKE_CUDA_DEVICES", 1) > 0 ? 0 : 100; }
API cuDriverGetVersion(int* v) { return *v = setting("FAKE_CUDA_VERSION", 13000), 0; }
API cuGetErrorName(int code, const char** name) {
  static std::map<int, std::string> names;
  return *name = (names[code] = "FAKE_ERROR_" + std::to_string(code)).c_str(), 0;
}
API cuGetErrorString(int, const char** text) { return *text = "planned", 0; }
API cuDeviceGetCount(int* n) { return *n = setting("FAKE_CUDA_DEVICES", 1), 0; }
API cuDeviceGet(int* device, int number) { return *device = number, 0; }
API cuDeviceGetName(char* name, int size, int) { return std::strncpy(name, "Stand-in", size_t(size)), 0; }
API cuDeviceGetAttribute(int* value, int which, int) {
  switch (which) {
    case 1: *value = 1024; break;
    case 5: *value = 2147483647; break;
    case 6:
    case 7: *value = 65535; break;
    case 16: *value = 4; break;
    case 39: *value = 2048; break;
    case 75: *value = setting("FAKE_CUDA_MAJOR", 9); break;
    case 97: *value = 200000; break;
    case 115: *value = setting("FAKE_CUDA_POOLS", 1); break;
    default: *value = 0;
  }
  return 0;
}
API cuDeviceTotalMem_v2(size_t* bytes, int) { return *bytes = size_t(1) << 33, 0; }
API cuDevicePrimaryCtxRetain(void** context, int device) {
  CHECKED;
  *context = reinterpret_cast<void*>(uintptr_t(0x100 + device));
  return 0;
}
API cuDevicePrimaryCtxRelease_v2(int) { return 0; }
API cuDevicePrimaryCtxReset_v2(int) { return 0; }
API cuCtxGetCurrent(void** context) { return *context = current_context, 0; }
API cuCtxSetCurrent(void* context) { return current_context = context, 0; }
API cuMemGetInfo_v2(size_t* free, size_t* total) {
  CHECKED;
  *total = size_t(1) << 33;
  *free = *total - size_t(state.allocated_bytes);
  return 0;
}
API cuMemAlloc_v2(unsigned long long* to, size_t bytes) {
  const std::lock_guard lock(mutex);
  return allocate(to, bytes, __func__);
}
API cuMemFree_v2(unsigned long long address) {
  const std::lock_guard lock(mutex);
  return release(address);
}
API cuMemPoolCreate(void** pool, const void*) { return *pool = reinterpret_cast<void*>(uintptr_t(0x200)), 0; }
API cuMemPoolDestroy(void*) { return 0; }
API cuMemPoolSetAttribute(void*, int, void*) { return 0; }
API cuMemPoolGetAttribute(void*, int, void* value) {
  const uint64_t none = 0;
  return std::memcpy(value, &none, 8), 0;
}
API cuMemPoolTrimTo(void*, size_t) { return 0; }
API cuMemAllocFromPoolAsync(unsigned long long* to, size_t bytes, void*, void* stream) {
  const std::lock_guard lock(mutex);
  if (!order) return allocate(to, bytes, __func__);
  if (auto& kept = pool[bytes]; !kept.empty()) {
    *to = kept.back();
    kept.pop_back();
  } else if (const int code = allocate(to, bytes, __func__)) {
    return code;
  }
  enqueue(stream, [to = *to, bytes] { std::memset(reinterpret_cast<void*>(to), 0xdd, bytes); });
  return 0;
}
API cuMemFreeAsync(unsigned long long address, void* stream) {
  const std::lock_guard lock(mutex);
  if (!order) return release(address);
  const size_t bytes = memory.at(reinterpret_cast<void*>(address));
  enqueue(stream, [=] { std::memset(reinterpret_cast<void*>(address), 0xee, bytes); });
  pool[bytes].push_back(address);
  return 0;
}
API cuMemHostAlloc(void** to, size_t bytes, unsigned) {
  CHECKED;
  ++state.pinned_buffers;
  return *to = std::malloc(bytes), 0;
}
API cuMemFreeHost(void* place) {
  const std::lock_guard lock(mutex);
  --state.pinned_buffers;
  return std::free(place), 0;
}
API cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, size_t bytes, void* stream) {
  CHECKED;
  enqueue(stream, [=] { std::memcpy(reinterpret_cast<void*>(to), from, bytes); });
  return 0;
}
API cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, size_t bytes, void* stream) {
  CHECKED;
  enqueue(stream, [=] { std::memcpy(to, reinterpret_cast<void*>(from), bytes); });
  return 0;
}
API cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t bytes, void* stream) {
  CHECKED;
  enqueue(stream, [=] { std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes); });
  return 0;
}
API cuMemsetD8Async(unsigned long long to, unsigned char value, size_t bytes, void* stream) {
  CHECKED;
  enqueue(stream, [=] { std::memset(reinterpret_cast<void*>(to), value, bytes); });
  return 0;
}
API cuStreamCreate(void** stream, unsigned) {
  CHECKED;
  ++state.live_streams;
  streams.insert(next_handle);
  return *stream = reinterpret_cast<void*>(next_handle++), 0;
}
API cuStreamDestroy_v2(void* stream) {
  const std::lock_guard lock(mutex);
  streams.erase(reinterpret_cast<uintptr_t>(stream));
  return --state.live_streams, 0;
}
API cuStreamSynchronize(void* stream) {
  std::this_thread::sleep_for(std::chrono::microseconds(20));  // others may destroy streams meanwhile
  CHECKED;
  ++state.stream_waits;
  if (const int code = advance([&] { return queues[number(stream)].empty(); })) return code;
  return streams.contains(number(stream)) ? 0 : 400;
}
API cuStreamWaitEvent(void* stream, void* event, unsigned) {
  CHECKED;
  ++state.event_waits;
  if (order) queues[number(stream)].push_back({{}, events[number(event)]});
  return 0;
}
API cuStreamBeginCapture_v2(void* stream, int) {
  CHECKED;
  return capturing.insert(reinterpret_cast<uintptr_t>(stream)).second ? 0 : 901;
}
API cuStreamEndCapture(void* stream, void** graph) {
  CHECKED;
  if (!capturing.erase(number(stream))) return 901;
  ++state.live_graphs;
  graphs[next_handle] = std::move(graphs[number(stream)]);
  graphs.erase(number(stream));
  return *graph = reinterpret_cast<void*>(next_handle++), 0;
}
API cuGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long) {
  CHECKED;
  ++state.live_graphs;
  graphs[next_handle] = graphs[number(graph)];
  return *exec = reinterpret_cast<void*>(next_handle++), 0;
}
API cuStreamGetCaptureInfo_v2(void* stream, int* status, unsigned long long*, void**, void* const** last,
                              size_t* count) {
  CHECKED;
  static void* node = nullptr;
  const auto found = graphs.find(number(stream));
  *status = capturing.contains(number(stream));
  *count = found != graphs.end() && !found->second.empty();
  if (*count) node = reinterpret_cast<void*>(found->second.back().handle);
  return *last = &node, 0;
}
API cuGraphExecKernelNodeSetParams(void* exec, void* handle, const FakeKernelNode* to) {
  CHECKED;
  int graphs_with_it = 0;  // the recorded one has to live
  for (const auto& [graph, nodes] : graphs)
    graphs_with_it +=
        std::any_of(nodes.begin(), nodes.end(), [&](auto& n) { return n.handle == number(handle); });
  if (graphs_with_it < 2) return 400;
  for (Node& node : graphs[number(exec)])
    if (node.handle == number(handle)) {
      FakeLaunch launch{};
      if (!arguments_of(to->extra, launch)) return 1;
      std::copy_n(to->grid, 3, launch.grid);
      std::copy_n(to->block, 3, launch.block);
      launch.shared_bytes = to->shared_bytes;
      launch.context = reinterpret_cast<uintptr_t>(current_context);
      node.run = [launch] {
        if (kernel) kernel(&launch);
      };
      return 0;
    }
  return 400;
}
API cuGraphUpload(void*, void*) {
  CHECKED;
  return 0;
}
API cuGraphLaunch(void* exec, void* stream) {
  CHECKED;
  for (const Node& node : graphs[number(exec)]) enqueue(stream, node.run);
  return 0;
}
API cuGraphDestroy(void* graph) {
  const std::lock_guard lock(mutex);
  graphs.erase(number(graph));
  return --state.live_graphs, 0;
}
API cuGraphExecDestroy(void* exec) { return cuGraphDestroy(exec); }
API cuEventCreate(void** event, unsigned) {
  CHECKED;
  ++state.live_events;
  return *event = reinterpret_cast<void*>(next_handle++), 0;
}
API cuEventRecord(void* event, void* stream) {
  CHECKED;
  const uint64_t record = events[number(event)] = ++records;
  enqueue(stream, [=] { reached.insert(record); });
  return 0;
}
API cuEventSynchronize(void* event) {
  CHECKED;
  return advance([&] { return reached.contains(events[number(event)]); });
}
API cuEventElapsedTime(float* milliseconds, void*, void*) {
  CHECKED;
  return *milliseconds = 2.5f, 0;
}
API cuEventDestroy_v2(void*) {
  const std::lock_guard lock(mutex);
  return --state.live_events, 0;
}
API cuModuleLoadData(void** module, const void*) {
  CHECKED;
  ++state.live_modules;
  return *module = reinterpret_cast<void*>(next_handle++), 0;
}
API cuModuleUnload(void*) {
  const std::lock_guard lock(mutex);
  return --state.live_modules, 0;
}
API cuModuleGetFunction(void** function, void*, const char*) {
  CHECKED;
  return *function = reinterpret_cast<void*>(next_handle++), 0;
}
API cuFuncSetAttribute(void*, int, int) {
  CHECKED;
  return 0;
}
API cuFuncGetAttribute(int* value, int which, void*) {
  CHECKED;
  *value = which == 4 ? 32 : 0;
  return 0;
}
API cuOccupancyMaxActiveBlocksPerMultiprocessor(int* groups, void*, int lanes, size_t) {
  CHECKED;
  *groups = 2048 / lanes;
  return 0;
}
API cuLaunchKernel(void*, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void* stream, void**, void** buffer) {
  CHECKED;
  FakeLaunch launch{{gx, gy, gz},
                    {bx, by, bz},
                    shared,
                    reinterpret_cast<uintptr_t>(stream),
                    reinterpret_cast<uintptr_t>(current_context),
                    {}};
  if (!arguments_of(buffer, launch)) return 1;
  launches.push_back(launch);
  enqueue(stream, [launch] {
    if (kernel) kernel(&launch);
  });
  return 0;
}
