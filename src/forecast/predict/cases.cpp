// Cases of the jumps, against the plain reference. A size is TENSORSxELEMENTSxSNAPSHOTS; every third tensor has one
// element, the others have unequal counts near ELEMENTS.
#include "forecast/predict/cases.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/numbers/half.hpp"
#include "forecast/predict/jump/jump_kernels.hpp"
#include "forecast/predict/jump/network.hpp"
#include "forecast/predict/reference.hpp"
#include "verify/inputs.hpp"

namespace lockstep::forecast {
namespace {

constexpr uint32_t kCaseDraw = 5, kCaseKey = 0x1234567u;
// Of the network: its growth is bounded, the last spacing is half gone.
constexpr int kCaseUnits = 8;
constexpr double kCaseIntervals = 2.5, kCaseMost = 0.9;

template <class T>
struct JumpInputs {
  std::vector<nn::ParameterTensor> tensors;
  reference::Path<T> path;  // newest first, as the ring's elements hold it
  std::vector<T> base, factors, lengths, scales, weights;
  std::vector<int32_t> places;
  int64_t n = 0;
  int snapshots = 0, newest = 0;
  int taps() const { return std::min(2, snapshots - 2); }
};

template <class T>
std::shared_ptr<const JumpInputs<T>> jump_inputs(const std::string& size, uint64_t seed, bool narrow) {
  const Shape shape = parse_shape(size, 3);
  auto in = std::make_shared<JumpInputs<T>>();
  for (int64_t t = 0; t < shape[0]; ++t) {
    const int64_t count = t % 3 == 1 ? 1 : shape[1] + 7 * t;
    in->tensors.push_back({"t" + std::to_string(t), {count}, in->n, count});
    in->n += count;
  }
  in->snapshots = int(shape[2]);
  in->newest = in->snapshots / 2;
  for (int k = 0; k < in->snapshots; ++k) {
    std::vector<T> row = cases::uniform<T>(in->n, seed + uint64_t(k));
    if (narrow)
      for (T& x : row) x = T(bf16_to_f32(f32_to_bf16(float(x))));
    in->path.push_back(std::move(row));
  }
  in->base = cases::uniform<T>(in->n, seed + 20);
  in->factors = cases::uniform<T>(shape[0] * std::max<int64_t>(in->snapshots - 1, 0), seed + 21);
  in->lengths = cases::uniform<T>(shape[0], seed + 22, 0, 1);
  in->scales = cases::uniform<T>(shape[0], seed + 23, 0.5, 1);
  in->weights = cases::uniform<T>(in->taps() + kCaseUnits * (in->taps() + 2), seed + 24);
  for (int64_t k = 0; k < in->n; k += 1 + in->n / 512) in->places.push_back(int32_t(k));
  return in;
}

/// Rows in the order of the ring whose newest snapshot is in row `newest`.
template <class T>
std::vector<T> ring_rows(const JumpInputs<T>& in) {
  std::vector<T> rows(size_t(in.snapshots) * size_t(in.n));
  for (int j = 0; j < in.snapshots; ++j) {
    const int row = (in.newest + in.snapshots - j) % in.snapshots;
    std::copy(in.path[size_t(j)].begin(), in.path[size_t(j)].end(), rows.begin() + int64_t(row) * in.n);
  }
  return rows;
}

template <class T>
Buffer ring_on(const Device& device, const JumpInputs<T>& in, bool narrow) {
  const Array rows = Array::of(ring_rows(in), {in.snapshots, in.n});
  return device.upload(narrow ? rows.to(Storage::bf16) : rows);
}

Buffer chunks_on(const Device& device, std::span<const nn::ParameterTensor> tensors) {
  const std::vector<int32_t> chunks = jump_chunks(tensors);
  return device.upload(std::span<const int32_t>(chunks), {int64_t(chunks.size()) / 3, 3});
}

enum class JumpOperation : uint8_t { gram, move, scatter, average, sample, follow };

Case base_jump_case(const std::string& operation, Storage ring) {
  Case c;
  c.name = "forecast.jump." + operation + (ring == Storage::f32 ? "" : "." + std::string(name(ring)));
  c.dtype = std::string(name(ring));
  c.needs_f64 = ring == Storage::f64;
  c.small = {"1x1x2", "2x17x3", "4x300x5", "7x8193x8"};
  if (operation == "average" || operation == "scatter") c.small.push_back("3x100x1");
  if (operation == "follow") c.small[0] = "1x1x3";
  c.full = {"3x1000003x6"};
  c.bench = {"12x1048576x5"};
  if (ring == Storage::bf16) c.bench.push_back("222x838000x5");  // 124 million parameters
  return c;
}

template <class T>
std::vector<T> jump_reference(JumpOperation what, const JumpInputs<T>& in) {
  switch (what) {
    case JumpOperation::gram: return reference::gram(in.path, in.tensors);
    case JumpOperation::move: return reference::move<T>(in.path, in.tensors, in.base, in.factors);
    case JumpOperation::sample: return reference::samples<T>(in.path, in.places);
    case JumpOperation::follow:
      return reference::follow<T>(in.path, in.tensors, in.base, in.scales,
                                  {in.taps(), kCaseUnits, in.weights}, kCaseIntervals, T(kCaseMost));
    case JumpOperation::scatter:
      return reference::scatter<T>(in.tensors, in.base, in.lengths, kCaseDraw, kCaseKey);
    default: return reference::average(in.path);
  }
}

template <class T>
CaseRun bind_jump(JumpOperation what, Storage ring, const std::shared_ptr<const JumpInputs<T>>& in,
                  const Device& device) {
  const Buffer chunks = chunks_on(device, in->tensors), base = device.upload(in->base);
  const Buffer snapshots = ring_on(device, *in, ring == Storage::bf16);
  const int64_t groups = chunks.shape()[0], tensors = int64_t(in->tensors.size());
  Buffer to = device.allocate<T>({in->n});
  if (what == JumpOperation::gram) to = device.allocate<T>({groups, gram_pairs(in->snapshots - 1)});
  const auto samples = int64_t(in->places.size());
  if (what == JumpOperation::sample) to = device.allocate<T>({samples, in->snapshots - 1});
  const Buffer places = device.upload(in->places), scales = device.upload(in->scales),
               weights = device.upload(in->weights);
  const Buffer lengths = device.upload(in->lengths);
  Buffer factors;
  if (in->snapshots > 1)
    factors = device.upload(std::span<const T>(in->factors), {tensors, in->snapshots - 1});
  const auto run = [=] {
    switch (what) {
      case JumpOperation::gram:
        device.launch(gram_kernel(ring, in->snapshots), {groups}, snapshots, chunks, to, in->newest);
        break;
      case JumpOperation::move:
        device.launch(move_kernel(ring, in->snapshots), {groups}, snapshots, chunks, base, factors, to,
                      in->newest);
        break;
      case JumpOperation::sample:
        device.launch(sample_kernel(ring, in->snapshots), {samples}, snapshots, places, to, in->newest);
        break;
      case JumpOperation::follow:
        device.launch(follow_kernel(ring, in->taps()), {groups}, snapshots, chunks, base, scales, weights, to,
                      in->newest, kCaseUnits, 3, kCaseIntervals - 2, kCaseMost);
        break;
      case JumpOperation::scatter:
        device.launch(scatter_kernel(ring), {groups}, chunks, base, lengths, to, kCaseDraw, kCaseKey);
        break;
      default: device.launch(average_kernel(ring, in->snapshots), {in->n}, snapshots, to, in->newest);
    }
  };
  return {run, [=] { return std::vector{device.download(to).reshape({to.elements()})}; }};
}

template <class T>
Case jump_case(JumpOperation what, const std::string& operation, Storage ring) {
  Case c = base_jump_case(operation, ring);
  if (what == JumpOperation::gram) c.webgpu = Bound::relative(1e-6);
  if (what == JumpOperation::follow) {  // tanh, and additions in another order
    c.reference = Bound::relative(ring == Storage::f64 ? 1e-14 : 1e-6);
    c.webgpu = Bound::relative(1e-5);
  }
  if (what == JumpOperation::average) c.webgpu = Bound::ulp(4);  // its division
  c.make = [=](const std::string& size, uint64_t seed) {
    const auto in = jump_inputs<T>(size, seed, ring == Storage::bf16);
    CaseProblem p;
    const double n = double(in->n), element = double(size_of(ring)), value = sizeof(T);
    const double differences = in->snapshots - 1;
    switch (what) {
      case JumpOperation::gram:
        p.bytes = n * in->snapshots * element;
        p.flops = n * differences * (differences + 2);
        break;
      case JumpOperation::move:
        p.bytes = n * (in->snapshots * element + 2 * value);
        p.flops = n * (3 * differences + 1);
        break;
      case JumpOperation::scatter: p.bytes = n * 2 * value; break;
      case JumpOperation::sample:
        p.bytes = double(in->places.size()) * in->snapshots * (element + value);
        break;
      case JumpOperation::follow:
        p.bytes = n * ((in->taps() + 1) * element + 2 * value);
        p.flops = n * 3 * 2 * network_value_work(in->taps(), kCaseUnits);
        break;
      default: p.bytes = n * (in->snapshots * element + value), p.flops = n * in->snapshots;
    }
    p.reference = [=] { return std::vector{Array::of(jump_reference(what, *in))}; };
    p.bind = [=](const Device& device) { return bind_jump(what, ring, in, device); };
    return p;
  };
  c.kernels = [=] {
    switch (what) {
      case JumpOperation::gram: return std::vector{gram_kernel(ring, 5)};
      case JumpOperation::move: return std::vector{move_kernel(ring, 5)};
      case JumpOperation::scatter: return std::vector{scatter_kernel(ring)};
      case JumpOperation::sample: return std::vector{sample_kernel(ring, 5)};
      case JumpOperation::follow: return std::vector{follow_kernel(ring, 2)};
      default: return std::vector{average_kernel(ring, 5), snapshot_kernel(value_storage(ring), ring)};
    }
  };
  return c;
}

}  // namespace

void add_jump_cases(CaseRegistry& registry) {
  for (const auto& [what, operation] :
       {std::pair{JumpOperation::gram, "gram"}, std::pair{JumpOperation::move, "move"},
        std::pair{JumpOperation::average, "average"}, std::pair{JumpOperation::scatter, "scatter"},
        std::pair{JumpOperation::sample, "sample"}, std::pair{JumpOperation::follow, "follow"}}) {
    registry.add(jump_case<float>(what, operation, Storage::f32));
    registry.add(jump_case<double>(what, operation, Storage::f64));
    if (what != JumpOperation::scatter) registry.add(jump_case<float>(what, operation, Storage::bf16));
  }
}

}  // namespace lockstep::forecast
