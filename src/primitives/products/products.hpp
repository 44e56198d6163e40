// Who multiplies matrices: kernels of this library for f32 and f64 (matmul.cpp), those with copies of 16-bit ones in
// f32 around them (narrow_product.cpp), or the vendor's library in fast numerics (library_product.cpp).
#pragma once

#include <optional>
#include <string>

#include "lockstep/primitives.hpp"

namespace lockstep::primitives {

constexpr bool is_narrow(Storage s) { return s == Storage::f16 || s == Storage::bf16; }

/// All three f32 or f64.
void multiply_plain(const Device& device, const Stream& stream, const Buffer& a, const Buffer& b,
                    const Buffer& c);
/// The kernel that computes it.
std::string plain_product_name(const Device& device, const Buffer& a, const Buffer& b, const Buffer& c);

/// The same of a and b that are copied to f32, and so is c unless it is f32.
std::string copied_product_name(const Device& device, const Buffer& a, const Buffer& b, const Buffer& c);

/// a and b of 16 bits, c likewise or f32.
void multiply_narrow(const Device& device, const Stream& stream, const Buffer& a, const Buffer& b,
                     const Buffer& c);
std::string narrow_product_name(const Device& device, const Buffer& a, const Buffer& b, const Buffer& c);

/// The kernel form of the vendor's library for this product, or none with the reason why it is not taken.
std::optional<Kernel> library_product(const Device& device, const Buffer& a, const Buffer& b, const Buffer& c,
                                      const ProductOptions& options, std::string& reason);

}  // namespace lockstep::primitives
