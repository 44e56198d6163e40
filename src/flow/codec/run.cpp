// Runs of flow encoded and decoded: files, stages, errors.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/reports/json_text.hpp"
#include "core/reports/log.hpp"
#include "device/capabilities.hpp"
#include "flow/codec/layout.hpp"
#include "flow/codec/narrow.hpp"
#include "flow/run/fields.hpp"
#include "lockstep/error.hpp"
#include "lockstep/fft.hpp"
#include "lockstep/flow/documents.hpp"

namespace lockstep::flow {

namespace {

/// The fields of a run in f32, one behind the other, and how much f32 rounds them.
struct RunFields {
  Array frames;  // (times * members, ny, nx)
  int64_t members = 1;
  std::vector<double> time;
  BoxGrid grid;
  double rounding = 0;
};

void take_axes(const std::filesystem::path& path, int64_t times, RunFields& f) {
  f.time.assign(size_t(times), 0);
  for (int64_t k = 0; k < times; ++k) f.time[size_t(k)] = double(k);
  if (path.extension() != ".npz" && path.extension() != ".nc") return;
  const auto length = [](const Array& at, int64_t count) {
    return (at.at<double>(1) - at.at<double>(0)) * double(count);
  };
  for (const auto& [key, array] : read_run(path, {"time", "x", "y"})) {
    const Array values = array.to(Storage::f64).packed();
    if (key == "time" && array.rank() >= 1 && array.size(0) == times && !array.empty())
      for (int64_t k = 0; k < times; ++k)
        f.time[size_t(k)] = array.rank() == 1 ? values.at<double>(k) : values.at<double>(k, 0);
    if (key == "x" && array.rank() == 1 && array.elements() == f.grid.nx && f.grid.nx > 1)
      f.grid.lx = length(values, f.grid.nx);
    if (key == "y" && array.rank() == 1 && array.elements() == f.grid.ny && f.grid.ny > 1)
      f.grid.ly = length(values, f.grid.ny);
  }
}

RunFields read_run_fields(const std::filesystem::path& path) {
  const Array all = read_vorticity(path).packed();
  if (all.rank() < 2 || all.rank() > 4 || all.elements() == 0)
    throw InputError(fmt::format("vorticity of shape {}", to_string(all.shape())), path.string(),
                     "(y, x), (time, y, x) or (time, member, y, x)");
  RunFields f;
  f.grid.ny = all.size(-2);
  f.grid.nx = all.size(-1);
  f.members = all.rank() == 4 ? all.size(1) : 1;
  const int64_t times = all.rank() == 2 ? 1 : all.size(0), frames = times * f.members;
  NarrowFields narrowed = narrow(all.to(Storage::f64).reshape({frames, f.grid.ny, f.grid.nx}), path.string());
  f.frames = std::move(narrowed.frames);
  f.rounding = narrowed.rounding;
  take_axes(path, times, f);
  return f;
}

/// Energies of rings of a field: sums of |w|^2 / k^2.
std::vector<double> ring_energies(const Device& device, const BoxGrid& grid, const Array& frame) {
  FftOptions options;
  options.kind = FftKind::r2c;
  options.lengths = {grid.ny, grid.nx};
  const Fft fft(device, options);
  const Buffer spectrum = device.allocate<f32>(fft.spectrum_shape());
  fft.execute(device.upload(frame.reshape({1, grid.ny, grid.nx})), spectrum);
  const std::vector<float> c = device.download<f32>(spectrum);
  std::vector<double> rings;
  const int64_t columns = grid.nx / 2 + 1;
  for (int64_t row = 0; row < grid.ny; ++row)
    for (int64_t column = 0; column < columns; ++column) {
      const int64_t iy = row <= (grid.ny - 1) / 2 ? row : row - grid.ny;
      const double k = plane_wavenumber(grid, iy, column);
      if (k == 0) continue;
      const size_t ring = size_t(std::lround(k)), at = 2 * size_t(row * columns + column);
      if (rings.size() <= ring) rings.resize(ring + 1, 0.0);
      const double weight = column == 0 || 2 * column == grid.nx ? 1 : 2;
      rings[ring] +=
          weight * (double(c[at]) * double(c[at]) + double(c[at + 1]) * double(c[at + 1])) / (k * k);
    }
  return rings;
}

double spectrum_difference(const Device& device, const BoxGrid& grid, const Array& a, const Array& b) {
  const std::vector<double> of_a = ring_energies(device, grid, a), of_b = ring_energies(device, grid, b);
  double sum = 0, error = 0;
  for (const double e : of_a) sum += e;
  for (size_t k = 0; k < of_a.size(); ++k)
    if (of_a[k] > 1e-12 * sum) error = std::max(error, std::abs(std::log10(of_b[k] / of_a[k])));
  return error;
}

CodecErrors errors_of(const Device& device, const RunFields& original, const Array& decoded) {
  CodecErrors e;
  const auto a = original.frames.as<float>(), b = decoded.as<float>();
  double difference = 0, size = 0, low = std::numeric_limits<double>::infinity(), high = -low;
  for (size_t k = 0; k < a.size(); ++k) {
    const double x = double(a[k]), d = std::abs(double(b[k]) - x);
    e.max_error = std::max(e.max_error, d);
    difference += d * d;
    size += x * x;
    low = std::min(low, x);
    high = std::max(high, x);
  }
  const int64_t points = original.grid.points();
  for (int64_t frame = 0; frame < decoded.size(0); ++frame) {
    double lost = 0, all = 0;
    for (auto k = size_t(frame * points); k < size_t((frame + 1) * points); ++k) {
      lost += std::pow(double(b[k]) - double(a[k]), 2);
      all += double(a[k]) * double(a[k]);
    }
    const double kept = all > 0 ? 1 - lost / all : lost > 0 ? 0 : 1;
    if (kept < e.least_kept) e.least_kept = kept, e.worst_frame = frame;
  }
  e.relative_l2 = size > 0 ? std::sqrt(difference / size) : std::sqrt(difference);
  e.psnr = 20 * std::log10((high - low) / std::sqrt(difference / double(a.size())));
  if (std::isnan(e.psnr)) e.psnr = std::numeric_limits<double>::infinity();  // equal and constant
  const int64_t last = decoded.size(0) - 1;
  e.spectrum_error =
      spectrum_difference(device, original.grid, original.frames[last].packed(), decoded[last].packed());
  return e;
}

/// Stages run where the predictions have their bits; WebGPU leaves a bounded error to the CPU.
void run_codec_stage(Context& context, const char* stage, bool bounded,
                     const std::function<void(const Device&)>& work) {
  if (bounded && (!capabilities_of(context.device()).ieee || !context.fallbacks().empty()))
    context.run_stage_on_cpu(stage, work);
  else
    context.run_stage(stage, work);
}

void refuse_fast(const Context& context, bool bounded) {
  if (bounded && context.numerics() != Numerics::exact)
    throw InputError("fast numerics with a bounded error", "flow codec",
                     "exact numerics, so that a decoder predicts the same values as the encoder");
}

CodecRunResult result_of(const EncodedFields& e, int64_t bytes, const std::filesystem::path& file) {
  CodecRunResult r;
  r.plan = e.plan;
  r.frames = e.frames;
  r.latent_size = codec_layout(e.plan).size;
  r.bytes = bytes;
  const double points = double(e.frames) * double(e.plan.options.grid.points());
  r.bits_per_point = 8 * double(bytes) / points;
  r.ratio = 4 * points / double(bytes);
  r.bound = e.max_error;
  r.file = file;
  return r;
}

/// The cut comes from frames of the series; one between them may need a larger one.
void warn_of_losses(CodecRunResult& r) {
  constexpr double kRoom = 0.02;
  const CodecOptions& o = r.plan.options;
  if (r.bound || o.kind != CodecKind::v2 || !r.errors || r.errors->least_kept >= o.share - kRoom) return;
  r.warnings.push_back(fmt::format(
      "frame {} keeps {:.3g} % of its enstrophy instead of {:.3g} %: use a larger --cut than {:.4g}",
      r.errors->worst_frame, 100 * r.errors->least_kept, 100 * o.share, o.cut));
  logging::line("flow codec: " + r.warnings.back());  // also under --quiet
}

/// f32 as (time, [member,] y, x) with its axes.
void write_fields(const std::filesystem::path& path, const EncodedFields& e, const Array& fields) {
  const BoxGrid& g = e.plan.options.grid;
  const int64_t times = e.frames / e.members;
  std::vector<io::NetcdfVariable> variables;
  const auto axis = [](int64_t count, double spacing) {
    std::vector<double> at;
    for (int64_t k = 0; k < count; ++k) at.push_back(double(k) * spacing);
    return Array::of(std::move(at));
  };
  if (e.members > 1)
    variables.push_back({"omega",
                         {"time", "member", "y", "x"},
                         fields.reshape({times, e.members, g.ny, g.nx}),
                         {{"long_name", "vorticity v_x - u_y"}}});
  else
    variables.push_back({"omega", {"time", "y", "x"}, fields, {{"long_name", "vorticity v_x - u_y"}}});
  variables.push_back({"time", {"time"}, Array::of(std::vector<double>(e.time)), {{"long_name", "time"}}});
  variables.push_back({"x", {"x"}, axis(g.nx, g.dx()), {{"axis", "X"}}});
  variables.push_back({"y", {"y"}, axis(g.ny, g.dy()), {{"axis", "Y"}}});
  constexpr auto kTitle = "two-dimensional turbulence, decoded";
  if (path.extension() == ".nc") {
    io::write_netcdf(path, variables, {{"Conventions", "CF-1.8"}, {"title", kTitle}});
    return;
  }
  io::NpzArrays arrays;
  for (const io::NetcdfVariable& v : variables) arrays.emplace_back(v.name, v.values);
  io::write_npz(path, arrays, io::NpzCompression::stored, {.title = kTitle});
}

}  // namespace

CodecRunResult encode_run(Context& context, const EncodeRunOptions& options) {
  if (options.output.extension() != ".npz")
    throw InputError(fmt::format("'{}'", options.output.string()), "flow encode",
                     "a name in .npz for the output");
  const bool bounded = options.max_error.has_value();
  refuse_fast(context, bounded);
  const RunFields fields = read_run_fields(options.input);
  CodecOptions codec = options.codec;
  codec.grid = fields.grid;
  std::optional<double> bound = options.max_error;
  if (bound) bound = bound_of_narrow(*bound, fields.rounding, options.input.string());
  EncodedFields encoded;
  run_codec_stage(context, "flow.encode", bounded, [&](const Device& device) {
    encoded = encode_fields(device, codec, fields.frames, bound);
  });
  encoded.members = fields.members;
  encoded.time = fields.time;
  CodecErrors errors;
  run_codec_stage(context, "flow.decode", bounded, [&](const Device& device) {
    errors = errors_of(device, fields, decode_fields(device, encoded));
  });
  if (bound && !(errors.max_error <= *bound))
    throw InternalError(fmt::format("an error of {} beyond the bound of {}", errors.max_error, *bound),
                        "flow encode", "a decoder that reproduces the values of the encoder");
  CodecRunResult r = result_of(encoded, write_encoded(options.output, encoded), options.output);
  r.bound = options.max_error;
  r.errors = errors;
  r.errors->max_error += fields.rounding;
  if (options.codec.cut == 0) warn_of_losses(r);
  return r;
}

CodecRunResult decode_run(Context& context, const DecodeRunOptions& options) {
  if (options.output.extension() != ".npz" && options.output.extension() != ".nc")
    throw InputError(fmt::format("'{}'", options.output.string()), "flow decode",
                     "a name in .nc or .npz for the output");
  if (options.output.extension() == ".nc")
    if (const std::string missing = io::netcdf_missing(); !missing.empty())
      throw UnsupportedError(missing, options.output.string(), "a name in .npz");
  const EncodedFields encoded = read_encoded(options.input);
  const bool bounded = encoded.max_error.has_value();
  refuse_fast(context, bounded);
  std::optional<RunFields> original;
  if (!options.original.empty()) {
    original = read_run_fields(options.original);
    const BoxGrid& g = encoded.plan.options.grid;
    if (original->frames.shape() != Sizes{encoded.frames, g.ny, g.nx})
      throw InputError(fmt::format("fields of shape {}", to_string(original->frames.shape())),
                       options.original.string(), fmt::format("({}, {}, {})", encoded.frames, g.ny, g.nx));
  }
  Array fields;
  CodecRunResult r = result_of(encoded, int64_t(std::filesystem::file_size(options.input)), options.output);
  run_codec_stage(context, "flow.decode", bounded, [&](const Device& device) {
    fields = decode_fields(device, encoded, options.decoder);
    if (original) r.errors = errors_of(device, *original, fields);
  });
  write_fields(options.output, encoded, fields);
  return r;
}

nlohmann::ordered_json document_of(const CodecRunResult& r) {
  nlohmann::ordered_json j;
  const CodecOptions& o = r.plan.options;
  j["codec"] = name(o.kind);
  j["n"] = {o.grid.ny, o.grid.nx};
  j["frames"] = r.frames;
  j["latent_size"] = r.latent_size;
  if (o.kind == CodecKind::v2) j["cut"] = o.cut;
  j["bytes"] = r.bytes;
  j["bits_per_point"] = r.bits_per_point;
  j["ratio"] = r.ratio;
  if (r.bound) j["bound"] = *r.bound;
  if (r.errors) {
    j["relative_l2"] = r.errors->relative_l2;
    j["max_error"] = r.errors->max_error;
    // JSON does not support infinity: equal fields have no ratio.
    j["psnr"] =
        std::isfinite(r.errors->psnr) ? nlohmann::ordered_json(r.errors->psnr) : nlohmann::ordered_json();
    j["spectrum_error"] = r.errors->spectrum_error;
    j["least_kept"] = r.errors->least_kept;
    j["worst_frame"] = r.errors->worst_frame;
  }
  if (!r.warnings.empty()) j["warnings"] = r.warnings;
  j["file"] = r.file.string();
  return j;
}
std::string to_json(const CodecRunResult& r) { return json_text(document_of(r)); }

}  // namespace lockstep::flow
