// Published-rule results of the tiny scene, computed by an independent program in f64.
#include "urban/published/tiny_reference.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>

#include "urban/scenes.hpp"

namespace lockstep::urban {
namespace {

using testing::cast_rays;
using testing::tiny_city;

template <class Real>
class TinyReference : public ::testing::Test {};
using Precisions = ::testing::Types<float, double>;
TYPED_TEST_SUITE(TinyReference, Precisions);

TYPED_TEST(TinyReference, ShadedPixelCounts) {
  for (const testing::TinyShadow& expected : testing::kTinyShadows) {
    const City city = prepare_city(tiny_city(expected.pixel_size_m));
    const auto rays = cast_rays<TypeParam>(city, {expected.azimuth_deg, expected.altitude_deg});
    int buildings = 0, vegetation = 0;
    for (SkyState s : rays.state) {
      buildings += !reference::sees_past_buildings(s);
      vegetation += !reference::sees_past_vegetation(s);
    }
    const std::string where =
        "px " + std::to_string(expected.pixel_size_m) + " az " + std::to_string(expected.azimuth_deg);
    EXPECT_EQ(buildings, expected.buildings) << where;
    EXPECT_EQ(vegetation, expected.vegetation) << where;
  }
}

TYPED_TEST(TinyReference, SkyViewFactors) {
  for (const testing::TinySky& expected : testing::kTinySkies) {
    const City city = prepare_city(tiny_city(expected.pixel_size_m));
    SkyOptions options;
    options.patches = patches_from_count(expected.patches);
    options.edges = AnnulusEdges::solweig;  // the reference was made with a 4° edge in the 609-patch sky
    const SkyDivision sky = sky_division(options.patches, options.edges);
    const auto grids =
        reference::sky_view<TypeParam>(city, sky, reference::sky_states<TypeParam>(city, sky, options));
    const std::string where =
        "px " + std::to_string(expected.pixel_size_m) + " patches " + std::to_string(expected.patches);
    const auto mean = [&](int grid) {
      double sum = 0;
      for (TypeParam v : grids[static_cast<size_t>(grid)]) sum += static_cast<double>(v);
      return sum / static_cast<double>(grids[0].size());
    };
    const int mean_grids[] = {0, 1, 2, 3, 4, 5, 10};
    for (int k = 0; k < 7; ++k)
      EXPECT_NEAR(mean(mean_grids[k]), expected.means[k], 2e-7) << where << " mean " << k;
    for (const testing::TinyPixel& pixel : expected.pixels) {
      const size_t p = static_cast<size_t>(pixel.row * 64 + pixel.col);
      for (int g = 0; g < 11; ++g)
        EXPECT_NEAR(static_cast<double>(grids[static_cast<size_t>(g)][p]), pixel.values[g], 7e-7)
            << where << " (" << pixel.row << "," << pixel.col << ") "
            << kSkyViewNames[static_cast<size_t>(g)];
    }
  }
}

}  // namespace
}  // namespace lockstep::urban
