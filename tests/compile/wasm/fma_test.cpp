// The digests that generated code has to reach inside WebAssembly (tests/web/operations.cpp) are those of this machine's fma.
#include <gtest/gtest.h>

#include "web/fma_digest.hpp"

namespace lockstep::web_tests {
namespace {

template <class T>
uint64_t digest_of_fma() {
  HostileTriples<T> triples;
  Digest digest;
  int64_t double_rounding = 0, subnormal = 0;
  for (int64_t k = 0; k < kTriples; ++k) {
    const auto [a, b, c] = triples.next();
    const T exact = std::fma(a, b, c), twice = a * b + c;
    double_rounding += exact == exact && std::isfinite(twice) && exact != twice;
    subnormal += std::fpclassify(exact) == FP_SUBNORMAL;
    digest.add(exact);
  }
  EXPECT_GT(double_rounding, kTriples / 20) << "triples on which two roundings differ from one";
  EXPECT_GT(subnormal, kTriples / 20);
  return digest.value;
}

TEST(Fma, DigestsOfHostileTriples) {
  EXPECT_EQ(digest_of_fma<float>(), kFma32Digest);
  EXPECT_EQ(digest_of_fma<double>(), kFma64Digest);
}

}  // namespace
}  // namespace lockstep::web_tests
