#include "urban/city/prepare.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lockstep/error.hpp"
#include "urban/city/people_ground.hpp"
#include "urban/radiation/constants.hpp"
#include "urban/rasters.hpp"

namespace lockstep::urban {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

CityInput two_by_three(std::vector<float> dsm) {
  CityInput input;
  input.dsm = raster_of(2, 3, std::move(dsm));
  return input;
}

TEST(PrepareCity, MissingPixels) {
  CityInput input = two_by_three({1, kNan, 3, -9999, std::numeric_limits<float>::infinity(), 2});
  input.dsm.nodata = -9999.0f;
  const City city = prepare_city(input);
  EXPECT_EQ(city.missing, 3);
  EXPECT_EQ(values_of(city.dsm), (std::vector<float>{1, kNoHeight, 3, kNoHeight, kNoHeight, 2}));
  EXPECT_EQ(city.shift, 0) << "a nodata value is no height";
  EXPECT_EQ(city.lowest, 1);
  EXPECT_EQ(city.highest, 3);
}

// 2 m above the DEM is a roof, just below is not. Classes of roofs and water also count; without a DEM only they do.
TEST(PeopleGround, LeavesOutRoofsAndWater) {
  CityInput input = two_by_three({1, 2.99f, 3, kNan, 1, 1});
  input.dem = Raster(2, 3, 1.0f);
  const City city = prepare_city(input);
  EXPECT_EQ(people_ground(city, {}), (std::vector<uint8_t>{1, 1, 0, 0, 1, 1}));
  const std::vector<int32_t> cover = {5, 5, 5, 1, kBuildingCode, kWaterCode};
  EXPECT_EQ(people_ground(city, cover), (std::vector<uint8_t>{1, 1, 0, 0, 0, 0}));
  const City bare = prepare_city(two_by_three({1, 2.99f, 3, kNan, 1, 1}));
  EXPECT_EQ(people_ground(bare, cover), (std::vector<uint8_t>{1, 1, 1, 0, 0, 0}));
}

TEST(PrepareCity, NegativeHeightsAreLifted) {
  CityInput input = two_by_three({-4, 0, 3, 1, 1, 2});
  input.dem = Raster(2, 3, -4.0f);
  input.cdsm = raster_of(2, 3, {0, 5, 0, 0, 0, 0});
  const City city = prepare_city(input);
  EXPECT_EQ(city.shift, 4);
  EXPECT_EQ(values_of(city.dsm), (std::vector<float>{0, 4, 7, 5, 5, 6}));
  EXPECT_EQ(values_of(city.dem), std::vector<float>(6, 0.0f));
  EXPECT_EQ(values_of(city.canopy), (std::vector<float>{0, 9, 0, 0, 0, 0}));
  EXPECT_EQ(ground_mask(city), (std::vector<uint8_t>{1, 0, 0, 0, 0, 0}));
}

TEST(PrepareCity, RelativeAndAbsoluteCanopyAgree) {
  CityInput above = two_by_three({1, 2, 3, 4, 5, 6});
  above.cdsm = raster_of(2, 3, {0, 8, kNan, 4, 0, 2});
  above.tdsm = raster_of(2, 3, {0, 2, 0, 1, 0, 0});
  CityInput absolute = above;
  absolute.canopy_heights = CanopyHeights::absolute;
  for (size_t p = 0; p < 6; ++p) {
    if (above.cdsm.pixels()[p] > 0) absolute.cdsm.pixels()[p] += above.dsm.pixels()[p];
    if (above.tdsm.pixels()[p] > 0) absolute.tdsm.pixels()[p] += above.dsm.pixels()[p];
  }
  const City a = prepare_city(above), b = prepare_city(absolute);
  EXPECT_EQ(values_of(a.canopy), (std::vector<float>{0, 10, 0, 8, 0, 8}));
  EXPECT_EQ(values_of(a.trunk), (std::vector<float>{0, 4, 0, 5, 0, 0}));
  EXPECT_EQ(values_of(a.canopy), values_of(b.canopy));
  EXPECT_EQ(values_of(a.trunk), values_of(b.trunk));
  EXPECT_FALSE(a.is_bush(1));
  EXPECT_TRUE(a.is_bush(5));
  EXPECT_EQ(a.highest, 10);
}

TEST(PrepareCity, AbsoluteCanopyOnTheGroundIsNone) {
  CityInput input = two_by_three({1, 2, 3, 4, 5, 6});
  input.canopy_heights = CanopyHeights::absolute;
  input.cdsm = input.dsm;
  EXPECT_FALSE(prepare_city(input).has_vegetation());
  input.cdsm.pixels()[2] = 9;
  const City city = prepare_city(input);
  EXPECT_EQ(values_of(city.canopy), (std::vector<float>{0, 0, 9, 0, 0, 0}));
}

TEST(PrepareCity, TrunksFromTheRatio) {
  CityInput input = two_by_three({1, 1, 1, 1, 1, 1});
  input.cdsm = raster_of(2, 3, {0, 8, 0, 4, 0, 0});
  EXPECT_EQ(values_of(prepare_city(input).trunk), (std::vector<float>{0, 3, 0, 2, 0, 0}));
  input.trunk_ratio = 0.5;
  EXPECT_EQ(values_of(prepare_city(input).trunk), (std::vector<float>{0, 5, 0, 3, 0, 0}));
  input.trunk_ratio = 0;
  const City bushes = prepare_city(input);
  EXPECT_EQ(values_of(bushes.trunk), std::vector<float>(6, 0.0f));
  EXPECT_TRUE(bushes.is_bush(1));
}

TEST(PrepareCity, VegetationThatIsNowhereIsNone) {
  CityInput input = two_by_three({1, 1, 1, 1, 1, 1});
  input.cdsm = Raster(2, 3, 0.0f);
  EXPECT_FALSE(prepare_city(input).has_vegetation());
}

TEST(PrepareCity, RefusesBadInput) {
  EXPECT_THROW(prepare_city(CityInput{}), InputError);
  EXPECT_THROW(prepare_city(two_by_three({kNan, kNan, kNan, kNan, kNan, kNan})), InputError);
  CityInput input = two_by_three({1, 1, 1, 1, 1, 1});
  input.pixel_size_m = 0;
  EXPECT_THROW(prepare_city(input), InputError);
  input.pixel_size_m = 1;
  input.cdsm = Raster(3, 2);
  EXPECT_THROW(prepare_city(input), InputError);
  input.cdsm = Raster();
  input.tdsm = Raster(2, 3);
  EXPECT_THROW(prepare_city(input), InputError) << "trunks without crowns";
  input.cdsm = Raster(2, 3);
  input.trunk_ratio = 2;
  EXPECT_THROW(prepare_city(input), InputError);
  input.trunk_ratio = 0.25;
  input.dsm.values = Array(Storage::f64, {2, 3});
  EXPECT_THROW(prepare_city(input), InputError);
}

}  // namespace
}  // namespace lockstep::urban
