// The tests that run inside WebAssembly: each counts its failures by check().
#pragma once

#include <cstdint>

namespace lockstep::web_tests {

inline int failures = 0;
void check(bool holds, const char* what);

void exceptions();
/// Cases of the kernel language, of elementary functions and of the primitives: the interpreter against plain C++, the CPU
/// device against the interpreter.
void cases();
/// Time of one bench case on the CPU device.
void bench(const char* name, const char* size);
/// Every operation on every type, and fma in all its branches.
void operations();
/// Accesses of rows.
void rows();
/// Random kernels on the CPU device against the interpreter.
void random_kernels(uint64_t seed, int count, bool math);

}  // namespace lockstep::web_tests
