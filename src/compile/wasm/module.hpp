// A WebAssembly module under construction: sections and numbers in their binary form.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::compile::wasm {

using Bytes = std::vector<uint8_t>;

/// LEB128.
void put_unsigned(Bytes& to, uint64_t value);
void put_signed(Bytes& to, int64_t value);

enum class Kind : uint8_t { i32 = 0x7f, i64 = 0x7e, f32 = 0x7d, f64 = 0x7c, v128 = 0x7b };

struct Signature {
  std::vector<Kind> takes, gives;
  friend bool operator==(const Signature&, const Signature&) = default;
};

/// Imports the memory "core.memory". Functions are numbered from the imported ones on.
class Module {
 public:
  /// `shared`: the memory is one that workers share.
  explicit Module(bool shared = false) : shared_(shared) {}
  /// All imports come before the first function.
  uint32_t import_function(std::string_view name, const Signature& signature);
  /// A number for a function whose body follows by define().
  uint32_t declare(const Signature& signature);
  /// `body`: local declarations and code with its end, as Body::finish gives them.
  void define(uint32_t function, Bytes body);
  void export_function(std::string_view name, uint32_t function);
  Bytes finish() const;

 private:
  uint32_t type_of(const Signature& signature);

  struct Named {
    std::string name;
    uint32_t index;  // imports: of the type; exports: of the function
  };
  bool shared_;
  std::vector<Signature> types_;
  std::vector<Named> imports_, exports_;
  std::vector<uint32_t> functions_;  // types
  std::vector<Bytes> bodies_;
};

}  // namespace lockstep::compile::wasm
