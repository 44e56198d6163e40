// One budget for the memory of all that a command reads, asked before anything is allocated.
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/array.hpp"

namespace lockstep::io {

/// The budget in bytes; 0: three quarters of the memory that is free when something is first read (the default).
void set_input_memory(int64_t bytes);

/// A share of the budget, given back with the last copy. `where` names the file, `what` the thing: "member a.npy".
class InputClaim {
 public:
  InputClaim() = default;
  /// Throws InputError where what is claimed by now and these bytes exceed the budget.
  InputClaim(double bytes, std::string_view what, std::string_view where);

  /// For vectors of unknown size: called with their bytes while they grow, claims ahead in steps. Counts the copy that
  /// a growing vector makes.
  void reach(size_t bytes, std::string_view what, std::string_view where) {
    if (bytes > reached_) grow(bytes, what, where);
  }
  /// Gives back what was claimed beyond these bytes.
  void settle(size_t bytes);

 private:
  struct Share {
    double bytes = 0;
    ~Share();
  };
  void grow(size_t bytes, std::string_view what, std::string_view where);
  std::shared_ptr<Share> share_;
  size_t reached_ = 0;
};

/// An array that holds its own share of the budget for as long as anything shares its elements.
Array claimed(const Array& array, InputClaim claim);

[[noreturn]] void throw_out_of_memory(std::string_view where);

/// A running reader of this thread: what it reads as a whole stays claimed until it is done.
class ReaderScope {
 public:
  ReaderScope();
  ~ReaderScope();
  ReaderScope(const ReaderScope&) = delete;
  ReaderScope& operator=(const ReaderScope&) = delete;
  /// The innermost one takes the claim; without any it is given back.
  static void keep(InputClaim claim);

 private:
  ReaderScope* const outer_;
  std::vector<InputClaim> claims_;
};

/// Runs a reader; memory that runs out in it is the input's fault. The text of its file stays claimed meanwhile.
template <class Read>
auto within_memory(std::string_view where, Read read) {
  const ReaderScope scope;
  try {
    return read();
  } catch (const std::bad_alloc&) { throw_out_of_memory(where); } catch (const std::length_error&) {
    throw_out_of_memory(where);
  }
}

}  // namespace lockstep::io
