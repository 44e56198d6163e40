// `flow learn` and `flow rollout`: from an encoded series to a model, and from a model to an encoded series.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "flow/codec/layout.hpp"
#include "flow/pipeline/compare_fields.hpp"
#include "flow/pipeline/scores_json.hpp"
#include "io/arrays/npz_file.hpp"
#include "io/text/json_text.hpp"
#include "lockstep/error.hpp"

namespace lockstep::flow {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kMostEigenvalues = 512;  // their cost is that of the state's third power
const char* const kModelFile = "a model that `lockstep flow learn` wrote";

void expect_npz(const fs::path& path, const char* where) {
  if (path.extension() != ".npz")
    throw InputError(fmt::format("'{}'", path.string()), where, "a name in .npz");
}

Array text_array(const std::string& text) {
  return Array::of(std::vector<uint8_t>(text.begin(), text.end()));
}

void put_plan(io::NpzArrays& arrays, const CodecPlan& plan) {
  const CodecOptions& o = plan.options;
  arrays.emplace_back(
      "codec", Array::of(std::vector<double>{double(o.kind), double(o.grid.ny), double(o.grid.nx), o.grid.lx,
                                             o.grid.ly, o.low, o.middle, o.threshold, double(o.box),
                                             double(o.anchor_count), double(o.anchors), o.share, o.cut}));
  arrays.emplace_back("codec_seed", Array::of(std::vector<uint64_t>{o.seed}));
  arrays.emplace_back("codec_scales", Array::of(std::vector<float>(plan.scales)));
  arrays.emplace_back("codec_anchors", Array::of(std::vector<int32_t>(plan.anchors)));
}

/// A model's file with its codec and the clock of its frames.
struct ModelFile {
  Surrogate model;
  CodecPlan plan;
  double last_time = 0, frame_time = 0;
  std::string scores;
};

template <class E>
std::vector<E> numbers_of(const io::NpzFile& file, const char* name, int64_t most) {
  const Array array = file.read(name, {kStorageOf<E>, 1, {}, most}).packed();
  return {array.as<E>().begin(), array.as<E>().end()};
}
std::vector<double> doubles_of(const io::NpzFile& file, const char* name, int64_t count) {
  const Array array = file.read(name, {Storage::f64, 1, {count}}).packed();
  return {array.as<double>().begin(), array.as<double>().end()};
}

void read_plan(const io::NpzFile& file, CodecPlan& plan) {
  const std::string& where = file.where();
  const auto n = doubles_of(file, "codec", 13);
  for (const double v : n)
    if (!std::isfinite(v) || std::abs(v) > 1e12)
      throw InputError(fmt::format("a codec's {}", v), where, kModelFile);
  CodecOptions& o = plan.options;
  o.kind = n[0] == 0 ? CodecKind::classic : CodecKind::v2;
  o.grid = {int64_t(n[2]), int64_t(n[1]), n[3], n[4]};
  o.low = n[5];
  o.middle = n[6];
  o.threshold = n[7];
  o.box = int(std::clamp(n[8], -1e9, 1e9));
  o.anchor_count = int64_t(n[9]);
  o.anchors = n[10] == 0 ? Anchors::published : Anchors::used;
  o.share = n[11];
  o.cut = n[12];
  o.seed = numbers_of<uint64_t>(file, "codec_seed", 1).at(0);
  check_codec(o);
  plan.scales = numbers_of<float>(file, "codec_scales", kMaxLatent);
  plan.anchors = numbers_of<int32_t>(file, "codec_anchors", o.grid.points());
  if (const std::string fault = plan_fault(plan); !fault.empty()) throw InputError(fault, where, kModelFile);
}

/// The arrays of a surrogate, whose sizes follow from its settings and from the rows of its basis.
Surrogate read_surrogate(const io::NpzFile& file, int64_t latent_size) {
  std::vector<std::pair<std::string, Array>> arrays{
      {"surrogate", file.read("surrogate", {Storage::f64, 1, {7}})}};
  const Array settings = arrays[0].second.packed();
  const double delays = settings.as<double>()[2];
  const Sizes basis = file.header("basis").shape;
  const double state = basis.empty() ? 0 : delays * double(basis[0]);
  if (!(delays >= 1 && delays <= 64 && state >= 1 && state <= double(kMaxLatent)))
    throw InputError(fmt::format("surrogate of {} delays, basis of shape {}", delays, to_string(basis)),
                     file.where(), kModelFile);
  const std::pair<const char*, Sizes> sizes[] = {{"basis", {-1, latent_size}},
                                                 {"step", {int64_t(state), int64_t(state)}},
                                                 {"climatology", {latent_size}},
                                                 {"last", {int64_t(delays), latent_size}}};
  for (const auto& [name, shape] : sizes)
    arrays.emplace_back(name, file.read(name, {Storage::f64, -1, shape}));
  return surrogate_from(arrays, file.where());
}

ModelFile read_model(const fs::path& path) {
  constexpr int64_t kLongestScores = 1 << 24;
  const io::NpzFile file(path);
  for (const char* name : {"codec", "surrogate", "clock"})
    if (!file.has(name)) throw InputError(fmt::format("no array '{}'", name), file.where(), kModelFile);
  ModelFile m;
  read_plan(file, m.plan);
  m.model = read_surrogate(file, codec_layout(m.plan).size);
  const auto clock = doubles_of(file, "clock", 2);
  m.last_time = clock[0];
  m.frame_time = clock[1];
  if (!std::isfinite(m.last_time) || !(m.frame_time > 0) || !std::isfinite(m.frame_time))
    throw InputError(fmt::format("a clock of {} and {}", m.last_time, m.frame_time), file.where(),
                     kModelFile);
  const auto scores = numbers_of<uint8_t>(file, "scores", kLongestScores);
  m.scores.assign(scores.begin(), scores.end());
  if (!io::parse_json(m.scores, file.where()).is_object())
    throw InputError("scores that are not JSON", file.where(), kModelFile);
  return m;
}

/// Errors of decoded predictions against decoded latents.
FieldScores field_scores(const Device& device, const EncodedFields& e, const Surrogate& model,
                         const SurrogateScores& scores, const Buffer& latents) {
  const Codec codec(device, e.plan);
  const BoxGrid& g = e.plan.options.grid;
  const int64_t train = model.train_frames, held = e.frames - train, delays = model.options.delays;
  FieldComparer comparer(device, g);
  const Buffer truth = device.allocate(Storage::f32, {e.frames, g.ny, g.nx});
  codec.decode(latents, truth);
  const int64_t most = std::max(held, train - delays);
  const Buffer out = device.allocate(Storage::f32, {most, g.ny, g.nx});
  FieldScores f;
  codec.decode(scores.predicted_in_sample, out.rows(0, train - delays));
  comparer.set_past(truth.rows(0, train), mean_frame(device, truth.rows(0, train)));
  f.in_sample = comparer.compare(truth.rows(delays, train - delays), out.rows(0, train - delays));
  codec.decode(scores.predicted_held_out, out.rows(0, held));
  const Buffer rest = truth.rows(train, held);
  f.surrogate = comparer.compare(rest, out.rows(0, held), f);
  f.turnover_time = comparer.turnover_time();
  f.horizon = field_horizon(f);
  return f;
}

}  // namespace

LearnRunResult learn_run(Context& context, const LearnRunOptions& options) {
  expect_npz(options.output, "flow learn");
  const EncodedFields e = read_encoded(options.input);
  if (e.members != 1)
    throw InputError(fmt::format("{} members", e.members), options.input.string(), "a series of one flow");
  LearnRunResult r;
  Array latents;
  context.run_stage("flow.learn", [&](const Device& device) {
    latents = latents_of(device, e);
    const Buffer on_device = device.upload(latents);
    r.model = to_host(device, learn(device, on_device, options.surrogate), on_device);
  });
  if (r.model.state_size() <= kMostEigenvalues) r.eigenvalues = eigenvalues(r.model);
  context.run_stage("flow.rollout", [&](const Device& device) {
    const Buffer on_device = device.upload(latents);
    Rollout rollout(device, r.model);
    r.latents =
        score(rollout, r.model, on_device,
              device.upload(r.model.climatology.reshape({1, r.model.latent_size}).to(latents.storage())),
              options.rollout);
    r.fields = field_scores(device, e, r.model, r.latents, on_device);
    r.latents.predicted_in_sample = r.latents.predicted_held_out = {};
  });
  r.frames = e.frames;
  const int64_t train = r.model.train_frames;
  const double last = e.time[size_t(train - 1)], step = e.time[size_t(train)] - last;
  io::NpzArrays arrays;
  for (auto& named : to_arrays(r.model)) arrays.push_back(std::move(named));
  put_plan(arrays, e.plan);
  arrays.emplace_back("clock", Array::of(std::vector<double>{last, step}));
  arrays.emplace_back("scores", text_array(scores_json(r.latents, r.fields)));
  io::write_npz(options.output, arrays, io::NpzCompression::stored, {.title = "linear model of latents"});
  r.file = options.output;
  return r;
}

RolloutRunResult rollout_run(Context& context, const RolloutRunOptions& options) {
  expect_npz(options.output, "flow rollout");
  if (options.steps < 1)
    throw InputError(fmt::format("{} steps", options.steps), "flow rollout", "1 or more");
  const ModelFile m = read_model(options.input);
  RolloutRunResult r;
  EncodedFields e;
  context.run_stage("flow.rollout", [&](const Device& device) {
    Rollout rollout(device, m.model);
    rollout.start(device.upload(m.model.last.to(Storage::f32)));
    const Buffer out = device.allocate(Storage::f32, {options.steps, m.model.latent_size});
    rollout.run(out, options.rollout);  // compiles
    device.synchronize();
    const auto start = std::chrono::steady_clock::now();
    rollout.run(out, options.rollout);
    device.synchronize();
    r.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    e.latent = device.download(out);
  });
  if (const auto at = first_not_finite(e.latent))
    throw InputError(fmt::format("a rollout that is not finite at step {}", *at / m.model.latent_size + 1),
                     options.input.string(), "fewer steps, a smaller rank or a larger lambda");
  e.plan = m.plan;
  e.frames = options.steps;
  for (int64_t k = 1; k <= options.steps; ++k) e.time.push_back(m.last_time + double(k) * m.frame_time);
  write_encoded(options.output, e);
  r.steps = options.steps;
  r.latent_size = m.model.latent_size;
  r.state_size = m.model.state_size();
  r.steps_per_second = r.seconds > 0 ? double(r.steps) / r.seconds : 0;
  r.scores = m.scores;
  r.file = options.output;
  return r;
}

}  // namespace lockstep::flow
