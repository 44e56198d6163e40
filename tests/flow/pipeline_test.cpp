// The pipeline: every copy between host and device is on its list, places agree, errors against fields that are known.
#include "lockstep/flow/pipeline.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "core/temporary_folder.hpp"
#include "device/devices.hpp"
#include "flow/pipeline/compare_fields.hpp"
#include "flow/pipeline/error_plot.hpp"
#include "io/text/file.hpp"
#include "lockstep/error.hpp"

namespace lockstep::flow {
namespace {

namespace fs = std::filesystem;

Context context_of(const std::string& device) {
  ContextOptions options;
  options.device = device;
  options.on_fallback = [](const std::string&) {};
  return Context(options);
}

PipelineOptions small(const fs::path& folder) {
  PipelineOptions o;
  o.run.model.grid = {32, 32};
  o.run.model.viscosity = 1e-3;
  o.run.grid_given = true;
  o.run.stepping = {Integrator::rk2, 0.01};
  o.run.steps = 40;
  o.run.folder = folder;
  o.stride = 2;
  return o;
}

/// The frames of a pipeline.
Array simulated(PipelineOptions o) {
  o.run.model.forcing.seed = o.run.seed;
  const Device device = Device::open("cpu");
  Solver solver(device, o.run.model, o.run.stepping, o.run.precision);
  solver.set_vorticity(load_initial(o.run));
  const int64_t frames = o.run.steps / o.stride + 1, n = o.run.model.grid.nx;
  const Buffer all = device.allocate<f32>({frames, n, n});
  for (int64_t k = 0; k < frames; ++k) {
    if (k > 0) solver.advance(o.stride);
    solver.vorticity(all.rows(k, 1));
  }
  return device.download(all);
}

// The engine's counts, stage by stage, are the sum of the list: nothing else was copied.
TEST(FlowPipeline, EveryCopyIsOnTheList) {
  for (const std::string& device : host_devices())
    for (const int way : {0, 1, 2, 3, 4}) {
      const test::TemporaryFolder folder;
      PipelineOptions o = small(folder.path());
      o.place = way % 2 == 0 ? Place::device : Place::mixed;
      o.overlap = way >= 2;
      if (way == 4) o.max_error = 1e-3;
      o.run.pictures = true;
      Context context = context_of(device);
      const PipelineResult r = run_pipeline(context, o);
      std::map<std::string, std::pair<int64_t, int64_t>> listed;
      for (const Transfer& t : r.transfers)
        (t.to_device ? listed[t.stage].first : listed[t.stage].second) += t.bytes;
      EXPECT_EQ(r.stages.size(), 6u);
      for (const StageUse& s : r.stages) {
        EXPECT_EQ(s.bytes_to_device, listed[s.stage].first) << s.stage << ' ' << device;
        EXPECT_EQ(s.bytes_from_device, listed[s.stage].second) << s.stage << ' ' << device;
      }
    }
}

int64_t bytes_of(const PipelineResult& r, const std::string& stage, const std::string& what, bool to_device) {
  for (const Transfer& t : r.transfers)
    if (t.stage == stage && t.what == what && t.to_device == to_device) return t.bytes;
  return -1;
}

TEST(FlowPipeline, CopiesAreAsLongAsTheyMustBe) {
  const test::TemporaryFolder folder;
  PipelineOptions o = small(folder.path());
  Context context = context_of("interp");
  const PipelineResult r = run_pipeline(context, o);
  EXPECT_EQ(r.frames, 21);
  EXPECT_EQ(r.train_frames, 10);
  const int64_t field = 32 * 32 * 4, state = r.state_size;
  // The latents stay on the device: matrices of frames by frames come from there, and sums of two numbers a frame.
  const int64_t train = r.train_frames, matrix = train * train * 8;
  EXPECT_EQ(bytes_of(r, "flow.learn", "latents", false), -1);
  EXPECT_LE(bytes_of(r, "flow.learn", "products of frames", false), 20 * matrix);
  EXPECT_EQ(bytes_of(r, "flow.rollout", "tables of the operator", true), state * state * 4);
  const int64_t chunks = (r.latent_size + kScoreChunk - 1) / kScoreChunk;
  // Rollout, persistence and climatology of both parts, a step from every frame, and persistence of the held-out ones.
  EXPECT_EQ(bytes_of(r, "flow.rollout", "sums over latents", false), (4 * (9 + 11) + 11) * chunks * 2 * 4);
  EXPECT_EQ(bytes_of(r, "flow.decode", "sums over modes", false), (9 + 6 * 11) * kFieldSums * 4);
  int64_t from_device = 0;
  for (const Transfer& t : r.transfers)
    if (!t.to_device && t.stage == "flow.simulate") from_device += t.bytes;
  EXPECT_LT(from_device, field);
  EXPECT_EQ(r.files.size(), 0u);
  // Twice as many frames leave tables as they are.
  o.run.steps = 80;
  const PipelineResult more = run_pipeline(context, o);
  for (const Transfer& t : r.transfers) {
    if (t.reason != "fixed by the settings" || t.stage == "flow.rollout") continue;
    const int64_t now = bytes_of(more, t.stage, t.what, t.to_device);
    EXPECT_EQ(now, t.bytes) << t.what;
  }
  int64_t frames = 0;
  for (const MemoryUse& m : r.memory) frames += m.name == "frames" ? m.bytes : 0;
  EXPECT_EQ(frames, 21 * field);
  EXPECT_GE(r.peak_bytes, 21 * field);
}

// The same kernels everywhere: where a stage runs changes no bit.
TEST(FlowPipeline, PlacesAgree) {
  std::vector<double> first;
  for (const std::string& device : host_devices())
    for (const Place place : {Place::device, Place::mixed, Place::cpu}) {
      const test::TemporaryFolder folder;
      PipelineOptions o = small(folder.path());
      o.place = place;
      Context context = context_of(device);
      const PipelineResult r = run_pipeline(context, o);
      const std::vector<double> all = r.fields.surrogate.l2_by_frame;
      if (first.empty()) first = all;
      EXPECT_EQ(all, first) << device << ' ' << name(place);
      EXPECT_EQ(r.fields.surrogate.l2_by_frame.size(), 11u);
      EXPECT_GT(r.fields.persistence.relative_l2, 0.01);
      EXPECT_LT(r.fields.codec.relative_l2, 0.2);
      EXPECT_LE(r.fields.codec.last_relative_l2, r.fields.surrogate.last_relative_l2 * 1.0001);
    }
}

/// All that a run found, as text; without times, and without what is said of memory and copies by the way.
std::string findings(PipelineResult r) {
  r.stages.clear();
  r.peak_bytes = 0;
  r.seconds = 0;
  r.overlapped = false;
  r.files.clear();
  return to_json({r});
}

// Stages at once: the same numbers, memory and copies as one after the other, and the same pictures.
TEST(FlowPipeline, StagesAtOnceChangeNothing) {
  for (const std::string& device : host_devices())
    for (const Place place : {Place::device, Place::mixed, Place::cpu})
      for (const int64_t n : {32, 24}) {
        const test::TemporaryFolder folder;
        PipelineOptions o = small(folder.path());
        o.run.model.grid = {n, n};
        o.place = place;
        o.run.pictures = true;
        if (n == 24) o.stride = 1;  // more than the codec takes at once
        std::string first;
        std::vector<std::string> pictures;
        for (const bool overlap : {false, true}) {
          o.overlap = overlap;
          Context context = context_of(device);
          const PipelineResult r = run_pipeline(context, o);
          EXPECT_EQ(r.overlapped, overlap);
          EXPECT_GT(r.seconds, 0);
          if (!overlap) first = findings(r);
          EXPECT_EQ(findings(r), first) << device << ' ' << name(place);
          for (const fs::path& file : r.files) pictures.push_back(io::read_text_file(file));
        }
        ASSERT_EQ(pictures.size(), 6u);
        for (size_t k = 0; k < 3; ++k) EXPECT_EQ(pictures[k], pictures[k + 3]);
      }
}

// An error while others run ends all of them.
TEST(FlowPipeline, StagesAtOnceEndTogether) {
  const test::TemporaryFolder folder;
  Context context = context_of("cpu");
  PipelineOptions o = small(folder.path());
  o.overlap = true;
  o.run.stepping.dt = 0.5;
  EXPECT_THROW(run_pipeline(context, o), InputError);
  o = small(folder.path());
  o.overlap = true;
  o.codec.kind = CodecKind::classic;  // a middle band beyond this grid's modes
  o.run.model.grid = {16, 16};
  EXPECT_THROW(run_pipeline(context, o), InputError);
}

// The codec's fields are those of a file with such a bound, at the price that it says.
TEST(FlowPipeline, ABoundHoldsAndIsThatOfFiles) {
  const test::TemporaryFolder folder;
  PipelineOptions o = small(folder.path());
  for (const double bound : {1e-2, 1e-4, 0.0}) {
    o.max_error = bound;
    for (const std::string& device : host_devices()) {
      Context context = context_of(device);
      const PipelineResult r = run_pipeline(context, o);
      ASSERT_TRUE(r.coded);
      EXPECT_LE(r.coded->max_error, bound);
      if (bound > 0) {
        EXPECT_GT(r.coded->max_error, bound / 2);
        EXPECT_LT(r.fields.codec.relative_l2, bound);
      }
      const Array fields = simulated(o);
      CodecOptions codec = o.codec;
      codec.grid = o.run.model.grid;
      const EncodedFields e = encode_fields(context.device(), codec, fields, bound);
      EXPECT_EQ(r.latent_size, latents_of(context.device(), e).size(1));
      EXPECT_NEAR(double(r.coded->bytes) / double(e.latent_code.size() + e.residual_code.size()), 1,
                  bound > 0 ? 0.01 : 0.05);
    }
  }
}

// The stages before go to the CPU with the one that failed: the result has the bits of the CPU's.
TEST(FlowPipeline, AFailedStageBringsThoseBeforeIt) {
  std::string gpu;
  for (const std::string& name : test_devices())
    if (name.starts_with("webgpu")) gpu = name;
  if (gpu.empty()) GTEST_SKIP() << "no WebGPU adapter";
  const test::TemporaryFolder folder;
  PipelineOptions o = small(folder.path());
  o.run.model.grid = {16, 16};
  o.run.steps = 12;
  Context cpu = context_of("cpu");
  const PipelineResult want = run_pipeline(cpu, o);
  for (const bool overlap : {false, true})
    for (const std::string stage : {"flow.simulate", "flow.encode"}) {
      if (!overlap && stage != "flow.encode") continue;
      o.overlap = overlap;
      Context other = context_of(gpu);
      set_fault(stage + ":launch");
      const PipelineResult got = run_pipeline(other, o);
      set_fault("");
      EXPECT_EQ(other.fallbacks(), (std::map<std::string, int64_t>{{stage, 1}})) << overlap;
      EXPECT_EQ(got.fields.surrogate.l2_by_frame, want.fields.surrogate.l2_by_frame);
      EXPECT_EQ(got.latents.held_out.surrogate, want.latents.held_out.surrogate);
    }
}

TEST(FlowPipeline, ErrorsOfKnownFields) {
  const BoxGrid grid{32, 24, 2 * std::numbers::pi, std::numbers::pi};
  std::vector<float> a, b;
  // b = a with twice the large scale and without the small one: |k|^2 are 1 and 13.
  for (int64_t j = 0; j < grid.ny; ++j)
    for (int64_t i = 0; i < grid.nx; ++i) {
      const double x = double(i) * grid.dx(), y = double(j) * grid.dy();
      const double large = std::sin(x), fine = std::cos(3 * x + 2 * y);
      a.push_back(float(large + fine));
      b.push_back(float(2 * large));
    }
  for (const std::string& device_name : host_devices()) {
    const Device& device = test_device(device_name);
    FieldComparer comparer(device, grid);
    const Buffer truth = device.upload(std::span<const float>(a), {1, grid.ny, grid.nx});
    const FieldScore s =
        comparer.compare(truth, device.upload(std::span<const float>(b), {1, grid.ny, grid.nx}));
    EXPECT_NEAR(s.relative_l2, 1, 1e-6);  // |-large + fine| = |large + fine|
    EXPECT_NEAR(s.correlation, 2 * 0.5 / std::sqrt(1.0 * 2), 1e-6);
    EXPECT_NEAR(s.enstrophy_drift, 1, 1e-5);
    EXPECT_NEAR(s.energy_drift, 2 / (0.5 + 0.5 / 13) - 1, 1e-5);
    EXPECT_EQ(comparer.bytes_read, kFieldSums * 4);
    EXPECT_NEAR(comparer.compare(truth, truth).relative_l2, 0, 1e-12);
  }
}

using Amplitudes = std::array<double, 3>;

/// Frames (n, 16, 16) of times from … to: three waves with the amplitudes of each time.
Buffer waves_in_time(const Device& device, int from, int to,
                     const std::function<Amplitudes(double)>& amplitudes) {
  std::vector<float> all;
  for (int k = from; k <= to; ++k) {
    const Amplitudes a = amplitudes(double(k));
    for (int64_t j = 0; j < 16; ++j)
      for (int64_t i = 0; i < 16; ++i) {
        const double x = 2 * std::numbers::pi * double(i) / 16, y = 2 * std::numbers::pi * double(j) / 16;
        all.push_back(float(a[0] * std::sin(x) + a[1] * std::sin(2 * y) + a[2] * std::cos(3 * x)));
      }
  }
  return device.upload(std::span<const float>(all), {to - from + 1, 16, 16});
}

// Fields that are polynomials of time: persistence, line and parabola are right where they can be, and elsewhere as wrong as by
// hand; a forecast that has decayed to nothing, and one that costs nothing, have no skill.
TEST(FlowPipeline, SkillIsBeyondWhatCostsNothing) {
  const BoxGrid grid{16, 16};
  for (const std::string& device_name : host_devices()) {
    const Device& device = test_device(device_name);
    for (const bool curved : {false, true}) {
      SCOPED_TRACE(device_name + (curved ? " curved" : " straight"));
      // Time 0 is that of the last training frame.
      const auto truth_at = [&](double t) {
        return Amplitudes{1 + 0.5 * t, 2 - t, curved ? 0.5 * t * t : 0.25 * t};
      };
      const Buffer past = waves_in_time(device, -3, 0, truth_at),
                   truth = waves_in_time(device, 1, 4, truth_at);
      FieldComparer comparer(device, grid);
      comparer.set_past(past, mean_frame(device, past));
      FieldScores s;
      s.surrogate = comparer.compare(truth, truth, s);
      EXPECT_NEAR(s.surrogate.anomaly_correlation_by_frame[3], 1, 1e-6);
      for (size_t k = 0; k < 4; ++k) {
        const double t = double(k + 1);
        const auto a = truth_at(t);
        const double size = std::hypot(a[0], a[1], a[2]);
        EXPECT_NEAR(s.persistence.l2_by_frame[k],
                    std::hypot(0.5 * t, t, curved ? 0.5 * t * t : 0.25 * t) / size, 1e-5);
        // Through t = -1 and 0 the parabola's line is -t/2.
        EXPECT_NEAR(s.linear.l2_by_frame[k], curved ? 0.5 * (t * t + t) / size : 0, 2e-5);
        EXPECT_NEAR(s.quadratic.l2_by_frame[k], 0, 2e-5);
        // The mean of the times -3 to 0 has amplitudes 0.25, 3.5 and 1.75 or -0.375.
        EXPECT_NEAR(s.climatology.l2_by_frame[k],
                    std::hypot(a[0] - 0.25, a[1] - 3.5, a[2] - (curved ? 1.75 : -0.375)) / size, 1e-5);
      }
      const auto last = truth_at(4);
      EXPECT_NEAR(comparer.turnover_time(), std::sqrt(2.0) / std::hypot(last[0], last[1], last[2]), 1e-5);
      // Better than persistence by far, but a polynomial that costs nothing is closer.
      const Buffer near = waves_in_time(device, 1, 4, [&](double t) {
        auto a = truth_at(t);
        for (double& part : a) part *= 1.01;
        return a;
      });
      s.surrogate = comparer.compare(truth, near, s);
      EXPECT_LT(s.surrogate.relative_l2, s.persistence.relative_l2);
      EXPECT_EQ(field_horizon(s), 0);
      const Buffer nothing = waves_in_time(device, 1, 4, [](double) { return Amplitudes{1e-6, 0, 0}; });
      s.surrogate = comparer.compare(truth, nothing, s);
      EXPECT_EQ(field_horizon(s), 0);
    }
  }
}

// Right in direction and far too large: no skill, regardless of the correlation.
TEST(FlowPipeline, CorrelationAloneIsNoSkill) {
  const BoxGrid grid{16, 16};
  for (const std::string& device_name : host_devices()) {
    const Device& device = test_device(device_name);
    const auto turning = [](double t) { return Amplitudes{std::cos(2 * t), std::sin(2 * t), 0.0}; };
    const auto twice = [&](double t) {
      const auto a = turning(t);
      return Amplitudes{3 * a[0], 3 * a[1], 0.0};
    };
    const Buffer past = waves_in_time(device, -6, 0, turning), truth = waves_in_time(device, 1, 3, turning);
    FieldComparer comparer(device, grid);
    comparer.set_past(past, mean_frame(device, past));
    FieldScores s;
    s.surrogate = comparer.compare(truth, waves_in_time(device, 1, 3, twice), s);
    EXPECT_GT(s.surrogate.anomaly_correlation, 0.9);
    EXPECT_EQ(field_horizon(s), 0);
    s.surrogate = comparer.compare(truth, truth, s);
    EXPECT_EQ(field_horizon(s), 3);
  }
}

TEST(FlowPipeline, CurvesOfErrorsHaveAPointForEachFrame) {
  FieldScores s;
  s.surrogate.l2_by_frame = {0.1, 0.2, 0.4};
  s.codec.l2_by_frame = {0.01, 0.01, 0.02};
  s.persistence.l2_by_frame = {0.3, 0.6, 0.9};
  s.climatology.l2_by_frame = {1, 1, 1};
  const std::vector<io::PlotSeries> curves = error_curves(s, 0.5);
  ASSERT_EQ(curves.size(), 4u);
  for (const io::PlotSeries& curve : curves)
    EXPECT_EQ(curve.x, (std::vector<double>{0.5, 1, 1.5})) << curve.name;
  EXPECT_EQ(curves[0].y, s.surrogate.l2_by_frame);
  EXPECT_EQ(curves[1].y, s.codec.l2_by_frame);
  EXPECT_EQ(curves[2].y, s.persistence.l2_by_frame);
  EXPECT_EQ(curves[3].y, s.climatology.l2_by_frame);
  s.linear.l2_by_frame = {0.2, 0.3, 0.5};
  EXPECT_EQ(error_curves(s, 0.5).back().y, s.linear.l2_by_frame);
}

/// A result in which every number is another one.
PipelineResult every_number() {
  PipelineResult r;
  r.grid = {16, 32}, r.steps = 1, r.stride = 2, r.frames = 23, r.train_frames = 3, r.latent_size = 5,
  r.state_size = 6;
  r.frame_time = 0.5;
  const auto scores = [](double first) {
    RolloutScore s;
    s.surrogate = {first, first + 1}, s.persistence = {first + 2, first + 3},
    s.climatology = {first + 4, first + 5};
    s.surrogate_all = first + 6, s.persistence_all = first + 7, s.climatology_all = first + 8, s.horizon = 1;
    return s;
  };
  r.latents.held_out = scores(100), r.latents.in_sample = scores(200);
  r.latents.one_step_held_out = 7, r.latents.one_step_in_sample = 8, r.latents.one_step_persistence = 9;
  const auto field = [](double first) {
    return FieldScore{first,     first + 1,   first + 2, first + 3,  first + 4,
                      first + 5, {first + 6}, {},        {first + 7}};
  };
  FieldScores& f = r.fields;
  f.surrogate = field(10), f.codec = field(20), f.persistence = field(30), f.climatology = field(40);
  f.linear = field(50), f.quadratic = field(60), f.in_sample = field(70);
  f.horizon = 4, f.turnover_time = 2;
  r.coded = CodedFrames{0.25, 0.125, 11, 12};
  r.stages = {{"flow.encode", "cpu", 13, 14, 15, 16}};
  r.transfers = {{"flow.decode", "frames", true, 17, "why"}, {"flow.plot", "image", false, 18, "so"}};
  r.memory = {{"name", "shape", 19, "stages"}};
  r.peak_bytes = 21, r.seconds = 22, r.overlapped = true;
  return r;
}

TEST(FlowPipeline, DocumentsHaveEachNumberUnderItsName) {
  const auto run = nlohmann::json::parse(to_json(std::vector{every_number()}))["runs"][0];
  const auto expect_numbers = [](const nlohmann::json& j,
                                 std::vector<std::pair<const char*, double>> numbers) {
    for (const auto& [name, value] : numbers) EXPECT_EQ(j.at(name), value) << name;
  };
  expect_numbers(run, {{"steps", 1},
                       {"stride", 2},
                       {"frames", 23},
                       {"train_frames", 3},
                       {"latent_size", 5},
                       {"state_size", 6},
                       {"frame_time", 0.5},
                       {"seconds", 22},
                       {"peak_device_bytes", 21}});
  EXPECT_EQ(run["n"], (nlohmann::json{32, 16}));
  EXPECT_TRUE(run["overlapped"]);
  double first = 100;
  for (const char* part : {"held_out", "in_sample"}) {
    const auto& s = run["latents"][part];
    expect_numbers(s, {{"steps", 2},
                       {"horizon", 1},
                       {"surrogate", first + 6},
                       {"persistence", first + 7},
                       {"climatology", first + 8}});
    EXPECT_TRUE(s["loses_to_persistence"]);
    EXPECT_EQ(s["surrogate_by_step"], (nlohmann::json{first, first + 1}));
    EXPECT_EQ(s["persistence_by_step"], (nlohmann::json{first + 2, first + 3}));
    EXPECT_EQ(s["climatology_by_step"], (nlohmann::json{first + 4, first + 5}));
    first += 100;
  }
  expect_numbers(run["latents"]["one_step"], {{"held_out", 7}, {"in_sample", 8}, {"persistence", 9}});
  const auto expect_field = [&](const nlohmann::json& j, double k) {
    expect_numbers(j, {{"relative_l2", k},
                       {"correlation", k + 1},
                       {"last_relative_l2", k + 2},
                       {"energy_drift", k + 3},
                       {"enstrophy_drift", k + 4},
                       {"anomaly_correlation", k + 5}});
    EXPECT_EQ(j["relative_l2_by_frame"], nlohmann::json{k + 6});
    EXPECT_EQ(j["anomaly_correlation_by_frame"], nlohmann::json{k + 7});
  };
  const auto& held_out = run["fields"]["held_out"];
  double k = 10;
  for (const char* of : {"surrogate", "codec", "persistence", "climatology", "linear", "quadratic"})
    expect_field(held_out[of], k), k += 10;
  expect_field(run["fields"]["in_sample"]["surrogate"], 70);
  expect_numbers(run["fields"], {{"horizon", 4}, {"turnover_time", 2}});
  expect_numbers(run["coded"],
                 {{"bound", 0.25}, {"max_error", 0.125}, {"bytes", 11}, {"bits_per_point", 12}});
  EXPECT_EQ(run["wall_seconds"]["flow.encode"], 13);
  expect_numbers(run["counted_transfers"][0], {{"bytes_to_device", 14}, {"bytes_from_device", 15}});
  EXPECT_EQ(run["transfers"][0]["direction"], "to_device");
  EXPECT_EQ(run["transfers"][1]["direction"], "from_device");
  EXPECT_EQ(run["transfers"][1]["bytes"], 18);
  EXPECT_EQ(run["memory"][0]["bytes"], 19);
  const std::string report = to_markdown({every_number()});
  for (const char* row :
       {"32x16 | 2 | f32 | surrogate | 10 | 12 | 11.0000 | +13 | +14 |\n",
        "| codec only | 20 | 22 | 21.0000 | +23 | +24 |\n", "| quadratic in time | 60 | 62 |",
        "| surrogate, in sample | 70 | 72 |",
        // 20 held-out frames of 0.5 over a turnover time of 2.
        "| 5 | 6 | 106 | 107 | 108 | 206 | 7 | 9 | 1 of 2 | 4 of 2 | 5 |\n", "| 13 | 22 | yes |\n",
        "| most at once | | 21 | |", "| flow.plot | image | from the device | 18 | so |"})
    EXPECT_NE(report.find(row), std::string::npos) << row << " in " << report;
}

TEST(FlowPipeline, FilesOfAReportAndALog) {
  const test::TemporaryFolder folder;
  Context context = context_of("interp");
  const std::vector<PipelineResult> runs{run_pipeline(context, small(folder.path()))};
  write_report(folder.path(), runs);
  const auto metrics = nlohmann::json::parse(io::read_text_file(folder.path() / "metrics.json"));
  const auto& run = metrics["runs"][0];
  for (const char* key : {"latents", "fields", "wall_seconds", "transfers", "counted_transfers", "memory"})
    EXPECT_TRUE(run.contains(key)) << key;
  EXPECT_TRUE(run["latents"]["held_out"].contains("horizon"));
  const std::string report = io::read_text_file(folder.path() / "report.md");
  for (const char* word : {"persistence", "climatology", "in sample", "horizon", "Nothing else is copied"})
    EXPECT_NE(report.find(word), report.npos) << word;
  const fs::path log = folder.path() / "log", a = log_metrics(log, runs), b = log_metrics(log, runs);
  EXPECT_NE(a, b);
  EXPECT_TRUE(nlohmann::json::parse(io::read_text_file(a)).contains("date"));
  EXPECT_EQ(nlohmann::json::parse(io::read_text_file(log / "summary.json")).size(), 2u);
}

// A run that is too large is refused, or made smaller, before anything is simulated.
TEST(FlowPipeline, SizesAreCheckedBeforeTheSimulation) {
  const test::TemporaryFolder folder;
  PipelineOptions o = small(folder.path());
  o.surrogate.rank = kMaxState + 1;
  Context context = context_of("cpu");
  EXPECT_THROW(run_pipeline(context, o), InputError);
  EXPECT_TRUE(context.stages().empty());
  // The whole spectrum of a field that fills its grid: more numbers than a state may have.
  o = small(folder.path());
  o.run.model.grid = {96, 96};
  o.run.stepping.dt = 5e-3;
  o.codec.share = 1;
  const PipelineResult r = run_pipeline(context, o);
  EXPECT_GT(r.latent_size, kMaxState);
  EXPECT_LE(r.state_size, r.train_frames);
}

TEST(FlowPipeline, Refusals) {
  const test::TemporaryFolder folder;
  Context context = context_of("interp");
  const auto refused = [&](auto change) {
    PipelineOptions o = small(folder.path());
    change(o);
    EXPECT_THROW(run_pipeline(context, o), InputError);
  };
  refused([](PipelineOptions& o) { o.stride = 3; });
  refused([](PipelineOptions& o) { o.stride = 0; });
  refused([](PipelineOptions& o) { o.run.members = 2; });
  refused([](PipelineOptions& o) { o.run.save_every = 2; });
  refused([](PipelineOptions& o) { o.run.stepping.cfl = 0.5; });
  refused([](PipelineOptions& o) { o.run.stepping.dt = 0.5; });
  refused([](PipelineOptions& o) { o.surrogate.train_share = 0.01; });
  refused([](PipelineOptions& o) { o.run.folder.clear(); });
  refused([](PipelineOptions& o) { o.max_error = -1; });
  refused([](PipelineOptions& o) {
    o.max_error = 1;
    o.decoder = Decoder::stochastic;
  });
  refused([](PipelineOptions& o) {
    o.max_error = 1;
    o.codec.kind = CodecKind::classic;
  });
}

}  // namespace
}  // namespace lockstep::flow
