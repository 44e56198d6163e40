// Mutated weather files.
#include "core/temporary_folder.hpp"
#include "io/era5_files.hpp"
#include "io/fuzz/fuzz_files.hpp"
#include "io/series/weather/weather.hpp"

namespace {

using namespace lockstep;
using namespace lockstep::io;
using namespace lockstep::test;

void fuzz_weather(const std::string& head, const std::string& row,
                  WeatherTable (*parse)(std::string_view, std::string_view)) {
  std::string text = head;
  for (int hour = 0; hour < 5; ++hour) text += fmt::format(fmt::runtime(row), hour + 1) + "\n";
  fuzz({bytes_of(text), bytes_of(head + fmt::format(fmt::runtime(row), 3) + "\r\n")},
       [&](const Bytes& bytes) {
         const WeatherTable table =
             parse(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()), "fuzz");
         ASSERT_FALSE(table.rows.empty());
         for (size_t k = 1; k < table.rows.size(); ++k) ASSERT_LT(table.rows[k - 1].time, table.rows[k].time);
         ASSERT_LE(complete_weather(table).rows.size(), 4 * table.rows.size() * 180);
       });
}

TEST(Fuzz, Epw) {
  fuzz_weather("LOCATION,A,-,SWE,I,0,57.67,12.30,1.0,169.0\nDATA PERIODS,1,1,Data,Sunday, 1/ 1,12/31\n",
               "1999,2,28,{},60,C9,-1.5,-2.3,93,101325,0,1415,280,120,30,110,0,0,0,0,180,3.1,9", parse_epw);
}
TEST(Fuzz, UmepMet) {
  fuzz_weather("%iy id it imin\n",
               "2016 366 {} 0 -999 -999 -999 -999 -999 2.0 60 -3.5 101.3 -999 400 -999 300 -999 -999 -999 "
               "-999 60 800 -999",
               parse_umep_met);
}
TEST(Fuzz, WeatherCsv) {
  fuzz_weather("time,Ta,RH,wind,Kglobal,Ldown\n", "2016-02-29T{:02}:00+05:30,20.5,50,,600,300",
               parse_weather_csv);
}

// In the classic format, as the old store gives it: libhdf5 1.10 crashes on damaged files by itself.
TEST(Fuzz, Era5) {
  if (const std::string reason = netcdf_missing(); !reason.empty()) GTEST_SKIP() << reason;
  TemporaryFolder folder;
  write_old(folder / "old.nc", kClassic64);
  const auto path = folder / "fuzz.nc";
  fuzz({read_file(folder / "old.nc")}, [&](const Bytes& bytes) {
    write_text(path, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    const WeatherTable table = read_era5(path, {48.25, -12, false, 0});
    ASSERT_FALSE(table.rows.empty());
    for (size_t row = 1; row < table.rows.size(); ++row)
      ASSERT_LT(table.rows[row - 1].time, table.rows[row].time);
  });
}

}  // namespace
