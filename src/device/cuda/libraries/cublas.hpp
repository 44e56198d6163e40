// Products of matrices by cuBLAS, which is loaded at run time when one is first requested.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <string>

#include "core/dynamic_library.hpp"
#include "device/cuda/module.hpp"

namespace lockstep::device::cuda {

using CublasHandle = struct CublasTag*;

// name in Cublas, symbol, parameters
#define LOCKSTEP_CUBLAS(F)                                                                                   \
  F(create, cublasCreate_v2, (CublasHandle*))                                                                \
  F(destroy, cublasDestroy_v2, (CublasHandle))                                                               \
  F(version, cublasGetVersion_v2, (CublasHandle, int*))                                                      \
  F(set_stream, cublasSetStream_v2, (CublasHandle, StreamHandle))                                            \
  F(set_workspace, cublasSetWorkspace_v2, (CublasHandle, void*, size_t))                                     \
  F(set_math_mode, cublasSetMathMode, (CublasHandle, int))                                                   \
  F(multiply, cublasGemmStridedBatchedEx,                                                                    \
    (CublasHandle, int, int, int, int, int, const void*, const void*, int, int, long long, const void*, int, \
     int, long long, const void*, void*, int, int, long long, int, int, int))

/// The part of cuBLAS that Lockstep uses.
struct Cublas {
  DynamicLibrary library;
#define LOCKSTEP_CUBLAS_MEMBER(member, symbol, parameters) int(*member) parameters = nullptr;
  LOCKSTEP_CUBLAS(LOCKSTEP_CUBLAS_MEMBER)
#undef LOCKSTEP_CUBLAS_MEMBER

  /// The process's own; null with the reason where there is none that this driver runs.
  static const Cublas* find(std::string* reason = nullptr);
};

/// One product, row-major: c (rows x columns) = a (rows x depth) b (depth x columns), `count` times.
struct ProductCall {
  struct Matrix {
    Address first = 0;
    Storage storage = Storage::f32;
    int64_t row_stride = 0, batch_stride = 0;  // elements
  };
  int64_t count = 1, rows = 0, depth = 0, columns = 0;
  Matrix a, b, c;
  bool tf32 = false;
};

/// A device's handle of cuBLAS, and the scratch memory that its streams give the library: one each, so that calls on
/// several streams may overlap and recorded ones keep theirs.
class Products {
 public:
  /// Throws DeviceError.
  explicit Products(std::shared_ptr<Core> core);
  ~Products();
  Products(const Products&) = delete;
  /// `queue` null: the default one. Throws DeviceError.
  void multiply(const ProductCall& call, Queue* queue);

 private:
  void check(int status, const char* doing) const;
  const std::shared_ptr<Memory>& workspace_of(Queue* queue);

  std::shared_ptr<Core> core_;
  const Cublas& cublas_;
  std::mutex mutex_;
  CublasHandle handle_ = nullptr;
  std::shared_ptr<Memory> workspace_;  // of the default queue
};

class CublasModule final : public Launchable {
 public:
  CublasModule(std::shared_ptr<Products> products, const ir::Function& function, const LibraryProduct& how);
  void launch(const Dispatch& dispatch, StreamHandle stream) const override;

 private:
  std::shared_ptr<Products> products_;
  std::array<Storage, 3> storage_{};
  int rank_;
  LibraryProduct how_;
};

}  // namespace lockstep::device::cuda
