// Whole runs: files, checkpoints, fallback, refusals, comparison.
#include "lockstep/flow/run.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numbers>

#include "core/refusal.hpp"
#include "core/temporary_folder.hpp"
#include "flow/small_run.hpp"
#include "io/arrays/netcdf_arrays.hpp"
#include "lockstep/error.hpp"

namespace lockstep::flow {
namespace {

namespace fs = std::filesystem;

RunOptions small(const fs::path& folder) {
  RunOptions o = small_run(folder);
  o.seed = 3;
  return o;
}

Context cpu_context() {
  ContextOptions options;
  options.device = "cpu";
  options.on_fallback = [](const std::string&) {};
  return Context(options);
}

Array omega_of(const fs::path& file) { return io::find_array(io::read_npz(file), "omega", file.string()); }

std::string refusal(const RunOptions& options) {
  try {
    Context context = cpu_context();
    run(context, options);
  } catch (const InputError& e) { return e.what(); }
  return "";
}

TEST(FlowRun, WritesFieldsAndSeries) {
  const test::TemporaryFolder folder;
  RunOptions o = small(folder.path());
  o.members = 2;
  o.pictures = true;
  Context context = cpu_context();
  const RunResult r = run(context, o);
  const io::NpzArrays arrays = io::read_npz(folder.path() / "run.npz");
  EXPECT_EQ(io::find_array(arrays, "omega", "").shape(), (Sizes{3, 2, 16, 16}));
  EXPECT_EQ(io::find_array(arrays, "time", "").shape(), (Sizes{3}));
  const Array& energy = io::find_array(arrays, "energy", "");
  EXPECT_EQ(energy.shape(), (Sizes{3, 2}));
  EXPECT_EQ(energy.at<double>(2, 1), r.budget[1].energy);
  EXPECT_LT(energy.at<double>(2, 0), energy.at<double>(0, 0));
  EXPECT_EQ(io::find_array(arrays, "energy_flux", "").rank(), 3);
  EXPECT_TRUE(fs::exists(folder.path() / "omega_000002.png"));
  EXPECT_TRUE(fs::exists(folder.path() / "spectra.png"));
  EXPECT_FALSE(fs::exists(folder.path() / "fields"));
  EXPECT_EQ(r.steps[0], 20);
  const auto stages = context.stages();
  ASSERT_EQ(stages.size(), 3u);
  EXPECT_EQ(stages[0].stage, "flow.initial");
  EXPECT_EQ(stages[1].stage, "flow.diagnostics");
  EXPECT_EQ(stages[2].stage, "flow.steps");
}

// Viscosity takes 2 nu times the next higher moment, drag twice its rate of the moment itself; what is absent takes nothing.
TEST(FlowRun, HistoryHasEachRateInItsColumn) {
  const test::TemporaryFolder folder;
  RunOptions o = small(folder.path());
  o.precision = Storage::f64;
  o.model.drag = 0.03;
  o.history_every = 10;
  Context context = cpu_context();
  const RunResult r = run(context, o);
  const io::NpzArrays arrays = io::read_npz(folder.path() / "run.npz");
  const auto at = [&](const std::string& name, int64_t row) {
    return io::find_array(arrays, "history_" + name, "").to(Storage::f64).packed().as<double>()[size_t(row)];
  };
  const double spacing = 2 * std::numbers::pi / 16;
  for (const int64_t row : {0, 1}) {
    const double energy = at("energy", row), enstrophy = at("enstrophy", row),
                 palinstrophy = at("palinstrophy", row);
    EXPECT_NEAR(at("energy_viscous", row) / (-2 * 1e-3 * enstrophy), 1, 1e-10);
    EXPECT_NEAR(at("enstrophy_viscous", row) / (-2 * 1e-3 * palinstrophy), 1, 1e-10);
    EXPECT_NEAR(at("energy_drag", row) / (-2 * 0.03 * energy), 1, 1e-10);
    EXPECT_NEAR(at("enstrophy_drag", row) / (-2 * 0.03 * enstrophy), 1, 1e-10);
    for (const char* absent : {"other", "forcing", "closure"}) {
      EXPECT_NEAR(at(std::string("energy_") + absent, row), 0, 1e-14) << absent;
      EXPECT_NEAR(at(std::string("enstrophy_") + absent, row), 0, 1e-12) << absent;
    }
    EXPECT_NEAR(at("energy_rate", row) / (at("energy_viscous", row) + at("energy_drag", row)), 1, 1e-10);
    EXPECT_NEAR(at("enstrophy_rate", row) / (at("enstrophy_viscous", row) + at("enstrophy_drag", row)), 1,
                1e-10);
    EXPECT_NEAR(at("cfl", row), 0.01 * (at("max_u", row) + at("max_v", row)) / spacing, 1e-9);
    EXPECT_NE(at("max_u", row), at("max_v", row));
    EXPECT_NEAR(at("time", row), 0.1 * double(row + 1), 1e-12);
  }
  // The document of the run has its last moment.
  const auto document = nlohmann::json::parse(to_json(r));
  EXPECT_EQ(document["energy"], r.budget[0].energy);
  EXPECT_EQ(document["enstrophy"], r.budget[0].enstrophy);
  EXPECT_EQ(document["palinstrophy"], r.budget[0].palinstrophy);
  EXPECT_NEAR(r.budget[0].palinstrophy / at("palinstrophy", 1), 1, 1e-12);
  EXPECT_NEAR(document["time"].get<double>(), 0.2, 1e-12);
  EXPECT_EQ(document["steps"], 20);
  EXPECT_EQ(document["dt_min"], 0.01);
  EXPECT_EQ(document["n"], (nlohmann::json{16, 16}));
  EXPECT_EQ(document["frames"], 3);
  EXPECT_FALSE(document.contains("resumed_at"));
}

TEST(FlowRun, NetcdfHoldsTheSame) {
  if (!io::netcdf_missing().empty()) GTEST_SKIP() << "netCDF: " << io::netcdf_missing();
  const test::TemporaryFolder folder;
  RunOptions o = small(folder.path());
  Context context = cpu_context();
  run(context, o);
  o.format = RunOptions::Format::nc;
  const RunResult r = run(context, o);
  EXPECT_EQ(r.files.front().filename(), "run.nc");
  const Comparison2d c = compare_runs(folder.path() / "run.npz", folder.path() / "run.nc");
  ASSERT_EQ(c.rows.size(), 3u);
  for (const auto& row : c.rows) EXPECT_EQ(row.relative_l2, 0);
  o.initial = folder.path() / "run.nc";
  o.save_every = 0;
  o.steps = 1;
  Context again = cpu_context();
  EXPECT_NEAR(run(again, o).budget[0].energy, r.budget[0].energy, 1e-3);
}

TEST(FlowRun, ResumedIsAsUninterrupted) {
  const test::TemporaryFolder whole, cut;
  Context context = cpu_context();
  RunOptions a = small(whole.path()), b = small(cut.path());
  a.steps = 30;
  a.history_every = b.history_every = 7;
  run(context, a);
  b.steps = 10;
  b.checkpoint = cut.path() / "state.npz";
  run(context, b);
  b.steps = 30;
  const RunResult r = run(context, b);
  EXPECT_EQ(r.resumed_at, 10);
  const Array x = omega_of(whole.path() / "run.npz"), y = omega_of(cut.path() / "run.npz");
  ASSERT_EQ(x.bytes(), y.bytes());
  EXPECT_EQ(std::memcmp(x.data(), y.data(), size_t(x.bytes())), 0);
  for (const char* name : {"history_time", "history_energy_closure"}) {
    const Array h = io::find_array(io::read_npz(whole.path() / "run.npz"), name, "whole"),
                i = io::find_array(io::read_npz(cut.path() / "run.npz"), name, "cut");
    ASSERT_EQ(h.elements(), 4 * a.members) << name;
    ASSERT_EQ(h.shape(), i.shape()) << name;
    EXPECT_EQ(std::memcmp(h.data(), i.data(), size_t(h.bytes())), 0) << name;
  }
  b.model.viscosity = 2e-3;
  EXPECT_NE(refusal(b).find("nu = 0.001, now 0.002"), std::string::npos) << refusal(b);
  const Comparison2d c = compare_runs(whole.path() / "run.npz", cut.path() / "run.npz");
  EXPECT_EQ(c.rows.size(), 4u);
  EXPECT_EQ(c.rows.back().relative_l2, 0);
  EXPECT_NEAR(c.rows.back().correlation, 1, 1e-12);
}

constexpr double kTurn = 2 * std::numbers::pi;
/// A shear of four waves along y, saved with the axes of a box.
void write_saved(const fs::path& file, double lx, double ly, Storage axes = Storage::f64) {
  constexpr int64_t kPoints = 16;
  std::vector<double> omega, x, y;
  for (int64_t j = 0; j < kPoints; ++j)
    for (int64_t i = 0; i < kPoints; ++i) omega.push_back(std::cos(kTurn * 4 * double(j) / kPoints));
  for (int64_t k = 0; k < kPoints; ++k)
    x.push_back(lx * double(k) / kPoints), y.push_back(ly * double(k) / kPoints);
  const Array field = Array::of(omega, {kPoints, kPoints});
  if (file.extension() == ".npy") return io::write_npy(file, field);
  io::NpzArrays arrays;
  arrays.emplace_back("omega", field);
  arrays.emplace_back("x", Array::of(x).to(axes));
  arrays.emplace_back("y", Array::of(y).to(axes));
  io::write_npz(file, arrays);
}

TEST(FlowRun, RunsOfTwoBoxesAreNotCompared) {
  const test::TemporaryFolder folder;
  const fs::path high = folder / "high.npz", square = folder / "square.npz", narrow = folder / "narrow.npz",
                 bare = folder / "bare.npy";
  write_saved(high, kTurn, 2 * kTurn);
  write_saved(square, kTurn, kTurn);
  write_saved(narrow, kTurn, 2 * kTurn, Storage::f32);
  write_saved(bare, 0, 0);
  for (const auto& [a, b] : {std::pair(high, square), {square, high}}) {
    const std::string text = test::refusal([&] { compare_runs(a, b); });
    EXPECT_NE(text.find("a box of 6.28319 x "), std::string::npos) << text;
    EXPECT_NE(text.find(b.string()), std::string::npos) << text;
  }
  // The mean of u^2 / 2 of u = -sin(k y) / k is 1 / (4 k^2), with k = 4 (2 pi / 4 pi) = 2.
  for (const fs::path& other : {narrow, bare}) {
    const Comparison2d c = compare_runs(high, other);
    EXPECT_NEAR(c.rows[0].energy_a, 1.0 / 16, 1e-12);
    EXPECT_NEAR(c.rows[0].energy_b, 1.0 / 16, 1e-12);
    EXPECT_NEAR(c.rows[0].enstrophy_a, 0.25, 1e-12);
    EXPECT_NEAR(c.rows[0].enstrophy_b, 0.25, 1e-12);
    EXPECT_EQ(c.spectrum_a.size(), c.spectrum_b.size());
    EXPECT_LT(c.spectrum_error, 1e-5);
  }
  write_saved(square, -1, 1);
  EXPECT_NE(test::refusal([&] { compare_runs(square, high); }).find("axis x"), std::string::npos);
}

// A field and its half, with a wave of its own: errors, drifts and spectra are those of two modes.
TEST(FlowRun, AComparisonIsOfAAndB) {
  const test::TemporaryFolder folder;
  constexpr int64_t kPoints = 16;
  const auto save = [&](const char* name, double shear, double wave) {
    std::vector<double> omega;
    for (int64_t j = 0; j < kPoints; ++j)
      for (int64_t i = 0; i < kPoints; ++i)
        omega.push_back(shear * std::cos(kTurn * 4 * double(j) / kPoints) +
                        wave * std::cos(kTurn * 2 * double(i) / kPoints));
    io::write_npy(folder / name, Array::of(omega, {kPoints, kPoints}));
    return folder / name;
  };
  const fs::path a = save("a.npy", 2, 0), b = save("b.npy", 1, 1);
  const Comparison2d c = compare_runs(a, b);
  // <omega^2> of a is 2, of b 1/2 + 1/2, of their difference 1/2 + 1/2, of their product 1; energies are those over k^2.
  const double energy_a = 2.0 / 2 / 16, energy_b = 0.5 / 2 / 16 + 0.5 / 2 / 4;
  EXPECT_NEAR(c.rows[0].relative_l2, std::sqrt(1.0 / 2), 1e-12);
  EXPECT_NEAR(c.rows[0].correlation, 1 / std::sqrt(2.0), 1e-12);
  EXPECT_NEAR(c.rows[0].energy_a, energy_a, 1e-12);
  EXPECT_NEAR(c.rows[0].energy_b, energy_b, 1e-12);
  EXPECT_NEAR(c.rows[0].enstrophy_a, 1, 1e-12);
  EXPECT_NEAR(c.rows[0].enstrophy_b, 0.5, 1e-12);
  EXPECT_NEAR(c.spectrum_a.at(4), energy_a, 1e-12);
  EXPECT_NEAR(c.spectrum_b.at(4), 0.5 / 2 / 16, 1e-12);
  EXPECT_NEAR(c.spectrum_b.at(2), 0.5 / 2 / 4, 1e-12);
  EXPECT_NEAR(c.spectrum_a.at(2), 0, 1e-12);
  EXPECT_NEAR(c.energy_drift, energy_b / energy_a - 1, 1e-9);
  EXPECT_NEAR(c.enstrophy_drift, -0.5, 1e-9);
  EXPECT_NEAR(c.spectrum_error, std::log10(4.0), 1e-9) << "of the ring that a has";
  const auto document = nlohmann::json::parse(to_json(c));
  EXPECT_EQ(document["times"][0]["enstrophy_b"], c.rows[0].enstrophy_b);
  EXPECT_EQ(document["times"][0]["energy_a"], c.rows[0].energy_a);
  EXPECT_EQ(document["relative_l2"], c.rows[0].relative_l2);
  EXPECT_EQ(document["spectrum_b"][2], c.spectrum_b[2]);
}

// Members with clocks of their own: saved moments are compared where the first members' times agree.
TEST(FlowRun, MembersOfDifferentClocksAreComparedByTime) {
  const test::TemporaryFolder often, seldom;
  Context context = cpu_context();
  RunOptions a = small(often.path()), b = small(seldom.path());
  for (RunOptions* o : {&a, &b}) {
    o->members = 2;
    o->steps = 20;
    o->stepping.cfl = 0.02;
  }
  a.save_every = 5;
  b.save_every = 10;
  run(context, a);
  run(context, b);
  const io::NpzArrays arrays = io::read_npz(often.path() / "run.npz");
  const Array &time = io::find_array(arrays, "time", ""), &own = io::find_array(arrays, "member_time", "");
  ASSERT_EQ(own.shape(), (Sizes{5, 2}));
  EXPECT_NE(own.at<double>(4, 0), own.at<double>(4, 1));
  EXPECT_EQ(time.at<double>(4), own.at<double>(4, 0));
  const Comparison2d c = compare_runs(often.path() / "run.npz", seldom.path() / "run.npz");
  ASSERT_EQ(c.rows.size(), 3u);
  for (const auto& row : c.rows) EXPECT_EQ(row.relative_l2, 0) << row.time;
  EXPECT_EQ(c.rows[1].time, own.at<double>(2, 0));
}

// The file's name stays, its content does not: a checkpoint belongs to the content.
TEST(FlowRun, ACheckpointIsOfTheInitialFieldsContent) {
  const test::TemporaryFolder folder;
  const auto write = [&](double amplitude) {
    Array w = initial_field({16, 16}, Initial::taylor_green);
    std::vector<double> scaled(w.as<double>().begin(), w.as<double>().end());
    for (double& v : scaled) v *= amplitude;
    io::write_npy(folder.path() / "w.npy", Array::of(std::move(scaled), {16, 16}));
  };
  write(1);
  RunOptions o = small(folder.path() / "out");
  o.initial = (folder.path() / "w.npy").string();
  o.checkpoint = folder.path() / "state.npz";
  o.steps = 4;
  Context context = cpu_context();
  run(context, o);
  write(2);
  EXPECT_NE(refusal(o).find("ic = "), std::string::npos) << refusal(o);
  write(1);
  std::filesystem::rename(folder.path() / "w.npy", folder.path() / "moved.npy");
  o.initial = (folder.path() / "moved.npy").string();
  o.steps = 6;
  EXPECT_EQ(run(context, o).resumed_at, 4);
}

// With default options, into another folder, after the first one is gone.
TEST(FlowRun, AFinishedRunIsExtendedWithoutItsFolder) {
  const test::TemporaryFolder folder;
  RunOptions o = small(folder.path() / "whole");
  o.save_every = 0;
  o.steps = 30;
  Context context = cpu_context();
  run(context, o);
  o.checkpoint = folder.path() / "state.npz";
  o.folder = folder.path() / "first";
  o.steps = 10;
  run(context, o);
  std::filesystem::remove_all(o.folder);
  o.folder = folder.path() / "second";
  o.steps = 30;
  const RunResult r = run(context, o);
  EXPECT_EQ(r.resumed_at, 10);
  EXPECT_EQ(r.frames, 3);  // 0, 10 and 30
  const Array x = omega_of(folder.path() / "whole" / "run.npz"), y = omega_of(o.folder / "run.npz");
  ASSERT_EQ(x.size(0), 2);
  EXPECT_EQ(std::memcmp(x[1].packed().data(), y[2].packed().data(), size_t(x.bytes() / 2)), 0);
  o.steps = 20;
  EXPECT_NE(refusal(o).find("after 30 steps"), std::string::npos) << refusal(o);
  std::filesystem::remove(folder.path() / "state.npz.fields" / "omega_000001.npy");
  o.steps = 30;
  EXPECT_NE(refusal(o).find("omega_000001.npy"), std::string::npos) << refusal(o);
}

TEST(FlowRun, EnergyThatRisesWithoutForcingIsReported) {
  const test::TemporaryFolder folder;
  RunOptions o = small(folder.path());
  // A hair below the limit of rk2, which amplifies waves there; without dealiasing and viscosity nothing stops it.
  o.model.viscosity = 0;
  o.model.dealias = Dealias::none;
  o.stepping = {Integrator::rk2, 0.05};
  o.steps = 60;
  Context context = cpu_context();
  const RunResult r = run(context, o);
  ASSERT_EQ(r.warnings.size(), 1u);
  EXPECT_NE(r.warnings[0].find("the energy of member 0 rose from "), std::string::npos) << r.warnings[0];
  EXPECT_NE(to_json(r).find("\"warnings\""), std::string::npos);
  o.model.forcing = {ForcingKind::kolmogorov, 1, 0.1};
  EXPECT_TRUE(run(context, o).warnings.empty());
  EXPECT_TRUE(run(context, small(folder.path())).warnings.empty());
}

TEST(FlowRun, CheckpointsOfOtherArraysAreRefused) {
  const test::TemporaryFolder folder;
  RunOptions o = small(folder.path());
  o.steps = 4;
  o.checkpoint = folder.path() / "state.npz";
  Context context = cpu_context();
  run(context, o);
  const io::NpzArrays sound = io::read_npz(o.checkpoint);
  const auto refused_with = [&](const std::string& key, const Array& array) {
    io::NpzArrays arrays = sound;
    for (auto& [name, value] : arrays)
      if (name == key) value = array;
    io::write_npz(o.checkpoint, arrays);
    return refusal(o);
  };
  const Array series = io::find_array(sound, "series", "test");
  EXPECT_NE(refused_with("series", series.to(Storage::f32)).find("'series' of f32"), std::string::npos);
  EXPECT_NE(refused_with("series", Array(Storage::f64, {0, series.size(1), 4})).find("(0, "),
            std::string::npos);
  EXPECT_NE(refused_with("energy_flux", Array(Storage::f64, {1, 1})).find("'energy_flux' of f64 (1, 1)"),
            std::string::npos);
}

// A stage whose device fails continues from its inputs on the CPU; what is left of the run stays there.
TEST(FlowRun, AFaultGoesOnOnTheCpu) {
  std::string gpu;
  for (const DeviceStatus& status : Device::list())
    if (gpu.empty() && status.available && status.info.kind == DeviceKind::cuda) gpu = status.info.name;
  if (gpu.empty()) GTEST_SKIP() << "no GPU";
  const test::TemporaryFolder first, second;
  RunOptions o = small(first.path());
  {
    ContextOptions options;
    options.device = gpu;
    options.on_fallback = [](const std::string&) {};
    Context context(options);
    set_fault("flow.steps:launch:3");
    run(context, o);
    set_fault("");
    EXPECT_EQ(context.fallbacks().at("flow.steps"), 1);
  }
  o.folder = second.path();
  Context context = cpu_context();
  run(context, o);
  const Comparison2d c = compare_runs(first.path() / "run.npz", second.path() / "run.npz");
  EXPECT_LT(c.rows.back().relative_l2, 1e-5);
}

TEST(FlowRun, BlowUpsAndBadInputAreNamed) {
  const test::TemporaryFolder folder;
  RunOptions o = small(folder.path());
  o.stepping.dt = 1;
  o.model.viscosity = 0;
  EXPECT_NE(refusal(o).find("at the start"), std::string::npos) << refusal(o);
  o = small(folder.path());
  o.model.grid.lx = o.model.grid.ly = 1e30;
  EXPECT_NE(refusal(o).find("velocities in a box of 1e+30 x 1e+30 are not finite"), std::string::npos)
      << refusal(o);
  o = small(folder.path());
  o.model.forcing = {ForcingKind::kolmogorov, 2, 1e5};
  EXPECT_NE(refusal(o).find("blew up by step"), std::string::npos) << refusal(o);
  EXPECT_TRUE(fs::exists(folder.path() / "blow_up.npz"));
  o = small(folder.path());
  o.initial = "nothing.npz";
  EXPECT_NE(refusal(o).find("nothing.npz"), std::string::npos);
  io::write_npz(folder.path() / "in.npz", {{"omega", Array(Storage::f64, {12, 16})}});
  o.initial = folder.path() / "in.npz";
  EXPECT_NE(refusal(o).find("12 x 16"), std::string::npos) << refusal(o);
  io::write_npz(folder.path() / "in.npz", {{"psi", Array(Storage::f64, {16, 16})}});
  EXPECT_NE(refusal(o).find("omega"), std::string::npos) << refusal(o);
}

}  // namespace
}  // namespace lockstep::flow
