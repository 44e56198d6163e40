// Buffers of any length as rows of a 2-D view (a coordinate is an i32), and the choice of a kernel by element
// type.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>

#include "core/memo.hpp"
#include "lockstep/device.hpp"

namespace lockstep::primitives {

/// Elements of a row of the flat view; a multiple of every chunk. Tests lower it to reach several rows.
int64_t flat_row();
void set_flat_row(int64_t elements);

/// Elements [first, first + count) of a contiguous buffer as `shape`.
Buffer view(const Buffer& buffer, int64_t first, const Shape& shape);

/// Calls `visit(first element, shape of rank 2)`: full rows at once, then the rest as one row.
template <class Visit>
void for_each_view(int64_t elements, Visit visit) {
  const int64_t row = flat_row(), rows = elements / row, rest = elements % row;
  if (rows > 0) visit(int64_t(0), Shape{rows, row});
  if (rest > 0) visit(rows * row, Shape{1, rest});
}

/// Calls f with a value of the storage's C++ type. Throws InputError for other storage than f32, f64, i32,
/// u32.
template <class F>
void with_element(Storage storage, std::string_view where, F f) {
  switch (storage) {
    case Storage::f32: return f(f32());
    case Storage::f64: return f(f64());
    case Storage::i32: return f(i32());
    case Storage::u32: return f(u32());
    default: throw InputError("elements of " + std::string(name(storage)), where, "f32, f64, i32 or u32");
  }
}
template <class F>
void with_float(Storage storage, std::string_view where, F f) {
  switch (storage) {
    case Storage::f32: return f(f32());
    case Storage::f64: return f(f64());
    default: throw InputError("elements of " + std::string(name(storage)), where, "f32 or f64");
  }
}

/// Throws InputError where the buffer is not contiguous or its storage or count is another.
void expect_flat(const Buffer& buffer, Storage storage, int64_t elements, std::string_view where);
inline void expect_flat(const Buffer& buffer, std::string_view where) {
  expect_flat(buffer, buffer.storage(), buffer.elements(), where);
}

/// Throws InputError where a buffer of `written` shares memory with another one of either list; empty handles are left
/// out. For operations whose launches see each buffer alone. WebGPU has no addresses: there launches check alone.
void expect_apart(std::initializer_list<Buffer> written, std::initializer_list<Buffer> read,
                  std::string_view where);

/// Whether accesses of four elements are aligned in the buffer.
inline bool wide_aligned(const Buffer& buffer) { return buffer.offset() % 4 == 0; }

template <class T>
std::string kernel_name(std::string_view operation) {
  return "primitives." + std::string(operation) + "." + std::string(name(detail::kType<T>));
}

inline int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace lockstep::primitives
