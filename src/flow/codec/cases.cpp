// Cases of the codec's latents against the plain reference.
#include "flow/codec/cases.hpp"

#include <cmath>
#include <memory>

#include "flow/codec/reference.hpp"
#include "lockstep/flow/codec.hpp"

namespace lockstep::flow {

namespace {

enum class CodecWork : uint8_t { encode, mean, stochastic, both };

struct CodecCase {
  const char* name;
  CodecKind kind;
  CodecWork work;
  Anchors anchors = Anchors::published;
};

/// A size of three numbers begins with the frames.
CodecOptions codec_case_options(const CodecCase& c, const std::string& size) {
  const std::vector<int64_t> n = parse_size(size);
  CodecOptions o;
  o.kind = c.kind;
  o.anchors = c.anchors;
  o.grid.ny = n[n.size() - 2];
  o.grid.nx = n.back();
  o.seed = 3;
  if (std::min(o.grid.nx, o.grid.ny) < 32) {
    o.low = 3;
    o.middle = 6;
    o.box = 5;
    o.anchor_count = 20;
  }
  return o;
}

/// Different frames of one flow, (frames, ny, nx).
std::vector<float> codec_case_frames(const BoxGrid& grid, int64_t frames, uint64_t seed) {
  std::vector<float> all;
  for (int64_t f = 0; f < frames; ++f) {
    const Array one = initial_field(grid, Initial::mcwilliams, seed + uint64_t(f));
    for (const double v : one.as<double>()) all.push_back(float(v));
  }
  return all;
}

std::vector<double> frame_of(const std::vector<float>& all, const BoxGrid& grid, int64_t f) {
  const auto begin = all.begin() + f * grid.points();
  return {begin, begin + grid.points()};
}

/// The slot that holds the number of anchors would hide the others' errors: it goes to the end, as a difference.
Array without_constant(std::vector<float> latents, const CodecLayout& l, int64_t frames, double anchors) {
  for (int64_t f = 0; f < frames; ++f) latents[size_t(f * l.size + l.extras + 3)] -= float(anchors);
  return Array::of(std::move(latents), {frames, l.size});
}

/// Setup of a codec case, for binding and reference.
struct CodecSetup {
  CodecOptions options;
  int64_t frames = 1;
  std::vector<float> fields;
  CodecPlan plan;
};

std::shared_ptr<const CodecSetup> codec_setup(const CodecCase& c, const std::string& size, uint64_t seed) {
  auto s = std::make_shared<CodecSetup>();
  s->options = codec_case_options(c, size);
  const std::vector<int64_t> n = parse_size(size);
  s->frames = n.size() == 3 ? n[0] : 1;
  s->fields = codec_case_frames(s->options.grid, s->frames, seed);
  const BoxGrid& g = s->options.grid;
  const std::vector<double> first = frame_of(s->fields, g, 0);
  s->plan = plan_codec(s->options, reference::first_spectrum(s->options, first));
  return s;
}

std::vector<Array> codec_reference(const CodecCase& c, const CodecSetup& s) {
  const BoxGrid& g = s.options.grid;
  const CodecLayout l = codec_layout(s.plan);
  std::vector<float> result;
  for (int64_t f = 0; f < s.frames; ++f) {
    std::vector<double> z = reference::encode(s.plan, frame_of(s.fields, g, f));
    if (c.work != CodecWork::encode)
      z = reference::decode(s.plan, z, c.work == CodecWork::stochastic ? Decoder::stochastic : Decoder::mean,
                            f);
    result.insert(result.end(), z.begin(), z.end());
  }
  if (c.work != CodecWork::encode) return {Array::of(std::move(result), {s.frames, g.ny, g.nx})};
  if (c.kind == CodecKind::classic)
    return {without_constant(std::move(result), l, s.frames, double(s.plan.anchors.size()))};
  return {Array::of(std::move(result), {s.frames, l.size})};
}

CaseRun bind_codec(const CodecCase& c, const std::shared_ptr<const CodecSetup>& s, const Device& device) {
  const BoxGrid& g = s->options.grid;
  const Codec codec(device, s->plan);
  const CodecLayout l = codec_layout(s->plan);
  const Buffer fields = device.upload(std::span<const float>(s->fields), {s->frames, g.ny, g.nx}),
               latent = device.allocate<f32>({s->frames, codec.latent_size()}),
               decoded = device.allocate<f32>({s->frames, g.ny, g.nx});
  codec.encode(fields, latent);
  const Decoder decoder = c.work == CodecWork::stochastic ? Decoder::stochastic : Decoder::mean;
  const CodecWork work = c.work;
  CaseRun run;
  run.run = [=] {
    if (work == CodecWork::encode || work == CodecWork::both) codec.encode(fields, latent);
    if (work != CodecWork::encode) codec.decode(latent, decoded, decoder);
  };
  const bool classic = c.kind == CodecKind::classic;
  const auto anchors = double(s->plan.anchors.size());
  const int64_t frames = s->frames;
  run.outputs = [=] {
    if (work != CodecWork::encode) return std::vector{device.download(decoded)};
    std::vector<float> z = device.download<f32>(latent);
    if (classic) return std::vector{without_constant(std::move(z), l, frames, anchors)};
    return std::vector{Array::of(std::move(z), {frames, l.size})};
  };
  return run;
}

Case codec_case(const CodecCase& c) {
  Case made;
  made.name = std::string("flow.codec.") + c.name;
  made.small = {"2x32x40", "1x18x15"};
  made.full = {"3x64x64", "1x45x96"};
  made.bench = {"1x256x256", "1x1024x1024"};
  made.reference = Bound::relative(1e-5);
  made.webgpu = Bound::relative(1e-4);
  made.make = [=](const std::string& size, uint64_t seed) {
    const auto setup = codec_setup(c, size, seed);
    CaseProblem p;
    // Fields are read, or written, once; latents are short compared with them.
    const double points = double(setup->fields.size());
    p.bytes = points * 4 * (c.work == CodecWork::both ? 2 : 1);
    p.flops = p.bytes / 4 * 2.5 * std::log2(double(setup->options.grid.points()));
    p.reference = [=] { return codec_reference(c, *setup); };
    p.bind = [=](const Device& device) { return bind_codec(c, setup, device); };
    return p;
  };
  made.kernels = [=] {
    const auto setup = codec_setup(c, "1x16x16", 1);
    return Codec(Device::open("interp"), setup->plan).kernels();
  };
  return made;
}

}  // namespace

void add_codec_cases(CaseRegistry& registry) {
  for (const CodecCase& c : std::initializer_list<CodecCase>{
           {"classic.encode", CodecKind::classic, CodecWork::encode},
           {"classic.mean", CodecKind::classic, CodecWork::mean},
           {"classic.anchors", CodecKind::classic, CodecWork::mean, Anchors::used},
           {"classic.stochastic", CodecKind::classic, CodecWork::stochastic},
           {"classic", CodecKind::classic, CodecWork::both},
           {"v2.encode", CodecKind::v2, CodecWork::encode},
           {"v2.mean", CodecKind::v2, CodecWork::mean},
           {"v2.stochastic", CodecKind::v2, CodecWork::stochastic},
           {"v2", CodecKind::v2, CodecWork::both}})
    registry.add(codec_case(c));
  add_coded_cases(registry);
}

}  // namespace lockstep::flow
