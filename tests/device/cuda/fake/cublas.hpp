// Control of the stand-in cuBLAS (libcublas.so.13 of this folder), which multiplies on the host when the stand-in
// driver's streams come to it.
#pragma once

#include <cstdint>

extern "C" {

struct FakeProduct {
  uintptr_t stream, workspace;
  uint64_t workspace_bytes;
  int m, n, k, count, compute, math_mode;
  int type_a, type_b, type_c;
};
/// Product number n since the library was loaded; false where there is none.
bool fake_product(int64_t n, FakeProduct* to);
/// The next product returns this status.
void fake_cublas_fail(int status);
}
