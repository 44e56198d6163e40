// Cases of GRU sequences: sizes are steps x batch x hidden, 5 inputs. The states against the plain reference, of narrow
// weights at the rounded ones; gradients device against device, and against complex steps in the tests.
#include "forecast/gru/cases.hpp"

#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "core/numbers/random.hpp"
#include "forecast/gru/reference.hpp"

namespace lockstep::forecast {

namespace {

constexpr int64_t kCaseInputs = 5;

struct GruCase {
  GruForm form = GruForm::reset_before;
  bool gradient = false;
  Storage storage = Storage::f32;
  WeightType weights = WeightType::f32;
};

reference::SequenceProblem<double> gru_problem(const GruShape& shape, uint64_t seed) {
  auto numbers = [&, which = uint32_t(0)](int64_t count, double size) mutable {
    std::vector<double> v(static_cast<size_t>(count));
    ++which;
    for (size_t i = 0; i < v.size(); ++i)
      v[i] = float(size * (2 * random_unit(uint32_t(i), which, random_key(seed)) - 1));
    return v;
  };
  const GruForm form = shape.form;
  const int64_t steps = shape.steps, batch = shape.batch, inputs = shape.inputs, d = shape.hidden;
  const double s = std::sqrt(3.0 / double(d + inputs));
  reference::SequenceProblem<double> p{
      shape, numbers(inputs * 3 * d, s), numbers(d * 3 * d, s), numbers(3 * d, 0.5), {}, {}, {}};
  p.x = numbers(steps * batch * inputs, 1);
  p.h0 = numbers(batch * d, 1);
  if (form == GruForm::reset_after) p.rb = numbers(3 * d, 0.5);
  return p;
}

GruWeights weights_of(const reference::SequenceProblem<double>& p) {
  const int64_t d = p.shape.hidden;
  const auto array = [&](const std::vector<double>& v, Sizes sizes) {
    return Array::of(v, std::move(sizes)).to(p.shape.storage);
  };
  return {array(p.w, {p.shape.inputs, 3 * d}), array(p.u, {d, 3 * d}), array(p.b, {3 * d}),
          p.rb.empty() ? Array() : array(p.rb, {3 * d})};
}

Array reference_states(reference::SequenceProblem<double> p) {
  const GruShape& s = p.shape;
  if (s.weights != WeightType::f32) {
    const Array rounded = round_weights(weights_of(p), s.weights).u;
    p.u.assign(rounded.as<float>().begin(), rounded.as<float>().end());
  }
  return Array::of(reference::sequence(p), {s.steps + 1, s.batch, s.hidden}).to(s.storage);
}

Case gru_case(const GruCase& g) {
  const bool f64 = g.storage == Storage::f64, narrow = g.weights != WeightType::f32;
  Case c;
  c.name = fmt::format("forecast.gru.{}{}{}{}{}", g.gradient ? "gradient" : "forward",
                       g.form == GruForm::reset_after ? ".reset_after" : "", f64 ? ".f64" : "",
                       narrow ? "." : "", narrow ? name(g.weights) : "");
  c.dtype = f64 ? "f64" : "f32";
  c.needs_f64 = f64;
  c.small = {"1x1x1", "3x2x3", "2x3x33", "3x1x37", "2x9x37"};
  c.full = {"4x1x256", "2x3x1100", "3x3x128", "3x2x512"};
  c.bench = {"50x1x256", "50x1x512", "50x16x256", "50x1x1024"};
  c.reference = Bound::relative(f64 ? 1e-13 : 1e-6);
  c.webgpu = Bound::relative(1e-5);
  c.fast = Bound::relative(f64 ? 1e-11 : 1e-3);
  c.make = [=](const std::string& size, uint64_t seed) {
    const std::vector<int64_t> n = parse_size(size);
    const GruShape shape{g.form, n[0], n[1], kCaseInputs, n[2], g.storage, g.weights, g.gradient};
    const auto p = std::make_shared<const reference::SequenceProblem<double>>(gru_problem(shape, seed));
    const double d = double(n[2]), rows = double(n[0] * n[1]), word = f64 ? 8 : 4;
    const double recurrent = g.weights == WeightType::fp8 ? 1 : narrow ? 2 : word;
    CaseProblem problem;
    problem.flops = rows * 6 * d * (d + double(kCaseInputs)) * (g.gradient ? 3 : 1);
    problem.bytes = 3 * d * (recurrent * d + word * double(kCaseInputs)) * (g.gradient ? 2 : 1) +
                    word * rows * (d + double(kCaseInputs));
    if (!g.gradient) problem.reference = [=] { return std::vector{reference_states(*p)}; };
    problem.bind = [=](const Device& device) {
      const auto gru = std::make_shared<GruSequence>(device, shape);
      const auto array = [&](const std::vector<double>& v, Sizes sizes) {
        return Array::of(v, std::move(sizes)).to(g.storage);
      };
      gru->set_weights(weights_of(*p));
      const Buffer x = device.upload(array(p->x, {n[0], n[1], kCaseInputs})),
                   h0 = device.upload(array(p->h0, {n[1], n[2]}));
      const Buffer incoming =
          device.upload(array(std::vector<double>(size_t(n[0] * n[1] * n[2]), 1.0), {n[0], n[1], n[2]}));
      const auto run = [=] {
        gru->forward(x, h0);
        if (g.gradient) gru->backward(incoming);
      };
      run();  // later calls are replays: both ways run
      const auto outputs = [=] {
        if (!g.gradient) return std::vector{device.download(gru->states())};
        const auto all = gru->gradients();
        std::vector<Array> arrays;
        for (const Buffer& b : {all.w, all.u, all.b, gru->d_x(), gru->d_h0()})
          arrays.push_back(device.download(b));
        return arrays;
      };
      return CaseRun{run, outputs};
    };
    return problem;
  };
  c.kernels = [=] {
    return GruSequence(Device::open("interp"), {g.form, 1, 1, 1, 1, g.storage, g.weights, g.gradient})
        .kernels();
  };
  return c;
}

}  // namespace

void add_gru_cases(CaseRegistry& registry) {
  for (const Storage storage : {Storage::f32, Storage::f64})
    for (const GruForm form : {GruForm::reset_before, GruForm::reset_after})
      for (const bool gradient : {false, true}) registry.add(gru_case({form, gradient, storage}));
  for (const WeightType weights : {WeightType::bf16, WeightType::fp8})
    for (const GruForm form : {GruForm::reset_before, GruForm::reset_after})
      for (const bool gradient : {false, true})
        registry.add(gru_case({form, gradient, Storage::f32, weights}));
}

}  // namespace lockstep::forecast
