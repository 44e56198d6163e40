// Buffers and arrays of generated WGSL: declarations and accessor functions.
#pragma once

#include <string>
#include <vector>

#include "compile/clike/wgsl/wgsl.hpp"

namespace lockstep::clike {

/// Storage as the shader sees it.
std::string_view wgsl_type(Type type);

/// One buffer parameter's text.
class WgslBufferText {
 public:
  /// `base` is the text of the element base, empty where it is 0.
  WgslBufferText(const ir::Function& function, uint32_t buffer, const WgslBuffer& how, int64_t window_bytes);

  /// Declarations of its bindings; numbers start at `first`, entries are appended to `bindings`.
  std::string declarations(std::vector<WgslBinding>& bindings) const;
  /// Accessor functions of those names that `body` uses. `base` is the text of the base word, or empty.
  std::string accessors(std::string_view body, const std::string& base) const;

  // Expressions and statements; `index` is an i32 expression.
  std::string load(const std::string& index) const;
  std::string store(const std::string& index, const std::string& value) const;  // without ';'
  std::string atomic(ir::AtomicOp op, const std::string& index, const std::string& value,
                     const std::string* compare) const;

  bool narrow() const { return size_of(param_.storage) < 4; }

 private:
  /// The accessors, each a function; `at` is the text that finds the word.
  std::string load_function(const std::string& at) const;
  std::string store_function(const std::string& at) const;
  std::string atomic_function(std::string_view function, const std::string& at) const;
  std::string compare_exchange_function(const std::string& at) const;
  std::string place(int window, const std::string& index) const;
  std::string plain_load(int window, const std::string& index) const;
  /// `switch` over the windows; `statement` gives the text for window k at `index`.
  template <class Statement>
  std::string over_windows(Statement statement) const;

  const ir::BufferParam& param_;
  uint32_t buffer_;
  WgslBuffer how_;
  int64_t window_words_;
  bool written_, atomic_, simple_, bits_;
  std::string name_, element_;
  struct {  // of a word, which an element narrower than it is
    int per_word = 1, bits = 32;
    uint32_t mask = 0xffffffffu;
    std::string_view unpack = "{}", pack = "{}";
  } part_;
};

/// `atomicAdd` …
std::string_view wgsl_atomic_function(ir::AtomicOp op);
/// Statements that add to the float whose bits are in `place`, an atomic<u32>, and return its old value.
std::string wgsl_float_add(std::string_view old, std::string_view place, std::string_view value);

}  // namespace lockstep::clike
