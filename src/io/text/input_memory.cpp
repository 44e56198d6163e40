#include "io/text/input_memory.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/platform/process.hpp"
#include "core/platform/system.hpp"
#include "core/platform/threads.hpp"
#include "lockstep/error.hpp"

namespace lockstep::io {
namespace {

struct Budget {
  Mutex mutex;
  double limit = 0, used = 0;

  static Budget& all() {
    static auto& budget = *new Budget;  // claims of statics outlive it otherwise
    return budget;
  }
};

/// A limit of the address space leaves room for less than the machine has.
double default_limit() {
  return 0.75 *
         std::min(static_cast<double>(platform::system_memory().free_bytes), platform::address_space_bytes());
}

void take_share(double bytes, std::string_view what, std::string_view where) {
  Budget& budget = Budget::all();
  const std::lock_guard lock(budget.mutex);
  if (budget.limit == 0) budget.limit = default_limit();
  if (budget.used + bytes > budget.limit) {
    constexpr double mib = 1 << 20;
    const std::string before =
        budget.used > 0 ? fmt::format(", after {:.0f} MiB before it", budget.used / mib) : "";
    throw InputError(fmt::format("{} takes {:.0f} MiB of memory{}", what, bytes / mib, before), where,
                     fmt::format("at most {:.0f} MiB for all that is read", budget.limit / mib))
        .with_hint("--input-memory SIZE allows more");
  }
  budget.used += bytes;
}

void return_share(double bytes) {
  Budget& budget = Budget::all();
  const std::lock_guard lock(budget.mutex);
  budget.used = std::max(0.0, budget.used - bytes);
}

}  // namespace

void set_input_memory(int64_t bytes) {
  Budget& budget = Budget::all();
  const std::lock_guard lock(budget.mutex);
  budget.limit = static_cast<double>(bytes);
}

InputClaim::InputClaim(double bytes, std::string_view what, std::string_view where) {
  take_share(bytes, what, where);
  share_ = std::make_shared<Share>();
  share_->bytes = bytes;
}

InputClaim::Share::~Share() { return_share(bytes); }

void InputClaim::grow(size_t bytes, std::string_view what, std::string_view where) {
  // A vector that grows holds its old elements and room for twice as many.
  constexpr double kGrowth = 3;
  constexpr size_t kLeast = 1 << 16;
  const size_t reached = bytes + bytes / 4 + kLeast;
  if (!share_) share_ = std::make_shared<Share>();
  const double more = kGrowth * double(reached) - share_->bytes;
  if (more > 0) {
    take_share(more, what, where);
    share_->bytes += more;
  }
  reached_ = reached;
}

void InputClaim::settle(size_t bytes) {
  if (!share_ || share_->bytes <= double(bytes)) return;
  return_share(share_->bytes - double(bytes));
  share_->bytes = double(bytes);
  reached_ = 0;
}

namespace {
thread_local ReaderScope* innermost = nullptr;
}  // namespace

ReaderScope::ReaderScope() : outer_(innermost) { innermost = this; }
ReaderScope::~ReaderScope() { innermost = outer_; }
void ReaderScope::keep(InputClaim claim) {
  if (innermost) innermost->claims_.push_back(std::move(claim));
}

Array claimed(const Array& array, InputClaim claim) {
  struct Held {
    Array array;
    InputClaim claim;
  };
  const auto held = std::make_shared<const Held>(Held{array, std::move(claim)});
  return Array::adopt(array.storage(), array.shape(), array.data(), held);
}

void throw_out_of_memory(std::string_view where) {
  throw InputError("it needs more memory than is available", where,
                   "an input that fits into the memory of this machine");
}

}  // namespace lockstep::io
