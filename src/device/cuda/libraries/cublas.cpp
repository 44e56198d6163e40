#include "device/cuda/libraries/cublas.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "compile/clike/cuda_toolkit.hpp"
#include "lockstep/error.hpp"

namespace lockstep::device::cuda {

namespace {

// Values of the library's enumerations.
constexpr int kNotTransposed = 0, kAnyAlgorithm = -1, kComputeF32 = 68, kComputeF64 = 70, kComputeTf32 = 77;
/// Sums of parts of 16-bit products stay in f32.
constexpr int kNoReducedSums = 16;
constexpr int kNoMemory = 3;
/// NVIDIA recommends so much from sm_90 on; less is enough before.
constexpr int64_t kWorkspace = int64_t(32) << 20, kOldWorkspace = int64_t(4) << 20;

int library_type(Storage storage) {
  switch (storage) {
    case Storage::f64: return 1;
    case Storage::f16: return 2;
    case Storage::bf16: return 14;
    default: return 0;
  }
}

/// Of `stem`, plain and in the toolkits' folders; a library runs on drivers of its own CUDA version or a later one.
LibrarySearch search_for(const std::string& stem, int driver_version) {
  LibrarySearch search;
  std::vector<std::string> plain;
  if (driver_version >= 13000) {
    plain.push_back(stem + ".so.13");
    search.python_folders.emplace_back("nvidia/cu13/lib");
  }
  plain.push_back(stem + ".so.12");
  for (const char* folder : {"nvidia/cublas/lib", "nvidia/cu12/lib"})
    search.python_folders.emplace_back(folder);
  search.names = clike::with_toolkit_files(plain);
  return search;
}

struct FoundCublas {
  Cublas cublas;
  DynamicLibrary part;
  std::string why;
  bool ok = false;
};

FoundCublas* load_cublas() {
  auto* found = new FoundCublas;  // never freed: handles may be given back during the process's exit
  const Driver* driver = Driver::find(&found->why);
  if (!driver) return found;
  // libcublas names it and may not look into the folder that it was found in.
  found->part = search_for("libcublasLt", driver->version).load();
  Cublas& c = found->cublas;
  std::string why;
  c.library = search_for("libcublas", driver->version).load(&why);
  if (!c.library) {
    found->why = fmt::format("no cuBLAS ({})", why);
    return found;
  }
  const char* missing = nullptr;
#define LOCKSTEP_CUBLAS_RESOLVE(member, symbol_name, parameters)                   \
  c.member = reinterpret_cast<decltype(c.member)>(c.library.symbol(#symbol_name)); \
  if (!c.member && !missing) missing = #symbol_name;
  LOCKSTEP_CUBLAS(LOCKSTEP_CUBLAS_RESOLVE)
#undef LOCKSTEP_CUBLAS_RESOLVE
  if (missing)
    found->why = fmt::format("{} has no {}", c.library.path(), missing);
  else
    found->ok = true;
  return found;
}

}  // namespace

const Cublas* Cublas::find(std::string* reason) {
  static const FoundCublas* const found = load_cublas();
  if (!found->ok && reason) *reason = found->why;
  return found->ok ? &found->cublas : nullptr;
}

Products::Products(std::shared_ptr<Core> core) : core_(std::move(core)), cublas_(*Cublas::find()) {
  const Entered here = core_->enter();
  check(cublas_.create(&handle_), "opening cuBLAS");
  check(cublas_.set_math_mode(handle_, kNoReducedSums), "opening cuBLAS");
}

Products::~Products() {
  if (const Entered here = core_->try_enter(); here && handle_) cublas_.destroy(handle_);
}

void Products::check(int status, const char* doing) const {
  if (status == 0) return;
  throw DeviceError(status == kNoMemory ? DeviceFault::allocation : DeviceFault::launch,
                    fmt::format("cuda:{}, {}: cuBLAS status {}", core_->number(), doing, status));
}

const std::shared_ptr<Memory>& Products::workspace_of(Queue* queue) {
  std::shared_ptr<Memory>& workspace = queue ? static_cast<CudaQueue*>(queue)->workspace : workspace_;
  if (!workspace)
    workspace = std::make_shared<CudaMemory>(core_, core_->arch() >= 90 ? kWorkspace : kOldWorkspace);
  return workspace;
}

void Products::multiply(const ProductCall& call, Queue* queue) {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<Memory>& workspace = workspace_of(queue);
  // A new stream takes the library's own workspace: the stream first.
  check(cublas_.set_stream(handle_, stream_of(*core_, queue)), "choosing a stream");
  check(cublas_.set_workspace(handle_, reinterpret_cast<void*>(workspace->address), size_t(workspace->bytes)),
        "giving memory");
  const bool f64 = call.c.storage == Storage::f64;
  const double one64 = 1, zero64 = 0;
  const float one32 = 1, zero32 = 0;
  const void *one = f64 ? static_cast<const void*>(&one64) : &one32,
             *zero = f64 ? static_cast<const void*>(&zero64) : &zero32;
  const auto at = [](const ProductCall::Matrix& m) { return reinterpret_cast<void*>(m.first); };
  // The library counts rows fastest: it sees the transposes, whose product is that of b and a.
  check(cublas_.multiply(
            handle_, kNotTransposed, kNotTransposed, int(call.columns), int(call.rows), int(call.depth), one,
            at(call.b), library_type(call.b.storage), int(call.b.row_stride), call.b.batch_stride, at(call.a),
            library_type(call.a.storage), int(call.a.row_stride), call.a.batch_stride, zero, at(call.c),
            library_type(call.c.storage), int(call.c.row_stride), call.c.batch_stride, int(call.count),
            f64         ? kComputeF64
            : call.tf32 ? kComputeTf32
                        : kComputeF32,
            kAnyAlgorithm),
        "multiplying matrices");
}

CublasModule::CublasModule(std::shared_ptr<Products> products, const ir::Function& function,
                           const LibraryProduct& how)
    : products_(std::move(products)), rank_(function.buffers.at(2).rank), how_(how) {
  for (size_t k = 0; k < storage_.size(); ++k) storage_[k] = function.buffers[k].storage;
}

void CublasModule::launch(const Dispatch& dispatch, StreamHandle) const {
  const auto r = size_t(rank_);
  const auto matrix = [&](size_t k) {
    const Binding& b = dispatch.buffers[k];
    return ProductCall::Matrix{b.memory->address + Address(b.offset_bytes), storage_[k],
                               std::max(b.strides[r - 2], b.shape[r - 1]), r == 3 ? b.strides[0] : 0};
  };
  ProductCall call{.a = matrix(0), .b = matrix(1), .c = matrix(2), .tf32 = how_.tf32};
  call.count = r == 3 ? dispatch.buffers[2].shape[0] : 1;
  call.rows = dispatch.buffers[2].shape[r - 2];
  call.columns = dispatch.buffers[2].shape[r - 1];
  call.depth = dispatch.buffers[0].shape[r - 1];
  products_->multiply(call, dispatch.queue);
}

}  // namespace lockstep::device::cuda
