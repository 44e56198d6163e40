// Cases of the coder and of residuals.
#include <cmath>
#include <memory>
#include <random>

#include "flow/codec/cases.hpp"
#include "flow/codec/kernels/residual.hpp"
#include "flow/codec/kernels/residual_kernels.hpp"
#include "flow/codec/rans/rans.hpp"

namespace lockstep::flow {

namespace {

constexpr float kCaseStep = 0.02f;

RansShape rans_case_shape(const std::string& size) {
  const std::vector<int64_t> n = parse_size(size);
  return {n[0], n[1], n[2]};
}
Shape buffer_shape(const RansShape& s) { return {s.frames, s.rows, s.columns}; }

/// Small numbers, as residuals are, and a few large ones.
std::vector<uint32_t> case_numbers(const RansShape& shape, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint32_t> numbers;
  for (int64_t k = 0; k < shape.numbers(); ++k) {
    const double u = double(random() >> 11) / 9007199254740992.0;
    numbers.push_back(k % 1009 == 5 ? uint32_t(random()) : uint32_t(-1.5 * std::log(1 - u)));
  }
  return numbers;
}

Array as_array(std::vector<uint32_t> numbers, const RansShape& s) {
  return Array::of(std::move(numbers), {s.frames, s.rows, s.columns});
}

Case rans_case(bool decode) {
  Case c;
  c.name = decode ? "flow.codec.rans.decode" : "flow.codec.rans.encode";
  c.dtype = "u32";
  c.small = {"1x5x7", "2x65x40"};
  c.full = {"1x256x256"};
  c.bench = {"1x256x256", "1x1024x1024"};
  c.make = [=](const std::string& size, uint64_t seed) {
    const RansShape shape = rans_case_shape(size);
    const auto numbers = std::make_shared<const std::vector<uint32_t>>(case_numbers(shape, seed));
    CaseProblem p;
    p.bytes = double(shape.numbers()) * 4;
    p.reference = [=] {
      if (decode) return std::vector{as_array(*numbers, shape)};
      return std::vector{Array::of(reference::rans_encode(*numbers, shape))};
    };
    p.bind = [=](const Device& device) {
      const Buffer given = device.upload(std::span<const uint32_t>(*numbers), buffer_shape(shape)),
                   back = device.allocate<u32>(buffer_shape(shape));
      const auto coder = std::make_shared<RansCoder>(device, shape);
      coder->count(given);
      coder->encode(given);
      if (!decode)
        return CaseRun{[=] {
                         coder->count(given);
                         coder->encode(given);
                       },
                       [=] { return std::vector{Array::of(pack_stream(coder->stream()))}; }};
      const auto reader = std::make_shared<RansCoder>(device, shape);
      reader->load(coder->stream());
      return CaseRun{[=] { reader->decode(back); }, [=] { return std::vector{device.download(back)}; }};
    };
    return p;
  };
  c.kernels = [] { return rans_kernels(); };
  return c;
}

enum class ResidualWork : uint8_t { bounded, exact, restore_bounded, restore_exact };

/// Fields and predictions of them; one prediction is not finite.
struct ResidualSetup {
  RansShape shape;
  std::vector<float> field, prediction;
  std::vector<uint32_t> codes;
  std::vector<uint32_t> flags;
};

std::shared_ptr<const ResidualSetup> residual_setup(ResidualWork work, const std::string& size,
                                                    uint64_t seed) {
  auto s = std::make_shared<ResidualSetup>();
  s->shape = rans_case_shape(size);
  std::mt19937_64 random(seed);
  const auto uniform = [&] { return float(random() >> 40) / 8388608.0f - 1; };
  for (int64_t k = 0; k < s->shape.numbers(); ++k) {
    s->field.push_back(3 * uniform());
    s->prediction.push_back(s->field.back() + 0.3f * uniform());
  }
  s->prediction[0] = INFINITY;
  const bool exact = work == ResidualWork::exact || work == ResidualWork::restore_exact;
  s->codes = reference::residual_codes(s->field, s->prediction, kCaseStep, exact);
  s->flags.assign(size_t(s->shape.frames), exact ? 1u : 0u);
  return s;
}

CaseRun bind_residual(ResidualWork work, const std::shared_ptr<const ResidualSetup>& s,
                      const Device& device) {
  const Shape shape = buffer_shape(s->shape);
  const Buffer field = device.upload(std::span<const float>(s->field), shape),
               prediction = device.upload(std::span<const float>(s->prediction), shape),
               codes = device.upload(std::span<const uint32_t>(s->codes), shape),
               flags = device.upload(s->flags), out = device.allocate<u32>(shape),
               restored = device.allocate<f32>(shape);
  if (work == ResidualWork::bounded)
    return CaseRun{[=] {
                     device.launch(ResidualKernels::bounded(), shape, field, prediction, out, flags,
                                   kCaseStep, kCaseStep);
                   },
                   [=] { return std::vector{device.download(out)}; }};
  if (work == ResidualWork::exact)
    return CaseRun{[=] { device.launch(ResidualKernels::exact(), shape, field, prediction, flags, out); },
                   [=] { return std::vector{device.download(out)}; }};
  return CaseRun{[=] {
                   device.copy(prediction, restored);
                   device.launch(ResidualKernels::restore(), shape, codes, flags, restored, kCaseStep);
                 },
                 [=] { return std::vector{device.download(restored)}; }};
}

Case residual_case(const char* name, ResidualWork work) {
  Case c;
  c.name = std::string("flow.codec.residual.") + name;
  c.small = {"2x9x7"};
  c.full = {"1x256x256"};
  c.bench = {"1x1024x1024"};
  // Division and fma of WebGPU have other roundings.
  if (work == ResidualWork::bounded) c.webgpu = Bound::flips(0.01);
  if (work == ResidualWork::restore_bounded) c.webgpu = Bound::relative(1e-6);
  const bool exact = work == ResidualWork::exact || work == ResidualWork::restore_exact;
  c.make = [=](const std::string& size, uint64_t seed) {
    const auto setup = residual_setup(work, size, seed);
    CaseProblem p;
    p.bytes = double(setup->shape.numbers()) * 12;
    p.reference = [=] {
      if (work == ResidualWork::bounded || work == ResidualWork::exact)
        return std::vector{as_array(setup->codes, setup->shape)};
      return std::vector{Array::of(reference::restored(setup->codes, setup->prediction, kCaseStep, exact),
                                   {setup->shape.frames, setup->shape.rows, setup->shape.columns})};
    };
    p.bind = [=](const Device& device) { return bind_residual(work, setup, device); };
    return p;
  };
  c.kernels = [] { return ResidualCoder::kernels(); };
  return c;
}

}  // namespace

void add_coded_cases(CaseRegistry& registry) {
  for (const bool decode : {false, true}) registry.add(rans_case(decode));
  registry.add(residual_case("bounded", ResidualWork::bounded));
  registry.add(residual_case("exact", ResidualWork::exact));
  registry.add(residual_case("restore", ResidualWork::restore_bounded));
  registry.add(residual_case("restore.exact", ResidualWork::restore_exact));
}

}  // namespace lockstep::flow
