// A codec on a device: tables of its plan, scratch memory, and the launches from fields to latents and back.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>

#include "flow/codec/kernels/kernels.hpp"
#include "flow/codec/layout.hpp"
#include "flow/random.hpp"
#include "lockstep/error.hpp"
#include "lockstep/fft.hpp"

namespace lockstep::flow {

namespace {

Buffer upload_shaped(const Device& device, const std::vector<int32_t>& values, Shape shape) {
  return device.upload(std::span<const int32_t>(values), shape);
}

Buffer& made(const Device& device, Buffer& buffer, Shape shape, Storage storage = Storage::f32) {
  if (!buffer) buffer = device.allocate(storage, shape);
  return buffer;
}

void expect_shape(const Buffer& buffer, const Shape& shape, const char* what) {
  if (buffer.storage() != Storage::f32 || !(buffer.shape() == shape))
    throw InputError(
        fmt::format("{} {} of shape {}", name(buffer.storage()), what, to_string(buffer.shape())),
        "flow codec", fmt::format("f32 of shape {}", to_string(shape)));
}

}  // namespace

struct Codec::State {
  /// Scratch memory of a batch, made when it is first needed.
  struct Scratch {
    Buffer spectrum;            // (count, ny, columns, 2)
    Buffer sums, residual;      // (count, ny, nx)
    Buffer bits, swept;         // (count, 2, ny, words)
    Buffer peaks, peak;         // (count, chunks), (count)
    Buffer support, band_sums;  // (count), (count, chunks)
    Buffer kept;                // (count, kept rows, kept columns, 2)
    Buffer noise, random;       // (count fields, ny, columns, 2), (count fields, ny, nx)
    Buffer energies, squares, factors;
    std::optional<Fft> forward, inverse, inverse_noise;
  };

  Device device;
  CodecPlan plan;
  CodecLayout layout;
  int64_t kept_rows = 0, kept_columns = 0;
  int32_t half_box = 0;
  Buffer place, gain, anchor_place, anchor_gain;             // gather
  Buffer source, scale;                                      // scatter
  Buffer chunks, first, order, weight, members, band, over;  // bands
  Buffer band_scale;
  std::map<int64_t, Scratch> scratch;

  bool is_classic() const { return plan.options.kind == CodecKind::classic; }
  int64_t fields() const { return is_classic() ? 2 : 1; }
  int64_t words() const { return chunks_of(layout.nx, 32); }
  int64_t at_once() const { return frames_at_once(plan.options.grid); }

  State(const Device& on, const CodecOptions& options) : device(on) {
    plan.options = options;
    layout.nx = options.grid.nx;
    layout.ny = options.grid.ny;
    layout.columns = layout.nx / 2 + 1;
    half_box = int32_t(box_points(options) / 2);
  }

  void take_plan(CodecPlan taken, CodecLayout laid) {
    plan = std::move(taken);
    check_codec(plan.options);
    layout = std::move(laid);
    half_box = int32_t(box_points(plan.options) / 2);
    if (!is_classic() && int64_t(plan.scales.size()) != layout.size)
      throw InputError(fmt::format("{} scales", plan.scales.size()), "flow codec",
                       fmt::format("{}, one for each number of a latent", layout.size));
    for (const int32_t a : plan.anchors)
      if (a < 0 || a >= layout.nx * layout.ny)
        throw InputError(fmt::format("an anchor at {}", a), "flow codec",
                         fmt::format("0 to {}", layout.nx * layout.ny - 1));
    make_gather();
    make_scatter();
    make_bands();
  }

  /// Float offset of a mode's real part in the half spectrum, and the sign of its imaginary part there.
  std::pair<int32_t, float> half_place(const PlaneMode& mode) const {
    const bool mirrored = mode.ix < 0;
    const int64_t iy = mirrored ? -mode.iy : mode.iy, ix = std::abs(mode.ix);
    const int64_t row = ((iy % layout.ny) + layout.ny) % layout.ny;
    return {int32_t(2 * (row * layout.columns + ix)), mirrored ? -1.0f : 1.0f};
  }
  PlaneMode anchor_mode(int32_t at) const {
    const int64_t row = at / layout.nx, column = at % layout.nx;
    return {layout.signed_row(row), column <= layout.nx / 2 ? column : column - layout.nx};
  }

  void make_gather() {
    const float share = float(1 / layout.points());
    std::vector<int32_t> places;
    std::vector<float> gains;
    if (is_classic()) {
      for (const int part : {0, 1})
        for (const PlaneMode& mode : layout.modes) {
          const auto [at, sign] = half_place(mode);
          places.push_back(at + part);
          gains.push_back(part == 1 ? sign * share : share);
        }
      std::vector<int32_t> anchor_places;
      std::vector<float> anchor_gains;
      for (const int part : {0, 1})
        for (const int32_t a : plan.anchors) {
          const auto [at, sign] = half_place(anchor_mode(a));
          anchor_places.push_back(at + part);
          anchor_gains.push_back(part == 1 ? sign * share : share);
        }
      if (!anchor_places.empty()) {
        anchor_place = device.upload(anchor_places);
        anchor_gain = device.upload(anchor_gains);
      }
    } else {
      for (size_t m = 0; m < layout.modes.size(); ++m) {
        const int32_t at = half_place(layout.modes[m]).first;
        for (int part = 0; part < (m == 0 ? 1 : 2); ++part) {
          places.push_back(at + part);
          gains.push_back(share / plan.scales[gains.size()]);
        }
      }
    }
    place = device.upload(places);
    gain = device.upload(gains);
  }

  /// Places of a mode's parts in the latent, from 1; 0 for none.
  std::vector<std::pair<int32_t, int32_t>> plane_sources() const {
    std::vector<std::pair<int32_t, int32_t>> of(size_t(layout.nx * layout.ny), {0, 0});
    const auto at = [&](int64_t iy, int64_t ix) -> std::pair<int32_t, int32_t>& {
      return of[size_t((iy + layout.ny) % layout.ny * layout.nx + (ix + layout.nx) % layout.nx)];
    };
    const int32_t count = int32_t(layout.modes.size());
    for (int32_t m = 0; m < count; ++m) {
      const PlaneMode& mode = layout.modes[size_t(m)];
      if (is_classic()) {
        at(mode.iy, mode.ix) = {m + 1, m + count + 1};
      } else {
        // The half plane says both: the mirror's imaginary part is the negative.
        const int32_t re = m == 0 ? 1 : 2 * m, im = m == 0 ? 0 : 2 * m + 1;
        at(-mode.iy, -mode.ix) = {re, -im};
        at(mode.iy, mode.ix) = {re, im};
      }
    }
    if (is_classic() && plan.options.anchors == Anchors::used) {
      const int32_t begin = int32_t(layout.extras) + 5, anchors = int32_t(plan.anchors.size());
      for (int32_t a = 0; a < anchors; ++a) {
        const PlaneMode mode = anchor_mode(plan.anchors[size_t(a)]);
        at(mode.iy, mode.ix) = {begin + a, begin + anchors + a};
      }
    }
    return of;
  }

  void make_scatter() {
    const auto of = plane_sources();
    int64_t most_y = 0, most_x = 0;
    for (int64_t row = 0; row < layout.ny; ++row)
      for (int64_t column = 0; column < layout.nx; ++column)
        if (of[size_t(row * layout.nx + column)].first != 0) {
          most_y = std::max(most_y, std::abs(layout.signed_row(row)));
          most_x = std::max(most_x, std::min(column, layout.nx - column));
        }
    kept_rows = most_y;
    kept_columns = most_x;
    std::vector<int32_t> sources;
    for (int64_t row = 0; row <= 2 * kept_rows; ++row)
      for (int64_t column = 0; column <= kept_columns; ++column) {
        const int64_t iy = row <= kept_rows ? row : row - 2 * kept_rows - 1, y = layout.row_of(iy);
        const auto self = of[size_t(y * layout.nx + column)],
                   mirror =
                       of[size_t((layout.ny - y) % layout.ny * layout.nx + (layout.nx - column) % layout.nx)];
        sources.insert(sources.end(), {self.first, mirror.first, self.second, -mirror.second});
      }
    source = upload_shaped(device, sources, {2 * kept_rows + 1, kept_columns + 1, 4});
    scale = device.upload(is_classic() ? std::vector<float>(size_t(layout.size), 1.0f) : plan.scales);
  }

  void make_bands() {
    std::vector<int32_t> ranges, firsts{0}, ordered;
    for (int64_t b = 1; b <= layout.bands; ++b) {
      const int64_t begin = int64_t(ordered.size());
      for (size_t at = 0; at < layout.band.size(); ++at)
        if ((layout.band[at] & 255) == b && layout.weight[at] > 0) ordered.push_back(int32_t(at));
      const int64_t end = int64_t(ordered.size());
      for (int64_t k = begin; k < end; k += kBandChunk)
        ranges.insert(ranges.end(), {int32_t(k), int32_t(std::min(end, k + kBandChunk))});
      firsts.push_back(int32_t(ranges.size() / 2));
    }
    if (layout.bands == 0) return;
    // A band without modes: its chunk is empty.
    if (ranges.empty()) ranges.assign(2, 0);
    if (ordered.empty()) ordered.push_back(0);
    chunks = upload_shaped(device, ranges, {int64_t(ranges.size()) / 2, 2});
    first = device.upload(firsts);
    order = device.upload(ordered);
    weight = device.upload(layout.weight);
    members = device.upload(std::vector<float>(layout.members.begin() + 1, layout.members.end()));
    band = upload_shaped(device, layout.band, {layout.ny, layout.columns});
    if (is_classic()) return;
    std::vector<float> scales(plan.scales.end() - layout.bands, plan.scales.end()), inverse;
    for (const float s : scales) inverse.push_back(1 / s);
    band_scale = device.upload(scales);
    over = device.upload(inverse);
  }

  FftOptions field_transform(FftKind kind, int64_t count, Shape kept = {}) const {
    FftOptions options;
    options.kind = kind;
    options.lengths = {layout.ny, layout.nx};
    options.batch = count;
    options.kept = kept;
    return options;
  }

  Scratch& scratch_of(int64_t count) { return scratch[count]; }

  void forward(Scratch& s, int64_t count, const Buffer& from) {
    if (!s.forward) s.forward.emplace(device, field_transform(FftKind::r2c, count));
    s.forward->execute(from, made(device, s.spectrum, {count, layout.ny, layout.columns, 2}));
  }

  void take_residual(Scratch& s, int64_t count, const Buffer& w) {
    const bool periodic = !is_classic();
    const Shape field{count, layout.ny, layout.nx};
    made(device, s.sums, field);
    made(device, s.residual, field);
    device.launch(MaskKernels::rows(periodic), field, w, s.sums, half_box);
    device.launch(MaskKernels::residual(periodic), field, w, s.sums, s.residual, half_box);
  }

  /// Bits of the ternary mask of fields; leaves their residual.
  const Buffer& take_mask(Scratch& s, int64_t count, const Buffer& w) {
    take_residual(s, count, w);
    const int64_t points = layout.nx * layout.ny, parts = chunks_of(points, kPointChunk);
    device.launch(MaskKernels::peaks(), {count, parts}, s.residual.reshape({count, points}),
                  made(device, s.peaks, {count, parts}));
    device.launch(MaskKernels::peak(), {count}, s.peaks, made(device, s.peak, {count}));
    const Shape plane{count, 2, layout.ny, words()}, domain{count, layout.ny, words()};
    Buffer from = made(device, s.bits, plane, Storage::u32), to = made(device, s.swept, plane, Storage::u32);
    device.launch(MaskKernels::ternary(), domain, s.residual, s.peak, from, plan.options.threshold);
    for (int k = 0; k < kSweeps; ++k) {
      device.launch(MaskKernels::sweep(), domain, from, to, layout.nx);
      std::swap(from, to);
    }
    return s.bits;  // after an even number of sweeps
  }

  void sum_bands(Scratch& s, int64_t count) {
    const int64_t parts = chunks.shape()[0];
    device.launch(BandKernels::sums(), {count, parts},
                  s.spectrum.reshape({count, layout.ny * layout.columns, 2}), chunks, order, weight,
                  made(device, s.band_sums, {count, parts}), 1 / layout.points());
  }

  void encode(const Buffer& frames, const Buffer& latent) {
    const int64_t count = frames.shape()[0];
    Scratch& s = scratch_of(count);
    const Shape flat{count, layout.ny * layout.columns * 2};
    forward(s, count, frames);
    device.launch(LatentKernels::gather(), {count, layout.extras}, s.spectrum.reshape(flat), place, gain,
                  latent.window({0, 0}, {count, layout.extras}));
    if (!is_classic()) {
      if (layout.bands == 0) return;
      sum_bands(s, count);
      device.launch(BandKernels::amplitudes(), {count, layout.bands}, s.band_sums, first, over,
                    latent.window({0, layout.extras}, {count, layout.bands}));
      return;
    }
    const Buffer bits = take_mask(s, count, frames);
    device.launch(MaskKernels::support(), {count}, bits.reshape({count, 2, layout.ny * words()}),
                  made(device, s.support, {count}), layout.points());
    forward(s, count, s.residual);
    sum_bands(s, count);
    const int64_t anchors = int64_t(plan.anchors.size());
    device.launch(BandKernels::classic(), {count, 2}, s.band_sums, first, members, s.support,
                  latent.window({0, layout.extras}, {count, 4}), double(anchors));
    if (anchors > 0)
      device.launch(LatentKernels::gather(), {count, 2 * anchors}, s.spectrum.reshape(flat), anchor_place,
                    anchor_gain, latent.window({0, layout.extras + 4}, {count, 2 * anchors}));
  }

  void decode(const Buffer& latent, const Buffer& frames, Decoder decoder, int64_t number) {
    const int64_t count = frames.shape()[0];
    Scratch& s = scratch_of(count);
    const Shape rows{count, 2 * kept_rows + 1, kept_columns + 1};
    if (!s.inverse) {
      s.inverse = Fft(device, field_transform(FftKind::c2r, count, {kept_rows, kept_columns}));
      made(device, s.kept, {rows[0], rows[1], rows[2], 2});
    }
    device.launch(LatentKernels::scatter(), rows, latent, source, scale, s.kept);
    s.inverse->execute(s.kept, frames);
    if (decoder == Decoder::stochastic && layout.bands > 0) add_noise(s, count, latent, frames, number);
  }

  void add_noise(Scratch& s, int64_t count, const Buffer& latent, const Buffer& frames, int64_t number) {
    const Buffer bits = take_mask(s, count, frames);
    made(device, s.energies, {count, layout.bands});
    if (is_classic())
      device.launch(BandKernels::classic_energies(), {count, layout.bands},
                    latent.window({0, layout.extras}, {count, 4}), members, s.energies);
    else
      device.launch(BandKernels::v2_energies(), {count, layout.bands},
                    latent.window({0, layout.extras}, {count, layout.bands}), band_scale, s.energies);
    const int64_t all = count * fields(), points = layout.nx * layout.ny,
                  parts = chunks_of(points, kPointChunk);
    if (!s.inverse_noise) s.inverse_noise.emplace(device, field_transform(FftKind::c2r, all));
    made(device, s.noise, {all, layout.ny, layout.columns, 2});
    made(device, s.random, {all, layout.ny, layout.nx});
    device.launch(BandKernels::noise(), {all, layout.ny, layout.columns}, s.energies, band, members, s.noise,
                  fields(), layout.nx, random_key(plan.options.seed), number);
    s.inverse_noise->execute(s.noise, s.random);
    device.launch(BandKernels::masked(), {all, parts}, s.random, bits, made(device, s.squares, {all, parts}),
                  fields());
    device.launch(BandKernels::factors(), {all}, s.squares, s.energies, made(device, s.factors, {all}),
                  fields(), layout.points());
    device.launch(BandKernels::add(), {count, layout.ny, layout.nx}, s.random, bits, s.factors, frames,
                  fields());
  }

  /// work(rows from, rows to, frames done) in batches of what the scratch memory holds.
  template <class F>
  void in_batches(const Buffer& frames, const Buffer& latent, F work) {
    const int64_t all = frames.shape().rank() == 3 ? frames.shape()[0] : -1;
    if (all < 0) expect_shape(frames, {1, layout.ny, layout.nx}, "frames");
    expect_shape(frames, {all, layout.ny, layout.nx}, "frames");
    expect_shape(latent, {all, layout.size}, "latents");
    for (int64_t done = 0; done < all; done += at_once()) {
      const int64_t count = std::min(at_once(), all - done);
      work(frames.rows(done, count), latent.rows(done, count), done);
    }
  }
};

Codec::Codec(const Device& device, const CodecOptions& options, const Buffer& first) {
  check_codec(options);
  state_ = std::make_shared<State>(device, options);
  State& state = *state_;
  const Shape one{1, state.layout.ny, state.layout.nx};
  if (first.elements() != one.elements())
    expect_shape(first, {state.layout.ny, state.layout.nx}, "first frame");
  const Buffer frame = first.reshape(one);
  expect_shape(frame, one, "first frame");
  State::Scratch& s = state.scratch_of(1);
  if (state.is_classic()) state.take_residual(s, 1, frame);
  state.forward(s, 1, state.is_classic() ? s.residual : frame);
  CodecLayout layout;
  CodecPlan plan = plan_codec(options, device.download<f32>(s.spectrum), &layout);
  state.take_plan(std::move(plan), std::move(layout));
  if (state.at_once() > 1) state.scratch.clear();
}

Codec::Codec(const Device& device, const CodecPlan& plan)
    : state_(std::make_shared<State>(device, plan.options)) {
  state_->take_plan(plan, codec_layout(plan));
}

const CodecPlan& Codec::plan() const { return state_->plan; }
int64_t Codec::latent_size() const { return state_->layout.size; }

void Codec::encode(const Buffer& frames, const Buffer& latent) const {
  state_->in_batches(frames, latent,
                     [&](const Buffer& f, const Buffer& z, int64_t) { state_->encode(f, z); });
}

void Codec::decode(const Buffer& latent, const Buffer& frames, Decoder decoder, int64_t number) const {
  state_->in_batches(frames, latent, [&](const Buffer& f, const Buffer& z, int64_t done) {
    state_->decode(z, f, decoder, number + done);
  });
}

std::vector<Kernel> Codec::kernels() const {
  const bool periodic = !state_->is_classic();
  std::vector<Kernel> all{LatentKernels::gather(),     LatentKernels::scatter(),
                          MaskKernels::rows(periodic), MaskKernels::residual(periodic),
                          MaskKernels::peaks(),        MaskKernels::peak(),
                          MaskKernels::ternary(),      MaskKernels::sweep(),
                          BandKernels::sums(),         BandKernels::noise(),
                          BandKernels::masked(),       BandKernels::factors(),
                          BandKernels::add()};
  if (state_->is_classic())
    all.insert(all.end(), {MaskKernels::support(), BandKernels::classic(), BandKernels::classic_energies()});
  else
    all.insert(all.end(), {BandKernels::amplitudes(), BandKernels::v2_energies()});
  return all;
}

}  // namespace lockstep::flow
