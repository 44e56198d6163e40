#include "flow/les/solver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <complex>

#include "flow/etd.hpp"
#include "flow/random.hpp"
#include "lockstep/error.hpp"
#include "lockstep/kernel/dynamic.hpp"

namespace lockstep::flow {

namespace {

/// Numbers as the solver's type.
Array as_storage(std::vector<double> values, Sizes shape, Storage storage) {
  return Array::of(std::move(values), std::move(shape)).to(storage);
}

std::vector<double> as_doubles(const Array& array) {
  const Array numbers = array.to(Storage::f64).packed();
  const auto span = numbers.as<double>();
  return {span.begin(), span.end()};
}

const Kernel& narrow_kernel() {
  static const Kernel narrow = kernel("flow.narrow", [](At<3> at, Parameters& p) {
    const auto from = p.read<f64, 3>("from");
    const auto to = p.write<f32, 3>("to");
    to(Val<i32>(at.z), Val<i32>(at.y), Val<i32>(at.x)) = cast<f32>(from(at.z, at.y, at.x));
  });
  return narrow;
}

KernelForm solver_form(const Device& device, const Model& model, const Stepping& stepping, Storage storage) {
  KernelForm form = form_of(model, stepping.cfl > 0);
  form.turned = is_turned(modes_of(model), form, storage, device.info(), stepping.variant);
  return form;
}

Fft grid_plan(const Device& device, const Solver::State& s, FftKind kind) {
  FftOptions options;
  options.kind = kind;
  options.type = s.storage;
  options.lengths = {s.model.grid.ny, s.model.grid.nx};
  options.batch = s.members;
  options.kept = {s.modes.kept_y, s.modes.kept_x};
  return Fft(device, options);
}

}  // namespace

Solver::State::State(const Device& d, const Model& m, const Stepping& st, Storage type, int64_t count,
                     const parallel::Group& group)
    : device(d),
      model(m),
      stepping(st),
      modes(modes_of(m)),
      storage(type),
      members(count),
      adaptive(st.cfl > 0),
      evaluation(d, m, solver_form(d, m, st, type), type, count, st.variant, group) {
  w = spectrum_buffer();
  y = spectrum_buffer();
  good = spectrum_buffer();
  const bool etd = st.integrator == Integrator::etdrk4, history = etd || st.integrator == Integrator::ab3;
  one = spectrum_buffer();
  two = history ? spectrum_buffer() : device.allocate(storage, {1, 1, 1, 2});
  if (etd) sum = spectrum_buffer();
  for (const Buffer& b : {w, y, good, one, two}) device.clear(b);
  clock = device.allocate(storage, {members, kClockColumns});
  status = device.allocate(Storage::i32, {members, kStatusColumns});
  std::vector<uint32_t> seeds;
  for (int64_t k = 0; k < members; ++k) seeds.push_back(random_key(m.forcing.seed + uint64_t(k)));
  keys = device.upload(seeds);
  to_grid = grid_plan(device, *this, FftKind::c2r);
  from_grid = grid_plan(device, *this, FftKind::r2c);
  grid_field = device.allocate(storage, {members, m.grid.ny, m.grid.nx});
  if (etd) make_weights();
  make_launches();
  begin();
}

Buffer Solver::State::spectrum_buffer() const {
  const bool turned = evaluation.form().turned;
  const int64_t rows = modes.rows(), columns = modes.columns();
  return device.allocate(storage, {members, turned ? columns : rows, turned ? rows : columns, 2});
}

void Solver::State::turn(const Buffer& from, const Buffer& to) const {
  const Kernel kernel = with_precision(storage, []<class T>(T) {
    static const Kernel traced = LesKernels<T>::turn();
    return traced;
  });
  device.launch(kernel, {members, to.shape()[1], to.shape()[2]}, Arguments().set("from", from).set("to", to));
}
Buffer Solver::State::rows_first(const Buffer& spectrum) const {
  if (!evaluation.form().turned) return spectrum;
  turn(spectrum, rows_first());
  return rows_first();
}

Launch Solver::State::bound(const Kernel& kernel, const Shape& domain, const Arguments& arguments) const {
  return {kernel, domain, arguments.bind_known(kernel)};
}

void Solver::State::make_weights() {
  std::vector<double> table;
  for (int64_t row = 0; row < modes.rows(); ++row)
    for (int64_t ix = 0; ix < modes.columns(); ++ix) {
      const double kx = 2 * kPi / model.grid.lx * double(ix),
                   ky = 2 * kPi / model.grid.ly * double(modes.iy(row));
      const double k2 = kx * kx + ky * ky;
      std::complex<double> linear;
      if (k2 > 0)
        linear = {
            -(model.viscosity * k2 + model.drag + model.hyper_viscosity * std::pow(k2, model.hyper_power) +
              model.hypo_viscosity * std::pow(k2, -model.hypo_power)),
            model.beta * kx / k2};
      const EtdWeights e = etd_weights(linear * stepping.dt);
      for (const auto& part : {e.whole, e.half, e.stage, e.first, e.middle, e.last})
        table.insert(table.end(), {part.real(), part.imag()});
    }
  weights = device.upload(as_storage(std::move(table), {modes.rows(), modes.columns(), 12}, storage));
}

void Solver::State::make_launches() {
  Arguments a = evaluation.numbers();
  a.set("w", w).set("y", y).set("one", one).set("two", two).set("good", good);
  if (sum) a.set("sum", sum).set("weights", weights);
  a.set("clock", clock).set("status", status).set("keys", keys).set("speeds", evaluation.speeds());
  a.set("largest_dt", stepping.dt).set("cfl", stepping.cfl);
  a.set("blow_up", 2 * cfl_limit(model, stepping.integrator));
  a.set("eddy_limit", eddy_limit(model, stepping.integrator));
  Arguments one_step = a, block_steps = a;
  one_step.set("by", 1);
  block_steps.set("by", kBlock);
  for (int s = 0; s < stages_of(stepping.integrator); ++s)
    advances.push_back(evaluation.advance({stepping.integrator, s}, a));
  with_precision(storage, [&]<class T>(T) {
    look = bound(ClockKernels<T>::look(adaptive, is_local(evaluation.form().terms)), {members}, a);
    const Kernel tick = ClockKernels<T>::tick();
    tick_one = bound(tick, {members}, one_step);
    tick_block = bound(tick, {members}, block_steps);
    keep = bound(ClockKernels<T>::keep(), {members, w.shape()[1], w.shape()[2]}, a);
  });
}

void Solver::State::step(bool looking) const {
  for (size_t s = 0; s < advances.size(); ++s) {
    const bool measuring = s == 0 && (looking || adaptive);
    evaluation.products(s == 0 ? w : y, measuring);
    if (measuring) look.run(device);
    if (s == 0 && looking) keep.run(device);
    advances[s].run(device);
  }
}

void Solver::State::run_block() const {
  // A step's number matters to random forcing and to the first steps of ab3; else one tick does.
  const bool counts = adaptive || evaluation.form().stochastic || stepping.integrator == Integrator::ab3;
  for (int64_t s = 0; s < kBlock; ++s) {
    step(s == 0);
    if (counts) tick_one.run(device);
  }
  if (!counts) tick_block.run(device);
}

void Solver::State::restart_fields() const { evaluation.derive(w).run(device); }

Array Solver::State::field_of(const Buffer& spectrum) const {
  to_grid.execute(rows_first(spectrum), grid_field);
  return device.download(grid_field);
}

std::vector<double> Solver::State::clock_column(int column) const {
  const std::vector<double> all = as_doubles(device.download(clock));
  std::vector<double> values;
  for (int64_t m = 0; m < members; ++m) values.push_back(all[size_t(m * kClockColumns + column)]);
  return values;
}

Solver::Solver(const Device& device, const Model& model, const Stepping& stepping, Storage precision,
               int64_t members)
    : Solver(device, model, stepping, precision, members, parallel::Group()) {}

Solver::Solver(const Device& device, const Model& model, const Stepping& stepping, Storage precision,
               int64_t members, const parallel::Group& group) {
  check(model, stepping);
  if (precision != Storage::f32 && precision != Storage::f64)
    throw InputError(fmt::format("precision {}", name(precision)), "flow solver", "f32 or f64");
  if (members < 1) throw InputError(fmt::format("{} members", members), "flow solver", "1 or more");
  if (precision == Storage::f64 && !device.info().limits.f64)
    throw UnsupportedError(fmt::format("f64 on {}", device.info().name), "flow solver", "f32");
  state_ = std::make_shared<State>(device, model, stepping, precision, members, group);
}

void Solver::set_vorticity(const Array& given) {
  State& s = *state_;
  const BoxGrid& grid = s.model.grid;
  const bool shared = given.rank() == 2;
  const Sizes expected = shared ? Sizes{grid.ny, grid.nx} : Sizes{s.members, grid.ny, grid.nx};
  if (given.shape() != expected)
    throw InputError(fmt::format("vorticity of shape {}", to_string(given.shape())), "flow solver",
                     to_string(expected));
  const Array packed = given.to(Storage::f64).packed();
  if (const auto at = first_not_finite(packed))
    throw InputError(fmt::format("vorticity is not finite at {}", index_text(packed.shape(), *at)),
                     "flow solver", "finite numbers");
  const Array one_field = packed.to(s.storage);
  for (int64_t m = 0; m < s.members; ++m) {
    const Array member = shared ? one_field : one_field[m].packed();
    s.device.write(s.grid_field.rows(m, 1), member.data(), member.bytes());
  }
  const Buffer raw = s.device.allocate(s.storage, s.rows_first().shape());
  s.from_grid.execute(s.grid_field, raw);
  Arguments a;
  a.set("unit_x", 0.0).set("unit_y", 0.0).set("kept_y", s.modes.kept_y);
  a.set("scale", 1 / double(grid.points())).set("from", raw).set("w", s.w);
  const Kernel take = with_precision(
      s.storage, [&]<class T>(T) { return LesKernels<T>::take_field(s.evaluation.form().turned); });
  s.device.launch_with(take, s.evaluation.mode_domain(), a.bind_known(take), {});
  s.begin();
}

void Solver::State::begin() const {
  std::vector<double> times;
  std::vector<int32_t> steps;
  for (int64_t m = 0; m < members; ++m) {
    times.insert(times.end(), {stepping.dt, 0, 0, 0, storage == Storage::f64 ? 1e300 : 1e30, stepping.dt});
    steps.insert(steps.end(), {0, -1});
  }
  const Array clocks = as_storage(std::move(times), {members, kClockColumns}, storage);
  device.write(clock, clocks.data(), clocks.bytes());
  device.write(status, steps.data(), status.bytes());
  device.copy(w, good);
  restart_fields();
}

void Solver::State::advance(int64_t steps) {
  for (; steps >= kBlock; steps -= kBlock) {
    if (evaluation.slabs()) {
      run_block();  // exchanges are no part of a recorded graph
      continue;
    }
    if (!block) block = device.record([&] { run_block(); });
    device.replay(*block);
  }
  for (int64_t k = 0; k < steps; ++k) {
    step(k == 0);
    tick_one.run(device);
  }
  gather();
}

void Solver::State::gather() const {
  if (!evaluation.slabs()) return;
  const bool turned = evaluation.form().turned;
  for (const Buffer& spectrum : {w, good}) evaluation.slabs()->gather_columns(spectrum, turned);
  if (stepping.integrator != Integrator::ab3) return;
  for (const Buffer& spectrum : {one, two}) evaluation.slabs()->gather_columns(spectrum, turned);
}

void Solver::State::run_right_hand_side() const {
  right_hand_side.run(device);
  if (evaluation.slabs()) evaluation.slabs()->gather_columns(derivative, evaluation.form().turned);
}

void Solver::advance(int64_t steps) {
  State& s = *state_;
  if (steps < 0) throw InputError(fmt::format("{} steps", steps), "flow solver", "0 or more");
  while (s.recorder && steps > 0) {
    Recorder& r = *s.recorder;
    const int64_t now = std::min(steps, r.every - r.since);
    s.advance(now);
    steps -= now;
    r.since = (r.since + now) % r.every;
    if (r.since == 0) s.record_moment();
  }
  s.advance(steps);
}

void Solver::set_end(double time) {
  State& s = *state_;
  if (!s.adaptive) throw InputError("a fixed dt", "flow end of time", "stepping by cfl");
  std::vector<double> clock = as_doubles(s.device.download(s.clock));
  for (int64_t m = 0; m < s.members; ++m) clock[size_t(m * kClockColumns + kClockEnd)] = time;
  const Array clocks = as_storage(std::move(clock), {s.members, kClockColumns}, s.storage);
  s.device.write(s.clock, clocks.data(), clocks.bytes());
}

Array Solver::vorticity() const { return state_->field_of(state_->w); }
void Solver::vorticity(const Buffer& out) const {
  const State& s = *state_;
  if (!out || out.storage() != Storage::f32 || Sizes(out.shape()) != Sizes(s.grid_field.shape()))
    throw InputError(fmt::format("a buffer of {} {}", name(out.storage()), to_string(Sizes(out.shape()))),
                     "flow solver", fmt::format("f32 {}", to_string(Sizes(s.grid_field.shape()))));
  if (s.storage == Storage::f32) return s.to_grid.execute(s.rows_first(s.w), out);
  s.to_grid.execute(s.rows_first(s.w), s.grid_field);
  s.device.launch(narrow_kernel(), out.shape(), Arguments().set("from", s.grid_field).set("to", out));
}
Array Solver::last_sound_vorticity() const { return state_->field_of(state_->good); }
Array Solver::spectrum() const { return state_->download(state_->w); }

std::vector<double> Solver::times() const {
  std::vector<double> high = state_->clock_column(kClockTime), low = state_->clock_column(kClockTimeLow);
  for (size_t m = 0; m < high.size(); ++m) high[m] += low[m];
  return high;
}
double Solver::smallest_dt() const {
  const std::vector<double> least = state_->clock_column(kClockLeast);
  return *std::min_element(least.begin(), least.end());
}
std::vector<int64_t> Solver::steps() const {
  const auto status = state_->device.download<int32_t>(state_->status);
  std::vector<int64_t> steps;
  for (int64_t m = 0; m < state_->members; ++m)
    steps.push_back(status[size_t(m * kStatusColumns + kStatusSteps)]);
  return steps;
}
std::vector<BlowUp> Solver::blown_up() const {
  const auto status = state_->device.download<int32_t>(state_->status);
  std::vector<BlowUp> found;
  for (int64_t m = 0; m < state_->members; ++m)
    if (const int32_t step = status[size_t(m * kStatusColumns + kStatusBlownUp)]; step >= 0)
      found.push_back({m, step});
  return found;
}
std::vector<double> Solver::courant() const {
  const State& s = *state_;
  const std::vector<double> dt = s.clock_column(kClockDt);
  s.evaluation.measure(s.w);
  const Buffer& measured = s.evaluation.speeds();
  const std::vector<double> speeds = as_doubles(s.device.download(measured));
  const int64_t chunks = measured.shape()[1], columns = measured.shape()[2];
  std::vector<double> numbers;
  for (int64_t m = 0; m < s.members; ++m) {
    double most[2] = {0, 0};
    for (int64_t c = 0; c < chunks; ++c)
      for (int k = 0; k < 2; ++k) most[k] = std::max(most[k], speeds[size_t((m * chunks + c) * columns + k)]);
    numbers.push_back((most[0] / s.model.grid.dx() + most[1] / s.model.grid.dy()) * dt[size_t(m)]);
  }
  return numbers;
}

void Solver::State::make_derivative() {
  if (derivative) return;
  derivative = spectrum_buffer();
  Arguments a = evaluation.numbers();
  right_hand_side = evaluation.right_hand_side(a.set("w", w).set("out", derivative));
}

void Solver::evaluate() {
  State& s = *state_;
  s.make_derivative();
  s.evaluation.products(s.w);
  s.run_right_hand_side();
}

Array Solver::right_hand_side() {
  evaluate();
  return state_->download(state_->derivative);
}

std::vector<std::pair<std::string, Array>> Solver::state() const {
  const State& s = *state_;
  std::vector<std::pair<std::string, Array>> all{
      {"w", s.download(s.w)}, {"clock", s.device.download(s.clock)}, {"status", s.device.download(s.status)}};
  if (s.stepping.integrator == Integrator::ab3) {
    all.emplace_back("one", s.download(s.one));
    all.emplace_back("two", s.download(s.two));
  }
  s.restart_fields();  // as set_state does
  return all;
}

void Solver::set_state(const std::vector<std::pair<std::string, Array>>& given) {
  const State& s = *state_;
  const auto write = [&](const std::string& name, const Buffer& to) {
    for (const auto& [key, array] : given) {
      if (key != name) continue;
      if (array.storage() != to.storage() || array.device_shape() != to.shape())
        throw InputError(
            fmt::format("{} of {} {}", name, lockstep::name(array.storage()), to_string(array.shape())),
            "flow checkpoint",
            fmt::format("{} {}", lockstep::name(to.storage()), to_string(Sizes(to.shape()))));
      const Array packed = array.packed();
      s.device.write(to, packed.data(), packed.bytes());
      return;
    }
    throw InputError(fmt::format("no array {}", name), "flow checkpoint", "a checkpoint of this solver");
  };
  const auto restore = [&](const std::string& name, const Buffer& to) {
    const bool turned = s.evaluation.form().turned;
    write(name, turned ? s.rows_first() : to);
    if (turned) s.turn(s.rows_first(), to);
  };
  write("clock", s.clock);
  write("status", s.status);
  restore("w", s.w);
  if (s.stepping.integrator == Integrator::ab3) {
    restore("one", s.one);
    restore("two", s.two);
  }
  s.device.copy(s.w, s.good);
  s.restart_fields();
}

std::vector<Kernel> Solver::kernels() const {
  const State& s = *state_;
  std::vector<Kernel> all = s.evaluation.kernels();
  for (const Launch& l : s.advances) all.push_back(l.kernel);
  for (const Launch* l : {&s.look, &s.tick_one, &s.keep}) all.push_back(l->kernel);
  return all;
}

}  // namespace lockstep::flow
