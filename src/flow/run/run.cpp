#include "lockstep/flow/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "core/reports/log.hpp"
#include "flow/run/checkpoint.hpp"
#include "flow/run/members.hpp"
#include "flow/run/pictures.hpp"
#include "flow/run/start.hpp"
#include "io/pictures/video.hpp"
#include "lockstep/error.hpp"

namespace lockstep::flow {

namespace {

constexpr int64_t kSteps = 500;  // of one stage; a fallback goes back to its start

[[noreturn]] void refuse_run(const char* option, const std::string& what, const std::string& expected) {
  throw schema_of<RunOptions>().error({OptionError::Kind::invalid, option, what, expected, ""});
}

class Runner {
 public:
  Runner(Context& context, const RunOptions& options, const parallel::Group& group)
      : context_(context),
        options_(options),
        members_(group, options.members),
        initial_(load_initial(options_, members_.own())) {
    options_.model.forcing.seed = options_.forcing_seed.value_or(options_.seed);
    plan_steps();
    check(options_.model, options_.stepping);
    // Fields are stored next to the checkpoint that needs them, so that a later run may write elsewhere.
    std::filesystem::path fields = options_.folder / "fields";
    if (!options_.checkpoint.empty()) fields = options_.checkpoint.string() + ".fields";
    series_.emplace(options_.folder, fields, options_.model.grid, options_.precision, options_.members);
    identity_ = identity_of(options_, initial_);
    group.expect_same("options and initial fields", identity_.to_json() + fields.string());
    if (initial_.rank() == 3 && !named_initial(options_.initial)) initial_ = members_.own(initial_);
  }

  RunResult run() {
    begin();
    const int64_t first = done_;
    while (!finished()) {
      advance(std::min(interval_ - done_ % interval_, total_ - done_));
      save();
    }
    result_.step_seconds = step_seconds_;
    if (step_seconds_ > 0) result_.steps_per_second = double(done_ - first) / step_seconds_;
    if (!members_.leads()) return {};
    finish();
    return result_;
  }

 private:
  bool adaptive() const { return options_.stepping.cfl > 0; }

  void plan_steps() {
    Stepping& s = options_.stepping;
    total_ = options_.steps;
    if (options_.time > 0 && adaptive()) {
      total_ = std::numeric_limits<int64_t>::max();
    } else if (options_.time > 0 && s.dt > 0) {
      const double count = std::ceil(options_.time / s.dt - 1e-9);
      if (!(count <= INT32_MAX))
        refuse_run("time", fmt::format("{} steps", count), fmt::format("at most {}", INT32_MAX));
      total_ = std::max<int64_t>(1, int64_t(count));
      s.dt = options_.time / double(total_);
    }
    interval_ = options_.save_every > 0 ? options_.save_every : total_;
  }

  bool finished() const {
    if (!adaptive() || options_.time == 0) return done_ >= total_;
    for (const double t : times_)
      if (options_.time - t > 1.5e-6 * options_.stepping.dt + 1e-6 * options_.time) return false;
    return true;
  }

  /// The stage on the device, or on the CPU once a stage fell back to it.
  template <class F>
  void stage(const char* name, F work) {
    const auto with_solver = [&](const Device& device) {
      if (!solver_ || !device_.same_as(device)) {
        solver_.reset();
        Model model = options_.model;
        model.forcing.seed += static_cast<uint64_t>(members_.first());  // that of the rank's first member
        solver_ = std::make_unique<Solver>(device, model, options_.stepping, options_.precision,
                                           members_.count(), members_.of_member());
        device_ = device;
        if (!state_.empty()) solver_->set_state(state_);
        record_history();
      }
      work(*solver_);
    };
    if (members_.divided())
      context_.run_stage(name,
                         [&](const Device& device) { run_divided(name, [&] { with_solver(device); }); });
    else if (context_.fallbacks().empty())
      context_.run_stage(name, with_solver);
    else
      context_.run_stage_on_cpu(name, with_solver);
  }

  /// A rank that would do a stage of divided members again has lost the others.
  template <class F>
  static void run_divided(const char* name, F work) {
    try {
      work();
    } catch (const InputError&) { throw; } catch (const Error& e) {
      throw parallel::GroupError(fmt::format("a device of a divided flow failed: {}", e.what()), name,
                                 "working devices; a run can resume from a checkpoint");
    }
  }

  /// A stage that begins with the state of the checkpoint, whose faults are those of its file.
  template <class F>
  void resume(const char* name, F work) {
    try {
      stage(name, work);
    } catch (const parallel::GroupError&) { throw; } catch (const InputError& e) {
      throw InputError(e.problem(), options_.checkpoint.string(), e.expected()).with_hint(e.hint());
    }
  }

  void record_history() {
    if (options_.history_every > 0)
      solver_->record_moments(options_.history_every, done_ % options_.history_every);
  }

  void begin() {
    if (!options_.checkpoint.empty())
      if (auto state = read_checkpoint(options_.checkpoint, identity_, options_, *series_)) {
        state_ = std::move(*state);
        for (auto& [name, array] : state_) array = members_.own(array);
        resume("flow.initial", [&](Solver& solver) {
          if (adaptive() && options_.time > 0) solver.set_end(options_.time);
          note_clock(solver);
          state_ = solver.state();
        });
        share_clock();
        record_history();
        result_.resumed_at = done_;
        if (done_ > total_)
          throw InputError(fmt::format("a checkpoint after {} steps", done_), options_.checkpoint.string(),
                           fmt::format("at most the {} steps of this run", total_));
        for (int64_t k = 0; members_.leads() && options_.pictures && k < series_->size(); ++k)
          draw(series_->field(k), k, series_->moment(k).time.front());
        return;
      }
    std::vector<double> courant;
    stage("flow.initial", [&](Solver& solver) {
      solver.set_vorticity(initial_);
      if (adaptive() && options_.time > 0) solver.set_end(options_.time);
      courant = solver.courant();
      note_clock(solver);
      state_ = solver.state();
    });
    share_clock();
    courant = members_.all(courant);
    for (const double of_member : courant)
      if (auto error = start_error(options_.model, options_.stepping, of_member)) {
        leave_to_lead();
        throw schema_of<RunOptions>().error(std::move(*error));
      }
    save();
  }

  /// Rank 0 reports a finding that every rank has.
  void leave_to_lead() const {
    if (!members_.leads())
      throw parallel::GroupError("the run was rejected by rank 0", "flow run", "what rank 0 reports")
          .on_every_rank();
  }

  /// In a stage, of the rank's members.
  void note_clock(const Solver& solver) {
    times_ = solver.times();
    steps_ = solver.steps();
    result_.dt_min = solver.smallest_dt();
  }
  /// After the stage, of all members.
  void share_clock() {
    times_ = members_.all(times_);
    steps_ = members_.all(steps_);
    done_ = *std::max_element(steps_.begin(), steps_.end());
    result_.dt_min = std::ranges::min(members_.all(std::vector{result_.dt_min}));
  }

  /// Of all members, with their numbers among all.
  std::vector<BlowUp> all_blown(std::vector<BlowUp> blown) const {
    for (BlowUp& b : blown) b.member += members_.first();
    return members_.all(blown);
  }

  void advance(int64_t steps) {
    for (int64_t left = steps; left > 0 && !finished();) {
      const int64_t now = std::min(left, watches() ? watched_ : kSteps), before = done_;
      double seconds = 0;
      std::vector<BlowUp> blown;
      Array sound;
      std::vector<std::vector<Moment>> history;
      std::vector<Moment> watched;
      stage("flow.steps", [&](Solver& solver) {
        const auto start = std::chrono::steady_clock::now();
        solver.advance(now);
        blown = solver.blown_up();
        seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        history = solver.moments();
        if (watches()) watched = solver.moment();
        const bool of_all =
            members_.divided() || members_.group().size() == 1;  // others do not know of it yet
        sound = blown.empty() && of_all ? Array() : solver.last_sound_vorticity();
        note_clock(solver);
        state_ = solver.state();
      });
      share_clock();
      blown = all_blown(std::move(blown));
      if (!blown.empty()) refuse_blow_up(blown.front(), members_.on_lead(sound));
      left -= now;
      step_seconds_ += seconds;
      for (std::vector<Moment>& row : history) row = members_.all(row);
      if (!members_.leads()) continue;
      series_->add_history(history);
      report_progress();
      if (watches()) {
        options_.on_watch(watched.front(), done_, seconds > 0 ? double(done_ - before) / seconds : 0);
        if (seconds < 0.25) watched_ = std::min(2 * watched_, kSteps);
        if (seconds > 1) watched_ = std::max<int64_t>(watched_ / 2, 1);
      }
    }
  }

  /// Steps between two looks follow the clock of one process.
  bool watches() const { return options_.on_watch && members_.group().size() == 1; }

  [[noreturn]] void refuse_blow_up(const BlowUp& found, const Array& sound) {
    leave_to_lead();
    const auto file = options_.folder / "blow_up.npz";
    io::write_npz(file, {{"omega", sound}}, io::NpzCompression::stored,
                  {.title = "vorticity before the blow-up"});
    throw InputError(
        fmt::format("member {} of the flow blew up by step {}: a speed is not finite or beyond twice the "
                    "limit of stability",
                    found.member, found.step),
        "flow.steps", "a smaller dt, more viscosity or a closure")
        .with_hint(fmt::format("the last sound field is in {}", file.string()));
  }

  void report_progress() const {
    if (!options_.on_progress) return;
    const double share = adaptive() && options_.time > 0
                             ? *std::min_element(times_.begin(), times_.end()) / options_.time
                             : double(done_) / double(total_);
    options_.on_progress(int64_t(1000 * std::min(share, 1.0)), 1000);
  }

  void save() {
    if (members_.divided() && !members_.leads()) return;  // rank 0 has all members
    Series::Moment moment;
    Array omega;
    stage("flow.diagnostics", [&](Solver& solver) {
      moment.time = times_;
      moment.budget = solver.budget();
      moment.spectra = solver.spectra();
      omega = solver.vorticity();
    });
    moment.budget = members_.all(moment.budget);
    moment.spectra = members_.all(moment.spectra);
    omega = members_.on_lead(omega);
    SolverState state = state_;
    if (!options_.checkpoint.empty())
      for (auto& [name, array] : state) array = members_.on_lead(array);
    if (!members_.leads()) return;
    series_->add(moment, omega);
    report_rising_energy();
    draw(omega, series_->size() - 1, times_.front());
    if (options_.checkpoint.empty()) return;
    write_checkpoint(options_.checkpoint, identity_, state, *series_);
  }

  /// A run that continues draws the fields of the first part again: one scale, and the run that the pictures name.
  void draw(const Array& omega, int64_t number, double time) {
    if (options_.pictures) result_.files.push_back(pictures_.draw(options_.folder, omega, number, time));
  }

  /// Nothing in the equation adds energy without forcing: where it rises, closure or time step are at fault.
  void report_rising_energy() {
    constexpr double kRounding = 1e-3;
    if (options_.model.forcing.kind != ForcingKind::none || !result_.warnings.empty()) return;
    const Series::Moment &first = series_->moment(0), &now = series_->last();
    for (size_t m = 0; m < now.budget.size(); ++m) {
      const double before = first.budget[m].energy, after = now.budget[m].energy;
      if (after <= (1 + kRounding) * before) continue;
      result_.warnings.push_back(
          fmt::format("the energy of member {} rose from {:.4g} to {:.4g} by time {:.4g} although nothing "
                      "forces the flow: "
                      "use a smaller step, more viscosity or another closure",
                      m, before, after, now.time[m]));
      logging::line("flow run: " + result_.warnings.back());  // also under --quiet
      return;
    }
  }

  void finish() {
    pictures_.finish();
    result_.grid = options_.model.grid;
    result_.precision = options_.precision;
    result_.budget = series_->last().budget;
    result_.time = times_;
    result_.steps = steps_;
    result_.frames = series_->size();
    result_.files.insert(result_.files.begin(), series_->write_result(options_.format));
    if (options_.pictures)
      result_.files.push_back(
          draw_spectra(options_.folder, result_.grid, series_->last().spectra.front(), times_.front()));
    if (!options_.video.empty()) result_.files.push_back(film(*series_, options_.video));
    if (options_.checkpoint.empty()) series_->remove_fields();
  }

  Context& context_;
  RunOptions options_;
  const Members members_;
  Array initial_;
  record::Identity identity_;
  std::optional<Series> series_;
  std::unique_ptr<Solver> solver_;  // on device_, at state_ between stages
  Device device_;
  SolverState state_;
  int64_t total_ = 0, interval_ = 0, done_ = 0;
  int64_t watched_ = 10;  // steps between two looks
  std::vector<double> times_;
  std::vector<int64_t> steps_;
  double step_seconds_ = 0;
  PictureWriter pictures_;
  RunResult result_;
};

}  // namespace

RunResult run(Context& context, const RunOptions& options) {
  return run(context, options, parallel::Group());
}

RunResult run(Context& context, const RunOptions& options, const parallel::Group& group) {
  const OptionList& all = schema_of<RunOptions>();
  if (options.folder.empty()) throw all.error({OptionError::Kind::missing, "", "{out} is missing", "", ""});
  all.check(&options);
  if (!options.video.empty()) io::check_video_name(options.video);
  if (!options.video.empty())
    if (const std::string reason = io::video_unavailable_reason(); !reason.empty())
      throw UnsupportedError(reason, "films", "a build with films, or pictures");
  return Runner(context, options, group).run();
}

}  // namespace lockstep::flow
