// Declarations of urban's options: what holds of each of them, rules in the words of each caller, and the tables of
// docs/urban-options.md.
#include <gtest/gtest.h>

#include "core/schema/table.hpp"
#include "core/schema_walk.hpp"
#include "lockstep/urban/areas.hpp"
#include "lockstep/urban/comfort.hpp"
#include "lockstep/urban/compare.hpp"
#include "lockstep/urban/exchange.hpp"
#include "lockstep/urban/plant.hpp"
#include "lockstep/urban/series.hpp"
#include "lockstep/urban/stages.hpp"
#include "lockstep/urban/sunlight.hpp"

namespace lockstep::urban {
namespace {

template <class Options>
void walk() {
  const OptionList& list = schema_of<Options>();
  test::expect_refusals(list, [] { return std::make_shared<Options>(); });
  test::expect_texts(list, [] { return std::make_shared<Options>(); });
}

TEST(UrbanOptions, EveryOptionIsRefusedInThreeVocabularies) {
  walk<ShadowRunOptions>();
  walk<WallRunOptions>();
  walk<SkyRunOptions>();
  walk<SampleRunOptions>();
  walk<SeriesOptions>();
  walk<CheckOptions>();
  walk<ValidationOptions>();
  walk<GateOptions>();
  walk<UmepOptions>();
  walk<CompareOptions>();
  walk<AreaStatisticsOptions>();
  walk<PlantOptions>();
  walk<SunlightOptions>();
  walk<StageOptions>();
  walk<UtciOptions>();
  walk<PetOptions>();
}

TEST(UrbanOptions, DefaultsPassTheirOwnChecks) {
  for (const NamedSchema& schema : schemas())
    EXPECT_NO_THROW(schema.options->check(schema.options->defaults())) << schema.command;
}

// An enumeration's table has all of its values: one without a name would print as "?".
TEST(UrbanOptions, EnumerationsAreComplete) {
  const auto count = [](auto value) {
    using E = decltype(value);
    size_t k = 0;
    while (k < 64 && name_among(choices(value), E(k)) != "?") ++k;
    return k == choices(value).size();
  };
  EXPECT_TRUE(count(CanopyHeights{}) && count(DsmHeights{}) && count(SkyPatches{}) && count(ZenithRule{}));
  EXPECT_TRUE(count(SunRule{}));
  EXPECT_TRUE(count(AnnulusEdges{}) && count(WallFilter{}) && count(WallTies{}) && count(GridFormat{}));
  EXPECT_TRUE(count(SeriesOutput{}) && count(SeriesFormat{}) && count(Preset{}) && count(SkyModel{}));
  EXPECT_TRUE(count(Body{}) && count(Posture{}) && count(IntervalLabel{}) && count(Sex{}) &&
              count(PlantSearch{}));
}

using Texts = std::vector<std::pair<std::string, std::string>>;

/// The error of a command with these options, in the words of the shell; empty where it goes.
template <class Options>
std::string refused(const Texts& texts) {
  const Schema<Options>& schema = schema_of<Options>();
  Options options;
  Given given;
  for (const Option& option : schema.options())
    if (option.required) given.insert(option.name);
  try {
    for (const auto& [name, text] : texts) schema.set_text(&options, name, text, given);
    schema.finish(&options, given);
  } catch (const OptionError& e) { return e.in(schema.in_shell("lockstep urban")).what(); }
  return {};
}

TEST(UrbanOptions, OptionsWithoutEffectAreRefused) {
  const std::pair<std::string, std::string> dsm = {"dsm", "d.tif"}, cdsm = {"cdsm", "c.tif"};
  for (const char* option : {"--trunk-ratio", "--canopy"}) {
    const bool ratio = std::string(option) == "--trunk-ratio";
    const std::pair<std::string, std::string> given = {ratio ? "trunk_ratio" : "canopy",
                                                       ratio ? "0.5" : "absolute"};
    EXPECT_EQ(refused<SkyRunOptions>({dsm, given}),
              std::string("an option without effect [") + option + "]: expected --cdsm too");
    EXPECT_EQ(refused<SkyRunOptions>({dsm, cdsm, given}), "");
    EXPECT_EQ(refused<SeriesOptions>({given}), "") << "grids that are arrays";
  }
  EXPECT_EQ(refused<SeriesOptions>({dsm, cdsm, {"tdsm", "t.tif"}, {"trunk_ratio", "0.2"}}),
            "trunk heights twice [--trunk-ratio]: expected no --tdsm next to it");
  EXPECT_EQ(refused<ShadowRunOptions>({{"wall_ties", "first"}}),
            "an option without effect [--wall-ties]: expected --walls too");
  EXPECT_EQ(refused<ShadowRunOptions>({{"walls", "true"}, {"wall_ties", "first"}}), "");
  EXPECT_EQ(refused<SeriesOptions>({{"wall_height", "h.tif"}, {"minimum_height", "2"}}),
            "of walls that are found [--minimum-height]: expected no --wall-height");
  EXPECT_EQ(refused<SkyRunOptions>({{"annuli", "solweig"}}),
            "edges of annuli that only 609 patches have [--annuli]: expected --patches 609 too");
  EXPECT_EQ(refused<SkyRunOptions>({{"annuli", "solweig"}, {"patches", "609"}}), "");
  EXPECT_EQ(refused<SeriesOptions>({{"svf", "s"}, {"sky", "isotropic"}, {"patches", "145"}}),
            "grids that are read and no patches [--patches]: expected no --svf, or --sky anisotropic");
  EXPECT_EQ(refused<SeriesOptions>({dsm, cdsm, {"leaf_days", "1:9"}, {"evergreen", "true"}}),
            "--leaf-days with --evergreen [lockstep urban]: expected one of them");
  EXPECT_EQ(refused<GateOptions>({{"latitude", "3"}}),
            "of a city, next to the sample [--latitude]: expected --dsm too");
}

TEST(UrbanOptions, ExchangeTakesTheOptionsOfItsDirection) {
  EXPECT_EQ(refused<UmepOptions>({{"source", "svfs.zip"}, {"transmissivity", "0.1"}}),
            "a transmissivity for grids that are read [--transmissivity]: expected a folder of 'urban svf'");
  EXPECT_EQ(refused<UmepOptions>({{"source", "svf"}, {"format", "npy"}}),
            "a format for UMEP's files, which are GeoTIFF [--format]: expected an svfs.zip");
  EXPECT_EQ(refused<UmepOptions>({{"source", "svfs.zip"}, {"format", "npy"}}), "");
  EXPECT_EQ(refused<UmepOptions>({{"source", "svf"}, {"transmissivity", "0.1"}}), "");
}

TEST(UrbanOptions, OnePlaceForALibrarysUser) {
  UtciOptions air;
  air.ta_c = 30, air.rh_percent = 45, air.wind = 2, air.tmrt_c = 60;
  const UtciResult utci = run(air);
  EXPECT_NEAR(utci.value, 36.74, 0.01);
  EXPECT_EQ(utci.stress, "strong heat stress");
  EXPECT_TRUE(utci.fitted);
  air.wind_height_m = 2;
  EXPECT_DOUBLE_EQ(run(air).wind, wind_at(kUtciWindHeight, 2, 2));
  air.wind = 0;
  EXPECT_THROW(run(air), OptionError);
  PetOptions calm;
  calm.wind = 0;
  EXPECT_GT(run(calm).value, 15);
  calm.person.clothing_clo = 5;
  EXPECT_THROW(run(calm), OptionError);
}

TEST(UrbanOptions, TextsThatStandForValues) {
  SeriesOptions o;
  Given given;
  const OptionList& list = schema_of<SeriesOptions>();
  for (const auto& [text, bytes] : {std::pair<const char*, int64_t>{"8G", int64_t{8} << 30},
                                    {"1K", 1024},
                                    {"512MiB", int64_t{512} << 20},
                                    {"1.5K", 1536},
                                    {"4096", 4096}}) {
    list.set_text(&o, "memory", text, given);
    EXPECT_EQ(o.tiles.memory_bytes, bytes) << text;
  }
  EXPECT_EQ(list.text(&o, "memory"), "4K");
  list.set_text(&o, "leaf_days", "280:15", given);
  EXPECT_EQ(o.leaf_days->first, 280);
  EXPECT_EQ(o.leaf_days->last, 15);
  list.set_text(&o, "substeps", "60", given);
  EXPECT_EQ(o.substeps, 60);
  list.set_text(&o, "substeps", "auto", given);
  EXPECT_EQ(o.substeps, 0);
  for (const auto& [name, text] : Texts{{"memory", "0"},
                                        {"memory", "8X"},
                                        {"memory", "G"},
                                        {"leaf_days", "1"},
                                        {"leaf_days", "0:9"},
                                        {"leaf_days", "1:367"},
                                        {"leaf_days", "1:2:3"},
                                        {"substeps", "0"},
                                        {"substeps", "61"},
                                        {"substeps", "2.5"}})
    EXPECT_THROW(list.set_text(&o, name, text, given), OptionError) << name << " " << text;
}

/// Without pictures there is no film to make.
TEST(UrbanOptions, AFilmNeedsItsPictures) {
  SeriesOptions o;
  Given given = {"dsm", "weather", "out"};
  const Schema<SeriesOptions>& schema = schema_of<SeriesOptions>();
  schema.set(&o, "pictures", false, given);
  schema.finish(&o, given);
  EXPECT_FALSE(o.video);
}

TEST(UrbanOptions, TheTablesOfTheGuideAreCurrent) {
  for (const NamedSchema& schema : schemas())
    test::expect_committed(LOCKSTEP_SOURCE_DIR "/docs/urban-options.md", "options " + schema.command,
                           markdown_table(*schema.options));
}

}  // namespace
}  // namespace lockstep::urban
