#include "device/cpu/schedule.hpp"

#ifdef __SSE2__
#include <xmmintrin.h>
#endif

#include <algorithm>
#include <vector>

#include "compile/native/native.hpp"
#include "core/platform/thread.hpp"
#include "device/cpu/memory.hpp"

namespace lockstep::device::cpu {

using compile::simd::Box;
using compile::simd::Frame;
using compile::simd::kScratchAlignment;

namespace {

constexpr int64_t kInlineCost = 200'000;  // below this a launch runs on the calling thread
constexpr int64_t kTaskCost = 300'000;    // what one task should hold at least
constexpr int64_t kLeastX = 1024;         // points of a row that stay together

#ifdef __SSE2__
/// Rounds to nearest and keeps subnormals, regardless of the modes that the caller or its libraries have set.
class PlainFloats {
 public:
  PlainFloats() : before_(_mm_getcsr()) {
    if (before_ & kModes) _mm_setcsr(before_ & ~kModes);
  }
  ~PlainFloats() {
    if (before_ & kModes) _mm_setcsr(before_);
  }
  PlainFloats(const PlainFloats&) = delete;

 private:
  static constexpr unsigned kModes = 0xe040;  // flush to zero, rounding, subnormals are zero
  unsigned before_;
};
#else
struct PlainFloats {
  PlainFloats() {}
};
#endif

void call(const Work& work, const Frame& frame, const Box& box) {
  const PlainFloats scope;
  work.function(&frame, &box, work.scratch_bytes > 0 ? thread_scratch(work.scratch_bytes) : nullptr);
}

/// A domain cut into parts of x and flattened rows (y fastest, then z).
struct Cut {
  Box box;
  int64_t ny, nz;
  int64_t x_parts, x_step, row_parts, row_step;
  int64_t parts() const { return x_parts * row_parts; }
};

Cut cut(const Work& work, const Box& box, int threads) {
  const auto size = [&](int a) { return int64_t(box.high[a]) - box.low[a]; };
  Cut c{box, size(1), size(2), 1, size(0), 1, 1};
  const int64_t rows = c.ny * c.nz, total = std::max<int64_t>(rows * size(0) * work.cost, 1);
  const int64_t wanted = std::clamp<int64_t>(total / kTaskCost, 1, int64_t(threads) * 16);
  c.row_parts = std::min(rows, wanted);
  c.row_step = (rows + c.row_parts - 1) / c.row_parts;
  c.row_parts = (rows + c.row_step - 1) / c.row_step;
  if (c.row_parts < wanted) {
    const int64_t unit = work.points ? kLeastX : 1;
    const int64_t pieces = std::max<int64_t>(wanted / c.row_parts, 1);
    c.x_step = ((size(0) + pieces - 1) / pieces + unit - 1) / unit * unit;
    c.x_parts = (size(0) + c.x_step - 1) / c.x_step;
  }
  return c;
}

/// `run` for the boxes that make up a part.
template <class Run>
void for_boxes(const Cut& c, int64_t part, Run run) {
  const int64_t xp = part % c.x_parts, rp = part / c.x_parts;
  Box box = c.box;
  box.low[0] = int32_t(c.box.low[0] + xp * c.x_step);
  box.high[0] = int32_t(std::min<int64_t>(c.box.low[0] + (xp + 1) * c.x_step, c.box.high[0]));
  const int64_t last = std::min((rp + 1) * c.row_step, c.ny * c.nz);
  for (int64_t row = rp * c.row_step; row < last;) {
    const int64_t z = row / c.ny, y = row % c.ny;
    int64_t y_end = std::min(c.ny, y + last - row), planes = 1;
    // Whole planes go in one call.
    if (y == 0 && last - row >= c.ny) planes = (last - row) / c.ny;
    box.low[1] = int32_t(c.box.low[1] + y), box.high[1] = int32_t(c.box.low[1] + y_end);
    box.low[2] = int32_t(c.box.low[2] + z), box.high[2] = int32_t(c.box.low[2] + z + planes);
    run(box);
    row += (y_end - y) * planes;
  }
}

}  // namespace

void Threads::run(const Work& work, const Frame& frame, const Box& box, bool alone) {
  int64_t total = work.cost;
  for (int a = 0; a < 3; ++a) {
    const int64_t size = int64_t(box.high[a]) - box.low[a];
    if (size <= 0) return;
    total *= size;  // three axes below 2^31 and a cost below 2^20 may overflow only where no one would wait
    total = std::min<int64_t>(total, int64_t(1) << 31);
  }
  if (alone || count() == 1 || total < kInlineCost) return call(work, frame, box);
  const Cut c = cut(work, box, count());
  if constexpr (kHasThreads) {
    arena_.for_parts(c.parts(), [&](int64_t first, int64_t last) {
      for (int64_t part = first; part < last; ++part)
        for_boxes(c, part, [&](const Box& one) { call(work, frame, one); });
    });
  } else {
    std::vector<Box> boxes;
    for (int64_t part = 0; part < c.parts(); ++part)
      for_boxes(c, part, [&](const Box& one) { boxes.push_back(one); });
    const int64_t each = (work.scratch_bytes + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
    compile::simd::run_on_workers(work.function, frame, boxes, thread_scratch(each * count()), each);
  }
}

}  // namespace lockstep::device::cpu
