// Bindings of buffers beyond 4 GiB, by arithmetic: no adapter is needed, nor the memory.
#include "device/webgpu/memory/windows.hpp"

#include <gtest/gtest.h>

#include <random>

namespace lockstep::device::webgpu {
namespace {

constexpr int64_t kGiB = int64_t(1) << 30;

/// The byte of the memory that an element is read from: the way of the shader and of the bindings.
int64_t byte_reached(const Windows& w, int64_t element, int64_t size, int64_t window_bytes,
                     int64_t chunk_bytes, int64_t memory_bytes) {
  // The shader counts elements in 32 bits from the first binding's begin.
  const int64_t base = w.base_bytes / size;
  EXPECT_LT(base + element, int64_t(1) << 32);
  const uint32_t index = uint32_t(base) + uint32_t(element), per_window = uint32_t(window_bytes / size);
  const int64_t window = index / per_window, inside = int64_t(index % per_window) * size;
  EXPECT_LT(window, w.count);
  const ChunkPart part = chunk_part(w.first + window * window_bytes, window_bytes, chunk_bytes, memory_bytes);
  EXPECT_LE(inside + size, part.bytes);
  EXPECT_EQ(part.inside % 256, 0);
  return part.chunk * chunk_bytes + part.inside + inside;
}

// The limits of an H200 through Vulkan: bindings of 2 GiB, buffers of 4 GiB.
TEST(WebgpuWindows, FiveGibibytes) {
  const int64_t window = 2 * kGiB, chunk = 4 * kGiB, memory = 5 * kGiB;
  Windows w = windows_of(0, memory, window, chunk);
  EXPECT_EQ(w.count, 3);
  EXPECT_EQ(w.first, 0);
  EXPECT_EQ(w.base_bytes, 0);
  EXPECT_EQ(chunk_part(2 * window, window, chunk, memory).chunk, 1);
  EXPECT_EQ(chunk_part(2 * window, window, chunk, memory).bytes, kGiB);
  w = windows_of(4 * kGiB + 1024, kGiB / 2, window, chunk);
  EXPECT_EQ(w.count, 1);
  EXPECT_EQ(w.first, 4 * kGiB + 1024);
  // Across the border of two buffers.
  w = windows_of(4 * kGiB - 4096, 8192, window, chunk);
  EXPECT_EQ(w.count, 2);
  EXPECT_EQ(w.first, 2 * kGiB);
  EXPECT_EQ(w.base_bytes, 2 * kGiB - 4096);
}

TEST(WebgpuWindows, EveryElementIsReached) {
  std::mt19937_64 random(3);
  for (const auto& [window, chunk] :
       {std::pair{2 * kGiB, 4 * kGiB}, {kGiB, 3 * kGiB}, {kGiB / 8, 2 * kGiB}, {int64_t(256), int64_t(768)}})
    for (int n = 0; n < 2000; ++n) {
      const int64_t size = int64_t(1) << (random() % 3),
                    memory = chunk + int64_t(random() % uint64_t(chunk)) / 4 * 4;
      const int64_t elements = std::min<int64_t>(memory / size, INT32_MAX);
      const int64_t count = 1 + int64_t(random() % uint64_t(elements));
      const int64_t offset = int64_t(random() % uint64_t(memory / size - count + 1)) * size;
      const Windows w = windows_of(offset, count * size, window, chunk);
      EXPECT_EQ(w.first % 256, 0);
      for (const int64_t element : {int64_t(0), count - 1, int64_t(random() % uint64_t(count))})
        ASSERT_EQ(byte_reached(w, element, size, window, chunk, memory), offset + element * size)
            << offset << " " << count << " of " << size << " in " << memory;
    }
}

TEST(WebgpuWindows, FoldsHoldAllGroupsAndFewMore) {
  for (const int64_t limit : {int64_t(3), int64_t(65535)})
    for (const int64_t groups :
         {int64_t(1), limit - 1, limit, limit + 1, 2 * limit + 1, limit * (limit - 1) + 1, limit * limit}) {
      const Folded f = fold(groups, limit);
      EXPECT_LE(f.x, limit);
      EXPECT_LE(f.y, limit);
      EXPECT_GE(f.x * f.y, groups);
      EXPECT_LT(f.x * f.y - groups, f.y);
    }
  EXPECT_EQ(fold(9, 3).x * fold(9, 3).y, 9);
}

}  // namespace
}  // namespace lockstep::device::webgpu
