// Memory of a solver on a device, counted as it allocates, without a device.
#include "lockstep/flow/memory.hpp"

#include "flow/les/evaluation.hpp"
#include "primitives/fft/twiddles.hpp"

namespace lockstep::flow {

namespace {

class Count {
 public:
  Count(const Model& model, const Stepping& stepping, Storage storage, int64_t members)
      : modes_(modes_of(model)),
        form_(form_of(model, stepping.cfl > 0)),
        grid_(model.grid),
        stepping_(stepping),
        storage_(storage),
        members_(members),
        number_(int64_t(size_of(storage))) {}

  int64_t all(const DeviceInfo& device) const {
    const bool dynamic = is_dynamic(form_.terms.closure);
    return state() + (is_fused(modes_, form_) ? fused(device) : whole()) + (dynamic ? germano() : 0);
  }

 private:
  int64_t spectra(int64_t fields) const { return 2 * number_ * members_ * fields * modes_.count(); }
  int64_t points(int64_t fields) const {
    return number_ * members_ * fields * modes_.points_x * modes_.points_y;
  }
  static int64_t table(int64_t n) { return 2 * primitives::fft::Stages(n).table_size(); }
  /// Lines along y of the kept columns, between the two axes, and the tables of both.
  int64_t plan(int64_t fields, int64_t nx, int64_t ny) const {
    return number_ * (2 * members_ * fields * ny * modes_.columns() + table(nx) + table(ny));
  }
  int64_t plan(int64_t fields) const { return plan(fields, modes_.points_x, modes_.points_y); }

  /// The state with its stages, a field on the grid and the transforms to it; at the start a spectrum more.
  int64_t state() const {
    const bool etd = stepping_.integrator == Integrator::etdrk4,
               history = etd || stepping_.integrator == Integrator::ab3;
    int64_t bytes = spectra(5 + int64_t(history) + int64_t(etd));
    if (etd) bytes += 12 * number_ * modes_.count();
    bytes += members_ * (kClockColumns * number_ + 4 * kStatusColumns + 4);
    return bytes + number_ * members_ * grid_.points() + 2 * plan(1, grid_.nx, grid_.ny);
  }
  int64_t fused(const DeviceInfo& device) const {
    const FusedShape shape = fused_shape(modes_, storage_, device);
    return 2 * number_ * members_ * modes_.columns() * (modes_.points_y + shape.pad) *
               (fused_fields(form_) + 2) +
           2 * number_ * members_ * shape.row_groups() +
           number_ * (table(modes_.points_x) + table(modes_.points_y));
  }
  int64_t whole() const {
    int64_t bytes = 2 * number_ * members_ * chunks_of(modes_.points_x * modes_.points_y);
    for (const int64_t n : {int64_t(form_.terms.fields.size()), int64_t(form_.terms.products.size())})
      bytes += spectra(n) + points(n) + plan(n);
    return bytes;
  }
  int64_t germano() const {
    const auto filtered = 4 + int64_t(germano_fields(form_.terms).size());
    int64_t bytes =
        plan(4) + plan(filtered) + points(4) + spectra(4) + spectra(filtered) + points(filtered) + points(2);
    if (form_.terms.averaging == Averaging::local) bytes += 2 * plan(2) + 2 * spectra(2);
    return bytes;
  }

  Modes modes_;
  KernelForm form_;
  BoxGrid grid_;
  Stepping stepping_;
  Storage storage_;
  int64_t members_, number_;
};

}  // namespace

int64_t memory_bytes(const Model& model, const Stepping& stepping, Storage precision, int64_t members,
                     const DeviceInfo& device) {
  check(model, stepping);
  return Count(model, stepping, precision, members).all(device);
}

}  // namespace lockstep::flow
