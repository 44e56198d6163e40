// The kernels of a discretised plan.
#pragma once

#include <utility>
#include <vector>

#include "lockstep/kernel/dynamic.hpp"
#include "pde/language/tracer.hpp"

namespace lockstep::pde {

/// A field at a level (-1, 0, +1).
struct FieldLevel {
  int field_index, level;
  friend bool operator==(const FieldLevel&, const FieldLevel&) = default;
};

/// The form of a kernel.
struct KernelForm {
  Storage storage = Storage::f32;  // of fields, mask and gradients
  bool mask = false;
  bool streaming = true;  // gradients are written past the caches
  bool rows = false;      // all components of a level side by side in one array
  bool batch = false;     // several members, one after the other in every array
  bool whole = false;     // two kernels: cotangents of the whole grid, not of a ring of planes
  bool part = false;      // a sweep over some planes of the grid
  Type type() const { return storage == Storage::f64 ? Type::f64 : Type::f32; }
  Storage scratch() const { return storage == Storage::f64 ? Storage::f64 : Storage::f32; }
};

/// Part of a kernel's name: storage, order, wrapping (p) or edged (e) axes, mask.
std::string variant(const Discretisation& d, const KernelForm& form);

/// Fields that values read, in the order of field and level.
std::vector<FieldLevel> fields_of(const Plan& plan, std::span<const Value> values, Access::Kind kind);
/// Targets of a field at a level.
std::vector<const Target*> targets_of(const Plan& plan, const FieldLevel& where);

/// Fields that the way back to `outputs` reads.
std::vector<FieldLevel> adjoint_fields(const Plan& plan, const std::vector<FieldLevel>& outputs);
/// Values at a cell and its neighbours on the way back to `outputs`.
std::vector<Value> adjoint_values(const Plan& plan, const std::vector<FieldLevel>& outputs);
/// The numbers seed0 …, one for each residual.
std::vector<AnyVal> seed_scalars(Parameters& p, const Plan& plan, Type type);

/// Name of the parameter that holds a field at a level, its tangent or its gradient; field -1 stands for the
/// rows of all fields.
std::string array_name(const char* what, const Plan& plan, const FieldLevel& f);
inline constexpr const char *kField = "field", *kTangent = "tangent", *kGradient = "gradient";

/// The buffers of fields at levels, as a kernel declares them: one array (members * components, nz, ny, nx)
/// for each field and level, or one array (members * nz, ny, nx, width) for each level.
class FieldArrays {
 public:
  /// `what`: kField and kTangent are read, kGradient is written.
  FieldArrays(Parameters& p, const Plan& plan, const std::vector<FieldLevel>& list, const KernelForm& form,
              const char* what);
  /// At a cell of a member (empty: there is one) of a grid of `nz` planes.
  AnyVal load(const FieldLevel& f, int component, const Cell& at, const Index& member, const Index& nz) const;
  void store(const FieldLevel& f, int component, const Cell& at, const Index& member, const Index& nz,
             const AnyVal& value, bool streaming) const;

  const AnyGrid& buffer(const FieldLevel& f) const;
  /// Levels of the buffers, where each holds all fields.
  static std::vector<int> levels(const std::vector<FieldLevel>& list);
  /// Place of a component among all components of a level.
  static int column(const Plan& plan, int field_index, int component);
  static int width(const Plan& plan);

 private:
  std::array<Index, 4> place(const FieldLevel& f, int component, const Cell& at, const Index& member,
                             const Index& nz) const;
  const Plan& plan_;
  KernelForm form_;
  std::vector<std::pair<FieldLevel, AnyGrid>> buffers_;  // field -1 for rows
};

/// Coordinates of a lane in a slab. z_unwrapped runs beyond the grid along a wrapping axis, so that a slab
/// can hold the planes that its neighbours need. Declares z_first, ring, shift, the cells along z, and for
/// batches the first member and the planes that the launch takes of each member.
struct SlabPlace {
  const Discretisation& d;
  bool whole;
  Index z_first, ring, shift, nz, z_unwrapped, slot;
  Index member;  // empty where there is one
  Cell own, size;

  SlabPlace(Parameters& p, const At<3>& at, const Discretisation& d, const KernelForm& form);
  /// Place of a plane in the ring; of the plane `dz` from the lane's own.
  Index slot_of(const Index& plane) const;
  Index slot_at(Tracer& tracer, int dz) const;
  /// A plane counted through all members.
  Index member_plane(const Index& plane) const;
};

enum class ResidualKind : uint8_t {
  cotangent,          // seed_k * mask * R_k into a ring of planes
  plain,              // R_k
  tangent,            // the derivative of R_k along the tangent fields
  tangent_of_all,     // and along tangents of parameters and sides' values
  cotangent_tangent,  // seed_k * mask times that
};

/// Points kernel over a slab of planes; plane z of the result is (z + shift) mod ring. Parameters: fields
/// (rank 4), tangents for `tangent`, mask, result (rank 4), the slab, scales, parameters, seed0 … for
/// `cotangent`.
Kernel residual_kernel(std::shared_ptr<const Discretisation> d, const KernelForm& form, ResidualKind kind);

/// Points kernel over a slab of planes. Parameters: fields, cotangents (rank 4), gradients of `outputs`, the
/// slab, scales, parameters.
Kernel adjoint_kernel(std::shared_ptr<const Discretisation> d, const KernelForm& form,
                      std::vector<FieldLevel> outputs);

/// Points kernel over whole grids: what each cell gives to the derivatives by the parameters that residuals mention.
/// Parameters: fields, cotangents (rank 4), result (rank 4), the slab, scales, parameters.
Kernel parameter_kernel(std::shared_ptr<const Discretisation> d, const KernelForm& form);

/// Which residuals see a level of a trajectory: those one level before and after it, and its own.
struct SeenBy {
  bool before = true, here = true, after = true;
};
/// Gradient at one level: what its own residual gives by its differences, then what the residual before, then
/// what the one after gives. Parameters: level-0 fields (`here`), cotangents of those that see it (before, here,
/// after, rank 4), gradients of `fields`, the slab, scales, parameters.
Kernel trajectory_kernel(std::shared_ptr<const Discretisation> d, const KernelForm& form,
                         std::vector<int> fields, SeenBy seen = {});

inline constexpr int kReduceLanes = 256, kReduceChunk = 4096;
/// Sums of c^2 / m over chunks of each plane. Groups: chunks, planes, residuals. Parameters: cotangents
/// (K, ring, plane), mask (nz, plane), partial (K, nz, chunks), z_first, ring, shift.
Kernel partial_kernel(const KernelForm& form, Type sum);
/// Sums of rows of (K, M); one group each. Parameters: partial, totals (K).
Kernel total_kernel(Type sum);

}  // namespace lockstep::pde
