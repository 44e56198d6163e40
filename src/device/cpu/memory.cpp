#include "device/cpu/memory.hpp"

#include <fmt/format.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "compile/native/abi.hpp"
#include "core/platform/system.hpp"

namespace lockstep::device::cpu {

namespace {

using compile::simd::kAlignment;
using compile::simd::kPadding;

constexpr size_t kHugePage = size_t(2) << 20;
constexpr size_t kStaggers = 16, kStagger = (8 << 10) + 256;

/// Large arrays begin at places that differ modulo the sets of first and second caches (4 and 128 KiB a way): grids of
/// a power of two side by side would else put the same cell of all arrays into one set.
size_t next_stagger() {
  static std::atomic<size_t> made{0};
  return made.fetch_add(1, std::memory_order_relaxed) % kStaggers * kStagger;
}

}  // namespace

HostMemory::HostMemory(int64_t size) {
  bytes = size;
  size_t need = size_t(size) + 2 * kPadding;
  const bool huge = need >= 2 * kHugePage;
  const size_t stagger = huge ? next_stagger() : 0;
  need += stagger;
  mapped_bytes_ = huge ? (need + kHugePage - 1) / kHugePage * kHugePage
                       : (need + kAlignment - 1) / kAlignment * kAlignment;
  mapped_ = std::aligned_alloc(huge ? kHugePage : kAlignment, mapped_bytes_);
  if (!mapped_)
    throw DeviceError(DeviceFault::allocation, fmt::format("cpu: {} bytes could not be allocated", size));
  if (huge) platform::prefer_huge_pages(mapped_, mapped_bytes_);
  data_ = static_cast<std::byte*>(mapped_) + kPadding + stagger;
  address = uint64_t(reinterpret_cast<uintptr_t>(data_));
}

HostMemory::HostMemory(const Foreign& foreign, int64_t size)
    : data_(reinterpret_cast<std::byte*>(uintptr_t(foreign.address))), owner_(foreign.owner) {
  bytes = size;
  address = foreign.address;
  // Kernels read whole vectors, hence at most so many bytes behind the last element.
  constexpr size_t kVector = 64;
  const platform::ReadableEnd end = platform::keep_readable(data_ + size, kVector);
  if (!end.readable)
    throw InputError(fmt::format("memory of {} bytes that ends where nothing is readable", size),
                     "Device::wrap", fmt::format("{} readable bytes after it, or a copy", kVector));
  end_page_ = end.page;
}

HostMemory::~HostMemory() { std::free(mapped_); }

std::byte* thread_scratch(int64_t bytes) {
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  thread_local std::unique_ptr<void, Free> memory;
  thread_local int64_t held = 0;
  if (bytes > held) {
    const auto alignment = size_t(compile::simd::kScratchAlignment);
    const size_t size = (size_t(bytes) + kPadding + alignment - 1) / alignment * alignment;
    memory.reset(std::aligned_alloc(alignment, size));
    held = memory ? bytes : 0;
    if (!memory)
      throw DeviceError(DeviceFault::allocation,
                        fmt::format("cpu: {} bytes of scratch memory could not be allocated", bytes));
  }
  return static_cast<std::byte*>(memory.get());
}

#ifdef __SSE2__
namespace {
constexpr int64_t kLine = 64;
/// Bytes before the first whole line.
int64_t to_line(const std::byte* p, int64_t bytes) {
  return std::min<int64_t>(-reinterpret_cast<intptr_t>(p) & (kLine - 1), bytes);
}
}  // namespace

void copy_part(std::byte* to, const std::byte* from, int64_t bytes, int64_t whole) {
  if (whole < kStreamBytes) {
    std::memcpy(to, from, size_t(bytes));
    return;
  }
  int64_t at = to_line(to, bytes);
  std::memcpy(to, from, size_t(at));
  for (; at + kLine <= bytes; at += kLine) {
    const auto* source = reinterpret_cast<const __m128i*>(from + at);
    auto* target = reinterpret_cast<__m128i*>(to + at);
    const __m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1),
                  c = _mm_loadu_si128(source + 2), d = _mm_loadu_si128(source + 3);
    _mm_stream_si128(target, a);
    _mm_stream_si128(target + 1, b);
    _mm_stream_si128(target + 2, c);
    _mm_stream_si128(target + 3, d);
  }
  _mm_sfence();
  std::memcpy(to + at, from + at, size_t(bytes - at));
}

void clear_part(std::byte* to, int64_t bytes, int64_t whole) {
  if (whole < kStreamBytes) {
    std::memset(to, 0, size_t(bytes));
    return;
  }
  int64_t at = to_line(to, bytes);
  std::memset(to, 0, size_t(at));
  const __m128i zero = _mm_setzero_si128();
  for (; at + kLine <= bytes; at += kLine)
    for (int k = 0; k < 4; ++k) _mm_stream_si128(reinterpret_cast<__m128i*>(to + at) + k, zero);
  _mm_sfence();
  std::memset(to + at, 0, size_t(bytes - at));
}
#else
void copy_part(std::byte* to, const std::byte* from, int64_t bytes, int64_t) {
  std::memcpy(to, from, size_t(bytes));
}
void clear_part(std::byte* to, int64_t bytes, int64_t) { std::memset(to, 0, size_t(bytes)); }
#endif

}  // namespace lockstep::device::cpu
