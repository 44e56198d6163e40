#include "verify/digest.hpp"

#include <cstring>
#include <vector>

#include "core/hash.hpp"

namespace lockstep {

namespace {

/// Every NaN becomes the same one.
template <class Word>
void unify_nans(std::span<std::byte> bytes, Word infinity, Word nan) {
  for (size_t k = 0; k + sizeof(Word) <= bytes.size(); k += sizeof(Word)) {
    Word word;
    std::memcpy(&word, bytes.data() + k, sizeof word);
    if (Word(word << 1) > Word(infinity << 1)) std::memcpy(bytes.data() + k, &nan, sizeof nan);
  }
}

}  // namespace

std::string digest(std::span<const Array> results) {
  std::string all;
  for (const Array& result : results) {
    const Array array = result.copy();
    std::vector<std::byte> bytes(array.data(), array.data() + array.bytes());
    switch (array.storage()) {
      case Storage::f64: unify_nans<uint64_t>(bytes, 0x7ff0000000000000, 0x7ff8000000000000); break;
      case Storage::f32: unify_nans<uint32_t>(bytes, 0x7f800000, 0x7fc00000); break;
      case Storage::f16: unify_nans<uint16_t>(bytes, 0x7c00, 0x7e00); break;
      case Storage::bf16: unify_nans<uint16_t>(bytes, 0x7f80, 0x7fc0); break;
      default: break;
    }
    all += std::string(name(array.storage())) + " " + to_string(array.shape()) + " " +
           to_hex(hash128(bytes)) + "\n";
  }
  return to_hex(hash128(std::string_view(all)));
}

}  // namespace lockstep
