// Memory of a solver on a device, counted as it allocates, without a device.
#include "lockstep/flow/memory.hpp"

#include "flow/les/evaluation.hpp"
#include "primitives/fft/plan.hpp"
#include "primitives/fft/twiddles.hpp"

namespace lockstep::flow {

namespace {

class Count {
 public:
  Count(const Model& model, const Stepping& stepping, Storage storage, int64_t members,
        const DeviceInfo& device)
      : device_(device),
        modes_(modes_of(model)),
        form_(form_of(model, stepping.cfl > 0)),
        grid_(model.grid),
        stepping_(stepping),
        storage_(storage),
        members_(members),
        number_(int64_t(size_of(storage))) {}

  int64_t all() const {
    const bool dynamic = is_dynamic(form_.terms.closure);
    return state() + (is_fused(modes_, form_, storage_, device_.limits) ? fused() : whole()) +
           (dynamic ? germano() : 0);
  }

 private:
  int64_t spectra(int64_t fields) const { return 2 * number_ * members_ * fields * modes_.count(); }
  int64_t points(int64_t fields) const {
    return number_ * members_ * fields * modes_.points_x * modes_.points_y;
  }
  static int64_t table(int64_t n) { return 2 * primitives::fft::Stages(n).table_size(); }
  /// A transform of so many fields.
  int64_t plan(FftKind kind, int64_t fields, int64_t nx, int64_t ny) const {
    FftOptions options;
    options.kind = kind;
    options.type = storage_;
    options.lengths = {ny, nx};
    options.batch = fields * members_;
    options.kept = {modes_.kept_y, modes_.kept_x};
    return primitives::fft::plan_bytes(options, primitives::fft::choice_for(device_, options));
  }
  int64_t plan(FftKind kind, int64_t fields) const {
    return plan(kind, fields, modes_.points_x, modes_.points_y);
  }

  /// The state with its stages, a field on the grid and the transforms to it; at the start a spectrum more.
  int64_t state() const {
    const bool etd = stepping_.integrator == Integrator::etdrk4,
               history = etd || stepping_.integrator == Integrator::ab3;
    int64_t bytes = spectra(5 + int64_t(history) + int64_t(etd));
    if (etd) bytes += 12 * number_ * modes_.count();
    bytes += members_ * (kClockColumns * number_ + 4 * kStatusColumns + 4);
    return bytes + number_ * members_ * grid_.points() + plan(FftKind::c2r, 1, grid_.nx, grid_.ny) +
           plan(FftKind::r2c, 1, grid_.nx, grid_.ny);
  }
  int64_t fused() const {
    const FusedShape shape = fused_shape(modes_, storage_, device_, stepping_.variant);
    return 2 * number_ * members_ * modes_.columns() * (modes_.points_y + shape.pad) *
               (fused_fields(form_) + 2) +
           2 * number_ * members_ * shape.row_groups() +
           number_ * (table(modes_.points_x) + table(modes_.points_y));
  }
  int64_t whole() const {
    int64_t bytes =
        (is_local(form_.terms) ? 3 : 2) * number_ * members_ * chunks_of(modes_.points_x * modes_.points_y);
    const auto fields = int64_t(form_.terms.fields.size()), products = int64_t(form_.terms.products.size());
    bytes += spectra(fields + products) + points(fields + products);
    return bytes + plan(FftKind::c2r, fields) + plan(FftKind::r2c, products);
  }
  int64_t germano() const {
    const auto filtered = 4 + int64_t(germano_fields(form_.terms).size());
    int64_t bytes = plan(FftKind::r2c, 4) + plan(FftKind::c2r, filtered) + points(4 + filtered + 2) +
                    spectra(4 + filtered);
    if (is_local(form_.terms)) bytes += points(1);
    return bytes;
  }

  const DeviceInfo& device_;
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
  return Count(model, stepping, precision, members, device).all();
}

}  // namespace lockstep::flow
