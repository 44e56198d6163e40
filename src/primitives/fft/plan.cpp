// Plans: the lines of each axis, the form that the device runs best, tables, scratch memory, launches.
#include "primitives/fft/plan.hpp"

#include <fmt/format.h>

#include <cmath>

#include "device/variants/memory.hpp"
#include "lockstep/fft.hpp"
#include "primitives/fft/bluestein.hpp"
#include "primitives/fft/lines.hpp"
#include "primitives/flat.hpp"

namespace lockstep {

namespace primitives::fft {

const variants::Computation& fft_computation() {
  static const variants::Computation computation(
      {.name = "primitives.fft", .variants = {"passes", "blocks", "lanes"}, .axes = {"points"}});
  return computation;
}

namespace {

template <class Applies>
Choice form_of(const DeviceInfo& device, const FftOptions& options, const Applies& applies) {
  double points = double(options.batch);
  for (int a = 0; a < options.lengths.rank(); ++a) points *= double(options.lengths[a]);
  const variants::Axis axis{"points", points};
  const variants::Choice choice = variants::choose(fft_computation(), device, Numerics::exact,
                                                   {.axes = {&axis, 1}}, options.variant, applies);
  return {Form(choice.variant), device.limits};
}

std::string form_refusal(const DeviceInfo& device, int form) {
  const bool fits = Form(form) != Form::lanes || capabilities_of(device).host_memory;
  return fits ? "" : "a lane of a GPU does not hold a line";
}

}  // namespace

Choice choice_for(const DeviceInfo& device, const FftOptions& options) {
  return form_of(device, options, [&](int form) { return form_refusal(device, form); });
}

Choice choice_for(const Device& device, const FftOptions& options) {
  const DeviceInfo& info = device.info();
  return form_of(info, options,
                 variants::with_memory(
                     fft_computation(), device, [&](int form) { return form_refusal(info, form); },
                     [&](int form) { return plan_bytes(options, {Form(form), info.limits}); }));
}

}  // namespace primitives::fft

namespace fft = primitives::fft;

namespace {

constexpr int64_t kMostPoints = int64_t(1) << 28;

constexpr const char* kWhere = "Fft";

void check(const FftOptions& o) {
  const auto refuse = [](const std::string& what, const std::string& expected) {
    throw InputError(what, kWhere, expected);
  };
  const int axes = o.lengths.rank();
  if (o.type != Storage::f32 && o.type != Storage::f64)
    refuse(fmt::format("elements of {}", name(o.type)), "f32 or f64");
  if (axes != 1 && axes != 2) refuse(fmt::format("{} lengths", axes), "one or two");
  for (int a = 0; a < axes; ++a)
    if (o.lengths[a] < 1 || o.lengths[a] > kMostPoints)
      refuse(fmt::format("length {}", o.lengths[a]), "1 to 2^28");
  if (o.batch < 1 || o.batch > INT32_MAX) refuse(fmt::format("batch {}", o.batch), "1 to 2^31 - 1");
  if (o.kept.rank() == 0) return;
  if (o.kept.rank() != axes)
    refuse(fmt::format("{} numbers of kept coefficients", o.kept.rank()), "one for each axis, or none");
  for (int a = 0; a < axes; ++a) {
    const bool half = a == axes - 1 && o.kind != FftKind::c2c;
    const int64_t most = half ? o.lengths[a] / 2 : (o.lengths[a] - 1) / 2;
    if (o.kept[a] < 0 || o.kept[a] > most)
      refuse(fmt::format("kept {} of {} points", o.kept[a], o.lengths[a]), fmt::format("0 to {}", most));
  }
}

/// Coefficients of an axis in the spectrum.
int64_t entries(const FftOptions& o, int axis) {
  const int64_t n = o.lengths[axis];
  const bool half = axis == o.lengths.rank() - 1 && o.kind != FftKind::c2c;
  if (o.kept.rank() == 0) return half ? n / 2 + 1 : n;
  return half ? o.kept[axis] + 1 : 2 * o.kept[axis] + 1;
}

/// The transform of one axis with the arrays on both sides.
struct AxisForm {
  fft::Lines lines;
  bool direct = true;
  int64_t points = 1;  // of the complex transform
};

/// Lines along `axis`, in a transform that goes forward or back.
AxisForm axis_form(const FftOptions& o, int axis, bool inverse) {
  const int axes = o.lengths.rank();
  const bool last = axis == axes - 1, half = last && o.kind != FftKind::c2c;
  const int64_t n = o.lengths[axis], m = entries(o, axis);
  const bool pairs = half && n % 2 == 0 && fft::Stages(n / 2).direct();
  AxisForm form;
  form.points = pairs ? n / 2 : n;
  form.direct = fft::Stages(form.points).direct();
  fft::Line& line = form.lines.line;
  line.points = form.points;
  line.rows = last;
  line.swap_in = line.swap_out = inverse;
  const auto field = [&](auto real, auto real_pairs, auto complex) {
    return !half ? complex : pairs ? real_pairs : real;
  };
  if (inverse) {
    line.source = field(fft::Source::half, fft::Source::half_pairs, fft::Source::complex);
    line.sink = field(fft::Sink::real, fft::Sink::real_pairs, fft::Sink::complex);
  } else {
    line.source = field(fft::Source::real, fft::Source::real_pairs, fft::Source::complex);
    line.sink = field(fft::Sink::half, fft::Sink::half_pairs, fft::Sink::complex);
  }
  line.source_entries = inverse ? m : n;
  line.sink_entries = inverse ? n : m;
  form.lines.axis = axis;
  if (axes == 1) {
    form.lines.others = o.batch;
  } else {
    form.lines.batch = o.batch;
    // The rows are between the field and the columns, which are those of the spectrum.
    form.lines.others = axis == 0 ? entries(o, 1) : o.lengths[0];
  }
  return form;
}

/// A line through the convolution: two transforms of its length.
template <class T>
std::vector<fft::Step> bluestein_steps(const fft::Lines& lines) {
  fft::Lines there = lines, back = lines;
  const int64_t n = lines.line.points;
  there.line.points = back.line.points = there.line.sink_entries = back.line.source_entries =
      fft::bluestein_length(n);
  there.line.factor_points = back.line.factor_points = n;
  there.line.factor_in = fft::Factor::chirp;
  there.line.sink = fft::Sink::complex;
  there.line.swap_out = there.line.scaled = false;
  back.line.source = fft::Source::complex;
  back.line.swap_in = true;
  back.line.factor_in = fft::Factor::filter;
  back.line.factor_out = fft::Factor::chirp;
  std::vector<fft::Step> steps = fft::pass_steps<T>(there), second = fft::pass_steps<T>(back);
  steps.insert(steps.end(), second.begin(), second.end());
  return steps;
}

template <class T>
std::vector<fft::Step> axis_steps(const AxisForm& form, const fft::Choice& choice) {
  if (!form.direct) return bluestein_steps<T>(form.lines);
  std::vector<fft::Step> steps;
  if (choice.form == fft::Form::blocks) steps = fft::block_steps<T>(form.lines, choice.limits);
  if (choice.form == fft::Form::lanes) steps = fft::lane_steps<T>(form.lines, 64 / int(sizeof(T)));
  return steps.empty() ? fft::pass_steps<T>(form.lines) : steps;
}

template <class T>
std::vector<fft::Step> all_steps(const FftOptions& o, bool inverse, const fft::Choice& choice) {
  std::vector<fft::Step> steps;
  const int axes = o.lengths.rank();
  for (int number = 0; number < axes; ++number) {
    // Forward from the last axis, back in reverse: truncated axes are short in between.
    const int axis = inverse ? number : axes - 1 - number;
    AxisForm form = axis_form(o, axis, inverse);
    form.lines.line.scaled = inverse && o.scale_inverse && number == axes - 1;
    const auto more = axis_steps<T>(form, choice);
    steps.insert(steps.end(), more.begin(), more.end());
  }
  return steps;
}

using Chains = std::array<std::vector<fft::Step>, 2>;  // forward, inverse

Chains chains_of(const FftOptions& o, const fft::Choice& choice) {
  const auto steps = [&](bool inverse) {
    return o.type == Storage::f32 ? all_steps<f32>(o, inverse, choice) : all_steps<f64>(o, inverse, choice);
  };
  Chains chains;
  if (o.kind != FftKind::c2r) chains[0] = steps(false);
  if (o.kind != FftKind::r2c) chains[1] = steps(true);
  return chains;
}

/// Numbers of both scratch arrays: step s writes that of s modulo 2, the last one the result.
std::array<int64_t, 2> scratch_numbers(const Chains& chains) {
  std::array<int64_t, 2> numbers{};
  for (const auto& chain : chains)
    for (size_t s = 0; s + 1 < chain.size(); ++s)
      numbers[s % 2] = std::max(numbers[s % 2], 2 * chain[s].to.elements());
  return numbers;
}
constexpr int64_t kScratchRow = 1 << 20;  // of scratch arrays of more numbers than an axis has
int64_t scratch_rows(int64_t numbers) { return primitives::divide_up(numbers, kScratchRow); }

/// A table of complex numbers on the device.
template <class T>
Buffer upload_pairs(const Device& device, const std::vector<T>& parts) {
  return device.upload(std::span<const T>(parts), {int64_t(parts.size() / 2), 2});
}

/// Shape of a step's array as the kernels take it: without the batch axis where there is one line or field.
Shape kernel_shape(const Shape& shape, bool real, bool batched) {
  Shape s;
  for (int a = batched ? 0 : 1; a < shape.rank(); ++a) s.push_back(shape[a]);
  if (!real) s.push_back(2);
  return s;
}

/// A buffer of the user as the kernels take it.
Buffer viewed(const Buffer& buffer, const FftOptions& o, const Shape& shape, const char* which) {
  Shape other;  // of batch 1: with the first axis for two axes, without it for one
  const bool longer = o.lengths.rank() == 2;
  if (longer && o.batch == 1) other.push_back(1);
  for (int a = longer ? 0 : 1; a < shape.rank(); ++a) other.push_back(shape[a]);
  const auto refuse = [&](const std::string& what) {
    throw InputError(what, fmt::format("Fft::execute, {}", which),
                     fmt::format("{} {}{}", name(o.type), to_string(shape),
                                 o.batch == 1 ? fmt::format(" or {}", to_string(other)) : ""));
  };
  if (!buffer) refuse("an empty buffer");
  if (buffer.storage() != o.type || (buffer.shape() != shape && (o.batch != 1 || buffer.shape() != other)))
    refuse(fmt::format("a buffer of {} {}", name(buffer.storage()), to_string(buffer.shape())));
  if (buffer.shape() == shape) return buffer;
  if (!buffer.contiguous()) refuse(fmt::format("a window {} with gaps", to_string(buffer.shape())));
  return buffer.reshape(shape);
}

bool pairs_aligned(const Buffer& buffer) {
  bool even = buffer.offset() % 2 == 0;
  for (int a = 0; a + 1 < buffer.shape().rank(); ++a)
    even = even && (buffer.strides()[size_t(a)] % 2 == 0 || buffer.shape()[a] == 1);
  return even;
}

}  // namespace

struct Fft::State {
  Device device;
  FftOptions options;
  fft::Choice choice;
  Chains steps;
  std::array<std::vector<Kernel>, 2> kernels;  // of the steps, for aligned pairs
  std::array<Buffer, 2> table, chirp, filter;  // by axis
  std::array<Buffer, 2> scratch;

  template <class T>
  void make() {
    steps = chains_of(options, choice);
    for (int axis = 0; axis < options.lengths.rank(); ++axis) {
      const AxisForm form = axis_form(options, axis, false);
      const int64_t n = form.direct ? form.points : fft::bluestein_length(form.points);
      table[size_t(axis)] = upload_pairs(device, fft::Stages(n).table<T>());
      if (form.direct) continue;
      chirp[size_t(axis)] = upload_pairs(device, fft::bluestein_chirp<T>(form.points));
      filter[size_t(axis)] = upload_pairs(device, fft::bluestein_filter<T>(form.points));
    }
    for (size_t direction = 0; direction < 2; ++direction)
      for (const fft::Step& step : steps[direction])
        kernels[direction].push_back(step.kernel({batched(), true, true}));
    const std::array<int64_t, 2> numbers = scratch_numbers(steps);
    for (size_t b = 0; b < 2; ++b)
      if (numbers[b] > INT32_MAX)
        scratch[b] = device.allocate<T>({scratch_rows(numbers[b]), kScratchRow});
      else if (numbers[b] > 0)
        scratch[b] = device.allocate<T>({numbers[b]});
  }

  bool batched() const { return options.lengths.rank() == 2 && options.batch > 1; }
  Buffer scratch_of(size_t s, const Shape& shape) const {
    return primitives::view(scratch[s % 2], 0, kernel_shape(shape, false, batched()));
  }
};

Fft::Fft(const Device& device, const FftOptions& options) {
  check(options);
  if (options.type == Storage::f64 && !device.info().limits.f64)
    throw UnsupportedError(fmt::format("a transform of f64 on {}", device.info().name), kWhere,
                           "f32, or a device with f64");
  const auto state = std::make_shared<State>();
  state->device = device;
  state->options = options;
  state->choice = fft::choice_for(device, options);
  if (options.type == Storage::f32)
    state->make<f32>();
  else
    state->make<f64>();
  state_ = state;
}

void Fft::execute(const Buffer& in, const Buffer& out, const Stream& stream) const {
  execute(in, out, options().kind == FftKind::c2r ? FftDirection::inverse : FftDirection::forward, stream);
}

void Fft::execute(const Buffer& in, const Buffer& out, FftDirection direction, const Stream& stream) const {
  const FftOptions& o = options();
  const bool inverse = direction == FftDirection::inverse;
  const std::vector<fft::Step>& chain = state_->steps[inverse];
  if (chain.empty())
    throw InputError(inverse ? "the inverse of an r2c plan" : "the forward direction of a c2r plan",
                     "Fft::execute", inverse ? "forward" : "inverse");
  const bool batched = state_->batched();
  const Buffer first =
                   viewed(in, o, kernel_shape(chain.front().from, chain.front().real_from, batched), "in"),
               last = viewed(out, o, kernel_shape(chain.back().to, chain.back().real_to, batched), "out");
  double points = 1;
  for (int a = 0; a < o.lengths.rank(); ++a) points *= double(o.lengths[a]);
  const double scale = inverse && o.scale_inverse ? 1 / points : 1;
  for (size_t s = 0; s < chain.size(); ++s) {
    const fft::Step& step = chain[s];
    const Buffer to = s + 1 == chain.size() ? last : state_->scratch_of(s, step.to),
                 from = s == 0 ? first : state_->scratch_of(s - 1, step.from);
    const fft::Layout layout{batched, pairs_aligned(from), pairs_aligned(to)};
    const auto axis = size_t(step.axis);
    const Buffer& factors = step.factor == fft::Factor::none    ? state_->table[axis]
                            : step.factor == fft::Factor::chirp ? state_->chirp[axis]
                                                                : state_->filter[axis];
    const bool aligned = layout.pairs_in && layout.pairs_out;
    const Kernel kernel = aligned ? state_->kernels[inverse][s] : step.kernel(layout);
    for (const fft::Step::Part& part : step.parts)
      state_->device.launch_on(stream, kernel, part.extent, from, to, state_->table[axis], factors, scale,
                               part.number);
  }
}

namespace primitives::fft {

std::vector<Kernel> plan_kernels(const FftOptions& o, const Choice& choice) {
  check(o);
  std::vector<Kernel> all;
  for (const auto& chain : chains_of(o, choice))
    for (const Step& step : chain)
      all.push_back(step.kernel({o.lengths.rank() == 2 && o.batch > 1, true, true}));
  return all;
}

int64_t plan_bytes(const FftOptions& o, const Choice& choice) {
  check(o);
  int64_t numbers = 0;
  for (int axis = 0; axis < o.lengths.rank(); ++axis) {
    const AxisForm form = axis_form(o, axis, false);
    const int64_t n = form.direct ? form.points : bluestein_length(form.points);
    numbers += 2 * Stages(n).table_size();
    if (!form.direct) numbers += 2 * (form.points + n);  // chirp and filter
  }
  for (const int64_t scratch : scratch_numbers(chains_of(o, choice)))
    numbers += scratch > INT32_MAX ? scratch_rows(scratch) * kScratchRow : scratch;
  return numbers * int64_t(size_of(o.type));
}

}  // namespace primitives::fft

const FftOptions& Fft::options() const {
  if (!state_) throw InputError("an empty plan", kWhere, "Fft(device, options)");
  return state_->options;
}

Shape Fft::field_shape() const {
  const FftOptions& o = options();
  Shape shape{o.batch};
  for (int a = 0; a < o.lengths.rank(); ++a) shape.push_back(o.lengths[a]);
  if (o.kind == FftKind::c2c) shape.push_back(2);
  return shape;
}
Shape Fft::spectrum_shape() const {
  const FftOptions& o = options();
  Shape shape{o.batch};
  for (int a = 0; a < o.lengths.rank(); ++a) shape.push_back(entries(o, a));
  shape.push_back(2);
  return shape;
}

std::vector<Kernel> Fft::kernels() const { return fft::plan_kernels(options(), state_->choice); }

double Fft::flops() const {
  const FftOptions& o = options();
  double points = 1;
  for (int a = 0; a < o.lengths.rank(); ++a) points *= double(o.lengths[a]);
  return (o.kind == FftKind::c2c ? 5 : 2.5) * double(o.batch) * points * std::log2(points);
}

}  // namespace lockstep
