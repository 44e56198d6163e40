// NVRTC, loaded at run time: CUDA C++ to PTX or to machine code, with or without a GPU.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/device.hpp"

namespace lockstep::clike {

/// own_cubin: machine code that may use what no later architecture keeps (sm_90a).
enum class CudaOutput : uint8_t { ptx, cubin, own_cubin };

class Nvrtc {
 public:
  /// The process's own; null with a reason if no NVRTC can be loaded. Searches the folder of the program,
  /// $LOCKSTEP_LIBRARY_PATH, the system's folders, CUDA toolkits and Python's site-packages.
  static const Nvrtc* find(std::string* reason = nullptr);
  /// As find(), or throws UnsupportedError.
  static const Nvrtc& get();

  /// "13.0"
  std::string version() const;
  /// Architectures it generates code for, ascending: 75, 80, …
  std::span<const int> architectures() const { return architectures_; }
  const std::string& path() const { return path_; }

  /// Code of `source` for an architecture (90). Throws DeviceError(compile) with NVRTC's log.
  std::vector<std::byte> compile(const std::string& source, std::string_view name, int arch,
                                 CudaOutput output, Numerics numerics) const;
  /// The options that compile() passes; part of a cache key.
  static std::vector<std::string> options(int arch, CudaOutput output, Numerics numerics);

 private:
  struct Functions;
  Nvrtc() = default;
  const Functions* functions_ = nullptr;
  std::vector<int> architectures_;
  int major_ = 0, minor_ = 0;
  std::string path_;
};

/// Source of a traced kernel for an architecture. Throws UnsupportedError for what CUDA cannot run.
std::string emit_cuda(const ir::Function& traced, Numerics numerics = Numerics::exact, int arch = 90);
std::string emit_ptx(const ir::Function& traced, Numerics numerics = Numerics::exact, int arch = 90);
std::vector<std::byte> emit_cubin(const ir::Function& traced, Numerics numerics = Numerics::exact,
                                  int arch = 90);

}  // namespace lockstep::clike
