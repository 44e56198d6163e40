#include "flow/pipeline/first_latent.hpp"

#include <algorithm>

#include "flow/codec/layout.hpp"
#include "flow/modes.hpp"
#include "lockstep/fft.hpp"

namespace lockstep::flow {

int64_t first_latent_size(const Device& cpu, const Model& model, const CodecOptions& codec,
                          const Array& initial) {
  if (codec.kind == CodecKind::classic) return 0;  // hundreds
  if (codec.cut > 0) return codec_layout({codec, {}, {}}).size;
  const BoxGrid& grid = model.grid;
  const Modes modes = modes_of(model);
  FftOptions options;
  options.kind = FftKind::r2c;
  options.lengths = {grid.ny, grid.nx};
  options.kept = {modes.kept_y, modes.kept_x};
  const Buffer kept = cpu.allocate(Storage::f32, {modes.rows(), modes.columns(), 2});
  Fft(cpu, options).execute(cpu.upload(initial.to(Storage::f32).packed().reshape({grid.ny, grid.nx})), kept);
  const auto numbers = cpu.download<float>(kept);
  const int64_t columns = grid.nx / 2 + 1;
  std::vector<float> spectrum(size_t(grid.ny * columns * 2));
  for (int64_t row = 0; row < modes.rows(); ++row) {
    const int64_t y = (modes.iy(row) + grid.ny) % grid.ny;
    std::copy_n(&numbers[size_t(row * modes.columns() * 2)], modes.columns() * 2,
                &spectrum[size_t(y * columns * 2)]);
  }
  spectrum[0] = 0;
  return codec_layout(plan_codec(codec, spectrum)).size;
}

}  // namespace lockstep::flow
