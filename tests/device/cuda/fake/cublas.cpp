#include "cublas.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "driver.hpp"
#include "library.hpp"

namespace {

std::mutex mutex;
std::vector<FakeProduct> products;
int failure = 0;

struct Handle {
  void *stream = nullptr, *workspace = nullptr;
  size_t workspace_bytes = 0;
  int math_mode = 0;
};

/// A product that waits for its turn; columns first, as the library counts.
struct Product {
  int m, n, k, count, type_a, type_b, type_c;
  const unsigned char *a, *b;
  unsigned char* c;
  long long lda, ldb, ldc, stride_a, stride_b, stride_c;
};

int bytes_of(int type) { return type == 1 ? 8 : type == 0 ? 4 : 2; }

double load(const unsigned char* at, int type) {
  uint16_t half = 0;
  switch (type) {
    case 1: {
      double v = 0;
      return std::memcpy(&v, at, 8), v;
    }
    case 0: {
      float v = 0;
      return std::memcpy(&v, at, 4), v;
    }
    case 14: return std::memcpy(&half, at, 2), std::bit_cast<float>(uint32_t(half) << 16);
    default: {
      std::memcpy(&half, at, 2);
      const int exponent = half >> 10 & 31, mantissa = half & 1023;
      const double v = exponent ? std::ldexp(1024 + mantissa, exponent - 25) : std::ldexp(mantissa, -24);
      return half & 0x8000 ? -v : v;
    }
  }
}

void store(unsigned char* at, int type, double value) {
  const auto narrow = float(value);
  if (type == 1) std::memcpy(at, &value, 8);
  if (type == 0) std::memcpy(at, &narrow, 4);
  if (type == 14) {
    const auto bits = std::bit_cast<uint32_t>(narrow);
    const auto half = uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    std::memcpy(at, &half, 2);
  }
}

void run(const void* data) {
  Product p;
  std::memcpy(&p, data, sizeof p);
  for (int batch = 0; batch < p.count; ++batch)
    for (int j = 0; j < p.n; ++j)
      for (int i = 0; i < p.m; ++i) {
        double sum = 0;
        for (int k = 0; k < p.k; ++k)
          sum += load(p.a + (batch * p.stride_a + k * p.lda + i) * bytes_of(p.type_a), p.type_a) *
                 load(p.b + (batch * p.stride_b + j * p.ldb + k) * bytes_of(p.type_b), p.type_b);
        store(p.c + (batch * p.stride_c + j * p.ldc + i) * bytes_of(p.type_c), p.type_c, sum);
      }
}

}  // namespace

#define VISIBLE __attribute__((visibility("default")))
#define API extern "C" VISIBLE int

extern "C" {
VISIBLE bool fake_product(int64_t n, FakeProduct* to) {
  const std::lock_guard lock(mutex);
  if (n < 0 || n >= int64_t(products.size())) return false;
  *to = products[size_t(n)];
  return true;
}
VISIBLE void fake_cublas_fail(int status) {
  const std::lock_guard lock(mutex);
  failure = status;
}
}

API cublasCreate_v2(Handle** to) { return *to = new Handle, 0; }
API cublasDestroy_v2(Handle* handle) { return delete handle, 0; }
API cublasGetVersion_v2(Handle*, int* version) { return *version = 130000, 0; }
API cublasSetStream_v2(Handle* handle, void* stream) {
  handle->stream = stream;
  handle->workspace = nullptr;  // as the library's does
  return 0;
}
API cublasSetWorkspace_v2(Handle* handle, void* workspace, size_t bytes) {
  handle->workspace = workspace;
  handle->workspace_bytes = bytes;
  return 0;
}
API cublasSetMathMode(Handle* handle, int mode) { return handle->math_mode = mode, 0; }
API cublasGemmStridedBatchedEx(Handle* handle, int turn_a, int turn_b, int m, int n, int k, const void*,
                               const void* a, int type_a, int lda, long long stride_a, const void* b,
                               int type_b, int ldb, long long stride_b, const void*, void* c, int type_c,
                               int ldc, long long stride_c, int count, int compute, int) {
  const std::lock_guard lock(mutex);
  if (failure) return std::exchange(failure, 0);
  if (turn_a || turn_b || lda < m || ldb < k || ldc < m) return 7;
  products.push_back({reinterpret_cast<uintptr_t>(handle->stream),
                      reinterpret_cast<uintptr_t>(handle->workspace), handle->workspace_bytes, m, n, k, count,
                      compute, handle->math_mode, type_a, type_b, type_c});
  const Product p{m,
                  n,
                  k,
                  count,
                  type_a,
                  type_b,
                  type_c,
                  static_cast<const unsigned char*>(a),
                  static_cast<const unsigned char*>(b),
                  static_cast<unsigned char*>(c),
                  lda,
                  ldb,
                  ldc,
                  stride_a,
                  stride_b,
                  stride_c};
  lockstep::driver_function<decltype(fake_enqueue)>("fake_enqueue")(handle->stream, run, &p, sizeof p);
  return 0;
}
