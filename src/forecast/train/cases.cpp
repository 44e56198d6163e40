// Cases of the kernels that gather batches; copies, so every device has the bits of the plain reference.
#include "forecast/train/cases.hpp"

#include "forecast/train/source.hpp"
#include "verify/inputs.hpp"

namespace lockstep::forecast {

namespace {

std::vector<i32> draw_numbers(int64_t count, int64_t below, uint64_t seed) {
  cases::Random random(seed);
  std::vector<i32> numbers;
  for (int64_t k = 0; k < count; ++k) numbers.push_back(i32(random.bits() % uint64_t(below)));
  return numbers;
}

/// Size: examples of the data set x columns x examples of the batch.
template <class T>
Case rows_case() {
  Case c;
  c.dtype = std::string(name(lockstep::detail::kType<T>));
  c.name = "forecast.take_rows" + (std::is_same_v<T, f32> ? "" : "." + c.dtype);
  c.needs_f64 = sizeof(T) == 8;
  c.small = {"1x1x1", "37x5x64", "100x33x7"};
  c.bench = {"8000x784x64"};
  c.kernels = [] { return std::vector{take_rows_kernel<T>()}; };
  c.make = [](const std::string& size, uint64_t seed) {
    const Shape s = parse_shape(size, 3);
    const auto data = std::make_shared<std::vector<T>>();
    for (const double v : cases::uniform<double>(s[0] * s[1], seed, 0, 1000)) data->push_back(T(v));
    const auto rows = std::make_shared<const std::vector<i32>>(draw_numbers(s[2], s[0], seed + 1));
    CaseProblem p;
    p.bytes = 2.0 * sizeof(T) * double(s[1] * s[2]);
    p.bind = [=](const Device& device) {
      const Buffer from = device.upload(std::span<const T>(*data), {s[0], s[1]}),
                   numbers = device.upload(*rows);
      const Buffer to = device.allocate<T>({s[2], s[1]});
      return CaseRun{[=] { device.launch(take_rows_kernel<T>(), to.shape(), from, numbers, to); },
                     [=] { return std::vector{device.download(to)}; }};
    };
    p.reference = [=] {
      std::vector<T> to;
      for (const i32 row : *rows)
        to.insert(to.end(), data->begin() + row * s[1], data->begin() + (row + 1) * s[1]);
      return std::vector{Array::of(std::move(to), {s[2], s[1]})};
    };
    return p;
  };
  return c;
}

/// Size: tokens of the text x places of a window x examples of the batch.
Case windows_case() {
  Case c;
  c.name = "forecast.take_windows";
  c.dtype = "i32";
  c.small = {"2x1x1", "50x8x33"};
  c.bench = {"1000000x64x16"};
  c.kernels = [] { return std::vector{take_windows_kernel()}; };
  c.make = [](const std::string& size, uint64_t seed) {
    const Shape s = parse_shape(size, 3);
    const auto text = std::make_shared<const std::vector<i32>>(draw_numbers(s[0], 65, seed));
    const auto starts = std::make_shared<const std::vector<i32>>(draw_numbers(s[2], s[0] - s[1], seed + 1));
    CaseProblem p;
    p.bytes = 3.0 * sizeof(i32) * double(s[1] * s[2]);
    p.bind = [=](const Device& device) {
      const Buffer from = device.upload(*text), numbers = device.upload(*starts);
      const Buffer inputs = device.allocate<i32>({s[2], s[1]}), targets = device.allocate<i32>({s[2], s[1]});
      return CaseRun{
          [=] { device.launch(take_windows_kernel(), inputs.shape(), from, numbers, inputs, targets); },
          [=] { return std::vector{device.download(inputs), device.download(targets)}; }};
    };
    p.reference = [=] {
      std::vector<i32> inputs, targets;
      for (const i32 start : *starts)
        for (int64_t t = 0; t < s[1]; ++t) {
          inputs.push_back((*text)[size_t(start + t)]);
          targets.push_back((*text)[size_t(start + t + 1)]);
        }
      return std::vector{Array::of(std::move(inputs), {s[2], s[1]}),
                         Array::of(std::move(targets), {s[2], s[1]})};
    };
    return p;
  };
  return c;
}

}  // namespace

void add_train_cases(CaseRegistry& registry) {
  registry.add(rows_case<f32>());
  registry.add(rows_case<f64>());
  registry.add(rows_case<i32>());
  registry.add(windows_case());
}

}  // namespace lockstep::forecast
