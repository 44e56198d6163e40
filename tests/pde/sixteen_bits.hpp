// Losses of fields in 16-bit storage.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "pde/problems.hpp"

namespace lockstep::pde::testing {

/// Computes as f32 does on the same values and rounds gradients once. `fit`: the nearest value that H holds;
/// `bits`: those of such a value; `rounded`: those of any gradient.
template <class H>
void expect_computed_in_float(const Mesh& mesh, double seed, const std::function<float(float)>& fit,
                              const std::function<uint16_t(float)>& bits,
                              const std::function<uint16_t(float)>& rounded) {
  for (const Device& device : devices())
    for (Path path : {Path::two_kernel, Path::fused}) {
      auto state = random_state<float>(mesh, 6);
      for (auto* array : arrays(state))
        for (float& v : *array) v = fit(v);
      Inputs wide = upload(device, mesh, state), narrow;
      wide.seed = narrow.seed = seed;
      for (const auto& [name, levels] : wide.fields)
        for (size_t l = 0; l < 3; ++l) {
          std::vector<H> values;
          for (float v : device.download<float>(levels[l])) values.push_back(H{bits(v)});
          narrow.fields[name][l] = device.upload(std::span<const H>(values), levels[l].shape());
        }
      LossOptions options;
      options.path = path;
      const Loss loss(transport(3), mesh);
      const BoundLoss a = loss.bind(device, wide, options), b = loss.bind(device, narrow, options);
      a.run();
      b.run();
      EXPECT_EQ(a.loss(), b.loss());
      for (const char* field : {"sigma", "u"})
        for (int level = -1; level <= 1; ++level) {
          const auto exact = device.download<float>(a.gradient(field, level));
          const auto got = device.download<H>(b.gradient(field, level));
          for (size_t i = 0; i < got.size(); ++i)
            ASSERT_EQ(got[i].bits, rounded(exact[i])) << field << level << " at " << i << " " << exact[i];
        }
    }
}

}  // namespace lockstep::pde::testing
