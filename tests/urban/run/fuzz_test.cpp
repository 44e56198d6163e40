// Mutated parameters, points and measurements: each is read whole or refused.
#include <cmath>

#include "io/fuzz/fuzz_files.hpp"
#include "urban/series/inputs/measured.hpp"
#include "urban/series/outputs/points.hpp"
#include "urban/weather/parameters.hpp"

namespace lockstep::urban {
namespace {

using test::Bytes;
using test::bytes_of;
using test::fuzz;

std::string_view text_of(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(Fuzz, Parameters) {
  fuzz(
      {bytes_of(
          R"({"Code":{"Value":{"Grass":5,"Walls":99}},"Albedo":{"Effective":{"Value":{"Grass":0.16,"Walls":0.25}}},
"Emissivity":{"Value":{"Grass":0.94,"Walls":0.9}},"TmaxLST":{"Value":{"Grass":14.0,"Walls":15.0}},
"Ts_deg":{"Value":{"Grass":0.21,"Walls":0.37}},"Tstart":{"Value":{"Grass":-3.38,"Walls":-3.41}},
"Tmrt_params":{"Value":{"absK":0.71,"posture":"Sitting"}},"PET_settings":{"Value":{"Age":40,"Sex":"Female"}},
"Tree_settings":{"Value":{"Transmissivity":0.05,"First_day_leaf":100}}})")},
      [](const Bytes& bytes) {
        const ModelParameters p = parse_parameters(text_of(bytes), "fuzz");
        ASSERT_FALSE(p.land_cover.empty());
        for (const SurfaceRow& row : p.land_cover) ASSERT_TRUE(row.albedo >= 0 && row.albedo <= 1);
        RadiationOptions options;
        p.apply(options);
      });
}

TEST(Fuzz, Points) {
  io::RasterGrid grid;
  grid.rows = 10, grid.cols = 20;
  grid.place(2);
  fuzz({bytes_of("id,x,y\na,3,4\n\"b, c\",5,6\n"), bytes_of("name;easting;northing\n1;39;19\n"),
        bytes_of(
            R"({"features":[{"geometry":{"type":"Point","coordinates":[1,2]},"properties":{"id":"a"}}]})")},
       [&](const Bytes& bytes) {
         for (const SeriesPoint& point : parse_points(text_of(bytes), "fuzz", grid)) {
           ASSERT_TRUE(point.row >= 0 && point.row < grid.rows && point.col >= 0 && point.col < grid.cols);
           ASSERT_FALSE(point.id.empty());
         }
       });
}

TEST(Fuzz, Measured) {
  fuzz({bytes_of("time,Tmrt,Kdown\n2015-06-21T10:00,20.5,300\n2015-06-21T11:00,21,\n"),
        bytes_of("hour;Kn;Ke;Ks;Kw\n1;2;3;4;5\n2;3;4;5;6\n")},
       [](const Bytes& bytes) {
         const MeasuredTable table = parse_measured(text_of(bytes), "fuzz", 24'000'000);
         for (const auto& [name, values] : table.columns) ASSERT_EQ(values.size(), table.times.size());
       });
}

}  // namespace
}  // namespace lockstep::urban
