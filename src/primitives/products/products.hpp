// Who multiplies matrices: kernels of this library for f32 and f64 (matmul.cpp), those with copies of 16-bit ones in
// f32 around them (narrow_product.cpp), or the vendor's library in fast numerics (library_product.cpp).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "device/variants/variants.hpp"
#include "lockstep/primitives.hpp"

namespace lockstep::primitives {

/// f32 and f64 by kernels; of 16 bits; kernels or the vendor's library.
const variants::Computation& matmul_computation();
const variants::Computation& narrow_computation();
const variants::Computation& library_computation();

enum class Product : uint8_t;  // kernels.hpp
/// Bytes that a variant allocates beyond a, b and c: of kernels for f32 and f64, and of the one that a device would take.
int64_t plain_scratch(Product form, Storage storage, const Shape& a, const Shape& c);
int64_t plain_scratch(const Device& device, Storage storage, const Shape& a, const Shape& c);
/// Of copies in f32 of a and b, and of c unless it is f32.
int64_t copies_scratch(const Device& device, const Shape& a, const Shape& b, const Shape& c, Storage storage);

/// c = a b.
struct Factors {
  const Buffer &a, &b, &c;
};

constexpr bool is_narrow(Storage s) { return s == Storage::f16 || s == Storage::bf16; }

/// a, b and c, all f32 or f64, by a variant of primitives.matmul; empty: the fastest.
void multiply_plain(const Device& device, const Stream& stream, const Factors& abc,
                    std::string_view variant = {});
/// The kernel that computes it.
std::string plain_product_name(const Device& device, const Factors& abc);

/// The same of a and b that are copied to f32, and so is c unless it is f32.
std::string copied_product_name(const Device& device, const Factors& abc);

/// a and b of 16 bits, c likewise or f32; by a variant of primitives.matmul.narrow.
void multiply_narrow(const Device& device, const Stream& stream, const Factors& abc,
                     std::string_view variant);
std::string narrow_product_name(const Device& device, const Factors& abc);

/// The kernel form of the vendor's library for this product, or none with the reason why it is not taken.
std::optional<Kernel> library_product(const Device& device, const Factors& abc, const ProductOptions& options,
                                      std::string_view variant, std::string& reason);

/// By "library" or a variant of the kernels; empty: the fastest. Matrices are those of matmul(), with elements. Throws
/// UnsupportedError where the variant does not apply.
void multiply_by(const Device& device, const Stream& stream, const Factors& abc,
                 const ProductOptions& options, std::string_view variant);

}  // namespace lockstep::primitives
