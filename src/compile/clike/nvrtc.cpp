#include "compile/clike/nvrtc.hpp"

#include <fmt/format.h>

#include <mutex>

#include "compile/clike/cuda/cuda.hpp"
#include "compile/clike/cuda_toolkit.hpp"
#include "compile/lower.hpp"
#include "core/dynamic_library.hpp"
#include "lockstep/error.hpp"

namespace lockstep::clike {

using Program = struct NvrtcProgram*;

namespace {

std::vector<std::string> library_names() {
  return with_toolkit_files({"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"});
}

}  // namespace

struct Nvrtc::Functions {
  DynamicLibrary library;
  const char* (*error_string)(int) = nullptr;
  int (*version)(int*, int*) = nullptr;
  int (*arch_count)(int*) = nullptr;
  int (*archs)(int*) = nullptr;
  int (*create)(Program*, const char*, const char*, int, const char* const*, const char* const*) = nullptr;
  int (*destroy)(Program*) = nullptr;
  int (*compile)(Program, int, const char* const*) = nullptr;
  int (*log_size)(Program, size_t*) = nullptr;
  int (*log)(Program, char*) = nullptr;
  int (*ptx_size)(Program, size_t*) = nullptr;
  int (*ptx)(Program, char*) = nullptr;
  int (*cubin_size)(Program, size_t*) = nullptr;
  int (*cubin)(Program, char*) = nullptr;

  /// The name of the first symbol that is missing, or null.
  const char* resolve() {
    const char* missing = nullptr;
    const auto get = [&](auto& slot, const char* name) {
      slot = reinterpret_cast<std::decay_t<decltype(slot)>>(library.symbol(name));
      if (!slot && !missing) missing = name;
    };
    get(error_string, "nvrtcGetErrorString");
    get(version, "nvrtcVersion");
    get(arch_count, "nvrtcGetNumSupportedArchs");
    get(archs, "nvrtcGetSupportedArchs");
    get(create, "nvrtcCreateProgram");
    get(destroy, "nvrtcDestroyProgram");
    get(compile, "nvrtcCompileProgram");
    get(log_size, "nvrtcGetProgramLogSize");
    get(log, "nvrtcGetProgramLog");
    get(ptx_size, "nvrtcGetPTXSize");
    get(ptx, "nvrtcGetPTX");
    get(cubin_size, "nvrtcGetCUBINSize");
    get(cubin, "nvrtcGetCUBIN");
    return missing;
  }
};

const Nvrtc* Nvrtc::find(std::string* reason) {
  struct Found {
    Nvrtc nvrtc;
    Functions functions;
    std::string why;
    bool ok = false;
  };
  static const Found* const found = [] {
    auto* f = new Found;  // lives as long as the process: modules may be compiled during its exit
    const LibrarySearch search{library_names(),
                               {"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib", "nvidia/cu12/lib"}};
    f->functions.library = search.load(&f->why);
    if (!f->functions.library) return f;
    if (const char* missing = f->functions.resolve()) {
      f->why = fmt::format("{} has no {}", f->functions.library.path(), missing);
      return f;
    }
    Nvrtc& n = f->nvrtc;
    n.functions_ = &f->functions;
    n.path_ = f->functions.library.path();
    f->functions.version(&n.major_, &n.minor_);
    int count = 0;
    f->functions.arch_count(&count);
    n.architectures_.resize(size_t(count));
    if (count) f->functions.archs(n.architectures_.data());
    f->ok = true;
    return f;
  }();
  if (!found->ok && reason) *reason = found->why;
  return found->ok ? &found->nvrtc : nullptr;
}

namespace {
/// The errors of a compiler's log on one line of at most 600 characters; all of it where none is marked.
std::string errors_of(std::string_view log) {
  std::string errors, all;
  for (size_t begin = 0; begin < log.size();) {
    const size_t end = std::min(log.find_first_of(std::string_view("\n\0", 2), begin), log.size());
    std::string_view line = log.substr(begin, end - begin);
    begin = end + 1;
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (line.empty()) continue;
    for (std::string* to : {&all, line.find("error") != line.npos ? &errors : nullptr})
      if (to) *to += (to->empty() ? "" : "; ") + std::string(line);
  }
  return (errors.empty() ? all : errors).substr(0, 600);
}
}  // namespace

const Nvrtc& Nvrtc::get() {
  std::string reason;
  const Nvrtc* nvrtc = find(&reason);
  if (!nvrtc)
    throw UnsupportedError(fmt::format("NVRTC: {}", reason), "CUDA compiler",
                           "libnvrtc next to the program, in LOCKSTEP_LIBRARY_PATH, a CUDA toolkit or "
                           "Python's nvidia-cuda-nvrtc");
  return *nvrtc;
}

std::string Nvrtc::version() const { return fmt::format("{}.{}", major_, minor_); }

std::vector<std::string> Nvrtc::options(int arch, CudaOutput output, Numerics numerics) {
  const char *machine = output == CudaOutput::ptx ? "compute" : "sm",
             *own = output == CudaOutput::own_cubin ? "a" : "";
  std::vector<std::string> options = {fmt::format("--gpu-architecture={}_{}{}", machine, arch, own),
                                      "--std=c++17"};
  if (numerics == Numerics::exact)
    options.insert(options.end(), {"--fmad=false", "--prec-div=true", "--prec-sqrt=true", "--ftz=false"});
  else
    options.insert(options.end(), {"--fmad=true", "--prec-div=false", "--prec-sqrt=false", "--ftz=true"});
  return options;
}

std::vector<std::byte> Nvrtc::compile(const std::string& source, std::string_view name, int arch,
                                      CudaOutput output, Numerics numerics) const {
  const Functions& f = *functions_;
  const auto check = [&](int code, std::string_view what) {
    if (code != 0)
      throw DeviceError(DeviceFault::compile,
                        fmt::format("NVRTC {} of {}: {}", what, name, f.error_string(code)));
  };
  Program program = nullptr;
  check(f.create(&program, source.c_str(), fmt::format("{}.cu", name).c_str(), 0, nullptr, nullptr),
        "program");
  struct Destroy {
    const Functions& f;
    Program program;
    ~Destroy() { f.destroy(&program); }
  } destroy{f, program};

  const std::vector<std::string> texts = options(arch, output, numerics);
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  if (const int code = f.compile(program, int(pointers.size()), pointers.data()); code != 0) {
    size_t size = 0;
    f.log_size(program, &size);
    std::string log(size, '\0');
    if (size) f.log(program, log.data());
    DeviceError error(DeviceFault::compile, fmt::format("NVRTC {} for sm_{}, kernel {}: {}: {}", version(),
                                                        arch, name, f.error_string(code), errors_of(log)));
    error.with_hint("`lockstep emit KERNEL --target cuda` shows the source of a kernel");
    throw error;
  }
  size_t size = 0;
  check(output == CudaOutput::ptx ? f.ptx_size(program, &size) : f.cubin_size(program, &size), "result");
  std::vector<std::byte> code(size);
  char* data = reinterpret_cast<char*>(code.data());
  check(output == CudaOutput::ptx ? f.ptx(program, data) : f.cubin(program, data), "result");
  return code;
}

// ── emit
// ────────────────────────────────────────────────────────────────────────────────────────────────────────────

namespace {
CudaSource print_traced(const ir::Function& traced, Numerics numerics, int arch) {
  return print_cuda(compile::lower(traced, {compile::Target::cuda, numerics}), {numerics, arch});
}
}  // namespace

std::string emit_cuda(const ir::Function& traced, Numerics numerics, int arch) {
  return print_traced(traced, numerics, arch).text;
}
std::string emit_ptx(const ir::Function& traced, Numerics numerics, int arch) {
  const auto code = Nvrtc::get().compile(print_traced(traced, numerics, arch).text, traced.name, arch,
                                         CudaOutput::ptx, numerics);
  std::string text(reinterpret_cast<const char*>(code.data()), code.size());
  while (!text.empty() && text.back() == '\0') text.pop_back();
  return text;
}
std::vector<std::byte> emit_cubin(const ir::Function& traced, Numerics numerics, int arch) {
  return Nvrtc::get().compile(print_traced(traced, numerics, arch).text, traced.name, arch, CudaOutput::cubin,
                              numerics);
}

}  // namespace lockstep::clike
