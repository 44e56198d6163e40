// The kernels of a discretised plan.
#pragma once

#include <utility>
#include <vector>

#include "lockstep/kernel/kernel.hpp"
#include "pde/language/tracer.hpp"

namespace lockstep::pde {

/// A field at a level (-1, 0, +1).
struct FieldLevel {
  int field_index, level;
  friend bool operator==(const FieldLevel&, const FieldLevel&) = default;
};

/// What a kernel is made for.
struct KernelForm {
  Storage storage = Storage::f32;  // of fields, mask and gradients
  bool mask = false;
  bool streaming = true;  // gradients are written past the caches
  bool rows = false;      // all components of a level side by side in one array
  bool batch = false;     // several members, one after the other in every array
  bool whole = false;     // two kernels: cotangents of the whole grid, not of a ring of planes
  Type type() const { return storage == Storage::f64 ? Type::f64 : Type::f32; }
  Storage scratch() const { return storage == Storage::f64 ? Storage::f64 : Storage::f32; }
};

/// Part of a kernel's name: storage, order, wrapping (p) or edged (e) axes, mask.
std::string variant(const Discretisation& d, const KernelForm& form);

/// Fields that values read, in the order of field and level.
std::vector<FieldLevel> fields_of(const Plan& plan, std::span<const Value> values, Access::Kind kind);
/// Targets of a field at a level.
std::vector<const Target*> targets_of(const Plan& plan, const FieldLevel& where);

/// The buffers of fields at levels, as a kernel declares them: one array (members * components, nz, ny, nx)
/// for each field and level, or one array (members * nz, ny, nx, width) for each level.
class FieldArrays {
 public:
  FieldArrays(const Plan& plan, std::vector<FieldLevel> list, const KernelForm& form, const char* prefix,
              ir::Access access);
  /// At cell `at` (x, y, z) of a member (kNone: there is one).
  ir::Id load(const FieldLevel& f, int component, const std::array<ir::Id, 3>& at, ir::Id member,
              ir::Id nz) const;
  void store(const FieldLevel& f, int component, const std::array<ir::Id, 3>& at, ir::Id member, ir::Id nz,
             ir::Id value, bool streaming) const;

  const RawBuffer& buffer(const FieldLevel& f) const;
  /// Levels of the buffers, where each holds all fields.
  static std::vector<int> levels(const std::vector<FieldLevel>& list);
  /// Place of a component among all components of a level.
  static int column(const Plan& plan, int field_index, int component);
  static int width(const Plan& plan);

 private:
  std::array<ir::Id, 4> place(const FieldLevel& f, int component, const std::array<ir::Id, 3>& at,
                              ir::Id member, ir::Id nz) const;
  const Plan& plan_;
  std::vector<FieldLevel> list_;
  KernelForm form_;
  std::vector<RawBuffer> buffers_;
};

/// Coordinates of a lane in a slab. z_unwrapped runs beyond the grid along a wrapping axis, so that a slab
/// can hold the planes that its neighbours need. Declares z_first, ring, shift, the cells along z, and for
/// batches the first member and the planes that the launch takes of each member.
struct SlabPlace {
  ir::Id z_first, ring, shift, nz, z_unwrapped, slot, member = ir::kNone;
  std::array<ir::Id, 3> own, size;
  bool whole, batch;

  SlabPlace(const Discretisation& d, const KernelForm& form);
  /// Place of a plane in the ring; of the plane `dz` from the lane's own.
  ir::Id slot_of(ir::Id plane) const;
  /// A plane counted through all members.
  ir::Id member_plane(ir::Id plane) const;
  ir::Id slot_at(Tracer& tracer, const Discretisation& d, int dz) const;
};

enum class ResidualKind : uint8_t {
  cotangent,  // seed_k * mask * R_k into a ring of planes
  plain,      // R_k
  tangent,    // the derivative of R_k along the tangent fields
};

/// Points kernel over a slab of planes; plane z of the result is (z + shift) mod ring. Arguments: fields
/// (rank 4), tangent fields for `tangent`, [mask], result (rank 4), the slab, scales, parameters, seeds
/// (cotangent only).
Kernel residual_kernel(std::shared_ptr<const Discretisation> d, const KernelForm& form, ResidualKind kind);

/// Points kernel over a slab of planes. Arguments: fields, cotangents (rank 4), gradients by `outputs`, the
/// slab, scales, parameters.
Kernel adjoint_kernel(std::shared_ptr<const Discretisation> d, const KernelForm& form,
                      std::vector<FieldLevel> outputs);

/// Which residuals see a level of a trajectory: those one level before and after it, and its own.
struct SeenBy {
  bool before = true, here = true, after = true;
};
/// Gradient at one level: what its own residual gives by its differences, then what the residual before, then
/// what the one after gives. Arguments: level-0 fields (`here`), cotangents of those that see it in the order
/// before, here, after (rank 4), gradients by `fields`, the slab, scales, parameters.
Kernel trajectory_kernel(std::shared_ptr<const Discretisation> d, const KernelForm& form,
                         std::vector<int> fields, SeenBy seen = {});

inline constexpr int kReduceLanes = 256, kReduceChunk = 4096;
/// Sums of c^2 / m over chunks of each plane. Groups: chunks, planes, residuals. Arguments: cotangents
/// (K, ring, plane), [mask (nz, plane)], partial sums (K, nz, chunks), z_first, ring, shift.
Kernel partial_kernel(const KernelForm& form, Type sum);
/// Sums of rows of (K, M); one group each. Arguments: partial sums, results (K).
Kernel total_kernel(Type sum);

/// Adds `b` to `a`. Arguments: a (read and written), b.
Kernel add_kernel(Storage storage);

}  // namespace lockstep::pde
