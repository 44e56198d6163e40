#include "urban/sky/patches.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "lockstep/error.hpp"
#include "urban/scenes.hpp"
#include "urban/sky/svf_weights.hpp"

namespace lockstep::urban {
namespace {

constexpr SkyPatches kAll[] = {SkyPatches::p145, SkyPatches::p153, SkyPatches::p305, SkyPatches::p609};

TEST(SkyPatchesTest, CountsAndOrder) {
  const int counts[] = {145, 153, 305, 609};
  for (int k = 0; k < 4; ++k) {
    const SkyDivision sky = sky_division(kAll[k], AnnulusEdges::umep);
    EXPECT_EQ(static_cast<int>(sky.patches.size()), counts[k]);
    EXPECT_EQ(patch_count(kAll[k]), counts[k]);
    EXPECT_EQ(patches_from_count(counts[k]), kAll[k]);
    EXPECT_EQ(sky.patches.back().altitude_deg, 90);
    EXPECT_EQ(sky.bands.back().upper_edge_deg, 90);
    for (size_t b = 1; b < sky.bands.size(); ++b) {
      EXPECT_EQ(sky.bands[b].lower_edge_deg, sky.bands[b - 1].upper_edge_deg);
      EXPECT_EQ(sky.bands[b].first, sky.bands[b - 1].first + sky.bands[b - 1].count);
    }
    for (const Direction& d : sky.patches) {
      EXPECT_GE(d.azimuth_deg, 0);
      EXPECT_LT(d.azimuth_deg, 360);
    }
  }
  EXPECT_EQ(patches_from_count(306), SkyPatches::p305);
  EXPECT_EQ(patches_from_count(612), SkyPatches::p609);
  EXPECT_THROW(patches_from_count(146), InputError);
}

// Rings of a finer sky are those of the coarser one: of 305 patches begun where the 145 begin, of 609 halved by altitude.
TEST(SkyPatchesTest, FinerSkiesDivideTheCoarserOnes) {
  const auto azimuths = [](const SkyDivision& sky, size_t band) {
    std::vector<double> out;
    for (size_t k = 0; k < sky.patches.size(); ++k)
      if (sky.band_of_patch[k] == int(band)) out.push_back(sky.patches[k].azimuth_deg);
    return out;
  };
  const SkyDivision coarse = sky_division(SkyPatches::p145, AnnulusEdges::umep),
                    middle = sky_division(SkyPatches::p305, AnnulusEdges::umep),
                    fine = sky_division(SkyPatches::p609, AnnulusEdges::umep);
  ASSERT_EQ(middle.bands.size(), coarse.bands.size());
  ASSERT_EQ(fine.bands.size(), 2 * middle.bands.size() - 1);
  for (size_t band = 0; band + 1 < middle.bands.size(); ++band) {
    SCOPED_TRACE(band);
    EXPECT_EQ(middle.bands[band].altitude_deg, coarse.bands[band].altitude_deg);
    EXPECT_EQ(azimuths(middle, band).front(), azimuths(coarse, band).front());
    for (const size_t half : {2 * band, 2 * band + 1}) {
      EXPECT_EQ(azimuths(fine, half), azimuths(middle, band));
      EXPECT_EQ(fine.bands[half].altitude_deg, middle.bands[band].altitude_deg + (half % 2 == 0 ? -3 : 3));
    }
  }
}

TEST(SkyPatchesTest, BandWeights) {
  const double expected[] = {.043227, .122207, .180057, .206773, .197736, .154508, .084565, .010926};
  for (SkyPatches kind : {SkyPatches::p145, SkyPatches::p153, SkyPatches::p305}) {
    const SkyDivision sky = sky_division(kind, AnnulusEdges::umep);
    const auto weights = patch_weights(sky);
    for (size_t b = 0; b < sky.bands.size(); ++b)
      EXPECT_NEAR(weights[b].whole * sky.bands[b].count, expected[b], 6e-7);
  }
}

TEST(SkyPatchesTest, EverySectorIsHalfTheSky) {
  const SkyDivision sky = sky_division(SkyPatches::p305, AnnulusEdges::umep);
  for (Sector s : {Sector::east, Sector::south, Sector::west, Sector::north}) {
    int inside = 0;
    for (const Direction& d : sky.patches) inside += in_sector(d.azimuth_deg, s);
    EXPECT_EQ(inside, 152 + (s == Sector::east || s == Sector::north));
  }
}

struct Flat {
  SkyPatches kind;
  AnnulusEdges edges;
  double svf, east, south, west, north;
};

TEST(SkyPatchesTest, FlatTerrain) {
  const Flat table[] = {
      {SkyPatches::p145, AnnulusEdges::umep, 1, 1, .989378, .989378, 1},
      {SkyPatches::p153, AnnulusEdges::umep, 1, 1, .947532, .923689, .976157},
      {SkyPatches::p305, AnnulusEdges::umep, 1, 1, .989378, .989378, 1},
      {SkyPatches::p609, AnnulusEdges::solweig, 1, 1, .975833, .975833, 1},
      {SkyPatches::p609, AnnulusEdges::umep, 1, 1, .980042, .980042, 1},
  };
  CityInput input;
  input.dsm = Raster(3, 4, 7.5f);
  const City city = prepare_city(input);
  for (const Flat& flat : table) {
    SkyOptions options;
    options.patches = flat.kind;
    options.edges = flat.edges;
    const SkyDivision sky = sky_division(flat.kind, flat.edges);
    const auto states = reference::sky_states<double>(city, sky, options);
    for (uint32_t word : states.words) EXPECT_EQ(word, 0u);
    const auto grids = reference::sky_view<double>(city, sky, states);
    const auto single = reference::sky_view<float>(city, sky, states);
    for (float svf : single[0]) EXPECT_EQ(svf, 1.0f) << "rounded once";
    const double expected[] = {flat.svf, flat.east, flat.south, flat.west, flat.north};
    for (size_t p = 0; p < 12; ++p) {
      for (size_t s = 0; s < 5; ++s)
        EXPECT_NEAR(grids[s][p], expected[s], 6e-7) << patch_count(flat.kind) << " " << s;
      for (size_t g = 5; g < 15; ++g) EXPECT_EQ(grids[g][p], 1.0) << "without plants nothing is behind them";
    }
  }
}

TEST(SkyPatchesTest, UmepEdgesOfTheFinestSkyOverlap) {
  const SkyDivision sky = sky_division(SkyPatches::p609, AnnulusEdges::umep);
  const auto weights = patch_weights(sky);
  double sum = 0;
  for (size_t b = 0; b < weights.size(); ++b) sum += weights[b].whole * sky.bands[b].count;
  EXPECT_NEAR(sum, 1.004209, 6e-7);
}

}  // namespace
}  // namespace lockstep::urban
