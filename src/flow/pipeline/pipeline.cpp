// The stages, what they leave on the device, and what they copy.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <exception>
#include <future>
#include <memory>

#include "core/files/folder.hpp"
#include "core/reports/log.hpp"
#include "device/capabilities.hpp"
#include "device/stages/stage_scope.hpp"
#include "flow/codec/kernels/residual.hpp"
#include "flow/codec/layout.hpp"
#include "flow/pipeline/compare_fields.hpp"
#include "flow/pipeline/error_plot.hpp"
#include "flow/pipeline/first_latent.hpp"
#include "flow/pipeline/ledger.hpp"
#include "flow/pipeline/relay.hpp"
#include "flow/run/pictures.hpp"
#include "flow/run/start.hpp"
#include "flow/surrogate/kernels.hpp"
#include "io/pictures/video.hpp"
#include "lockstep/error.hpp"
#include "lockstep/primitives.hpp"

namespace lockstep::flow {

namespace fs = std::filesystem;

namespace {

enum class Step : uint8_t { simulate, encode, learn, rollout, decode, plot, video };
constexpr const char* kStepNames[] = {"flow.simulate", "flow.encode", "flow.learn", "flow.rollout",
                                      "flow.decode",   "flow.plot",   "flow.video"};
/// Stages consist of parts, which may run concurrently with those of other stages.
enum class Part : uint8_t {
  simulate,
  encode,
  learn,
  rollout,
  decode_truth,
  decode_rollouts,
  plot_truth,
  plot_rollouts,
  video,
};
constexpr Step kStepOf[] = {Step::simulate, Step::encode, Step::learn, Step::rollout, Step::decode,
                            Step::decode,   Step::plot,   Step::plot,  Step::video};
constexpr int64_t kWatch = 500;  // steps between two looks at the status
constexpr int64_t kRelays = 8;   // times that finished frames are passed on to the codec

[[noreturn]] void refuse_pipeline(const char* option, const std::string& what, const std::string& expected) {
  throw schema_of<PipelineOptions>().error({OptionError::Kind::invalid, option, what, expected, ""});
}

/// Ends a part whose stage begins again.
struct Abandoned {};

class Pipeline {
 public:
  Pipeline(Context& context, const PipelineOptions& options)
      : context_(context), o_(options), initial_(load_initial(o_.run)) {
    RunOptions& run = o_.run;
    run.model.forcing.seed = run.forcing_seed.value_or(run.seed);
    o_.codec.grid = run.model.grid;
    schema_of<PipelineOptions>().check(&o_);
    if (run.members != 1 || run.stepping.cfl > 0 || run.time > 0 || run.save_every > 0 ||
        !run.checkpoint.empty())
      throw InputError("several members, a cfl, a time, saved fields or a checkpoint", "flow pipeline",
                       "one member, a fixed dt and a number of steps; a pipeline keeps nothing on the host");
    if (run.steps < 1 || run.steps % o_.stride != 0)
      refuse_pipeline("stride", fmt::format("{} steps with a stride of {}", run.steps, o_.stride),
                      "a multiple of a stride of 1 or more");
    check(run.model, run.stepping);
    if (o_.max_error) {
      check_bound(o_.codec, *o_.max_error);
      if (o_.decoder != Decoder::mean)
        refuse_pipeline("decoder", "the stochastic decoder for fields whose error is bounded",
                        "the decoder mean: fields with a bound on their error have no random part");
    }
    frame_count_ = run.steps / o_.stride + 1;
    train_ = int64_t(std::floor(o_.surrogate.train_share * double(frame_count_) + 1e-9));
    if (train_ < o_.surrogate.delays + 1 || train_ >= frame_count_)
      refuse_pipeline("train_share", fmt::format("{} of {} frames to learn from", train_, frame_count_),
                      "more {steps}, a smaller stride, another {train_share}");
    check_sizes();
  }

  PipelineResult run() {
    before_ = context_.stages();
    first_peak();
    const auto begin = std::chrono::steady_clock::now();
    r_.overlapped = overlaps();
    if (r_.overlapped) run_at_once();
    for (const Step s :
         {Step::simulate, Step::encode, Step::learn, Step::rollout, Step::decode, Step::plot, Step::video})
      if (wanted(s) && !done(s)) stage(s);
    r_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
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

  bool wanted(Step s) const {
    return s == Step::plot ? o_.run.pictures : s != Step::video || !o_.run.video.empty();
  }
  static std::vector<Part> parts_of(Step s) {
    std::vector<Part> parts;
    for (size_t p = 0; p < std::size(kStepOf); ++p)
      if (kStepOf[p] == s) parts.push_back(Part(p));
    return parts;
  }
  bool done(Step s) const {
    const std::vector<Part> parts = parts_of(s);
    return std::all_of(parts.begin(), parts.end(), [&](Part p) { return done_[size_t(p)]; });
  }

  void stage(Step s) {
    const size_t fallbacks = context_.fallbacks().size();
    const auto work = [&](const Device& device) {
      if (s == failed_at_ && failure_ && !on_cpu(s)) std::rethrow_exception(std::exchange(failure_, nullptr));
      if (s != Step::simulate && !on_.same_as(device)) {
        // Only the simulation of mixed runs left something on the host.
        const bool keep = o_.place == Place::mixed;
        ledger_.forget([&](int stage) { return !keep || stage > 0; });
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
    for (const Part p : parts_of(s)) run_part(p, device);
  }
  void run_part(Part p, const Device& device) {
    switch (p) {
      case Part::simulate: return simulate(device);
      case Part::encode: return encode(device);
      case Part::learn: return learn_operator(device);
      case Part::rollout: return roll_out(device);
      case Part::decode_truth: return decode_truth(device);
      case Part::decode_rollouts: return decode_rollouts(device);
      case Part::plot_truth: return plot_truth(device);
      case Part::plot_rollouts: return plot_rollouts(device);
      case Part::video: return film_frames(device);
    }
  }

  // ── stages at once ──

  bool overlaps() const {
    return o_.overlap.value_or(o_.place != Place::cpu && capabilities_of(context_.device()).warp_lanes > 0);
  }
  /// Until something fails: stages that are not done then begin again, one after the other.
  void run_at_once() {
    on_ = o_.place == Place::cpu ? context_.cpu() : context_.device();
    side_ = on_.stream();
    const bool ordered = o_.place != Place::mixed;
    const int64_t least = frames_at_once(o_.run.model.grid);
    batch_ = std::max<int64_t>((frame_count_ + kRelays * least - 1) / (kRelays * least), least > 1 ? 1 : 2) *
             least;
    relay_ = std::make_unique<Relay>(on_, 1 + (frame_count_ + batch_ - 1) / batch_, ordered);
    bool sound = together({Part::simulate}, {Part::encode});
    relay_.reset();
    std::vector<Part> beside{Part::decode_truth};
    if (wanted(Step::plot)) beside.insert(beside.begin(), Part::plot_truth);
    sound = sound && together({Part::learn, Part::rollout}, beside) && together({Part::decode_rollouts}, {});
    beside.assign(wanted(Step::video) ? 1 : 0, Part::video);
    if (sound && wanted(Step::plot)) together({Part::plot_rollouts}, beside);
    side_ = {};
  }
  /// Parts one after the other on this thread and the default stream, others on another thread and a stream of its own.
  /// False where a device failed; throws what else was thrown, first here.
  bool together(const std::vector<Part>& here, const std::vector<Part>& there) {
    std::future<std::exception_ptr> other =
        std::async(std::launch::async, [&] { return attempted(there, true); });
    const std::exception_ptr own = attempted(here, false), others = other.get();
    for (const std::exception_ptr& e : {own, others}) {
      try {
        if (e) std::rethrow_exception(e);
      } catch (const Abandoned&) {}
    }
    if (!own && !others) return true;
    ledger_.forget([&](int stage) { return !done(Step(stage)); });
    return false;
  }
  std::exception_ptr attempted(const std::vector<Part>& parts, bool beside) {
    try {
      for (const Part p : parts) attempt(p, beside);
    } catch (...) {
      if (relay_) relay_->stop();
      return std::current_exception();
    }
    return nullptr;
  }
  void attempt(Part p, bool beside) {
    const Step s = kStepOf[size_t(p)];
    const auto failed = [&] {
      const std::lock_guard lock(failing_);
      if (!failure_) failure_ = std::current_exception(), failed_at_ = s;
      throw Abandoned();
    };
    const auto work = [&](const Device& device) {
      try {
        if (beside)
          device.on(side_, [&] { run_part(p, device); });
        else
          run_part(p, device);
      } catch (const DeviceError&) { failed(); } catch (const UnsupportedError&) {
        failed();
      }
    };
    if (on_cpu(s))
      context_.run_stage_on_cpu(kStepNames[int(s)], work);
    else
      context_.run_stage(kStepNames[int(s)], work);
    done_[size_t(p)] = true;
  }
  /// Another thread's part, from which this one's continues.
  void follow(int64_t part) {
    if (relay_ && !relay_->follow(part)) throw Abandoned();
  }

  /// Refuses latents that are too long and bounds the state, before anything was simulated.
  void check_sizes() {
    SurrogateOptions& s = o_.surrogate;
    const int64_t most = kMaxState / s.delays;
    if (s.rank > most)
      refuse_pipeline("vectors", fmt::format("{} singular vectors with {} delays", s.rank, s.delays),
                      fmt::format("at most {}", most));
    if (s.rank == 0 && s.share == 1 && train_ > most) {
      logging::info("flow pipeline: {} of up to {} singular vectors are kept", most, train_);
      s.rank = most;
    }
    if (o_.run.model.grid.points() <= kMaxLatent) return;  // a latent has no more numbers than its field
    if (!o_.max_error || o_.codec.cut > 0)
      expect_latent(first_latent_size(context_.cpu(), o_.run.model, o_.codec, initial_));
  }
  static void expect_latent(int64_t size) {
    if (size > kMaxLatent)
      refuse_pipeline("share", fmt::format("a latent of {} numbers", size),
                      fmt::format("at most {}; a smaller {{share}} or {{cut}}", kMaxLatent));
  }
  void copied(const char* what, bool to_device, int64_t bytes, const std::string& reason) {
    ledger_.copied(what, to_device, bytes, reason);
  }
  Buffer allocated(const Device& device, const char* what, const Shape& shape, const char* stages) {
    const Buffer b = device.allocate(Storage::f32, shape);
    ledger_.held(what, to_string(Sizes(shape)), b.bytes(), stages);
    return b;
  }

  // ── stages ──

  Shape fields_shape(int64_t count) const { return {count, o_.run.model.grid.ny, o_.run.model.grid.nx}; }

  void simulate(const Device& device) {
    const RunOptions& run = o_.run;
    auto solver = ledger_.made("solver", "simulate", [&] {
      return std::make_unique<Solver>(device, run.model, run.stepping, run.precision);
    });
    ledger_.copying("initial field, clock, status", true, "input", [&] { solver->set_vorticity(initial_); });
    const Buffer frames = allocated(device, "frames", fields_shape(frame_count_), "simulate to video");
    if (o_.place == Place::mixed)
      host_frames_ = Array(Storage::f32, {frame_count_, run.model.grid.ny, run.model.grid.nx});
    else
      frames_ = frames;
    solver->vorticity(frames.rows(0, 1));
    const device::StageScope& scope = *device::current_scope();
    const int64_t from = scope.bytes_from_device;
    hand_over(device, frames, 0, 1);
    check_start(*solver);
    step_through(*solver, device, frames);
    const bool mixed = o_.place == Place::mixed;
    copied("status and speeds", false, scope.bytes_from_device - from - (mixed ? frames.bytes() : 0),
           fmt::format("the watch, every {} steps", kWatch));
    if (!mixed) return;
    copied("frames", false, frames.bytes(), "the simulation was on the CPU");
    ledger_.forget_memory(int(Step::simulate));  // of the other device
  }
  void step_through(Solver& solver, const Device& device, const Buffer& frames) {
    int64_t since = 0, passed = 0;
    for (int64_t k = 1; k < frame_count_; ++k) {
      for (int64_t left = o_.stride; left > 0;) {
        const int64_t now = std::min(left, kWatch - since);
        solver.advance(now);
        left -= now;
        since = (since + now) % kWatch;
        if (since == 0 || (k + 1 == frame_count_ && left == 0)) refuse_blow_up(solver);
      }
      solver.vorticity(frames.rows(k, 1));
      if (relay_ && (k + 1 - passed == batch_ || k + 1 == frame_count_)) {
        hand_over(device, frames, std::max<int64_t>(passed, 1), k + 1 - std::max<int64_t>(passed, 1));
        passed = k + 1;
      } else if (!relay_ && k + 1 == frame_count_) {
        hand_over(device, frames, 1, k);
      }
    }
  }
  /// Frames to who waits for them; of mixed runs by way of the host.
  void hand_over(const Device& device, const Buffer& frames, int64_t first, int64_t count) {
    if (o_.place == Place::mixed) {
      const Buffer part = frames.rows(first, count);
      device.read(part, host_frames_.mutate<float>().data() + first * o_.run.model.grid.points(),
                  part.bytes());
    }
    if (relay_) relay_->pass();
  }

  void check_start(Solver& solver) const {
    if (auto error = start_error(o_.run.model, o_.run.stepping, solver.courant().front()))
      throw schema_of<PipelineOptions>().error(std::move(*error));
  }
  static void refuse_blow_up(const Solver& solver) {
    const std::vector<BlowUp> blown = solver.blown_up();
    if (!blown.empty())
      throw InputError(fmt::format("the flow blew up by step {}", blown.front().step), "flow.simulate",
                       "a smaller dt, more viscosity or a closure");
  }

  void encode(const Device& device) {
    const bool mixed = o_.place == Place::mixed;
    if (mixed) frames_ = allocated(device, "frames", fields_shape(frame_count_), "encode to video");
    const auto arrive = [&](int64_t first, int64_t count) {
      if (!mixed) return;
      const Buffer part = frames_.rows(first, count);
      device.write(part, host_frames_.as<float>().data() + first * o_.run.model.grid.points(), part.bytes());
      copied("frames", true, part.bytes(), "the simulation was on the CPU");
    };
    if (o_.max_error) {  // its steps follow from all frames
      follow(1 + (frame_count_ - 1) / std::max<int64_t>(batch_, 1));
      arrive(0, frame_count_);
      return encode_bounded(device, *o_.max_error);
    }
    follow(0);
    arrive(0, 1);
    codec_ = ledger_.made("codec", "encode, decode", [&] {
      return std::make_unique<Codec>(
          device, o_.codec, frames_.rows(0, 1).reshape({o_.run.model.grid.ny, o_.run.model.grid.nx}));
    });
    make_latents(device);
    const int64_t step = relay_ ? batch_ : frame_count_;
    for (int64_t first = 0; first < frame_count_; first += step) {
      const int64_t count = std::min(step, frame_count_ - first), from = std::max<int64_t>(first, 1);
      follow(1 + first / step);
      arrive(from, first + count - from);
      ledger_.made("codec at work", "encode, decode",
                   [&] { codec_->encode(frames_.rows(first, count), latents_.rows(first, count)); });
    }
  }
  void make_latents(const Device& device) {
    r_.latent_size = codec_->latent_size();
    expect_latent(r_.latent_size);
    latents_ = allocated(device, "latents", {frame_count_, r_.latent_size}, "encode to decode");
  }
  /// As encode_fields() codes frames; the coded numbers go to the host, quantised latents stay on the device.
  void encode_bounded(const Device& device, double bound) {
    FieldSizes sizes;
    ledger_.copying("largest values of frames", false, "the steps of the bound", [&] {
      const Buffer all = frames_.reshape({frames_.elements()});
      sizes.peak = largest_size(device, all);
      sizes.rms = double(primitives::norm<float>(device, all)) / std::sqrt(double(all.elements()));
    });
    ledger_.made("codec", "encode, decode", [&] {
      const BoundedCodec chosen = bounded_codec(device, o_.codec, frames_.rows(0, 1), sizes, bound);
      codec_ = std::make_unique<Codec>(chosen.codec);
      coder_ = std::make_unique<ResidualCoder>(chosen.codec, device, chosen.steps);
    });
    make_latents(device);
    blocks_.clear();
    CodedFrames coded{bound, 0, 0, 0};
    const int64_t step = block_frames(o_.run.model.grid);
    for (int64_t first = 0; first < frame_count_; first += step) {
      const int64_t count = std::min(step, frame_count_ - first);
      coding("encode, decode", [&] {
        blocks_.push_back(coder_->encode(frames_.rows(first, count), latents_.rows(first, count)));
      });
      coded.bytes += blocks_.back().bytes() + int64_t(blocks_.back().exact.size());
    }
    coded.bits_per_point = 8 * double(coded.bytes) / double(frames_.elements());
    r_.coded = coded;
  }
  /// The held-out frames of the blocks into `to`, and what they differ by at most.
  void decode_blocks(const Device& device, const Buffer& to) {
    const BoxGrid& grid = o_.run.model.grid;
    const int64_t step = block_frames(grid);
    for (int64_t first = train_ / step * step; first < frame_count_; first += step) {
      const int64_t count = std::min(step, frame_count_ - first),
                    skipped = std::max<int64_t>(train_ - first, 0), wanted = count - skipped;
      const Buffer latent = device.allocate<f32>({count, r_.latent_size}),
                   fields = device.allocate<f32>({count, grid.ny, grid.nx});
      coding("decode", [&] { coder_->decode(blocks_.at(size_t(first / step)), count, latent, fields); });
      const Buffer got = fields.rows(skipped, wanted), from = to.rows(first + skipped - train_, wanted);
      device.copy(got, from);
      primitives::axpy(device, -1, frames_.rows(first + skipped, wanted), got);
      ledger_.copying("largest errors", false, "the bound", [&] {
        r_.coded->max_error =
            std::max(r_.coded->max_error, largest_size(device, got.reshape({got.elements()})));
      });
    }
  }
  static double largest_size(const Device& device, const Buffer& values) {
    return std::max(double(primitives::max<float>(device, values)),
                    -double(primitives::min<float>(device, values)));
  }
  template <class F>
  void coding(const char* stages, F work) {
    ledger_.holding("codec at work", stages, [&] {
      ledger_.copying("coded numbers and their tables", true, "coded by the host", [&] {
        ledger_.copying("coded numbers and what they are made of", false, "coded by the host", work);
      });
    });
  }

  void learn_operator(const Device& device) {
    ledger_.copying("matrices of frames by frames", true, "their factors", [&] {
      ledger_.copying("products of frames", false, "their factors",
                      [&] { learnt_ = learn(device, latents_, o_.surrogate); });
    });
    ledger_.held("singular vectors", "", learnt_.basis.bytes() + learnt_.climatology.bytes(),
                 "learn, rollout");
  }

  void roll_out(const Device& device) {
    auto rollout =
        ledger_.made("operator", "rollout", [&] { return std::make_unique<Rollout>(device, learnt_); });
    ledger_.copying("sums over latents", false, "their scores", [&] {
      r_.latents = score(*rollout, learnt_.model, latents_,
                         converted(device, learnt_.climatology, latents_.storage()), o_.rollout);
    });
    learnt_.basis = {};
    ledger_.held("predicted latents", "",
                 r_.latents.predicted_in_sample.bytes() + r_.latents.predicted_held_out.bytes(),
                 "rollout, decode");
  }

  void decoded(const Buffer& latents, const Buffer& to, int64_t number) {
    ledger_.made("codec at work", "decode", [&] { codec_->decode(latents, to, o_.decoder, number); });
  }
  FieldScore compared(const Buffer& truth, const Buffer& other) {
    const int64_t was = comparer_->bytes_read;
    FieldScore score = comparer_->compare(truth, other);
    copied("sums over modes", false, comparer_->bytes_read - was, "errors of fields");
    return score;
  }
  /// The codec by itself, and what costs nothing, over the held-out frames.
  void decode_truth(const Device& device) {
    const int64_t held_out = frame_count_ - train_;
    comparer_ = ledger_.made("comparison of fields", "decode",
                             [&] { return std::make_unique<FieldComparer>(device, o_.run.model.grid); });
    const Buffer truth = frames_.rows(train_, held_out);
    decoded_ = allocated(device, "decoded fields",
                         fields_shape(std::max(held_out, train_ - o_.surrogate.delays)), "decode to video");
    if (o_.max_error)
      decode_blocks(device, decoded_.rows(0, held_out));
    else
      decoded(latents_.rows(train_, held_out), decoded_.rows(0, held_out), train_);
    const Buffer past = frames_.rows(0, train_);
    comparer_->set_past(past, mean_frame(device, past));
    const int64_t was = comparer_->bytes_read;
    r_.fields.codec = comparer_->compare(truth, decoded_.rows(0, held_out), r_.fields);
    r_.fields.turnover_time = comparer_->turnover_time();
    copied("sums over modes", false, comparer_->bytes_read - was, "errors of fields");
  }
  /// Leaves the fields of the rollout through the held-out frames.
  void decode_rollouts(const Device&) {
    const int64_t held_out = frame_count_ - train_, delays = o_.surrogate.delays;
    const Buffer out = decoded_.rows(0, held_out), early = decoded_.rows(0, train_ - delays);
    decoded(r_.latents.predicted_in_sample, early, delays);
    r_.fields.in_sample = compared(frames_.rows(delays, train_ - delays), early);
    decoded(r_.latents.predicted_held_out, out, train_);
    r_.fields.surrogate = compared(frames_.rows(train_, held_out), out);
    r_.fields.horizon = field_horizon(r_.fields);
  }

  Array fetched(const Device& device, const Buffer& fields, int64_t at) {
    copied("a field", false, fields.bytes() / fields.shape()[0], "a picture");
    return device.download(fields.rows(at, 1));
  }

  /// Draws on a thread of its own.
  void draw(const Device& device, const char* file, const Buffer& fields, int64_t at) {
    const Array field = fetched(device, fields, at);
    if (range_ == 0) range_ = color_range(field);
    const fs::path to = o_.run.folder / file;
    const double time = double(o_.run.steps) * o_.run.stepping.dt;
    r_.files.push_back(to);
    drawn_.push_back(std::async(std::launch::async, [field, to, time, range = range_] {
      io::write_png(to, picture_of(field, time, range));
    }));
  }
  void plot_truth(const Device& device) {
    range_ = 0;
    r_.files.clear();
    drawn_.clear();
    draw(device, "omega_simulated.png", frames_, frame_count_ - 1);
  }
  void plot_rollouts(const Device& device) {
    draw(device, "omega_surrogate.png", decoded_, frame_count_ - train_ - 1);
    r_.files.push_back(draw_errors(o_.run.folder, r_.fields, double(o_.stride) * o_.run.stepping.dt));
    for (std::future<void>& picture : drawn_) picture.get();
  }
  void film_frames(const Device& device) {
    const int64_t held = frame_count_ - train_;
    FilmWriter writer(o_.run.video, held);
    for (int64_t k = 0; k < held; ++k)
      writer.add(fetched(device, decoded_, k), double((train_ + k) * o_.stride) * o_.run.stepping.dt);
    writer.commit();
    filmed_ = true;
  }

  void finish() {
    if (filmed_) r_.files.push_back(o_.run.video);
    ledger_.close(r_);
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
    r_.stages = stages_since(before_, context_.stages());
  }

  Context& context_;
  PipelineOptions o_;
  Array initial_, host_frames_;
  int64_t frame_count_ = 0, train_ = 0;
  bool fell_back_ = false, filmed_ = false;
  Device on_;
  Buffer frames_, latents_, decoded_;
  std::unique_ptr<Codec> codec_;
  std::unique_ptr<FieldComparer> comparer_;
  std::unique_ptr<ResidualCoder> coder_;
  std::vector<ResidualCoder::Block> blocks_;  // of frames, on the host
  double range_ = 0;                          // of colours
  std::vector<std::future<void>> drawn_;      // pictures
  LearntOnDevice learnt_;
  std::vector<StageRecord> before_;
  // For stages at once.
  Stream side_;
  std::unique_ptr<Relay> relay_;
  int64_t batch_ = 0;  // frames that are passed on together
  std::array<bool, std::size(kStepOf)> done_{};
  std::exception_ptr failure_;  // of a device, thrown again as its stage begins again
  Step failed_at_ = Step::simulate;
  Mutex failing_;
  Ledger ledger_{kStepNames};
  PipelineResult r_;
};

}  // namespace

void check_pipeline(Context& context, const PipelineOptions& options) { Pipeline(context, options); }

PipelineResult run_pipeline(Context& context, const PipelineOptions& options) {
  if (options.run.folder.empty())
    throw schema_of<PipelineOptions>().error({OptionError::Kind::missing, "", "{out} is missing", "", ""});
  if (!options.run.video.empty())
    if (const std::string reason = io::video_unavailable_reason(); !reason.empty())
      throw UnsupportedError(reason, "films", "a build with films, or pictures");
  Pipeline pipeline(context, options);
  make_output_folder(options.run.folder);
  return pipeline.run();
}

}  // namespace lockstep::flow
