// The stages, what they leave on the device, and what they copy.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <type_traits>

#include "core/log.hpp"
#include "flow/codec/layout.hpp"
#include "flow/modes.hpp"
#include "flow/pipeline/compare_fields.hpp"
#include "flow/run/pictures.hpp"
#include "flow/surrogate/kernels.hpp"
#include "io/pictures/plot.hpp"
#include "io/pictures/video.hpp"
#include "lockstep/error.hpp"
#include "lockstep/fft.hpp"
#include "lockstep/primitives.hpp"

namespace lockstep::flow {

namespace fs = std::filesystem;

namespace {

enum class Step : uint8_t { simulate, encode, learn, rollout, decode, plot, video };
constexpr const char* kStepNames[] = {"flow.simulate", "flow.encode", "flow.learn", "flow.rollout",
                                      "flow.decode",   "flow.plot",   "flow.video"};
constexpr const char* kFixed = "fixed by the settings";
constexpr int64_t kWatch = 500;  // steps between two looks at the status

class Pipeline {
 public:
  Pipeline(Context& context, const PipelineOptions& options)
      : context_(context), o_(options), initial_(load_initial(o_.run)) {
    RunOptions& run = o_.run;
    run.model.forcing.seed = run.seed;
    o_.codec.grid = run.model.grid;
    if (run.members != 1 || run.stepping.cfl > 0 || run.time > 0)
      throw InputError("several members, a cfl or a time", "flow pipeline", "one member, --dt and --steps");
    if (run.save_every > 0 || !run.checkpoint.empty())
      throw InputError("--save-every or --checkpoint", "flow pipeline",
                       "--strides; a pipeline keeps nothing on the host");
    if (o_.stride < 1 || run.steps < 1 || run.steps % o_.stride != 0)
      throw InputError(fmt::format("{} steps with a stride of {}", run.steps, o_.stride), "flow pipeline",
                       "a multiple of a stride of 1 or more");
    check(run.model, run.stepping);
    frame_count_ = run.steps / o_.stride + 1;
    train_ = int64_t(std::floor(o_.surrogate.train_share * double(frame_count_) + 1e-9));
    if (train_ < o_.surrogate.delays + 1 || train_ >= frame_count_)
      throw InputError(fmt::format("{} of {} frames to learn from", train_, frame_count_), "flow pipeline",
                       "more steps, a smaller stride, another --train-share");
    check_sizes();
  }

  PipelineResult run() {
    before_ = context_.stages();
    first_peak();
    for (const Step s : {Step::simulate, Step::encode, Step::learn, Step::rollout, Step::decode}) stage(s);
    if (o_.run.pictures) stage(Step::plot);
    if (!o_.run.video.empty()) stage(Step::video);
    finish();
    return std::move(r_);
  }

 private:
  bool on_cpu(Step s) const {
    return o_.place == Place::cpu || fell_back_ || (o_.place == Place::mixed && s == Step::simulate);
  }

  void first_peak() {
    const Device& device = o_.place == Place::cpu ? context_.cpu() : context_.device();
    Device(device).reset_peak();
  }

  void stage(Step s) {
    const size_t fallbacks = context_.fallbacks().size();
    step_ = s;
    const auto work = [&](const Device& device) {
      if (s != Step::simulate && !on_.same_as(device)) {
        // Only the simulation of mixed runs left something on the host.
        const bool keep = o_.place == Place::mixed;
        std::erase_if(r_.transfers, [&](const Transfer& t) { return !keep || t.stage != kStepNames[0]; });
        r_.memory.clear();
        for (int k = keep ? 1 : 0; k < int(s); ++k) run_step(Step(k), device);
      }
      run_step(s, device);
    };
    if (on_cpu(s))
      context_.run_stage_on_cpu(kStepNames[int(s)], work);
    else
      context_.run_stage(kStepNames[int(s)], work);
    fell_back_ = fell_back_ || context_.fallbacks().size() > fallbacks;
  }

  void run_step(Step s, const Device& device) {
    if (o_.place != Place::mixed || s != Step::simulate) on_ = device;
    switch (s) {
      case Step::simulate: return simulate(device);
      case Step::encode: return encode(device);
      case Step::learn: return learn_operator(device);
      case Step::rollout: return roll_out(device);
      case Step::decode: return decode(device);
      case Step::plot: return plot(device);
      case Step::video: return film_frames(device);
    }
  }

  /// Refuses latents that are too long and bounds the state, before anything was simulated.
  void check_sizes() {
    SurrogateOptions& s = o_.surrogate;
    const int64_t most = kMaxState / s.delays;
    if (s.rank > most)
      throw InputError(fmt::format("{} singular vectors with {} delays", s.rank, s.delays), "flow pipeline",
                       fmt::format("at most {}", most));
    if (s.rank == 0 && s.share == 1 && train_ > most) {
      logging::info("flow pipeline: {} of up to {} singular vectors are kept", most, train_);
      s.rank = most;
    }
    const int64_t size = first_latent_size();
    if (size > kMaxLatent)
      throw InputError(fmt::format("a latent of {} numbers", size), "flow pipeline",
                       fmt::format("at most {}; a smaller --rank or --cut", kMaxLatent));
  }
  /// Numbers in the latent of the first frame: the initial field without the modes that the simulation drops.
  int64_t first_latent_size() const {
    if (o_.codec.kind == CodecKind::classic) return 0;  // hundreds
    const BoxGrid& grid = o_.run.model.grid;
    const Modes modes = modes_of(o_.run.model);
    FftOptions options;
    options.kind = FftKind::r2c;
    options.lengths = {grid.ny, grid.nx};
    options.kept = {modes.kept_y, modes.kept_x};
    const Device& cpu = context_.cpu();
    const Buffer kept = cpu.allocate(Storage::f32, {modes.rows(), modes.columns(), 2});
    Fft(cpu, options)
        .execute(cpu.upload(initial_.to(Storage::f32).packed().reshape({grid.ny, grid.nx})), kept);
    const auto numbers = cpu.download<float>(kept);
    const int64_t columns = grid.nx / 2 + 1;
    std::vector<float> spectrum(size_t(grid.ny * columns * 2));
    for (int64_t row = 0; row < modes.rows(); ++row) {
      const int64_t y = (modes.iy(row) + grid.ny) % grid.ny;
      std::copy_n(&numbers[size_t(row * modes.columns() * 2)], modes.columns() * 2,
                  &spectrum[size_t(y * columns * 2)]);
    }
    spectrum[0] = 0;
    return codec_layout(plan_codec(o_.codec, spectrum)).size;
  }

  // ── ledger ──

  void copied(std::string what, bool to_device, int64_t bytes, std::string reason) {
    if (bytes <= 0) return;
    for (Transfer& t : r_.transfers)
      if (t.stage == kStepNames[int(step_)] && t.what == what && t.to_device == to_device) {
        t.bytes += bytes;
        return;
      }
    r_.transfers.push_back({kStepNames[int(step_)], std::move(what), to_device, bytes, std::move(reason)});
  }
  /// Runs what makes a part, or lets it make tables when first used, and notes what they took.
  template <class F>
  auto made(const Device& device, const std::string& part, const std::string& stages, F make) {
    const DeviceCounters was = device.counters();
    const auto note = [&] {
      const DeviceCounters is = device.counters();
      copied("tables of the " + part, true, is.bytes_to_device - was.bytes_to_device, kFixed);
      copied("what the " + part + " reads for them", false, is.bytes_from_device - was.bytes_from_device,
             kFixed);
      if (is.allocated_bytes > was.allocated_bytes)
        r_.memory.push_back({part, "", is.allocated_bytes - was.allocated_bytes, stages});
    };
    if constexpr (std::is_void_v<decltype(make())>) {
      make();
      note();
    } else {
      auto result = make();
      note();
      return result;
    }
  }
  Buffer allocated(const Device& device, const char* what, const Shape& shape, const char* stages) {
    const Buffer b = device.allocate(Storage::f32, shape);
    r_.memory.push_back({what, to_string(Sizes(shape)), b.bytes(), stages});
    return b;
  }

  // ── stages ──

  Shape fields_shape(int64_t count) const { return {count, o_.run.model.grid.ny, o_.run.model.grid.nx}; }

  void simulate(const Device& device) {
    const RunOptions& run = o_.run;
    auto solver = made(device, "solver", "simulate", [&] {
      return std::make_unique<Solver>(device, run.model, run.stepping, run.precision);
    });
    const DeviceCounters was = device.counters();
    solver->set_vorticity(initial_);
    copied("initial field, clock, status", true, device.counters().bytes_to_device - was.bytes_to_device,
           "input");
    frames_ = allocated(device, "frames", fields_shape(frame_count_), "simulate to video");
    const int64_t before_watch = device.counters().bytes_from_device;
    check_start(*solver);
    solver->vorticity(frames_.rows(0, 1));
    int64_t since = 0;
    for (int64_t k = 1; k < frame_count_; ++k) {
      for (int64_t left = o_.stride; left > 0;) {
        const int64_t now = std::min(left, kWatch - since);
        solver->advance(now);
        left -= now;
        since = (since + now) % kWatch;
        if (since == 0 || (k + 1 == frame_count_ && left == 0)) refuse_blow_up(*solver);
      }
      solver->vorticity(frames_.rows(k, 1));
    }
    copied("status and speeds", false, device.counters().bytes_from_device - before_watch,
           fmt::format("the watch, every {} steps", kWatch));
    if (o_.place != Place::mixed) return;
    host_frames_ = device.download(frames_);
    copied("frames", false, frames_.bytes(), "the simulation was on the CPU");
    frames_ = {};
    r_.memory.clear();  // of the other device
  }

  void check_start(Solver& solver) const {
    const double limit = cfl_limit(o_.run.model, o_.run.stepping.integrator), at = solver.courant().front();
    if (!(at <= limit))
      throw InputError(fmt::format("dt = {} is cfl = {:.4g} at the start", o_.run.stepping.dt, at), "flow dt",
                       fmt::format("at most {:.4g} (cfl {:.4g}) with {}", o_.run.stepping.dt * limit / at,
                                   limit, name(o_.run.stepping.integrator)));
  }
  static void refuse_blow_up(const Solver& solver) {
    const std::vector<BlowUp> blown = solver.blown_up();
    if (!blown.empty())
      throw InputError(fmt::format("the flow blew up by step {}", blown.front().step), "flow.simulate",
                       "a smaller dt, more viscosity or a closure");
  }

  void encode(const Device& device) {
    if (o_.place == Place::mixed) {
      frames_ = allocated(device, "frames", fields_shape(frame_count_), "encode to video");
      device.write(frames_, host_frames_.data(), host_frames_.bytes());
      copied("frames", true, frames_.bytes(), "the simulation was on the CPU");
    }
    codec_ = made(device, "codec", "encode, decode", [&] {
      return std::make_unique<Codec>(
          device, o_.codec, frames_.rows(0, 1).reshape({o_.run.model.grid.ny, o_.run.model.grid.nx}));
    });
    r_.latent_size = codec_->latent_size();
    latents_ = allocated(device, "latents", {frame_count_, r_.latent_size}, "encode to decode");
    made(device, "codec at work", "encode, decode", [&] { codec_->encode(frames_, latents_); });
  }

  void learn_operator(const Device& device) {
    const DeviceCounters was = device.counters();
    learnt_ = learn(device, latents_, o_.surrogate);
    const DeviceCounters is = device.counters();
    copied("matrices of frames by frames", true, is.bytes_to_device - was.bytes_to_device, "their factors");
    copied("products of frames", false, is.bytes_from_device - was.bytes_from_device, "their factors");
    r_.memory.push_back(
        {"singular vectors", "", learnt_.basis.bytes() + learnt_.climatology.bytes(), "learn, rollout"});
  }

  void roll_out(const Device& device) {
    auto rollout =
        made(device, "operator", "rollout", [&] { return std::make_unique<Rollout>(device, learnt_); });
    const int64_t was = device.counters().bytes_from_device;
    r_.latents = score(*rollout, learnt_.model, latents_,
                       converted(device, learnt_.climatology, latents_.storage()), o_.rollout);
    copied("sums over latents", false, device.counters().bytes_from_device - was, "their scores");
    learnt_.basis = {};
    r_.memory.push_back({"predicted latents", "",
                         r_.latents.predicted_in_sample.bytes() + r_.latents.predicted_held_out.bytes(),
                         "rollout, decode"});
  }

  void decode(const Device& device) {
    const int64_t held = frame_count_ - train_, delays = o_.surrogate.delays;
    auto comparer = made(device, "comparison of fields", "decode",
                         [&] { return std::make_unique<FieldComparer>(device, o_.run.model.grid); });
    const Buffer truth = frames_.rows(train_, held);
    decoded_ =
        allocated(device, "decoded fields", fields_shape(std::max(held, train_ - delays)), "decode to video");
    const Buffer out = decoded_.rows(0, held), early = decoded_.rows(0, train_ - delays);
    const auto decoded = [&](const Buffer& latents, const Buffer& to, int64_t number) {
      made(device, "codec at work", "decode", [&] { codec_->decode(latents, to, o_.decoder, number); });
    };
    decoded(r_.latents.predicted_in_sample, early, delays);
    r_.fields.in_sample = comparer->compare(frames_.rows(delays, train_ - delays), early);
    decoded(latents_.rows(train_, held), out, train_);
    r_.fields.codec = comparer->compare(truth, out);
    decoded(r_.latents.predicted_held_out, out, train_);
    r_.fields.surrogate = comparer->compare(truth, out);
    r_.fields.persistence = comparer->compare(truth, frames_.rows(train_ - 1, 1));
    r_.fields.climatology = comparer->compare(truth, mean_frame(device, frames_.rows(0, train_)));
    r_.fields.horizon = field_horizon(r_.fields.surrogate, r_.fields.persistence);
    copied("sums over modes", false, comparer->bytes_read, "errors of fields");
  }

  Array fetched(const Device& device, const Buffer& fields, int64_t at) {
    copied("a field", false, fields.bytes() / fields.shape()[0], "a picture");
    return device.download(fields.rows(at, 1));
  }

  void plot(const Device& device) {
    const int64_t held = frame_count_ - train_;
    double range = 0;
    const double time = double(o_.run.steps) * o_.run.stepping.dt;
    const auto draw = [&](const char* file, const Buffer& fields, int64_t at) {
      const Array field = fetched(device, fields, at);
      if (range == 0) range = color_range(field);
      io::write_png(o_.run.folder / file, picture_of(field, time, range));
      r_.files.push_back(o_.run.folder / file);
    };
    draw("omega_simulated.png", frames_, frame_count_ - 1);
    draw("omega_surrogate.png", decoded_, held - 1);
    std::vector<io::PlotSeries> curves;
    const auto add = [&](const char* curve, const FieldScore& score, bool dashed) {
      io::PlotSeries s;
      s.name = curve;
      s.marker = false;
      s.dashed = dashed;
      for (size_t k = 0; k < score.l2_by_frame.size(); ++k) {
        s.x.push_back(double(k + 1) * double(o_.stride) * o_.run.stepping.dt);
        s.y.push_back(score.l2_by_frame[k]);
      }
      curves.push_back(std::move(s));
    };
    add("surrogate", r_.fields.surrogate, false);
    add("codec", r_.fields.codec, false);
    add("persistence", r_.fields.persistence, true);
    add("climatology", r_.fields.climatology, true);
    io::PlotOptions options;
    options.title = "error of held-out fields";
    options.x_label = "time after the last training frame";
    options.y_label = "relative L2";
    io::write_png(o_.run.folder / "errors.png", io::draw_plot(curves, options).image());
    r_.files.push_back(o_.run.folder / "errors.png");
  }

  void film_frames(const Device& device) {
    const int64_t held = frame_count_ - train_;
    FilmWriter writer(o_.run.video, held);
    for (int64_t k = 0; k < held; ++k)
      writer.add(fetched(device, decoded_, k), double((train_ + k) * o_.stride) * o_.run.stepping.dt);
    writer.commit();
    r_.files.push_back(o_.run.video);
  }

  void finish() {
    r_.place = o_.place;
    r_.device = on_.info().name;
    r_.grid = o_.run.model.grid;
    r_.precision = o_.run.precision;
    r_.codec = o_.codec.kind;
    r_.decoder = o_.decoder;
    r_.method = o_.surrogate.method;
    r_.steps = o_.run.steps;
    r_.stride = o_.stride;
    r_.frames = frame_count_;
    r_.train_frames = train_;
    r_.state_size = learnt_.model.state_size();
    r_.frame_time = double(o_.stride) * o_.run.stepping.dt;
    r_.peak_bytes = on_.counters().peak_bytes;
    r_.latents.predicted_in_sample = r_.latents.predicted_held_out = {};
    for (const StageRecord& now : context_.stages()) {
      StageRecord d = now;
      for (const StageRecord& old : before_)
        if (old.stage == now.stage) {
          d.seconds -= old.seconds;
          d.bytes_to_device -= old.bytes_to_device;
          d.bytes_from_device -= old.bytes_from_device;
          d.launches -= old.launches;
          d.runs -= old.runs;
        }
      if (d.runs > 0)
        r_.stages.push_back(
            {d.stage, d.device, d.seconds, d.bytes_to_device, d.bytes_from_device, d.launches});
    }
  }

  Context& context_;
  PipelineOptions o_;
  Array initial_, host_frames_;
  int64_t frame_count_ = 0, train_ = 0;
  Step step_ = Step::simulate;
  bool fell_back_ = false;
  Device on_;
  Buffer frames_, latents_, decoded_;
  std::unique_ptr<Codec> codec_;
  LearntOnDevice learnt_;
  std::vector<StageRecord> before_;
  PipelineResult r_;
};

}  // namespace

std::string_view name(Place place) {
  switch (place) {
    case Place::device: return "device";
    case Place::mixed: return "mixed";
    case Place::cpu: return "cpu";
  }
  return "?";
}

void check_pipeline(Context& context, const PipelineOptions& options) { Pipeline(context, options); }

PipelineResult run_pipeline(Context& context, const PipelineOptions& options) {
  if (options.run.folder.empty()) throw InputError("no folder for the results", "flow pipeline", "a folder");
  if (!options.run.video.empty())
    if (const std::string reason = io::video_unavailable_reason(); !reason.empty())
      throw UnsupportedError(reason, "flow pipeline --video", "a build with films, or --pictures");
  Pipeline pipeline(context, options);
  std::error_code error;
  fs::create_directories(options.run.folder, error);
  if (error) throw InputError(error.message(), options.run.folder.string(), "a folder that can be made");
  return pipeline.run();
}

}  // namespace lockstep::flow
